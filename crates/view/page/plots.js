// Figures of specifications (`--plot`): bars and markers over the lanes or in rows of their own, lines below. All that is drawn comes in
// blocks: stretches of time whose length is a power of two, each with a bounded number of columns.

import * as api from "./api.js";
import { xOf } from "./lanes.js";
import { PALETTE, css, dark, inkOn, lifted } from "./palette.js";
import { addSums, drawSums } from "./plotsums.js";
import { refresh, state } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** A lane of a figure. @typedef {{ place: number, key: string, name: string, depth: number }} Lane */
/** A piece of a row: its start and end in ns from the block's start, and its class, or classes with their times. @typedef {[number, number, number | [number, number][]]} Piece */
/** @typedef {{ from: number, to: number, rows: { lane: number, depth: number, pieces: Piece[], labels: [number, number, number, string][] }[],
 *   points: [number, number, number, number, string | null][][], series: { by: string | null, columns: (number | null)[] }[][] }} Block */
/** A row that was drawn: its figure, lane and depth, and its place in device pixels; `depths` has the lanes of a collapsed group, which stand
 * together on its lane, with their numbers of rows.
 * @typedef {{ plot: number, lane: number, depth: number, y: number, height: number, depths: Map<number, number> | null }} Drawn */

/** The number of blocks kept. */
const ROOM = 200;
/** The heights of a row, its name, a line's axis and its name, in CSS pixels. */
const SIZES = { row: 13, name: 11, series: 46, title: 13, gap: 6 };
/** The classes of nothing, of unknown time, and of marks of several classes. */
const [BLANK, UNKNOWN, MIXED] = [0, 1, 65535];
/** The part of a CPU's lane that bars take, from below. */
const OVER = 0.6;
/** The part that a strip along its upper edge takes, as in dat2graph. */
const EDGE = 0.25;

/** The figures of one trace. */
export class Plots {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {any[]} the facts about each figure, null until they are known */
    this.heads = state.plots.map(() => null);
    /** @type {string[]} the reason for which a figure is not shown */
    this.faults = state.plots.map(() => "");
    /** @type {Map<string, { block: Block | null, used: number }>} */
    this.blocks = new Map();
    this.underWay = new Set();
    /** The number of blocks in view of the latest frame that are not there, nor any coarser one in their place. */
    this.missing = 0;
    this.clock = 0;
    this.scroll = 0;
    /** @type {Drawn[]} */
    this.drawn = [];
    /** @type {{ plot: number, point: number, x: number, y: number, time: number, mark: any }[]} */
    this.marks = [];
    /** @type {Map<number, Map<number, { color: string, item: string, value: string | null, rgb: number }>>} */
    this.looks = new Map();
  }

  /** Requests the facts about all figures, each once. */
  open() {
    state.plots.forEach((_, plot) => {
      api.plot(this.trace.index, plot).then(
        (head) => {
          this.heads[plot] = head;
          this.looks.set(plot, new Map(head.looks.map((/** @type {any} */ look) => {
            const rgb = (look.color[0] << 16) | (look.color[1] << 8) | look.color[2];
            return [look.class, { color: css(rgb), rgb, item: look.item, value: look.value }];
          })));
        },
        (error) => (this.faults[plot] = error instanceof Error ? error.message : String(error)),
      ).finally(() => {
        globalThis.dispatchEvent(new Event("plots"));
        refresh();
      });
    });
  }

  /** The figures that are shown and known. @returns {[number, any][]} */
  shown() {
    return this.heads.flatMap((head, plot) => (head && !state.hidden.has(plot) ? [/** @type {[number, any]} */ ([plot, head])] : []));
  }

  /** Whether a figure over the lanes asks for pale lanes. */
  mutes() {
    return this.shown().some(([, head]) => head.by === "cpu" && head.grey && head.report.intervals.length > 0);
  }

  /** The height of the rows and lines below the lanes in CSS pixels. */
  height() {
    let height = 0;
    for (const [, head] of this.shown()) {
      if (head.by !== "cpu") for (const lane of head.lanes) height += SIZES.name + SIZES.row * Math.max(1, lane.depth);
      height += (SIZES.series + SIZES.title) * head.report.series.length;
      if (head.by !== "cpu" || head.report.series.length) height += SIZES.title + SIZES.gap;
    }
    return height;
  }

  /** Returns the blocks in view, each with the part of the window that it stands for.
   * @param {number} plot @param {any} head @param {Scale} scale @param {[number, number][]} [absent] receives the times that are not loaded yet
   * @returns {{ block: Block, from: number, to: number }[]} */
  inView(plot, head, scale, absent = []) {
    const span = (scale.right - scale.left) * scale.perPixel;
    const [from, to] = [Math.max(0, scale.from), Math.min(this.trace.head.span, scale.from + span)];
    const level = Math.min(Math.max(Math.ceil(Math.log2(Math.max(1, span / 2))), head.levels[0]), head.levels[1]);
    /** @type {{ block: Block, from: number, to: number }[]} */
    const found = [];
    for (let index = Math.floor(from / 2 ** level); index * 2 ** level < to; index++) {
      const [start, end] = [index * 2 ** level, (index + 1) * 2 ** level];
      this.request(plot, level, index);
      let isThere = false;
      for (let up = 0; level + up <= head.levels[1]; up++) {
        const kept = this.blocks.get(`${plot}/${level + up}/${Math.floor(index / 2 ** up)}`);
        if (!kept?.block) continue;
        kept.used = this.clock;
        found.push({ block: kept.block, from: start, to: end });
        isThere = true;
        break;
      }
      if (!isThere) absent.push([start, Math.min(end, this.trace.head.span)]);
    }
    return found;
  }

  /** @param {number} plot @param {number} level @param {number} index */
  request(plot, level, index) {
    const key = `${plot}/${level}/${index}`;
    if (this.blocks.has(key) || this.underWay.has(key)) return;
    this.underWay.add(key);
    api.plotBlock(this.trace.index, plot, level, index).then(
      (block) => this.keep(key, block),
      // A folder has fine blocks of a window alone.
      async (error) => {
        if (error instanceof api.Refused && error.status === 404) return this.keep(key, null);
        // It is under way until the next attempt.
        await new Promise((resolve) => setTimeout(resolve, api.AGAIN));
      },
    ).finally(() => {
      this.underWay.delete(key);
      refresh();
    });
  }

  /** @param {string} key @param {Block | null} block */
  keep(key, block) {
    this.blocks.set(key, { block, used: this.clock });
    if (this.blocks.size <= ROOM) return;
    const oldest = [...this.blocks].sort((a, b) => a[1].used - b[1].used).slice(0, ROOM / 4);
    for (const [old] of oldest) this.blocks.delete(old);
  }

  /** Whether everything in view is there. */
  complete() {
    return this.underWay.size === 0 && this.heads.every((head, plot) => head || this.faults[plot]);
  }

  /** The colour of a class on the page. @param {number} plot @param {number} kind @param {Theme} theme */
  color(plot, kind, theme) {
    const look = this.looks.get(plot)?.get(kind);
    if (kind === UNKNOWN) return css(theme.hatch);
    return look ? (dark() ? css(lifted(look.rgb)) : look.color) : css(theme.other);
  }

  /** Draws bars and markers over the lanes of CPUs. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Scale} scale
   * @param {number} top @param {number} bottom @param {Theme} theme */
  drawOver(context, layout, scale, top, bottom, theme) {
    this.clock++;
    this.missing = 0;
    [this.drawn, this.marks] = [[], []];
    for (const [plot, head] of this.shown()) {
      if (head.by !== "cpu") continue;
      /** @type {Map<number, { y: number, height: number }>[]} */
      const [places, together] = [new Map(), new Map()];
      /** @type {Map<import("./layout.js").Row, Drawn>} */
      const groups = new Map();
      for (const lane of /** @type {Lane[]} */ (head.lanes)) {
        const row = layout.byCpu.get(Number(lane.key));
        if (!row) continue;
        const [y, height] = [top + row.y - this.trace.scroll, Math.max(1, row.bar * (head.host ? EDGE : OVER))];
        if (y + row.height < top || y > bottom) continue;
        const place = { y: head.host ? y : y + row.bar - height, height };
        if (!row.members) {
          places.set(lane.place, place);
          continue;
        }
        together.set(lane.place, place);
        const group = groups.get(row) ?? { plot, lane: -1, depth: 0, ...place, depths: new Map() };
        groups.set(row, group);
        group.depths?.set(lane.place, Math.max(1, lane.depth));
      }
      this.drawFigure(context, plot, head, scale, places, theme);
      for (const group of groups.values()) this.drawGroup(context, head, group, scale, theme);
      for (const { block, from, to } of this.inView(plot, head, scale)) this.drawPoints(context, plot, block, from, to, scale, together, theme);
    }
  }

  /** Draws the bars of a collapsed group's CPUs together. @param {CanvasRenderingContext2D} context @param {any} head @param {Drawn} group
   * @param {Scale} scale @param {Theme} theme */
  drawGroup(context, head, group, scale, theme) {
    this.drawn.push(group);
    const sums = new Map();
    for (const { block, from, to } of this.inView(group.plot, head, scale)) addSums(sums, block, group.depths ?? new Map(), scale, [from, to]);
    drawSums(context, sums, scale, group, (kind) => this.color(group.plot, kind, theme));
  }

  /** Draws rows and lines below the lanes. @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} top
   * @param {number} bottom @param {Theme} theme */
  drawBelow(context, scale, top, bottom, theme) {
    const s = scale.scale;
    this.scroll = Math.max(0, Math.min(this.scroll, this.height() * s - (bottom - top)));
    let y = top - this.scroll + SIZES.gap * s;
    context.fillStyle = theme.rule;
    context.fillRect(0, top, scale.right, 1);
    context.textBaseline = "middle";
    for (const [plot, head] of this.shown()) {
      if (head.by === "cpu" && head.report.series.length === 0) continue;
      this.write(context, head.report.title ?? head.name, 8 * s, y + (SIZES.title * s) / 2, 10.5 * s, theme.faint, scale.right);
      y += SIZES.title * s;
      if (head.by !== "cpu") y = this.drawRows(context, plot, head, scale, y, [top, bottom], theme);
      /** @type {number[]} the places of series that the trace has, in the order of the report */
      const places = head.series.flatMap((/** @type {number | null} */ at, /** @type {number} */ place) => (at === null ? [] : [place]));
      head.report.series.forEach((/** @type {any} */ series, /** @type {number} */ n) => {
        if (y < bottom && y + (SIZES.series + SIZES.title) * s > top) this.drawSeries(context, plot, head, series, places[n], scale, y, theme);
        y += (SIZES.series + SIZES.title) * s;
      });
      y += SIZES.gap * s;
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y @param {number} size @param {string} color
   * @param {number} right */
  write(context, text, x, y, size, color, right) {
    context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = color;
    const fits = Math.max(0, Math.floor((right - x) / (size * 0.5)));
    context.fillText(text.slice(0, fits), x, y);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} plot @param {any} head @param {Scale} scale @param {number} y
   * @param {[number, number]} bounds @param {Theme} theme */
  drawRows(context, plot, head, scale, y, [top, bottom], theme) {
    const s = scale.scale;
    /** @type {Map<number, { y: number, height: number }>} */
    const places = new Map();
    for (const lane of /** @type {Lane[]} */ (head.lanes)) {
      const height = SIZES.row * Math.max(1, lane.depth) * s;
      if (y < bottom && y + SIZES.name * s + height > top) {
        this.write(context, [lane.name, lane.key].filter(Boolean).join(" "), scale.left + 2 * s, y + (SIZES.name * s) / 2 + s, 9.5 * s, theme.faint, scale.right);
        places.set(lane.place, { y: y + SIZES.name * s, height: height - s });
        context.fillStyle = theme.lane;
        context.fillRect(scale.left, y + SIZES.name * s, scale.right - scale.left, height - s);
      }
      y += SIZES.name * s + height;
    }
    this.drawFigure(context, plot, head, scale, places, theme);
    return y;
  }

  /** Draws the bars and markers of a figure in the places of its lanes. @param {CanvasRenderingContext2D} context @param {number} plot
   * @param {any} head @param {Scale} scale @param {Map<number, { y: number, height: number }>} places @param {Theme} theme */
  drawFigure(context, plot, head, scale, places, theme) {
    const depths = new Map(head.lanes.map((/** @type {Lane} */ lane) => [lane.place, Math.max(1, lane.depth)]));
    for (const [place, { y, height }] of places) {
      const each = height / (depths.get(place) ?? 1);
      for (let depth = 0; depth < (depths.get(place) ?? 1); depth++) this.drawn.push({ plot, lane: place, depth, y: y + depth * each, height: each, depths: null });
    }
    /** @type {[number, number][]} */
    const absent = [];
    const blocks = this.inView(plot, head, scale, absent);
    this.missing += absent.length;
    // The lanes of CPUs show below it what ran; a row of its own would seem empty.
    if (head.by !== "cpu") {
      context.fillStyle = theme.missing;
      for (const [from, to] of absent) for (const { y, height } of places.values()) context.fillRect(xOf(scale, from), y, xOf(scale, to) - xOf(scale, from), height);
    }
    for (const { block, from, to } of blocks) {
      context.save();
      context.beginPath();
      const [left, right] = [Math.max(scale.left, xOf(scale, from)), Math.min(scale.right, xOf(scale, to))];
      context.rect(left, 0, Math.max(0, right - left), context.canvas.height);
      context.clip();
      for (const row of block.rows) {
        const place = places.get(row.lane);
        if (!place) continue;
        const height = place.height / (depths.get(row.lane) ?? 1);
        this.drawPieces(context, plot, block, row.pieces, scale, place.y + row.depth * height, height, theme);
        this.drawLabels(context, plot, block, row.labels, scale, place.y + row.depth * height, height, theme);
      }
      context.restore();
    }
    for (const { block, from, to } of blocks) this.drawPoints(context, plot, block, from, to, scale, places, theme);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} plot @param {Block} block @param {Piece[]} pieces @param {Scale} scale
   * @param {number} y @param {number} height @param {Theme} theme */
  drawPieces(context, plot, block, pieces, scale, y, height, theme) {
    const bar = Math.max(1, height - Math.max(scale.scale, height / 12));
    for (const [start, end, kind] of pieces) {
      const [x, right] = [xOf(scale, block.from + start), xOf(scale, block.from + end)];
      if (right < scale.left || x > scale.right) continue;
      const shares = typeof kind === "number" ? [[kind, end - start]] : kind;
      let below = y + bar;
      for (const [of, ns] of shares) {
        if (of === BLANK) continue;
        // A share of time is a share of the height, and what is smaller than a pixel is paler.
        const part = (ns / Math.max(1, end - start)) * bar;
        context.globalAlpha = Math.min(1, Math.max(right - x, 0.02)) * Math.min(1, Math.max(part, 0.08));
        context.fillStyle = this.color(plot, of, theme);
        const tall = Math.max(1, part);
        context.fillRect(x, below - tall, Math.max(1, right - x), tall);
        below -= part;
      }
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} plot @param {Block} block @param {[number, number, number, string][]} labels
   * @param {Scale} scale @param {number} y @param {number} height @param {Theme} theme */
  drawLabels(context, plot, block, labels, scale, y, height, theme) {
    const size = Math.min(10.5 * scale.scale, height * 0.75);
    if (size < 7 * scale.scale) return;
    for (const [start, end, kind, text] of labels) {
      const [x, right] = [Math.max(scale.left, xOf(scale, block.from + start)), Math.min(scale.right, xOf(scale, block.from + end))];
      if (text.length * size * 0.6 + size > right - x) continue;
      const rgb = parseInt(this.color(plot, kind, theme).slice(1), 16);
      this.write(context, text, x + size * 0.3, y + height / 2, size, inkOn(rgb), right);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {number} plot @param {Block} block @param {number} from @param {number} to @param {Scale} scale
   * @param {Map<number, { y: number, height: number }>} places @param {Theme} theme */
  drawPoints(context, plot, block, from, to, scale, places, theme) {
    block.points.forEach((marks, point) => {
      for (const mark of marks) {
        const [ns, lane, kind, count] = mark;
        const [time, place] = [block.from + ns, places.get(lane)];
        const x = xOf(scale, time);
        if (!place || time < from || time >= to || x < scale.left || x > scale.right) continue;
        const [y, r] = [place.y + place.height / 2, Math.min(4 * scale.scale, Math.max(2, place.height * 0.4))];
        context.fillStyle = kind === MIXED ? theme.faint : this.color(plot, kind, theme);
        marker(context, point, x, y, r);
        this.marks.push({ plot, point, x, y, time, mark: { class: kind, count, label: mark[4] } });
      }
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {number} plot @param {any} head @param {any} series @param {number} place
   * @param {Scale} scale @param {number} y @param {Theme} theme */
  drawSeries(context, plot, head, series, place, scale, y, theme) {
    const s = scale.scale;
    const title = series.name + (series.unit ? ` (${series.unit})` : "");
    this.write(context, title, scale.left + 2 * s, y + (SIZES.title * s) / 2, 10 * s, theme.faint, scale.right);
    const [top, height] = [y + SIZES.title * s, (SIZES.series - 4) * s];
    const blocks = this.inView(plot, head, scale);
    const columns = blocks.flatMap(({ block }) => (block.series[place] ?? []).flatMap((line) => line.columns)).filter((value) => value !== null);
    const most = columns.reduce((most, value) => Math.max(most, value), 0);
    const least = columns.reduce((least, value) => Math.min(least, value), 0);
    const at = (/** @type {number} */ value) => top + height - ((value - least) / (most - least || 1)) * height;
    context.fillStyle = theme.rule;
    context.fillRect(scale.left, top + height, scale.right - scale.left, 1);
    context.font = `${9.5 * s}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = "right";
    context.fillStyle = theme.faint;
    context.fillText(short(most), scale.left - 6 * s, top + 5 * s);
    context.fillText(short(least), scale.left - 6 * s, top + height - 4 * s);
    for (const { block, from, to } of blocks) {
      for (const line of block.series[place] ?? []) {
        const n = series.lines.findIndex((/** @type {any} */ other) => (other.by ?? null) === line.by);
        const rgb = PALETTE[Math.max(0, n) % PALETTE.length];
        context.strokeStyle = css(dark() ? lifted(rgb) : rgb);
        context.lineWidth = Math.max(1, s);
        context.beginPath();
        const length = (block.to - block.from) / line.columns.length;
        let last = /** @type {number | null} */ (null);
        line.columns.forEach((value, column) => {
          const start = block.from + column * length;
          if (value === null || start + length <= from || start >= to || start >= this.trace.head.span) return void (last = null);
          const [x, right] = [Math.max(scale.left, xOf(scale, start)), Math.min(scale.right, xOf(scale, start + length))];
          if (right < x) return;
          if (last === null) context.moveTo(x, at(value));
          else context.lineTo(x, at(value));
          context.lineTo(right, at(value));
          last = value;
        });
        context.stroke();
      }
    }
  }

  /** Returns the text about a place of the canvas in device pixels, and the row under it; null if nothing is there.
   * @param {number} x @param {number} y @param {Scale} scale */
  about(x, y, scale) {
    const near = this.marks.filter((mark) => Math.hypot(mark.x - x, mark.y - y) < 6 * scale.scale);
    near.sort((a, b) => Math.abs(a.x - x) - Math.abs(b.x - x));
    if (near.length) {
      const { plot, time, mark } = near[0];
      const look = this.looks.get(plot)?.get(mark.class);
      const name = [look?.item ?? "points", look?.value].filter((part) => part !== null && part !== undefined).join(": ");
      const at = seconds(time - this.trace.zero, 1);
      return { text: [mark.count > 1 ? `${mark.count} × ${name}` : name, `at ${at} s`, mark.label].filter(Boolean).join("\n"), row: null };
    }
    const time = scale.from + (x - scale.left) * scale.perPixel;
    for (const row of [...this.drawn].reverse()) {
      if (y < row.y || y >= row.y + row.height) continue;
      const head = this.heads[row.plot];
      if (row.depths) {
        const text = this.aboutGroup(row, head, time, scale);
        if (text) return { text, row: null };
        continue;
      }
      for (const { block, from, to } of this.inView(row.plot, head, scale)) {
        if (time < from || time >= to) continue;
        const pieces = block.rows.find((other) => other.lane === row.lane && other.depth === row.depth)?.pieces ?? [];
        const piece = pieces.find(([start, end]) => time - block.from >= start && time - block.from < end);
        if (piece) return { text: this.words(row.plot, block, piece), row: { ...row, time } };
      }
    }
    return null;
  }

  /** Returns the shares of a collapsed group's time at an instant, as text. @param {Drawn} group @param {any} head @param {number} time
   * @param {Scale} scale */
  aboutGroup(group, head, time, scale) {
    const sums = new Map();
    // Two pixels, since a bar that is narrower than one has as little of its column.
    const around = { ...scale, left: 0, right: 1, from: time - scale.perPixel, perPixel: 2 * scale.perPixel };
    for (const { block, from, to } of this.inView(group.plot, head, scale)) addSums(sums, block, group.depths ?? new Map(), around, [from, to]);
    const lines = [...sums].map(([kind, [share]]) => `${this.nameOf(group.plot, kind)}  ·  ${percent(share)} of the time of ${group.depths?.size} CPUs`);
    return lines.join("\n");
  }

  /** @param {number} plot @param {number} kind a class */
  nameOf(plot, kind) {
    const look = this.looks.get(plot)?.get(kind);
    return kind === UNKNOWN ? "end unknown: events were lost" : [look?.item, look?.value].filter((part) => part !== null && part !== undefined).join(": ");
  }

  /** @param {number} plot @param {Block} block @param {Piece} piece */
  words(plot, block, [start, end, kind]) {
    const name = (/** @type {number} */ of) => this.nameOf(plot, of);
    if (typeof kind === "number") {
      const [from, to] = [block.from + start - this.trace.zero, block.from + end - this.trace.zero];
      return `${name(kind)}\n${seconds(from, 1)} s to ${seconds(to, 1)} s  ·  ${duration(end - start)}`;
    }
    const bars = kind.filter(([of]) => of !== BLANK);
    return bars.map(([of, ns]) => `${name(of)}  ·  ${duration(ns)} of ${duration(end - start)}`).join("\n");
  }
}

/** Returns the text about a bar that the server gave. @param {Trace} trace @param {any} bar @param {string | null | undefined} value */
export function barText(trace, bar, value) {
  const [from, to] = [bar.from - trace.zero, bar.to - trace.zero];
  const name = [bar.name, value].filter((part) => part !== null && part !== undefined && part !== "").join(": ");
  const lines = [name, `${seconds(from, 1)} s to ${seconds(to, 1)} s  ·  ${duration(bar.to - bar.from)}`, bar.pid === null ? `CPU ${bar.cpu}` : `CPU ${bar.cpu}, task ${bar.pid}`];
  if (bar.label !== null) lines.push(bar.label);
  return lines.join("\n");
}

/** @param {number} value */
function short(value) {
  const size = Math.abs(value);
  for (const [unit, scale] of /** @type {[string, number][]} */ ([["G", 1e9], ["M", 1e6], ["k", 1e3]])) {
    if (size >= scale) return `${Number((value / scale).toPrecision(3))} ${unit}`;
  }
  return String(Number(value.toPrecision(3)));
}

/** Draws the marker of a point, whose shape is that of its place in the specification.
 * @param {CanvasRenderingContext2D} context @param {number} place @param {number} x @param {number} y @param {number} r */
function marker(context, place, x, y, r) {
  const shapes = [
    [[-1, -1], [1, -1], [0, 1]], [[0, -1], [1, 0], [0, 1], [-1, 0]], [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[-1, 1], [1, 1], [0, -1]],
    [[-0.25, -1], [0.25, -1], [0.25, 1], [-0.25, 1]],
  ];
  context.beginPath();
  for (const [dx, dy] of shapes[place % shapes.length]) context.lineTo(x + dx * r, y + dy * r);
  context.fill();
}
