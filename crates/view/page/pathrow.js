// The row of the critical path above the rows of tasks: with which task the path is, and what that does then. Its parts are asked for by window and columns.

import * as api from "./api.js";
import { xOf } from "./lanes.js";
import { css, taskColor } from "./palette.js";
import { pathKey, pathName, pathTask } from "./pathpick.js";
import { change, named, refresh, state } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./api.js").PathPart} PathPart */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

/** The places of the states that are drawn in a way of their own. */
const [RUNNING, SLEEPING, UNKNOWN] = [0, 7, 8];
/** The most columns of a request. */
const COLUMNS = 8192;
/** The height of the strip in the colour of the task, in CSS pixels. */
const STRIP = 3;

/** The window to ask for around one in view, and its number of columns: as much again on both sides, as far as the columns suffice.
 * @param {[number, number]} view @param {number} span @param {number} perPixel @returns {[number, number, number]} */
export function windowAround([from, to], span, perPixel) {
  const column = Math.max(1, perPixel, (to - from) / COLUMNS);
  const margin = Math.max(0, Math.min(to - from, (COLUMNS * column - (to - from)) / 2));
  const [start, end] = [Math.max(0, Math.floor(from - margin)), Math.min(span, Math.ceil(to + margin))];
  return [start, end, Math.min(COLUMNS, Math.max(1, Math.ceil((end - start) / column)))];
}

/** The place of the part that holds an instant, -1 for none. @param {PathPart[]} parts @param {number} time */
export function placeAt(parts, time) {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parts[middle][1] <= time) low = middle + 1;
    else high = middle;
  }
  return low < parts.length && parts[low][0] <= time ? low : -1;
}

/** The CPU of a part, or where the path is next: -1 where it is on none any more. @param {PathPart[]} parts @param {number} place */
export const cpuFrom = (parts, place) => parts.slice(place).find((part) => part[3] !== null)?.[3] ?? -1;

export class PathRow {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {import("./api.js").PathAnswer | null} */
    this.answer = null;
    this.fault = "";
    this.asking = false;
    /** The time of the next attempt, behind a failure. */
    this.pause = 0;
    /** The tasks by their PIDs, of this list. @type {{ list: import("./api.js").Task[], byPid: Map<number, import("./api.js").Task> }} */
    this.tasks = { list: [], byPid: new Map() };
    /** What the answer has. */
    this.known = { from: 0, to: -1, perPixel: 0 };
    /** The text of the path that the answer and the tasks belong to. */
    this.key = "";
    /** The tasks on the path, by their PIDs: null until they were asked for. @type {Set<number> | null} */
    this.pids = null;
    this.asksTasks = false;
  }

  /** @param {number} pid */
  taskOf(pid) {
    const list = this.trace.head.tasks;
    if (this.tasks.list !== list) this.tasks = { list, byPid: new Map(list.map((task) => [task.pid, task])) };
    return this.tasks.byPid.get(pid) ?? null;
  }

  /** The name of a task. @param {number} pid */
  nameOf(pid) {
    return named(this.taskOf(pid) ?? { pid, comm: "" });
  }

  /** Whether nothing is under way. */
  complete() {
    return !this.asking && !this.asksTasks;
  }

  /** Drops what belongs to another path. */
  renew() {
    const key = pathKey(this.trace);
    if (this.key === key) return;
    [this.key, this.answer, this.fault, this.known, this.pids, this.pause] = [key, null, "", { from: 0, to: -1, perPixel: 0 }, null, 0];
  }

  /** The PIDs of the tasks on the path, none until they are there; they are asked for once. @returns {Set<number>} */
  tasksOn() {
    this.renew();
    if (!this.pids && !this.asksTasks && this.trace.head.full && performance.now() >= this.pause) void this.askTasks();
    return this.pids ?? new Set();
  }

  async askTasks() {
    const { key } = this;
    this.asksTasks = true;
    try {
      const answer = await api.pathTasks(this.trace.index, pathTask(this.trace));
      if (this.key === key) this.pids = new Set(answer.tasks ?? []);
    } catch (error) {
      if (this.key === key) this.failed(error);
    }
    this.asksTasks = false;
    refresh();
  }

  /** @param {unknown} error */
  failed(error) {
    this.fault = error instanceof Error ? error.message : String(error);
    this.pause = performance.now() + api.AGAIN;
    setTimeout(refresh, api.AGAIN + 1);
  }

  /** Asks for what is in view, unless it is there. @param {Scale} scale */
  async want(scale) {
    this.renew();
    const { head, index } = this.trace;
    const view = /** @type {[number, number]} */ ([Math.max(0, scale.from), Math.min(head.span, scale.from + (scale.right - scale.left) * scale.perPixel)]);
    if (!head.full || this.asking || this.answer?.none || view[1] <= view[0] || performance.now() < this.pause) return;
    const { known, key } = this;
    if (known.from <= view[0] && known.to >= view[1] && known.perPixel <= 1.5 * Math.max(1, scale.perPixel)) return;
    this.asking = true;
    const [from, to, columns] = windowAround(view, head.span, scale.perPixel);
    try {
      const answer = await api.path(index, from, to, columns, pathTask(this.trace));
      // The user may have chosen another path meanwhile.
      if (this.key === key) [this.answer, this.known, this.fault] = [answer, { from, to, perPixel: Math.max(1, scale.perPixel) }, ""];
    } catch (error) {
      if (this.key === key) this.failed(error);
    }
    this.asking = false;
    refresh();
  }

  /** The words in place of a path. */
  words() {
    if (this.answer?.none) return "no application: no critical path";
    return this.answer ? "" : this.fault || "the trace is read for it …";
  }

  /** Draws the row at this height. @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} y @param {number} bar
   * @param {Theme} theme @param {string[]} colors of the states */
  draw(context, scale, y, bar, theme, colors) {
    void this.want(scale);
    const s = scale.scale;
    const [left, right] = [Math.max(scale.left, xOf(scale, 0)), Math.min(scale.right, xOf(scale, this.trace.head.span))];
    context.font = `${11 * s}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    if (right <= left) return;
    context.fillStyle = theme.lane;
    context.fillRect(left, y, right - left, bar);
    context.save();
    context.beginPath();
    context.rect(left, y, right - left, bar);
    context.clip();
    const words = this.words();
    if (words) {
      context.textAlign = "left";
      context.fillStyle = theme.faint;
      context.fillText(words, left + 5 * s, y + bar / 2 + 0.5 * s);
    } else this.drawParts(context, scale, y, bar, theme, colors);
    context.restore();
  }

  /** @param {CanvasRenderingContext2D} context @param {Scale} scale @param {number} y @param {number} bar @param {Theme} theme @param {string[]} colors */
  drawParts(context, scale, y, bar, theme, colors) {
    const strip = Math.round(STRIP * scale.scale);
    /** Stretches with one task: its edges and its PID. @type {[number, number, number][]} */
    const stays = [];
    /** @type {Map<number, string>} */
    const known = new Map();
    const colorOf = (/** @type {number} */ pid) => {
      const task = this.taskOf(pid);
      return css(task ? taskColor(task, state.color, state.filter, theme.other) : theme.other);
    };
    for (const [from, to, pid, , tasks, times] of this.answer?.parts ?? []) {
      const [x, end] = [Math.max(scale.left, Math.round(xOf(scale, from))), Math.min(scale.right, Math.round(xOf(scale, to)))];
      if (end <= scale.left || x >= scale.right) continue;
      const width = Math.max(1, end - x);
      const color = known.get(pid) ?? colorOf(pid);
      known.set(pid, color);
      let below = y + bar - strip;
      for (const [place, ns] of times) {
        const height = ((bar - strip) * ns) / Math.max(1, to - from);
        context.fillStyle = place === RUNNING ? color : colors[place];
        if (place !== SLEEPING) context.fillRect(x, below - height, width, height);
        else if (times.length === 1) context.fillRect(x, Math.round(y + (bar - strip) / 2), width, Math.max(1, scale.scale));
        below -= height;
      }
      context.fillStyle = color;
      context.fillRect(x, y + bar - strip, width, strip);
      const last = stays.at(-1);
      if (last && last[2] === pid && tasks === 1 && last[1] >= x) last[1] = end;
      else stays.push([x, end, tasks === 1 ? pid : -1]);
    }
    context.textAlign = "left";
    context.lineJoin = "round";
    for (const [x, end, pid] of stays) {
      const text = pid >= 0 && [this.nameOf(pid), String(pid)].find((text) => text.length * 6.6 * scale.scale + 6 * scale.scale < end - x);
      if (!text) continue;
      [context.strokeStyle, context.lineWidth, context.fillStyle] = [theme.ground, 3 * scale.scale, theme.ink];
      for (const write of ["strokeText", "fillText"]) context[/** @type {"strokeText" | "fillText"} */ (write)](text, x + 4 * scale.scale, y + (bar - strip) / 2 + 0.5 * scale.scale);
    }
  }

  /** The text about an instant of the row. @param {number} time @param {number} perPixel */
  about(time, perPixel) {
    const { answer, trace } = this;
    if (!answer || answer.none) return `${this.words()}${answer?.none ? `\n${answer.none}` : ""}`;
    const lines = [`critical path of ${pathName(trace, answer.task)}  ·  ${seconds(time - trace.zero, perPixel)} s`];
    const part = answer.parts[placeAt(answer.parts, time)];
    if (part) {
      const [from, to, pid, cpu, tasks, times] = part;
      const others = tasks > 1 ? `, most of it; with ${tasks - 1} ${tasks === 2 ? "other task" : "other tasks"}` : "";
      lines.push(`${this.nameOf(pid)}${cpu === null ? "" : `, CPU ${cpu}`}${others}`);
      for (const [place, ns] of times) lines.push(`${answer.states[place]}  ·  ${times.length === 1 ? duration(ns) : `${percent(ns / (to - from))} of ${duration(to - from)}`}`);
    } else lines.push(time > (answer.parts.at(-1)?.[1] ?? 0) ? "behind the end of the path, or not loaded yet" : "not loaded yet");
    if (answer.is_untrusted) lines.push("not to be trusted: more than 20 % of the path is unknown");
    if (answer.is_cut) lines.push("its beginning was dropped: it has too many segments");
    return lines.join("\n");
  }

  /** Highlights the task that the path is with, and puts the cursor there. @param {number} time */
  choose(time) {
    const { answer, trace } = this;
    const place = answer && !answer.none ? placeAt(answer.parts, time) : -1;
    if (!answer || place < 0) return;
    const cpu = cpuFrom(answer.parts, place);
    const known = state.place?.trace === trace.index ? state.place.cpu : trace.head.cpus[0]?.cpu ?? 0;
    change({
      place: { trace: trace.index, cpu: cpu < 0 ? known : cpu, time: Math.round(time) - trace.zero },
      highlight: { trace: trace.index, pid: answer.parts[place][2] },
      tab: state.tab === "task" ? "task" : "here",
    });
  }
}

/** The colours of the states of the path in their order, from those of queued time. @param {string[]} queued held back, beside an idle CPU,
 * beside a shorter queue, alike, of unknown kind @param {string} throttled @param {Theme} theme */
export const stateColors = (queued, throttled, theme) => ["", ...queued, WAKING, theme.faint, css(theme.hatch), throttled];

/** The colour of a wakeup in progress, as in the figure of `path`. */
export const WAKING = "#b060e0";
