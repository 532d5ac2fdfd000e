// Answers of the server about the window, a task, an instant and lists: requested when the state changes, after a short rest.
//
// An answer is kept together with its question, and is given for that question alone: whoever draws asks by the question that holds then.

import * as api from "./api.js";
import * as offline from "./offline.js";
import { isMeant } from "./palette.js";
import { pathKey, pathTask } from "./pathpick.js";
import { onChange, refresh, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** A kind of question; each has its latest question. @typedef {"window" | "path" | "task" | "stacks" | "place" | "wait" | "share" | "list" | "story" | "search"} Kind */
/** A question with its answer, or the reason for which there is none. `question` is the text that identifies it.
 * @typedef {{ question: string, about: any, answer: any, fault: string }} Answered */

/** The rest after the last change, in ms. */
const REST = 140;

/** The latest answers. @type {Map<Kind, Answered>} */
const answers = new Map();
/** The latest questions, answered or not. @type {Map<Kind, string>} */
const questions = new Map();
/** @type {Map<Kind, ReturnType<typeof setTimeout>>} */
const waiting = new Map();
/** @type {(() => void)[]} */
const listeners = [];

/** @param {() => void} listener */
export const onDetails = (listener) => listeners.push(listener);

const tell = () => listeners.forEach((listener) => listener());

/** Asks a question, unless another of its kind follows within a short time. An answer to an earlier question is dropped.
 * @param {Kind} kind @param {any} about all that the answer depends on @param {() => Promise<any>} request */
function ask(kind, about, request) {
  const question = JSON.stringify(about);
  questions.set(kind, question);
  clearTimeout(waiting.get(kind));
  waiting.set(kind, setTimeout(async () => {
    /** @type {Answered} */
    const answered = { question, about, answer: null, fault: "" };
    try {
      answered.answer = await request();
    } catch (error) {
      answered.fault = error instanceof Error ? error.message : String(error);
    }
    if (questions.get(kind) !== question) return;
    answers.set(kind, answered);
    tell();
    refresh();
  }, REST));
}

/** Drops a question and its answer. @param {Kind} kind */
function forget(kind) {
  clearTimeout(waiting.get(kind));
  questions.delete(kind);
  answers.delete(kind);
}

/** Returns the answer to this question, null if there is none yet. @param {Kind} kind @param {any} about */
export function answerTo(kind, about) {
  const found = answers.get(kind);
  return found?.question === JSON.stringify(about) ? found.answer : null;
}

/** Returns the latest answer of a kind with what it is about. @param {Kind} kind */
export const latest = (kind) => answers.get(kind) ?? null;

/** Returns the reason for which the latest question of a kind has no answer. @param {Kind} kind */
export function faultOf(kind) {
  const found = answers.get(kind);
  return found && found.question === questions.get(kind) ? found.fault : "";
}

/** The window that numbers are about: the selection, or what is in view. @returns {[number, number]} */
export const asked = () => state.selection ?? [state.from, state.from + state.span];

/** Returns a window of aligned time in a trace's own, within the trace. @param {Trace} trace
 * @param {[number, number]} window @returns {[number, number]} */
export function own(trace, [from, to]) {
  const within = (/** @type {number} */ time) => Math.min(Math.max(Math.round(time + trace.zero), 0), trace.head.span);
  return [within(from), within(to)];
}

function requestWindow() {
  const about = { window: asked(), selected: state.selection !== null, filter: state.filter.trim() };
  ask("window", about, () => Promise.all(state.traces.map((trace) => {
    const [from, to] = own(trace, about.window);
    if (state.static) return to > from ? offline.windowNumbers(trace, from, to) : null;
    return to > from ? api.window(trace.index, from, to, about.filter) : null;
  })));
}

/** Requests the critical path of the window, where its row is shown: a trace is read for it. */
function requestPath() {
  if (!state.rows || state.static) return forget("path");
  const about = { path: asked(), of: state.traces.map(pathKey) };
  ask("path", about, () => Promise.all(state.traces.map((trace) => {
    const [from, to] = own(trace, about.path);
    return to > from ? api.pathNumbers(trace.index, from, to, pathTask(trace)) : null;
  })));
}

function requestTask() {
  const { highlight } = state;
  if (!highlight) return forget("task");
  const trace = state.traces[highlight.trace];
  const about = { ...highlight, window: own(trace, [state.from, state.from + state.span]) };
  const [from, to] = about.window;
  if (state.static) return ask("task", { ...highlight, window: [0, trace.head.span] }, () => offline.taskNumbers(trace, highlight.pid));
  ask("task", about, async () => (to > from ? api.task(trace.index, highlight.pid, from, to) : null));
}

function requestWait() {
  const { wait } = state;
  if (!wait) return forget("wait");
  ask("wait", wait, () => api.wait(wait.trace, wait.pid, wait.from, wait.to));
}

/** The question for the part of the wait that lies on the critical path, once the wait is known; null before. */
export function shareQuestion() {
  const { wait } = state;
  const found = wait && answerTo("wait", wait);
  return wait && found?.wait ? { trace: wait.trace, pid: wait.pid, from: found.wait.from, to: found.wait.to, of: pathKey(state.traces[wait.trace]) } : null;
}

function requestShare() {
  const about = shareQuestion();
  if (!about) return forget("share");
  if (questions.get("share") === JSON.stringify(about)) return;
  ask("share", about, () => api.pathShare(about.trace, about.pid, about.from, about.to, JSON.parse(about.of)));
}

/** Requests the stacks of the highlighted task, of a trace that has any. */
function requestStacks() {
  const { highlight } = state;
  const trace = highlight ? state.traces[highlight.trace] : null;
  if (!highlight || !trace?.head.stacks || state.static) return forget("stacks");
  const about = { ...highlight, window: own(trace, [state.from, state.from + state.span]) };
  const [from, to] = about.window;
  ask("stacks", about, async () => (to > from ? api.stacks(trace.index, highlight.pid, from, to) : null));
}

/** Returns the latest answer about the highlighted task of a trace: its runs, waits and numbers within a window that may have moved on.
 * @param {number} trace */
export function taskOfAnswer(trace) {
  const [found, { highlight }] = [latest("task"), state];
  return highlight?.trace === trace && found?.about.trace === trace && found.about.pid === highlight.pid ? found.answer : null;
}

function requestPlace() {
  const { place } = state;
  if (!place) return forget("place");
  const trace = state.traces[place.trace];
  if (state.static) return ask("place", place, () => offline.instant(trace, own(trace, [place.time, place.time])[0]));
  ask("place", place, () => api.at(trace.index, place.cpu, own(trace, [place.time, place.time])[0]));
}

/** The question of the list that is shown: its kind, the window that it is about, null for the whole, and the filter, which herds have not. An
 * exported folder has lists of the whole alone.
 * @returns {{ list: string, window: [number, number] | null, filter: string }} */
export function listQuestion() {
  const { list } = state;
  if (state.static) return { list, window: null, filter: "" };
  return { list, window: state.range, filter: list === "herds" ? "" : state.filter.trim() };
}

export function requestList() {
  const about = listQuestion();
  // All that the lists of tasks and of notes have is known.
  if (about.list === "tasks" || about.list === "notes") return forget("list");
  const question = JSON.stringify(about);
  if (questions.get("list") === question && answers.get("list")?.question === question && !answers.get("list")?.fault) return;
  ask("list", about, () => Promise.all(state.traces.map((trace) => {
    const window = about.window && own(trace, about.window);
    if (window && window[0] >= window[1]) return { rows: [], truncated: false, number: 0, idle_entries: 0, by_distance: [] };
    return api.list(trace.index, about.list, window, about.filter);
  })));
}

/** The episode that was requested last. */
let requested = state.story;

function requestStory() {
  const { story } = state;
  requested = story;
  if (!story) return forget("story");
  const trace = state.traces[story.trace];
  const [from, to] = own(trace, [story.from, story.to]);
  ask("story", story, () => api.story(trace.index, from, to));
}

/** Finds tasks as the server does; events are not in an exported folder. @param {Trace} trace @param {string} text */
function tasksNamed(trace, text) {
  const sought = text.toLowerCase();
  const tasks = trace.head.tasks.filter((task) => isMeant(task, sought)).sort((a, b) => b.run - a.run);
  return { tasks: tasks.slice(0, 100).map((task) => task.pid), tasks_number: tasks.length, events: [], events_number: 0, complete: true, next: null };
}

/** Searches for a text; without one the search ends. @param {string} entered */
export function requestSearch(entered) {
  const text = entered.trim();
  if (!text) {
    forget("search");
    return tell();
  }
  ask("search", text, () => Promise.all(state.traces.map((trace) => (state.static ? tasksNamed(trace, text) : api.search(trace.index, text)))));
}

/** Turns to the next or the former page of the events that a search has found in a trace. @param {number} trace @param {1 | -1} step */
export async function turnFound(trace, step) {
  const found = answers.get("search");
  const answer = found?.answer?.[trace];
  if (!found || !answer) return;
  const pages = answer.pages ?? [{ from: 0, skip: 0, before: 0 }];
  const turned = step > 0 ? [...pages, { ...answer.next, before: pages.at(-1).before + answer.events.length }] : pages.slice(0, -1);
  const { from, skip, before } = turned.at(-1) ?? {};
  if (from === undefined) return;
  try {
    const page = await api.search(trace, found.about, { from, skip });
    if (answers.get("search") !== found || found.answer[trace] !== answer) return;
    // What was found before the page counts as well.
    const number = Math.max(answer.events_number, before + page.events_number - skip);
    found.answer[trace] = { ...answer, events: page.events, next: page.next, pages: turned, events_number: number, complete: answer.complete || page.complete };
    found.fault = "";
  } catch (error) {
    found.fault = error instanceof Error ? error.message : String(error);
  }
  tell();
  refresh();
}

/** Whether a search lasts: what it found is on the panel. */
export const searches = () => answers.has("search");

/** Requests what the state needs from now on. */
export function follow() {
  onDetails(requestShare);
  onChange((changed) => {
    // The numbers of a window need the whole index; its completion changes the traces.
    if (state.traces.some((trace) => !trace.head.full)) return;
    if (["list", "tab", "traces", "range", "filter"].some((part) => changed.has(part)) && state.tab === "lists") requestList();
    const moved = changed.has("from") || changed.has("span") || changed.has("traces");
    if (moved || changed.has("selection") || changed.has("filter") || changed.has("tab")) if (state.tab === "window" || state.tab === "legend") requestWindow();
    if ((moved || changed.has("selection") || changed.has("rows") || changed.has("along") || changed.has("tab")) && state.tab === "window") requestPath();
    if (moved || changed.has("highlight")) requestTask();
    if ((changed.has("wait") || changed.has("traces")) && !state.static) requestWait();
    if (changed.has("along") && !state.static) requestShare();
    if ((moved || changed.has("highlight") || changed.has("tab")) && state.tab === "task") requestStacks();
    if (changed.has("place") || changed.has("traces")) requestPlace();
    if ((changed.has("traces") || changed.has("story")) && requested !== state.story && !state.static) requestStory();
  });
}
