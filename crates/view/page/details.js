// Answers of the server about the window, a task, an instant and lists: requested when the state changes, after a short rest.

import * as api from "./api.js";
import { onChange, refresh, state } from "./state.js";

/** The rest after the last change, in ms. */
const REST = 140;

/** The latest answers, by trace where there is one for each.
 * @type {{ window: any[], place: any, list: any[], story: any, search: { text: string, answers: any[] } | null, fault: string }} */
export const details = { window: [], place: null, list: [], story: null, search: null, fault: "" };

/** The number of the latest request of each kind: answers to earlier ones are dropped. @type {Record<string, number>} */
const latest = {};
/** @type {Record<string, ReturnType<typeof setTimeout>>} */
const waiting = {};
/** @type {(() => void)[]} */
const listeners = [];

/** @param {() => void} listener */
export const onDetails = (listener) => listeners.push(listener);

/** @param {string} kind @param {() => Promise<void>} request */
function later(kind, request) {
  clearTimeout(waiting[kind]);
  waiting[kind] = setTimeout(async () => {
    const number = (latest[kind] = (latest[kind] ?? 0) + 1);
    try {
      await request();
      details.fault = "";
    } catch (error) {
      details.fault = error instanceof Error ? error.message : String(error);
    }
    if (number !== latest[kind]) return;
    listeners.forEach((listener) => listener());
    refresh();
  }, REST);
}

/** Whether this request is still the latest of its kind. @param {string} kind */
const stillLatest = (kind) => {
  const number = latest[kind];
  return () => number === latest[kind];
};

/** The window that numbers are about: the selection, or what is in view. @returns {[number, number]} */
export const asked = () => state.selection ?? [state.from, state.from + state.span];

/** Returns a window of aligned time in a trace's own, within the trace. @param {import("./state.js").Trace} trace
 * @param {[number, number]} window @returns {[number, number]} */
export function own(trace, [from, to]) {
  const within = (/** @type {number} */ time) => Math.min(Math.max(Math.round(time + trace.zero), 0), trace.head.span);
  return [within(from), within(to)];
}

function requestWindow() {
  later("window", async () => {
    const current = stillLatest("window");
    const answers = await Promise.all(state.traces.map((trace) => {
      const [from, to] = own(trace, asked());
      return to > from ? api.window(trace.index, from, to) : null;
    }));
    if (current()) details.window = answers;
  });
}

function requestTask() {
  const { highlight } = state;
  for (const trace of state.traces) if (trace.index !== highlight?.trace || trace.task?.pid !== highlight.pid) trace.task = null;
  if (!highlight) return;
  later("task", async () => {
    const current = stillLatest("task");
    const trace = state.traces[highlight.trace];
    const [from, to] = own(trace, [state.from, state.from + state.span]);
    const answer = to > from ? await api.task(trace.index, highlight.pid, from, to) : null;
    if (current()) trace.task = answer;
  });
}

function requestPlace() {
  const { place } = state;
  if (!place) {
    details.place = null;
    return;
  }
  later("place", async () => {
    const current = stillLatest("place");
    const trace = state.traces[place.trace];
    const answer = await api.at(trace.index, place.cpu, own(trace, [place.time, place.time])[0]);
    if (current()) details.place = answer;
  });
}

export function requestList() {
  later("list", async () => {
    const current = stillLatest("list");
    const answers = await Promise.all(state.traces.map((trace) => api.list(trace.index, state.list)));
    if (current()) details.list = answers;
  });
}

/** The episode that was requested last. */
let requested = state.story;

function requestStory() {
  const { story } = state;
  requested = story;
  details.story = null;
  if (!story) return;
  later("story", async () => {
    const current = stillLatest("story");
    const trace = state.traces[story.trace];
    const [from, to] = own(trace, [story.from, story.to]);
    const answer = await api.story(trace.index, from, to);
    if (current()) details.story = answer;
  });
}

/** Finds tasks as the server does; events are not in an exported folder. @param {import("./state.js").Trace} trace @param {string} text */
function tasksNamed(trace, text) {
  const sought = text.toLowerCase();
  const tasks = trace.head.tasks.filter((task) => String(task.pid) === sought || task.comm.toLowerCase().includes(sought));
  return { tasks: tasks.sort((a, b) => b.run - a.run).slice(0, 100).map((task) => task.pid), events: [] };
}

/** @param {string} text */
export function requestSearch(text) {
  if (!text.trim()) {
    details.search = null;
    listeners.forEach((listener) => listener());
    return;
  }
  later("search", async () => {
    const current = stillLatest("search");
    const answers = await Promise.all(state.traces.map((trace) => (state.static ? tasksNamed(trace, text.trim()) : api.search(trace.index, text.trim()))));
    if (current()) details.search = { text, answers };
  });
}

/** Requests what the state needs from now on. */
export function follow() {
  onChange((changed) => {
    // The numbers of a window need the whole index; its completion changes the traces.
    if (state.traces.some((trace) => !trace.head.full)) return;
    if ((changed.has("list") || changed.has("tab") || changed.has("traces")) && state.tab === "lists") {
      if (changed.has("list")) details.list = [];
      requestList();
    }
    if (state.static) return;
    const moved = changed.has("from") || changed.has("span") || changed.has("traces");
    if (moved || changed.has("selection") || changed.has("tab")) if (state.tab === "window" || state.tab === "legend") requestWindow();
    if (moved || changed.has("highlight")) requestTask();
    if (changed.has("place") || changed.has("traces")) requestPlace();
    if ((changed.has("traces") || changed.has("story")) && requested !== state.story) requestStory();
  });
}
