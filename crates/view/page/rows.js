// The rows of tasks below the lanes: which tasks have one, in which order, and the facts about them, asked for once.

import * as api from "./api.js";
import { el } from "./dom.js";
import { RULES, passes } from "./palette.js";
import { PathRow } from "./pathrow.js";
import { RowTiles } from "./rowtiles.js";
import { change, named, onChange, refresh, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").RowFacts} RowFacts */

/** The properties that colour a running task, with their names. @type {Record<import("./state.js").Paint, string>} */
const PAINTS = { cpu: "CPU", llc: "cache", task: "task, as the lanes" };

/** The orders of rows with their names. @type {Record<import("./state.js").RowOrder, string>} */
export const ORDERS = { waiting: "waiting", running: "running", first: "first run", pid: "PID" };

/** The rows of one trace. */
export class Rows {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    this.tiles = new RowTiles(trace.index, refresh);
    this.path = new PathRow(trace);
    /** @type {RowFacts | null} */
    this.facts = null;
    this.fault = "";
    this.asked = false;
    this.scroll = 0;
    /** The places of the tasks that have rows, with all that the list depends on. @type {{ key: string, places: number[] }} */
    this.known = { key: "", places: [] };
  }

  /** Requests the facts, once; the trace is read for them. */
  async open() {
    if (this.asked) return;
    this.asked = true;
    try {
      this.facts = await api.rowFacts(this.trace.index);
      this.tiles.levels = this.trace.head.levels;
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
    if (this.known.key !== key) {
      const places = tasks.flatMap((task, place) => (has(this.trace, task) ? [place] : []));
      this.known = { key, places: inOrder(places, tasks, this.facts, state.order) };
    }
    return this.known.places;
  }

  /** The words above the rows. */
  title() {
    if (this.fault) return `Tasks: ${this.fault}`;
    if (!this.facts) return "Tasks: the trace is read for them …";
    const number = this.places().length;
    const words = `${number.toLocaleString("en")} ${number === 1 ? "task" : "tasks"}: ${nameOf(state.rows)}`;
    return number > 0 ? words : `${words}; ${NONE[state.rows] ?? "no task is in this group"}`;
  }
}

/** The line above the rows of a trace: their number, their order and their colours. */
export class RowBar {
  /** @param {Trace} trace @param {HTMLElement} room */
  constructor(trace, room) {
    this.trace = trace;
    this.title = el("span");
    this.order = menu(ORDERS, "Order of the rows", (order) => change({ order }));
    this.paint = menu(PAINTS, "Colour of a running task in its row", (paint) => change({ paint }));
    this.bar = el("div", { class: "rowbar" }, this.title, "· by", this.order, "· running coloured by", this.paint);
    this.bar.hidden = true;
    room.append(this.bar);
  }

  /** Shows it at this height in CSS pixels. @param {number} y @param {boolean} isShown */
  show(y, isShown) {
    this.bar.hidden = !isShown;
    if (!isShown) return;
    this.bar.style.transform = `translateY(${y}px)`;
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
  if (rows === "filter") return state.filter ? `filter “${state.filter}”` : "all";
  const rule = RULES.find((rule) => rows.startsWith(`${rule}:=`));
  return rule ? `${rule} ${rows.slice(rule.length + 2)}` : rows;
}

/** Whether a task has a row. @param {Trace} trace @param {import("./api.js").Task} task */
function has(trace, task) {
  if (state.rows === "pinned") return state.pins.has(`${trace.index}:${task.pid}`);
  if (state.rows === "application") return task.class === "application";
  return passes(task, state.rows === "filter" ? state.filter : state.rows);
}

/** The places of tasks in an order; of equal ones the lower PID is first. @param {number[]} places @param {{ pid: number }[]} tasks @param {RowFacts} facts
 * @param {import("./state.js").RowOrder} order */
export function inOrder(places, tasks, facts, order) {
  const of = (/** @type {string} */ name) => facts.times[facts.states.indexOf(name)];
  const sum = (/** @type {string[]} */ names) => (/** @type {number} */ place) => -names.reduce((all, name) => all + (of(name)?.[place] ?? 0), 0);
  const value = {
    waiting: sum(QUEUED), running: sum(["running"]), pid: () => 0,
    first: (/** @type {number} */ place) => facts.first[place] ?? Infinity,
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
  const all = [["", "none"], ["application", "application"], ["filter", state.filter ? "that pass the filter" : "all"], ["pinned", `pinned (${state.pins.size})`]];
  const trace = state.highlight ? state.traces[state.highlight.trace] : null;
  const task = trace?.head.tasks.find((task) => task.pid === state.highlight?.pid);
  for (const rule of RULES) {
    const name = task?.groups?.[rule]?.name;
    if (name) all.push([`${rule}:=${name}`, `${rule} ${name}`]);
  }
  if (!all.some(([value]) => value === state.rows)) all.push([state.rows, nameOf(state.rows)]);
  return all;
}

/** Follows the state: the facts are asked for when rows are to be shown. */
export function followRows() {
  onChange(() => {
    if (state.rows && !state.static) for (const trace of state.traces) if (trace.head.full) void trace.rows.open();
  });
}

/** The name of the task of a row. @param {Trace} trace @param {number} place */
export const nameAt = (trace, place) => (trace.head.tasks[place] ? named(trace.head.tasks[place]) : "");
