// The tables of the selection, or of the window in view: running, queued, wakeup latency, migrations and missed steals of tasks, their groups, CPUs
// or caches, as the server makes them with the code of the commands. They sort by a click on a head, and are copied with these commands.

import * as api from "./api.js";
import { asked, own } from "./details.js";
import { el, link } from "./dom.js";
import { doubtsOf } from "./findings.js";
import { PLURALS } from "./groups.js";
import { joinedRows, signed } from "./pairs.js";
import { sortedTable, unitFor } from "./sorted.js";
import { change, onChange, state, taskOf } from "./state.js";
import { csvOf, markdownOf } from "./tabletext.js";
import { duration, seconds } from "./time.js";
import { boundsOf, notRecorded } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").TableAnswer} TableAnswer */
/** @typedef {import("./api.js").TableRow} TableRow */
/** A column: its number, its head, its group of heads, whether it is a length, and what it is in words.
 * @typedef {{ key: string, head: string, isLength: boolean, about: string, kind: import("./trust.js").Kind }} Column */

/** The rules of the rows with their names. @type {[import("./state.js").TableBy, string][]} */
const RULES = [["task", "tasks"], ["command", PLURALS.command], ["process", PLURALS.process], ["cgroup", PLURALS.cgroup], ["cpu", "CPUs"], ["cache", "caches"]];

/** @type {Column[]} */
export const COLUMNS = [
  { key: "run", head: "running", isLength: true, kind: "running", about: "time on CPUs" },
  { key: "queued", head: "queued", isLength: true, kind: "waiting", about: "time on run queues, not running: its four kinds follow" },
  { key: "held_back", head: "held back", isLength: true, kind: "waiting", about: "queued on its own idle CPU for 1 ms or longer" },
  { key: "beside_idle", head: "beside idle", isLength: true, kind: "waiting", about: "queued while a CPU idled that the task may use" },
  { key: "beside_shorter", head: "beside shorter", isLength: true, kind: "waiting", about: "queued while another CPU had a shorter queue" },
  { key: "alike", head: "all alike", isLength: true, kind: "waiting", about: "queued while all queues were alike" },
  { key: "wakeups", head: "wakeups", isLength: false, kind: "waiting", about: "number of wakeup latencies that ended in the window" },
  { key: "p50", head: "latency 50 %", isLength: true, kind: "waiting", about: "wakeup latency, median" },
  { key: "p99", head: "99 %", isLength: true, kind: "waiting", about: "wakeup latency, 99th percentile" },
  { key: "max", head: "max", isLength: true, kind: "waiting", about: "longest wakeup latency" },
  { key: "migrations", head: "migrations", isLength: false, kind: "running", about: "migrations of these tasks; to the CPU or the cache, where rows are these" },
  { key: "missed", head: "missed steals", isLength: false, kind: "waiting", about: "switches to idle while one of these tasks waited elsewhere; by the idle CPU, where rows are CPUs or caches" },
];
/** The number of rows of a page. */
const PAGE = 100;
/** The maximum number of rows of a table. */
const ALL = 32769;
/** The rest after the last change of the view before a table is requested, in ms: the trace is read for it. */
const REST = 350;

/** The order of the rows: a column, and whether the largest come first. */
let order = { key: "run", down: true };
/** The place of the first row of each trace. @type {number[]} */
let skips = [];

/** The number of two traces that is shown with its difference. */
let paired = "run";
/** The maximum number of rows of two traces. */
const BOTH = 200;

/** Whether the rows of two traces are shown beside each other. Tasks have other PIDs in each run: those of one name are one row. */
const isPair = () => state.traces.length === 2;

/** All that the tables depend on. */
const question = () => ({ window: asked(), selected: state.selection !== null, filter: state.filter.trim(), by: state.table, ...order, skips: [...skips] });

/** The latest answer, with its question. @type {{ about: ReturnType<typeof question> | null, answers: (TableAnswer | null)[], fault: string }} */
let found = { about: null, answers: [], fault: "" };
/** Whether a request is on its way: there is one at a time. */
let isBusy = false;
/** @type {ReturnType<typeof setTimeout>} */
let waiting;

/** Requests the tables as the state has them, now; the latest question is the one that is answered at last. */
async function request() {
  if (isBusy) return;
  isBusy = true;
  for (let about = question(); state.tab === "tables" && JSON.stringify(about) !== JSON.stringify(found.about); about = question()) {
    try {
      const answers = [];
      for (const trace of state.traces) {
        const [from, to] = own(trace, about.window);
        const skip = about.skips[trace.index] ?? 0;
        answers.push(to > from ? await api.table(trace.index, about.by, [from, to], about.filter, { sort: about.key, down: about.down, skip, take: isPair() ? ALL : PAGE }) : null);
      }
      found = { about, answers, fault: "" };
    } catch (error) {
      found = { about, answers: [], fault: error instanceof Error ? error.message : String(error) };
    }
    dispatchEvent(new Event("tables"));
  }
  isBusy = false;
}

/** Requests what the state needs from now on. */
export function followTables() {
  onChange((changed) => {
    if (state.static || state.tab !== "tables" || state.traces.some((trace) => !trace.head.full)) return;
    if (["selection", "filter", "table", "from", "span"].some((part) => changed.has(part))) skips = [];
    clearTimeout(waiting);
    waiting = setTimeout(request, changed.has("tab") || changed.has("table") ? 0 : REST);
  });
}

/** The panel of the tables. @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function tablesPanel(choose) {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "Rows" });
  for (const [by, name] of RULES) {
    const button = el("button", { type: "button", "aria-pressed": String(by === state.table) }, name);
    button.addEventListener("click", () => change({ table: by }));
    choice.append(button);
  }
  const { about } = found;
  const [from, to] = about?.window ?? asked();
  const step = (to - from) / 100;
  const what = (about ? about.selected : state.selection !== null) ? "Selection" : "Window in view";
  /** @type {Node[]} */
  const nodes = [choice, el("p", { class: "part" }, `${what}: ${seconds(from, step)} s to ${seconds(to, step)} s (${duration(to - from)})${partOf(about)}.`)];
  const isStale = about?.by !== state.table;
  if (found.fault && !isStale) nodes.push(el("p", { class: "fault", role: "alert" }, found.fault));
  const [first, second] = isStale ? [] : found.answers;
  if (isPair() && first && second) return [...nodes, ...both([first, second])];
  state.traces.forEach((trace, n) => {
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const answer = isStale ? null : found.answers[n];
    if (answer) nodes.push(...tableOf(trace, answer, choose));
    else if (!found.fault || isStale) nodes.push(el("p", {}, "The trace is read for the table …"));
  });
  return nodes;
}

/** A number of two traces in two columns with the difference. @param {[TableAnswer, TableAnswer]} answers @returns {Node[]} */
function both(answers) {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "Number" });
  for (const { key, head, about } of COLUMNS) {
    const button = el("button", { type: "button", title: about, "aria-pressed": String(key === paired) }, head);
    button.addEventListener("click", () => {
      paired = key;
      dispatchEvent(new Event("tables"));
    });
    choice.append(button);
  }
  const column = COLUMNS.find(({ key }) => key === paired) ?? COLUMNS[0];
  const { key, isLength, kind } = column;
  /** @type {Node[]} */
  const nodes = [choice];
  state.traces.forEach((trace, n) => {
    const why = absence(trace, key, answers[n]);
    if (why) nodes.push(el("p", { class: "absent" }, `${trace.head.name}: ${why}.`));
    nodes.push(...judgement(trace, answers[n]));
  });
  const show = (/** @type {number} */ value) => (isLength ? duration(value) : value.toLocaleString("en"));
  const cell = (/** @type {number | null} */ value) => (value === null ? "–" : show(value));
  const rows = joinedRows(state.table, answers, key, !["p50", "p99", "max"].includes(key));
  const all = answers.map((answer) => answer.all[key]);
  const difference = all[0] === null || all[1] === null ? null : all[1] - all[0];
  const shown = [{ name: "all", values: all, difference }, ...rows.slice(0, BOTH)];
  const name = RULES.find(([by]) => by === state.table)?.[1] ?? "";
  const doubtful = state.traces.map((trace, n) => (doubtsOf(trace, kind, answers[n].trust).length ? " ⚠" : ""));
  /** @typedef {(typeof shown)[0]} Row */
  const table = sortedTable({
    name: "both tables", label: `${column.head} of both traces`, rows: shown, changed: () => dispatchEvent(new Event("tables")), choose: () => {},
    columns: /** @type {import("./sorted.js").Column<Row>[]} */ ([
      { key: "name", head: `${name} (${rows.length.toLocaleString("en")})`, kind: "text", value: (row) => row.name, title: (row) => row.name },
      ...state.traces.map((trace, n) => ({ key: `of ${n}`, head: trace.head.name + doubtful[n], kind: "number", value: (/** @type {Row} */ row) => row.values[n], show: (/** @type {Row} */ row) => cell(row.values[n]) })),
      { key: "difference", head: "difference", kind: "number", value: (row) => row.difference, show: (row) => (row.difference === null ? "–" : signed(row.difference, show)) },
    ]),
  });
  nodes.push(table);
  if (rows.length > BOTH) nodes.push(el("p", {}, `The ${BOTH} rows with the largest differences of ${rows.length.toLocaleString("en")}.`));
  return nodes;
}

/** @param {ReturnType<typeof question> | null} about */
function partOf(about) {
  const chosen = found.answers.map((answer) => answer?.chosen ?? null);
  if (!about?.filter || chosen[0] === null) return "";
  const of = state.traces.map((trace, n) => `${(chosen[n] ?? 0).toLocaleString("en")} of ${trace.head.tasks.length.toLocaleString("en")}`).join(" and ");
  return `, of the ${of} tasks that pass the filter “${about.filter}”`;
}

/** The reason for which a column is unknown; empty where it is not. @param {Trace} trace @param {string} key @param {TableAnswer} answer */
function absence(trace, key, answer) {
  if (key === "migrations") return notRecorded(trace.head, "sched_migrate_task");
  if (key === "missed" && answer.missed_unknown) return `unknown: ${answer.missed_unknown}`;
  const needsWakeups = ["held_back", "beside_idle", "beside_shorter", "alike", "wakeups", "p50", "p99", "max"].includes(key);
  return needsWakeups ? notRecorded(trace.head, "sched_wakeup", "sched_waking") : "";
}

/** The text of a number with its column's unit. @param {Column} column @param {number | null} value @param {number} unit in ns */
export function cellOf(column, value, unit) {
  if (value === null || value === undefined) return "–";
  if (!column.isLength) return value.toLocaleString("en");
  const number = value / unit;
  return number.toFixed(unit === 1 || value === 0 ? 0 : number >= 100 ? 1 : number >= 10 ? 2 : 3);
}

/** @param {Trace} trace @param {TableAnswer} answer @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
function tableOf(trace, answer, choose) {
  if (answer.chosen === 0) return [el("p", { class: "empty" }, "No task passes the filter.")];
  const units = new Map(COLUMNS.map(({ key, isLength }) => {
    const longest = Math.max(0, ...[...answer.rows, answer.all].map((row) => Number(row[key] ?? 0)));
    return [key, isLength ? unitFor(longest) : /** @type {[string, number]} */ (["", 1])];
  }));
  const shown = COLUMNS.filter(({ key }) => !absence(trace, key, answer));
  const absent = new Map(COLUMNS.filter((column) => !shown.includes(column)).map(({ key, head }) => [absence(trace, key, answer), head]));
  const name = RULES.find(([by]) => by === answer.by)?.[1] ?? "";
  const head = el("tr", {}, headOf("name", `${name} (${answer.number.toLocaleString("en")})`, "", "The name"));
  for (const { key, head: words, about, kind } of shown) {
    const cell = headOf(key, words, units.get(key)?.[0] ?? "", about);
    const why = doubtsOf(trace, kind, answer.trust);
    if (why.length) cell.append(" ", warning(why));
    head.append(cell);
  }
  const all = el("tr", { class: "all" }, el("td", {}, "all"));
  for (const column of shown) all.append(el("td", { class: "number" }, cellOf(column, answer.all[column.key], units.get(column.key)?.[1] ?? 1)));
  const body = el("tbody", {}, all);
  for (const row of answer.rows) {
    const line = el("tr", {}, el("td", { class: "clip", title: row.name }, row.name));
    for (const column of shown) line.append(el("td", { class: "number" }, cellOf(column, row[column.key], units.get(column.key)?.[1] ?? 1)));
    const go = leadsTo(trace, row, answer.by, choose);
    body.append(go ? link(line, go) : line);
  }
  const table = el("table", { "aria-label": `Numbers by ${answer.by}: ${trace.head.name}` }, el("thead", {}, head), body);
  /** @type {Node[]} */
  const nodes = [...judgement(trace, answer), el("div", { class: "sorted numbers" }, table), ...pages(trace, answer)];
  for (const [why, head] of absent) nodes.push(el("p", { class: "absent" }, `${head[0].toUpperCase()}${head.slice(1)} and what depends on the same events: ${why}.`));
  return [copyButtons(trace, shown), ...nodes, ...commandsOf(answer)];
}

/** A mark beside the head of a column in doubt, which opens the findings. @param {string[]} why */
function warning(why) {
  const mark = el("button", { type: "button", class: "doubt grave", title: `${why.join("\n")}\nClick: the findings`, "aria-label": "in doubt" }, "⚠");
  mark.addEventListener("click", () => change({ tab: "findings" }));
  return mark;
}

/** The judgement on the numbers, which the columns with a mark need. @param {Trace} trace @param {TableAnswer} answer @returns {Node[]} */
function judgement(trace, { trust }) {
  const [why] = doubtsOf(trace, "waiting", trust);
  const bounds = boundsOf(trust);
  if (!why) return [];
  return [el("p", { class: "fault" }, `⚠ ${why[0].toUpperCase()}${why.slice(1)}.${bounds ? ` The violation of this window lies between ${bounds.replace(" to ", " and ")}.` : ""}`)];
}

/** @param {string} key @param {string} words @param {string} unit @param {string} about */
function headOf(key, words, unit, about) {
  const isOrder = order.key === key;
  const button = el("button", { type: "button", title: `${about}. Click: sort by it` }, words + (unit ? ` (${unit})` : "") + (isOrder ? (order.down ? " ▾" : " ▴") : ""));
  button.addEventListener("click", () => {
    order = { key, down: isOrder ? !order.down : key !== "name" };
    skips = [];
    request();
    dispatchEvent(new Event("tables"));
  });
  const sort = isOrder ? (order.down ? "descending" : "ascending") : "none";
  return el("th", { scope: "col", "aria-sort": sort, ...(key === "name" ? {} : { class: "number" }) }, button);
}

/** What a click on a row does: a task is chosen, a group becomes the filter, a CPU that of the cursor. @param {Trace} trace @param {TableRow} row
 * @param {string} by @param {(trace: Trace, pid: number) => void} choose @returns {(() => void) | null} */
function leadsTo(trace, row, by, choose) {
  const { pid, cpu, group } = row;
  if (pid !== null) return taskOf(trace, pid) ? () => choose(trace, pid) : null;
  if (by === "cpu" && cpu !== null) return () => change({ place: { trace: trace.index, cpu, time: state.place?.time ?? state.from + state.span / 2 } });
  return group === null ? null : () => change({ filter: `${by}:=${group}` });
}

/** The buttons that turn the pages. @param {Trace} trace @param {TableAnswer} answer @returns {Node[]} */
function pages(trace, { skip, number, rows }) {
  if (skip === 0 && rows.length === number) return [];
  const button = (/** @type {string} */ text, /** @type {number} */ to, /** @type {boolean} */ works) => {
    const turn = el("button", { type: "button" }, text);
    turn.disabled = !works;
    turn.addEventListener("click", () => {
      skips[trace.index] = to;
      request();
    });
    return turn;
  };
  const words = `rows ${(skip + 1).toLocaleString("en")} to ${(skip + rows.length).toLocaleString("en")}`;
  return [el("div", { class: "choice", role: "group", "aria-label": "Pages of the table" }, button("‹ former", Math.max(0, skip - PAGE), skip > 0), words, button("next ›", skip + PAGE, skip + rows.length < number))];
}

/** The buttons that copy the whole table with the commands that print its numbers. @param {Trace} trace @param {Column[]} shown */
function copyButtons(trace, shown) {
  const copy = (/** @type {string} */ name, /** @type {(answer: TableAnswer, columns: Column[]) => string} */ text) => {
    const button = el("button", { type: "button", title: "All rows in this order, with the commands that print the same numbers" }, name);
    button.addEventListener("click", async () => {
      const { about } = found;
      if (!about) return;
      try {
        const whole = await api.table(trace.index, about.by, own(trace, about.window), about.filter, { sort: order.key, down: order.down, skip: 0, take: ALL });
        await navigator.clipboard.writeText(text(whole, shown));
        button.textContent = "copied";
      } catch (error) {
        button.textContent = `not copied: ${error instanceof Error ? error.message : error}`;
      }
      setTimeout(() => (button.textContent = name), 2000);
    });
    return button;
  };
  return el("div", { class: "choice", role: "group", "aria-label": "Copy" }, copy("Copy as CSV", csvOf), copy("Copy as Markdown", markdownOf));
}

/** A command line, which a click copies. @param {string} line */
function lineOf(line) {
  const button = el("button", { type: "button", class: "line", title: `${line}\nClick: copy` }, line);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(line);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = line), 1500);
  });
  return button;
}

/** The commands that print the numbers of a table. @param {TableAnswer} answer @returns {Node[]} */
function commandsOf({ commands }) {
  const lines = commands.flatMap(({ prints, line }) => [el("dt", {}, prints), el("dd", {}, lineOf(line))]);
  const none = el("p", {}, "Too many tasks pass the filter to be named on a command line.");
  return [el("h3", {}, "The same in a terminal"), lines.length ? el("dl", { class: "commands" }, ...lines) : none];
}
