// The entries that the panel lists, and the moves from one to the next.

import { details } from "./details.js";
import { change, show, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** An entry: its own times of its trace, its CPU and its task where it has them.
 * `go` shows it, where it has a way of its own.
 * @typedef {{ trace: Trace, from: number, to: number, cpu: number | null, pid: number | null, go?: () => void }} Entry */

/** The entries on the panel, in the order of its rows. @type {Entry[]} */
export const entries = [];
/** The entry that N and P move from. */
let current = -1;

export const clear = () => void (entries.length = 0);

/** @param {number} place */
export const isCurrent = (place) => place >= 0 && place === current;

/** @param {number} place */
export const setCurrent = (place) => void (current = place);

/** Shows an entry: its window with a margin, its CPU, its task. @param {Entry} entry @param {number} [place] */
export function go(entry, place = -1) {
  const [from, to] = [entry.from - entry.trace.zero, entry.to - entry.trace.zero];
  const length = Math.max(to - from, 1000);
  current = place;
  if (length > state.span * 0.8 || length < state.span * 0.12) show(from - length * 0.6, length * 2.2);
  else show((from + to - state.span) / 2, state.span);
  change({
    selection: to > from ? [from, to] : null,
    place: entry.cpu === null ? state.place : { trace: entry.trace.index, cpu: entry.cpu, time: from },
    highlight: entry.pid === null ? state.highlight : { trace: entry.trace.index, pid: entry.pid },
  });
}

/** Moves to the next or the previous entry: of a task in the order of time from the cursor, of a list in its order. @param {1 | -1} step */
export function advance(step) {
  if (entries.length === 0) return;
  if (state.tab !== "task" || details.search) {
    current = Math.min(Math.max(current + step, 0), entries.length - 1);
    const entry = entries[current];
    return entry.go ? entry.go() : go(entry, current);
  }
  const now = state.place?.time ?? state.from + state.span / 2;
  const times = entries.map((entry) => entry.from - entry.trace.zero);
  const next = step > 0 ? times.findIndex((time) => time > now + 0.5) : times.findLastIndex((time) => time < now - 0.5);
  if (next < 0) return;
  const entry = entries[next];
  change({ place: { trace: entry.trace.index, cpu: entry.cpu ?? 0, time: times[next] } });
  if (times[next] < state.from || times[next] > state.from + state.span) show(times[next] - state.span / 2, state.span);
}
