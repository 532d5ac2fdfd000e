// Ticks on the lanes and rows for the events that the list of events has chosen.

import { ticksOf } from "./events.js";
import { eachRow } from "./rowdraw.js";
import { xOf } from "./lanes.js";

/** @typedef {import("./state.js").Trace} Trace */

/** Draws the ticks: below each lane's upper edge those of its CPU, on the row of a task those about it.
 * @param {CanvasRenderingContext2D} context @param {Trace} trace @param {import("./layout.js").Layout} layout @param {import("./lanes.js").Scale} scale
 * @param {{ lanes: number, bottom: number, below: number }} places @param {{ ink: string, ground: string }} theme */
export function drawTicks(context, trace, layout, scale, places, theme) {
  const found = ticksOf(trace);
  if (!found) return;
  const s = scale.scale;
  const { from, to, columns, answer } = found;
  const x = (/** @type {number} */ column) => Math.round(xOf(scale, from + ((column + 0.5) * (to - from)) / columns));
  const tick = (/** @type {number} */ column, /** @type {number} */ y, /** @type {number} */ height) => {
    const at = x(column);
    if (at < scale.left || at > scale.right) return;
    context.fillStyle = theme.ground;
    context.fillRect(at - Math.ceil(s), y, Math.max(3, Math.round(3 * s)), height + Math.ceil(s));
    context.fillStyle = theme.ink;
    context.fillRect(at, y, Math.max(1, Math.round(s)), height);
  };
  context.save();
  context.beginPath();
  context.rect(scale.left, places.lanes, scale.right - scale.left, places.bottom - places.lanes);
  context.clip();
  for (const [column, cpu] of answer.cpus ?? []) {
    const row = layout.byCpu.get(cpu);
    if (row) tick(column, Math.round(places.lanes + row.y - trace.scroll), Math.max(3 * s, Math.round(row.bar * 0.4)));
  }
  context.restore();
  if (places.below <= places.bottom) return;
  /** @type {Map<number, number[]>} */
  const byPid = new Map();
  for (const [column, pid] of answer.tasks ?? []) {
    const known = byPid.get(pid);
    if (known) known.push(column);
    else byPid.set(pid, [column]);
  }
  eachRow(trace, places, s, (place, y, bar) => byPid.get(trace.head.tasks[place]?.pid ?? -1)?.forEach((column) => tick(column, y, Math.max(3 * s, Math.round(bar * 0.4)))));
}
