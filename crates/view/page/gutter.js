// The gutter left of the lanes: the numbers of CPUs, and a column for each kind of groups, whose click collapses or expands a group.

import { KINDS, kindsOf } from "./layout.js";
import { state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Group} Group */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** @typedef {{ lanes: number, bottom: number }} Places */

/** The width of a column of groups, where the first begins, and the width of a gutter with at most one, in CSS pixels. */
const [COLUMN, FIRST, LEAST] = [14, 6, 76];

/** The width of the gutter where rows of tasks have their names in it, in CSS pixels. */
const NAMES = 150;

/** The width of the gutter in CSS pixels, the same for all traces. */
export function gutterWidth() {
  if (state.rows && !state.rowless) return NAMES;
  const kinds = Math.max(1, ...state.traces.map((trace) => kindsOf(trace).length));
  return LEAST + COLUMN * (kinds - 1);
}

/** Returns the group whose name or line is at this place of the gutter: `x` in CSS pixels, `y` from the top of the lanes in device pixels.
 * @param {Layout} layout @param {number} x @param {number} y @returns {Group | null} */
export function groupAt(layout, x, y) {
  const depth = Math.floor((x - FIRST) / COLUMN);
  const here = layout.groups.filter((group) => y >= group.y && y < group.y + group.height);
  // A collapsed group's name is wider than its column.
  return here.find((group) => group.depth === depth) ?? here.find((group) => group.collapsed) ?? (depth < 0 ? here[0] : here[here.length - 1]) ?? null;
}

/** Draws the gutter. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Layout} layout @param {number} right its right edge
 * in device pixels @param {Places} places @param {number} s device pixels per CSS pixel @param {Theme} theme */
export function drawGutter(context, trace, layout, right, places, s, theme) {
  context.save();
  context.beginPath();
  context.rect(0, places.lanes, right, places.bottom - places.lanes);
  context.clip();
  context.textBaseline = "middle";
  drawNumbers(context, trace, layout, right, places, s, theme);
  for (const group of layout.groups) {
    const [top, bottom] = [places.lanes + group.y - trace.scroll, places.lanes + group.y + group.height - trace.scroll];
    if (bottom < places.lanes || top > places.bottom) continue;
    if (group.depth === 0 && group.y > 0) {
      context.fillStyle = theme.rule;
      context.fillRect(FIRST * s, Math.round(top - 3 * s), right, 1);
    }
    drawGroup(context, group, [Math.max(top, places.lanes), Math.min(bottom, places.bottom)], s, theme);
  }
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Layout} layout @param {number} right @param {Places} places
 * @param {number} s @param {Theme} theme */
function drawNumbers(context, trace, layout, right, places, s, theme) {
  const size = Math.min(11, Math.max(8, (layout.pitch / s) * 0.8)) * s;
  const every = 2 ** Math.max(0, Math.ceil(Math.log2((size * 1.15) / layout.pitch)));
  context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = "right";
  context.fillStyle = theme.ink;
  const [outer] = KINDS.map(([kind]) => kind).filter((kind) => trace.head.folds.some((fold) => fold.kind === kind));
  /** @type {[number | null | undefined, number]} */
  let [group, within] = [NaN, 0];
  for (const row of layout.rows) {
    const own = outer ? trace.head.cpus[row.place][outer] : null;
    [group, within] = Object.is(own, group) ? [group, within + 1] : [own, 0];
    if (row.members || within % every !== 0) continue;
    const middle = places.lanes + row.y - trace.scroll + row.bar / 2 + 1;
    if (middle < places.lanes - size || middle > places.bottom + size) continue;
    context.fillStyle = row.silent ? theme.faint : theme.ink;
    // The first name stays whole above the lanes of a low group.
    context.fillText(String(row.cpu), right - 6 * s, trace.scroll === 0 ? Math.max(middle, places.lanes + size / 2) : middle);
  }
}

/** Draws a group: an open one as a line along its lanes, with its name turned upwards where that fits; a collapsed one by its name.
 * @param {CanvasRenderingContext2D} context @param {Group} group @param {[number, number]} bounds the edges of its part in view
 * @param {number} s @param {Theme} theme */
function drawGroup(context, group, [top, bottom], s, theme) {
  const size = Math.min(10.5 * s, Math.max(7 * s, bottom - top));
  context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
  context.fillStyle = theme.faint;
  const x = (FIRST + COLUMN * group.depth) * s;
  const center = x + (COLUMN / 2) * s;
  if (group.collapsed) {
    context.textAlign = "left";
    context.fillText(`▸ ${group.name}`, x + s, (top + bottom) / 2);
    return;
  }
  const arrow = bottom - top >= 9 * s;
  if (arrow) {
    context.textAlign = "center";
    context.fillText("▾", center, top + 6 * s);
  }
  const begin = top + (arrow ? 12 : 1) * s;
  const length = context.measureText(group.name).width + 6 * s;
  const middle = (begin + bottom) / 2;
  context.fillStyle = theme.rule;
  const line = (/** @type {number} */ from, /** @type {number} */ to) => to > from && context.fillRect(Math.round(center), from, Math.max(1, Math.round(s)), to - from);
  if (bottom - begin < length) return void line(begin, bottom - s);
  line(begin, middle - length / 2);
  line(middle + length / 2, bottom - s);
  context.save();
  context.translate(center, middle);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillStyle = theme.faint;
  context.fillText(group.name, 0, 0);
  context.restore();
}
