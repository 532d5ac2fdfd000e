// The critical path of the window in the panel: its shares as `schedviz path` prints them, with the command line.

import { el, pairs } from "./dom.js";
import { pathName } from "./pathpick.js";
import { duration, percent } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").PathNumbers} PathNumbers */

/** The rows with the names of their times, as `path` prints them. @type {[string, string][]} */
const TIMES = [
  ["running", "running_ns"], ["queued", "queued_ns"], ["– held back", "queued_held_back_ns"], ["– while a CPU idled", "queued_beside_idle_ns"],
  ["– beside a shorter queue", "queued_beside_shorter_ns"], ["– all queues alike", "queued_alike_ns"], ["wakeup in progress", "waking_ns"],
  ["sleeping until interrupt", "sleeping_ns"], ["unknown", "unknown_ns"], ["throttled by cpu.max", "throttled_ns"],
];
/** The number of tasks that are listed. */
const ROWS = 10;

/** The rows of the table: the time in each state and its share, or that it is unknown; throttled where there is any. @param {PathNumbers} answer @returns {[string, string][]} */
export function rowsOf({ times, length }) {
  const shown = TIMES.filter(([, key]) => key !== "throttled_ns" || times[key]);
  const inWords = (/** @type {number | null} */ ns) => (ns === null ? "unknown" : `${percent(ns / Math.max(1, length))}  ${duration(ns)}`);
  return shown.map(([name, key]) => [name, inWords(times[key] ?? null)]);
}

/** @param {Trace} trace @param {PathNumbers | null | undefined} answer
 * @param {(trace: Trace, who: { pid: number, comm: string }, ...cells: string[]) => HTMLElement} taskRow @returns {Node[]} */
export function pathPanel(trace, answer, taskRow) {
  const title = el("h3", { title: "What the elapsed time consists of, followed back from the end. The path of the window knows nothing behind it: a sleep that lasts at its end is unknown." }, "Critical path");
  if (!answer) return [title, el("p", {}, "…")];
  if (answer.none) return [title, el("p", { class: "empty" }, `No critical path: ${answer.none}.`)];
  const { task, length } = answer;
  if (length === 0) return [title, el("p", { class: "empty" }, `The window begins behind the end of the path of ${pathName(trace, task)}.`)];
  const end = answer.ends_with_exit ? "to its exit" : "to the end of the window, or of the path";
  /** @type {Node[]} */
  const nodes = [title, el("p", { class: "said" }, `${duration(length)} of ${pathName(trace, task)}, ${end}.`)];
  if (answer.is_untrusted) nodes.push(el("p", { class: "fault" }, "Not to be trusted: more than 20 % of it is unknown."));
  if (answer.is_cut) nodes.push(el("p", { class: "fault" }, "Its beginning was dropped: it has too many segments."));
  nodes.push(pairs(rowsOf(answer)));
  if (answer.possible_ns > 0) nodes.push(el("p", {}, `${duration(answer.possible_ns)} of it is possibly on the path.`));
  const tasks = el("table");
  for (const share of answer.tasks.slice(0, ROWS)) {
    const all = ["running", "queued", "waking", "sleeping", "unknown", "throttled"].reduce((sum, state) => sum + (share[`${state}_ns`] ?? 0), 0);
    tasks.append(taskRow(trace, { pid: share.pid, comm: share.command }, percent(all / Math.max(1, length)), duration(all)));
  }
  nodes.push(tasks);
  if (answer.tasks_number > ROWS) nodes.push(el("p", {}, `… ${(answer.tasks_number - ROWS).toLocaleString("en")} more`));
  nodes.push(el("p", {}, el("code", {}, answer.command)));
  return nodes;
}
