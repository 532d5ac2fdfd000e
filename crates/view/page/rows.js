// The rows of tasks below the lanes: which tasks have one, in which order, and the facts about them, asked for once.

import * as api from "./api.js";
import { el } from "./dom.js";
import { family, inTree } from "./family.js";
import { RULES, passes } from "./palette.js";
import { PathRow } from "./pathrow.js";
import { pathName } from "./pathpick.js";
import { RowArrows } from "./rowarrows.js";
import { RowTiles } from "./rowtiles.js";
import { change, named, onChange, refresh, state, taskOf } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").RowFacts} RowFacts */

/** The properties that colour a running task, with their names. @type {Record<import("./state.js").Paint, string>} */
const PAINTS = { cpu: "CPU", llc: "cache", task: "task, as the lanes" };

/** The orders of rows with their names. @type {Record<import("./state.js").RowOrder, string>} */
export const ORDERS = { waiting: "waiting", running: "running", first: "first run", pid: "PID", tree: "parent" };

/** The rows of one trace. */
export class Rows {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.tiles = new RowTiles(trace.index, refresh);
    this.path = new PathRow(trace);
    this.arrows = new RowArrows(trace);
    /** @type {RowFacts | null} */
    this.facts = null;
    this.fault = "";
    this.asked = false;
    this.scroll = 0;
    /** The places of the tasks that have rows and their depths in a tree, with all that the list depends on. @type {{ key: string, on: Set<number> | null, places: number[],
     * depths: Map<number, number>, at: Map<number, number> }} */
    this.known = { key: "", on: null, places: [], depths: new Map(), at: new Map() };
  }

  /** Requests the facts, once; the trace is read for them. */
  async open() {
    if (this.asked) return;
    this.asked = true;
    try {
      this.facts = await api.rowFacts(this.trace.index);
      this.tiles.levels = this.trace.head.levels;
      this.tiles.finest = this.facts?.levels?.[0] ?? 0;
    } catch (error) {
      this.fault = error instanceof Error ? error.message : String(error);
    }
    refresh();
  }

  /** The places of the tasks that have rows, in their order; none until the facts are there. @returns {number[]} */
  places() {
    if (!state.rows || !this.facts) return [];
    const { tasks } = this.trace.head;
    const key = [state.rows, state.order, state.rows === "filter" ? state.filter : "", [...state.pins].join(), this.trace.grouped, tasks.length].join("|");
    const on = state.rows === "path" ? this.path.tasksOn() : null;
    if (this.known.key !== key || this.known.on !== on) {
      const has = chosen(this.trace, on);
      const places = inOrder(tasks.flatMap((task, place) => (has(task, place) ? [place] : [])), tasks, this.facts, state.order);
      const tree = state.order === "tree" ? inTree(places, tasks) : { places, depths: new Map() };
      this.known = { key, on, ...tree, at: new Map(tree.places.map((place, n) => [place, n])) };
    }
    return this.known.places;
  }

  /** The number of rows above that of a task, -1 where it has none. @param {number} place */
  above(place) {
    this.places();
    return this.known.at.get(place) ?? -1;
  }

  /** The words above the rows. */
  title() {
    if (this.fault) return `Tasks: ${this.fault}`;
    if (!this.facts) return "Tasks: the trace is read for them …";
    const number = this.places().length;
    const arrows = this.arrows.tooMany ? "; zoom in for the arrows of wakeups" : "";
    const words = `${number.toLocaleString("en")} ${number === 1 ? "task" : "tasks"}: ${state.rows === "path" ? `on the path of ${pathName(this.trace, this.path.answer?.task)}` : nameOf(state.rows)}${arrows}`;
    return number > 0 ? words : `${words}; ${NONE[state.rows] ?? "no task is in this group"}`;
  }
}

/** The line above the rows of a trace: their number, their order and their colours. */
export class RowBar {
  /** @param {Trace} trace @param {HTMLElement} room */
  constructor(trace, room) {
    this.trace = trace;
    this.title = el("span");
    this.name = el("input", { type: "text", "aria-label": "The tasks that have rows", placeholder: "command, PID, process:name, cgroup:/path", list: `groups-${trace.index}`, spellcheck: "false", autocomplete: "off" });
    this.names = el("datalist", { id: `groups-${trace.index}` });
    this.name.addEventListener("focus", () => this.names.replaceChildren(...suggestions(trace).map((name) => new Option(name))));
    this.name.addEventListener("input", () => change({ rows: `in:${this.name.value.slice(0, 200)}` }));
    this.order = menu(ORDERS, "Order of the rows", (order) => change({ order }));
    this.paint = menu(PAINTS, "Colour of a running task in its row", (paint) => change({ paint }));
    this.bar = el("div", { class: "rowbar" }, this.name, this.names, this.title, "· by", this.order, "· running coloured by", this.paint);
    this.bar.hidden = true;
    room.append(this.bar);
  }

  /** Shows it at this height in CSS pixels. @param {number} y @param {boolean} isShown */
  show(y, isShown) {
    this.bar.hidden = !isShown;
    if (!isShown) return;
    this.bar.style.transform = `translateY(${y}px)`;
    const isByName = state.rows.startsWith("in:");
    this.name.hidden = !isByName;
    if (isByName && document.activeElement !== this.name) this.name.value = state.rows.slice(3);
    if (this.title.textContent !== this.trace.rows.title()) this.title.textContent = this.trace.rows.title();
    [this.order.value, this.paint.value] = [state.order, state.paint];
  }
}

/** @template {string} T @param {Record<T, string>} names @param {string} label @param {(value: T) => void} choose */
function menu(names, label, choose) {
  const made = el("select", { "aria-label": label, title: label });
  made.append(...Object.entries(names).map(([value, name]) => new Option(String(name), value)));
  made.addEventListener("change", () => choose(/** @type {T} */ (made.value)));
  return made;
}

/** What to do where there is no row. @type {Record<string, string>} */
const NONE = { pinned: "pin a task in its panel", filter: "none passes the filter", application: "the trace shows no traced command" };

/** @param {string} rows */
export function nameOf(rows) {
  if (rows.startsWith("in:")) return rows.length > 3 ? `“${rows.slice(3)}”` : "by name";
  if (rows === "path") return "on the critical path";
  if (rows.startsWith("tree:")) return treeName(rows);
  if (rows === "filter") return state.filter ? `filter “${state.filter}”` : "all";
  const rule = RULES.find((rule) => rows.startsWith(`${rule}:=`));
  return rule ? `${rule} ${rows.slice(rule.length + 2)}` : rows;
}

/** The name of a task whose rows are those of it and its children. @param {string} rows */
function treeName(rows) {
  const [trace, pid] = rows.split(":").slice(1).map(Number);
  const task = state.traces[trace] && taskOf(state.traces[trace], pid);
  return `${named(task ?? { pid, comm: "" })} and its children`;
}

/** Says of each task whether it has a row. @param {Trace} trace @param {Set<number> | null} on the tasks on the critical path
 * @returns {(task: import("./api.js").Task, place: number) => boolean} */
function chosen(trace, on) {
  const { rows } = state;
  if (rows === "pinned") return (task) => state.pins.has(`${trace.index}:${task.pid}`);
  if (rows === "application") return (task) => task.class === "application";
  if (rows === "path") return (task) => on?.has(task.pid) ?? false;
  if (rows.startsWith("tree:")) {
    const [of, pid] = rows.split(":").slice(1).map(Number);
    const members = of === trace.index ? family(trace.head.tasks, pid) : new Set();
    return (_, place) => members.has(place);
  }
  if (rows.startsWith("in:")) return (task) => rows.trim().length > 3 && passes(task, rows.slice(3));
  return (task) => passes(task, rows === "filter" ? state.filter : rows);
}

/** The most names that are suggested. */
const SUGGESTED = 300;

/** The names of groups, as a filter takes them: those with the most tasks first. @param {Trace} trace */
function suggestions(trace) {
  /** @type {Map<string, number>} */
  const names = new Map();
  const add = (/** @type {string | undefined} */ name) => name && names.set(name, (names.get(name) ?? 0) + 1);
  for (const { comm, groups } of trace.head.tasks) {
    add(comm);
    for (const rule of /** @type {("process" | "cgroup")[]} */ (["process", "cgroup"])) if (groups?.[rule]) add(`${rule}:${groups[rule]?.name}`);
  }
  return [...names].sort((a, b) => b[1] - a[1]).slice(0, SUGGESTED).map(([name]) => name);
}

/** The places of tasks in an order; of equal ones the lower PID is first. @param {number[]} places @param {{ pid: number }[]} tasks @param {RowFacts} facts
 * @param {import("./state.js").RowOrder} order */
export function inOrder(places, tasks, facts, order) {
  const of = (/** @type {string} */ name) => facts.times[facts.states.indexOf(name)];
  const sum = (/** @type {string[]} */ names) => (/** @type {number} */ place) => -names.reduce((all, name) => all + (of(name)?.[place] ?? 0), 0);
  const value = {
    waiting: sum(QUEUED), running: sum(["running"]), pid: () => 0,
    first: (/** @type {number} */ place) => facts.first[place] ?? Infinity,
    tree: (/** @type {number} */ place) => facts.first[place] ?? Infinity,
  }[order];
  const keyed = places.map((place) => /** @type {[number, number]} */ ([place, value(place)]));
  keyed.sort(([a, x], [b, y]) => (x === y ? tasks[a].pid - tasks[b].pid : x - y));
  return keyed.map(([place]) => place);
}

/** The states in which a task waits for a CPU. */
export const QUEUED = ["held back", "beside an idle CPU", "beside a shorter queue", "all queues alike", "queued"];

/** Whether a task has a pin. @param {number} trace @param {number} pid */
export const isPinned = (trace, pid) => state.pins.has(`${trace}:${pid}`);

/** Pins a task, or takes its pin away; the rows of the pinned tasks are shown from then on. @param {number} trace @param {number} pid */
export function pin(trace, pid) {
  const pins = new Set(state.pins);
  if (!pins.delete(`${trace}:${pid}`)) pins.add(`${trace}:${pid}`);
  change({ pins, rows: state.rows === "" || pins.size === 0 ? (pins.size ? "pinned" : "") : state.rows });
}

/** The choices of rows: the fixed ones, and the groups of the highlighted task. @returns {[string, string][]} */
export function choices() {
  /** @type {[string, string][]} */
  const all = [["", "none"], ["application", "application"], ["filter", state.filter ? "that pass the filter" : "all"], ["pinned", `pinned (${state.pins.size})`], ["in:", "by name …"]];
  // A copy without a server has no path.
  if (!state.static) all.splice(4, 0, ["path", "on the path"]);
  const trace = state.highlight ? state.traces[state.highlight.trace] : null;
  const task = trace?.head.tasks.find((task) => task.pid === state.highlight?.pid);
  if (trace && task) all.push([`tree:${trace.index}:${task.pid}`, treeName(`tree:${trace.index}:${task.pid}`)]);
  for (const rule of RULES) {
    const name = task?.groups?.[rule]?.name;
    if (name) all.push([`${rule}:=${name}`, `${rule} ${name}`]);
  }
  if (state.rows.startsWith("in:")) all.find((choice) => choice[0] === "in:")?.splice(0, 1, state.rows);
  else if (!all.some(([value]) => value === state.rows)) all.push([state.rows, nameOf(state.rows)]);
  return all;
}

/** Follows the state: the facts are asked for when rows are to be shown. */
export function followRows() {
  onChange(() => {
    if (state.rows && !state.rowless) for (const trace of state.traces) if (trace.head.full) void trace.rows.open();
  });
}

/** The name of the task of a row. @param {Trace} trace @param {number} place */
export const nameAt = (trace, place) => (trace.head.tasks[place] ? named(trace.head.tasks[place]) : "");
