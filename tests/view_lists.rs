//! The lists of `schedviz view`, and its episodes step by step.

use crate::support::{fixture, schedviz};
use crate::view::View;
use crate::view_browser::{COMPLETE, Server, assert_clean, number, open};
use crate::webdriver::Browser;
use serde_json::Value;

/// The episode at an instant, as `why` prints it.
fn episode(trace: &str, at: &Value) -> Value {
    let ran = schedviz(&["why", "-q", "--json", trace, "--at", &format!("{at}ns")]).success();
    let document: Value = serde_json::from_str(&ran.text()).expect("JSON");
    document["runs"][0]["episode"].clone()
}

#[test]
fn a_story_is_that_of_why() {
    for name in ["hackbench.dat", "hotplug.dat", "attempts-6.12.dat"] {
        let path = fixture(name);
        let trace = path.to_str().expect("a name");
        let view = View::of(&[&path]);
        let head = view.head(0);
        let listed = view.json("t/0/list.json?kind=episodes");
        let rows = listed["rows"].as_array().expect("rows");
        for row in rows.iter().take(4).chain(rows.last()) {
            let found = view.json(&format!("t/0/story.json?from={}&to={}", row["from"], row["to"]));
            let truth = episode(trace, &row["from"]);
            assert_eq!((&found["from"], &found["to"]), (&row["from"], &row["to"]), "{name}");
            assert_eq!(
                found["to"].as_u64().zip(found["from"].as_u64()).map(|(to, from)| to - from),
                truth["duration_ns"].as_u64()
            );
            assert_eq!((&found["before"], &found["unlisted"]), (&truth["before"], &truth["unlisted"]), "{name} {row}");
            let (steps, of) = (found["steps"].as_array().expect("steps"), truth["steps"].as_array().expect("steps"));
            assert_eq!(steps.len(), of.len());
            for (step, truth) in steps.iter().zip(of) {
                for (key, name) in [("after", "after_ns"), ("cpu", "cpu"), ("pid", "pid"), ("text", "words")] {
                    assert_eq!(step[key], truth[name], "{row}");
                }
            }
            let command = found["command"].as_str().expect("a command");
            let expected = format!("--at {}ns", row["from"]);
            assert!(
                command.starts_with("schedviz why ") && command.ends_with(&expected) && !command.contains("--waiters"),
                "{command}"
            );
        }
        // An instant without an episode has none.
        let calm = (0..head["span"].as_u64().expect("a span"))
            .step_by(997_001)
            .find(|at| rows.iter().all(|row| !(row["from"].as_u64()..=row["to"].as_u64()).contains(&Some(*at))));
        let calm = calm.expect("time without violation");
        let refused = view.get(&format!("t/0/story.json?from={calm}&to={}", calm + 1));
        assert!(refused.status == 503 && String::from_utf8_lossy(&refused.body).contains("not violated"));
        assert_eq!(view.get("t/0/story.json?from=2&to=1").status, 400);
    }
}

const PANEL: &str = "document.getElementById('panel')";

#[test]
fn lists_have_heads_with_units_and_sort_by_them() {
    let Some(browser) = Browser::start("lists") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    let heads =
        "[...document.querySelectorAll('#panel .sorted:last-of-type thead th')].map(th => th.textContent).join('|')";
    for (list, expected) in [
        ("episodes", "start (s)|length (ms)"),
        ("waits", "start (s)|waited (ms)|CPUs|task"),
        ("herds", "start (s)|within (µs)|tasks|from CPU|to CPU"),
        ("missed", "start (s)|idle (ms)|violated (ms)|CPU|nearest waiter"),
    ] {
        open(&browser, &server, &format!("t=lists&l={list}"));
        browser.wait_for(&format!("{PANEL}.querySelectorAll('tbody tr').length > 1"));
        let found = browser.run(&format!("return {heads}"));
        let found = found.as_str().expect("heads");
        // The unit of lengths follows the longest.
        let plain = |text: &str| text.replace("(µs)", "(ms)").replace("(ns)", "(ms)").replace("(s)", "(ms)");
        assert_eq!(plain(found), plain(expected), "{list}");
        assert!(found.starts_with("start (s)"), "{found}");
    }
    open(&browser, &server, "t=lists");
    let column = |n: u32| {
        format!("[...document.querySelectorAll('#panel tbody tr')].map(row => Number(row.cells[{n}].textContent))")
    };
    let ordered = |n: u32, order: &str| {
        let values = column(n);
        browser.wait_for(&format!(
            "{values}.length > 10 && {values}.every((v, n, all) => n === 0 || all[n - 1] {order} v)"
        ));
    };
    ordered(1, ">=");
    let click = |n: u32| browser.run(&format!("document.querySelectorAll('#panel thead button')[{n}].click()"));
    let sort = |n: u32| {
        browser.run(&format!("return document.querySelectorAll('#panel thead th')[{n}].getAttribute('aria-sort')"))
    };
    click(0);
    ordered(0, "<=");
    assert_eq!((sort(0), sort(1)), ("ascending".into(), "none".into()));
    click(0);
    ordered(0, ">=");
    assert_eq!(sort(0), "descending");
    click(1);
    ordered(1, ">=");
    // The first entry is the longest episode, as the server has it.
    let view = View::of(&[&path]);
    let head = view.head(0);
    assert!(head["full"] == true);
    let first = &view.json("t/0/list.json?kind=episodes")["rows"][0];
    let length = (first["to"].as_f64().expect("an end") - first["from"].as_f64().expect("a start")) / 1e6;
    assert!((number(&browser, &format!("{}[0]", column(1))) - length).abs() < 0.001);
    // A list without entries has a sentence in its place.
    let empty = Server::start(&[&fixture("balance.dat")]);
    open(&browser, &empty, "t=lists&l=herds");
    browser.wait_for(&format!("{PANEL}.querySelector('.empty')?.textContent.startsWith('No CPU sent several tasks')"));
    assert_eq!(number(&browser, &format!("{PANEL}.querySelectorAll('table').length")), 0.0);
}

#[test]
fn an_episode_opens_its_story_whose_steps_lead_to_their_instants() {
    let Some(browser) = Browser::start("story") else { return };
    let path = fixture("hackbench.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "t=lists");
    browser.wait_for(&format!("{PANEL}.querySelectorAll('tbody tr').length > 10"));
    browser.run("document.querySelectorAll('#panel tbody tr')[2].click()");
    let steps = "[...document.querySelectorAll('#panel .story tbody tr')]";
    browser.wait_for(&format!("{steps}.length > 5"));
    browser.wait_for("location.hash.includes('e=0,')");
    let at = number(&browser, "schedviz.state.story.from");
    let truth = episode(path.to_str().expect("a name"), &Value::from(at as u64));
    let of = truth["steps"].as_array().expect("steps");
    assert_eq!(number(&browser, &format!("{steps}.length")), of.len().min(500) as f64);
    let words = browser.run(&format!("return {steps}.slice(0, 20).map(row => row.cells[1].textContent)"));
    for (shown, step) in words.as_array().expect("rows").iter().zip(of) {
        assert_eq!(*shown, step["words"]);
    }
    for before in truth["before"].as_array().expect("words") {
        browser.wait_for(&format!("[...{PANEL}.querySelectorAll('li')].some(li => li.textContent === {before})"));
    }
    // A step by click: its instant and CPU, in the middle of a shorter window.
    browser.run(&format!("{steps}[5].click()"));
    let instant = at + of[5]["after_ns"].as_f64().expect("a time");
    browser.wait_for(&format!(
        "schedviz.state.place?.time === {instant} && schedviz.state.place.cpu === {}",
        of[5]["cpu"]
    ));
    browser.wait_for(COMPLETE);
    let (from, span) = (number(&browser, "schedviz.state.from"), number(&browser, "schedviz.state.span"));
    assert!((from + span / 2.0 - instant).abs() < span / 10.0, "{instant} in {from} and {span}");
    assert!(span < truth["duration_ns"].as_f64().expect("a length") * 1.3);
    browser.wait_for(&format!("{steps}[5].getAttribute('aria-current') === 'true'"));
    // The next one by key.
    browser.keys("n");
    let next = at + of[6]["after_ns"].as_f64().expect("a time");
    browser.wait_for(&format!("schedviz.state.place?.time === {next}"));
    // The address reopens the story; Escape leads back to the list.
    let address = browser.run("return location.hash.slice(1)");
    open(&browser, &server, address.as_str().expect("an address"));
    browser.wait_for(&format!("{steps}.length > 5"));
    browser.keys("\u{e00c}");
    browser.wait_for(&format!("schedviz.state.story === null && {PANEL}.textContent.includes('Choose one')"));
    browser.wait_for("!location.hash.includes('e=')");
    assert_clean(&browser, &server);
}

#[test]
fn tasks_are_listed_coloured_and_filtered_by_cgroup() {
    let Some(browser) = Browser::start("task-list") else { return };
    let path = crate::support::root().join("tests/cgroups/weights.dat");
    let server = Server::start(&[&path]);
    open(&browser, &server, "d=light&c=cgroup&t=lists&l=tasks&g=cgroup");
    let rows = |kind: &str| format!("[...document.querySelectorAll('#panel tr.{kind}')]");
    browser.wait_for(&format!("{}.length === 5", rows("of-group")));
    assert_eq!(number(&browser, &format!("{}.length", rows("member"))), 0.0);
    let names = browser.run(&format!("return {}.map(row => row.querySelector('.fold').title)", rows("of-group")));
    assert_eq!(names, serde_json::json!(["/w100", "/w10000", "/w2", "kernel threads", "/"]));
    // Opened, a group has its tasks below it, and closed it has none.
    let toggle = || browser.run("document.querySelector('#panel .fold[title=\"/w2\"]').click()");
    toggle();
    browser.wait_for(&format!(
        "{}.length === 4 && document.querySelectorAll('#panel [aria-expanded=true]').length === 1",
        rows("member")
    ));
    browser.wait_for("location.hash.includes('k=0')");
    // The lanes show the group alone in colour, and the list has no other.
    browser.run("document.querySelector('#panel .fold[title=\"/w2\"]').parentElement.querySelector('.only').click()");
    browser.wait_for(&format!("schedviz.state.filter === 'cgroup:=/w2' && {}.length === 1", rows("of-group")));
    browser.wait_for("document.getElementById('filtered').textContent === '4 of 32 tasks'");
    browser.wait_for("new Set(schedviz.panes[0].colors.tasks).size === 2");
    toggle();
    browser.wait_for(&format!("{}.length === 0", rows("member")));
    // A task of the list is highlighted when it is chosen, with its groups.
    open(&browser, &server, "t=lists&l=tasks&g=process&k=0:sh+192");
    browser.wait_for(&format!("{}.length === 1", rows("member")));
    browser.run(&format!("{}[0].click()", rows("member")));
    browser.wait_for(&format!("schedviz.state.highlight?.pid === 192 && {PANEL}.textContent.includes('/w10000')"));
    assert_clean(&browser, &server);
}
