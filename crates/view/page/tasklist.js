// The list of all tasks, task by task or below groups that can be opened.

import { el, link, swatch } from "./dom.js";
import { PLURALS, groupFault, groupName } from "./groups.js";
import { RULES, css, passes, taskColor, theme } from "./palette.js";
import { change, named, state } from "./state.js";
import { duration, percent } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").Task} Task */
/** @typedef {import("./palette.js").Rule} Rule */

/** The number of groups, and of tasks of a group, that are listed. */
const ROWS = 200;

/** Returns the filter that lets the tasks of a group through. @param {Rule} rule @param {string} name */
const filterOf = (rule, name) => `${rule}:=${name}`;

/** @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function taskList(choose) {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "Rows" });
  for (const rule of /** @type {("task" | Rule)[]} */ (["task", ...RULES])) {
    const button = el("button", { type: "button", "aria-pressed": String(rule === state.rule) }, rule === "task" ? "tasks" : PLURALS[rule]);
    button.addEventListener("click", () => change({ rule, opened: new Set() }));
    choice.append(button);
  }
  /** @type {Node[]} */
  const nodes = [choice];
  for (const trace of state.traces) {
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const shown = trace.head.tasks.filter((task) => passes(task, state.filter));
    const run = shown.reduce((sum, task) => sum + task.run, 0);
    if (!shown.length) nodes.push(el("p", { class: "empty" }, "No task passes the filter."));
    else if (state.rule === "task") nodes.push(el("table", { class: "grouped", "aria-label": `Tasks: ${trace.head.name}` }, head("task"), ...rowsOf(trace, shown, run, choose)));
    else if (groupFault(trace)) nodes.push(el("p", { class: "fault", role: "alert" }, groupFault(trace)));
    else if (!trace.grouped) nodes.push(el("p", {}, "The trace is read for the groups …"));
    else nodes.push(grouped(trace, shown, run, state.rule, choose));
  }
  return nodes;
}

/** @param {string} what @returns {HTMLTableRowElement} */
const head = (what) => el("tr", {}, el("th", { scope: "col" }, what), el("th", { scope: "col", class: "number" }, "tasks"), el("th", { scope: "col", class: "number" }, "ran"), el("th", { scope: "col", class: "number" }, "share"));

/** The tasks that ran longest, and the number of others. @param {Trace} trace @param {Task[]} tasks @param {number} all the time of all that is shown
 * @param {(trace: Trace, pid: number) => void} choose @returns {HTMLTableRowElement[]} */
function rowsOf(trace, tasks, all, choose) {
  const sorted = [...tasks].sort((a, b) => b.run - a.run || a.pid - b.pid);
  const rows = sorted.slice(0, ROWS).map((task) => {
    const color = css(taskColor(task, state.color, state.filter, theme().other));
    const row = el("tr", { class: "member" }, el("td", { class: "clip", title: named(task) }, swatch(color), named(task)), el("td", { class: "number" }));
    row.append(el("td", { class: "number" }, duration(task.run)), el("td", { class: "number" }, share(task.run, all)));
    return link(row, () => choose(trace, task.pid));
  });
  const more = sorted.length - rows.length;
  if (more > 0) rows.push(el("tr", {}, el("td", { colspan: "4" }, `and ${more.toLocaleString("en")} more; a filter shows a part`)));
  return rows;
}

/** @param {number} run @param {number} all */
const share = (run, all) => (all > 0 ? percent(run / all) : "–");

/** The groups, each with its tasks where it is open. @param {Trace} trace @param {Task[]} tasks @param {number} all @param {Rule} rule
 * @param {(trace: Trace, pid: number) => void} choose */
function grouped(trace, tasks, all, rule, choose) {
  /** @type {Map<string, Task[]>} */
  const groups = new Map();
  for (const task of tasks) {
    const name = groupName(task, rule);
    const members = groups.get(name);
    if (members) members.push(task);
    else groups.set(name, [task]);
  }
  const rows = [...groups].map(([name, members]) => ({ name, members, run: members.reduce((sum, task) => sum + task.run, 0) }));
  rows.sort((a, b) => b.run - a.run || (a.name < b.name ? -1 : 1));
  const table = el("table", { class: "grouped", "aria-label": `Tasks by ${rule}: ${trace.head.name}` }, head(`${rule} (${rows.length.toLocaleString("en")})`));
  for (const { name, members, run } of rows.slice(0, ROWS)) {
    const key = `${trace.index}:${name}`;
    const isOpen = state.opened.has(key);
    const fold = el("button", { type: "button", class: "fold", "aria-expanded": String(isOpen), title: name }, el("span", { "aria-hidden": "true" }, isOpen ? "▾" : "▸"), ` ${name}`);
    fold.addEventListener("click", () => {
      const opened = new Set(state.opened);
      if (!opened.delete(key)) opened.add(key);
      change({ opened });
    });
    const filter = filterOf(rule, name);
    const isOnly = state.filter === filter;
    const only = el("button", { type: "button", class: "only", "aria-pressed": String(isOnly), title: `Show the lanes of ${name} alone in colour` }, "only");
    only.addEventListener("click", () => change({ filter: isOnly ? "" : filter }));
    const color = state.color === rule ? swatch(css(taskColor(members[0], state.color, "", theme().other))) : null;
    const row = el("tr", { class: "of-group" }, el("td", { class: "clip" }, color, fold, only), el("td", { class: "number" }, members.length.toLocaleString("en")));
    row.append(el("td", { class: "number" }, duration(run)), el("td", { class: "number" }, share(run, all)));
    table.append(row);
    if (isOpen) table.append(...rowsOf(trace, members, all, choose));
  }
  const more = rows.length - ROWS;
  if (more > 0) table.append(el("tr", {}, el("td", { colspan: "4" }, `and ${more.toLocaleString("en")} ${PLURALS[rule]} more; a filter shows a part`)));
  return table;
}
