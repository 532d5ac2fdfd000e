// The list of events beside the plot: it follows the cursor and moves it, and goes on in both directions without an end.

import * as api from "./api.js";
import { own } from "./details.js";
import { el, link } from "./dom.js";
import { add, begin, isCurrent, setCurrent } from "./entries.js";
import { change, named, onChange, refresh, show, state, taskOf } from "./state.js";
import { duration, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").ListedEvent} ListedEvent */
/** @typedef {import("./api.js").EventPlace} EventPlace */

/** The number of events of a page, and the maximum number in the list: those at the other end give way. */
const [PAGE, MOST] = [120, 720];
/** The rest after the last key in a field, in ms. */
const REST = 250;
/** The distance from an end of the list at which more events are requested, in pixels. */
const NEAR = 400;

/** The events that are listed, with the places at which they go on; null at an end of the trace or the selection.
 * @type {{ key: string, events: ListedEvent[], before: EventPlace | null, behind: EventPlace | null, none: string, fault: string }} */
let listed = { key: "", events: [], before: null, behind: null, none: "", fault: "" };
/** Counts the questions: an answer to an earlier one is dropped. */
let asked = 0;
let isBusy = false;
/** The columns of the window in view with events. @type {WeakMap<Trace, { key: string, from: number, to: number, columns: number, answer: import("./api.js").Ticks }>} */
const ticks = new WeakMap();
/** The kinds of events of each trace. @type {WeakMap<Trace, string[]>} */
const kinds = new WeakMap();

/** The trace whose events are listed. @returns {Trace} */
const traceOf = () => state.traces[state.place?.trace ?? state.highlight?.trace ?? 0];

/** The choice of events as the server takes it. @param {Trace} trace */
function choiceOf(trace) {
  const [from, to] = state.selection ? own(trace, state.selection) : [0, trace.head.span];
  /** @type {Record<string, string | number>} */
  const choice = { from, to };
  if (state.events.trim()) choice.q = state.events.trim();
  if (state.eventCpus.trim()) choice.cpus = state.eventCpus.replaceAll(" ", "");
  if (state.filter.trim()) choice.filter = state.filter.trim();
  return choice;
}

/** Whether some events are chosen: all are no ticks. */
const isChoice = () => Boolean(state.events.trim() || state.eventCpus.trim());

const keyOf = (/** @type {Trace} */ trace) => JSON.stringify([trace.index, choiceOf(trace)]);

/** The instant that the list is about, in the trace's own time. @param {Trace} trace */
function instantOf(trace) {
  const [from, to] = state.selection ?? [state.from, state.from + state.span];
  return own(trace, [state.place?.time ?? (from + to) / 2, 0])[0];
}

/** Requests the events around the cursor anew. */
async function renew() {
  const trace = traceOf();
  const [key, at, question] = [keyOf(trace), instantOf(trace), ++asked];
  isBusy = true;
  try {
    const answer = await api.events(trace.index, { ...choiceOf(trace), at, nth: 0, before: PAGE, behind: PAGE });
    if (question !== asked) return;
    listed = { key, events: answer.events ?? [], before: answer.before ?? null, behind: answer.behind ?? null, none: answer.none ?? "", fault: "" };
  } catch (error) {
    if (question !== asked) return;
    listed = { key, events: [], before: null, behind: null, none: "", fault: error instanceof Error ? error.message : String(error) };
  }
  isBusy = false;
  fill();
  centre();
}

/** Requests the next page at an end of the list. @param {"before" | "behind"} way */
async function more(way) {
  const place = listed[way];
  if (isBusy || !place) return;
  isBusy = true;
  const [trace, question] = [traceOf(), asked];
  try {
    const answer = await api.events(trace.index, { ...choiceOf(trace), at: place.ns, nth: place.nth, before: way === "before" ? PAGE : 0, behind: way === "behind" ? PAGE : 0 });
    if (question !== asked) return;
    const found = answer.events ?? [];
    const placeOf = (/** @type {ListedEvent} */ event) => ({ ns: event.at, nth: event.nth });
    if (way === "before") {
      const events = [...found, ...listed.events];
      const kept = events.slice(0, MOST);
      listed = { ...listed, events: kept, before: answer.before ?? null, behind: events.length > MOST ? placeOf(events[MOST]) : listed.behind };
    } else {
      const events = [...listed.events, ...found];
      const kept = events.slice(-MOST);
      listed = { ...listed, events: kept, behind: answer.behind ?? null, before: events.length > MOST ? placeOf(kept[0]) : listed.before };
    }
  } catch (error) {
    listed = { ...listed, fault: error instanceof Error ? error.message : String(error) };
  }
  isBusy = false;
  fill();
  // A page without an event was a long search: it goes on where it stopped.
  if (question === asked) scrolled();
}

/** Requests the ticks of what is in view. @param {Trace} trace */
async function requestTicks(trace) {
  const [from, to] = own(trace, [state.from, state.from + state.span]);
  const columns = 1600;
  const key = JSON.stringify([keyOf(trace), from, to]);
  if (!isChoice() || to <= from) return void (ticks.delete(trace), refresh());
  if (ticks.get(trace)?.key === key) return;
  const choice = choiceOf(trace);
  const [first, last] = [Math.max(from, Number(choice.from)), Math.min(to, Number(choice.to))];
  if (last <= first) return void ticks.delete(trace);
  try {
    const answer = await api.ticks(trace.index, { ...choice, from: first, to: last, columns });
    ticks.set(trace, { key, from: first, to: last, columns, answer });
  } catch {
    ticks.delete(trace);
  }
  tell();
  refresh();
}

/** The ticks of a trace, where some events are chosen. @param {Trace} trace */
export const ticksOf = (trace) => (isChoice() ? ticks.get(trace) ?? null : null);

/** @type {ReturnType<typeof setTimeout>} */
let waiting;
/** @type {ReturnType<typeof setTimeout>} */
let marking;

/** Follows the state from now on. */
export function followEvents() {
  onChange((changed) => {
    if (state.static || state.traces.some((trace) => !trace.head.full)) return;
    const isNew = ["events", "eventCpus", "filter", "selection", "traces"].some((part) => changed.has(part));
    if (isNew || ["from", "span"].some((part) => changed.has(part))) {
      clearTimeout(marking);
      marking = setTimeout(() => state.traces.forEach(requestTicks), REST);
    }
    if (state.tab !== "events") return;
    if (isNew || changed.has("tab") || listed.key !== keyOf(traceOf())) {
      clearTimeout(waiting);
      waiting = setTimeout(renew, changed.has("events") || changed.has("eventCpus") ? REST : 0);
    } else if (changed.has("place")) follow();
  });
}

/** The cursor has moved: the list shows its events. */
function follow() {
  const { events, before, behind } = listed;
  const at = instantOf(traceOf());
  const isListed = events.length > 0 && (at >= events[0].at || !before) && (at <= events[events.length - 1].at || !behind);
  if (isListed) centre();
  else renew();
}

/** The field for the words, which stays while the list changes. */
const field = el("input", { type: "search", id: "event-words", list: "event-kinds", placeholder: "sched_wakeup pid=345", autocomplete: "off", spellcheck: "false", title: "Names of events, with * for any part, and conditions on their fields: = != ~ (contains) < > <= >=" });
const cpus = el("input", { type: "text", id: "event-cpus", placeholder: "all", size: "6", autocomplete: "off", title: "CPUs that recorded the events, such as 0-3,8" });
const known = el("datalist", { id: "event-kinds" });
const facts = el("p", { class: "part" });
const fault = el("p", { class: "fault", role: "alert" });
const body = el("tbody");
const table = el("table", { "aria-label": "Events" }, el("thead", {}, el("tr", {}, ...[["time (s)", "number"], ["CPU", "number"], ["task", ""], ["event", ""], ["", ""]].map(([name, kind]) => el("th", { scope: "col", ...(kind ? { class: kind } : {}) }, name)))), body);
const scroller = el("div", { class: "scroller" }, table);
const line = el("code");
const root = el("div", { class: "events" },
  el("div", { class: "choice" }, el("label", { class: "field grow" }, el("span", {}, "Events"), field), el("label", { class: "field" }, el("span", {}, "CPUs"), cpus)),
  known, facts, fault, scroller, el("p", {}, line));
field.addEventListener("input", () => change({ events: field.value.slice(0, 400) }));
cpus.addEventListener("input", () => change({ eventCpus: cpus.value.slice(0, 200) }));
scroller.addEventListener("scroll", () => scrolled(), { passive: true });

/** More events are requested where the list comes to an end. */
function scrolled() {
  if (!scroller.isConnected || scroller.clientHeight === 0) return;
  if (listed.before && scroller.scrollTop < NEAR) more("before");
  else if (listed.behind && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR) more("behind");
}

/** The panel of the events, one element that stays. @returns {Node[]} */
export function eventsPanel() {
  if (document.activeElement !== field) field.value = state.events;
  if (document.activeElement !== cpus) cpus.value = state.eventCpus;
  requestKinds(traceOf());
  mark();
  return [root];
}

/** Requests the names of the events that a trace has, once. @param {Trace} trace */
async function requestKinds(trace) {
  if (!trace.head.full || kinds.has(trace)) return;
  kinds.set(trace, []);
  try {
    kinds.set(trace, (await api.kinds(trace.index)).map(({ name, count }) => /** @type {const} */ ([name, count])).sort((a, b) => b[1] - a[1]).map(([name]) => name));
  } catch {
    // The field works without suggestions.
  }
  known.replaceChildren(...(kinds.get(trace) ?? []).map((name) => el("option", { value: name })));
}

/** Shows what the list is about. */
function tell() {
  const trace = traceOf();
  const marked = ticks.get(trace)?.answer;
  const parts = [state.selection ? `In the selection (${duration(state.selection[1] - state.selection[0])})` : "In the whole trace"];
  if (state.traces.length > 1) parts.push(`of ${trace.head.name}`);
  if (state.filter.trim()) parts.push(`while a task that passes the filter “${state.filter.trim()}” was on the CPU`);
  const inView = isChoice() && marked ? (marked.number === null ? "; too many in view to mark them: zoom in" : marked.number === undefined ? "" : `; ${marked.number.toLocaleString("en")} in view, marked on lanes and rows`) : "";
  facts.textContent = `${parts.join(", ")}${inView}.`;
  fault.textContent = listed.fault || listed.none;
  fault.hidden = !fault.textContent;
}

/** Fills the table; the row in sight stays where it is. */
function fill() {
  const trace = traceOf();
  tell();
  const anchor = [...body.children].find((row) => /** @type {HTMLElement} */ (row).offsetTop + /** @type {HTMLElement} */ (row).offsetHeight > scroller.scrollTop);
  const kept = anchor && { key: /** @type {HTMLElement} */ (anchor).dataset.place, top: /** @type {HTMLElement} */ (anchor).offsetTop - scroller.scrollTop };
  const focused = body.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.place : null;
  begin("events");
  const rows = listed.events.flatMap((event) => ((event.lost ?? null) === null ? [rowOf(trace, event)] : [lossBefore(event), rowOf(trace, event)]));
  if (!listed.before && rows.length) rows.unshift(edge(state.selection ? "The selection begins." : "The trace begins."));
  if (!listed.behind && rows.length) rows.push(edge(state.selection ? "The selection ends." : "The trace ends."));
  if (!rows.length && !listed.none && !listed.fault) rows.push(edge(listed.before || listed.behind ? "Searching …" : "No such event."));
  body.replaceChildren(...rows);
  const again = (/** @type {string | null | undefined} */ place) => (place ? /** @type {HTMLElement | null} */ (body.querySelector(`[data-place="${place}"]`)) : null);
  const row = again(kept?.key);
  if (row && kept) scroller.scrollTop = row.offsetTop - kept.top;
  again(focused)?.focus({ preventScroll: true });
  mark();
}

/** @param {string} words */
const edge = (words) => el("tr", { class: "edge" }, el("td", { colspan: "5" }, words));

/** The mark of a loss before an event. @param {ListedEvent} event */
function lossBefore({ cpu, lost }) {
  const row = edge(`⚠ ${lost ? `${lost.toLocaleString("en")} events` : "Events"} of CPU ${cpu} were lost here.`);
  row.classList.add("loss");
  return row;
}

/** @param {Trace} trace @param {ListedEvent} event */
function rowOf(trace, event) {
  const { at, nth, cpu, pid, comm, name, text } = event;
  const task = named(taskOf(trace, pid) ?? { pid, comm });
  const who = pid === 0 ? "idle" : task;
  const row = el("tr", { "data-place": `${at}.${nth}` }, el("td", { class: "number" }, seconds(at - trace.zero, 100)), el("td", { class: "number" }, String(cpu)),
    el("td", { class: "clip", title: who }, who), el("td", { class: "event" }, name), el("td", { class: "clip text", title: text }, text));
  /** @type {import("./entries.js").Entry} */
  const entry = { trace, from: at, to: at, cpu, pid: null, place: nth };
  entry.go = () => goTo(entry);
  add(entry);
  if (isCurrent(entry)) row.classList.add("current");
  return link(row, () => goTo(entry));
}

/** Moves the cursor to an event. The zoom stays; the window moves where the event is not in view. @param {import("./entries.js").Entry} entry */
function goTo(entry) {
  const time = entry.from - entry.trace.zero;
  setCurrent(entry, "events");
  if (time < state.from || time > state.from + state.span) show(time - state.span / 2, state.span);
  change({ place: { trace: entry.trace.index, cpu: entry.cpu ?? 0, time } });
}

/** The row of the last event up to the cursor. @returns {HTMLElement | null} */
function rowAtCursor() {
  const at = instantOf(traceOf());
  const n = listed.events.findLastIndex((event) => event.at <= at);
  const chosen = state.place && listed.events.findIndex((event) => event.at === at && event.cpu === state.place?.cpu);
  const event = listed.events[chosen !== null && chosen >= 0 ? chosen : Math.max(n, 0)];
  return event ? body.querySelector(`[data-place="${event.at}.${event.nth}"]`) : null;
}

/** Marks the row of the cursor. */
function mark() {
  tell();
  const row = state.place ? rowAtCursor() : null;
  for (const other of body.querySelectorAll("tr.current")) if (other !== row) other.classList.remove("current");
  row?.classList.add("current");
}

/** Scrolls to the row of the cursor, unless it is in sight. */
function centre() {
  mark();
  const row = rowAtCursor();
  if (!row) return;
  const top = row.offsetTop - scroller.scrollTop;
  if (top < 24 || top > scroller.clientHeight - 24) scroller.scrollTop = row.offsetTop - scroller.clientHeight / 2;
}

/** Whether the panel shows the list already. @param {HTMLElement} panel */
export const isShown = (panel) => panel.firstChild === root;
