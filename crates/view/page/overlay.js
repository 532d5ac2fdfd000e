// Marks over the lanes: a highlighted task with its waits, wakeups and migrations, the selection, the cursor.

import { xOf } from "./lanes.js";
import { drawMarkers } from "./marks.js";
import { causeColor, css } from "./palette.js";
import { state } from "./state.js";
import { duration } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

/** The number of arrows of a kind in view. */
const ARROWS = 600;

/** Draws the runs, waits, wakeups and migrations of the highlighted task.
 * @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Layout} layout @param {Scale} scale @param {number} top
 * @param {Theme} theme */
export function drawTask(context, trace, layout, scale, top, theme) {
  const task = trace.task;
  if (!task) return;
  const s = scale.scale;
  const middle = (/** @type {number} */ cpu) => {
    const row = layout.byCpu.get(cpu);
    return row ? top + row.y - trace.scroll + row.bar / 2 : null;
  };
  const box = (/** @type {[number, number, number]} */ [from, to, cpu]) => {
    const row = layout.byCpu.get(cpu);
    const [x, right] = [Math.max(scale.left, xOf(scale, from)), Math.min(scale.right, xOf(scale, to))];
    if (!row || right < scale.left || x > scale.right) return null;
    return { x, width: right - x, y: top + row.y - trace.scroll, height: row.bar };
  };
  // A wait narrower than a pixel is as pale as its share of the pixel.
  for (const wait of task.waits) {
    const place = box(wait);
    if (!place) continue;
    const height = Math.max(2 * s, place.height * 0.45);
    context.globalAlpha = Math.min(1, Math.max(place.width, 0.05));
    context.fillStyle = theme.waiting;
    hatched(context, place.x, place.y + place.height - height, Math.max(1, place.width), height, 4 * s, theme);
    context.globalAlpha = 1;
  }
  context.strokeStyle = theme.accent;
  context.lineWidth = Math.max(1, 1.5 * s);
  for (const run of task.runs) {
    const place = box(run);
    if (place && place.width >= 3 * s) context.strokeRect(place.x, place.y, place.width, place.height);
  }
  const arrow = arrows(context, scale, s);
  for (const [at, from, to, cause] of task.migrations) {
    const color = css(causeColor(cause));
    arrow(at, middle(from), middle(to), color, [5 * s, 3 * s]);
  }
  const incoming = arrows(context, scale, s);
  for (const [at, , from, to] of task.wakeups) incoming(at, middle(from), middle(to), theme.accent, []);
  const outgoing = arrows(context, scale, s);
  for (const [at, , from, to] of task.woke) outgoing(at, middle(from), middle(to), theme.faint, []);
}

/** Returns a function that draws an arrow from lane to lane, unless it falls on the one before.
 * @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} s */
function arrows(context, scale, s) {
  let [last, count] = [-Infinity, 0];
  return (/** @type {number} */ at, /** @type {number | null} */ from, /** @type {number | null} */ to, /** @type {string} */ color,
    /** @type {number[]} */ dash) => {
    const x = xOf(scale, at);
    if (from === null || to === null || x < scale.left || x > scale.right || x - last < 2 * s || count >= ARROWS) return;
    [last, count] = [x, count + 1];
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = Math.max(1, 1.25 * s);
    if (Math.abs(from - to) < 1) {
      context.beginPath();
      context.arc(x, to, 2.5 * s, 0, 2 * Math.PI);
      context.fill();
      return;
    }
    const head = (to > from ? -5 : 5) * s;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x, to);
    context.lineTo(x - 3 * s, to + head);
    context.lineTo(x + 3 * s, to + head);
    context.fill();
  };
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width @param {number} height
 * @param {number} step @param {Theme} theme */
function hatched(context, x, y, width, height, step, theme) {
  context.fillStyle = theme.ground;
  context.fillRect(x, y, width, height);
  if (width < 6) {
    context.fillStyle = theme.waiting;
    context.fillRect(x, y, width, height);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = theme.waiting;
  context.lineWidth = step / 3;
  context.beginPath();
  for (let at = x - height - ((x - height) % step); at < x + width; at += step) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.strokeRect(x, y, width, height);
  context.restore();
}

/** Draws the selection and the cursor over a pane. `origin` is the trace's own time of aligned time 0.
 * @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Layout} layout @param {Scale} scale
 * @param {{ top: number, lanes: number, bottom: number, below: number }} place @param {Theme} theme */
export function drawMarks(context, trace, layout, scale, place, theme) {
  const s = scale.scale;
  const x = (/** @type {number} */ aligned) => xOf(scale, aligned + trace.zero);
  const height = place.below - place.top;
  if (state.selection) {
    const [from, to] = state.selection;
    const [left, right] = [Math.max(scale.left, x(from)), Math.min(scale.right, x(to))];
    if (right >= left) {
      context.fillStyle = theme.select;
      context.fillRect(left, place.top, right - left, height);
      context.fillStyle = theme.accent;
      context.fillRect(left, place.top, Math.max(1, s), height);
      context.fillRect(right, place.top, Math.max(1, s), height);
      const text = duration(to - from);
      context.font = `600 ${11 * s}px system-ui, "DejaVu Sans", sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      const width = context.measureText(text).width + 10 * s;
      context.fillStyle = theme.ground;
      context.fillRect((left + right - width) / 2, place.top + 2 * s, width, 16 * s);
      context.fillStyle = theme.accent;
      context.fillText(text, (left + right) / 2, place.top + 10 * s);
    }
  }
  if (state.place) {
    const at = x(state.place.time);
    if (at >= scale.left && at <= scale.right) {
      context.fillStyle = theme.ink;
      context.fillRect(Math.round(at), place.top, Math.max(1, s), height);
    }
    const row = state.place.trace === trace.index && state.row?.trace !== trace.index ? layout.byCpu.get(state.place.cpu) : undefined;
    if (row) {
      context.strokeStyle = theme.ink;
      context.lineWidth = Math.max(1, s);
      const y = place.lanes + row.y - trace.scroll;
      context.save();
      context.beginPath();
      context.rect(0, place.lanes, scale.right, place.bottom - place.lanes);
      context.clip();
      context.strokeRect(scale.left - 0.5, Math.round(y) - 0.5, scale.right - scale.left, row.height + 0.5);
      context.restore();
    }
  }
  drawMarkers(context, x, scale, place.top, place.below);
  const zero = x(0);
  if (state.traces.length > 1 && zero > scale.left && zero < scale.right) {
    context.strokeStyle = theme.faint;
    context.setLineDash([3 * s, 3 * s]);
    context.beginPath();
    context.moveTo(Math.round(zero) + 0.5, place.top);
    context.lineTo(Math.round(zero) + 0.5, place.below);
    context.stroke();
    context.setLineDash([]);
  }
}
