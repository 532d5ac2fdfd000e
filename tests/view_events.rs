//! The list of events of `schedviz view` against `list`, page by page in both directions, its ticks, and the list in a browser.

use crate::support::{fixture, schedviz, scratch};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::webdriver::Browser;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// An event: its time in nanoseconds from the start of the trace, its CPU, its task, its name and its text.
pub(crate) type Event = (u64, u64, i64, String, String);

/// The events that `list` prints.
pub(crate) fn printed(trace: &Path, more: &[&str]) -> Vec<Event> {
    let name = trace.to_str().expect("a name");
    let info: Value = serde_json::from_str(&schedviz(&["info", "-q", "--json", name]).success().text()).expect("JSON");
    let start = info["start_ns"].as_u64().or(info["from_ns"].as_u64());
    let text = schedviz(&[&["list", "-q", "--latency-format=never", name], more].concat()).success().text();
    let mut start = start;
    let event = |line: &str| {
        let (task, rest) = line.split_once(" [")?;
        let (cpu, rest) = rest.split_once("] ")?;
        let (time, rest) = rest.trim_start().split_once(": ")?;
        let (name, words) = rest.split_once(':')?;
        let (seconds, ns) = time.trim().split_once('.')?;
        let at = seconds.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?;
        let at = at - *start.get_or_insert(at);
        let pid = task.rsplit('-').next()?.trim().parse().ok()?;
        Some((at, cpu.parse().ok()?, pid, name.to_owned(), words.trim().to_owned()))
    };
    text.lines().filter_map(event).collect()
}

/// The events of a page.
fn of_page(page: &Value) -> Vec<Event> {
    let word = |row: &Value, key: &str| row[key].as_str().expect("a word").trim().to_owned();
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let rows = page["events"].as_array().unwrap_or_else(|| panic!("{page}"));
    let event = |row: &Value| {
        let pid = row["pid"].as_i64().expect("a PID");
        (number(row, "at"), number(row, "cpu"), pid, word(row, "name"), word(row, "text"))
    };
    rows.iter().map(event).collect()
}

/// All events of a choice, page by page from a place on.
fn paged(view: &View, choice: &str, from: (u64, u64), way: &str, most: usize) -> Vec<Event> {
    let (mut all, mut place) = (Vec::new(), Some(from));
    while let Some((at, nth)) = place {
        let page = view.json(&format!("t/0/events.json?{choice}&at={at}&nth={nth}&{way}={most}"));
        let events = of_page(&page);
        assert!(events.len() <= most);
        place = page[way]["ns"].as_u64().zip(page[way]["nth"].as_u64());
        match way {
            "before" => all = [events, all].concat(),
            _ => all.extend(events),
        }
    }
    all
}

#[test]
fn pages_in_both_directions_have_the_events_of_list() {
    let folder = scratch("view-events");
    let cut = folder.join("cut.dat");
    let bytes = std::fs::read(fixture("hackbench-v6.dat")).expect("the fixture");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    for path in [fixture("hackbench.dat"), cut] {
        let view = View::of(&[&path]);
        let span = view.head(0)["span"].as_u64().expect("a span");
        let all = printed(&path, &[]);
        assert!(all.len() > 700 && all[0].0 == 0, "{path:?}");
        assert_eq!(paged(&view, "", (0, 0), "behind", 500), all, "{path:?}");
        // Many events have one time here: pages of 7 divide them.
        let (from, to) = (all[300].0, all[420].0);
        let within: Vec<Event> = all.iter().filter(|event| (from..=to).contains(&event.0)).cloned().collect();
        let window = format!("from={from}&to={to}");
        assert_eq!(paged(&view, &window, (0, 0), "behind", 7), within, "{path:?}");
        assert_eq!(paged(&view, &window, (span + 5, 0), "before", 7), within, "{path:?}");
        // From any event on, both ways.
        let middle = view.json(&format!("t/0/events.json?at={}&nth=0&before=20&behind=30", all[500].0));
        let at = all.iter().position(|event| event.0 == all[500].0).expect("the event");
        assert_eq!(of_page(&middle), all[at - 20..at + 30], "{path:?}");
        let named = printed(&path, &["--events", "sched_wakeup"]);
        assert_eq!(paged(&view, "q=sched_wakeup", (span + 5, 0), "before", 500), named, "{path:?}");
        assert_eq!(
            paged(&view, "q=sched:sched_wak*", (0, 0), "behind", 500),
            printed(&path, &["--events", "sched:sched_wak*"])
        );
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn events_are_chosen_by_name_field_cpu_and_task() {
    let path = fixture("hackbench.dat");
    let view = View::of(&[&path]);
    view.head(0);
    let all = |choice: &str| paged(&view, choice, (0, 0), "behind", 500);
    let wakeups = printed(&path, &["--events", "sched_wakeup"]);
    let of_345: Vec<Event> = wakeups.iter().filter(|event| event.4.contains(":345 ")).cloned().collect();
    assert_eq!(all("q=sched_wakeup+pid%3D345"), of_345);
    assert_eq!(of_345.len(), 6);
    // Comparisons divide the events.
    let [below, above] = ["q=sched_wakeup+pid%3C345", "q=sched_wakeup+pid%3E345"].map(all);
    assert_eq!(below.len() + of_345.len() + above.len(), wakeups.len());
    assert_eq!(all("q=sched_wakeup+pid!%3D345").len() + of_345.len(), wakeups.len());
    assert_eq!(all("q=sched_wakeup+pid%3C%3D345").len(), below.len() + of_345.len());
    assert_eq!(all("q=sched_wakeup+pid%3E%3D345").len(), above.len() + of_345.len());
    let kworkers: Vec<Event> = wakeups.iter().filter(|event| event.4.starts_with("kworker")).cloned().collect();
    assert_eq!(all("q=sched_wakeup+comm~kworker"), kworkers);
    // A condition chooses among all events that have the field.
    assert!(all("q=pid%3D345").len() > of_345.len());
    assert_eq!(all("q=sched_switch&cpus=0,2"), printed(&path, &["--events", "sched_switch", "--cpus", "0,2"]));
    assert_eq!(all("filter=hackbench+345"), printed(&path, &["--pid", "345"]));
    assert_eq!(all("q=sched_wak*"), printed(&path, &["--events", "sched_wak*"]));
    // A name that is none of an event is a part of names.
    let parts = [wakeups.len(), printed(&path, &["--events", "sched_waking"]).len(), 40];
    assert_eq!(all("q=sched_wak").len(), parts.iter().sum::<usize>());
    let none = |choice: &str| view.json(&format!("t/0/events.json?{choice}&behind=1"))["none"].clone();
    assert_eq!(none("q=nonesuch"), "no event of this trace is called nonesuch");
    assert_eq!(none("q=sched_switch+pid%3D3"), "none of these events has a field pid");
}

#[test]
fn ticks_are_the_columns_that_have_events() {
    let path = fixture("hackbench.dat");
    let view = View::of(&[&path]);
    let span = view.head(0)["span"].as_u64().expect("a span");
    let moves = printed(&path, &["--events", "sched_migrate_task"]);
    let (from, to) = (span / 4, span / 2);
    for columns in [1, 50, 8192] {
        let ticks = view.json(&format!("t/0/ticks.json?q=sched_migrate_task&from={from}&to={to}&columns={columns}"));
        let within: Vec<&Event> = moves.iter().filter(|event| (from..=to).contains(&event.0)).collect();
        let column = |event: &Event| ((event.0 - from) * columns / (to - from)).min(columns - 1);
        let pairs = |list: &Value| -> BTreeSet<(u64, i64)> {
            let pair = |pair: &Value| (pair[0].as_u64().expect("a column"), pair[1].as_i64().expect("a number"));
            list.as_array().expect("ticks").iter().map(pair).collect()
        };
        assert_eq!(ticks["number"], within.len());
        let cpus: BTreeSet<(u64, i64)> = within.iter().map(|event| (column(event), event.1 as i64)).collect();
        assert_eq!(pairs(&ticks["cpus"]), cpus, "{columns}");
        // The task that an event is about, not the one that ran: comm=hackbench pid=331 …
        let about = |event: &Event| event.4.split("pid=").nth(1)?.split(' ').next()?.parse().ok();
        let tasks: BTreeSet<(u64, i64)> =
            within.iter().map(|event| (column(event), about(event).expect("a PID"))).collect();
        assert_eq!(pairs(&ticks["tasks"]), tasks, "{columns}");
    }
    let kinds = view.json("t/0/kinds.json");
    let switches = kinds["kinds"].as_array().expect("kinds").iter().find(|kind| kind["name"] == "sched_switch");
    assert_eq!(switches.expect("switches")["count"], printed(&path, &["--events", "sched_switch"]).len());
}

#[test]
fn the_list_follows_the_cursor_and_moves_it_at_the_same_zoom() {
    let Some(browser) = Browser::start("events") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light&t=events&w=400000000,200000000");
    browser.wait_for(COMPLETE);
    let rows = "[...document.querySelectorAll('.events tbody tr.link')]";
    let current = "document.querySelector('.events tbody tr.current')";
    browser.wait_for(&format!("{rows}.length > 100"));
    // The cursor moves the list, also to where nothing of it was loaded.
    for time in ["0.45", "1.15", "0.001"] {
        browser.run(&format!("schedviz.change({{ place: {{ trace: 0, cpu: 1, time: {time} * 1e9 }} }})"));
        let near = format!("Math.abs(Number({current}?.cells[0].textContent) - {time}) < 0.01");
        browser.wait_for(&near);
        let seen = "(() => { const [row, all] = ['tr.current', '.scroller'].map(one => document.querySelector('.events ' + one).getBoundingClientRect());
            return row.top >= all.top && row.bottom <= all.bottom; })()";
        browser.wait_for(seen);
    }
    // A row moves the cursor, and the window without another zoom.
    let span = number(&browser, "schedviz.state.span");
    browser.run(&format!("{rows}[3].click()"));
    browser.wait_for(&format!(
        "schedviz.state.place.time === Math.round(Number({current}.dataset.place.split('.')[0])) && {current} === {rows}[3]"
    ));
    assert_eq!(number(&browser, "schedviz.state.span"), span);
    assert!(number(&browser, "schedviz.state.from") < 1e8, "the event is in view");
    // It goes on where it ends.
    let before = number(&browser, &format!("{rows}.length"));
    browser.run("const all = document.querySelector('.events .scroller'); all.scrollTop = all.scrollHeight");
    browser.wait_for(&format!("{rows}.length > {before}"));
    // Words choose; the finds are marked.
    browser.run("document.getElementById('event-words').focus()");
    browser.keys("sched_wakeup pid=345");
    browser.wait_for(&format!("{rows}.length === 6 && {rows}.every(row => row.textContent.includes('hackbench:345'))"));
    browser
        .wait_for("document.querySelector('.events .part').textContent.includes('in view, marked on lanes and rows')");
    assert_eq!(browser.run("return document.activeElement.id"), "event-words");
    assert_clean(&browser, &server);
}
