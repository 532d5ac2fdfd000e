// Lanes on the canvas: pictures of tiles, made once and stretched to their place, and names in long runs.

import { NO_TASK } from "./api.js";
import { paint } from "./bitmap.js";
import { css, inkOn } from "./palette.js";
import { named, state } from "./state.js";
import { commandGroup, runsWithin, sumGroup } from "./tiles.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Row} Row */
/** @typedef {import("./bitmap.js").Colors} Colors */
/** @typedef {import("./bitmap.js").Heights} Heights */
/** @typedef {import("./api.js").LaneTile} LaneTile */
/** The horizontal scale of a pane: device pixels of its left and right edge, and the trace's own time at the left edge.
 * @typedef {{ left: number, right: number, from: number, perPixel: number, scale: number }} Scale */

/** The bytes of pictures kept. */
const ROOM = 96 << 20;

/** @param {Scale} scale @param {number} time */
export const xOf = (scale, time) => scale.left + (time - scale.from) / scale.perPixel;

/** Returns the level whose columns are one to two device pixels wide. @param {number} perPixel @param {number[]} levels */
export const levelFor = (perPixel, levels) => Math.min(Math.max(Math.ceil(Math.log2(Math.max(perPixel, 1e-9))), levels[0]), levels[1]);

/** Calls `each` for the tiles of this level that overlap the pane, the middle ones first.
 * @param {Trace} trace @param {Scale} scale @param {number} level @param {(index: number, x: number, width: number) => void} each */
export function tilesInView(trace, scale, level, each) {
  const length = trace.head.tile.columns * 2 ** level;
  const last = Math.floor(Math.max(0, trace.head.span - 1) / length);
  const to = scale.from + (scale.right - scale.left) * scale.perPixel;
  const first = Math.max(0, Math.floor(scale.from / length));
  const end = Math.min(last, Math.floor(to / length));
  const indices = [];
  for (let index = first; index <= end; index++) indices.push(index);
  const middle = (first + end) / 2;
  indices.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  for (const index of indices) {
    const x = Math.round(xOf(scale, index * length));
    each(index, x, Math.round(xOf(scale, (index + 1) * length)) - x);
  }
}

/** Whether a lane of several CPUs shows commands: a column names few tasks, and those of one command are many. Where tasks are told apart, by a
 * filter or a highlight, and in a folder, which has no such tiles, it shows tasks. */
const isByCommand = () => state.color === "command" && !state.static && !state.highlight && !state.filter.trim();

export class Lanes {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {Map<string, { canvas: OffscreenCanvas, used: number, tile: LaneTile }>} */
    this.pictures = new Map();
    this.bytes = 0;
    this.clock = 0;
    /** @type {WeakMap<LaneTile, number>} */
    this.numbers = new WeakMap();
    this.next = 0;
  }

  /** Returns the number of a tile, which no other tile has had. @param {LaneTile} tile */
  numberOf(tile) {
    const number = this.numbers.get(tile) ?? this.next++;
    this.numbers.set(tile, number);
    return number;
  }

  /** @param {LaneTile} tile @param {Heights} heights @param {Colors} colors */
  picture(tile, heights, colors) {
    const key = `${this.numberOf(tile)} ${heights.pitch} ${heights.bar} ${colors.key}`;
    let found = this.pictures.get(key);
    if (!found) {
      found = { canvas: paint(tile, heights, colors), used: 0, tile };
      this.pictures.set(key, found);
      this.bytes += 4 * found.canvas.width * found.canvas.height;
      if (this.bytes > ROOM) this.discard();
    }
    found.used = this.clock;
    return found.canvas;
  }

  /** Removes the older half of the pictures that the current frame does not use. */
  discard() {
    const old = [...this.pictures].filter(([, picture]) => picture.used < this.clock).sort((a, b) => a[1].used - b[1].used);
    for (const [key, { canvas }] of old.slice(0, Math.ceil(old.length / 2))) {
      this.pictures.delete(key);
      this.bytes -= 4 * canvas.width * canvas.height;
    }
  }

  /** Draws all rows within the pane's height.
   * @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Scale} scale @param {number} top @param {number} bottom
   * @param {Colors} colors */
  draw(context, layout, scale, top, bottom, colors) {
    this.clock++;
    context.imageSmoothingEnabled = false;
    const level = levelFor(scale.perPixel, this.trace.tiles.levels);
    const y = (/** @type {Row} */ row) => top + row.y - this.trace.scroll;
    const blocks = blocksOf(layout, this.trace.head.tile.lanes).filter(({ row, count }) => {
      return y(row) < bottom && y(row) + count * row.height > top;
    });
    tilesInView(this.trace, scale, level, (index, x, width) => {
      for (const { row, count, lane, group } of blocks) {
        if (row.members) {
          this.drawFolded(context, row, level, index, x, width, y(row), colors);
          continue;
        }
        const found = this.trace.tiles.get(level, group, index);
        if (!found) {
          for (let n = 0; n < count; n++) this.drawMissing(context, x, width, y(row) + n * layout.pitch, layout.bar, level, index, colors);
          continue;
        }
        const tile = /** @type {LaneTile} */ (found.kept.tile);
        const picture = this.picture(tile, layout, colors);
        const height = count * layout.pitch;
        context.drawImage(picture, found.first, lane * layout.pitch, found.columns, height, x, y(row), width, height);
      }
    });
  }

  /** Returns the tile of a row, or a coarser one with the part of it that stands in, and the row's place in it.
   * @param {Row} row @param {number} level @param {number} index */
  tileOf(row, level, index) {
    const { folds, tile: { lanes } } = this.trace.head;
    const { tiles } = this.trace;
    if (!row.members) {
      const found = tiles.get(level, Math.floor(row.place / lanes), index);
      return found && { ...found, tile: /** @type {LaneTile} */ (found.kept.tile), lane: row.place % lanes, isByCommand: false };
    }
    const { tile: number, lane } = folds[row.fold];
    const [wanted, other] = isByCommand() ? [commandGroup(number), sumGroup(number)] : [sumGroup(number), commandGroup(number)];
    // The picture of the other kind stands in until it is there.
    const found = tiles.get(level, wanted, index) ?? tiles.held(level, other, index);
    return found && { ...found, tile: /** @type {LaneTile} */ (found.kept.tile), lane, isByCommand: found.kept.group === commandGroup(number) };
  }

  /** @param {CanvasRenderingContext2D} context @param {Row} row @param {number} level @param {number} index
   * @param {number} x @param {number} width @param {number} y @param {Colors} colors */
  drawFolded(context, row, level, index, x, width, y, colors) {
    const found = this.tileOf(row, level, index);
    const { height, bar, strip } = row;
    if (!found) return this.drawMissing(context, x, width, y, bar, level, index, colors);
    const picture = this.picture(found.tile, { pitch: height, bar, strip }, colors);
    context.drawImage(picture, found.first, found.lane * height, found.columns, height, x, y, width, height);
  }

  /** Draws the bar of a lane in a tile that is not loaded yet, up to the end of the trace. @param {CanvasRenderingContext2D} context
   * @param {number} x @param {number} width @param {number} y @param {number} bar @param {number} level @param {number} index
   * @param {Colors} colors */
  drawMissing(context, x, width, y, bar, level, index, colors) {
    const { span, tile: { columns } } = this.trace.head;
    const part = Math.min(1, span / (columns * 2 ** level) - index);
    context.fillStyle = css(colors.missing);
    context.fillRect(x, y, width * part, bar);
  }

  /** Returns the run of columns at a place: its tile, its number, and the trace's own times of its edges.
   * `isByCommand`: whether it names commands by their first tasks. @param {Row} row @param {number} time @param {number} perPixel */
  runAt(row, time, perPixel) {
    const { columns } = this.trace.head.tile;
    const level = levelFor(perPixel, this.trace.tiles.levels);
    const index = Math.floor(time / (columns * 2 ** level));
    if (index < 0 || time > this.trace.head.span) return null;
    const found = this.tileOf(row, level, index);
    if (!found) return null;
    const { tile, lane, isByCommand } = found;
    // A tile that stands in has columns of its own length.
    const length = (columns * 2 ** level) / found.columns;
    const base = index * columns * 2 ** level - found.first * length;
    const column = Math.floor((time - base) / length);
    /** @type {number | null} */
    let at = null;
    runsWithin(tile, lane, column, column + 1, (run) => (at = run));
    if (at === null) return null;
    return { tile, run: at, from: base + tile.start[at] * length, to: base + (tile.start[at] + tile.length[at]) * length, column: length, isByCommand };
  }

  /** Writes the names of tasks into their long runs. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Scale} scale
   * @param {number} top @param {number} bottom @param {Colors} colors */
  drawNames(context, layout, scale, top, bottom, colors) {
    if (layout.bar < 10 * scale.scale) return;
    const size = Math.min(11 * scale.scale, Math.round(layout.bar * 0.72));
    context.font = `${size}px ${fontOf()}`;
    context.textBaseline = "middle";
    context.textAlign = "center";
    const level = levelFor(scale.perPixel, this.trace.tiles.levels);
    const { columns, lanes } = this.trace.head.tile;
    const length = columns * 2 ** level;
    for (const row of layout.rows) {
      const y = top + row.y - this.trace.scroll;
      if (row.members || row.silent || y + layout.pitch < top || y > bottom) continue;
      /** @type {[number, number, number][]} */
      const runs = [];
      tilesInView(this.trace, scale, level, (index) => {
        const found = this.trace.tiles.held(level, Math.floor(row.place / lanes), index);
        if (!found) return;
        const tile = /** @type {LaneTile} */ (found.kept.tile);
        // A tile that stands in has columns of its own length.
        const column = length / found.columns;
        const base = index * length - found.first * column;
        runsWithin(tile, row.place % lanes, Math.floor(found.first), Math.ceil(found.first + found.columns), (run) => {
          const id = tile.entries[run] === 1 ? tile.ids[tile.entry[run]] : NO_TASK;
          const from = base + tile.start[run] * column;
          if (id < NO_TASK) runs.push([from, from + tile.length[run] * column, id]);
        });
      });
      runs.sort((a, b) => a[0] - b[0]);
      this.drawRow(context, runs, scale, y + layout.bar / 2, size, colors);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {[number, number, number][]} runs @param {Scale} scale @param {number} y
   * @param {number} size @param {Colors} colors */
  drawRow(context, runs, scale, y, size, colors) {
    for (let n = 0; n < runs.length; ) {
      const [from, , id] = runs[n];
      let to = runs[n][1];
      for (n++; n < runs.length && runs[n][2] === id && runs[n][0] <= to; n++) to = Math.max(to, runs[n][1]);
      const [x, right] = [Math.max(scale.left, xOf(scale, from)), Math.min(scale.right, xOf(scale, to))];
      const task = this.trace.head.tasks[id];
      if (right - x < 2.2 * size || !task) continue;
      const [long, short] = [named(task), String(task.pid)];
      const fits = (/** @type {string} */ text) => text.length * size * 0.6 + size * 0.5 < right - x;
      const text = fits(long) ? long : fits(short) ? short : "";
      if (!text) continue;
      context.fillStyle = inkOn(colors.tasks[id]);
      context.globalAlpha = colors.highlight === null || colors.highlight === task.pid ? 1 : 0.55;
      context.fillText(text, (x + right) / 2, y + size * 0.06);
      context.globalAlpha = 1;
    }
  }
}

/** The font of names; a canvas takes no CSS variables. */
const fontOf = () => `system-ui, "DejaVu Sans", sans-serif`;

/** Returns the blocks of rows that one picture covers without a gap. @param {Layout} layout @param {number} lanes per tile */
function blocksOf(layout, lanes) {
  /** @type {{ row: Row, count: number, lane: number, group: number }[]} */
  const blocks = [];
  for (const row of layout.rows) {
    if (row.silent) continue;
    const [lane, group] = [row.place % lanes, Math.floor(row.place / lanes)];
    const last = blocks[blocks.length - 1];
    const continues = last && !row.members && !last.row.members && last.group === group
      && last.lane + last.count === lane && last.row.y + last.count * layout.pitch === row.y;
    if (continues) last.count++;
    else blocks.push({ row, count: 1, lane, group });
  }
  return blocks;
}

