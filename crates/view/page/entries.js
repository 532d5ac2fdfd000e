// The entries that the panel lists, and the moves from one to the next.

import { searches } from "./details.js";
import { change, show, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** An entry: its own times of its trace, its CPU and its task where it has them. `place` tells entries apart that are equal otherwise.
 * `go` shows it, where it has a way of its own.
 * @typedef {{ trace: Trace, from: number, to: number, cpu: number | null, pid: number | null, place?: number, go?: () => void }} Entry */

/** The list on the panel by its name, and its entries in the order of its rows. @type {{ name: string, entries: Entry[] }} */
let listed = { name: "", entries: [] };
/** The entry that N and P move from: the list that has it, and the text that identifies it there. */
let current = { name: "", key: "" };

/** @param {Entry} entry */
const keyOf = ({ trace, from, to, cpu, pid, place }) => [trace.index, from, to, cpu, pid, place].join();

/** Begins a list on the panel, which takes the place of the former one. @param {string} name that no list of other entries has */
export const begin = (name) => void (listed = { name, entries: [] });

/** Adds an entry to the list on the panel. @param {Entry} entry @returns {Entry} */
export function add(entry) {
  listed.entries.push(entry);
  return entry;
}

/** @param {Entry | undefined} entry of the list on the panel */
export const isCurrent = (entry) => entry !== undefined && current.name === listed.name && current.key === keyOf(entry);

/** Makes an entry of a list the current one; without an entry there is none. @param {Entry | null} entry @param {string} [name] */
export function setCurrent(entry, name = listed.name) {
  current = { name, key: entry ? keyOf(entry) : "" };
}

/** Returns the window that shows a stretch of time, as its start and its length. An instant is the cursor at any zoom, which stays; a stretch
 * that is longer than the window, or hardly to be seen in it, has its own. @param {number} from @param {number} to
 * @param {{ from: number, span: number }} now @returns {[number, number]} */
export function windowFor(from, to, now) {
  const length = to - from;
  const isSeen = length === 0 || (length <= now.span * 0.8 && length >= now.span * 0.12);
  if (!isSeen) return [from - length * 0.6, Math.max(length, 1) * 2.2];
  const isInside = length === 0 && from >= now.from + now.span * 0.05 && from <= now.from + now.span * 0.95;
  return [isInside ? now.from : (from + to - now.span) / 2, now.span];
}

/** Shows an entry: its window with a margin, its CPU, its task. @param {Entry} entry */
export function go(entry) {
  const [from, to] = [entry.from - entry.trace.zero, entry.to - entry.trace.zero];
  setCurrent(entry);
  show(...windowFor(from, to, state));
  change({
    selection: to > from ? [from, to] : null,
    // The list stays that of the window that it was about.
    range: state.range,
    place: entry.cpu === null ? state.place : { trace: entry.trace.index, cpu: entry.cpu, time: from },
    highlight: entry.pid === null ? state.highlight : { trace: entry.trace.index, pid: entry.pid },
  });
}

/** Moves to the next or the previous entry: of a task in the order of time from the cursor, of a list in its order. @param {1 | -1} step */
export function advance(step) {
  const { entries } = listed;
  if (entries.length === 0) return;
  if (state.tab !== "task" || searches()) {
    const at = entries.findIndex(isCurrent);
    const entry = entries[Math.min(Math.max(at + step, 0), entries.length - 1)];
    return entry.go ? entry.go() : go(entry);
  }
  const now = state.place?.time ?? state.from + state.span / 2;
  const times = entries.map((entry) => entry.from - entry.trace.zero);
  const next = step > 0 ? times.findIndex((time) => time > now + 0.5) : times.findLastIndex((time) => time < now - 0.5);
  if (next < 0) return;
  const entry = entries[next];
  change({ place: { trace: entry.trace.index, cpu: entry.cpu ?? 0, time: times[next] } });
  if (times[next] < state.from || times[next] > state.from + state.span) show(times[next] - state.span / 2, state.span);
}
