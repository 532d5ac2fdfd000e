//! The page of `schedviz view` asks for numbers while its user goes on: each answer is shown for its own question alone.

use crate::support::{fixture, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::webdriver::Browser;
use sched::Cpu;
use serde_json::Value;

const PANEL: &str = "document.getElementById('panel')";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";

/// A click on an element, as the mouse does it.
fn click(browser: &Browser, element: &str) {
    browser.run(&format!("{element}.click()"));
}

/// A way through `n` places that begins at 0 and goes from each place to every other exactly once.
fn tour(n: usize) -> Vec<usize> {
    let pairs = (0..n).flat_map(|from| (from + 1..n).flat_map(move |to| [from, to]));
    pairs.chain([0]).collect()
}

#[test]
fn a_tour_goes_from_each_place_to_every_other() {
    for n in 2..7 {
        let tour = tour(n);
        let mut steps: Vec<_> = tour.windows(2).map(|step| (step[0], step[1])).collect();
        steps.sort_unstable();
        let all = (0..n).flat_map(|from| (0..n).filter(move |to| *to != from).map(move |to| (from, to)));
        assert_eq!(steps, all.collect::<Vec<_>>());
    }
}

#[test]
fn every_list_opens_by_a_click_after_every_other() {
    let Some(browser) = Browser::start("questions") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light&t=lists");
    let lists = [
        ("Violation", "Violation: hackbench.dat"),
        ("Longest waits", "Longest waits: hackbench.dat"),
        ("Herds", "Herds: hackbench.dat"),
        ("Missed steals", "Missed steals: hackbench.dat"),
    ];
    let button =
        |title: &str| format!("[...{PANEL}.querySelectorAll('.choice button')].find(b => b.textContent === '{title}')");
    let table = |label: &str| format!("{PANEL}.querySelector('table[aria-label=\"{label}\"] tbody tr') !== null");
    for (title, label) in tour(lists.len()).into_iter().map(|list| lists[list]) {
        click(&browser, &button(title));
        browser.wait_for(&table(label));
        // The theme is changed behind the panel: it still follows.
        let dark = "document.documentElement.classList.contains('dark')";
        let before = browser.run(&format!("return {dark}"));
        browser.run("document.getElementById('theme').click()");
        browser.wait_for(&format!("{dark} !== {before}"));
        // A row leads to its own entry, and only that row is marked.
        let rows = format!("[...{PANEL}.querySelectorAll('table[aria-label=\"{label}\"] tbody tr')]");
        browser.wait_for(&format!("{rows}.every(row => !row.className.includes('current'))"));
        click(&browser, &format!("{rows}[1]"));
        if title == "Violation" {
            browser.wait_for("document.getElementById('story-back') !== null && schedviz.state.story !== null");
            browser.run("document.getElementById('story-back').click()");
        }
        browser.wait_for(&format!("{rows}.map(row => row.className.includes('current')).indexOf(true) === 1"));
        browser.keys(ESCAPE);
    }
    assert_clean(&browser, &server);
}

#[test]
fn every_tab_and_menu_follows_every_other() {
    let Some(browser) = Browser::start("tabs") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light&p=0,2,900000000&h=0,345");
    let tabs = [
        ("here", "CPU 2 at"),
        ("task", "hackbench 345"),
        ("window", "Window in view"),
        ("lists", "Missed steals"),
        ("legend", "Lanes"),
    ];
    let colors = ["task", "command", "node", "parent", "class"];
    for (nth, (tab, text)) in tour(tabs.len()).into_iter().map(|tab| tabs[tab]).enumerate() {
        browser.run(&format!("document.getElementById('tab-{tab}').click()"));
        browser.wait_for(&format!("schedviz.state.tab === '{tab}' && {PANEL}.textContent.includes('{text}')"));
        let way = colors[(nth + 1) % colors.len()];
        browser.run(&format!(
            "const menu = document.getElementById('color'); menu.focus(); menu.value = '{way}'; menu.dispatchEvent(new Event('change'))"
        ));
        browser.wait_for(&format!("schedviz.state.color === '{way}'"));
        // The keys of the page work while the menu has the focus.
        let span = "schedviz.state.span";
        let before = number(&browser, span);
        browser.keys("w");
        browser.wait_for(&format!("{span} < {before} && schedviz.state.color === '{way}'"));
        browser.keys("0");
    }
    browser.wait_for(COMPLETE);
    // The numbers of a window stand under its own bounds, whatever the window is by then.
    browser.run("document.getElementById('tab-window').click()");
    browser.wait_for(&format!("{PANEL}.textContent.includes('in violation')"));
    browser.run(
        "const real = globalThis.fetch; globalThis.held = [];
         globalThis.release = from => held.filter(one => one.from === from).forEach(one => one.go());
         globalThis.fetch = async (...request) => {
           const answer = await real(...request);
           if (String(request[0]).includes('window.json')) {
             const one = { from: new URL(request[0], location).searchParams.get('from'), done: false };
             await new Promise(go => { one.go = go; held.push(one); });
             setTimeout(() => { one.done = true; }, 50);
           }
           return answer;
         }",
    );
    // A question about the whole trace may still be on its way: each answer goes by its window.
    let held = |from: &str, what: &str| format!("held.some(one => one.from === '{from}' && {what})");
    let bounds = format!("{PANEL}.querySelectorAll('td.number')[0].textContent");
    let numbers =
        format!("{PANEL}.querySelector('table').textContent + {PANEL}.querySelectorAll('table')[1].textContent");
    let before = browser.run(&format!("const before = {numbers}; schedviz.show(2e8, 1e8); return before"));
    browser.wait_for(&held("200000000", "true"));
    // The numbers of the former window stay with its own bounds until others are there.
    assert_eq!(browser.run(&format!("return {numbers}")), before);
    browser.run("schedviz.show(4e8, 3e8)");
    browser.wait_for(&held("400000000", "true"));
    browser.run("release('400000000')");
    browser.wait_for(&format!("{bounds}.startsWith('0.400')"));
    let after = browser.run(&format!("return {numbers}"));
    // The late answer to the first question changes nothing.
    browser.run("release('200000000')");
    browser.wait_for(&held("200000000", "one.done"));
    assert_eq!(browser.run(&format!("return {numbers}")), after);
    let view = View::of(&[&fixture("hackbench.dat")]);
    view.head(0);
    let truth = view.json("t/0/window.json?from=400000000&to=700000000");
    let share = 100.0 * truth["violation"].as_f64().expect("ns") / 3e8;
    let share = if share < 10.0 { format!("{share:.2} %") } else { format!("{share:.1} %") };
    assert!(after.as_str().is_some_and(|text| text.contains(&format!("(movable waiters){share}"))), "{after} {share}");
    assert_clean(&browser, &server);
}

#[test]
fn a_search_finds_labels_counts_all_and_chooses_by_enter() {
    let path = fixture("hackbench.dat");
    let name = path.to_str().expect("a name");
    let view = View::of(&[&path]);
    view.head(0);
    let info: Value = serde_json::from_str(&schedviz(&["info", "-q", "--json", name]).success().text()).expect("JSON");
    let events = info["events"].as_array().expect("events");
    for event in ["sched_migrate_task", "sched_wakeup", "sched_switch"] {
        let of = |row: &&Value| row["name"].as_str().is_some_and(|name| name.contains(event));
        let truth: u64 = events.iter().filter(of).filter_map(|row| row["count"].as_u64()).sum();
        let found = view.json(&format!("t/0/search.json?q={event}"));
        assert_eq!((found["events_number"].as_u64(), &found["complete"]), (Some(truth), &Value::Bool(true)), "{event}");
        assert_eq!(found["events"].as_array().expect("events").len() as u64, truth.min(100));
    }
    assert_eq!(view.json("t/0/search.json?q=hackbench%20345")["tasks"], serde_json::json!([345]));
    assert_eq!(view.json("t/0/search.json?q=345")["tasks"], serde_json::json!([345]));
    drop(view);
    let Some(browser) = Browser::start("search") else { return };
    let server = Server::start(&[&path]);
    open(&browser, &server, "");
    let text = format!("{PANEL}.textContent");
    let search = |words: &str| {
        browser.run("const field = document.getElementById('search'); field.value = ''; field.focus()");
        browser.keys(words);
        browser.wait_for(&format!("{text}.includes('Found for “{words}”')"));
    };
    search("sched_migrate_task");
    browser.wait_for(&format!("{text}.includes('Events: 279, the first 100 of them')"));
    search("345");
    browser.wait_for(&format!("{text}.includes('hackbench 345') && !{text}.includes('Events')"));
    search("nonesuch");
    browser.wait_for(&format!("{text}.includes('No task and no event has this name or PID')"));
    // Enter, before the answer is there: the task is highlighted and the keys are those of the lanes.
    browser.run("const field = document.getElementById('search'); field.value = ''; field.focus()");
    browser.keys(&format!("hackbench 345{ENTER}"));
    browser.wait_for("schedviz.state.highlight?.pid === 345 && schedviz.state.tab === 'task'");
    browser.wait_for("document.activeElement.localName === 'canvas' && document.getElementById('search').value === ''");
    let span = number(&browser, "schedviz.state.span");
    browser.keys("w");
    browser.wait_for(&format!("schedviz.state.span < {span}"));
    // An event: the view goes there. The arrow leads into the list of finds.
    browser.run("document.getElementById('search').focus()");
    browser.keys(&format!("sched_process_fork{ENTER}"));
    browser.wait_for("schedviz.state.place !== null && document.activeElement.localName === 'canvas'");
    search("hackbench");
    browser.keys(DOWN);
    browser.wait_for("document.activeElement.localName === 'tr'");
    assert_clean(&browser, &server);
}

#[test]
fn a_filter_counts_its_tasks_and_the_back_button_returns_to_the_former_view() {
    let Some(browser) = Browser::start("past") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "");
    let filtered = "document.getElementById('filtered').textContent";
    let filter = |text: &str| {
        browser.run(&format!(
            "const field = document.getElementById('filter'); field.value = '{text}'; field.dispatchEvent(new Event('input'))"
        ));
    };
    let tasks = number(&browser, "schedviz.state.traces[0].head.tasks.length");
    filter("hackbench 345");
    browser.wait_for(&format!("{filtered} === '1 of {tasks} tasks'"));
    filter("nonesuch");
    browser.wait_for(&format!(
        "{filtered} === 'no task matches' && document.getElementById('filter').ariaInvalid === 'true'"
    ));
    filter("");
    browser.wait_for(&format!("{filtered} === ''"));
    // Views: the whole trace, a window, a tab, a list.
    browser.wait_for("location.hash.length > 1");
    let whole = number(&browser, "schedviz.state.span");
    let length = number(&browser, "history.length");
    let settled = |state: &str| {
        browser.wait_for(&format!("{state} && location.hash.slice(1) !== globalThis.before"));
        browser.run("globalThis.before = location.hash.slice(1)");
    };
    browser.run("globalThis.before = location.hash.slice(1); schedviz.show(1e8, 2e8)");
    settled("schedviz.state.span === 2e8");
    browser.run("document.getElementById('tab-lists').click()");
    settled("schedviz.state.tab === 'lists'");
    browser.run(&format!("[...{PANEL}.querySelectorAll('.choice button')][3].click()"));
    settled("schedviz.state.list === 'missed'");
    assert_eq!(number(&browser, "history.length"), length + 3.0);
    browser.run("history.back()");
    browser.wait_for("schedviz.state.list === 'episodes' && schedviz.state.tab === 'lists'");
    browser.run("history.back()");
    browser.wait_for("schedviz.state.tab === 'window' && schedviz.state.span === 2e8");
    browser.run("history.back()");
    browser.wait_for(&format!("schedviz.state.span === {whole}"));
    browser.run("history.forward()");
    browser.wait_for("schedviz.state.span === 2e8");
    browser.wait_for(COMPLETE);
    assert_eq!(number(&browser, "history.length"), length + 3.0);
    assert_clean(&browser, &server);
}

#[test]
fn lanes_that_are_not_loaded_do_not_look_idle_and_the_machine_comes_first() {
    let Some(browser) = Browser::start("absent") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    for (theme, missing) in [("light", [0xdf, 0xe4, 0xee]), ("dark", [0x2c, 0x33, 0x40])] {
        open(&browser, &server, &format!("t=legend&d={theme}"));
        // Tiles are held back; the order in which they were asked for is kept.
        browser.run(
            "const real = globalThis.fetch; globalThis.order = []; globalThis.held = [];
             globalThis.fetch = (...request) => {
               const path = String(request[0]);
               if (!/(lanes|sums|machine)\\//.test(path)) return real(...request);
               order.push(path);
               return new Promise((done, failed) => held.push(() => real(...request).then(done, failed)));
             };
             schedviz.state.traces[0].tiles.kept.clear(); schedviz.show(0, schedviz.state.span)",
        );
        browser.wait_for("order.length === 6");
        assert_eq!(
            browser.run(
                "return order.filter(path => path.includes('machine/')).length > 0 && order[0].includes('machine/')"
            ),
            true
        );
        browser.wait_for("/not loaded yet .*: [0-9]+ parts/.test(document.getElementById('status').textContent)");
        let pixel = |y: &str| {
            browser.run(&format!(
                "const pane = schedviz.panes[0], scale = pane.scale(), places = pane.places();
                 return [0.2, 0.5, 0.8].map(part => Array.from(pane.context.getImageData(
                   Math.round(scale.left + part * (scale.right - scale.left)), {y}, 1, 1).data.slice(0, 3)))"
            ))
        };
        let tinted = serde_json::json!([missing, missing, missing]);
        assert_eq!(pixel("places.lanes + pane.layout.rows[2].y + 3"), tinted, "{theme}");
        assert_eq!(pixel("places.top + 8"), tinted, "the rows of the machine, {theme}");

        browser.run("const go = () => { held.splice(0).forEach(one => one()); if (document.documentElement.dataset.complete !== 'true') setTimeout(go, 20); }; go()");
        browser.wait_for(COMPLETE);
        browser.wait_for("!document.getElementById('status').textContent.includes('not loaded')");
        assert!(pixel("places.lanes + pane.layout.rows[2].y + 3") != tinted);
    }
    assert_clean(&browser, &server);
}

/// The document of a command.
fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&schedviz(arguments).success().text()).expect("JSON")
}

/// The page has the number in several answers, each made by code of its own.
#[test]
fn the_violation_is_that_of_workcons_wherever_it_stands() {
    let mut differ = 0;
    for name in [
        "hackbench.dat",
        "hackbench-7.2.dat",
        "hotplug.dat",
        "balance.dat",
        "cgroup-cpuset.dat",
        "isolated.dat",
        "rebound-6.12.dat",
        "affine.dat",
        "throttled-6.12.dat",
        "unseen-wakeups-6.1.dat",
        "rt-5.10.dat",
        "mask.dat",
    ] {
        let path = fixture(name);
        let trace = path.to_str().expect("a name");
        let run = |waiters: &str| {
            document(&["workcons", "-q", "--json", "--waiters", waiters, trace])["runs"][0]["by_min_episode"][0].clone()
        };
        let (movable, all) = (run("movable"), run("all"));
        differ += u32::from(movable["ns"] != all["ns"]);
        let drawn = document(&["running-waiting", "-q", "--json", trace]);
        assert_eq!((&drawn["violated_ns"], &drawn["waiters"]), (&movable["ns"], &Value::from("movable")), "{name}");
        assert_eq!(drawn["panels"][0]["violated_ns"], movable["ns"], "{name}");
        let view = View::of(&[&path]);
        view.head(0);
        assert_eq!(view.json("t/0/window.json")["violation"], movable["ns"], "{name}");
        let list = view.json("t/0/list.json?kind=episodes");
        assert_eq!(list["waiters"], "movable");
        let rows = list["rows"].as_array().expect("rows");
        let length = |row: &Value| row["to"].as_u64().expect("an end") - row["from"].as_u64().expect("a start");
        if list["truncated"] == false {
            assert_eq!(rows.len() as u64, movable["episodes"].as_u64().expect("a number"), "{name}");
            assert_eq!(rows.iter().map(length).sum::<u64>(), movable["ns"].as_u64().expect("ns"), "{name}");
        }
    }
    assert!(differ >= 3, "{differ} traces have waiters that do not count");
}

/// The list of waits and the story of one are made by different passes.
#[test]
fn a_wait_that_migrations_continue_is_one_with_its_cpus() {
    let path = fixture("hackbench.dat");
    let trace = path.to_str().expect("a name");
    let view = View::of(&[&path]);
    view.head(0);
    let length = |row: &Value| row["to"].as_u64().expect("an end") - row["from"].as_u64().expect("a start");
    let waits = view.json("t/0/list.json?kind=waits");
    let rows = waits["rows"].as_array().expect("rows");
    let mut moved = 0;
    for row in rows.iter().take(60) {
        let pid = row["pid"].to_string();
        let longest = document(&["fairness", "-q", "--json", trace, "--pid", &pid, "--rows", "100"]);
        let starved = longest["starved"].as_array().expect("waits");
        let of = |wait: &&Value| wait["start_in_trace_ns"] == row["from"];
        let Some(truth) = starved.iter().find(of) else { continue };
        assert_eq!(truth["duration_ns"].as_u64(), Some(length(row)), "{row}");
        let mut cpus: Vec<u64> =
            truth["queues"].as_array().expect("queues").iter().filter_map(|q| q["cpu"].as_u64()).collect();
        let mut named: Vec<u64> = row["cpus"].as_array().expect("CPUs").iter().filter_map(Value::as_u64).collect();
        assert_eq!(row["cpus_number"].as_u64(), Some(named.len() as u64), "{row}");
        moved += u32::from(named.len() > 1);
        cpus.sort_unstable();
        named.sort_unstable();
        named.dedup();
        assert!(cpus.iter().all(|cpu| named.contains(cpu)), "{truth} {row}");
        // The task's own list has the same wait, as parts that follow one another.
        let task = view.json(&format!("t/0/task.json?pid={pid}"));
        let parts = task["waits"].as_array().expect("parts").iter().filter(|part| part[5] == row["from"]);
        let parts: Vec<&Value> = parts.collect();
        assert_eq!((&parts[0][0], &parts[parts.len() - 1][1]), (&row["from"], &row["to"]), "{row}");
        assert!(parts.windows(2).all(|two| two[0][1] == two[1][0]), "{row}");
        assert_eq!(parts.len() as u64, row["cpus_number"].as_u64().expect("a number"));
    }
    assert!(moved > 3, "{moved} waits went on across migrations");
    // The reported one: 162.12 ms, of which 159.98 ms on one CPU.
    let reported = rows.iter().find(|row| row["pid"] == 343).expect("a wait of the task");
    assert_eq!((length(reported) + 5_000) / 10_000, 16_212);
}

#[test]
fn an_exported_folder_is_as_large_as_its_trace_asks_for() {
    // Two hundred switches of one CPU within seconds: 76 MB once, as all levels of the index were written.
    let folder = scratch("view-size");
    let few = folder.join("few.dat");
    let mut events = testkit::Simulation::run(7, 1, 2_000).events;
    let nth =
        events.iter().enumerate().filter(|(_, event)| matches!(event.kind, sched::EventKind::Switch { .. })).nth(199);
    events.truncate(nth.expect("two hundred switches").0 + 1);
    std::fs::write(&few, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    for (trace, most) in [(few, 1.0), (fixture("marker.dat"), 1.0), (fixture("hackbench.dat"), 2.0)] {
        let page = folder.join(trace.file_stem().expect("a name"));
        let ran = schedviz(&["view", trace.to_str().expect("a name"), "--export", page.to_str().expect("a name")]);
        let stderr = ran.success().stderr;
        let size = stderr.split(" files, ").nth(1).and_then(|rest| rest.split(" MB").next());
        let size = size.and_then(|megabytes| megabytes.parse::<f64>().ok());
        assert!(size.is_some_and(|megabytes| megabytes < most), "{}: {stderr}", trace.display());
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn losses_and_contradictions_are_on_the_page_with_their_places() {
    use sched::{EventKind, Pid};
    use std::collections::BTreeMap;
    let folder = scratch("view-findings");
    let path = folder.join("doubtful.dat");
    // Some switches are left out, and some stretches of events are lost.
    let (events, _) = testkit::Simulation::run(5, 4, 6_000).lossy(9);
    let mut switches = 0;
    let mut is_kept = |event: &&sched::SchedEvent| {
        switches += u32::from(matches!(event.kind, EventKind::Switch { .. }));
        !matches!(event.kind, EventKind::Switch { .. }) || switches % 41 != 0
    };
    let events: Vec<sched::SchedEvent> = events.iter().filter(|event| is_kept(event)).copied().collect();
    std::fs::write(&path, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    // By hand: a switch away from another task than the one that the CPU was switched to last. Where a loss lies between,
    // or another finding has made the CPU unknown, it is none.
    let mut running: BTreeMap<Cpu, (Pid, bool)> = BTreeMap::new();
    let (mut certain, mut possible, mut losses) = (Vec::new(), Vec::new(), 0);
    for event in &events {
        match event.kind {
            EventKind::Lost { .. } => {
                running.values_mut().for_each(|(_, certain)| *certain = false);
                losses += 1;
            }
            EventKind::Switch { prev, next, .. } => {
                let is_other = |known: &(Pid, bool)| known.0 != prev.pid;
                if let Some((_, is_certain)) = running.insert(event.cpu, (next.pid, true)).filter(is_other) {
                    let place = serde_json::json!([event.ts.since(events[0].ts).0, event.cpu]);
                    certain.extend(is_certain.then(|| place.clone()));
                    possible.push(place);
                }
            }
            _ => {}
        }
    }
    assert!(certain.len() > 10 && losses > 3, "{} {losses}", certain.len());
    let view = View::of(&[&path]);
    view.head(0);
    let findings = view.json("t/0/findings.json")["findings"].as_array().expect("findings").clone();
    let of = |words: &str| {
        let found = findings.iter().find(|finding| finding["text"].as_str().is_some_and(|text| text.contains(words)));
        found.unwrap_or_else(|| panic!("{words} in {findings:?}")).clone()
    };
    let mismatch = of("switches away from another task than the one known to run");
    assert_eq!(mismatch["severity"], "incomplete");
    let places = mismatch["places"].as_array().expect("places");
    assert!(places.iter().all(|place| possible.contains(place)), "{possible:?} {places:?}");
    let found = certain.iter().filter(|place| places.contains(place)).count();
    assert!(10 * found >= 8 * certain.len(), "{found} of {certain:?} in {places:?}");
    let counted = mismatch["text"].as_str().and_then(|text| text.split(' ').next()?.parse().ok());
    assert_eq!(counted, Some(places.len()), "{mismatch}");
    let lost = of("places where events are missing");
    assert_eq!(lost["places"].as_array().expect("places").len(), losses);
    // The same numbers and words as in the documents of the commands.
    let report = document(&["running-waiting", "-q", "--json", path.to_str().expect("a name")]);
    for row in report["trust"].as_array().expect("findings") {
        let finding = of(row["message"].as_str().expect("words"));
        let count = row["count"].to_string();
        let text = finding["text"].as_str().expect("words").replace(',', "");
        assert!(text.starts_with(&format!("{count} ")) && finding["severity"] == row["severity"], "{row} {finding}");
    }
    drop(view);
    let Some(browser) = Browser::start("findings") else { return };
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light");
    let mark = "document.querySelector('.pane h2 .doubt')";
    browser.wait_for(&format!("!{mark}.hidden && {mark}.textContent.includes('in doubt')"));
    // The number carries the doubt, and both marks open the findings.
    let doubt = format!("{PANEL}.querySelector('td .doubt')");
    browser.wait_for(&format!("{doubt}?.closest('tr').textContent.includes('in violation')"));
    for button in [mark, &doubt] {
        browser.run("document.getElementById('tab-window').click()");
        browser.wait_for(&format!("{doubt} !== null"));
        browser.run(&format!("{button}.click()"));
        browser.wait_for(&format!(
            "schedviz.state.tab === 'findings' && {PANEL}.textContent.includes('numbers are in doubt')"
        ));
    }
    // A place leads to its instant, and has a triangle on the axis. The main findings stand before it once they are there.
    browser.run(&format!("{PANEL}.querySelector('h3.grave ~ .choice button').click()"));
    browser.wait_for("schedviz.state.place !== null");
    let (at, cpu) = (number(&browser, "schedviz.state.place.time"), number(&browser, "schedviz.state.place.cpu"));
    let is_place = |place: &Value| place[0].as_f64() == Some(at) && place[1].as_f64() == Some(cpu);
    assert!(
        findings.iter().any(|finding| finding["places"].as_array().is_some_and(|places| places.iter().any(is_place)))
    );
    browser.wait_for(COMPLETE);
    let triangle = format!(
        "(() => {{ const pane = schedviz.panes[0], scale = pane.scale(), x = scale.left + ({at} - scale.from) / scale.perPixel;
         return Array.from(pane.context.getImageData(Math.round(x) - 2, pane.places().top - 6, 1, 1).data.slice(0, 3)).join(); }})()"
    );
    browser.wait_for(&format!("['192,32,32', '92,96,102'].includes({triangle})"));
    assert_clean(&browser, &server);
    // A trace without doubts has no mark.
    let calm = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &calm, "t=findings");
    browser.wait_for(&format!("{PANEL}.textContent.includes('Worth knowing')"));
    assert_eq!(browser.run(&format!("return {mark}.hidden")), true);
    // The main findings are those of the command, and lead to their places and lists.
    assert_clean(&browser, &calm);
    let herded = fixture("forked-unknown.dat");
    let calm = Server::start(&[&herded]);
    open(&browser, &calm, "t=findings");
    let found = document(&["findings", "-q", "--json", herded.to_str().expect("a name")]);
    let herds = found["findings"].as_array().expect("findings").iter().find(|found| found["command"] == "migrations");
    let herds = herds.expect("herds");
    let sentence = herds["sentence"].as_str().expect("a sentence");
    browser.wait_for(&format!("{PANEL}.textContent.includes({sentence:?})"));
    let click = |words: &str| {
        browser.run(&format!(
            "[...{PANEL}.querySelectorAll('.choice button')].find((b) => b.textContent === {words:?}).click()"
        ));
    };
    let (at, cpu) = (&herds["observation"]["start_in_trace_ns"], &herds["observation"]["dest"]);
    let seconds = at.as_f64().expect("a time") / 1e9;
    click(&format!("{seconds:.6} s, CPU {cpu}"));
    browser.wait_for(&format!("schedviz.state.place?.cpu === {cpu} && Math.abs(schedviz.state.place.time - {at}) < 1"));
    click("all herds");
    browser.wait_for("schedviz.state.tab === 'lists' && schedviz.state.list === 'herds'");
    assert_clean(&browser, &calm);
}
