// The pane of a trace: its axis, the rows of the machine, the lanes, and what lies over them.

import { Lanes, xOf } from "./lanes.js";
import { drawTicks } from "./eventmarks.js";
import { drawPlaces, markOf } from "./findings.js";
import { drawGutter, groupAt, gutterWidth } from "./gutter.js";
import { layOut, rowAt } from "./layout.js";
import { HEIGHT, drawMachine, partAt } from "./machine.js";
import { drawMarks, drawTask } from "./overlay.js";
import { drawRows, isPath, pathColors, revealRow, taskAt, wishOf } from "./rowdraw.js";
import { PathMenu } from "./pathpick.js";
import { drawTrail } from "./trail.js";
import { RowBar } from "./rows.js";
import { bands, css, mixed, taskColor } from "./palette.js";
import { state, taskOf } from "./state.js";
import { seconds, tickStep } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */
/** @typedef {import("./layout.js").Row} Row */

/** The name of the task that is highlighted in another trace, where tasks of this one have it. @param {Trace} trace */
function namesake(trace) {
  const { highlight } = state;
  if (!highlight || highlight.trace === trace.index) return null;
  const name = taskOf(state.traces[highlight.trace], highlight.pid)?.comm;
  return name && trace.head.tasks.some((task) => task.comm === name) ? name : null;
}

/** The width of the right margin and the height of the axis in CSS pixels. */
const [RIGHT, AXIS] = [10, 20];

export class Pane {
  /** @param {Trace} trace @param {HTMLElement} parent */
  constructor(trace, parent) {
    this.trace = trace;
    this.lanes = new Lanes(trace);
    const section = parent.appendChild(document.createElement("section"));
    section.className = "pane";
    const title = section.appendChild(document.createElement("h2"));
    title.append(trace.head.name, " ");
    title.append(markOf(trace));
    this.facts = title.appendChild(document.createElement("small"));
    const room = section.appendChild(document.createElement("div"));
    room.className = "room";
    this.canvas = room.appendChild(document.createElement("canvas"));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "timeline");
    this.canvas.setAttribute("aria-label", `${trace.head.name}: one lane per CPU. Press the question mark for the keys.`);
    this.canvas.setAttribute("aria-describedby", "here");
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.rowBar = new RowBar(trace, room);
    this.pathMenu = new PathMenu(trace, room);
    this.resize();
    /** @type {import("./bitmap.js").Colors | null} */
    this.colors = null;
    this.layout = layOut(trace, 100, 0, 1);
    /** The window of the latest frame. */
    this.last = { from: 0, span: 0 };
  }

  resize() {
    const scale = globalThis.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = /** @type {HTMLElement} */ (this.canvas.parentElement);
    const [width, height] = [Math.max(200, Math.round(clientWidth * scale)), Math.max(100, Math.round(clientHeight * scale))];
    if (this.canvas.width === width && this.canvas.height === height) return;
    [this.canvas.width, this.canvas.height] = [width, height];
    // A canvas without an alpha channel begins black.
    this.context.fillStyle = getComputedStyle(document.body).backgroundColor;
    this.context.fillRect(0, 0, width, height);
  }

  /** The horizontal scale, in the trace's own time. @returns {import("./lanes.js").Scale} */
  scale() {
    const scale = globalThis.devicePixelRatio || 1;
    const [left, right] = [Math.round(gutterWidth() * scale), this.canvas.width - Math.round(RIGHT * scale)];
    return { left, right, from: state.from + this.trace.zero, perPixel: state.span / (right - left), scale };
  }

  /** The heights at which the parts begin, in device pixels. */
  places() {
    const scale = globalThis.devicePixelRatio || 1;
    const top = Math.round((AXIS + 4) * scale);
    const [lanes, end] = [top + Math.round((HEIGHT + 4) * scale), this.canvas.height];
    // Rows and lines of figures take at most half of the room.
    const below = end - Math.min(Math.round(this.trace.plots.height() * scale), Math.floor((end - lanes) / 2));
    // So do the rows of tasks of what remains; those of figures lie below them.
    const rows = Math.min(Math.round(wishOf(this.trace) * scale), Math.floor((below - lanes) * 0.6));
    const available = below - rows - lanes - 2 * scale;
    // The rows begin where the lanes end: those of few CPUs do not fill their room.
    const unused = rows > 0 ? Math.max(0, available - layOut(this.trace, available, state.lane, scale).height) : 0;
    return { axis: 0, top, lanes, available, bottom: below - rows - Math.floor(unused), below, end };
  }

  /** Returns the colours of the tasks; computed anew where the state or the theme changed. @param {Theme} theme */
  colorsFor(theme) {
    const tasks = this.trace.head.tasks;
    const pid = state.highlight?.trace === this.trace.index ? state.highlight.pid : null;
    // In another trace the tasks of the same name are highlighted.
    const name = pid === null ? namesake(this.trace) : null;
    const isAll = pid === null && name === null;
    // What ran is pale behind the bars of a figure, as in the figures of plot.
    const muted = this.trace.plots.mutes();
    const key = [state.color, state.filter, pid, name, theme.ground, tasks.length, muted, this.trace.grouped].join("|");
    if (this.colors?.key === key) return this.colors;
    const colors = Uint32Array.from(tasks, (task) => {
      const plain = taskColor(task, state.color, state.filter, theme.other);
      const color = muted ? mixed(plain, theme.laneRgb, 0.55) : plain;
      return isAll || task.pid === pid || task.comm === name ? color : mixed(color, theme.laneRgb, 0.78);
    });
    const faint = (/** @type {number} */ rgb) => (isAll ? rgb : mixed(rgb, theme.laneRgb, 0.6));
    this.colors = {
      key, highlight: pid, tasks: colors, other: faint(theme.other), mixedRgb: faint(theme.mixedRgb), offline: theme.offline, hatch: theme.hatch,
      ground: theme.laneRgb, missing: theme.missingRgb, bands: bands(),
    };
    return this.colors;
  }

  /** @param {Theme} theme */
  draw(theme) {
    const { context, trace } = this;
    const [scale, places] = [this.scale(), this.places()];
    this.layout = layOut(trace, places.available, state.lane, scale.scale);
    trace.scroll = Math.max(0, Math.min(trace.scroll, this.layout.height - (places.bottom - places.lanes)));
    trace.tiles.begin();
    const colors = this.colorsFor(theme);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.drawAxis(scale, places, theme);
    // The last tile has columns behind the end of the trace, in which there is nothing to load.
    const end = Math.max(scale.left, Math.min(scale.right, Math.ceil(xOf(scale, trace.head.span))));
    this.clipped(scale.left, places.lanes, end, places.bottom, () => {
      this.drawGrounds(scale, places.lanes, theme);
      this.lanes.draw(context, this.layout, scale, places.lanes, places.bottom, colors);
      this.lanes.drawNames(context, this.layout, scale, places.lanes, places.bottom, colors);
      trace.plots.drawOver(context, this.layout, scale, places.lanes, places.bottom, theme);
      drawTrail(context, trace, this.layout, scale, places.lanes, pathColors(theme), theme);
      if (state.highlight?.trace === trace.index) drawTask(context, trace, this.layout, scale, places.lanes, theme);
    });
    drawGutter(context, trace, this.layout, scale.left, places, scale.scale, theme);
    if (places.below > places.bottom) drawRows(context, trace, scale, places, theme);
    else trace.rows.tiles.begin();
    this.rowBar.show(places.bottom / scale.scale + 2, places.below > places.bottom);
    this.pathMenu.show(places.bottom / scale.scale + 24, scale.left / scale.scale, !state.static && places.below > places.bottom);
    if (places.end > places.below) this.clipped(0, places.below, scale.right, places.end, () => trace.plots.drawBelow(context, scale, places.below, places.end, theme));
    this.clipped(0, places.top, scale.right, places.lanes, () => drawMachine(context, trace, scale, places.top, theme));
    drawTicks(context, trace, this.layout, scale, places, theme);
    drawMarks(context, trace, this.layout, scale, places, theme);
    this.drawScroll(places, theme);
    // The window moves: what comes into view next is requested behind what is in view.
    if (this.last.span === state.span && this.last.from !== state.from) trace.tiles.ahead(state.from > this.last.from ? 1 : -1);
    this.last = { from: state.from, span: state.span };
  }

  /** @param {number} x @param {number} y @param {number} right @param {number} bottom @param {() => void} draw */
  clipped(x, y, right, bottom, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, right - x, bottom - y);
    this.context.clip();
    draw();
    this.context.restore();
  }

  /** @param {import("./lanes.js").Scale} scale @param {{ top: number, below: number }} places @param {Theme} theme */
  drawAxis(scale, places, theme) {
    const { context } = this;
    const s = scale.scale;
    context.font = `${11 * s}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    const digits = seconds(state.from + state.span, tickStep(90 * s * scale.perPixel)).length;
    const step = tickStep((digits * 7 + 40) * s * scale.perPixel);
    const first = Math.ceil(state.from / step);
    context.strokeStyle = theme.rule;
    context.fillStyle = theme.faint;
    context.lineWidth = 1;
    context.textAlign = "center";
    for (let n = first; n * step <= state.from + state.span; n++) {
      const x = Math.round(xOf(scale, n * step + this.trace.zero)) + 0.5;
      context.beginPath();
      context.moveTo(x, places.top - 4 * s);
      context.lineTo(x, places.below);
      context.stroke();
      const text = seconds(n * step, step);
      const half = context.measureText(text).width / 2;
      if (x - half > scale.left - 4 * s && x + half < scale.right + RIGHT * s) context.fillText(text, x, (AXIS / 2) * s);
    }
    drawPlaces(context, this.trace, scale, places.top - 1 * s, theme);
    context.fillStyle = theme.faint;
    context.textAlign = "right";
    context.fillText("seconds", scale.left - 6 * s, (AXIS / 2) * s);
  }

  /** Draws the ground of each lane within the trace. @param {import("./lanes.js").Scale} scale @param {number} top @param {Theme} theme */
  drawGrounds(scale, top, theme) {
    const x = Math.max(scale.left, xOf(scale, 0));
    const right = Math.min(scale.right, xOf(scale, this.trace.head.span));
    this.context.fillStyle = theme.lane;
    for (const row of this.layout.rows) {
      const y = top + row.y - this.trace.scroll;
      if (y < this.canvas.height && y + row.bar > top) this.context.fillRect(x, y, right - x, row.bar);
    }
    this.drawSilent(scale, top, x, right, theme);
    if (this.layout.pitch < 5 * scale.scale) return;
    this.context.fillStyle = theme.rule;
    for (const row of this.layout.rows) {
      const y = top + row.y - this.trace.scroll + row.height - 1;
      if (y < this.canvas.height && y > top) this.context.fillRect(x, y, right - x, 1);
    }
  }

  /** Hatches the lanes of CPUs without events, and says so in them. @param {import("./lanes.js").Scale} scale @param {number} top
   * @param {number} x @param {number} right @param {Theme} theme */
  drawSilent(scale, top, x, right, theme) {
    const { context } = this;
    const s = scale.scale;
    for (const row of this.layout.rows) {
      const y = top + row.y - this.trace.scroll;
      if (!row.silent || y > this.canvas.height || y + row.bar < top || right <= x) continue;
      context.save();
      context.beginPath();
      context.rect(x, y, right - x, row.bar);
      context.clip();
      context.strokeStyle = css(theme.hatch);
      context.lineWidth = s;
      context.beginPath();
      for (let at = x - row.bar; at < right; at += 7 * s) {
        context.moveTo(at, y + row.bar);
        context.lineTo(at + row.bar, y);
      }
      context.stroke();
      context.restore();
      if (row.bar < 9 * s) continue;
      const text = "no events: unknown";
      context.font = `${Math.min(10 * s, row.bar * 0.85)}px system-ui, "DejaVu Sans", sans-serif`;
      context.textAlign = "left";
      context.textBaseline = "middle";
      const width = context.measureText(text).width + 10 * s;
      context.fillStyle = theme.lane;
      context.fillRect(x, y, width, row.bar);
      context.fillStyle = theme.faint;
      context.fillText(text, x + 5 * s, y + row.bar / 2);
    }
  }

  /** Shows which part of the lanes is in view. @param {{ lanes: number, bottom: number }} places @param {Theme} theme */
  drawScroll(places, theme) {
    const room = places.bottom - places.lanes;
    if (this.layout.height <= room) return;
    const s = globalThis.devicePixelRatio || 1;
    const height = Math.max(20 * s, (room * room) / this.layout.height);
    const y = places.lanes + ((room - height) * this.trace.scroll) / (this.layout.height - room);
    this.context.fillStyle = theme.faint;
    this.context.globalAlpha = 0.5;
    this.context.fillRect(this.canvas.width - 5 * s, y, 4 * s, height);
    this.context.globalAlpha = 1;
  }

  /** Returns what lies at a point of the canvas in CSS pixels. @param {number} x @param {number} y */
  hit(x, y) {
    const [scale, places] = [this.scale(), this.places()];
    const s = scale.scale;
    const time = scale.from + (x * s - scale.left) * scale.perPixel;
    const down = y * s - places.lanes + this.trace.scroll;
    const inLanes = y * s >= places.lanes && y * s < places.bottom;
    const row = inLanes ? rowAt(this.layout, down) : null;
    const gutter = x * s < scale.left;
    const group = inLanes && gutter ? groupAt(this.layout, x, down) : null;
    const part = gutter ? null : partAt(y * s - places.top, s);
    const task = y * s < places.bottom ? -1 : taskAt(this.trace, places, y * s, s);
    const region = y * s >= places.below ? "plots" : y * s >= places.bottom ? "tasks" : "lanes";
    const path = isPath(places, y * s, s);
    return { time, aligned: time - this.trace.zero, row, group, gutter, part, task, path, region, axis: y * s < places.lanes, ns: scale.perPixel };
  }

  /** Returns the columns at a row and the trace's own time. @param {Row} row @param {number} time */
  runAt(row, time) {
    return this.lanes.runAt(row, time, this.scale().perPixel);
  }

  /** Scrolls so that the row of a task is in view. @param {number} task its place */
  revealTask(task) {
    revealRow(this.trace, this.places(), task, globalThis.devicePixelRatio || 1);
  }

  /** Scrolls so that a CPU's lane is in view. @param {number} cpu */
  reveal(cpu) {
    const row = this.layout.byCpu.get(cpu);
    const places = this.places();
    if (!row) return;
    const room = places.bottom - places.lanes;
    if (row.y < this.trace.scroll) this.trace.scroll = row.y;
    else if (row.y + row.height > this.trace.scroll + room) this.trace.scroll = row.y + row.height - room;
  }
}
