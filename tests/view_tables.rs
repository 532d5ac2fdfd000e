//! The tables of `schedviz view` against the commands that print the same numbers, for the same window and tasks.

use crate::support::{Effort, effort, fixture, on_threads, recordings_in_part, repeat, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, open};
use crate::view_events::printed;
use crate::view_modules::node;
use crate::webdriver::Browser;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A window in nanoseconds from the start of the trace; nothing for the whole.
type Window = Option<(u64, u64)>;

/// A filter, and the PIDs of the tasks that pass it.
type Filter = Option<(String, Vec<i64>)>;

/// The part of a trace that a table is about.
struct Part<'t> {
    view: &'t View,
    path: &'t Path,
    window: Window,
    filter: Filter,
}

impl Part<'_> {
    /// The window and the filter as an address has them.
    fn query(&self) -> String {
        let window = self.window.map_or(String::new(), |(from, to)| format!("&from={from}&to={to}"));
        window + &self.filter.as_ref().map_or(String::new(), |(filter, _)| format!("&filter={filter}"))
    }

    /// A list of the page.
    fn list(&self, kind: &str) -> Value {
        self.view.json(&format!("t/0/list.json?kind={kind}{}", self.query()))
    }

    /// The table of the page with all of its rows, or the reason for which there is none.
    fn table(&self, by: &str) -> Result<Value, String> {
        let answer = self.view.get(&format!("t/0/table.json?by={by}{}&take=32769", self.query()));
        let found: Value = serde_json::from_slice(&answer.body).expect("JSON");
        if answer.status == 200 { Ok(found) } else { Err(found["error"].as_str().unwrap_or_default().to_owned()) }
    }

    /// The report of a command; nothing where the command has none.
    fn printed(&self, command: &str, more: &[&str]) -> Option<Value> {
        let mut arguments: Vec<String> = [command, self.path.to_str()?, "--json", "-q"].map(str::to_owned).into();
        if let Some((from, to)) = self.window {
            arguments.extend(["--min".to_owned(), format!("{from}ns"), "--max".to_owned(), format!("{to}ns")]);
        }
        if let Some((_, pids)) = &self.filter {
            let pids: Vec<String> = pids.iter().map(i64::to_string).collect();
            arguments.extend(["--pid".to_owned(), pids.join(",")]);
        }
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        let ran = schedviz(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        (ran.code == Some(0)).then(|| serde_json::from_slice(&ran.stdout).expect("JSON"))
    }
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The key of a row of the page or of a member: its PID where rows are tasks, else its name.
fn key(by: &str, name: &str) -> String {
    let last = || name.rsplit(' ').next().unwrap_or(name).to_owned();
    if by == "task" { last() } else { name.to_owned() }
}

/// The sums of rows by their keys, without those of nothing.
fn sums<const N: usize>(rows: impl Iterator<Item = (String, [u64; N])>) -> BTreeMap<String, [u64; N]> {
    let mut all: BTreeMap<String, [u64; N]> = BTreeMap::new();
    for (key, row) in rows {
        all.entry(key).or_insert([0; N]).iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    all.retain(|_, row| row.iter().any(|sum| *sum > 0));
    all
}

/// The name of a row of `latency`.
fn latency_name(by: &str, row: &Value) -> String {
    let group = &row["group"];
    match (group["name"].as_str(), group["process"].as_i64()) {
        _ if row["pid"].is_i64() => row["pid"].to_string(),
        (Some(name), Some(leader)) => format!("{name} ({leader})"),
        (Some(name), None) => name.to_owned(),
        (None, Some(leader)) => leader.to_string(),
        _ if group.is_object() => format!("unknown {by}"),
        _ => row["command"].as_str().unwrap_or_default().to_owned(),
    }
}

const WAKEUP: [&str; 4] = ["wakeups", "p50", "p99", "max"];

/// The wakeup latencies of a report's or a row's measures.
fn wakeups(measures: &Value) -> [u64; 4] {
    let found = list(measures).iter().find(|measure| measure["measure"] == "wakeup");
    found.map_or([0; 4], |of| ["count", "p50_ns", "p99_ns", "max_ns"].map(|number| ns(&of[number])))
}

/// Compares what all tables of a part say of all tasks.
fn compare_all(part: &Part<'_>, table: &Value, about: &str) {
    let all = &table["all"];
    let latency = part.printed("latency", &[]).expect("latency");
    if latency["selection_unknown"].is_null() {
        assert_eq!(WAKEUP.map(|number| ns(&all[number])), wakeups(&latency["measures"]), "{about}");
        let kinds = ["held_back", "beside_idle", "beside_shorter", "alike"];
        let printed = kinds.map(|kind| latency["queued"][format!("{kind}_ns")].clone());
        assert_eq!(kinds.map(|kind| all[kind].clone()), printed, "{about}");
        if !printed[0].is_null() {
            assert_eq!(ns(&all["queued"]), printed.iter().map(ns).sum::<u64>(), "{about}");
        }
        let is_unmeasured = list(&latency["unmeasured"]).contains(&Value::from("wakeup"));
        assert_eq!(all["wakeups"].is_null(), is_unmeasured, "{about}");
    }
    match part.printed("migrations", &[]) {
        Some(migrations) => assert_eq!(all["migrations"], migrations["total"], "{about}"),
        None => assert!(all["migrations"].is_null(), "{about}: {all}"),
    }
    if let Some(why) = part.printed("why", &[]) {
        assert_eq!(all["missed"], why["runs"][0]["missed"]["number"], "{about}");
        assert_eq!(part.list("missed")["number"], all["missed"], "{about}");
    }
    let workcons = part.printed("workcons", &[]).expect("workcons");
    let episodes = part.list("episodes");
    if episodes["truncated"] == false {
        let sum: u64 = list(&episodes["rows"]).iter().map(|row| ns(&row["to"]) - ns(&row["from"])).sum();
        assert_eq!(sum, ns(&workcons["runs"][0]["violation"]["ns"]), "{about}: workcons");
    }
}

/// Compares a table by tasks or their groups, row by row.
fn compare_rows(part: &Part<'_>, by: &str, about: &str) {
    let table = part.table(by).unwrap_or_else(|why| panic!("{about}: {why}"));
    assert_eq!(list(&table["rows"]).len() as u64, ns(&table["number"]), "{about}");
    let rows = || list(&table["rows"]).iter().map(|row| (row, key(by, row["name"].as_str().expect("a name"))));
    if let Some(fairness) = part.printed("fairness", &["--by", by]) {
        let member =
            |row: &Value| (key(by, row["name"].as_str().expect("a name")), ["run_ns", "wait_ns"].map(|n| ns(&row[n])));
        let members = sums(list(&fairness["members"]).iter().map(member));
        let found = sums(rows().map(|(row, key)| (key, ["run", "queued"].map(|number| ns(&row[number])))));
        // Where tasks move between cgroups while they wait, `fairness` divides the wait; here it counts in the cgroup at its end, as its kinds do.
        let divides_waits = by == "cgroup" && members.keys().any(|name| name.contains(" or "));
        let runs = |rows: &BTreeMap<String, [u64; 2]>| sums(rows.iter().map(|(name, [run, _])| (name.clone(), [*run])));
        assert_eq!(runs(&found), runs(&members), "{about}: fairness --by {by}");
        let waits = |rows: &BTreeMap<String, [u64; 2]>| rows.values().map(|[_, wait]| *wait).sum::<u64>();
        assert_eq!(waits(&found), waits(&members), "{about}: fairness --by {by}");
        assert_eq!(found.get("kernel threads"), members.get("kernel threads"), "{about}: fairness --by {by}");
        assert!(divides_waits || found == members, "{about}: fairness --by {by}: {found:?} for {members:?}");
    }
    let latency = part.printed("latency", &["--by", by]).expect("latency");
    let printed = sums(list(&latency["rows"]).iter().map(|row| (latency_name(by, row), wakeups(&row["measures"]))));
    let found = sums(rows().map(|(row, key)| (key, WAKEUP.map(|number| ns(&row[number])))));
    if latency["selection_unknown"].is_null() {
        assert_eq!(found, printed, "{about}: latency --by {by}");
    }
    for number in ["run", "queued", "held_back", "beside_idle", "beside_shorter", "alike", "wakeups", "migrations"] {
        let sum: u64 = rows().map(|(row, _)| ns(&row[number])).sum();
        assert_eq!(sum, ns(&table["all"][number]), "{about}: {number}");
    }
    if by == "task" {
        compare_all(part, &table, about);
        compare_tasks(part, &table, about);
    }
}

/// Compares the migrations of each task, and the missed steals beside those that have most.
fn compare_tasks(part: &Part<'_>, table: &Value, about: &str) {
    let migrations = part.printed("migrations", &[]).unwrap_or_default();
    let of_pid = |row: &Value| (row["pid"].to_string(), [1]);
    let found = list(&table["rows"]).iter().map(|row| (row["pid"].to_string(), [ns(&row["migrations"])]));
    assert_eq!(sums(found), sums(list(&migrations["migrations"]).iter().map(of_pid)), "{about}");
    let mut rows: Vec<&Value> = list(&table["rows"]).iter().collect();
    // Those of threads bound to their CPU are no missed steals; `why --pid` counts them.
    rows.retain(|row| !row["name"].as_str().is_some_and(|name| name.contains('/')));
    rows.sort_by_key(|row| std::cmp::Reverse(ns(&row["missed"])));
    for row in rows.iter().take(2) {
        let alone = Part { filter: Some((String::new(), vec![row["pid"].as_i64().expect("a PID")])), ..*part };
        let Some(why) = alone.printed("why", &[]) else { continue };
        assert_eq!(row["missed"], why["runs"][0]["missed"]["number"], "{about}: {row}");
    }
}

/// Compares the tables by CPU and by cache.
fn compare_cpus(part: &Part<'_>, about: &str) {
    let table = part.table("cpu").unwrap_or_else(|why| panic!("{about}: {why}"));
    let rows = || list(&table["rows"]).iter();
    let of = |number: &str| sums(rows().map(|row| (row["cpu"].to_string(), [ns(&row[number])])));
    if part.filter.is_none() {
        let utilization = part.printed("utilization", &["--per-cpu"]).expect("utilization");
        let classes = ["app", "other", "kernel", "stopper", "rt", "rt_possible", "irq_in_tasks", "injected"];
        let busy = |cpu: &Value| classes.iter().map(|class| ns(&cpu[format!("{class}_ns")])).sum::<u64>();
        let printed = list(&utilization["cpus"]).iter().map(|cpu| (cpu["cpu"].to_string(), [busy(cpu)]));
        assert_eq!(of("run"), sums(printed), "{about}: utilization --per-cpu");
    }
    let migrations = part.printed("migrations", &[]).unwrap_or_default();
    let to = list(&migrations["migrations"]).iter().map(|row| (row["to_cpu"].to_string(), [1]));
    assert_eq!(of("migrations"), sums(to), "{about}: migrations");
    for (number, all) in [("missed", "missed"), ("queued", "queued"), ("wakeups", "wakeups")] {
        assert_eq!(rows().map(|row| ns(&row[number])).sum::<u64>(), ns(&table["all"][all]), "{about}: {number}");
    }
    if let Some(row) = rows().max_by_key(|row| ns(&row["wakeups"])) {
        let latency = part.printed("latency", &["--cpus", &row["cpu"].to_string()]).expect("latency");
        if latency["selection_unknown"].is_null() {
            assert_eq!(WAKEUP.map(|number| ns(&row[number])), wakeups(&latency["measures"]), "{about}: latency --cpus");
        }
    }
    match part.table("cache") {
        Ok(caches) => {
            let all = |table: &Value| {
                sums(
                    list(&table["rows"])
                        .iter()
                        .map(|row| (String::new(), ["run", "queued", "migrations", "missed"].map(|n| ns(&row[n])))),
                )
            };
            assert_eq!(all(&caches), all(&table), "{about}");
        }
        Err(why) => assert!(why.starts_with("the caches are unknown"), "{about}: {why}"),
    }
}

/// The windows and filters of a test: all of them once a day, else those of some tasks in a window, which has most of what can differ.
fn parts(window: Window, filter: Filter) -> Vec<(Window, Filter)> {
    let all = vec![(None, None), (window, None), (window, filter)];
    let few = match effort() {
        Effort::Everything => 0,
        Effort::Thorough => 1,
        Effort::Quick => 2,
    };
    all.into_iter().skip(few).collect()
}

/// Compares the tables of a trace: of the whole, of a window, and of some tasks there.
fn compare(path: &Path) {
    let view = View::of(&[path]);
    let head = view.head(0);
    let span = ns(&head["span"]);
    let window = Some((span / 3, span / 4 * 3));
    let (repeat, path) = (repeat("view_tables", path), path);
    // The command that ran longest, but for kernel threads.
    let tasks = list(&head["tasks"]);
    let name = |task: &Value| task["comm"].as_str().unwrap_or_default().to_lowercase();
    let ordinary =
        tasks.iter().filter(|task| task["class"] != "kernel" && name(task).chars().all(char::is_alphanumeric));
    let longest = ordinary.filter(|task| name(task).len() > 2).max_by_key(|task| ns(&task["run"])).map(name);
    let filter = longest.map(|filter| {
        let passing = tasks.iter().filter(|task| {
            name(task).contains(&filter) || task["pid"].as_u64().is_some_and(|pid| filter == format!("{pid}"))
        });
        let pids = passing.map(|task| task["pid"].as_i64().expect("a PID")).collect();
        (filter, pids)
    });
    for (window, filter) in parts(window, filter) {
        let part = Part { view: &view, path, window, filter };
        let about = format!("{repeat}, {window:?}, {:?}", part.filter.as_ref().map(|(filter, _)| filter));
        for by in ["task", "command", "process", "cgroup"] {
            compare_rows(&part, by, &about);
        }
        compare_cpus(&part, &about);
    }
}

#[test]
fn tables_equal_the_commands() {
    // The second has losses, the third throttled tasks; half of the last is missing.
    let names = ["hackbench.dat", "hackbench-v6.dat", "throttled-6.12.dat"];
    let number = if effort() >= Effort::Thorough { names.len() } else { 1 };
    names.iter().take(number).for_each(|name| compare(&fixture(name)));
    let folder = scratch("view-tables");
    let cut = folder.join("cut.dat");
    let bytes = std::fs::read(fixture("hackbench.dat")).expect("the fixture");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    compare(&cut);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// The pieces of a pass and the analyses beside them make the table of a pass with one thread.
#[test]
fn tables_are_the_same_in_pieces() {
    for name in ["hackbench-v6.dat", "throttled-6.12.dat"] {
        let path = fixture(name);
        let (alone, divided) = (View::with(&[&path], &["--threads", "1"]), View::in_pieces(&[&path], "700"));
        let span = ns(&alone.head(0)["span"]);
        divided.head(0);
        for by in ["task", "command", "process", "cpu"] {
            for part in [String::new(), format!("&from={}&to={}", span / 3, span / 4 * 3), "&filter=a".to_owned()] {
                let address = format!("t/0/table.json?by={by}&take=1000{part}");
                let table = alone.json(&address);
                assert!(!list(&table["rows"]).is_empty(), "{name}: {address}");
                assert_eq!(divided.json(&address), table, "{name}: {address}");
            }
        }
    }
}

#[test]
#[ignore = "takes long; .ci/run runs it"]
fn tables_equal_the_commands_on_recordings() {
    // The page refuses what workcons refuses: a recording without times, or without switches.
    let is_shown = |path: &&PathBuf| schedviz(&["workcons", "-q", path.to_str().expect("UTF-8")]).code == Some(0);
    let paths: Vec<PathBuf> = recordings_in_part(8).into_iter().filter(|path| is_shown(&path)).collect();
    on_threads(&paths, compare);
}

#[test]
fn tables_are_copied_as_csv_and_as_markdown_and_joined_by_name() {
    node(
        "view-node-tables",
        r#"
import { csvOf, markdownOf } from "./tabletext.js";
import { joinedRows, signed } from "./pairs.js";
import { duration, percent } from "./time.js";
const columns = [{ key: "run", head: "running", isLength: true }, { key: "migrations", head: "migrations", isLength: false }];
const row = (name, run, migrations) => ({ name, pid: null, cpu: null, group: null, run, migrations });
const commands = [{ prints: "running", line: "schedviz fairness 'a b.dat' --by task" }];
const answer = { by: "task", number: 2, skip: 0, chosen: null, missed_unknown: null, commands, rows: [row('a,"b" 1', 1500, null), row("c|d 2", 0, 7)], all: { run: 1500, migrations: 7 } };
assert.equal(csvOf(answer, columns), 'task,run_ns,migrations\n"a,""b"" 1",1500,\nc|d 2,0,7\nall,1500,7\n# running: schedviz fairness \'a b.dat\' --by task\n');
assert.equal(markdownOf(answer, columns), '| task | running | migrations |\n|---|---:|---:|\n| a,"b" 1 | 1.50 µs | – |\n| c\\|d 2 | 0 ns | 7 |\n| all | 1.50 µs | 7 |\n\n```\n# running\nschedviz fairness \'a b.dat\' --by task\n```\n');
assert.equal(signed(-1500, duration), "−1.50 µs");
assert.equal(signed(0.02, percent), "+2.00 %");
assert.equal(signed(-0.00001, (share) => (100 * share).toFixed(1)), "0.0", "what is shown as nothing has no sign");
// Processes of one name are one row; what cannot be summed is unknown then; a row that one trace lacks is nothing there.
const one = { ...answer, rows: [row("make (12)", 5, 1), row("make (13)", 6, null), row("cc (14)", 1, 2)] };
const two = { ...answer, rows: [row("make (77)", 2, 3), row("ld (78)", 9, 0)] };
assert.deepEqual(joinedRows("process", [one, two], "run", true), [
  { name: "make", values: [11, 2], difference: -9 }, { name: "ld", values: [0, 9], difference: 9 }, { name: "cc", values: [1, 0], difference: -1 },
]);
assert.deepEqual(joinedRows("process", [one, two], "run", false).find(({ name }) => name === "make"), { name: "make", values: [null, 2], difference: null });
assert.deepEqual(joinedRows("process", [one, two], "run", false).find(({ name }) => name === "ld"), { name: "ld", values: [null, 9], difference: null });
assert.deepEqual(joinedRows("process", [one, two], "migrations", true).find(({ name }) => name === "make"), { name: "make", values: [null, 3], difference: null });
assert.deepEqual(joinedRows("process", [one, { ...two, all: { run: 1, migrations: null } }], "migrations", true).find(({ name }) => name === "cc").values, [2, null]);
"#,
    );
}

#[test]
fn a_table_obeys_selection_and_filter_sorts_and_is_copied_with_its_commands() {
    let Some(browser) = Browser::start("tables") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light&t=tables&n=command&s=200000000,700000000");
    browser.wait_for(COMPLETE);
    let panel = "document.getElementById('panel')";
    let rows = format!("[...{panel}.querySelectorAll('.numbers tbody tr:not(.all)')]");
    let cell = |row: usize, cell: usize| format!("{rows}[{row}]?.cells[{cell}].textContent");
    browser.wait_for(&format!("{rows}.length === 6 && {} === 'hackbench'", cell(0, 0)));
    browser.wait_for(&format!("{panel}.textContent.includes('Selection: 0.200 s to 0.700 s')"));
    let view = View::of(&[&path]);
    view.head(0);
    let truth = view.json("t/0/table.json?by=command&from=200000000&to=700000000&sort=max");
    let names: Vec<&str> = list(&truth["rows"]).iter().map(|row| row["name"].as_str().expect("a name")).collect();
    // A click on a head sorts by it, another one turns it round.
    let head = |words: &str| {
        format!(
            "[...{panel}.querySelectorAll('.numbers th button')].find(one => one.textContent.startsWith('{words}'))"
        )
    };
    browser.run(&format!("{}.click()", head("max")));
    let shown = format!("JSON.stringify({rows}.map(row => row.cells[0].textContent))");
    browser.wait_for(&format!("{shown} === {:?}", serde_json::to_string(&names).expect("JSON")));
    browser.run(&format!("{}.click()", head("name")).replace("name", "commands"));
    browser.wait_for(&format!("{shown} !== {:?}", serde_json::to_string(&names).expect("JSON")));
    // A group becomes the filter, and the numbers are those of its tasks.
    browser.run(&format!("{rows}.find(row => row.cells[0].textContent === 'hackbench').click()"));
    browser.wait_for("schedviz.state.filter === 'command:=hackbench'");
    browser.wait_for(&format!(
        "{rows}.length === 1 && {panel}.textContent.includes('41 of 69 tasks that pass the filter')"
    ));
    // It is copied with the commands.
    browser.run("navigator.clipboard.writeText = async text => { globalThis.copied = text; }");
    browser.run(&format!(
        "[...{panel}.querySelectorAll('button')].find(one => one.textContent === 'Copy as CSV').click()"
    ));
    browser.wait_for("globalThis.copied !== undefined");
    let copied = browser.run("return copied").as_str().expect("a text").to_owned();
    let run =
        truth["rows"].as_array().expect("rows").iter().find(|row| row["name"] == "hackbench").expect("a row")["run"]
            .to_string();
    assert!(
        copied.starts_with("command,run_ns,queued_ns,") && copied.contains(&format!("\nhackbench,{run},")),
        "{copied}"
    );
    let line = copied.lines().find_map(|line| line.split_once("schedviz fairness ")).expect("a command").1;
    assert!(
        line.contains("--min 200000000ns --max 700000000ns --pid 318,319,") && line.ends_with("--by command --rows 1"),
        "{line}"
    );
    assert_clean(&browser, &server);
}

#[test]
fn two_traces_have_their_numbers_in_two_columns_with_the_difference() {
    let Some(browser) = Browser::start("pairs") else { return };
    let paths = [fixture("hackbench.dat"), fixture("hackbench-v6.dat")];
    let server = Server::start(&[&paths[0], &paths[1]]);
    open(&browser, &server, "d=light");
    let line = |name: &str| {
        format!(
            "[...document.querySelectorAll('table.pair tbody tr')].find(row => row.cells[0].textContent === '{name}')"
        )
    };
    browser.wait_for(&format!("{} !== undefined", line("migrations")));
    let cells =
        |name: &str| browser.run(&format!("return [...{}.cells].slice(1).map(cell => cell.textContent)", line(name)));
    assert_eq!(cells("migrations"), serde_json::json!(["279", "129", "−150"]));
    let violated = paths.each_ref().map(|path| {
        let printed = schedviz(&["workcons", "-q", "--json", path.to_str().expect("a name")]).success().text();
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        printed["runs"][0]["violation"]["percent"].as_f64().expect("a percentage")
    });
    let [a, b] = violated;
    assert_eq!(cells("in violation")[2], format!("{}{:.1} points", if b > a { "+" } else { "−" }, (b - a).abs()));
    browser.run("document.getElementById('tab-tables').click(); schedviz.change({ table: 'command' })");
    let row = "[...document.querySelectorAll('#panel .sorted tbody tr')].find(row => row.cells[0].textContent === 'hackbench')";
    browser.wait_for(&format!("{row}?.cells[3].textContent.startsWith('+')"));
    assert_clean(&browser, &server);
}

#[test]
fn traces_of_one_file_name_are_called_by_their_folders() {
    let folder = scratch("view-one-name");
    let paths = ["before/run.dat", "after/run.dat", "other.dat"].map(|name| folder.join(name));
    for path in &paths {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::copy(fixture("hackbench-v6.dat"), path).expect("copied");
    }
    let view = View::of(&[&paths[0], &paths[1], &paths[2]]);
    let names = [0, 1, 2].map(|trace| view.head(trace)["name"].clone());
    assert_eq!(names, ["before/run.dat", "after/run.dat", "other.dat"]);
    // One file given twice has nothing that tells its traces apart.
    let view = View::of(&[&paths[0], &paths[0]]);
    assert_eq!(view.head(1)["name"], "run.dat");
}

#[test]
fn two_traces_are_aligned_by_an_event_and_by_hand() {
    let Some(browser) = Browser::start("aligned") else { return };
    let paths = [fixture("hackbench.dat"), fixture("hackbench-v6.dat")];
    let server = Server::start(&[&paths[0], &paths[1]]);
    open(&browser, &server, "s=200000000,300000000&v=sched_process_exit");
    // The first event in each trace, as `list` prints it, in ns of the trace's time.
    let times = paths.each_ref().map(|path| {
        let exit = printed(path, &[]).into_iter().find(|event| event.3 == "sched_process_exit");
        i64::try_from(exit.expect("an exit").0).expect("a time")
    });
    // The next frame moves the traces.
    let moved =
        "schedviz.state.traces.every((trace, n) => trace.zero === (schedviz.state.aligned?.[n] ?? trace.head.command))";
    let zeros = || {
        browser.wait_for(moved);
        let zeros = browser.run("return schedviz.state.traces.map(trace => trace.zero)");
        [0, 1].map(|n| zeros[n].as_i64().expect("a place"))
    };
    let [first, usual] = zeros();
    let shown = "document.querySelector('.difference select').selectedOptions[0].textContent";
    let choose = |way: &str| {
        let options = format!(
            "[...document.querySelectorAll('.difference option')].map(option => option.value).includes('{way}')"
        );
        browser.wait_for(&options);
        browser.run(&format!(
            "const menu = document.querySelector('.difference select'); menu.value = '{way}'; menu.dispatchEvent(new Event('change'))"
        ));
    };
    choose("event");
    browser.wait_for(&format!("schedviz.state.aligned !== null && {shown} === 'the first sched_process_exit'"));
    // The second moves along the first, whose selection stays where it was.
    assert_eq!(zeros(), [first, first + times[1] - times[0]]);
    assert_eq!(browser.run("return schedviz.state.selection"), serde_json::json!([200_000_000, 300_000_000]));
    choose("start");
    browser.wait_for(&format!(
        "{shown} === 'the starts of the traces' && schedviz.state.aligned?.[0] === schedviz.state.aligned?.[1]"
    ));
    assert_eq!(zeros(), [first, first]);
    choose("command");
    browser.wait_for("schedviz.state.aligned === null");
    assert_eq!(zeros(), [first, usual]);
    browser.run("schedviz.change({ markers: { a: 150000000, b: 120000000 } })");
    choose("markers");
    browser.wait_for(&format!("{shown} === 'A of the first, B of the second' && schedviz.state.aligned !== null"));
    assert_eq!(zeros(), [first, usual - 30_000_000]);
    assert_eq!(browser.run("return schedviz.state.markers.b"), 150_000_000);
    browser.run("document.querySelectorAll('.difference button')[1].click()");
    browser.wait_for(&format!("{shown}.startsWith('by hand: ') && {shown}.endsWith(' later')"));
    let [_, moved] = zeros();
    assert!(moved < usual - 30_000_000, "{moved}");
    // Two moves within a frame are two.
    browser.run("const button = document.querySelectorAll('.difference button')[1]; button.click(); button.click()");
    let step = usual - 30_000_000 - moved;
    browser.wait_for(&format!("Math.abs(schedviz.state.traces[1].zero - {}) <= 2", moved - 2 * step));
    let [_, moved] = zeros();
    // What one of the traces does not have is said, and nothing moves.
    browser.run("schedviz.change({ events: 'sched_process_fork child_pid=1' })");
    browser.wait_for(
        "[...document.querySelectorAll('.difference option')].some(option => option.textContent.includes('child_pid'))",
    );
    choose("event");
    browser.wait_for("document.querySelector('.difference .fault').textContent.includes('has no event')");
    assert_eq!(zeros(), [first, moved]);
    assert_clean(&browser, &server);
}

#[test]
fn the_measures_of_two_traces_are_those_of_compare() {
    let paths = [fixture("hackbench.dat"), fixture("hackbench-v6.dat")];
    let [base, new] = paths.each_ref().map(|path| path.to_str().expect("a name"));
    let view = View::of(&[&paths[0], &paths[1]]);
    (0..2).for_each(|trace| drop(view.head(trace)));
    for window in [None, Some((200_000_000, 500_000_000))] {
        let mut arguments: Vec<String> =
            ["compare", "-q", "--json", "--base", base, "--new", new].map(str::to_owned).into();
        let mut query = String::new();
        if let Some((from, to)) = window {
            arguments.extend(["--min".to_owned(), format!("{from}ns"), "--max".to_owned(), format!("{to}ns")]);
            query = format!("?from={from}&to={to}");
        }
        let ran = schedviz(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let printed: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        for (trace, group) in list(&printed["groups"]).iter().enumerate() {
            let found = view.json(&format!("t/{trace}/measures.json{query}"));
            let values = list(&group["runs"][0]["values"]);
            let mut compared = 0;
            // The queued time on the critical path, with its kinds, is among them.
            let of_path = list(&found["measures"]).iter().filter(|measure| {
                measure["key"].as_str().is_some_and(|key| key.starts_with("path-")) && measure["value"].is_number()
            });
            assert_eq!(of_path.count(), 5, "{window:?}, {trace}: {found}");
            for measure in list(&found["measures"]) {
                let Some(at) = list(&printed["metrics"]).iter().position(|metric| metric["key"] == measure["key"])
                else {
                    assert!(measure["value"].is_null(), "{measure}");
                    continue;
                };
                assert_eq!(measure["value"], values[at], "{window:?}: {measure}");
                assert_eq!(measure["name"], printed["metrics"][at]["name"]);
                compared += usize::from(measure["value"].is_number());
            }
            assert!(compared > 20, "{found}");
        }
    }
}
