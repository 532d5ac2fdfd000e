// The legend: the colours of the lanes by the property that decides them, and those of the other parts.

import { latest } from "./details.js";
import { el, swatch } from "./dom.js";
import { groupFault, groupName } from "./groups.js";
import { legendOfRows } from "./rowdraw.js";
import { CLASSES, PALETTE, bands, causeColor, css, passes, taskColor, theme } from "./palette.js";
import { named, state, taskOf } from "./state.js";
import { duration } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").Task} Task */
/** Makes a row for a task. @typedef {(trace: Trace, who: Task, ...cells: (string | Node)[]) => HTMLTableRowElement} TaskRow */

/** The number of values of a property. */
const VALUES = 24;

/** @param {[string[], string][]} rows */
function table(rows) {
  const made = el("table");
  for (const [paints, name] of rows) made.append(el("tr", {}, el("td", {}, swatch(...paints), name)));
  return made;
}

/** Returns the value of the property that colours a task, as text. @param {Trace} trace @param {Task} task */
function valueOf(trace, task) {
  switch (state.color) {
    case "command": return task.comm || "no command";
    case "process":
    case "cgroup": return groupName(task, state.color);
    case "node": return task.node === null ? "node unknown" : `node ${task.node}`;
    case "parent": return task.parent === null ? "parent unknown" : `children of ${named(taskOf(trace, task.parent) ?? { pid: task.parent, comm: "" })}`;
    default: return (CLASSES[task.class] ?? CLASSES.task)[0];
  }
}

/** The values of the property of a trace's tasks, those that ran longest first: each with its colour, its tasks and their time.
 * @param {Trace} trace @param {number} grey */
export function values(trace, grey) {
  /** @type {Map<string, { color: number, tasks: number, run: number }>} */
  const found = new Map();
  for (const task of trace.head.tasks) {
    if (!passes(task, state.filter)) continue;
    const name = valueOf(trace, task);
    const value = found.get(name) ?? { color: taskColor(task, state.color, "", grey), tasks: 0, run: 0 };
    found.set(name, { ...value, tasks: value.tasks + 1, run: value.run + task.run });
  }
  return [...found].sort((a, b) => b[1].run - a[1].run || (a[0] < b[0] ? -1 : 1));
}

/** @param {Trace} trace @param {number} grey @returns {Node[]} */
function ofProperty(trace, grey) {
  if (groupFault(trace) && (state.color === "process" || state.color === "cgroup")) return [el("p", { class: "fault", role: "alert" }, groupFault(trace))];
  const all = values(trace, grey);
  const made = el("table", {}, el("tr", {}, el("th", {}, state.color === "node" ? "first node" : state.color), el("th", { class: "number" }, "tasks"), el("th", { class: "number" }, "ran")));
  for (const [name, { color, tasks, run }] of all.slice(0, VALUES)) {
    made.append(el("tr", {}, el("td", { class: "clip", title: name }, swatch(css(color)), name), el("td", { class: "number" }, tasks.toLocaleString("en")), el("td", { class: "number" }, duration(run))));
  }
  const more = all.length - VALUES;
  return more > 0 ? [made, el("p", {}, `and ${more.toLocaleString("en")} more, which share the ${PALETTE.length} colours`)] : [made];
}

/** @param {Trace} trace @param {number} n @param {TaskRow} taskRow @returns {Node[]} */
function ofTasks(trace, n, taskRow) {
  const ids = /** @type {[number, number][]} */ (latest("window")?.answer?.[n]?.tasks ?? []);
  const inView = ids.flatMap(([id, ns]) => (trace.head.tasks[id] ? [/** @type {[Task, number]} */ ([trace.head.tasks[id], ns])] : []));
  // Without a server there are no numbers of the window: those of the whole trace stand in.
  const whole = trace.head.tasks.map((task) => /** @type {[Task, number]} */ ([task, task.run])).sort((a, b) => b[1] - a[1]);
  const tasks = el("table");
  for (const [task, ns] of (state.static ? whole : inView).slice(0, 16)) tasks.append(taskRow(trace, task, duration(ns)));
  return [tasks];
}

/** @param {TaskRow} taskRow @returns {Node[]} */
export function legend(taskRow) {
  const colors = theme();
  /** @type {Node[]} */
  const nodes = [el("h2", {}, "Lanes")];
  state.traces.forEach((trace, n) => {
    if (state.traces.length > 1) nodes.push(el("h3", {}, trace.head.name));
    nodes.push(...(state.color === "task" ? ofTasks(trace, n, taskRow) : ofProperty(trace, colors.other)));
  });
  nodes.push(table([
    [[css(colors.mixedRgb)], "several more tasks in one column"],
    [[css(colors.other)], "tasks outside the filter, or without the property"],
    [[colors.lane], "idle"],
    [[colors.missing], "not loaded yet"],
    [[css(colors.hatch), colors.lane, css(colors.hatch), colors.lane], "unknown: events were lost (hatched)"],
    [[css(colors.offline)], "offline (a line along the lane)"],
  ]));
  nodes.push(el("h3", {}, "Waiting tasks (runqueue wait), in the strip below a lane"));
  nodes.push(table(["up to 1", "up to 2", "up to 4", "up to 8", "up to 16", "more"].map((name, n) => [[css(bands()[n])], name])));
  if (state.rows && !state.rowless) nodes.push(el("h3", {}, "Rows of tasks, a share of time a share of the height"), table(legendOfRows(colors)));
  nodes.push(el("h3", {}, "Machine"));
  nodes.push(table([[[colors.running], "running tasks"], [[colors.waiting], "running and waiting tasks; pale: the most within a column"], [[colors.violation], "share of time in violation of work conservation (movable waiters)"]]));
  nodes.push(el("h3", {}, "Migrations by cause"));
  nodes.push(table((state.traces[0]?.head.causes ?? []).map((cause) => [[css(causeColor(cause))], cause])));
  nodes.push(el("h3", {}, "Highlighted task"));
  nodes.push(table([[[colors.accent], "its runs (outlined); arrows from its wakers"], [[colors.waiting], "its waits (hatched), where it waited"], [[colors.faint], "arrows to tasks that it woke"]]));
  return nodes;
}
