// The critical path over the lanes and over the rows of tasks: a line along the CPU on which the path runs or is queued, and along the row of its task.

import { xOf } from "./lanes.js";
import { cpuFrom } from "./pathrow.js";
import { state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./api.js").PathPart} PathPart */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** A stretch of the line: its edges and its height on the canvas, its colour, whether it is on a CPU, and whether it stands for one segment.
 * @typedef {{ x: number, end: number, y: number, color: string, isOn: boolean, isWhole: boolean }} Stretch */

/** The place of running among the states. */
const RUNNING = 0;
/** The width of the line on a CPU, and off it, and that of the ground beside it, in CSS pixels. */
const [THICK, THIN, HALO] = [3, 1.25, 1];
/** The length from which a stretch is joined with its neighbours by a line, in CSS pixels. */
const JOINED = 3;

/** The stretches of the path in view; one that is off the canvas or has no place is left out.
 * @param {PathPart[]} parts @param {Scale} scale @param {(part: PathPart, place: number) => number | null} heightOf @param {string[]} colors @param {string} ink
 * @returns {(Stretch | null)[]} */
export function stretches(parts, scale, heightOf, colors, ink) {
  /** @type {(Stretch | null)[]} */
  const found = [];
  parts.forEach((part, place) => {
    const [from, to, , cpu, tasks, times] = part;
    const [x, end] = [xOf(scale, from), xOf(scale, to)];
    if (end < scale.left || x > scale.right) return;
    const y = heightOf(part, place);
    // The state that has most of the part.
    const [state] = times.reduce((most, one) => (one[1] > most[1] ? one : most), times[0] ?? [RUNNING, 0]);
    found.push(y === null ? null : { x: Math.max(x, scale.left), end: Math.min(end, scale.right), y, color: state === RUNNING ? ink : colors[state] || ink, isOn: cpu !== null, isWhole: tasks === 1 });
  });
  return found;
}

/** Draws stretches one after another, and what joins them. @param {CanvasRenderingContext2D} context @param {(Stretch | null)[]} all @param {number} s
 * @param {Theme} theme */
function drawStretches(context, all, s, theme) {
  const width = (/** @type {Stretch} */ stretch) => Math.max(1, Math.round((stretch.isOn ? THICK : THIN) * s));
  const isLong = (/** @type {Stretch} */ { x, end }) => end - x >= JOINED * s;
  const each = (/** @type {(stretch: Stretch, before: Stretch | null) => void} */ draw) => {
    let before = /** @type {Stretch | null} */ (null);
    for (const stretch of all) {
      if (stretch) draw(stretch, before);
      before = stretch;
    }
  };
  for (const isGround of [true, false]) {
    const more = isGround ? HALO * s : 0;
    each((stretch, before) => {
      if (!before || Math.abs(before.y - stretch.y) < 1 || !(isLong(before) || isLong(stretch))) return;
      context.fillStyle = isGround ? theme.ground : theme.ink;
      const [top, bottom] = [Math.min(before.y, stretch.y), Math.max(before.y, stretch.y)];
      const line = Math.max(1, Math.round(THIN * s));
      context.globalAlpha = isGround ? 0.6 : 0.8;
      context.fillRect(Math.round(stretch.x - line / 2) - more, top, line + 2 * more, bottom - top);
      context.globalAlpha = 1;
    });
    each((stretch) => {
      const high = width(stretch);
      context.fillStyle = isGround ? theme.ground : stretch.color;
      context.fillRect(Math.round(stretch.x) - more, Math.round(stretch.y - high / 2) - more, Math.max(1, Math.round(stretch.end) - Math.round(stretch.x)) + 2 * more, high + 2 * more);
    });
  }
}

/** Draws the path over the lanes. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {import("./layout.js").Layout} layout
 * @param {Scale} scale @param {number} top @param {string[]} colors of the states @param {Theme} theme */
export function drawTrail(context, trace, layout, scale, top, colors, theme) {
  const parts = partsOf(trace);
  const heightOf = (/** @type {PathPart} */ [, , , cpu], /** @type {number} */ place) => {
    const row = layout.byCpu.get(cpu ?? cpuFrom(parts, place));
    // Below the names of tasks.
    return row ? top + row.y - trace.scroll + Math.max(row.bar / 2, row.bar - 3 * scale.scale) : null;
  };
  drawStretches(context, stretches(parts, scale, heightOf, colors, theme.ink), scale.scale, theme);
}

/** Draws the path over the rows of tasks. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Map<number, number>} heights the lower
 * edges of the rows in sight, by the PIDs of their tasks @param {Scale} scale @param {string[]} colors @param {Theme} theme */
export function drawRowTrail(context, trace, heights, scale, colors, theme) {
  const heightOf = (/** @type {PathPart} */ [, , pid]) => heights.get(pid) ?? null;
  drawStretches(context, stretches(partsOf(trace), scale, heightOf, colors, theme.ink), scale.scale, theme);
}

/** The parts of the path that are shown; none where it is not to be shown. @param {Trace} trace @returns {PathPart[]} */
function partsOf(trace) {
  const { answer } = trace.rows.path;
  return state.trail && state.rows && !state.static && answer && !answer.none ? answer.parts : [];
}
