// The rows of the whole machine: running and waiting tasks, violation of work conservation, migrations by cause.

import { isDoubtful } from "./findings.js";
import { levelFor, tilesInView, xOf } from "./lanes.js";
import { causeColor, rgbOf } from "./palette.js";
import { Raster } from "./raster.js";
import { MACHINE } from "./tiles.js";
import { duration, percent, seconds } from "./time.js";
import { isRecorded, notRecorded } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./api.js").MachineTile} MachineTile */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** The machine by pixels from the left edge on: mean numbers of running and waiting tasks, the most waiting ones, the share of time in
 * violation. Where nothing is known, `running` is NaN.
 * @typedef {{ running: Float32Array, waiting: Float32Array, most: Float32Array, violation: Float32Array }} Profile */

/** Calls `each` for the columns in view with their edges in device pixels. @param {Trace} trace @param {Scale} scale
 * @param {(tile: MachineTile, column: number, x: number, right: number) => void} each */
function columnsInView(trace, scale, each) {
  const level = levelFor(scale.perPixel, trace.tiles.levels);
  const limit = xOf(scale, trace.head.span);
  tilesInView(trace, scale, level, (index, x, width) => {
    const found = trace.tiles.get(level, MACHINE, index);
    if (!found) return;
    const tile = /** @type {MachineTile} */ (found.kept.tile);
    const end = Math.min(tile.columns, Math.ceil(found.first + found.columns));
    for (let column = Math.floor(found.first); column < end; column++) {
      const left = x + ((column - found.first) * width) / found.columns;
      const right = Math.min(left + width / found.columns, limit);
      if (right >= scale.left && left <= scale.right && left < limit && !Number.isNaN(tile.running[column])) each(tile, column, left, right);
    }
  });
}

/** @param {Trace} trace @param {Scale} scale @returns {Profile} */
export function profileOf(trace, scale) {
  const width = scale.right - scale.left;
  const [running, waiting, most, violation] = [0, 1, 2, 3].map(() => new Float32Array(width));
  running.fill(NaN);
  columnsInView(trace, scale, (tile, column, x, right) => {
    const [from, to] = [Math.max(0, Math.round(x) - scale.left), Math.round(right) - scale.left];
    running.fill(tile.running[column], from, to);
    waiting.fill(tile.waiting[column], from, to);
    most.fill(tile.waitingMax[column], from, to);
    violation.fill(tile.violation[column], from, to);
  });
  return { running, waiting, most, violation };
}

/** Fills the pixels of a profile within the trace that are not loaded yet. @param {Raster} raster @param {Trace} trace @param {Scale} scale
 * @param {Profile} profile @param {number} height @param {Theme} theme */
export function fillMissing(raster, trace, scale, profile, height, theme) {
  const first = Math.max(0, Math.round(xOf(scale, 0)) - scale.left);
  const end = Math.min(profile.running.length, Math.round(xOf(scale, trace.head.span)) - scale.left);
  for (let x = first; x < end; ) {
    const from = x;
    while (x < end && Number.isNaN(profile.running[x])) x++;
    if (x > from) raster.fill(from, x, 0, height, theme.missingRgb);
    else x++;
  }
}

/** The heights of the machine's rows in CSS pixels. */
export const ROWS = { lines: 58, violation: 9, migrations: 16, gap: 4 };
export const HEIGHT = ROWS.lines + ROWS.violation + ROWS.migrations + 3 * ROWS.gap;

/** A row of the machine. @typedef {"tasks" | "violation" | "migrations"} Part */

/** Returns the row at a height below the top of the machine's rows, both in device pixels; null outside of them. @param {number} y
 * @param {number} s device pixels per CSS pixel @returns {Part | null} */
export function partAt(y, s) {
  if (y < 0 || y >= HEIGHT * s) return null;
  const [violation, migrations] = [ROWS.lines + ROWS.gap / 2, ROWS.lines + ROWS.violation + 1.5 * ROWS.gap];
  return y < violation * s ? "tasks" : y < migrations * s ? "violation" : "migrations";
}

/** Returns the column of the machine at an instant of the trace's own time: its edges and its numbers; null where nothing is loaded.
 * @param {Trace} trace @param {number} time @param {number} perPixel */
export function machineAt(trace, time, perPixel) {
  const { head, tiles } = trace;
  if (time < 0 || time > head.span) return null;
  const level = levelFor(perPixel, tiles.levels);
  const length = head.tile.columns * 2 ** level;
  const index = Math.floor(time / length);
  const found = tiles.held(level, MACHINE, index);
  if (!found) return null;
  const tile = /** @type {MachineTile} */ (found.kept.tile);
  // A tile that stands in has columns of its own length.
  const column = length / found.columns;
  const at = Math.min(tile.columns - 1, Math.floor(found.first + (time - index * length) / column));
  if (Number.isNaN(tile.running[at])) return null;
  const from = index * length + (at - found.first) * column;
  const counts = head.causes.map((cause, n) => /** @type {[string, number]} */ ([cause, n < tile.causes ? tile.migrations[at * tile.causes + n] : 0]));
  return {
    from, to: Math.min(from + column, head.span), running: tile.running[at], waiting: tile.waiting[at], most: tile.waitingMax[at], violation: tile.violation[at],
    migrations: counts.filter(([, count]) => count > 0),
  };
}

/** Returns the text about the machine at an instant, in lines. @param {Trace} trace @param {number} time @param {number} perPixel */
export function aboutMachine(trace, time, perPixel) {
  const found = machineAt(trace, time, perPixel);
  const at = `${seconds(time - trace.zero, perPixel)} s`;
  if (time < 0 || time > trace.head.span) return [at, `${time < 0 ? "before the start" : "behind the end"} of this trace`];
  if (!found) return [at, "not read yet"];
  const cpus = trace.head.cpus.filter((place) => !place.silent).length;
  const doubtful = isDoubtful(trace) ? " (in doubt)" : "";
  const all = found.migrations.reduce((sum, [, count]) => sum + count, 0);
  const moved = notRecorded(trace.head, "sched_migrate_task") || [String(all), ...found.migrations.sort((a, b) => b[1] - a[1]).slice(0, 5).map(([cause, count]) => `${count} ${cause}`)].join("  ·  ");
  return [`All CPUs  ·  ${at}  ·  column of ${duration(found.to - found.from)}`, `running: mean ${found.running.toFixed(2)} on ${cpus} CPUs`,
    `waiting: mean ${found.waiting.toFixed(2)}, at most ${found.most}${doubtful}`, `in violation: ${percent(found.violation)} of the time${doubtful}`, `migrations: ${moved}`];
}

/** @type {WeakMap<Trace, Raster>} */
const rasters = new WeakMap();

/** Draws the rows from `top` on. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Scale} scale @param {number} top
 * @param {Theme} theme */
export function drawMachine(context, trace, scale, top, theme) {
  const profile = profileOf(trace, scale);
  const s = scale.scale;
  const raster = rasters.get(trace) ?? new Raster();
  rasters.set(trace, raster);
  raster.begin(scale.right - scale.left, HEIGHT * s);
  fillMissing(raster, trace, scale, profile, HEIGHT * s, theme);
  const [lines, violation] = [ROWS.lines * s, (ROWS.lines + ROWS.gap) * s];
  const cpus = trace.head.cpus.filter((place) => !place.silent).length;
  const most = 1.04 * profile.running.reduce((most, running, n) => (running + profile.most[n] > most ? running + profile.most[n] : most), cpus);
  drawLines(raster, profile, most, lines, s, theme);
  drawViolation(raster, profile, violation, ROWS.violation * s, theme);
  drawMigrations(raster, trace, scale, violation + (ROWS.violation + ROWS.gap) * s, ROWS.migrations * s);
  raster.draw(context, scale.left, top);
  context.fillStyle = theme.rule;
  context.fillRect(scale.left, Math.round(top + violation + ROWS.violation * s), scale.right - scale.left, 1);
  drawLimit(context, scale, Math.round(top + lines - (cpus / most) * lines) + 0.5, theme);
  drawNames(context, trace, scale, top, most, theme);
}

/** The areas of running and waiting tasks, with their edges as lines. @param {Raster} raster @param {Profile} profile @param {number} most
 * @param {number} height @param {number} s @param {Theme} theme */
function drawLines(raster, profile, most, height, s, theme) {
  const [runningBand, waitingBand, runningLine, waitingLine] = [theme.runningBand, theme.waitingBand, theme.running, theme.waiting].map(rgbOf);
  const y = (/** @type {number} */ value) => height - (value / most) * height;
  const edge = Math.max(1, s) / 2;
  const line = (/** @type {number} */ x, /** @type {number} */ now, /** @type {number} */ before, /** @type {number} */ rgb) => {
    const from = Number.isNaN(before) ? now : before;
    raster.fill(x, x + 1, Math.min(now, from) - edge, Math.max(now, from) + edge, rgb);
  };
  let [lastRunning, lastAll] = [NaN, NaN];
  profile.running.forEach((running, x) => {
    const [middle, above, peak] = [y(running), y(running + profile.waiting[x]), y(running + profile.most[x])];
    if (!Number.isNaN(running)) {
      raster.fill(x, x + 1, peak, above, waitingBand, 0.45);
      raster.fill(x, x + 1, above, middle, waitingBand);
      raster.fill(x, x + 1, middle, height, runningBand);
      line(x, above, lastAll, waitingLine);
      line(x, middle, lastRunning, runningLine);
    }
    [lastRunning, lastAll] = [middle, above];
  });
}

/** A dashed line at the number of CPUs. @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} y @param {Theme} theme */
function drawLimit(context, scale, y, theme) {
  context.strokeStyle = theme.faint;
  context.lineWidth = 1;
  context.setLineDash([2 * scale.scale, 3 * scale.scale]);
  context.beginPath();
  context.moveTo(scale.left, y);
  context.lineTo(scale.right, y);
  context.stroke();
  context.setLineDash([]);
}

/** A column's height is the share of its time in violation. @param {Raster} raster @param {Profile} profile @param {number} top
 * @param {number} height @param {Theme} theme */
function drawViolation(raster, profile, top, height, theme) {
  const rgb = rgbOf(theme.violation);
  profile.violation.forEach((share, x) => share > 0 && raster.fill(x, x + 1, top + height * (1 - share), top + height, rgb));
}

/** Migrations of a few pixels together, stacked by cause; the scale is the square root of their number.
 * @param {Raster} raster @param {Trace} trace @param {Scale} scale @param {number} top @param {number} height */
function drawMigrations(raster, trace, scale, top, height) {
  const causes = trace.head.causes;
  const width = Math.max(2, Math.round(2 * scale.scale));
  // Counted from the start of the trace, so that the columns of a bin stay the same while the window moves.
  const phase = Math.round(scale.from / scale.perPixel);
  /** @type {Map<number, Float64Array>} */
  const bins = new Map();
  columnsInView(trace, scale, (tile, column, x) => {
    const bin = Math.floor((Math.round(x) - scale.left + phase) / width);
    for (let cause = 0; cause < Math.min(tile.causes, causes.length); cause++) {
      const count = tile.migrations[column * tile.causes + cause];
      if (count === 0) continue;
      const counts = bins.get(bin) ?? new Float64Array(causes.length);
      counts[cause] += count;
      bins.set(bin, counts);
    }
  });
  const total = (/** @type {Float64Array} */ counts) => counts.reduce((sum, count) => sum + count, 0);
  const most = [...bins.values()].reduce((most, counts) => Math.max(most, total(counts)), 1);
  for (const [bin, counts] of bins) {
    const all = total(counts);
    const whole = Math.max(3, Math.sqrt(all / most) * height);
    let y = top + height;
    counts.forEach((count, cause) => {
      if (count === 0) return;
      const part = (count / all) * whole;
      raster.fill(bin * width - phase, bin * width - phase + width, y - part, y, causeColor(causes[cause]));
      y -= part;
    });
  }
}

/** @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Scale} scale @param {number} top @param {number} most
 * @param {Theme} theme */
function drawNames(context, trace, scale, top, most, theme) {
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
  context.fillText(isDoubtful(trace) ? "violation ⚠" : "violation", x, top + (ROWS.lines + ROWS.gap + ROWS.violation / 2) * s);
  context.fillStyle = theme.faint;
  context.fillText(isRecorded(trace.head, "sched_migrate_task") ? "migrations" : "not recorded", x, top + (ROWS.lines + 2 * ROWS.gap + ROWS.violation + ROWS.migrations / 2) * s);
}
