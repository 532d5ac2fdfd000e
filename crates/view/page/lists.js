// The lists of the panel: episodes of violation, the longest waits, herds, missed steals, and what a search has found.

import { answerTo, faultOf, latest, listQuestion, turnFound } from "./details.js";
import { el, swatch } from "./dom.js";
import { add, begin, go, isCurrent } from "./entries.js";
import { doubt } from "./findings.js";
import { noteList } from "./notes.js";
import { css, taskColor, theme } from "./palette.js";
import { inOrder, sortedTable } from "./sorted.js";
import { openStory } from "./story.js";
import { taskList } from "./tasklist.js";
import { LISTS, change, named, state, taskOf } from "./state.js";
import { duration, percent, seconds } from "./time.js";
import { notRecorded } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./sorted.js").Column<any>} Column */

/** The lists: their names, their contents, and the sentence for an empty one.
 * @type {Record<string, { title: string, about: string, none: string }>} */
const KINDS = {
  episodes: {
    title: "Violation", about: "Times in which a CPU idled while a task that can be moved waited on another (movable waiters, as schedviz why and workcons count by default).",
    none: "No CPU idled while a task that can be moved waited on another: work conservation was never violated.",
  },
  waits: { title: "Longest waits", about: "The longest runqueue waits of tasks: from run queue to run queue where they were moved, with all their CPUs.", none: "No task waited for a CPU." },
  herds: {
    title: "Herds", about: "Several tasks that moved from one CPU to another at once.", none: "No CPU sent several tasks to another one at once.",
  },
  missed: {
    title: "Missed steals", about: "Switches to idle while a task that can be moved waited on another CPU, as schedviz why counts them.",
    none: "No CPU went idle while a task waited on another.",
  },
  tasks: { title: "Tasks", about: "All tasks that pass the filter, with their time on CPUs in the whole trace. A task is in the group that it has at the end.", none: "" },
  notes: { title: "Notes", about: "Named marks on an instant or a window. They are in the address.", none: "" },
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
    case "waits": return [start, length("waited"), { key: "cpu", head: "CPUs", kind: "words", value: (row) => row.cpu, show: cpusOf }, {
      key: "task", head: "task", kind: "text", value: (row) => (row.pid === null ? null : named(taskOf(trace, row.pid) ?? { pid: row.pid, comm: "" })),
      show: (row) => taskCell(trace, row.pid), title: (row) => row.text,
    }];
    case "herds": return [start, length("within"), { key: "tasks", head: "tasks", kind: "number", value: (row) => row.tasks },
      { key: "origin", head: "from CPU", kind: "number", value: (row) => row.origin }, { ...cpu, head: "to CPU" }];
    case "missed": return [start, length("idle"), { key: "violated", head: "violated", kind: "length", value: (row) => row.violated }, cpu,
      { key: "nearest", head: "nearest waiter", kind: "words", value: (row) => row.nearest }];
    default: return [start, length("length")];
  }
}

/** The CPUs of a wait, in order of time. @param {any} row */
function cpusOf({ cpus, cpus_number: number }) {
  return number > cpus.length ? [...cpus.slice(0, -1), "…", cpus.at(-1)].join(" → ") : cpus.join(" → ");
}

/** @param {() => void} changed called when the order has changed @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function lists(changed, choose) {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "List" });
  for (const kind of LISTS) {
    const button = el("button", { type: "button", "aria-pressed": String(kind === state.list) }, KINDS[kind].title);
    button.addEventListener("click", () => change({ list: kind }));
    choice.append(button);
  }
  const { title, about, none } = KINDS[state.list];
  const more = state.list === "episodes" && !state.static && !listQuestion().filter ? " Choose one to follow it step by step." : "";
  /** @type {Node[]} */
  const nodes = [choice, el("p", {}, about + more)];
  begin(`list ${state.list}`);
  if (state.list === "tasks") return [...nodes, ...taskList(choose)];
  if (state.list === "notes") return [...nodes, ...noteList()];
  nodes.push(...partOf());
  const answers = answerTo("list", listQuestion());
  if (!answers && faultOf("list")) return nodes;
  state.traces.forEach((trace, n) => {
    const answer = answers?.[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const lacks = state.list === "herds" ? notRecorded(trace.head, "sched_migrate_task") : "";
    if (lacks) return void nodes.push(el("p", { class: "empty" }, lacks));
    if (!answer) return void nodes.push(el("p", {}, state.list === "missed" ? "The trace is read for this list …" : "…"));
    const marks = doubt(trace);
    if (marks.length) nodes.push(el("p", {}, "The list is", ...marks));
    if (answer.unknown) return void nodes.push(el("p", { class: "empty" }, answer.unknown));
    const nothing = listQuestion().window ? "None in the selection." : none;
    if (answer.rows.length === 0) return void nodes.push(el("p", { class: "empty" }, answer.chosen === 0 ? "No task passes the filter." : nothing));
    if (state.list === "missed") nodes.push(...distances(answer));
    const [columns, rows] = [columnsOf(state.list, trace), answer.rows.slice(0, ROWS)];
    const entries = new Map(inOrder(state.list, columns, rows).map((row) => [row, add({ trace, ...row })]));
    nodes.push(sortedTable({
      name: state.list, label: `${title}: ${trace.head.name}`, columns, rows, changed, isCurrent: (row) => isCurrent(entries.get(row)),
      choose: (row) => {
        const entry = entries.get(row);
        if (!entry) return;
        go(entry);
        // The panel of the task then says why it waited.
        if (state.list === "waits" && !state.static && row.pid !== null) change({ wait: { trace: trace.index, pid: row.pid, from: row.from, to: row.to } });
        // The steps are those of the waiters that count by default.
        if (state.list === "episodes" && !state.static && !listQuestion().filter) openStory(entry);
      },
    }));
    if (answer.truncated || answer.rows.length > ROWS) nodes.push(el("p", {}, `The list is longer; its ${Math.min(ROWS, answer.rows.length)} largest entries are shown.`));
  });
  return nodes;
}

/** The part of the traces that the list is about, where it is not the whole: the selection, and the filter of a list of waits. @returns {Node[]} */
function partOf() {
  const { window, filter } = listQuestion();
  /** @type {Node[]} */
  const nodes = [];
  if (window) {
    const all = el("button", { type: "button" }, "whole trace");
    all.addEventListener("click", () => change({ selection: null }));
    const [from, to] = window;
    nodes.push(el("p", { class: "part" }, `In the selection: ${seconds(from, (to - from) / 100)} s to ${seconds(to, (to - from) / 100)} s (${duration(to - from)}), each entry with its part there. `, all));
  }
  if (filter) nodes.push(el("p", { class: "part" }, state.list === "waits" ? `Of the tasks that pass the filter “${filter}”.` : `Waiters: the tasks that pass the filter “${filter}”, as schedviz workcons and why count them with --pid.`));
  else if (state.filter && state.list !== "tasks" && !state.static) nodes.push(el("p", { class: "part" }, "Of all tasks: a herd is one of them together."));
  return nodes;
}

/** The missed steals by distance. @param {any} answer */
function distances(answer) {
  const [missed, all] = [answer.number, answer.idle_entries];
  const share = all > 0 ? ` (${percent(missed / all)})` : "";
  const table = sortedTable({
    name: "distances", label: "Missed steals by distance", rows: answer.by_distance, changed: () => change({ list: state.list }), choose: () => {},
    columns: /** @type {Column[]} */ ([
      { key: "nearest", head: "a task waited", kind: "words", value: (row) => row.nearest },
      { key: "number", head: "number", kind: "number", value: (row) => row.number },
      { key: "violated", head: "violated", kind: "length", value: (row) => row.violated },
    ]),
  });
  return [el("p", {}, `${missed.toLocaleString("en")} of ${all.toLocaleString("en")} switches to idle${share}`), table, el("h3", {}, "The longest")];
}

/** What a search has found. @param {() => void} changed @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function found(changed, choose) {
  const search = latest("search");
  if (!search) return [];
  /** @type {Node[]} */
  const nodes = [el("h2", {}, `Found for “${search.about}”`)];
  begin(`search ${search.about}`);
  if (search.answer) state.traces.forEach((trace, n) => {
    const answer = search.answer[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const tasks = answer.tasks.slice(0, ROWS).map((/** @type {number} */ pid) => taskOf(trace, pid) ?? { pid, comm: "", run: 0 });
    if (!answer.tasks_number && !answer.events_number) return void nodes.push(el("p", { class: "empty" }, nothingFound(answer)));
    if (tasks.length) nodes.push(el("h3", {}, `Tasks: ${counted(answer.tasks_number, tasks.length, true)}`), sortedTable({
      name: "found tasks", label: "Tasks that were found", rows: tasks, changed, choose: (task) => choose(trace, task.pid),
      columns: /** @type {Column[]} */ ([
        { key: "task", head: "task", kind: "text", value: named, show: (task) => taskCell(trace, task.pid), title: named },
        { key: "run", head: "ran", kind: "length", value: (task) => task.run },
      ]),
    }));
    const events = answer.events.slice(0, ROWS);
    if (!events.length) return;
    const { pages } = answer;
    const before = pages?.at(-1)?.before ?? 0;
    const columns = /** @type {Column[]} */ ([
      { key: "time", head: "time", kind: "time", value: (event) => event.at - trace.zero },
      { key: "cpu", head: "CPU", kind: "number", value: (event) => event.cpu },
      { key: "event", head: "event", kind: "words", value: (event) => `${event.name} ${event.text}` },
    ]);
    const entries = new Map(inOrder("found events", columns, events).map((event) => {
      return [event, add({ trace, from: event.at, to: event.at, cpu: event.cpu, pid: null, place: events.indexOf(event) })];
    }));
    nodes.push(el("h3", {}, `Events: ${counted(answer.events_number, events.length, answer.complete, before)}`), ...pageButtons(n, answer), sortedTable({
      name: "found events", label: "Events that were found", columns, rows: events, changed, isCurrent: (event) => isCurrent(entries.get(event)),
      choose: (event) => {
        const entry = entries.get(event);
        if (entry) go(entry);
      },
    }));
  });
  return nodes;
}

/** A number of things that were found, of which some are listed. @param {number} number @param {number} listed @param {boolean} complete
 * @param {number} [before] the number of those before the listed ones */
function counted(number, listed, complete, before = 0) {
  const all = `${complete ? "" : "at least "}${number.toLocaleString("en")}`;
  if (before > 0) return `${all}, here ${(before + 1).toLocaleString("en")} to ${(before + listed).toLocaleString("en")}`;
  return number > listed ? `${all}, the first ${listed.toLocaleString("en")} of them` : all;
}

/** The buttons that turn the pages of the events that were found. @param {number} trace @param {any} answer @returns {Node[]} */
function pageButtons(trace, { next, pages }) {
  const isFirst = !pages || pages.length < 2;
  if (isFirst && !next) return [];
  const button = (/** @type {string} */ text, /** @type {boolean} */ works, /** @type {1 | -1} */ step) => {
    const turn = el("button", { type: "button" }, text);
    turn.disabled = !works;
    turn.addEventListener("click", () => turnFound(trace, step));
    return turn;
  };
  return [el("div", { class: "choice", role: "group", "aria-label": "Pages of events" }, button("‹ former", !isFirst, -1), button("next ›", Boolean(next), 1))];
}

/** @param {any} answer */
function nothingFound(answer) {
  if (state.static) return "No task has this name or PID. Searching for events needs the program.";
  return answer.complete ? "No task and no event has this name or PID; schedviz info lists the events." : "No task has this name or PID, nor has an event of the part that was searched.";
}
