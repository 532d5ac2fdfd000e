// Tiles of lanes as pictures, one pixel wide per column: a share of time is a share of the height.

import { IDLE, NO_TASK, OFFLINE, UNKNOWN, WHOLE } from "./api.js";
import { BAND_ENDS, mixed, pixel } from "./palette.js";

/** @typedef {import("./api.js").LaneTile} LaneTile */
/** The colours of a picture: those of tasks by id as RGB numbers, and the others; the PID of the highlighted task.
 * @typedef {{ key: string, highlight: number | null, tasks: Uint32Array, other: number, mixedRgb: number, offline: number, hatch: number, ground: number, missing: number, bands: number[] }} Colors */
/** The heights of a lane in device pixels: from lane to lane, of the bar, of the strip of the queue's length.
 * @typedef {{ pitch: number, bar: number, strip: number }} Heights */

/** The number of tasks that a column shows one by one; the rest is drawn as mixed. */
const DEPTH = 3;

/** Returns the stack of a column from below: the largest tasks by their place, the mixed rest, unknown time. Idle and offline time
 * stay blank on top. Each entry is a colour with its share.
 * @param {LaneTile} tile @param {number} run @param {Colors} colors @returns {[number, number][]} */
export function stack(tile, run, colors) {
  /** @type {[number, number][]} */
  const tasks = [];
  let [rest, unknown] = [0, 0];
  for (let n = tile.entry[run]; n < tile.entry[run] + tile.entries[run]; n++) {
    const [id, share] = [tile.ids[n], tile.shares[n]];
    if (id === IDLE || id === OFFLINE) continue;
    if (id === UNKNOWN) unknown += share;
    else if (id >= NO_TASK) rest += share;
    else if (tasks.length < DEPTH) tasks.push([id, share]);
    else rest += share;
  }
  tasks.sort((a, b) => a[0] - b[0]);
  /** @type {[number, number][]} */
  const stacked = tasks.map(([id, share]) => [colors.tasks[id] ?? colors.other, share]);
  if (rest > 0) stacked.push([colors.mixedRgb, rest]);
  if (unknown > 0) stacked.push([colors.hatch, unknown]);
  return stacked;
}

/** Draws all lanes of a tile. @param {LaneTile} tile @param {Heights} heights @param {Colors} colors */
export function paint(tile, heights, colors) {
  const canvas = new OffscreenCanvas(tile.columns, Math.max(1, tile.lanes * heights.pitch));
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: true }));
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let lane = 0; lane < tile.lanes; lane++) {
    for (let run = tile.first[lane]; run < tile.first[lane + 1]; run++) {
      const [top, from, to] = [lane * heights.pitch, tile.start[run], tile.start[run] + tile.length[run]];
      paintRun(pixels, canvas.width, tile, run, top, from, to, heights, colors);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** @type {WeakMap<Colors, Colors>} */
const paled = new WeakMap();

/** Returns the colours of what is known from samples alone. @param {Colors} colors @returns {Colors} */
function pale(colors) {
  let found = paled.get(colors);
  if (!found) {
    const faint = (/** @type {number} */ rgb) => mixed(rgb, colors.ground, 0.55);
    const [other, mixedRgb, offline, hatch] = [colors.other, colors.mixedRgb, colors.offline, colors.hatch].map(faint);
    found = { ...colors, tasks: colors.tasks.map(faint), other, mixedRgb, offline, hatch };
    paled.set(colors, found);
  }
  return found;
}

/** @param {Uint32Array} pixels @param {number} width @param {LaneTile} tile @param {number} run @param {number} top
 * @param {number} from @param {number} to @param {Heights} heights @param {Colors} colors */
function paintRun(pixels, width, tile, run, top, from, to, heights, colors) {
  if (tile.sampled[run]) colors = pale(colors);
  const { bar, strip } = heights;
  const first = tile.entry[run];
  const fill = (/** @type {number} */ y, /** @type {number} */ value) => pixels.fill(value, y * width + from, y * width + to);
  const lone = tile.entries[run] === 1 ? tile.ids[first] : null;
  if (tile.entries[run] === 0) {
    absent(pixels, width, from, to, top, bar, colors);
  } else if (lone === UNKNOWN) {
    hatch(pixels, width, from, to, top, bar, colors);
  } else if (lone === OFFLINE) {
    fill(top + (bar >> 1), pixel(colors.offline));
  } else if (lone !== null && lone < NO_TASK) {
    const value = pixel(colors.tasks[lone] ?? colors.other);
    for (let y = top; y < top + bar; y++) fill(y, value);
  } else if (lone !== IDLE) {
    const column = rows(stack(tile, run, colors), bar, colors.ground);
    for (let y = 0; y < bar; y++) if (column[y] >= 0) fill(top + y, pixel(column[y]));
  }
  if (strip > 0 && tile.queueMax[run] > 0) {
    const length = tile.queueMean[run];
    const color = colors.bands[BAND_ENDS.findIndex((end) => length <= end)];
    // A queue that is shorter than one task on average is drawn as its share.
    const value = pixel(length >= 1 ? color : mixed(colors.ground, color, Math.max(0.25, length)));
    for (let y = top + bar; y < top + bar + strip; y++) fill(y, value);
  }
}

/** Returns the colour of each row of a column from above to below, -1 for blank. A row that several shares cover is their mixture by
 * area, so that no share is widened and none is lost. @param {[number, number][]} stacked @param {number} bar @param {number} ground */
export function rows(stacked, bar, ground) {
  const colors = new Array(bar).fill(-1);
  const unit = WHOLE / bar;
  let below = 0;
  /** @type {number[]} */
  const covered = new Array(bar).fill(0);
  for (const [color, share] of stacked) {
    const above = Math.min(below + share, WHOLE);
    for (let row = Math.floor(below / unit); row < bar && row * unit < above; row++) {
      const part = (Math.min(above, (row + 1) * unit) - Math.max(below, row * unit)) / unit;
      const y = bar - 1 - row;
      colors[y] = covered[y] === 0 ? color : mixed(colors[y], color, part / (covered[y] + part));
      covered[y] += part;
    }
    below = above;
  }
  return colors.map((color, y) => (color < 0 || covered[y] > 0.998 ? color : mixed(ground, color, covered[y])));
}

/** Paints columns that are not loaded yet, neither idle nor unknown, in a tint. @param {Uint32Array} pixels @param {number} width
 * @param {number} from @param {number} to @param {number} top @param {number} bar @param {Colors} colors */
function absent(pixels, width, from, to, top, bar, colors) {
  const value = pixel(colors.missing);
  for (let y = top; y < top + bar; y++) pixels.fill(value, y * width + from, y * width + to);
}

/** @param {Uint32Array} pixels @param {number} width @param {number} from @param {number} to @param {number} top @param {number} bar
 * @param {Colors} colors */
function hatch(pixels, width, from, to, top, bar, colors) {
  const value = pixel(colors.hatch);
  for (let y = top; y < top + bar; y++) {
    for (let x = from; x < to; x++) if ((x + y) % 5 === 0) pixels[y * width + x] = value;
  }
}
