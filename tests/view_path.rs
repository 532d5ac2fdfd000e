//! The critical path in `schedviz view`: its row and its numbers against those of `path`, and in a browser.

use crate::support::{Effort, csv, effort, fixture, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, open};
use crate::view_rows::recordings_to_view;
use crate::webdriver::Browser;
use serde_json::Value;
use std::path::Path;

/// The answer of `path` in a window, in nanoseconds from the start of the trace; or the reason for which there is none.
fn printed(trace: &Path, window: Option<(u64, u64)>) -> Result<Value, String> {
    let ends = window.map(|(from, to)| [format!("--min={from}ns"), format!("--max={to}ns")]);
    printed_with(trace, &ends.iter().flatten().map(String::as_str).collect::<Vec<_>>())
}

/// The answer of `path` with these arguments.
fn printed_with(trace: &Path, more: &[&str]) -> Result<Value, String> {
    let ran = schedviz(&[&["path", trace.to_str().expect("a name"), "--json", "-q"], more].concat());
    if ran.code == Some(0) { Ok(serde_json::from_str(&ran.text()).expect("JSON")) } else { Err(ran.stderr) }
}

/// Compares the numbers of the page with those that `path` prints.
fn compare(found: &Value, printed: Result<Value, String>, about: &str) {
    let printed = match printed {
        Ok(printed) => printed,
        Err(why) => {
            let none = found["none"].as_str().unwrap_or_else(|| panic!("{about}: {found}"));
            assert!(why.contains(none), "{about}: {none:?} is not {why:?}");
            return;
        }
    };
    for key in ["task", "ends_with_exit", "times", "segments", "handovers", "gaps", "is_untrusted"] {
        assert_eq!(found[key], printed[key], "{about}: {key}");
    }
    let time = |key: &str| printed[key].as_i64().expect("a time");
    assert_eq!(found["length"].as_i64(), Some(time("to_ns") - time("from_ns")), "{about}");
    let (found, printed) = [&found["tasks"], &printed["tasks"]].map(|tasks| tasks.as_array().expect("tasks")).into();
    assert_eq!(found[..], printed[..found.len()], "{about}");
}

/// Compares the sums of the row with the times of the whole path, in few columns and in many.
fn compare_row(view: &View, span: u64, times: &Value, about: &str) {
    let time = |key: &str| times[key].as_u64().unwrap_or(0);
    for columns in [1, 300, 8192] {
        let row = view.json(&format!("t/0/path.json?from=0&to={span}&columns={columns}"));
        let names: Vec<&str> =
            row["states"].as_array().expect("states").iter().map(|name| name.as_str().expect("a name")).collect();
        let parts = row["parts"].as_array().expect("parts");
        assert!(!parts.is_empty() && parts.len() <= 2 * columns + 5, "{about}: {} parts", parts.len());
        let sum = |is: &dyn Fn(&str) -> bool| -> u64 {
            let all = parts.iter().flat_map(|part| part[5].as_array().expect("times"));
            let these = all.filter(|time| is(names[time[0].as_u64().expect("a place") as usize]));
            these.map(|time| time[1].as_u64().expect("a time")).sum()
        };
        for (name, key) in [
            ("running", "running_ns"),
            ("wakeup in progress", "waking_ns"),
            ("sleeping until interrupt", "sleeping_ns"),
            ("unknown", "unknown_ns"),
            ("throttled by cpu.max", "throttled_ns"),
        ] {
            assert_eq!(sum(&|other| other == name), time(key), "{about}: {name} in {columns} columns");
        }
        assert_eq!(sum(&|name| name.starts_with("queued")), time("queued_ns"), "{about}: {columns} columns");
    }
}

#[test]
fn the_critical_path_is_that_of_path() {
    // The last but one has losses, and half of the last is missing.
    let folder = scratch("view-path");
    let cut = folder.join("cut.dat");
    let bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("the fixture");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let names = ["hackbench.dat", "throttled-6.12.dat", "unseen-wakeups-6.1.dat"];
    for path in names.map(fixture).into_iter().chain([cut]) {
        let name = path.to_str().expect("a name");
        let view = View::of(&[&path]);
        let span = view.head(0)["span"].as_u64().expect("a span");
        let whole = view.json("t/0/path-numbers.json");
        let truth = printed(&path, None);
        if let Ok(truth) = &truth {
            compare_row(&view, span, &truth["times"], name);
        }
        compare(&whole, truth, name);
        assert_eq!(view.json(&format!("t/0/path-numbers.json?from=0&to={span}")), whole, "{name}");
        let window = (span / 3, span / 4 * 3);
        let found = view.json(&format!("t/0/path-numbers.json?from={}&to={}", window.0, window.1));
        compare(&found, printed(&path, Some(window)), &format!("{name}: {window:?}"));
        if let Some(command) = found["command"].as_str() {
            assert!(command.contains(&format!("--min {}ns --max {}ns", window.0, window.1)), "{command}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Tasks of a trace that ran longest.
fn longest(head: &Value, number: usize) -> Vec<i64> {
    let int = |value: &Value| value.as_i64().expect("a number");
    let mut tasks: Vec<(i64, i64)> =
        head["tasks"].as_array().expect("tasks").iter().map(|task| (-int(&task["run"]), int(&task["pid"]))).collect();
    tasks.sort_unstable();
    tasks.into_iter().take(number).map(|(_, pid)| pid).collect()
}

/// Compares the paths of tasks, to their exits and back from instants, with those of `path --pid`.
fn compare_tasks(path: &Path, number: usize) {
    let name = path.to_str().expect("a name");
    let view = View::of(&[path]);
    let head = view.head(0);
    let span = head["span"].as_u64().expect("a span");
    for (nth, pid) in longest(&head, number).into_iter().enumerate() {
        let of = format!("--pid={pid}");
        let truth = printed_with(path, &[&of]);
        let (about, whole) = (format!("{name}: {pid}"), view.json(&format!("t/0/path-numbers.json?of={pid}")));
        if let Ok(truth) = &truth {
            let tasks: Vec<&Value> =
                truth["tasks"].as_array().expect("tasks").iter().map(|share| &share["pid"]).collect();
            let on_path = view.json(&format!("t/0/path-tasks.json?of={pid}"));
            assert_eq!(on_path["tasks"].as_array().expect("tasks").iter().collect::<Vec<_>>(), tasks, "{about}");
            assert_eq!(on_path["number"], tasks.len(), "{about}");
        }
        compare(&whole, truth, &about);
        assert!(whole["command"].as_str().is_some_and(|command| command.contains(&format!("--pid {pid}"))), "{whole}");
        // Back from an instant, and a window whose end lies behind that.
        let at = span / 7 * (2 + nth as u64);
        let back = view.json(&format!("t/0/path-numbers.json?of={pid}&at={at}"));
        compare(&back, printed_with(path, &[&of, &format!("--max={at}ns")]), &format!("{about}, back from {at}"));
        let window = format!("t/0/path-numbers.json?of={pid}&at={at}&from={}&to={span}", span / 9);
        let ends = [format!("--min={}ns", span / 9), format!("--max={at}ns")];
        compare(&view.json(&window), printed_with(path, &[&of, &ends[0], &ends[1]]), &format!("{about}: {window}"));
        // The row ends at the instant, and has the times of the path.
        let row = view.json(&format!("t/0/path.json?of={pid}&at={at}&columns=50"));
        let parts = row["parts"].as_array().expect("parts");
        assert!(parts.last().is_none_or(|part| part[1].as_u64() <= Some(at)), "{about}: {row}");
        let sum: u64 =
            parts.iter().map(|part| part[1].as_u64().expect("a time") - part[0].as_u64().expect("a time")).sum();
        assert_eq!(Some(sum), back["length"].as_u64(), "{about}");
    }
}

#[test]
fn the_path_of_a_task_and_back_from_an_instant_is_that_of_path_pid() {
    for name in ["hackbench.dat", "unseen-wakeups-6.1.dat"] {
        compare_tasks(&fixture(name), 3);
    }
    let view = View::of(&[&fixture("hackbench.dat")]);
    view.head(0);
    assert_eq!(view.get("t/0/path.json?of=999999&columns=9").status, 400);
}

/// Takes a minute: each path is searched for by the page and by the command.
#[test]
fn the_paths_of_all_recordings_are_those_of_path() {
    if effort() == Effort::Quick {
        return;
    }
    for path in recordings_to_view() {
        let name = path.to_str().expect("a name");
        {
            let view = View::of(&[&path]);
            view.head(0);
            let (whole, truth) = (view.json("t/0/path-numbers.json"), printed(&path, None));
            if let Ok(truth) = &truth {
                compare_row(&view, view.head(0)["span"].as_u64().expect("a span"), &truth["times"], name);
            }
            compare(&whole, truth, name);
        }
        compare_tasks(&path, 1);
    }
}

/// The parts of the exported waits of a task that lie on the path sum to its queued time there.
#[test]
fn the_parts_of_waits_on_the_path_are_its_queued_time() {
    for name in ["hackbench.dat", "sleepers-6.12.dat"] {
        let path = fixture(name);
        let folder = scratch("view-path-share");
        let to = folder.to_str().expect("a name");
        schedviz(&["export", path.to_str().expect("a name"), "--csv", to, "--tables", "run,wait", "-q"]).success();
        let table = |name: &str| csv(&std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect("a table"));
        let int = |text: &str| text.parse::<i64>().unwrap_or_else(|e| panic!("{text}: {e}"));
        let (start, waits) = (int(&table("run")[0]["start_ns"]), table("wait"));
        let view = View::of(&[&path]);
        let head = view.head(0);
        let of = longest(&head, 1)[0];
        for of in [None, Some(of)] {
            let chosen = of.map(|of| format!("--pid={of}"));
            let truth = printed_with(&path, &chosen.iter().map(String::as_str).collect::<Vec<_>>()).expect("a path");
            let mut tasks: Vec<(i64, i64)> = truth["tasks"]
                .as_array()
                .expect("tasks")
                .iter()
                .map(|share| (share["queued_ns"].as_i64().expect("a time"), share["pid"].as_i64().expect("a PID")))
                .collect();
            tasks.sort_unstable_by(|a, b| b.cmp(a));
            for (queued, pid) in tasks.into_iter().take(3) {
                let mut sum = 0;
                for row in waits.iter().filter(|row| int(&row["pid"]) == pid) {
                    let from = int(&row["ts_ns"]) - start;
                    let to = from + int(&row["dur_ns"]);
                    let of = of.map_or(String::new(), |of| format!("&of={of}"));
                    let share = view.json(&format!("t/0/path-share.json?pid={pid}&from={from}&to={to}{of}"));
                    let part = share["queued"].as_i64().expect("a time");
                    assert!(part + share["unknown"].as_i64().expect("a time") <= to - from, "{name}: {row:?}: {share}");
                    sum += part;
                }
                assert_eq!(sum, queued, "{name}: {pid} on the path of {of:?}");
            }
        }
    }
}

#[test]
fn a_trace_without_an_application_has_no_path_and_says_why() {
    let path = fixture("mask.dat");
    let view = View::of(&[&path]);
    view.head(0);
    let [row, numbers] = ["t/0/path.json?columns=100", "t/0/path-numbers.json"].map(|place| view.json(place));
    assert_eq!(row, numbers);
    assert!(row["none"].as_str().is_some_and(|why| why.starts_with("the traced command is not in the trace")), "{row}");
    compare(&row, printed(&path, None), "mask.dat");
    assert_eq!(view.get("t/0/path.json?columns=0").status, 400);
}

#[test]
fn a_click_on_the_row_chooses_the_task_that_the_path_is_with() {
    let Some(browser) = Browser::start("path") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light&q=application");
    browser.wait_for("schedviz.state.traces[0].rows.path.answer?.parts.length > 50");
    browser.wait_for(COMPLETE);
    let click = "const pane = schedviz.panes[0], s = devicePixelRatio, { rows } = pane.trace;
        const [x, y] = [500, pane.places().bottom / s + 32], canvas = pane.canvas.getBoundingClientRect();
        const { time, path, task } = pane.hit(x, y);
        const at = { clientX: canvas.left + x, clientY: canvas.top + y, button: 0, pointerId: 1, bubbles: true };
        pane.canvas.setPointerCapture = () => {};
        pane.canvas.dispatchEvent(new PointerEvent('pointerdown', at));
        pane.canvas.dispatchEvent(new PointerEvent('pointerup', at));
        const part = rows.path.answer.parts.find(([from, to]) => from <= time && time < to);
        return [path, task, part[2], part[4]];";
    let hit = browser.run(click);
    assert_eq!([&hit[0], &hit[1], &hit[3]], [&Value::from(true), &Value::from(-1), &Value::from(1)], "{hit}");
    assert_eq!(browser.run("return schedviz.state.highlight.pid"), hit[2]);
    browser.wait_for("document.querySelector('#panel h2')?.textContent.startsWith('CPU')");
    // The panel has the shares with the command line that prints them.
    browser.run("document.getElementById('tab-window').click()");
    browser.wait_for(
        "[...document.querySelectorAll('#panel code')].some(code => code.textContent.startsWith('schedviz path'))",
    );
    let share = "return [...document.querySelectorAll('#panel tr')].find(row => row.textContent.startsWith('wakeup in progress')).textContent";
    let share = browser.run(share);
    assert!(share.as_str().is_some_and(|text| text.contains("13.9") && text.contains("159 ms")), "{share}");
    assert_clean(&browser, &server);
}
