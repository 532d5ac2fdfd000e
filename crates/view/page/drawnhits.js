// What is drawn over a pane, at a place of the mouse: markers, notes and marks of losses on the axis, arrows of the highlighted task. Each has a tip
// and a click.

import { go } from "./entries.js";
import { placesAt } from "./findings.js";
import { xOf } from "./lanes.js";
import { COLORS, headsOf } from "./marks.js";
import { aboutNote, noteAt, showNote } from "./notes.js";
import { change, named, state, taskOf } from "./state.js";
import { duration, seconds } from "./time.js";

/** @typedef {import("./pane.js").Pane} Pane */
/** What is drawn at a place: its words, and what a click does. @typedef {{ text: string, click: () => void }} Drawn */

/** The distance in CSS pixels at which the mouse is on a line. */
const NEAR = 3;
/** The edges of the marks of the axis, from the line below it, in CSS pixels. */
const [ABOVE, BELOW] = [9, 13];

/** Returns what is drawn at a place of a pane's canvas, in CSS pixels. @param {Pane} pane @param {number} x @param {number} y @returns {Drawn | null} */
export function drawnAt(pane, x, y) {
  const [scale, places] = [pane.scale(), pane.places()];
  const s = scale.scale;
  const [left, top] = [x * s, y * s];
  if (left < scale.left) return null;
  if (top >= places.top - ABOVE * s && top <= places.top + BELOW * s) return onAxis(pane, left, scale);
  return top >= places.lanes && top < places.bottom ? arrowAt(pane, left, top, scale, places) : null;
}

/** @param {Pane} pane @param {number} x in device pixels @param {import("./lanes.js").Scale} scale @returns {Drawn | null} */
function onAxis({ trace }, x, scale) {
  const place = (/** @type {number} */ aligned) => xOf(scale, aligned + trace.zero);
  const { a, b } = state.markers;
  const heads = headsOf(state.markers, place, scale.scale);
  for (const name of /** @type {(keyof typeof COLORS)[]} */ (["a", "b"])) {
    const at = state.markers[name];
    if (at === null || Math.abs(heads[name] - x) > 7 * scale.scale) continue;
    const both = a !== null && b !== null && a !== b ? /** @type {[number, number]} */ ([Math.min(a, b), Math.max(a, b)]) : null;
    const text = `marker ${name.toUpperCase()}: ${seconds(at, 1)} s${both ? `\nB − A: ${(b ?? 0) < (a ?? 0) ? "−" : ""}${duration(both[1] - both[0])}\nclick: select what lies between` : ""}`;
    return { text, click: () => both && change({ selection: both }) };
  }
  const note = noteAt(x, place, scale.scale);
  if (note) return { text: aboutNote(note.note), click: () => showNote(note.note, note.n) };
  const [lost] = placesAt(trace, x, scale);
  if (!lost) return null;
  const { text, at, cpu } = lost;
  return {
    text: `${text}\nhere: CPU ${cpu} at ${seconds(at - trace.zero, 1)} s\nclick: the findings about the trace`,
    click: () => {
      go({ trace, from: at, to: at, cpu, pid: null });
      change({ tab: "findings" });
    },
  };
}

/** The arrow of the highlighted task at a place of the lanes. @param {Pane} pane @param {number} x @param {number} y both in device pixels
 * @param {import("./lanes.js").Scale} scale @param {{ lanes: number }} places @returns {Drawn | null} */
function arrowAt({ trace, layout }, x, y, scale, places) {
  const { highlight } = state;
  const { task } = trace;
  if (!task || highlight?.trace !== trace.index) return null;
  const middle = (/** @type {number} */ cpu) => {
    const row = layout.byCpu.get(cpu);
    return row ? places.lanes + row.y - trace.scroll + row.bar / 2 : NaN;
  };
  const isOn = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to) => {
    const [low, high] = [Math.min(middle(from), middle(to)), Math.max(middle(from), middle(to))];
    // Within one lane the mark is a dot, which leaves the lane its own tip.
    return high - low > 1 && Math.abs(xOf(scale, at) - x) <= NEAR * scale.scale && y >= low && y <= high;
  };
  const name = (/** @type {number} */ pid) => named(taskOf(trace, pid) ?? { pid, comm: "" });
  const when = (/** @type {number} */ at) => `${seconds(at - trace.zero, 1)} s`;
  const place = (/** @type {number} */ at, /** @type {number} */ cpu) => ({ trace: trace.index, cpu, time: at - trace.zero });
  for (const [at, who, from, to] of task.wakeups) {
    if (isOn(at, from, to)) return { text: `woken at ${when(at)} by ${name(who)} on CPU ${from}, for CPU ${to}\nclick: the waker`, click: () => change({ highlight: { trace: trace.index, pid: who }, place: place(at, from), tab: "task" }) };
  }
  for (const [at, who, from, to] of task.woke) {
    if (isOn(at, from, to)) return { text: `woke ${name(who)} at ${when(at)} from CPU ${from}, for CPU ${to}\nclick: the woken task`, click: () => change({ highlight: { trace: trace.index, pid: who }, place: place(at, to), tab: "task" }) };
  }
  for (const [at, from, to, cause] of task.migrations) {
    if (isOn(at, from, to)) return { text: `moved at ${when(at)} from CPU ${from} to CPU ${to}: ${cause}\nclick: all CPUs then`, click: () => change({ place: place(at, to), tab: "here" }) };
  }
  return null;
}
