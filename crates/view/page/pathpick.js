// Whose critical path is shown: the application's, a task's to its exit, or a task's back from an instant. The row, the panel and what lies over the
// lanes ask here.

import { el } from "./dom.js";
import { change, named, onChange, state, taskOf } from "./state.js";
import { seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").PathTask} PathTask */

/** The number of characters of a command's name that the menu has room for. */
const LONGEST = 5;

/** The task whose path a trace shows; null for the application. @param {Trace} trace */
const alongOf = (trace) => (state.along?.trace === trace.index ? state.along : null);

/** The question for the path of a trace, as the server takes it. @param {Trace} trace @returns {PathTask} */
export function pathTask(trace) {
  const along = alongOf(trace);
  if (!along) return {};
  return along.at === null ? { of: along.pid } : { of: along.pid, at: Math.min(Math.max(Math.round(along.at + trace.zero), 0), trace.head.span) };
}

/** The text that identifies the path of a trace. @param {Trace} trace */
export const pathKey = (trace) => JSON.stringify(pathTask(trace));

/** The name of the path: that of the task at its end, and the instant from which it goes back. @param {Trace} trace
 * @param {{ pid: number, command: string } | null | undefined} found the task that the server has found */
export function pathName(trace, found) {
  const along = alongOf(trace);
  if (!along) return found ? named({ pid: found.pid, comm: found.command }) : "the application";
  const name = named(taskOf(trace, along.pid) ?? { pid: along.pid, comm: found?.command ?? "" });
  return along.at === null ? name : `${name}, back from ${seconds(along.at, 1000)} s`;
}

/** The choices, each with its name: the path that is shown, those of the highlighted task, and the application's.
 * @param {Trace} trace @returns {[string, string][]} */
export function pathChoices(trace) {
  /** @type {[string, string][]} */
  const all = [["", "path: application"]];
  const add = (/** @type {string} */ value, /** @type {string} */ name) => all.some(([other]) => other === value) || all.push([value, name]);
  const along = alongOf(trace);
  if (along) add(valueOf(along), `path: ${short(trace, along.pid)}${along.at === null ? "" : `, back from ${seconds(along.at, 1000)} s`}`);
  if (state.highlight?.trace === trace.index) {
    const { pid } = state.highlight;
    const name = short(trace, pid);
    add(`${pid}`, `path: ${name}`);
    if (state.place?.trace === trace.index) add(`${pid},${Math.round(state.place.time)}`, `path: ${name}, back from the cursor`);
  }
  return all;
}

/** The name of a task with its PID within the width of the menu. @param {Trace} trace @param {number} pid */
function short(trace, pid) {
  const comm = taskOf(trace, pid)?.comm ?? "";
  return named({ pid, comm: comm.length > LONGEST ? `${comm.slice(0, LONGEST - 1)}…` : comm });
}

/** @param {{ pid: number, at: number | null }} along */
const valueOf = ({ pid, at }) => (at === null ? `${pid}` : `${pid},${Math.round(at)}`);

/** Shows the path of a choice; rows are shown for it where there are none. @param {Trace} trace @param {string} value */
export function choosePath(trace, value) {
  const [pid, at] = value.split(",").map(Number);
  const along = value === "" ? null : { trace: trace.index, pid, at: at ?? null };
  change({ along, rows: state.rows || "path" });
}

/** Shows the path of the highlighted task, or with `back` its path back from the cursor; again, the application's. @param {boolean} back */
export function pathOfHighlight(back) {
  const { highlight, place } = state;
  const trace = highlight ? state.traces[highlight.trace] : null;
  if (!highlight || !trace || state.static) return;
  const at = back ? Math.round(place?.trace === trace.index ? place.time : state.from + state.span / 2) : null;
  const value = valueOf({ pid: highlight.pid, at });
  const along = alongOf(trace);
  choosePath(trace, along && valueOf(along) === value ? "" : value);
}

/** A button that shows the critical path of a task, and that of the application again. @param {Trace} trace @param {number} pid */
export function pathButton(trace, pid) {
  const along = alongOf(trace);
  const isShown = along?.pid === pid;
  const button = el("button", { type: "button", class: "pin", "aria-pressed": String(isShown), title: "The critical path of this task (K); back from the cursor: Shift and K" }, "path");
  button.addEventListener("click", () => choosePath(trace, isShown ? "" : String(pid)));
  return button;
}

/** The menu beside the row, and the switch for the path over lanes and rows. */
export class PathMenu {
  /** @param {Trace} trace @param {HTMLElement} room */
  constructor(trace, room) {
    this.trace = trace;
    this.key = "";
    this.menu = el("select", { "aria-label": "Whose critical path" });
    this.menu.addEventListener("change", () => choosePath(trace, this.menu.value));
    this.trail = el("input", { type: "checkbox", "aria-label": "Show the path over the lanes and rows", title: "Show the path over the lanes and rows" });
    this.trail.addEventListener("change", () => change({ trail: this.trail.checked }));
    this.box = el("div", { class: "pathmenu" }, this.menu, this.trail);
    this.box.hidden = true;
    room.append(this.box);
    onChange((changed) => {
      if (["along", "highlight", "place", "traces", "trail"].some((part) => changed.has(part))) this.fill();
    });
  }

  fill() {
    const choices = pathChoices(this.trace);
    const key = JSON.stringify(choices);
    if (this.key !== key) this.menu.replaceChildren(...choices.map(([value, name]) => new Option(name, value)));
    this.key = key;
    const along = alongOf(this.trace);
    this.menu.value = along ? valueOf(along) : "";
    this.menu.title = `Critical path of ${along ? pathName(this.trace, null) : "the application"}`;
    this.trail.checked = state.trail;
  }

  /** Shows it at this height in CSS pixels. @param {number} y @param {number} width of the gutter @param {boolean} isShown */
  show(y, width, isShown) {
    this.box.hidden = !isShown;
    if (!isShown) return;
    if (this.key === "") this.fill();
    this.box.style.transform = `translateY(${y}px)`;
    this.box.style.width = `${width - 4}px`;
  }
}
