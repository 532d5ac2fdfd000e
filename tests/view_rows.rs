//! The rows of tasks of `schedviz view`: against the exported tables of runs and waits, against the kinds of queued time of `latency`, and in a
//! browser.

use crate::support::{Effort, csv, effort, fixture, recordings_in_part, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, open};
use crate::webdriver::Browser;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Intervals of each task, with their CPUs.
type Intervals = BTreeMap<i64, Vec<(u64, u64, u64)>>;

/// The intervals of a table of `export`, in nanoseconds from the start of the trace.
fn exported(trace: &Path, tables: &Path, table: &str) -> Intervals {
    let start: i64 = {
        let run = csv(&std::fs::read_to_string(tables.join("run.csv")).expect("a table"));
        run[0]["start_ns"].parse().expect("a time")
    };
    let mut found = Intervals::new();
    for row in csv(&std::fs::read_to_string(tables.join(format!("{table}.csv"))).expect("a table")) {
        let number = |column: &str| row[column].parse::<i64>().unwrap_or_else(|e| panic!("{}: {e}", trace.display()));
        let from = (number("ts_ns") - start) as u64;
        let interval = (from, from + number("dur_ns") as u64, number("cpu") as u64);
        found.entry(number("pid")).or_default().push(interval);
    }
    found
}

/// A number of few bytes.
fn number(tile: &[u8], at: &mut usize) -> u64 {
    let length = tile[*at..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let digits = tile[*at..*at + length].iter().rev();
    *at += length;
    digits.fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// The columns of each row of a tile: the shares of the states.
fn rows(tile: &[u8]) -> Vec<Vec<[f64; 11]>> {
    let u16_at = |at: usize| u16::from_le_bytes([tile[at], tile[at + 1]]);
    assert_eq!(&tile[..4], b"SVR1");
    let (columns, number_of_rows, mut at) = (usize::from(u16_at(4)), u16_at(6), 8);
    let mut all = Vec::new();
    for _ in 0..number_of_rows {
        let mut row = Vec::new();
        while row.len() < columns {
            let (run, count) = (usize::from(tile[at]) + 1, tile[at + 1]);
            at += 2;
            let mut shares = [0.0; 11];
            let (mut first, mut rest) = (None, 1.0);
            for nth in 0..count {
                let state = usize::from(tile[at]);
                at += 1;
                if nth > 0 {
                    shares[state] = f64::from(u16_at(at)) / 65_535.0;
                    rest -= shares[state];
                    at += 2;
                } else {
                    first = Some(state);
                }
            }
            first.into_iter().for_each(|state| shares[state] = rest);
            if shares[0] > 0.0 {
                let named = tile[at];
                at += 1;
                for _ in 0..named & 0x7f {
                    number(tile, &mut at);
                    at += if named & 0x80 > 0 { 0 } else { 2 };
                }
            }
            if shares[1..=5].iter().sum::<f64>() > 0.0 {
                number(tile, &mut at);
            }
            row.extend(std::iter::repeat_n(shares, run));
        }
        all.push(row);
    }
    assert_eq!(at, tile.len());
    all
}

/// All fixtures and some recordings, without those that no command reads as they are: a clock that counts cycles needs an option.
pub(crate) fn recordings_to_view() -> Vec<PathBuf> {
    let is_read = |path: &PathBuf| {
        let ran = schedviz(&["export", path.to_str().expect("a name"), "--csv", "-", "--tables", "run", "-q"]);
        assert!(ran.code == Some(0) || !ran.stderr.is_empty(), "{}", path.display());
        ran.code == Some(0)
    };
    let found: Vec<PathBuf> = recordings_in_part(6).into_iter().filter(is_read).collect();
    assert!(found.len() >= 30 || std::env::var_os("SCHEDVIZ_ONLY").is_some(), "{} recordings", found.len());
    found
}

/// The time of intervals within a stretch.
fn within(intervals: Option<&Vec<(u64, u64, u64)>>, from: u64, to: u64) -> u64 {
    let part = |(start, end, _): &(u64, u64, u64)| (*end).min(to).saturating_sub((*start).max(from));
    intervals.into_iter().flatten().map(part).sum()
}

#[test]
fn rows_are_the_exported_runs_and_waits() {
    let names = [
        "hackbench.dat",
        "hackbench-v6.dat",
        "hotplug.dat",
        "sleepers-6.12.dat",
        "throttled-6.12.dat",
        "mask.dat",
        "unseen-wakeups-6.1.dat",
    ];
    let paths = if effort() == Effort::Quick { names.map(fixture).to_vec() } else { recordings_to_view() };
    for path in paths {
        let tables = scratch("view-rows");
        let name = path.to_str().expect("a name");
        schedviz(&["export", name, "--csv", tables.to_str().expect("a name"), "-q"]).success();
        let (ran, waited) = (exported(&path, &tables, "on_cpu"), exported(&path, &tables, "wait"));
        let view = View::of(&[&path]);
        let head = view.head(0);
        let tasks: Vec<i64> =
            head["tasks"].as_array().expect("tasks").iter().map(|task| task["pid"].as_i64().expect("a PID")).collect();
        let facts = view.json("t/0/rows.json");
        let states = facts["states"].as_array().expect("states");
        let time = |state: usize, place: usize| facts["times"][state][place].as_u64().expect("a time");
        assert_eq!((states.len(), &states[0], &states[10]), (11, &Value::from("running"), &Value::from("absent")));
        // Every task that ran or waited has a row, with these sums.
        for (pid, place) in ran.keys().chain(waited.keys()).map(|pid| (pid, tasks.iter().position(|task| task == pid)))
        {
            let place = place.unwrap_or_else(|| panic!("{name}: task {pid} has no row"));
            let all = u64::MAX;
            assert_eq!(time(0, place), within(ran.get(pid), 0, all), "{name}: running time of {pid}");
            let queued: u64 = (1..=5).map(|state| time(state, place)).sum();
            assert_eq!(queued, within(waited.get(pid), 0, all), "{name}: waiting time of {pid}");
            let first = ran.get(pid).map(|runs| runs.iter().map(|(from, ..)| *from).min());
            assert_eq!(facts["first"][place].as_u64(), first.flatten(), "{name}: the first run of {pid}");
        }
        compare_tiles(&view, &head, name, &tasks, (&ran, &waited));
        std::fs::remove_dir_all(&tables).expect("removed");
    }
}

/// Compares the columns of some tiles with the exported intervals.
fn compare_tiles(view: &View, head: &Value, name: &str, tasks: &[i64], (ran, waited): (&Intervals, &Intervals)) {
    let (span, top) = (head["span"].as_u64().expect("a span"), head["levels"][1].as_u64().expect("a level"));
    let columns = head["tile"]["columns"].as_u64().expect("columns");
    let places: Vec<String> = (0..tasks.len().min(64)).map(|place| place.to_string()).collect();
    for (level, index) in [(top, 0), (top - 4, 5), (top - 10, (span >> (top - 10)) / columns / 2)] {
        let tile = view.get(&format!("t/0/rows/{level}/{index}.bin?of={}", places.join(",")));
        if (index * columns) << level > span {
            assert_eq!(tile.status, 404);
            continue;
        }
        assert_eq!(tile.status, 200, "{name}");
        for (pid, row) in tasks.iter().zip(rows(&tile.body)) {
            for (nth, shares) in row.iter().enumerate() {
                let from = (index * columns + nth as u64) << level;
                let to = (from + (1 << level)).min(span);
                if from >= to {
                    assert_eq!(shares.iter().sum::<f64>(), 0.0, "{name}: behind the end");
                    continue;
                }
                let length = (to - from) as f64;
                let queued: f64 = shares[1..=5].iter().sum();
                for (found, truth) in
                    [(shares[0], within(ran.get(pid), from, to)), (queued, within(waited.get(pid), from, to))]
                {
                    // A share has sixteen bits, and one that is not zero is at least the smallest.
                    let place = format!("{name}: {pid}, column {nth} of tile {index} of level {level}: {shares:?}");
                    assert!((found - truth as f64 / length).abs() < 2e-4, "{truth} of {length}: {place}");
                }
            }
        }
    }
    assert_eq!(view.get(&format!("t/0/rows/{top}/9999999.bin?of=0")).status, 404);
    assert_eq!(view.get(&format!("t/0/rows/{top}/0.bin")).status, 400);
}

/// The wakeups that the arrows between rows show are those of the exported table, each with its waker.
#[test]
fn the_arrows_between_rows_are_the_exported_wakeups() {
    // Wakings are missing in the last one.
    for name in ["hackbench.dat", "sleepers-6.12.dat", "unseen-wakeups-6.1.dat"] {
        let path = fixture(name);
        let tables = scratch("view-wakeups");
        let to = tables.to_str().expect("a name");
        let path_name = path.to_str().expect("a name");
        schedviz(&["export", path_name, "--csv", to, "--tables", "run,wakeup", "-q"]).success();
        let table = |name: &str| csv(&std::fs::read_to_string(tables.join(format!("{name}.csv"))).expect("a table"));
        let start: i64 = table("run")[0]["start_ns"].parse().expect("a time");
        let (wakeups, view) = (table("wakeup"), View::of(&[&path]));
        let span = view.head(0)["span"].as_i64().expect("a span");
        let (mut number, mut compared) = (0, 0);
        for (from, to) in [(0, span / 3), (span / 3 + 1, span / 3 * 2), (span / 3 * 2 + 1, span)] {
            let found = view.json(&format!("t/0/wakeups.json?from={from}&to={to}"));
            let listed = found["wakeups"].as_array().expect("wakeups");
            assert_eq!(Some(listed.len() as u64), found["number"].as_u64(), "{name}");
            number += listed.len();
            let listed: BTreeSet<(i64, Option<i64>, i64)> = listed
                .iter()
                .map(|one| (one[0].as_i64().expect("a time"), one[1].as_i64(), one[2].as_i64().expect("a PID")))
                .collect();
            for row in wakeups.iter().filter(|row| row["kind"] == "wakeup" && !row["queued_ns"].is_empty()) {
                let at = row["queued_ns"].parse::<i64>().expect("a time") - start;
                let int = |column: &str| row[column].parse::<i64>().unwrap_or(-1);
                if (from..=to).contains(&at) {
                    let waker = Some(int("waker_pid")).filter(|pid| *pid > 0);
                    assert!(listed.contains(&(at, waker, int("pid"))), "{name}: {row:?}");
                    compared += 1;
                }
            }
        }
        let whole = view.json("t/0/wakeups.json");
        assert_eq!(whole["number"].as_u64(), Some(number as u64), "{name}");
        assert!(compared > 100, "{name}: {compared}");
    }
}

#[test]
fn the_kinds_of_the_rows_are_those_of_latency() {
    for (path, shows_wakeups) in [("hackbench.dat", true), ("rt-5.10.dat", true), ("mask.dat", true)] {
        let path = fixture(path);
        let name = path.to_str().expect("a name");
        let latency = schedviz(&["latency", name, "--json", "-q", "--tasks", "."]).success().text();
        let latency: Value = serde_json::from_str(&latency).expect("JSON");
        let view = View::of(&[&path]);
        view.head(0);
        let facts = view.json("t/0/rows.json");
        let all = |state: usize| {
            let times = facts["times"][state].as_array().expect("times").iter();
            times.map(|time| time.as_u64().expect("a time")).sum::<u64>()
        };
        assert_eq!(all(5) == 0, shows_wakeups, "{name}: the kinds are known");
        for (state, key) in (1..).zip(["held_back_ns", "beside_idle_ns", "beside_shorter_ns", "alike_ns"]) {
            let truth = latency["queued"][key].as_u64().unwrap_or_else(|| panic!("{name}: {}", latency["queued"]));
            assert!(all(state).abs_diff(truth) < 1000, "{name}: {key} {truth}, not {}", all(state));
        }
    }
}

#[test]
fn rows_are_shown_chosen_and_sorted_in_a_browser() {
    let Some(browser) = Browser::start("rows") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light");
    let count = |expected: &str| browser.wait_for(&format!("schedviz.state.traces[0].rows.places().length {expected}"));
    browser.run(
        "const rows = document.getElementById('rows'); rows.value = 'filter'; rows.dispatchEvent(new Event('change'))",
    );
    count("=== schedviz.state.traces[0].head.tasks.length");
    browser.wait_for(COMPLETE);
    // The order is that of the waiting time; only the rows in sight were asked for.
    let sorted = "const { rows } = schedviz.state.traces[0];
        const wait = place => [1, 2, 3, 4, 5].reduce((sum, state) => sum + rows.facts.times[state][place], 0);
        return rows.places().every((place, n, all) => n === 0 || wait(all[n - 1]) >= wait(place));";
    assert_eq!(browser.run(sorted), true);
    let seen =
        "return new Set([...schedviz.state.traces[0].rows.tiles.kept.keys()].map(key => key.split('/')[2])).size";
    let seen = browser.run(seen).as_u64().expect("a number");
    let tasks = browser.run("return schedviz.state.traces[0].head.tasks.length").as_u64().expect("a number");
    assert!(seen > 5 && seen < tasks, "{seen} of {tasks}");
    // A click on a row highlights its task, and a pin keeps it when others go.
    let click = "const pane = schedviz.panes[0], s = devicePixelRatio, places = pane.places();
        const canvas = pane.canvas.getBoundingClientRect();
        const at = { clientX: canvas.left + 500, clientY: canvas.top + places.bottom / s + 52, button: 0, pointerId: 1, bubbles: true };
        pane.canvas.setPointerCapture = () => {};
        pane.canvas.dispatchEvent(new PointerEvent('pointerdown', at));
        pane.canvas.dispatchEvent(new PointerEvent('pointerup', at));
        return schedviz.state.traces[0].head.tasks[schedviz.state.traces[0].rows.places()[0]].pid";
    let pid = browser.run(click);
    assert_eq!(browser.run("return schedviz.state.highlight.pid"), pid);
    browser.wait_for("document.querySelector('#panel .pin')");
    browser.run("document.querySelector('#panel .pin').click()");
    browser.run(
        "const rows = document.getElementById('rows'); rows.value = 'pinned'; rows.dispatchEvent(new Event('change'))",
    );
    count("=== 1");
    browser.wait_for(COMPLETE);
    browser.wait_for("location.hash.includes('q=pinned') && location.hash.includes('qp=')");
    // The colours under the row are those of its tile: running on a CPU, or queued.
    let drawn = "const pane = schedviz.panes[0], { bottom } = pane.places(), { left, right } = pane.scale();
        const data = pane.context.getImageData(left, bottom + 48, right - left, 1).data;
        const seen = new Set();
        for (let n = 0; n < data.length; n += 4) seen.add(data.slice(n, n + 3).join());
        return seen.size";
    assert!(browser.run(drawn).as_u64() > Some(4));
    ask_a_wait(&browser, &server, &path);
    assert_clean(&browser, &server);
}

/// Opens the panel on the longest wakeup latency: it names the waker, to which a click leads, and the key does so too.
fn ask_a_wait(browser: &Browser, server: &Server, path: &Path) {
    let latency =
        schedviz(&["latency", path.to_str().expect("a name"), "--json", "-q", "--tasks", "."]).success().text();
    let latency: Value = serde_json::from_str(&latency).expect("JSON");
    let worst = latency["worst"].as_array().expect("cases").iter();
    let mut woken = worst.filter(|case| case["waker"].as_i64().is_some_and(|waker| waker > 0));
    let case = woken.next().expect("a wakeup");
    let (pid, waker, start) = (&case["pid"], &case["waker"], case["start_in_trace_ns"].as_u64().expect("a time"));
    let end = start + case["duration_ns"].as_u64().expect("a length");
    let view = format!("d=light&t=task&h=0,{pid}&p=0,{},{end}&qw=0,{pid},{start},{end}", case["queued_on"]);
    open(browser, server, &view);
    let panel = "document.getElementById('panel')";
    let said = format!(
        "{panel}.textContent.includes('It was woken by {} {waker}, and queued on CPU {} behind')",
        case["waker_command"].as_str().expect("a name"),
        case["queued_on"]
    );
    browser.wait_for(&said);
    browser.run(&format!(
        "[...{panel}.querySelectorAll('.ref')].find(ref => ref.textContent.endsWith(' {waker}')).click()"
    ));
    browser.wait_for(&format!(
        "schedviz.state.highlight.pid === {waker} && !{panel}.textContent.includes('Why it waited')"
    ));
    open(browser, server, &view);
    browser.wait_for(&format!("schedviz.state.traces[0].task?.pid === {pid}"));
    browser.keys("[");
    browser.wait_for(&format!("schedviz.state.highlight.pid !== {pid} && schedviz.state.place.time <= {end}"));
}

/// The wait that `latency` lists as its longest, as the page explains it.
#[test]
fn a_wait_has_the_numbers_of_latency_and_of_the_exported_runs() {
    for path in ["hackbench.dat", "sleepers-6.12.dat", "affine.dat", "rt-5.10.dat"].map(fixture) {
        let name = path.to_str().expect("a name");
        let tables = scratch("view-wait");
        schedviz(&["export", name, "--csv", tables.to_str().expect("a name"), "-q"]).success();
        let (ran, waited) = (exported(&path, &tables, "on_cpu"), exported(&path, &tables, "wait"));
        let latency = schedviz(&["latency", name, "--json", "-q", "--tasks", ".", "--verbose"]).success().text();
        let latency: Value = serde_json::from_str(&latency).expect("JSON");
        let view = View::of(&[&path]);
        let head = view.head(0);
        let worst = latency["worst"].as_array().expect("cases");
        for case in worst.iter().filter(|case| case["measure"] != "run" && case["measure"] != "sleep").take(4) {
            let int = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{name}: {value}"));
            let (pid, start) = (case["pid"].as_i64().expect("a PID"), int(&case["start_in_trace_ns"]));
            let end = start + int(&case["duration_ns"]) + case["throttled_ns"].as_u64().unwrap_or(0);
            let found = view.json(&format!("t/0/wait.json?pid={pid}&from={start}&to={end}"));
            let text = format!("{name}: {case}\n{found}");
            assert_eq!(int(&found["wait"]["to"]), end, "{text}");
            let placed = &found["placed"];
            for key in ["queued_on", "ran_on", "idle_cpus"] {
                assert_eq!(placed[key], case[key], "{key}: {text}");
            }
            for (key, of_case) in [("waker", "waker"), ("behind", "behind"), ("after", "after")] {
                assert_eq!(placed[key].get("pid").unwrap_or(&Value::Null), &case[of_case], "{key}: {text}");
            }
            // The parts are those of the exported table, and the tasks that ran there are the exported runs.
            let parts = found["parts"].as_array().expect("parts");
            let (mut sum, mut meanwhile) = (0, BTreeMap::<i64, u64>::new());
            for part in parts {
                let (from, to, cpu) = (int(&part[0]), int(&part[1]), int(&part[2]));
                assert!(waited[&pid].contains(&(from, to, cpu)), "{part}: {text}");
                sum += to - from;
                for (other, runs) in &ran {
                    let there: Vec<_> = runs.iter().filter(|(.., on)| *on == cpu).copied().collect();
                    *meanwhile.entry(*other).or_default() += within(Some(&there), from, to);
                }
            }
            meanwhile.retain(|_, ns| *ns > 0);
            let listed = found["ran"]["tasks"].as_array().expect("tasks").iter();
            let listed: BTreeMap<i64, u64> =
                listed.map(|task| (task["pid"].as_i64().expect("a PID"), int(&task["ns"]))).collect();
            assert_eq!(listed, meanwhile, "{text}");
            let rest = int(&found["ran"]["idle"]) + int(&found["ran"]["unknown"]);
            assert_eq!(listed.values().sum::<u64>() + rest, sum, "{text}");
            let kinds: u64 = found["kinds"].as_array().expect("kinds").iter().take(4).map(int).sum();
            assert_eq!(kinds, sum, "{text}");
            check_cpus(&found, &head);
        }
        std::fs::remove_dir_all(&tables).expect("removed");
    }
}

/// A task that waited beside an idle CPU has one in the list; none is in it twice, or for longer than the wait.
fn check_cpus(found: &Value, head: &Value) {
    let listed = found["cpus"]["listed"].as_array().expect("CPUs");
    let int = |value: &Value| value.as_u64().expect("a number");
    let length = int(&found["wait"]["to"]) - int(&found["wait"]["from"]);
    let beside_idle = int(&found["kinds"][1]);
    let idle: u64 = listed.iter().filter(|cpu| cpu["allowed"] == true).map(|cpu| int(&cpu["idle"])).sum();
    // The kinds are those of the instants: an idle CPU that counts is idle for all of that time.
    assert!(idle >= beside_idle, "{found}");
    assert!(listed.iter().all(|cpu| int(&cpu["idle"]) + int(&cpu["shorter"]) <= length), "{found}");
    assert!(listed.len() <= head["cpus"].as_array().expect("CPUs").len(), "{found}");
}
