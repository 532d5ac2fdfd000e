// The lists of the panel: episodes of violation, the longest waits, herds, missed steals, and what a search has found.

import { details } from "./details.js";
import { el, swatch } from "./dom.js";
import { clear, entries, go, isCurrent } from "./entries.js";
import { css, taskColor, theme } from "./palette.js";
import { inOrder, sortedTable } from "./sorted.js";
import { openStory } from "./story.js";
import { LISTS, change, named, state, taskOf } from "./state.js";
import { percent } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./sorted.js").Column<any>} Column */

/** The lists: their names, their contents, and the sentence for an empty one.
 * @type {Record<string, { title: string, about: string, none: string }>} */
const KINDS = {
  episodes: {
    title: "Violation", about: "Times in which a CPU idled while a task waited on another.",
    none: "No CPU idled while a task waited on another: work conservation was never violated.",
  },
  waits: { title: "Longest waits", about: "The longest waits of tasks for a CPU.", none: "No task waited for a CPU." },
  herds: {
    title: "Herds", about: "Several tasks that moved from one CPU to another at once.", none: "No CPU sent several tasks to another one at once.",
  },
  missed: {
    title: "Missed steals", about: "Switches to idle while a task waited on another CPU, as schedviz why counts them.",
    none: "No CPU went idle while a task waited on another.",
  },
};
/** The number of rows of a table. */
const ROWS = 200;

/** @param {Trace} trace @param {number | null} pid */
function taskCell(trace, pid) {
  if (pid === null) return "–";
  const task = taskOf(trace, pid);
  const color = task ? taskColor(task, state.color, state.filter, theme().other) : theme().other;
  return el("span", {}, swatch(css(color)), named(task ?? { pid, comm: "" }));
}

/** Returns the columns of a list. @param {string} kind @param {Trace} trace @returns {Column[]} */
function columnsOf(kind, trace) {
  /** @type {Column} */
  const start = { key: "start", head: "start", kind: "time", value: (row) => row.from - trace.zero };
  const length = (/** @type {string} */ head) => /** @type {Column} */ ({ key: "length", head, kind: "length", value: (row) => row.to - row.from });
  /** @type {Column} */
  const cpu = { key: "cpu", head: "CPU", kind: "number", value: (row) => row.cpu };
  switch (kind) {
    case "waits": return [start, length("waited"), cpu, {
      key: "task", head: "task", kind: "text", value: (row) => (row.pid === null ? null : named(taskOf(trace, row.pid) ?? { pid: row.pid, comm: "" })),
      show: (row) => taskCell(trace, row.pid), title: (row) => row.text,
    }];
    case "herds": return [start, length("within"), { key: "tasks", head: "tasks", kind: "number", value: (row) => row.tasks },
      { key: "origin", head: "from CPU", kind: "number", value: (row) => row.origin }, { ...cpu, head: "to CPU" }];
    case "missed": return [start, length("idle"), { key: "violated", head: "violated", kind: "length", value: (row) => row.violated }, cpu,
      { key: "nearest", head: "nearest waiter", kind: "text", value: (row) => row.nearest }];
    default: return [start, length("length")];
  }
}

/** @param {() => void} changed called when the order has changed @returns {Node[]} */
export function lists(changed) {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "List" });
  for (const kind of LISTS) {
    const button = el("button", { type: "button", "aria-pressed": String(kind === state.list) }, KINDS[kind].title);
    button.addEventListener("click", () => change({ list: kind }));
    choice.append(button);
  }
  const { title, about, none } = KINDS[state.list];
  const more = state.list === "episodes" && !state.static ? " Choose one to follow it step by step." : "";
  /** @type {Node[]} */
  const nodes = [choice, el("p", {}, about + more)];
  clear();
  state.traces.forEach((trace, n) => {
    const answer = details.list[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    if (!answer) return void nodes.push(el("p", {}, state.list === "missed" ? "The trace is read for this list …" : "…"));
    if (answer.rows.length === 0) return void nodes.push(el("p", { class: "empty" }, none));
    if (state.list === "missed") nodes.push(...distances(answer));
    const [columns, rows] = [columnsOf(state.list, trace), answer.rows.slice(0, ROWS)];
    /** @type {Map<any, number>} */
    const places = new Map();
    for (const row of inOrder(state.list, columns, rows)) places.set(row, entries.push({ trace, ...row }) - 1);
    nodes.push(sortedTable({
      name: state.list, label: `${title}: ${trace.head.name}`, columns, rows, changed, isCurrent: (row) => isCurrent(places.get(row) ?? -1),
      choose: (row) => {
        const place = places.get(row) ?? -1;
        go(entries[place], place);
        if (state.list === "episodes" && !state.static) openStory(entries[place], place);
      },
    }));
    if (answer.truncated || answer.rows.length > ROWS) nodes.push(el("p", {}, `The list is longer; its ${Math.min(ROWS, answer.rows.length)} largest entries are shown.`));
  });
  return nodes;
}

/** The missed steals by distance. @param {any} answer */
function distances(answer) {
  const [missed, all] = [answer.number, answer.idle_entries];
  const share = all > 0 ? ` (${percent(missed / all)})` : "";
  const table = sortedTable({
    name: "distances", label: "Missed steals by distance", rows: answer.by_distance, changed: () => change({ list: state.list }), choose: () => {},
    columns: /** @type {Column[]} */ ([
      { key: "nearest", head: "a task waited", kind: "text", value: (row) => row.nearest },
      { key: "number", head: "number", kind: "number", value: (row) => row.number },
      { key: "violated", head: "violated", kind: "length", value: (row) => row.violated },
    ]),
  });
  return [el("p", {}, `${missed.toLocaleString("en")} of ${all.toLocaleString("en")} switches to idle${share}`), table, el("h3", {}, "The longest")];
}

/** What a search has found. @param {() => void} changed @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function found(changed, choose) {
  const search = details.search;
  if (!search) return [];
  /** @type {Node[]} */
  const nodes = [el("h2", {}, `Found for “${search.text.trim()}”`)];
  clear();
  state.traces.forEach((trace, n) => {
    const answer = search.answers[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const tasks = answer.tasks.slice(0, ROWS).map((/** @type {number} */ pid) => taskOf(trace, pid) ?? { pid, comm: "", run: 0 });
    nodes.push(el("h3", {}, `Tasks: ${answer.tasks.length}`));
    if (tasks.length) nodes.push(sortedTable({
      name: "found tasks", label: "Tasks that were found", rows: tasks, changed, choose: (task) => choose(trace, task.pid),
      columns: /** @type {Column[]} */ ([
        { key: "task", head: "task", kind: "text", value: named, show: (task) => taskCell(trace, task.pid), title: named },
        { key: "run", head: "ran", kind: "length", value: (task) => task.run },
      ]),
    }));
    nodes.push(el("h3", {}, `Events: ${answer.events.length}`));
    if (!answer.events.length) return void nodes.push(el("p", { class: "empty" }, state.static ? "Events need the program." : "No event of this name; the names are those of schedviz info."));
    /** @type {Map<any, number>} */
    const places = new Map();
    const columns = /** @type {Column[]} */ ([
      { key: "time", head: "time", kind: "time", value: (event) => event.at - trace.zero },
      { key: "cpu", head: "CPU", kind: "number", value: (event) => event.cpu },
      { key: "event", head: "event", kind: "words", value: (event) => `${event.name} ${event.text}` },
    ]);
    const events = answer.events.slice(0, ROWS);
    for (const event of inOrder("found events", columns, events)) {
      places.set(event, entries.push({ trace, from: event.at, to: event.at, cpu: event.cpu, pid: null }) - 1);
    }
    nodes.push(sortedTable({
      name: "found events", label: "Events that were found", columns, rows: events, changed, isCurrent: (event) => isCurrent(places.get(event) ?? -1),
      choose: (event) => go(entries[places.get(event) ?? 0], places.get(event)),
    }));
  });
  return nodes;
}
