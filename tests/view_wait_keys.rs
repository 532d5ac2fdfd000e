//! The question "why did this task wait then, and because of whom?", answered in `schedviz view` by keys alone; and the path of a task.

use crate::support::{fixture, schedviz};
use crate::view_browser::{COMPLETE, Server, assert_clean, open};
use crate::webdriver::Browser;
use serde_json::Value;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const UP: &str = "\u{e013}";
const DOWN: &str = "\u{e015}";
const RIGHT: &str = "\u{e014}";

/// The text of the panel.
const PANEL: &str = "document.getElementById('panel').textContent";

#[test]
fn a_wait_is_asked_about_by_keys_alone() {
    let Some(browser) = Browser::start("wait-keys") else { return };
    let trace = fixture("hackbench.dat");
    let server = Server::start(&[&trace]);
    let path = schedviz(&["path", trace.to_str().expect("a name"), "--json", "-q"]).success().text();
    let path: Value = serde_json::from_str(&path).expect("JSON");
    // The longest wait on the critical path, which the page shows to be on it.
    let wait = &path["longest_queued"][0];
    let (pid, start) = (&wait["pid"], wait["start_in_trace_ns"].as_u64().expect("a time"));
    let middle = start + wait["duration_ns"].as_u64().expect("a length") / 2;
    open(&browser, &server, &format!("d=light&q=application&p=0,{},{middle}", wait["cpu"]));
    browser.keys(&format!("{TAB}{ENTER}"));
    browser.wait_for("document.activeElement.localName === 'canvas'");
    // To the rows: the critical path is first, and says whose it is.
    browser.keys("j");
    let here = "document.getElementById('here').textContent";
    browser.wait_for(&format!("schedviz.state.row?.pid === -1 && {here}.startsWith('critical path of hackbench 318')"));
    let above = format!(
        "const {{ rows, head }} = schedviz.state.traces[0]; return rows.above(head.tasks.findIndex(task => task.pid === {pid}))"
    );
    let above = browser.run(&above).as_u64().expect("a row") as usize;
    browser.keys(&DOWN.repeat(above + 2));
    browser.keys(UP);
    browser.wait_for(&format!("schedviz.state.row?.pid === {pid} && {here}.startsWith('hackbench {pid}')"));
    browser.keys(ENTER);
    browser.wait_for(&format!("{PANEL}.includes('Why it waited') && {PANEL}.includes('Who ran there meanwhile')"));
    browser.wait_for(&format!("/(All|ms) of it .*lay on the critical path of hackbench 318/.test({PANEL})"));
    // The task that it queued behind is a link, which a key follows.
    let behind = &wait["behind"]["pid"];
    let is_there = format!("document.activeElement.textContent.trim() === 'hackbench {behind}'");
    let mut tabs = 0;
    while browser.run(&format!("return {is_there}")) != true {
        browser.keys(TAB);
        tabs += 1;
        assert!(tabs < 60, "no link to {behind} in {}", browser.run(&format!("return {PANEL}")));
    }
    browser.keys(ENTER);
    browser.wait_for(&format!("schedviz.state.highlight.pid === {behind}"));
    // Its own critical path, that back from the cursor, and that of the application again.
    browser.keys("k");
    let along = "JSON.stringify(schedviz.state.along)";
    browser.wait_for(&format!("{along} === '{{\"trace\":0,\"pid\":{behind},\"at\":null}}'"));
    browser.wait_for(&format!("schedviz.state.traces[0].rows.path.answer?.task?.pid === {behind}"));
    browser.keys("K");
    browser.wait_for(&format!("schedviz.state.along.pid === {behind} && schedviz.state.along.at === {middle}"));
    browser.wait_for("schedviz.state.traces[0].rows.path.answer?.parts.length > 0");
    browser.wait_for(COMPLETE);
    let end = browser.run("return schedviz.state.traces[0].rows.path.answer.parts.at(-1)[1]");
    assert_eq!(end.as_u64(), Some(middle), "the path goes back from the cursor");
    browser.wait_for(&format!("location.hash.includes('cp=0,{behind},{middle}')"));
    browser.keys("K");
    browser.wait_for("schedviz.state.along === null");
    // The line over the lanes is there, and goes with its switch.
    let dark = "const pane = schedviz.panes[0], { lanes, bottom } = pane.places(), { left, right } = pane.scale();
        const data = pane.context.getImageData(left, lanes, right - left, bottom - lanes).data;
        let count = 0;
        for (let n = 0; n < data.length; n += 4) count += Number(data[n] === 32 && data[n + 1] === 32 && data[n + 2] === 32);
        return count";
    browser.wait_for(COMPLETE);
    // What the line should paint in the colour of running: 3 pixels below each other, in each column of a part that mostly ran on a CPU. The thin
    // line of a sleep can cover the middle one.
    let columns = "const { left, right, from, perPixel } = schedviz.panes[0].scale(), columns = new Map();
        for (const [start, end, , cpu, , times] of schedviz.state.traces[0].rows.path.answer.parts) {
          const [x, until] = [start, end].map((time) => left + (time - from) / perPixel);
          if (cpu === null || until < left || x > right) continue;
          const [first, last] = [Math.max(x, left), Math.min(until, right)].map(Math.round);
          const [state] = times.reduce((most, one) => (one[1] > most[1] ? one : most), times[0] ?? [0, 0]);
          for (let at = first; at < Math.max(last, first + 1); at++) columns.set(`${cpu} ${at}`, state === 0);
        }
        return [...columns.values()].filter((runs) => runs).length";
    let columns = browser.run(columns).as_u64().expect("a number");
    assert!(columns > 100, "{columns} columns");
    let with = browser.run(dark).as_u64().expect("a number");
    browser.run("document.querySelector('.pathmenu input').click()");
    browser.wait_for("!schedviz.state.trail && location.hash.includes('ct=0')");
    browser.wait_for(COMPLETE);
    let without = browser.run(dark).as_u64().expect("a number");
    // The cursor is as dark, and crosses the line.
    let line = with - without;
    let expected = 2 * columns - 8..=3 * columns + 8;
    assert!(expected.contains(&line), "{line} pixels in {columns} columns; {with} with the cursor, {without} without");
    assert_clean(&browser, &server);
}

#[test]
fn findings_lead_to_the_reasons_of_a_wait_by_clicks_and_by_keys_alone() {
    let Some(browser) = Browser::start("findings-wait") else { return };
    let trace = fixture("hackbench.dat");
    let server = Server::start(&[&trace]);
    // The wait of the first finding, as the command prints the place: its task, its start and its end.
    let printed = schedviz(&["findings", trace.to_str().expect("a name"), "-q"]).success().text();
    let place = printed.split_once("#qw=0,").and_then(|(_, rest)| rest.split_once('\'')).expect("a place").0;
    let place: Vec<u64> = place.split(',').map(|number| number.parse().expect("a number")).collect();
    let [pid, from, to] = place[..] else { panic!("{place:?}") };
    let asked = format!(
        "schedviz.state.tab === 'task' && schedviz.state.highlight?.pid === {pid} && schedviz.state.wait?.from === {from} \
         && schedviz.state.wait.to === {to} && {PANEL}.includes('Who ran there meanwhile')"
    );
    let why = format!(
        "[...document.querySelectorAll('#panel .choice button')].find(one => one.textContent.endsWith(' {pid} waited'))"
    );
    // One click asks why it waited, the second leads to the task that ran meanwhile.
    open(&browser, &server, "d=light&t=findings");
    browser.wait_for(&format!("{why} !== undefined"));
    browser.run(&format!("{why}.click()"));
    browser.wait_for(&asked);
    let ran = "[...document.querySelectorAll('#panel h3')].find(one => one.textContent === 'Who ran there meanwhile').nextElementSibling.querySelector('tr')";
    let blamed = browser.run(&format!("return Number({ran}.cells[0].textContent.trim().split(' ').at(-1))"));
    browser.run(&format!("{ran}.click()"));
    browser.wait_for(&format!("schedviz.state.highlight?.pid === {blamed}"));
    // By keys alone: from the tabs into the findings, and from link to link.
    open(&browser, &server, "d=light");
    let focus = |condition: &str| {
        let mut tabs = 0;
        while browser.run(&format!("return {condition}")) != true {
            browser.keys(TAB);
            tabs += 1;
            assert!(tabs < 90, "{condition} is not reached");
        }
    };
    focus("document.activeElement.id === 'tab-window'");
    browser.keys(&RIGHT.repeat(4));
    browser.wait_for("schedviz.state.tab === 'findings'");
    browser.wait_for(&format!("{why} !== undefined"));
    focus(&format!("document.activeElement === {why}"));
    browser.keys(ENTER);
    browser.wait_for(&asked);
    focus(&format!("document.activeElement === {ran}"));
    browser.keys(ENTER);
    browser.wait_for(&format!("schedviz.state.highlight?.pid === {blamed}"));
    // The place of a violation leads to its steps.
    open(&browser, &server, "d=light&t=findings");
    let steps =
        "[...document.querySelectorAll('#panel .choice button')].find(one => one.textContent === 'step by step')";
    browser.wait_for(&format!("{steps} !== undefined"));
    browser.run(&format!("{steps}.click()"));
    browser.wait_for("schedviz.state.story !== null && document.querySelectorAll('#panel .story tbody tr').length > 2");
    assert_clean(&browser, &server);
}

#[test]
fn rows_are_chosen_by_name_and_stand_as_a_tree() {
    let Some(browser) = Browser::start("rows-tree") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light&q=in:&qo=tree&h=0,318");
    let places = "schedviz.state.traces[0].rows.places()";
    browser.wait_for(&format!("schedviz.state.traces[0].rows.facts && {places}.length === 0"));
    browser.run("document.querySelector('.rowbar input').focus()");
    browser.keys("hackbench 34");
    browser.wait_for(&format!("{places}.length === 10"));
    browser.wait_for("location.hash.includes('q=in')");
    // One process with its children: the tasks that it forked stand below it.
    open(&browser, &server, "d=light&q=tree:0:318&qo=tree&h=0,318");
    browser.wait_for(&format!("{places}.length === 41"));
    let tree = format!(
        "const {{ rows, head }} = schedviz.state.traces[0], places = {places};
         return places.map(place => [head.tasks[place].pid, head.tasks[place].parent, rows.known.depths.get(place)])"
    );
    let tree = browser.run(&tree);
    let rows = tree.as_array().expect("rows");
    assert_eq!((&rows[0][0], &rows[0][2]), (&Value::from(318), &Value::from(0)), "{tree}");
    assert!(rows[1..].iter().all(|row| row[1] == 318 && row[2] == 1), "{tree}");
    browser.wait_for(COMPLETE);
    // Arrows between rows: the wakeups of a short window.
    browser.run("schedviz.show(60e6, 20e6)");
    browser.wait_for("schedviz.state.traces[0].rows.arrows.isWhole()");
    browser.wait_for(COMPLETE);
    let shown = browser.run("return schedviz.state.traces[0].rows.arrows.shown");
    assert!(shown.as_u64().is_some_and(|shown| shown > 3), "{shown}");
    assert_clean(&browser, &server);
}
