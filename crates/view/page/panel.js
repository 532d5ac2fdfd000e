// The panel beside the timeline: the state at an instant, a task, the window, lists and the legend.

import * as api from "./api.js";
import { answerTo, asked, faultOf, latest, own, onDetails, requestSearch, searches } from "./details.js";
import { el, link, pairs, swatch } from "./dom.js";
import { add, begin, go } from "./entries.js";
import { doubt, doubtsOf, findingsPanel } from "./findings.js";
import { comparePanel } from "./comparepanel.js";
import { eventsPanel, isShown } from "./events.js";
import { groupName } from "./groups.js";
import { legend } from "./legend.js";
import { found, lists } from "./lists.js";
import { offlineInstant } from "./offlinepanel.js";
import { windowPair } from "./pairs.js";
import { pathPanel } from "./pathpanel.js";
import { pathButton } from "./pathpick.js";
import { plotPanel } from "./plotpanel.js";
import { isPinned, pin } from "./rows.js";
import { waitPanel } from "./waitpanel.js";
import { stackBefore, taskStacks } from "./stacks.js";
import { story } from "./story.js";
import { tablesPanel } from "./tables.js";
import { CLASSES, RULES, causeColor, css, taskColor, theme } from "./palette.js";
import { TABS, change, named, onChange, show, state, taskOf } from "./state.js";
import { duration, percent, seconds } from "./time.js";
import { boundsOf, isRecorded, notRecorded } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */

/** @type {Record<string, string>} */
const TITLES = {
  here: "Instant", task: "Task", window: "Window", lists: "Lists", tables: "Tables", events: "Events", findings: "Findings", legend: "Legend", plots: "Plots",
};
/** The number of rows of a table. */
const ROWS = 200;
/** The tabs that need more room for their columns. */
const BROAD = new Set(["tables", "events"]);
/** The waiting tasks that count in a violation. */
const WAITERS = "A CPU idled while a task that can be moved waited on another: not a kernel thread bound to its CPU, nor a task that may use no idle CPU";
const CHOSEN = "A CPU idled that one of these tasks may use while it waited on another: as schedviz workcons --tasks counts";

/** Builds the tabs and keeps the panel up to date. */
export function build() {
  const tabs = /** @type {HTMLElement} */ (document.getElementById("tabs"));
  for (const tab of TABS) {
    const button = el("button", { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": "panel" }, TITLES[tab]);
    button.addEventListener("click", () => change({ tab }));
    tabs.append(button);
  }
  tabs.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? TABS.length - 1 : 0;
    if (step === 0) return;
    event.stopPropagation();
    change({ tab: TABS[(TABS.indexOf(state.tab) + step) % TABS.length] });
    document.getElementById(`tab-${state.tab}`)?.focus();
  });
  onDetails(() => {
    draw();
    chooseWanted();
  });
  addEventListener("findings", draw);
  addEventListener("groups", draw);
  addEventListener("tables", () => state.tab === "tables" && draw());
  addEventListener("plots", () => state.tab === "plots" && draw());
  onChange((changed) => {
    const parts = ["tab", "list", "highlight", "place", "selection", "range", "traces", "color", "filter", "theme", "hidden", "story", "rule", "opened", "pins", "rows", "paint", "wait", "along", "table", "events", "eventCpus", "notes"];
    if (parts.some((part) => changed.has(part))) draw();
  });
}

function draw() {
  for (const tab of TABS) {
    const button = /** @type {HTMLElement} */ (document.getElementById(`tab-${tab}`));
    button.setAttribute("aria-selected", String(tab === state.tab));
    button.tabIndex = tab === state.tab ? 0 : -1;
  }
  const panel = /** @type {HTMLElement} */ (document.getElementById("panel"));
  // The name of a note that is being typed stays; its end draws the panel.
  if (document.activeElement?.matches("#panel .notes input")) return;
  panel.setAttribute("aria-labelledby", `tab-${state.tab}`);
  panel.closest("main")?.classList.toggle("broad", BROAD.has(state.tab) && !searches());
  if (state.tab === "events" && !searches() && !state.static && isShown(panel)) return void eventsPanel();
  const focused = panel.contains(document.activeElement) ? [...panel.querySelectorAll("[tabindex],button")].indexOf(/** @type {any} */ (document.activeElement)) : -1;
  panel.replaceChildren(...content());
  if (focused >= 0) (/** @type {HTMLElement | undefined} */ ([...panel.querySelectorAll("[tabindex],button")][focused]) ?? panel).focus();
}

/** @returns {Node[]} */
function content() {
  if (searches()) return [...faultsOf("search"), ...found(draw, choose)];
  if (state.tab === "plots") return plotPanel(draw);
  if (state.tab === "findings") return [...comparePanel(), ...findingsPanel()];
  if (state.tab === "here") return [...faultsOf("place"), ...(state.static ? offlineInstant() : instant())];
  if (state.tab === "task") return [...faultsOf("task"), ...faultsOf("stacks"), ...task()];
  if (state.tab === "window") return [...faultsOf("window"), ...faultsOf("path"), ...windows()];
  if (state.tab === "events") return eventsPanel();
  if (state.tab === "tables") return tablesPanel(choose);
  if (state.tab === "lists") return state.story && !state.static ? [...faultsOf("story"), ...story()] : [...faultsOf("list"), ...lists(draw, choose)];
  return [...faultsOf("window"), ...legend(taskRow)];
}

/** The reason for which a question has no answer. @param {import("./details.js").Kind} kind @returns {Node[]} */
function faultsOf(kind) {
  const fault = faultOf(kind);
  return fault ? [el("p", { class: "fault", role: "alert" }, fault)] : [];
}

/** Leaves the search. */
export function leaveSearch() {
  requestSearch("");
  /** @type {HTMLInputElement} */ (document.getElementById("search")).value = "";
}

/** Chooses the first task that a search finds, or else its first event, as soon as the answer is there. @param {string} text
 * @param {() => void} done called when something was chosen */
export function chooseFirst(text, done) {
  wanted = { text, done };
  chooseWanted();
}

/** The search whose first find is to be chosen. @type {{ text: string, done: () => void } | null} */
let wanted = null;

function chooseWanted() {
  const answers = wanted && answerTo("search", wanted.text);
  const { done = () => {} } = wanted ?? {};
  if (latest("search")?.about === wanted?.text) wanted = null;
  for (const trace of answers ? state.traces : []) {
    const { tasks: [pid], events: [event] } = answers[trace.index];
    if (pid !== undefined) choose(trace, pid);
    else if (event !== undefined) go({ trace, from: event.at, to: event.at, cpu: event.cpu, pid: null, place: 0 });
    else continue;
    return done();
  }
}

/** Highlights a task, and moves to it where nothing of it is in view. @param {Trace} trace @param {number} pid */
export function choose(trace, pid) {
  leaveSearch();
  change({ highlight: { trace: trace.index, pid }, tab: "task" });
  if (!state.static && trace.head.full) reveal(trace, pid);
}

/** Returns the run or wait of a task that is nearest to an instant; the earlier one of two. @param {{ runs: any[], waits: any[] }} task
 * @param {number} at @returns {[number, number, number] | null} its times and its CPU */
export function nearestOf({ runs, waits }, at) {
  const distance = (/** @type {[number, number, number]} */ [from, to]) => Math.max(from - at, at - to, 0);
  /** @type {[number, number, number][]} */
  const all = [...runs, ...waits].map(([from, to, cpu]) => [from, to, cpu]);
  return all.reduce((/** @type {[number, number, number] | null} */ best, one) => (best && distance(best) <= distance(one) ? best : one), null);
}

/** Moves the window to the nearest run or wait of a task, at the same zoom, unless one is in view. @param {Trace} trace @param {number} pid */
async function reveal(trace, pid) {
  const view = /** @type {[number, number]} */ ([state.from, state.from + state.span]);
  const [from, to] = own(trace, view);
  const isIn = (/** @type {any} */ task) => task.runs.length + task.waits.length > 0;
  try {
    if (to > from && isIn(await api.task(trace.index, pid, from, to))) return;
    const nearest = nearestOf(await api.task(trace.index, pid, 0, trace.head.span), state.from + state.span / 2 + trace.zero);
    // The user may have gone on meanwhile.
    if (!nearest || state.highlight?.pid !== pid || state.highlight.trace !== trace.index || state.from !== view[0]) return;
    const time = nearest[0] - trace.zero;
    show(time - state.span / 2, state.span);
    change({ place: { trace: trace.index, cpu: nearest[2], time } });
  } catch {
    // The panel says why there is no answer.
  }
}

/** @param {Trace} trace @param {{ pid: number, comm: string }} who */
function taskRow(trace, who, /** @type {(string | Node)[]} */ ...cells) {
  const known = taskOf(trace, who.pid);
  const color = known ? css(taskColor(known, state.color, state.filter, theme().other)) : css(theme().other);
  const row = el("tr", {}, el("td", { class: "clip", title: named(who) }, swatch(color), named(who)));
  for (const cell of cells) row.append(el("td", { class: "number" }, cell));
  return link(row, () => choose(trace, who.pid));
}

/** @returns {Node[]} */
function instant() {
  const { place } = state;
  if (!place) return [el("p", {}, "Click a lane, or press Enter: the state of all CPUs at that instant is shown here.")];
  const trace = state.traces[place.trace];
  const answer = answerTo("place", place);
  const title = el("h2", {}, `CPU ${place.cpu} at ${seconds(place.time, 1)} s`);
  if (!answer) return [title, el("p", {}, "…")];
  const nodes = [title];
  if (trace.head.cpus.find(({ cpu }) => cpu === place.cpu)?.silent) nodes.push(el("p", { class: "fault" }, `CPU ${place.cpu} has no events: what ran and waited there is unknown.`));
  const running = answer.running;
  const table = el("table");
  if (typeof running === "string") nodes.push(pairs([["running", running]]));
  else table.append(taskRow(trace, running, "running", running.until === null ? "" : duration(running.until - running.since)));
  nodes.push(table);
  nodes.push(el("h3", {}, `Waiting on CPU ${place.cpu}: ${answer.waiting.length}`, ...doubt(trace)));
  const waiting = el("table");
  for (const wait of answer.waiting.slice(0, ROWS)) {
    const row = taskRow(trace, wait, `for ${duration(answer.at - wait.since)}`);
    row.append(el("td", { class: "words" }, wait.cause ?? ""));
    waiting.append(row);
  }
  nodes.push(waiting);
  if (answer.next) {
    const { at, cpu, name, text, flags } = answer.next;
    const title = "flags of the event in the kernel's letters: interrupts disabled (d, D), requests to reschedule (n, N, p, l), in an interrupt (h, s)";
    const shown = flags && /[^.]/.test(flags) ? [" ", el("span", { class: "flags", title }, `[${flags}]`)] : [];
    nodes.push(el("h3", {}, "Next event"), el("p", {}, `${seconds(at - trace.zero, 1)} s, CPU ${cpu}: ${name}`, ...shown, ` ${text}`));
  }
  nodes.push(el("h3", {}, "All CPUs"));
  const all = el("table", {}, el("tr", {}, el("th", { class: "number" }, "CPU"), el("th", {}, "running"), el("th", { class: "number" }, "waiting")));
  for (const cpu of answer.cpus) {
    const what = cpu.pid === null || cpu.pid === undefined ? String(cpu.running) : named(cpu);
    const row = el("tr", {}, el("td", { class: "number" }, String(cpu.cpu)), el("td", { class: "clip", title: what }, what), el("td", { class: "number" }, cpu.waiting.length ? String(cpu.waiting.length) : ""));
    if (cpu.cpu === place.cpu) row.className = "current";
    all.append(link(row, () => change({ place: { ...place, cpu: cpu.cpu } })));
  }
  nodes.push(all);
  return nodes;
}

/** @returns {Node[]} */
function task() {
  if (!state.highlight) return [el("p", {}, "Click a task on a lane, or search for one: its runs, waits, wakeups and migrations are shown here.")];
  const trace = state.traces[state.highlight.trace];
  const [known, answer] = [taskOf(trace, state.highlight.pid), trace.task];
  begin(`task ${trace.index},${state.highlight.pid}`);
  const { pid } = state.highlight;
  const pinned = isPinned(trace.index, pid);
  const button = el("button", { type: "button", class: "pin", "aria-pressed": String(pinned), title: "A row of its own below the lanes (I)" }, pinned ? "pinned" : "pin");
  button.addEventListener("click", () => pin(trace.index, pid));
  const title = el("h2", {}, named(known ?? { pid, comm: "" }), button, state.static ? null : pathButton(trace, pid));
  const why = waitPanel(trace, choose);
  if (!answer) return [title, ...why, el("p", {}, "…")];
  const { numbers } = answer;
  const latency = numbers.wakeup_latency;
  const [from, to] = answer.window ?? latest("task")?.about.window ?? [0, 0];
  /** @type {Node[]} */
  const nodes = [title, ...why, el("h3", { title: `${seconds(from - trace.zero, 1000)} s to ${seconds(to - trace.zero, 1000)} s` }, state.static ? (to - from < trace.head.span ? "In the window of this copy" : "In the whole trace") : "In the window in view")];
  const [noWakeups, noMoves] = [notRecorded(trace.head, "sched_wakeup", "sched_waking"), notRecorded(trace.head, "sched_migrate_task")];
  const marked = (/** @type {string} */ text, /** @type {import("./trust.js").Kind} */ kind) => el("span", {}, text, ...doubt(trace, kind));
  /** @type {[string, string | Node][]} */
  const rows = [["running", marked(duration(numbers.run), "running")], ["waiting", marked(duration(numbers.wait), "waiting")],
    ["sleeping", noWakeups ? "unknown (needs sched_wakeup)" : marked(duration(numbers.sleep), "waiting")],
    ["runs", String(numbers.runs)], ["waits", marked(String(numbers.waits), "waiting")], ["migrations", noMoves || String(numbers.migrations)]];
  if (noWakeups) rows.push(["wakeups", noWakeups]);
  else if (latency?.count) {
    const since = isRecorded(trace.head, "sched_waking") ? "waking" : "wakeup";
    rows.push(["wakeups", String(latency.count)], [`wakeup latency (${since} to switch), median`, marked(duration(latency.median), "waiting")], ["99 %", duration(latency.p99)], ["longest", duration(latency.max)]);
  }
  nodes.push(pairs(rows));
  const { lag } = numbers;
  if (lag?.count) {
    const signed = (/** @type {number} */ ns) => (ns < 0 ? `−${duration(-ns)}` : duration(ns));
    /** @type {[string, string][]} */
    const lags = [["picks with a known lag", String(lag.count)], ["least", signed(lag.least)], ["median", signed(lag.median)], ["greatest", signed(lag.greatest)], ["picks behind the deadline", String(lag.late)]];
    if (lag.debt !== null) lags.push(["longest debt", duration(lag.debt)]);
    nodes.push(el("h3", { title: "The CPU time that the task is owed as it is picked; negative if it had more than its share." }, "Lag at its picks"), pairs(lags));
  }
  const groups = known && trace.grouped ? RULES.map((rule) => /** @type {[string, string]} */ ([rule, groupName(known, rule)])) : [];
  if (known) nodes.push(el("h3", {}, "Task"), pairs([...groups, ["class", (CLASSES[known.class] ?? [known.class])[0]], ["parent", known.parent === null ? "unknown" : String(known.parent)], ["first node", known.node === null ? "unknown" : String(known.node)], ["running in the whole trace", duration(known.run)]]));
  nodes.push(...taskStacks(trace, draw));
  if (answer.truncated) nodes.push(el("p", {}, "The window holds more than is drawn; zoom in to see all of it."));
  for (const [from, to, cpu] of answer.runs) add({ trace, from, to, cpu, pid: null });
  const waits = wholeWaits(answer.waits).sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 12);
  if (waits.length) {
    const table = el("table");
    for (const { from, to, cpus, begin, end } of waits) {
      const row = el("tr", {}, el("td", { class: "number" }, `${seconds(from - trace.zero, 1000)} s`), el("td", { class: "number" }, duration(to - from)), el("td", {}, `CPU ${cpus.join(" → ")}`), el("td", {}, [begin, end, stackBefore(trace, from)].filter(Boolean).join(" → ")));
      table.append(link(row, () => {
        go({ trace, from, to, cpu: cpus[0], pid: null });
        if (!state.static) change({ wait: { trace: trace.index, pid, from, to } });
      }));
    }
    nodes.push(el("h3", {}, "Longest waits"), table);
  }
  const moves = answer.migrations.slice(0, 40);
  if (moves.length) {
    const table = el("table");
    for (const [at, from, to, cause] of moves) {
      const color = css(causeColor(cause));
      const row = el("tr", {}, el("td", { class: "number" }, seconds(at - trace.zero, 1000)), el("td", {}, `${from} → ${to}`), el("td", {}, swatch(color), cause));
      table.append(link(row, () => go({ trace, from: at, to: at, cpu: to, pid: null })));
    }
    nodes.push(el("h3", {}, `Migrations: ${answer.migrations.length}`), table);
  }
  return nodes;
}

/** Joins the parts of waits, each on one run queue, to waits. @param {[number, number, number, string, string, number][]} parts in order of time */
function wholeWaits(parts) {
  /** @type {Map<number, { from: number, to: number, cpus: number[], begin: string, end: string }>} */
  const waits = new Map();
  for (const [from, to, cpu, begin, end, start] of parts) {
    const wait = waits.get(start);
    if (wait) [wait.to, wait.end] = [to, end], wait.cpus.push(cpu);
    else waits.set(start, { from, to, cpus: [cpu], begin, end });
  }
  return [...waits.values()];
}

/** @returns {Node[]} */
function windows() {
  const found = latest("window");
  // The numbers are those of the window that they were asked for, which may have moved on.
  const [from, to] = found?.about.window ?? asked();
  /** @type {Node[]} */
  const nodes = [el("h2", {}, found?.about.selected ?? state.selection ? "Selection" : "Window in view"), pairs([["from", `${seconds(from, 1000)} s`], ["length", duration(to - from)]])];
  const [first, second] = state.traces;
  const both = state.traces.length === 2 && found?.answer?.[0] && found.answer[1] ? found.answer : null;
  if (both) nodes.push(...windowPair([first, second], both, state.traces.map((trace) => own(trace, [from, to])), both[0].chosen === null ? WAITERS : CHOSEN));
  state.traces.forEach((trace, n) => {
    const answer = found?.answer?.[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    if (answer) nodes.push(...(both ? [] : windowOf(trace, answer, own(trace, [from, to]), found?.about.filter ?? "")), ...longestOf(trace, answer));
    if (state.rows && !state.static) nodes.push(...pathPanel(trace, latest("path")?.answer?.[n], taskRow));
  });
  return nodes;
}

/** The tasks that ran longest in a window. @param {Trace} trace @param {any} answer @returns {Node[]} */
function longestOf(trace, answer) {
  const tasks = el("table");
  for (const [id, ns] of answer.tasks) {
    const who = trace.head.tasks[id];
    if (who) tasks.append(taskRow(trace, who, percent(ns / Math.max(1, answer.busy)), duration(ns)));
  }
  return [el("h3", {}, "Longest running, share of the busy time"), tasks];
}

/** The numbers of a window of a trace, over the tasks that pass a filter. @param {Trace} trace @param {any} answer
 * @param {[number, number]} window @param {string} filter @returns {Node[]} */
function windowOf(trace, answer, [start, end], filter) {
  const [length, all] = [Math.max(1, end - start), answer.busy + answer.idle + answer.unknown + answer.offline];
  const isPart = typeof answer.chosen === "number";
  /** @type {Node[]} */
  const nodes = [];
  if (isPart) nodes.push(el("p", { class: "part" }, `Of the ${answer.chosen.toLocaleString("en")} of ${trace.head.tasks.length.toLocaleString("en")} tasks that pass the filter “${filter}”; CPU time is that of all.`));
  const [title, words] = isPart ? [CHOSEN, "in violation (these waiters)"] : [WAITERS, "in violation (movable waiters)"];
  const violation = `${percent(answer.violation / length)}  ${duration(answer.violation)}`;
  /** @type {[string | Node, string | Node][]} */
  const rows = [[el("span", { title }, words), el("span", {}, violation, ...doubt(trace, "waiting", answer.trust))]];
  const bounds = answer.trust ? boundsOf(answer.trust) : "";
  if (bounds) rows.push([el("span", { title: "The bounds that hold whatever the lost events were, as schedviz workcons has them" }, "at least, at most"), bounds]);
  rows.push(["CPU time busy", el("span", {}, percent(answer.busy / all), ...doubt(trace, "running", answer.trust))], ["idle", percent(answer.idle / all)]);
  if (answer.unknown) rows.push(["unknown", percent(answer.unknown / all)]);
  if (answer.offline) rows.push(["offline", percent(answer.offline / all)]);
  if (isPart) rows.push(["these tasks, of the busy time", percent(answer.running / Math.max(1, answer.busy))]);
  rows.push(["running tasks, mean", (answer.running / length).toFixed(2)], ["waiting tasks, mean", el("span", {}, (answer.waiting / length).toFixed(2), ...doubt(trace, "waiting", answer.trust))]);
  nodes.push(pairs(rows));
  if (answer.column) nodes.push(el("p", {}, `Summed from columns of ${duration(answer.column)}, of all tasks; those at the edges count by their parts. The exact numbers need the program.`));
  const [why] = doubtsOf(trace, "waiting", answer.trust);
  if (why) nodes.push(el("p", { class: "fault" }, `${why[0].toUpperCase()}${why.slice(1)}.`));
  const moved = trace.head.causes.map((cause, place) => /** @type {[string, number]} */ ([cause, answer.migrations[place] ?? 0])).filter(([, count]) => count > 0);
  const table = el("table");
  for (const [cause, count] of moved) table.append(el("tr", {}, el("td", {}, swatch(css(causeColor(cause))), cause), el("td", { class: "number" }, String(count))));
  const none = notRecorded(trace.head, "sched_migrate_task") || "none";
  nodes.push(el("h3", {}, "Migrations"), moved.length ? table : el("p", {}, none));
  return nodes;
}
