// The rows of the whole machine: running and waiting tasks, violation of work conservation, migrations by cause.

import { tilesInView, levelFor, xOf } from "./lanes.js";
import { causeColor, css } from "./palette.js";
import { MACHINE } from "./tiles.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./api.js").MachineTile} MachineTile */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** A column in view: its edges in device pixels and its values.
 * @typedef {{ x: number, right: number, running: number, waiting: number, most: number, violation: number, tile: MachineTile,
 *   column: number }} Column */

/** Returns the columns in view, from left to right. @param {Trace} trace @param {Scale} scale @returns {Column[]} */
export function columnsInView(trace, scale) {
  const level = levelFor(scale.perPixel, trace.tiles.levels);
  /** @type {Column[]} */
  const columns = [];
  tilesInView(trace, scale, level, (index, x, width) => {
    const found = trace.tiles.get(level, MACHINE, index);
    if (!found) return;
    const tile = /** @type {MachineTile} */ (found.kept.tile);
    const end = Math.min(tile.columns, Math.ceil(found.first + found.columns));
    const limit = xOf(scale, trace.head.span);
    for (let column = Math.floor(found.first); column < end; column++) {
      const left = x + ((column - found.first) * width) / found.columns;
      const right = left + width / found.columns;
      const outside = right < scale.left || left > scale.right || left >= limit;
      if (outside || Number.isNaN(tile.running[column])) continue;
      columns.push({
        x: left, right: Math.min(right, limit), running: tile.running[column], waiting: tile.waiting[column],
        most: tile.waitingMax[column], violation: tile.violation[column], tile, column,
      });
    }
  });
  return columns.sort((a, b) => a.x - b.x);
}

/** The heights of the machine's rows in CSS pixels. */
export const ROWS = { lines: 58, violation: 9, migrations: 16, gap: 4 };
export const HEIGHT = ROWS.lines + ROWS.violation + ROWS.migrations + 3 * ROWS.gap;

/** Draws the rows from `top` on. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Scale} scale @param {number} top
 * @param {Theme} theme */
export function drawMachine(context, trace, scale, top, theme) {
  const columns = columnsInView(trace, scale);
  const s = scale.scale;
  const [lines, violation] = [ROWS.lines * s, top + (ROWS.lines + ROWS.gap) * s];
  const cpus = trace.head.cpus.length;
  const most = columns.reduce((most, column) => Math.max(most, column.running + column.most), cpus) * 1.04;
  drawLines(context, columns, cpus, most, scale, top, lines, theme);
  drawViolation(context, columns, violation, ROWS.violation * s, theme);
  drawMigrations(context, columns, trace, violation + (ROWS.violation + ROWS.gap) * s, ROWS.migrations * s);
  drawNames(context, scale, top, most, theme);
}

/** @param {CanvasRenderingContext2D} context @param {Column[]} columns @param {number} cpus @param {number} most @param {Scale} scale
 * @param {number} top @param {number} height @param {Theme} theme */
function drawLines(context, columns, cpus, most, scale, top, height, theme) {
  const y = (/** @type {number} */ value) => top + height - (value / most) * height;
  const area = (/** @type {string} */ fill, /** @type {(c: Column) => [number, number]} */ range) => {
    context.fillStyle = fill;
    context.beginPath();
    for (const column of columns) {
      const [low, high] = range(column);
      if (high > low) context.rect(column.x, y(high), column.right - column.x, y(low) - y(high));
    }
    context.fill();
  };
  area(theme.runningBand, (column) => [0, column.running]);
  area(theme.waitingBand, (column) => [column.running, column.running + column.waiting]);
  context.globalAlpha = 0.45;
  area(theme.waitingBand, (column) => [column.running + column.waiting, column.running + column.most]);
  context.globalAlpha = 1;
  const line = (/** @type {string} */ stroke, /** @type {(c: Column) => number} */ value) => {
    context.strokeStyle = stroke;
    context.lineWidth = Math.max(1, scale.scale);
    context.beginPath();
    columns.forEach((column, n) => {
      if (n === 0 || column.x > columns[n - 1].right + 0.5) context.moveTo(column.x, y(value(column)));
      else context.lineTo(column.x, y(value(column)));
      context.lineTo(column.right, y(value(column)));
    });
    context.stroke();
  };
  line(theme.waiting, (column) => column.running + column.waiting);
  line(theme.running, (column) => column.running);
  context.strokeStyle = theme.faint;
  context.setLineDash([2 * scale.scale, 3 * scale.scale]);
  context.beginPath();
  context.moveTo(scale.left, Math.round(y(cpus)) + 0.5);
  context.lineTo(scale.right, Math.round(y(cpus)) + 0.5);
  context.stroke();
  context.setLineDash([]);
}

/** A column's height is the share of its time in violation. @param {CanvasRenderingContext2D} context @param {Column[]} columns
 * @param {number} top @param {number} height @param {Theme} theme */
function drawViolation(context, columns, top, height, theme) {
  context.fillStyle = theme.violation;
  context.beginPath();
  for (const column of columns) {
    const part = column.violation * height;
    if (part > 0) context.rect(column.x, top + height - part, column.right - column.x, part);
  }
  context.fill();
  context.strokeStyle = theme.rule;
  context.lineWidth = 1;
  context.beginPath();
  if (columns.length) {
    context.moveTo(columns[0].x, Math.round(top + height) + 0.5);
    context.lineTo(columns[columns.length - 1].right, Math.round(top + height) + 0.5);
  }
  context.stroke();
}

/** Migrations of a few pixels together, stacked by cause; the scale is the square root of their number.
 * @param {CanvasRenderingContext2D} context @param {Column[]} columns @param {Trace} trace @param {number} top @param {number} height */
function drawMigrations(context, columns, trace, top, height) {
  const causes = trace.head.causes;
  const width = Math.max(2, Math.round(2 * (globalThis.devicePixelRatio || 1)));
  /** @type {Map<number, Float64Array>} */
  const bins = new Map();
  for (const { x, tile, column } of columns) {
    const bin = Math.floor(x / width);
    for (let cause = 0; cause < Math.min(tile.causes, causes.length); cause++) {
      const count = tile.migrations[column * tile.causes + cause];
      if (count === 0) continue;
      const counts = bins.get(bin) ?? new Float64Array(causes.length);
      counts[cause] += count;
      bins.set(bin, counts);
    }
  }
  const total = (/** @type {Float64Array} */ counts) => counts.reduce((sum, count) => sum + count, 0);
  const most = [...bins.values()].reduce((most, counts) => Math.max(most, total(counts)), 1);
  for (const [bin, counts] of bins) {
    const all = total(counts);
    const whole = Math.max(3, Math.sqrt(all / most) * height);
    let y = top + height;
    counts.forEach((count, cause) => {
      if (count === 0) return;
      const part = (count / all) * whole;
      context.fillStyle = css(causeColor(causes[cause]));
      context.fillRect(bin * width, y - part, width, part);
      y -= part;
    });
  }
}

/** @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} top @param {number} most @param {Theme} theme */
function drawNames(context, scale, top, most, theme) {
  const s = scale.scale;
  context.font = `${10 * s}px system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const x = scale.left - 6 * s;
  context.fillStyle = theme.running;
  context.fillText("running", x, top + (ROWS.lines - 8) * s);
  context.fillStyle = theme.waiting;
  context.fillText("+ waiting", x, top + (ROWS.lines - 22) * s);
  context.fillStyle = theme.faint;
  context.fillText(`${Math.floor(most)} tasks`, x, top + 7 * s);
  context.fillStyle = theme.violation;
  context.fillText("violation", x, top + (ROWS.lines + ROWS.gap + ROWS.violation / 2) * s);
  context.fillStyle = theme.faint;
  context.fillText("migrations", x, top + (ROWS.lines + 2 * ROWS.gap + ROWS.violation + ROWS.migrations / 2) * s);
}
