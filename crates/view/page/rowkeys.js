// Keys among the rows of tasks: the cursor goes from the lanes to the row of the critical path, and on to the rows below.

import { change, state } from "./state.js";

/** @typedef {import("./pane.js").Pane} Pane */

/** The row of the critical path among the rows. */
const PATH = -1;

/** The PIDs of the rows, from above to below: a page without a server has no path. @param {Pane} pane */
const pidsOf = ({ trace }) => [...(state.static ? [] : [PATH]), ...trace.rows.places().map((place) => trace.head.tasks[place].pid)];

/** Whether the rows of a trace are shown. @param {Pane} pane */
const areShown = (pane) => {
  const { below, bottom } = pane.places();
  return below > bottom;
};

/** The row that the cursor goes to from another one; null for the lanes above. @param {number[]} pids from above to below @param {number} from
 * @param {1 | -1} step @returns {number | null} */
export function rowBeside(pids, from, step) {
  const at = pids.indexOf(from);
  // One that has no row any more begins anew.
  if (at < 0) return pids[0];
  return at + step < 0 ? null : pids[Math.min(at + step, pids.length - 1)];
}

/** @param {Pane} pane @param {number | null} pid */
function goTo(pane, pid) {
  const { trace } = pane;
  const place = state.place ?? { trace: trace.index, cpu: trace.head.cpus[0]?.cpu ?? 0, time: Math.round(state.from + state.span / 2) };
  change({ row: pid === null ? null : { trace: trace.index, pid }, place });
  const task = trace.rows.places().find((place) => trace.head.tasks[place].pid === pid);
  if (task !== undefined) pane.revealTask(task);
}

/** Moves the cursor to the next row above or below, where it is among the rows or at the last lane. Returns whether it moved. @param {Pane} pane
 * @param {1 | -1} step */
export function stepRows(pane, step) {
  const { layout, trace } = pane;
  if (!areShown(pane)) return false;
  if (state.row?.trace === trace.index) {
    goTo(pane, rowBeside(pidsOf(pane), state.row.pid, step));
    return true;
  }
  const isLast = state.place?.trace === trace.index && layout.byCpu.get(state.place.cpu) === layout.rows.at(-1);
  if (step < 0 || !isLast) return false;
  goTo(pane, pidsOf(pane)[0] ?? null);
  return true;
}

/** Moves the cursor from the lanes to the rows, or back. Returns whether there are rows. @param {Pane} pane */
export function jumpRows(pane) {
  if (!areShown(pane)) return false;
  const { trace } = pane;
  if (state.row?.trace === trace.index) goTo(pane, null);
  else {
    const pids = pidsOf(pane);
    const highlighted = state.highlight?.trace === trace.index ? state.highlight.pid : PATH;
    goTo(pane, pids.includes(highlighted) ? highlighted : pids[0] ?? null);
  }
  return true;
}

/** The part of a hit that says which row the cursor is on; null on the lanes. @param {Pane} pane
 * @returns {{ task: number, path: boolean, region: "tasks" } | null} */
export function rowHit(pane) {
  const { trace } = pane;
  if (state.row?.trace !== trace.index || !areShown(pane)) return null;
  const { pid } = state.row;
  const task = pid === PATH ? PATH : trace.rows.places().find((place) => trace.head.tasks[place].pid === pid) ?? PATH;
  return { task, path: pid === PATH, region: "tasks" };
}
