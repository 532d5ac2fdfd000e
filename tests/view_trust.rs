//! The page of `schedviz view` doubts what the other commands doubt, in their words, and counts what they count.

use crate::support::{Scratch, fixture, on_threads, schedviz, scratch};
use crate::view::{View, compare_lanes};
use crate::view_browser::{Server, assert_clean, number, open};
use crate::view_rows::recordings_to_view;
use crate::webdriver::Browser;
use sched::EventKind;
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::{Simulation, TraceBuilder};

const PANEL: &str = "document.getElementById('panel')";

/// The document of a command, whatever its verdict.
fn document(arguments: &[&str]) -> Value {
    serde_json::from_slice(&schedviz(arguments).stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}"))
}

/// A recording of switches alone, and the folder that holds it.
fn switches_alone(folder: &str) -> (PathBuf, Scratch) {
    let events = Simulation::run(7, 4, 4_000).events;
    let switches: Vec<_> = events.into_iter().filter(|e| matches!(e.kind, EventKind::Switch { .. })).collect();
    let folder = scratch(folder);
    let path = folder.join("switches.dat");
    std::fs::write(&path, TraceBuilder::default().events(&switches).build()).expect("written");
    (path, folder)
}

/// Compares the judgement on a window, its violation, its waiting time and its migrations with those of the commands.
fn compare(view: &View, path: &Path, window: Option<(u64, u64)>, filter: &str) {
    let name = path.to_str().expect("a name");
    let (mut asked, mut arguments) = (String::new(), vec![name.to_owned()]);
    if let Some((from, to)) = window {
        asked += &format!("from={from}&to={to}&");
        arguments.extend(["--min".to_owned(), format!("{from}ns"), "--max".to_owned(), format!("{to}ns")]);
    }
    let found = view.json(&format!("t/0/window.json?{asked}filter={filter}"));
    let with = |command: &[&str]| {
        let given = arguments.iter().map(String::as_str);
        document(&command.iter().copied().chain(given).collect::<Vec<_>>())
    };
    let all = ["workcons", "-q", "--json", "--max-violation", "100", "--max-loss", "1"];
    let tasks = ["--waiters", "application", "--tasks", filter];
    let judged = with(&[&all[..], if filter.is_empty() { &[] } else { &tasks[..] }].concat());
    let run = &judged["runs"][0];
    let what = format!("{name} {window:?} {filter}");
    assert_eq!(found["violation"], run["violation"]["ns"], "{what}");
    let trust = &found["trust"];
    assert_eq!(trust["unknown_percent"], run["coverage"]["unknown_percent"], "{what}");
    assert_eq!(trust["bounds"], run["violation"]["bounds"], "{what}");
    let is_untrusted = judged["verdict"]["verdict"] == "untrusted";
    match trust["why"].as_str() {
        // What is missing without a mark is counted in the whole trace, which the page has read: no command that reads a window knows it.
        Some(why) if window.is_some() && why.contains("missing without a mark") => {
            assert_eq!(view.json("t/0/window.json")["trust"]["why"], why, "{what}");
        }
        Some(why) => assert_eq!((is_untrusted, judged["verdict"]["reason"].as_str()), (true, Some(why)), "{what}"),
        // Beyond a share of loss a run is untrusted for that alone, which the page has as a number.
        None => {
            assert!(!is_untrusted || trust["unknown_percent"].as_f64() > Some(1.0), "{what}: {}", judged["verdict"]);
        }
    }
    let chosen = if filter.is_empty() { vec![] } else { vec!["--tasks", filter] };
    let counted = with(&[&["running-waiting", "-q", "--json"][..], &chosen].concat());
    let panel = &counted["panels"][0];
    assert_eq!((&found["waiting"], &found["running"]), (&panel["waiting_ns"], &panel["running_ns"]), "{what}");
}

#[test]
fn the_judgement_and_the_sums_of_a_window_are_those_of_the_commands() {
    let (switches, _folder) = switches_alone("view-trust");
    for path in [fixture("mask.dat"), fixture("sleepers-6.12.dat"), fixture("isolated.dat"), switches] {
        let view = View::of(&[&path]);
        let span = view.head(0)["span"].as_u64().expect("a span");
        for window in [None, Some((0, span / 3)), Some((span / 3, span / 2))] {
            compare(&view, &path, window, "");
        }
        let whole = view.json("t/0/findings.json")["trust"].clone();
        assert_eq!(whole, view.json("t/0/window.json")["trust"]);
    }
    // A filter chooses among the tasks, as the commands do by name.
    let path = fixture("hackbench.dat");
    let view = View::of(&[&path]);
    let head = view.head(0);
    let span = head["span"].as_u64().expect("a span");
    compare(&view, &path, Some((span / 4, span / 2)), "hackbench");
    let found = view.json("t/0/window.json?filter=cgroup%3A%2Fnone");
    assert_eq!((&found["chosen"], &found["running"], &found["waiting"]), (&0.into(), &0.into(), &0.into()));
    let refused = view.get(&format!("t/0/window.json?filter={}", "x".repeat(900)));
    assert_eq!(refused.status, 400);
}

/// Compares the facts about a trace, the numbers of its events and its losses with those of `info`.
fn compare_facts(view: &View, path: &Path) {
    let what = path.display();
    let (head, info) = (view.head(0), document(&["info", "-q", "--json", path.to_str().expect("a name")]));
    assert_eq!(head["start"].as_str(), Some(info["start_ns"].to_string().as_str()), "{what}");
    for (fact, printed) in [("span", "span_ns"), ("kernel", "kernel"), ("clock", "clock")] {
        assert_eq!(head[fact], info[printed], "{what}: {fact}");
    }
    let cpus = head["cpus"].as_array().expect("CPUs");
    let observed = cpus.iter().filter(|cpu| cpu["silent"] != true).count();
    assert_eq!(Some(observed as u64), info["cpus"]["observed"].as_u64(), "{what}: {}", info["cpus"]);
    let kinds = view.json("t/0/kinds.json")["kinds"].clone();
    let counts = |list: &Value| {
        let row = |kind: &Value| (kind["name"].to_string(), kind["count"].as_u64());
        let mut rows: Vec<_> = list.as_array().expect("kinds").iter().map(row).collect();
        rows.sort();
        rows
    };
    assert_eq!(counts(&kinds), counts(&info["events"]), "{what}");
    assert_eq!(view.json("t/0/findings.json")["trust"]["gaps"], info["lost"]["gaps"], "{what}: {}", info["lost"]);
}

/// Facts, lanes, judgement and sums, in all and in a window.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn the_page_of_each_recording_is_that_of_info_dat2graph_and_workcons() {
    let is_judged = |path: &PathBuf| schedviz(&["workcons", "-q", path.to_str().expect("UTF-8")]).code == Some(0);
    let paths: Vec<PathBuf> = recordings_to_view().into_iter().filter(is_judged).collect();
    assert!(paths.len() >= 25 || std::env::var_os("SCHEDVIZ_ONLY").is_some(), "{} recordings", paths.len());
    on_threads(&paths, |path| {
        let view = View::of(&[path]);
        let span = view.head(0)["span"].as_u64().expect("a span");
        compare_facts(&view, path);
        compare_lanes(&view, path);
        for window in [None, Some((span / 3, span / 4 * 3))] {
            compare(&view, path, window, "");
        }
    });
}

#[test]
fn cpus_without_events_have_lanes_and_no_waits() {
    let path = fixture("mask.dat");
    let view = View::of(&[&path]);
    let cpus = view.head(0)["cpus"].clone();
    let silent = |cpu: &Value| (cpu["cpu"].as_u64(), cpu["silent"] == true);
    let lanes: Vec<_> = cpus.as_array().expect("CPUs").iter().map(silent).collect();
    assert_eq!(lanes, (0..8).map(|cpu| (Some(cpu), cpu > 1)).collect::<Vec<_>>());
    let waits = view.json("t/0/list.json?kind=waits");
    let rows = waits["rows"].as_array().expect("rows");
    assert!(rows.len() > 100);
    let on_silent = |row: &&Value| row["cpus"].as_array().expect("CPUs").iter().any(|cpu| cpu.as_u64() > Some(1));
    assert_eq!(rows.iter().find(on_silent), None);
    // The tasks that a silent CPU holds are unknown at every instant.
    let at = view.json("t/0/at.json?at=200000000&cpu=3");
    assert_eq!((&at["running"], at["waiting"].as_array().map(Vec::len)), (&"unknown".into(), Some(0)));
    // By task: the waits of all tasks of the page are those of the whole machine.
    let head = view.head(0);
    let wait = |task: &Value| {
        let found = view.json(&format!("t/0/task.json?pid={}", task["pid"]));
        found["numbers"]["wait"].as_u64().expect("a time")
    };
    let sum: u64 = head["tasks"].as_array().expect("tasks").iter().map(wait).sum();
    let counted = document(&["running-waiting", "-q", "--json", path.to_str().expect("a name")]);
    assert_eq!(Some(sum), counted["panels"][0]["waiting_ns"].as_u64());
}

#[test]
fn findings_are_those_of_a_pass_each_of_them_once() {
    let folder = scratch("view-findings-once");
    let cut = folder.join("cut.dat");
    let bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("the fixture");
    std::fs::write(&cut, &bytes[..bytes.len() - 9_000]).expect("written");
    for path in [cut, fixture("mask.dat"), fixture("sleepers-6.12.dat")] {
        let view = View::of(&[&path]);
        view.head(0);
        let findings = view.json("t/0/findings.json")["findings"].clone();
        let run = document(&["workcons", "-q", "--json", path.to_str().expect("a name")])["runs"][0].clone();
        let shown = findings.as_array().expect("findings").iter().filter(|row| row["text"] != Value::Null);
        let mut shown: Vec<String> = shown.map(|row| row["text"].as_str().unwrap_or_default().to_owned()).collect();
        for row in run["trust"].as_array().expect("rows") {
            let line = format!("{} {}", row["count"], row["message"].as_str().expect("words"));
            let at = shown.iter().position(|text| text.replace(',', "").starts_with(&line.replace(',', "")));
            shown.remove(at.unwrap_or_else(|| panic!("{line} in {shown:?}")));
        }
        assert!(shown.iter().all(|text| text.starts_with("CPUs without any event")), "{shown:?}");
    }
}

#[test]
fn a_list_obeys_the_selection_and_the_filter() {
    let path = fixture("hackbench.dat");
    let view = View::of(&[&path]);
    let span = view.head(0)["span"].as_u64().expect("a span");
    let (from, to) = (span / 4, span / 2);
    let rows = |query: &str| view.json(&format!("t/0/list.json?{query}"))["rows"].as_array().expect("rows").clone();
    let sum = |rows: &[Value]| {
        rows.iter().map(|r| r["to"].as_u64().unwrap_or(0) - r["from"].as_u64().unwrap_or(0)).sum::<u64>()
    };
    // Few episodes: all are listed, so that their sum is that of the window.
    let part = format!("from={from}&to={to}");
    let window = view.json(&format!("t/0/window.json?{part}"));
    let episodes = view.json(&format!("t/0/list.json?kind=episodes&{part}"));
    assert_eq!(episodes["truncated"], false);
    assert_eq!(Some(sum(episodes["rows"].as_array().expect("rows"))), window["violation"].as_u64());
    // The waits of one task are those of its panel.
    let waits = rows("kind=waits");
    let pid = waits[0]["pid"].clone();
    let of_task = rows(&format!("kind=waits&{part}&filter={pid}"));
    assert!(of_task.len() > 2 && of_task.iter().all(|row| row["pid"] == pid));
    assert!(of_task.iter().all(|row| row["from"].as_u64() >= Some(from) && row["to"].as_u64() <= Some(to)));
    let task = view.json(&format!("t/0/task.json?pid={pid}&{part}"));
    assert_eq!(Some(sum(&of_task)), task["numbers"]["wait"].as_u64());
    // Missed steals of a part are those of `why`.
    let missed = view.json(&format!("t/0/list.json?kind=missed&{part}"));
    let name = path.to_str().expect("a name");
    let why = document(&["why", "-q", "--json", name, "--min", &format!("{from}ns"), "--max", &format!("{to}ns")]);
    let truth = &why["runs"][0]["missed"];
    assert_eq!((&missed["number"], &missed["idle_entries"]), (&truth["number"], &truth["idle_entries"]));
    assert!(missed["number"].as_u64() > Some(0));
}

#[test]
fn a_search_goes_on_behind_its_first_events() {
    let view = View::of(&[&fixture("hackbench.dat")]);
    view.head(0);
    let first = view.json("t/0/search.json?q=sched_migrate_task");
    let all = first["events_number"].as_u64().expect("a number");
    let (mut found, mut page) = (Vec::new(), first);
    for _ in 0..all / 100 + 2 {
        found.extend(page["events"].as_array().expect("events").clone());
        let next = &page["next"];
        if next.is_null() {
            break;
        }
        page = view.json(&format!("t/0/search.json?q=sched_migrate_task&from={}&skip={}", next["from"], next["skip"]));
    }
    assert!(all > 200, "{all} events");
    assert_eq!(found.len() as u64, all);
    assert!(found.windows(2).all(|two| two[0]["at"].as_u64() <= two[1]["at"].as_u64()));
    let mut texts: Vec<String> = found.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len() as u64, all, "no event is on two pages");
}

#[test]
fn events_that_were_not_recorded_are_no_zero_and_doubt_stands_beside_its_number() {
    let Some(browser) = Browser::start("trust") else { return };
    let (path, _folder) = switches_alone("view-trust-page");
    let server = Server::start(&[&path]);
    open(&browser, &server, "");
    let panel = format!("{PANEL}.textContent");
    browser.wait_for(&format!("{panel}.includes('sched_wakeup was not recorded: the waiting tasks are unknown')"));
    browser.wait_for(&format!("{panel}.includes('not recorded (needs sched_migrate_task)')"));
    browser.wait_for(&format!("{PANEL}.querySelector('.doubt')?.textContent === 'in doubt'"));
    browser.wait_for("document.querySelector('.pane .doubt').textContent.startsWith('⚠ in doubt')");
    let pid = number(&browser, "schedviz.state.traces[0].head.tasks[0].pid");
    open(&browser, &server, &format!("t=task&h=0,{pid}"));
    browser.wait_for(&format!("/migrations\\s*not recorded/.test({panel})"));
    browser.wait_for(&format!("/sleeping\\s*unknown/.test({panel}) && /wakeups\\s*not recorded/.test({panel})"));
    open(&browser, &server, "t=lists&l=herds");
    browser.wait_for(&format!(
        "{PANEL}.querySelector('.empty')?.textContent === 'not recorded (needs sched_migrate_task)'"
    ));
    open(&browser, &server, "t=findings");
    browser.wait_for(&format!("{panel}.includes('Not recorded: what depends on it is approximate or unknown')"));
    assert_clean(&browser, &server);
    // A CPU without events has a lane of its own.
    let server = Server::start(&[&fixture("mask.dat")]);
    open(&browser, &server, "p=0,3,200000000&t=here");
    browser.wait_for(&format!("{panel}.includes('CPU 3 has no events')"));
    browser.wait_for("schedviz.panes[0].layout.rows.map(row => Number(row.silent)).join('') === '00111111'");
    browser.wait_for("document.querySelector('.pane small').textContent.includes('8 CPUs, 6 without events')");
    assert_clean(&browser, &server);
}

#[test]
fn the_rows_of_the_machine_answer_and_an_ended_server_is_named() {
    let Some(browser) = Browser::start("machine-rows") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "");
    let box_of = "schedviz.panes[0].canvas.getBoundingClientRect()";
    let (x, top) = (number(&browser, &format!("{box_of}.x + 400")), number(&browser, &format!("{box_of}.y")));
    let click = |y: f64| browser.drag(&[(x as i64, (top + y) as i64)]);
    click(60.0);
    browser.wait_for("schedviz.state.place !== null && schedviz.state.tab === 'here'");
    browser.wait_for("/in violation: [0-9.]+ % of the time/.test(document.getElementById('tip').textContent)");
    click(91.0);
    browser.wait_for("schedviz.state.tab === 'lists' && schedviz.state.list === 'episodes'");
    click(106.0);
    browser.wait_for("schedviz.state.tab === 'window'");
    // A find leaves the zoom alone, and its pages go on.
    browser.keys("/");
    browser.keys("sched_migrate");
    browser.wait_for(&format!("{PANEL}.textContent.includes('the first 100 of them')"));
    let span = number(&browser, "schedviz.state.span");
    browser.run("document.querySelector('#panel tbody tr.link').click()");
    browser.wait_for("schedviz.state.place?.time > 0 && schedviz.state.selection === null");
    assert_eq!(number(&browser, "schedviz.state.span"), span);
    browser.run("[...document.querySelectorAll('#panel button')].find(b => b.textContent === 'next ›').click()");
    browser.wait_for(&format!("{PANEL}.textContent.includes('here 101 to 200')"));
    // A task of which nothing is in view is shown at its nearest run, at the same zoom. The rows of the search before name hackbench too.
    browser.run("schedviz.show(1e6, 2000)");
    browser.run("const search = document.getElementById('search'); search.value = 'hackbench'; search.dispatchEvent(new Event('input'))");
    browser.wait_for(&format!("{PANEL}.textContent.includes('Found for “hackbench”Tasks: 41')"));
    browser.run(
        "[...document.querySelectorAll('#panel tr.link')].find(row => row.textContent.startsWith('hackbench ')).click()",
    );
    browser.wait_for("schedviz.state.tab === 'task' && schedviz.state.from > 1e6");
    let task = "schedviz.state.traces[0].task";
    browser.wait_for(&format!("{task}?.runs.length + {task}?.waits.length > 0"));
    assert_eq!(number(&browser, "schedviz.state.span"), 2000.0);
    assert_clean(&browser, &server);
    drop(server);
    browser.run("schedviz.show(2e8, 1e8)");
    browser.wait_for("document.getElementById('gone').textContent.includes('schedviz view hackbench.dat')");
    browser.wait_for(&format!(
        "!document.body.textContent.includes('Failed to fetch') && {PANEL}.textContent.includes('schedviz has ended')"
    ));
}
