//! The page of `schedviz view` under the user's hands: notes, undo and redo, the beginning of a page, hints and tips.

use crate::support::fixture;
use crate::view_browser::{COMPLETE, Server, assert_clean, open};
use crate::view_modules::node;
use crate::webdriver::Browser;
use serde_json::json;

/// A state of one trace of a second without a browser.
const STATE: &str = r#"
globalThis.requestAnimationFrame = () => 0;
globalThis.reportError = (error) => { throw error; };
const { change, read, state, written } = await import("./state.js");
const trace = (head) => ({ index: 0, head: { span: 1e9, full: true, folds: [], cpus: [], tasks: [], ...head }, zero: 0, collapsed: new Set(), scroll: 0 });
state.traces = [trace({})];
"#;

#[test]
fn notes_are_in_the_address_and_none_of_another_form() {
    let script = r#"
change({ notes: [{ from: 5, to: 5, text: "a, b & 'c' #1 %" }, { from: -7, to: 9, text: "" }] });
const { notes } = state;
const address = written();
// What a page writes is what `schedviz view TRACE#…` takes.
assert.match(address, /^[A-Za-z0-9=&,:%+._*-]+$/);
read("");
assert.deepEqual(state.notes, []);
read(address);
assert.deepEqual(state.notes, notes);
read("nt=9,3,x&nt=1,y&nt=1,2&nt=1e3,2,z&nt=99999999999999999999,1,z&nt=&nt=4,4,");
assert.deepEqual(state.notes, [{ from: 3, to: 9, text: "x" }, { from: 4, to: 4, text: "" }]);
read(Array.from({ length: 300 }, (_, n) => `nt=${n},${n},${"x".repeat(200)}`).join("&"));
assert.deepEqual([state.notes.length, state.notes[99].from, state.notes[0].text.length], [100, 99, 80]);
"#;
    node("view-node-notes", &format!("{STATE}{script}"));
}

#[test]
fn undo_and_redo_step_through_the_views() {
    let script = r#"
// The browser's list of pages.
let entries = [{ hash: "", state: null }], at = 0;
const { restore, remember, undo, redo, onPast } = await import("./past.js");
// The page follows each change, as main.js does.
const go = (step) => { at += step; restore(); remember(new Set(["from", "selection"])); };
globalThis.location = { get hash() { return entries[at].hash; } };
globalThis.history = {
  get state() { return entries[at].state; },
  pushState(state, _, hash) { entries = [...entries.slice(0, ++at), { hash, state }]; },
  replaceState(state, _, hash = entries[at].hash) { entries[at] = { hash, state }; },
  back: () => go(-1), forward: () => go(1),
};
const { show } = await import("./state.js");
let can = [];
onPast((undoes, redoes) => (can = [undoes, redoes]));
const rest = () => new Promise((resolve) => setTimeout(resolve, 200));
const move = async (from) => { change({ selection: [from, from + 10] }); remember(new Set(["selection"])); await rest(); };
// The first view is that of the page; each further one can be taken back.
await move(100);
assert.deepEqual(can, [false, false]);
await move(200);
await move(300);
assert.deepEqual(can, [true, false]);
undo();
await rest();
assert.deepEqual([state.selection, can], [[200, 210], [true, true]]);
undo();
assert.deepEqual([state.selection, can], [[100, 110], [false, true]]);
undo();
assert.deepEqual(state.selection, [100, 110]);
redo();
redo();
redo();
assert.deepEqual([state.selection, can], [[300, 310], [true, false]]);
// A change after an undo takes the place of what was undone.
undo();
await rest();
await move(400);
assert.deepEqual([entries.length, can], [3, [true, false]]);
// A change that was not written yet is taken back by itself.
change({ selection: [500, 510] });
remember(new Set(["selection"]));
undo();
assert.deepEqual([state.selection, can], [[400, 410], [true, true]]);
"#;
    node("view-node-undo", &format!("{STATE}{script}"));
}

#[test]
fn a_trace_of_many_cpus_begins_with_lanes_of_caches() {
    let script = r#"
const { keyOf, layOut } = await import("./layout.js");
const machine = (count) => {
  const cpus = Array.from({ length: count }, (_, cpu) => ({ cpu, node: cpu >> 4, llc: cpu >> 3, core: cpu >> 1 }));
  const fold = (kind, size) => Array.from({ length: count / size }, (_, number) => ({ kind, number, lanes: [number * size, (number + 1) * size], tile: 0, lane: number }));
  return trace({ cpus, folds: [...fold("node", 16), ...fold("llc", 8), ...fold("core", 2)] });
};
state.traces = [machine(256)];
read("");
const [many] = state.traces;
assert.deepEqual([state.color, many.collapsed.size, [...many.collapsed][31]], ["command", 32, "l31"]);
assert.ok(!/[cx]=/.test(written()));
// The rows fill their room, whatever it is, and no lane is lost below it.
for (const room of [330, 467, 900, 1300]) {
  const { rows, height } = layOut(many, room, 0, 1);
  assert.equal(rows.length, 32);
  assert.ok(height <= room && height > room - 32, `${height} of ${room}`);
  assert.equal(rows.reduce((sum, row) => Math.max(sum, row.y + row.height), 0), height);
}
// Lanes of CPUs, another colour and some caches are in the address; so is a page without any collapsed group.
many.collapsed.clear();
change({ color: "task" });
let address = written();
read("");
read(address);
assert.deepEqual([state.color, many.collapsed.size, /x=none/.test(address)], ["task", 0, true]);
many.collapsed.add("n3");
address = written();
read(address);
assert.deepEqual([...many.collapsed], ["n3"]);
// A trace of fewer CPUs begins with all lanes, in the colours of tasks.
state.traces = [machine(128)];
read("");
assert.deepEqual([state.color, state.traces[0].collapsed.size, /[cx]=/.test(written())], ["task", 0, false]);
"#;
    node("view-node-many", &format!("{STATE}{script}"));
}

#[test]
fn a_first_visit_has_five_hints_on_the_picture_once() {
    let Some(browser) = Browser::start("hints") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light");
    let hints = "[...document.querySelectorAll('#hints li:not([hidden])')]";
    let apart = browser.run(&format!(
        "const boxes = {hints}.map(hint => hint.getBoundingClientRect());
         const lies = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
         return [boxes.length, boxes.filter(box => box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight).length,
           boxes.filter((box, n) => boxes.some((other, m) => n !== m && lies(box, other))).length]"
    ));
    assert_eq!(apart, json!([5, 0, 0]), "five hints in view, none over another");
    browser.keys("w");
    browser.wait_for("document.getElementById('hints').hidden");
    open(&browser, &server, "d=light");
    assert_eq!(browser.run("return document.getElementById('hints').hidden"), true);
    assert_clean(&browser, &server);
}

#[test]
fn a_note_is_named_listed_and_taken_back() {
    let Some(browser) = Browser::start("notes") else { return };
    let server = Server::start(&[&fixture("hackbench.dat")]);
    open(&browser, &server, "d=light&s=500000000,530000000&ma=510000000");
    browser.keys("b");
    browser.wait_for("document.activeElement.matches('.notes input')");
    browser.keys("burst\u{e007}");
    browser.wait_for("location.hash.includes('nt=500000000,530000000,burst')");
    // The mark and the marker have their tips.
    let tip = |at: u64| {
        let place = browser.run(&format!(
            "const pane = schedviz.panes[0], box = pane.canvas.getBoundingClientRect(), scale = pane.scale(), ratio = devicePixelRatio || 1;
             return [box.left + (scale.left + ({at} - scale.from) / scale.perPixel) / ratio, box.top + pane.places().top / ratio + 4]"
        ));
        let [x, y] = [0, 1].map(|n| place[n].as_f64().expect("a place"));
        browser.run(&format!(
            "schedviz.panes[0].canvas.dispatchEvent(new PointerEvent('pointermove', {{ clientX: {x}, clientY: {y}, bubbles: true }}))"
        ));
        browser.run("return document.getElementById('tip').textContent").as_str().expect("a text").to_owned()
    };
    assert!(tip(520_000_000).starts_with("burst\n"), "{}", tip(520_000_000));
    assert!(tip(510_000_000).starts_with("marker A: 0.510000000 s"), "{}", tip(510_000_000));
    browser.run("document.activeElement.blur()");
    browser.keys("0");
    browser.wait_for("location.hash.startsWith('#w=0,')");
    browser.wait_for("!document.getElementById('undo').disabled");
    browser.keys("u");
    browser.wait_for("!document.getElementById('redo').disabled && location.hash.includes('burst')");
    browser.wait_for(COMPLETE);
    assert_clean(&browser, &server);
}
