//! The modules of the page of `schedviz view` that need no browser, under node. The tests skip with a line where node is missing.

use crate::support::{root, scratch};
use std::process::Command;

/// Runs a script beside copies of the modules, and returns what it prints; nothing where there is no node. The script fails by throwing.
pub(crate) fn node(name: &str, script: &str) -> Option<String> {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no node");
        return None;
    }
    let folder = scratch(name);
    for entry in std::fs::read_dir(root().join("crates/view/page")).expect("the page").flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("copied");
    }
    // Older versions take a file of this name for another kind of module otherwise.
    std::fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).expect("written");
    let head = "import assert from 'node:assert/strict';\n";
    std::fs::write(folder.join("test.js"), format!("{head}{script}")).expect("written");
    let ran = Command::new("node").arg("test.js").current_dir(&folder).output().expect("node runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
fn a_doubt_has_its_reason_and_its_bounds() {
    node(
        "view-node-trust",
        r#"
import { boundsOf, isRecorded, notRecorded, reasons, silentCpus } from "./trust.js";
const place = (cpu, silent) => ({ cpu, node: null, llc: null, core: null, silent });
const head = { cpus: [place(0), place(1)], recorded: ["sched_switch"] };
const exact = { why: null, unknown_percent: 0, gaps: 0, bounds: null };
const findings = [{ severity: "incomplete", text: "one kind", places: [] }, { severity: "repaired", text: "a task", places: [] }];
assert.deepEqual(reasons(head, exact, findings, "waiting"), []);
// Switches alone: the waiting tasks are in doubt, the running ones are not.
const why = "sched_wakeup was not recorded: the waiting tasks are unknown";
assert.deepEqual(reasons(head, { ...exact, why }, findings, "waiting"), [`not to be trusted: ${why}`]);
assert.deepEqual(reasons(head, { ...exact, why }, findings, "running"), []);
// Losses are in every number, with the bounds of the violation.
const lossy = { why: null, unknown_percent: 13.777, gaps: 36, bounds: { least_percent: 18.138, most_percent: 62.797 } };
const lost = "events are missing in 36 places: nothing is known of 13.78 % of the CPU time";
for (const kind of ["waiting", "running"]) assert.deepEqual(reasons(head, lossy, findings, kind), [lost]);
assert.equal(boundsOf(lossy), "18.1 % to 62.8 %");
assert.equal(boundsOf(exact), "");
// Damage that no place in time shows is a doubt by itself.
const damaged = [{ severity: "data-loss", text: "3 CPUs whose data end after the end of the file", places: [] }];
assert.deepEqual(reasons(head, exact, damaged, "running"), [damaged[0].text]);
// CPUs without events hold waiting tasks unseen.
const masked = { ...head, cpus: [place(0), place(1, true), place(2, true)] };
assert.deepEqual(silentCpus(masked), [1, 2]);
assert.match(reasons(masked, exact, [], "waiting")[0], /^CPUs 1-2 without any event: .* upper bound$/);
assert.deepEqual(reasons(masked, exact, [], "running"), []);
// Unknown is no zero; a fact that is not known yet is no reason.
assert.equal(notRecorded(head, "sched_migrate_task"), "not recorded (needs sched_migrate_task)");
assert.equal(notRecorded(head, "sched_wakeup", "sched_waking"), "not recorded (needs sched_wakeup or sched_waking)");
assert.equal(notRecorded(head, "sched_wakeup", "sched_switch"), "");
assert.equal(isRecorded({ cpus: [] }, "sched_migrate_task"), true);
"#,
    );
}

#[test]
fn the_critical_path_is_asked_for_around_the_view() {
    node(
        "view-node-path",
        r#"
import { cpuFrom, placeAt, windowAround } from "./pathrow.js";
import { rowsOf } from "./pathpanel.js";
// As much again on both sides, within the trace, at the columns of the view.
assert.deepEqual(windowAround([4000, 5000], 1e6, 1), [3000, 6000, 3000]);
assert.deepEqual(windowAround([0, 1000], 1500, 0.1), [0, 1500, 1500]);
assert.deepEqual(windowAround([0, 1e9], 1e9, 1e6), [0, 1e9, 1000]);
// A wide view has no more columns than the server gives.
for (const width of [3000, 6000, 12000]) {
  const [from, to, columns] = windowAround([1e6, 1e6 + width * 100], 1e9, 100);
  assert.ok(columns <= 8192 && from <= 1e6 && to >= 1e6 + width * 100, `${width}: ${from} ${to} ${columns}`);
}
// The part of an instant; its end belongs to the next one. Where the task is off the CPU, the next CPU of the path counts.
const parts = [[10, 20, 7, 3, 1, [[0, 10]]], [20, 30, 8, null, 1, [[6, 10]]], [30, 40, 8, 5, 1, [[0, 10]]], [40, 50, 8, null, 1, [[8, 10]]]];
assert.deepEqual([9, 10, 19, 20, 39, 49, 50].map((time) => placeAt(parts, time)), [-1, 0, 0, 1, 2, 3, -1]);
assert.deepEqual([0, 1, 2, 3].map((place) => cpuFrom(parts, place)), [3, 5, 5, -1]);
// The rows of the panel are those of path, throttled time where there is any.
const times = { running_ns: 750, queued_ns: 250, queued_alike_ns: 250, waking_ns: null, sleeping_ns: 0 };
assert.equal(rowsOf({ times, length: 1000 }).length, 9);
const rows = rowsOf({ times: { ...times, throttled_ns: 1 }, length: 1000 });
assert.deepEqual([rows.length, rows[0][0], rows[5][0], rows[9][0]], [10, "running", "– all queues alike", "throttled by cpu.max"]);
assert.match(rows[0][1], /^75/);
// Unknown is no zero.
assert.equal(rows[6][1], "unknown");
assert.match(rows[7][1], /^0/);
"#,
    );
}

#[test]
fn a_find_keeps_the_zoom() {
    node(
        "view-node-find",
        r#"
import { windowFor } from "./entries.js";
const now = { from: 1e9, span: 1e8 };
// An instant in view leaves the window alone; another one is in its middle.
assert.deepEqual(windowFor(1.05e9, 1.05e9, now), [1e9, 1e8]);
assert.deepEqual(windowFor(2e9, 2e9, now), [1.95e9, 1e8]);
// A stretch that is to be seen does so too; one that is too short or too long has its own window.
assert.equal(windowFor(3e9, 3.03e9, now)[1], 1e8);
for (const length of [1, 2000, 5e8]) {
  const [from, span] = windowFor(3e9, 3e9 + length, now);
  assert.ok(from < 3e9 && from + span > 3e9 + length && span < 3 * length);
}
"#,
    );
}

#[test]
fn an_address_holds_the_selection_and_the_window_of_lists() {
    node(
        "view-node-state",
        r#"
globalThis.requestAnimationFrame = () => 0;
globalThis.reportError = (error) => { throw error; };
const { change, read, state, written } = await import("./state.js");
const head = { span: 1e9, folds: [], cpus: [], tasks: [] };
state.traces = [{ index: 0, head, zero: 0, collapsed: new Set(), scroll: 0 }];
// A selection by hand is what lists are about; that of an entry leaves them as they were.
change({ selection: [1, 5] });
assert.deepEqual(state.range, [1, 5]);
change({ selection: [2, 3], range: state.range });
assert.deepEqual([state.selection, state.range], [[2, 3], [1, 5]]);
const address = written();
change({ selection: null });
assert.equal(state.range, null);
read(address);
assert.deepEqual([state.selection, state.range], [[2, 3], [1, 5]]);
change({ selection: [2, 3], range: null });
read(written());
assert.deepEqual([state.selection, state.range], [[2, 3], null]);
read("s=7,4");
assert.deepEqual([state.selection, state.range], [[4, 7], [4, 7]]);
"#,
    );
}

#[test]
fn a_frame_is_awaited_once_however_much_has_changed() {
    node(
        "view-node-frames",
        r#"
const frames = [];
globalThis.requestAnimationFrame = (frame) => frames.push(frame);
globalThis.reportError = (error) => { throw error; };
const { awaitsFrame, change, onChange, refresh } = await import("./state.js");
const heard = [];
onChange((changed) => heard.push([...changed]));
assert.equal(awaitsFrame(), false);
// A refresh names no part of the state; answers of the server bring many.
refresh();
refresh();
change({ trail: false });
assert.deepEqual([frames.length, awaitsFrame()], [1, true]);
frames.shift()();
assert.deepEqual([heard, awaitsFrame()], [[["trail"]], false]);
// One that is asked for while a frame is drawn is for the next.
onChange(() => heard.length < 3 && refresh());
refresh();
frames.shift()();
assert.deepEqual([frames.length, awaitsFrame()], [1, true]);
"#,
    );
}

#[test]
fn an_ended_server_is_named_with_the_way_to_start_it_again() {
    node(
        "view-node-gone",
        r#"
const events = [];
globalThis.dispatchEvent = (event) => events.push(event.type);
const api = await import("./api.js");
const answer = (value) => ({ ok: true, status: 200, json: async () => value, text: async () => JSON.stringify(value) });
globalThis.fetch = async () => answer({ traces: ["a.dat", "it's b.dat"], static: false, plots: [] });
await api.traces();
assert.equal(api.unreached(), "");
globalThis.fetch = async () => { throw new TypeError("Failed to fetch"); };
await assert.rejects(api.window(0, 0, 1, ""), (error) => error instanceof api.Gone && !/Failed to fetch/.test(error.message));
assert.match(api.unreached(), /schedviz has ended.*schedviz view a\.dat 'it'\\''s b\.dat'/);
globalThis.fetch = async () => answer({});
await api.window(0, 0, 1, "");
assert.equal(api.unreached(), "");
assert.deepEqual(events, ["reach", "reach"]);
"#,
    );
}

#[test]
fn a_cpu_without_events_has_a_low_lane_outside_of_the_tiles() {
    node(
        "view-node-layout",
        r#"
import { layOut, rowAt } from "./layout.js";
const cpus = [0, 1, 2, 3].map((cpu) => ({ cpu, node: null, llc: null, core: null, silent: cpu > 1 }));
const trace = { head: { cpus, folds: [] }, collapsed: new Set() };
const { rows, height, byCpu } = layOut(trace, 200, 0, 1);
assert.deepEqual(rows.map((row) => row.silent), [false, false, true, true]);
assert.equal(rows[2].height, 14);
assert.ok(rows[0].height > 14 && height <= 200);
assert.equal(rowAt({ rows, height, byCpu }, rows[3].y + 1).cpu, 3);
"#,
    );
}

#[test]
fn mouse_and_keys_are_those_of_a_map_or_of_perfetto() {
    node(
        "view-node-hands",
        r#"
import { actionOf, kept, selects, wheelOf } from "./hands.js";
const wheel = (more) => ({ ctrlKey: false, shiftKey: false, deltaX: 0, deltaY: 100, ...more });
const all = [{}, { ctrlKey: true }, { shiftKey: true }, { deltaX: 200 }];
assert.deepEqual(all.map((more) => wheelOf("map", wheel(more))), ["zoom", "height", "lanes", "time"]);
assert.deepEqual(all.map((more) => wheelOf("perfetto", wheel(more))), ["lanes", "zoom", "time", "time"]);
// A drag moves on a map and selects in Perfetto, the other way with the shift key; on the axis it always selects.
const drags = [[false, false], [true, false], [false, true]].map(([shiftKey, axis]) => ({ shiftKey, axis }));
assert.deepEqual(drags.map((press) => selects("map", press)), [false, true, true]);
assert.deepEqual(drags.map((press) => selects("perfetto", press)), [true, false, true]);
const keys = ["w", "f", "m", "r", "q", ",", ".", "A", "B", "W", "Z", "x"];
const none = undefined;
assert.deepEqual(keys.map((key) => actionOf("map", key)), ["in", none, "colour", none, none, "cursorLeft", "cursorRight", "markA", "markB", "in", "fit", none]);
assert.deepEqual(keys.map((key) => actionOf("perfetto", key)), ["in", "fit", "mark", "grow", "panel", "former", "next", "markA", "markB", "in", "fit", none]);
assert.equal(kept("a=b; schedviz-hands=perfetto;c=d", "schedviz-hands"), "perfetto");
assert.equal(kept("schedviz-hands2=perfetto", "schedviz-hands"), "");
"#,
    );
}

#[test]
fn markers_have_their_distance_and_are_in_the_address() {
    node(
        "view-node-markers",
        r#"
globalThis.requestAnimationFrame = () => 0;
const { change, read, state, written } = await import("./state.js");
const { aboutMarkers, headsOf, setMarker } = await import("./marks.js");
state.traces = [{ index: 0, head: { span: 1e9, folds: [], cpus: [], tasks: [] }, zero: 0, collapsed: new Set(), scroll: 0 }];
assert.equal(aboutMarkers({ a: null, b: null }), "");
assert.equal(aboutMarkers({ a: 1e8, b: null }), "A 0.100000000 s");
assert.equal(aboutMarkers({ a: 1e8, b: 3.5e8 }), "A 0.1000 s  ·  B 0.3500 s  ·  B − A 250 ms");
assert.equal(aboutMarkers({ a: 3e6, b: 1e6 }), "A 0.003000 s  ·  B 0.001000 s  ·  B − A −2.00 ms");
// Neither head hides the other; the one that is further to the right has its head there.
const place = (time) => 100 + time;
assert.deepEqual(headsOf({ a: 0, b: 50 }, place, 1), { a: 100, b: 150 });
assert.deepEqual(headsOf({ a: 7, b: 7 }, place, 1), { a: 101, b: 113 });
assert.deepEqual(headsOf({ a: 10, b: 6 }, place, 2), { a: 120, b: 96 });
assert.deepEqual(headsOf({ a: null, b: 6 }, place, 1), { a: NaN, b: 106 });
setMarker("a", 1e8 + 0.4);
setMarker("b", 3e8);
assert.deepEqual(state.markers, { a: 1e8, b: 3e8 });
const address = written();
// A marker that is set where it is goes away.
setMarker("b", 3e8);
assert.deepEqual(state.markers, { a: 1e8, b: null });
change({ markers: { a: null, b: null } });
read(address);
assert.deepEqual(state.markers, { a: 1e8, b: 3e8 });
read("");
assert.deepEqual(state.markers, { a: null, b: null });
"#,
    );
}

#[test]
fn a_path_is_drawn_over_lanes_and_rows_and_says_whose_it_is() {
    node(
        "view-node-trail",
        r#"
globalThis.requestAnimationFrame = () => 0;
const { stretches } = await import("./trail.js");
const { pathChoices, pathName, pathTask } = await import("./pathpick.js");
const { pathWords } = await import("./waitpanel.js");
const { state } = await import("./state.js");
// Ten nanoseconds a pixel from 1000 on; running is in ink, the state that has most of a part decides.
const scale = { left: 100, right: 200, from: 1000, perPixel: 10, scale: 1 };
const colors = ["", "a", "b", "c", "d", "e", "waking", "asleep", "unknown", "throttled"];
const parts = [[0, 900, 7, 0, 1, [[0, 900]]], [900, 1100, 7, 0, 1, [[0, 200]]], [1100, 1300, 8, 1, 2, [[0, 50], [2, 150]]], [1300, 1400, 8, null, 1, [[7, 100]]], [1400, 9000, 9, 5, 1, [[0, 7600]]]];
const heights = new Map([[7, 10], [8, 30]]);
const found = stretches(parts, scale, ([, , pid]) => heights.get(pid) ?? null, colors, "ink");
assert.deepEqual(found.map((one) => one && [one.x, one.end, one.y, one.color, one.isOn, one.isWhole]),
  [[100, 110, 10, "ink", true, true], [110, 130, 30, "b", true, false], [130, 140, 30, "asleep", false, true], null]);
// The question and the words of each choice.
const trace = { index: 0, zero: 100, head: { span: 5000, tasks: [{ pid: 7, comm: "make" }] } };
assert.deepEqual([pathTask(trace), pathChoices(trace).length, pathName(trace, { pid: 3, command: "sh" })], [{}, 1, "sh 3"]);
[state.highlight, state.place] = [{ trace: 0, pid: 7 }, { trace: 0, cpu: 0, time: 1900 }];
assert.deepEqual(pathChoices(trace).map(([value]) => value), ["", "7", "7,1900"]);
state.along = { trace: 0, pid: 7, at: 1900 };
assert.deepEqual([pathTask(trace), pathChoices(trace).length], [{ of: 7, at: 2000 }, 3]);
assert.match(pathName(trace, null), /^make 7, back from 0.000002 s$/);
assert.deepEqual(pathTask({ ...trace, index: 1 }), {});
// How much of a wait lay on the path; what is unknown is not none.
const share = { queued: 0, unknown: 0, task: null, is_untrusted: false };
assert.equal(pathWords(share, 1000, "sh 3"), "None of it lay on the critical path of sh 3.");
assert.equal(pathWords({ ...share, queued: 1000 }, 1000, "sh 3"), "All of it lay on the critical path of sh 3.");
assert.match(pathWords({ ...share, queued: 250, unknown: 10 }, 1000, "sh 3"), /^250 ns of it \(25.*%\) lay on the critical path of sh 3; for 10 ns of it the path is unknown\.$/);
assert.match(pathWords({ ...share, unknown: 10 }, 1000, "sh 3"), /^Whether it lay on the critical path of sh 3 is unknown/);
assert.match(pathWords({ ...share, none: "no exec" }, 1000, ""), /unknown/);
"#,
    );
}

#[test]
fn rows_form_trees_and_keys_go_from_row_to_row() {
    node(
        "view-node-family",
        r#"
globalThis.requestAnimationFrame = () => 0;
const { family, inTree } = await import("./family.js");
const { rowBeside } = await import("./rowkeys.js");
const { between } = await import("./rowarrows.js");
const task = (pid, parent = null) => ({ pid, parent });
//            0         1           2           3           4         5             6
const tasks = [task(1), task(10, 1), task(11, 10), task(12, 10), task(2), task(20, 2), task(30, 99)];
const shown = (places, of = tasks) => { const { places: order, depths } = inTree(places, of); return order.map((place) => `${of[place].pid}:${depths.get(place)}`).join(" "); };
// Siblings keep the order in which they come.
assert.equal(shown([5, 3, 2, 6, 1, 4, 0]), "30:0 2:0 20:1 1:0 10:1 12:2 11:2");
// A task whose parent has no row is below the nearest ancestor that has one.
assert.equal(shown([0, 2, 3, 5]), "1:0 11:1 12:1 20:0");
assert.deepEqual([...family(tasks, 10)].sort(), [1, 2, 3]);
assert.deepEqual([...family(tasks, 7)], []);
// PIDs that were used again: a cycle ends, and every task has one row.
const cycle = [task(1, 2), task(2, 1), task(3, 3), task(4, 2)];
assert.equal(shown([0, 1, 2, 3], cycle).split(" ").length, 4);
assert.deepEqual([...family(cycle, 1)].sort(), [0, 1, 3]);
// Deep trees, and many tasks.
const deep = Array.from({ length: 20000 }, (_, n) => task(n + 1, n === 0 ? null : n));
assert.equal(inTree(deep.map((_, place) => place), deep).depths.get(19999), 19999);
// Keys: from the path to the rows and back to the lanes.
const pids = [-1, 7, 8];
assert.deepEqual([rowBeside(pids, -1, 1), rowBeside(pids, 8, 1), rowBeside(pids, 7, -1), rowBeside(pids, -1, -1), rowBeside(pids, 99, 1)], [7, 8, -1, null, -1]);
// Arrows lead between rows in sight, within the view.
const wakeups = [[5, 7, 8], [15, 7, 8], [16, null, 8], [17, 7, 9], [18, 8, 8], [19, 8, 7], [25, 7, 8]];
const seen = between(wakeups, [10, 20], (pid) => pids.includes(pid), -1);
assert.deepEqual([seen.own, seen.others], [[], [[15, 7, 8], [19, 8, 7]]]);
assert.deepEqual(between(wakeups, [10, 20], (pid) => pids.includes(pid), 8).own.length, 2);
"#,
    );
}
