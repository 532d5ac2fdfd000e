// The panel beside the timeline: the state at an instant, a task, the window, lists and the legend.

import { details, asked, own, onDetails } from "./details.js";
import { el, link, pairs, swatch } from "./dom.js";
import { legend } from "./legend.js";
import { plotPanel } from "./plotpanel.js";
import { CLASSES, causeColor, css, taskColor, theme } from "./palette.js";
import { LISTS, TABS, change, named, onChange, show, state, taskOf } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */

/** @type {Record<string, string>} */
const TITLES = {
  here: "Instant", task: "Task", window: "Window", lists: "Lists", legend: "Legend", plots: "Plots", episodes: "Violation", waits: "Longest waits", herds: "Herds",
  missed: "Missed steals",
};
/** The contents of the lists. @type {Record<string, string>} */
const ABOUT = {
  episodes: "Times in which a CPU idled while a task waited on another, the longest first.",
  waits: "The longest waits for a CPU.",
  herds: "Several tasks that moved to one CPU at once.",
  missed: "Switches to idle while a task waited on another CPU, as schedviz why counts them, the longest idle stretch first.",
};
/** The number of rows of a table. */
const ROWS = 200;

/** The entry of the list that N and P move from. */
let current = -1;
/** The entries of the list or search on the panel. @type {{ trace: Trace, from: number, to: number, cpu: number | null, pid: number | null }[]} */
let entries = [];

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
  onDetails(draw);
  addEventListener("plots", () => state.tab === "plots" && draw());
  onChange((changed) => {
    const parts = ["tab", "list", "highlight", "place", "selection", "traces", "color", "filter", "theme", "hidden"];
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
  panel.setAttribute("aria-labelledby", `tab-${state.tab}`);
  const focused = panel.contains(document.activeElement) ? [...panel.querySelectorAll("[tabindex],button")].indexOf(/** @type {any} */ (document.activeElement)) : -1;
  panel.replaceChildren(...content());
  if (focused >= 0) /** @type {HTMLElement | undefined} */ ([...panel.querySelectorAll("[tabindex],button")][focused])?.focus();
}

/** @returns {Node[]} */
function content() {
  const fault = details.fault ? [el("p", { class: "fault", role: "alert" }, details.fault)] : [];
  if (details.search) return [...fault, ...found()];
  if (state.tab === "plots") return [...fault, ...plotPanel(draw)];
  if (state.static && state.tab !== "legend") return [el("p", {}, "This copy has no server: it shows the timeline alone.")];
  if (state.tab === "here") return [...fault, ...instant()];
  if (state.tab === "task") return [...fault, ...task()];
  if (state.tab === "window") return [...fault, ...windows()];
  if (state.tab === "lists") return [...fault, ...lists()];
  return [...fault, ...legend(taskRow)];
}

/** Leaves the search. */
export function leaveSearch() {
  details.search = null;
  /** @type {HTMLInputElement} */ (document.getElementById("search")).value = "";
}

/** Highlights a task. @param {Trace} trace @param {number} pid */
export function choose(trace, pid) {
  leaveSearch();
  change({ highlight: { trace: trace.index, pid }, tab: "task" });
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
  const answer = details.place;
  const title = el("h2", {}, `CPU ${place.cpu} at ${seconds(place.time, 1)} s`);
  if (!answer) return [title, el("p", {}, "…")];
  const nodes = [title];
  const running = answer.running;
  const table = el("table");
  if (typeof running === "string") nodes.push(pairs([["running", running]]));
  else table.append(taskRow(trace, running, "running", running.until === null ? "" : duration(running.until - running.since)));
  nodes.push(table);
  nodes.push(el("h3", {}, `Waiting on CPU ${place.cpu}: ${answer.waiting.length}`));
  const waiting = el("table");
  for (const wait of answer.waiting.slice(0, ROWS)) {
    const row = taskRow(trace, wait, `for ${duration(answer.at - wait.since)}`);
    row.append(el("td", { class: "words" }, wait.cause ?? ""));
    waiting.append(row);
  }
  nodes.push(waiting);
  if (answer.next) nodes.push(el("h3", {}, "Next event"), el("p", {}, `${seconds(answer.next.at - trace.zero, 1)} s, CPU ${answer.next.cpu}: ${answer.next.name} ${answer.next.text}`));
  nodes.push(el("h3", {}, "All CPUs"));
  const all = el("table", {}, el("tr", {}, el("th", { class: "number" }, "CPU"), el("th", {}, "running"), el("th", { class: "number" }, "waiting")));
  for (const core of answer.cores) {
    const what = core.pid === null || core.pid === undefined ? String(core.running) : named(core);
    const row = el("tr", {}, el("td", { class: "number" }, String(core.cpu)), el("td", { class: "clip", title: what }, what), el("td", { class: "number" }, core.waiting.length ? String(core.waiting.length) : ""));
    if (core.cpu === place.cpu) row.className = "current";
    all.append(link(row, () => change({ place: { ...place, cpu: core.cpu } })));
  }
  nodes.push(all);
  return nodes;
}

/** @returns {Node[]} */
function task() {
  if (!state.highlight) return [el("p", {}, "Click a task on a lane, or search for one: its runs, waits, wakeups and migrations are shown here.")];
  const trace = state.traces[state.highlight.trace];
  const [known, answer] = [taskOf(trace, state.highlight.pid), trace.task];
  const title = el("h2", {}, named(known ?? { pid: state.highlight.pid, comm: "" }));
  if (!answer) return [title, el("p", {}, "…")];
  const { numbers } = answer;
  const latency = numbers.wakeup_latency;
  const nodes = [title, el("h3", {}, "In the window in view")];
  /** @type {[string, string][]} */
  const rows = [["running", duration(numbers.run)], ["waiting", duration(numbers.wait)], ["sleeping", duration(numbers.sleep)],
    ["runs", String(numbers.runs)], ["waits", String(numbers.waits)], ["migrations", String(numbers.migrations)]];
  if (latency?.count) rows.push(["wakeups", String(latency.count)], ["wakeup latency, median", duration(latency.median)], ["99 %", duration(latency.p99)], ["longest", duration(latency.max)]);
  nodes.push(pairs(rows));
  if (known) nodes.push(el("h3", {}, "Task"), pairs([["class", (CLASSES[known.class] ?? [known.class])[0]], ["parent", known.parent === null ? "unknown" : String(known.parent)], ["first node", known.node === null ? "unknown" : String(known.node)], ["running in the whole trace", duration(known.run)]]));
  if (answer.truncated) nodes.push(el("p", {}, "The window holds more than is drawn; zoom in to see all of it."));
  entries = answer.runs.map((/** @type {number[]} */ run) => ({ trace, from: run[0], to: run[1], cpu: run[2], pid: null }));
  const waits = [...answer.waits].sort((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, 12);
  if (waits.length) {
    const table = el("table");
    for (const [from, to, cpu, begin, end] of waits) {
      const row = el("tr", {}, el("td", { class: "number" }, duration(to - from)), el("td", {}, `CPU ${cpu}`), el("td", {}, [begin, end].filter(Boolean).join(" → ")));
      table.append(link(row, () => go({ trace, from, to, cpu, pid: null })));
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

/** @returns {Node[]} */
function windows() {
  const [from, to] = asked();
  const nodes = [el("h2", {}, state.selection ? "Selection" : "Window in view"), pairs([["from", `${seconds(from, 1000)} s`], ["length", duration(to - from)]])];
  state.traces.forEach((trace, n) => {
    const answer = details.window[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    if (!answer) return;
    const [start, end] = own(trace, [from, to]);
    const [length, all] = [Math.max(1, end - start), answer.busy + answer.idle + answer.unknown + answer.offline];
    /** @type {[string, string][]} */
    const rows = [["in violation", `${percent(answer.violation / length)}  ${duration(answer.violation)}`], ["CPU time busy", percent(answer.busy / all)], ["idle", percent(answer.idle / all)]];
    if (answer.unknown) rows.push(["unknown", percent(answer.unknown / all)]);
    if (answer.offline) rows.push(["offline", percent(answer.offline / all)]);
    rows.push(["running tasks, mean", (answer.busy / length).toFixed(2)], ["waiting tasks, mean", (answer.waiting / length).toFixed(2)]);
    nodes.push(pairs(rows));
    const tasks = el("table");
    for (const [id, ns] of answer.tasks) {
      const who = trace.head.tasks[id];
      if (who) tasks.append(taskRow(trace, who, percent(ns / Math.max(1, answer.busy)), duration(ns)));
    }
    nodes.push(el("h3", {}, "Longest running, share of the busy time"), tasks);
    const moved = trace.head.causes.map((cause, place) => /** @type {[string, number]} */ ([cause, answer.migrations[place] ?? 0])).filter(([, count]) => count > 0);
    if (moved.length) {
      const table = el("table");
      for (const [cause, count] of moved) table.append(el("tr", {}, el("td", {}, swatch(css(causeColor(cause))), cause), el("td", { class: "number" }, String(count))));
      nodes.push(el("h3", {}, "Migrations"), table);
    }
  });
  return nodes;
}

/** @returns {Node[]} */
function lists() {
  const choice = el("div", { class: "choice", role: "group", "aria-label": "List" });
  for (const kind of LISTS) {
    const button = el("button", { type: "button", "aria-pressed": String(kind === state.list) }, TITLES[kind]);
    button.addEventListener("click", () => change({ list: kind }));
    choice.append(button);
  }
  /** @type {Node[]} */
  const nodes = [choice, el("p", {}, ABOUT[state.list])];
  entries = [];
  state.traces.forEach((trace, n) => {
    const answer = details.list[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    if (!answer) return void nodes.push(el("p", {}, state.list === "missed" ? "The trace is read for this list …" : "…"));
    if (answer.rows.length === 0) nodes.push(el("p", {}, "none"));
    if (state.list === "missed") nodes.push(...distances(answer));
    const table = el("table");
    for (const row of answer.rows.slice(0, ROWS)) {
      const [place, entry] = [entries.length, { trace, ...row }];
      entries.push(entry);
      const line = el("tr", {}, el("td", { class: "number" }, seconds(row.from - trace.zero, 1000)), el("td", { class: "number" }, duration(row.to - row.from)), el("td", { title: row.text }, labelOf(trace, row)));
      if (place === current) line.className = "current";
      table.append(link(line, () => go(entry, place)));
    }
    nodes.push(table);
    if (answer.truncated || answer.rows.length > ROWS) nodes.push(el("p", {}, "The list is longer; its largest entries are shown."));
  });
  return nodes;
}

/** The missed steals by distance. @param {any} answer */
function distances(answer) {
  const table = el("table", {}, el("tr", {}, el("th", {}, "a task waited"), el("th", { class: "number" }, "number"), el("th", { class: "number" }, "in violation")));
  for (const { nearest, number, violated } of answer.by_distance) {
    table.append(el("tr", {}, el("td", {}, nearest), el("td", { class: "number" }, number.toLocaleString("en")), el("td", { class: "number" }, duration(violated))));
  }
  const [missed, all] = [answer.number, answer.idle_entries];
  const share = all > 0 ? ` (${percent(missed / all)})` : "";
  return [el("p", {}, `${missed.toLocaleString("en")} of ${all.toLocaleString("en")} switches to idle${share}`), table, el("h3", {}, "The longest")];
}

/** Returns the text of an entry, without the length that its own column shows. @param {Trace} trace
 * @param {{ cpu: number | null, pid: number | null, text: string, nearest?: string }} row */
function labelOf(trace, row) {
  const cpu = row.cpu === null ? "" : `CPU ${row.cpu}`;
  if (state.list === "waits" && row.pid !== null) return `${named(taskOf(trace, row.pid) ?? { pid: row.pid, comm: "" })}, ${cpu}`;
  if (state.list === "missed") return `${cpu}, ${row.nearest}`;
  return state.list === "herds" ? row.text : cpu;
}

/** @returns {Node[]} */
function found() {
  const search = details.search;
  if (!search) return [];
  /** @type {Node[]} */
  const nodes = [el("h2", {}, `Found for “${search.text.trim()}”`)];
  entries = [];
  state.traces.forEach((trace, n) => {
    const answer = search.answers[n];
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const tasks = el("table");
    for (const pid of answer.tasks.slice(0, ROWS)) {
      const who = taskOf(trace, pid) ?? { pid, comm: "", run: 0 };
      tasks.append(taskRow(trace, who, duration(who.run)));
    }
    nodes.push(el("h3", {}, `Tasks: ${answer.tasks.length}`), tasks);
    const events = el("table");
    for (const event of answer.events.slice(0, ROWS)) {
      const entry = { trace, from: event.at, to: event.at, cpu: event.cpu, pid: null };
      entries.push(entry);
      events.append(link(el("tr", {}, el("td", { class: "number" }, seconds(event.at - trace.zero, 1000)), el("td", {}, `CPU ${event.cpu}`), el("td", {}, `${event.name} ${event.text}`)), () => go(entry)));
    }
    if (answer.events.length) nodes.push(el("h3", {}, `Events: ${answer.events.length}`), events);
  });
  return nodes;
}

/** Shows an entry of a list: its window with a margin, its CPU, its task. @param {(typeof entries)[number]} entry @param {number} [place] */
function go(entry, place = -1) {
  const [from, to] = [entry.from - entry.trace.zero, entry.to - entry.trace.zero];
  const length = Math.max(to - from, 1000);
  current = place;
  if (length > state.span * 0.8 || length < state.span * 0.12) show(from - length * 0.6, length * 2.2);
  else show((from + to - state.span) / 2, state.span);
  change({
    selection: to > from ? [from, to] : null,
    place: entry.cpu === null ? state.place : { trace: entry.trace.index, cpu: entry.cpu, time: from },
    highlight: entry.pid === null ? state.highlight : { trace: entry.trace.index, pid: entry.pid },
  });
}

/** Moves to the next or the previous entry in the order of time from the middle of the window. @param {1 | -1} step */
export function advance(step) {
  if (entries.length === 0) return;
  if (state.tab === "task" && !details.search) {
    const now = state.place?.time ?? state.from + state.span / 2;
    const times = entries.map((entry) => entry.from - entry.trace.zero);
    const next = step > 0 ? times.findIndex((time) => time > now + 0.5) : times.findLastIndex((time) => time < now - 0.5);
    if (next < 0) return;
    const entry = entries[next];
    change({ place: { trace: entry.trace.index, cpu: entry.cpu ?? 0, time: times[next] } });
    if (times[next] < state.from || times[next] > state.from + state.span) show(times[next] - state.span / 2, state.span);
    return;
  }
  current = Math.min(Math.max(current + step, 0), entries.length - 1);
  go(entries[current], current);
}
