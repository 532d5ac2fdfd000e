// The stacks in the kernel of the highlighted task: those with which it left its CPUs, and those of its wakers.

import { latest } from "./details.js";
import { el, link } from "./dom.js";
import { go } from "./entries.js";
import { named, state, taskOf } from "./state.js";
import { duration, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** A stack by its functions in the kernel, the innermost first: `scheduler` of them are the scheduler's, and `more` outer ones are left out.
 * @typedef {{ kind: string, functions: string[], scheduler: number, more: number }} Stack */
/** The time off the CPU at a stack, its place in the answer. @typedef {{ stack: number | null, asleep: number, runnable: number, times: number }} StackRow */
/** @typedef {{ pid: number | null, cpu: number, stack: number | null }} Waker */
/** A time off the CPU in a trace's own time.
 * @typedef {{ from: number, to: number, cpu: number, asleep: number, runnable: number, stack: number | null, waker: Waker | null }} OffTime */
/** @typedef {{ stacks: Stack[], rows: StackRow[], rest: StackRow | null, off: OffTime[], truncated: boolean }} Answer */

/** The number of functions of a folded stack. */
const [FEWEST, MOST] = [2, 6];
/** The number of sleeps that are listed. */
const SLEEPS = 12;

/** The stacks that are shown whole, each by its functions. @type {Set<string>} */
const opened = new Set();

/** @param {Stack} stack */
const keyOf = (stack) => stack.functions.join();

/** The functions of a stack behind those of the scheduler; all of a stack that has no others. @param {Stack} stack */
const inner = ({ functions, scheduler }) => (scheduler < functions.length ? functions.slice(scheduler) : functions);

/** Returns the number of inner functions of each stack that tell it from the others. @param {Stack[]} stacks @returns {number[]} */
export function shortest(stacks) {
  const beginnings = stacks.map((stack) => inner(stack).slice(0, MOST).map((_, n, all) => all.slice(0, n + 1).join()));
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const beginning of beginnings.flat()) counts.set(beginning, (counts.get(beginning) ?? 0) + 1);
  return beginnings.map((all) => {
    const alone = all.findIndex((beginning) => counts.get(beginning) === 1);
    return Math.max(FEWEST, alone < 0 ? all.length : alone + 1);
  });
}

/** The answer about the highlighted task of a trace, null as long as there is none. @param {Trace} trace @returns {Answer | null} */
function answerOf(trace) {
  const [found, { highlight }] = [latest("stacks"), state];
  return found?.about.trace === trace.index && found.about.pid === highlight?.pid ? found.answer : null;
}

/** The name of a stack in few words: its kind and its innermost function. @param {Stack | undefined} stack */
const short = (stack) => (stack ? [stack.kind, inner(stack)[0] ?? ""].filter(Boolean).join(": ") : "no stack");

/** Returns a stack: folded to its inner functions, or whole, as a button switches it. @param {Stack | undefined} stack
 * @param {number} shown the number of its functions while it is folded @param {() => void} changed @returns {HTMLElement} */
function stackNode(stack, shown, changed) {
  if (!stack) return el("span", {}, "no stack");
  const [key, functions] = [keyOf(stack), inner(stack)];
  if (functions.length === 0) return el("span", {}, "no stack in the kernel");
  const isOpen = opened.has(key);
  const rest = functions.length > shown || stack.more > 0 ? " ← …" : "";
  const words = isOpen ? stack.kind || functions[0] : `${stack.kind ? `${stack.kind}: ` : ""}${functions.slice(0, shown).join(" ← ")}${rest}`;
  const fold = el("button", { type: "button", class: "stack", "aria-expanded": String(isOpen), title: isOpen ? "Fold the stack" : "Show the whole stack" }, el("span", { "aria-hidden": "true" }, isOpen ? "▾ " : "▸ "), words);
  fold.addEventListener("click", () => {
    if (!opened.delete(key)) opened.add(key);
    changed();
  });
  if (!isOpen) return fold;
  const list = el("ol", { class: "frames" });
  stack.functions.forEach((name, n) => list.append(el("li", n < stack.scheduler ? { class: "faint" } : {}, name)));
  if (stack.more > 0) list.append(el("li", { class: "faint" }, `and ${stack.more.toLocaleString("en")} more functions`));
  return el("div", {}, fold, list);
}

/** The waker of a sleep in words. @param {Trace} trace @param {Waker} waker */
function wakerOf(trace, { pid, cpu }) {
  if (pid === null) return `an interrupt on CPU ${cpu}`;
  return `${pid === 0 ? "the idle task" : named(taskOf(trace, pid) ?? { pid, comm: "" })} on CPU ${cpu}`;
}

/** The time off the CPU that holds an instant, or that the run of the task there ends with. @param {Trace} trace @param {Answer} answer @param {number} at
 * @returns {{ off: OffTime, runs: boolean } | null} */
function offAt(trace, { off }, at) {
  const run = trace.task?.runs.find((/** @type {[number, number, number]} */ [from, to]) => from <= at && at < to);
  const found = run ? off.find(({ from }) => from === run[1]) : off.find(({ from, to }) => from <= at && at < to);
  return found ? { off: found, runs: Boolean(run) } : null;
}

/** The stacks of a time off the CPU. @param {Trace} trace @param {Answer} answer @param {number[]} lengths @param {{ off: OffTime, runs: boolean }} found
 * @param {() => void} changed @returns {Node[]} */
function atCursor(trace, { stacks }, lengths, { off, runs }, changed) {
  const node = (/** @type {number | null} */ place) => stackNode(stacks[place ?? -1], lengths[place ?? -1] ?? FEWEST, changed);
  const parts = [off.asleep ? `asleep ${duration(off.asleep)}` : "", off.runnable ? `waiting ${duration(off.runnable)}` : ""].filter(Boolean).join(", ");
  const at = seconds(off.from - trace.zero, 1000);
  const left = `${runs ? `The run ends at ${at} s; then off the CPU` : `Off the CPU from ${at} s on`}: ${parts || duration(off.to - off.from)}`;
  const nodes = [el("h3", {}, "At the cursor"), el("p", {}, left), el("p", {}, "Stack of the switch-out:"), node(off.stack)];
  if (off.waker && off.waker.stack === null) nodes.push(el("p", {}, `Woken by ${wakerOf(trace, off.waker)}.`));
  else if (off.waker) nodes.push(el("p", {}, `Woken by ${wakerOf(trace, off.waker)}; stack of the waker:`), node(off.waker.stack));
  return nodes;
}

/** Returns the name of the stack with which the task had left its CPU before an instant of the trace's own time; empty where none is known.
 * @param {Trace} trace @param {number} at */
export function stackBefore(trace, at) {
  const answer = answerOf(trace);
  const off = answer?.off.find(({ from, to }) => from <= at && at < to);
  return answer && off && off.stack !== null ? short(answer.stacks[off.stack]) : "";
}

/** The stacks of the highlighted task: at the cursor, by time, and of its longest sleeps; nothing of a trace without stacks.
 * @param {Trace} trace @param {() => void} changed @returns {Node[]} */
export function taskStacks(trace, changed) {
  if (!trace.head.stacks) return [];
  const title = "Off its CPUs, by stack in the kernel";
  const answer = answerOf(trace);
  if (!answer) return [el("h3", {}, title), el("p", {}, "The stacks are read …")];
  const { stacks, rows, rest, off, truncated } = answer;
  const lengths = shortest(stacks);
  const { place } = state;
  const found = place?.trace === trace.index ? offAt(trace, answer, place.time + trace.zero) : null;
  const nodes = found ? atCursor(trace, answer, lengths, found, changed) : [];
  nodes.push(el("h3", {}, title));
  if (rows.length === 0) return [...nodes, el("p", {}, "It was on a CPU all the time, or unknown.")];
  const head = (/** @type {string} */ text) => el("th", { scope: "col", class: "number" }, text);
  const table = el("table", { class: "stacks", "aria-label": title }, el("tr", {}, el("th", { scope: "col" }, "stack"), head("asleep"), head("waiting"), head("times")));
  const numbers = (/** @type {StackRow} */ row) => [row.asleep ? duration(row.asleep) : "–", row.runnable ? duration(row.runnable) : "–", row.times.toLocaleString("en")].map((text) => el("td", { class: "number" }, text));
  for (const row of rows) table.append(el("tr", {}, el("td", { class: "words" }, stackNode(stacks[row.stack ?? -1], lengths[row.stack ?? -1] ?? FEWEST, changed)), ...numbers(row)));
  if (rest) table.append(el("tr", {}, el("td", {}, "other stacks"), ...numbers(rest)));
  nodes.push(table);
  const sleeps = off.filter(({ asleep }) => asleep > 0).sort((a, b) => b.asleep - a.asleep).slice(0, SLEEPS);
  if (sleeps.length) {
    const list = el("table", { "aria-label": "Longest sleeps" });
    for (const { from, to, cpu, asleep, stack, waker } of sleeps) {
      const words = [short(stacks[stack ?? -1]), waker ? `woken by ${wakerOf(trace, waker)}` : ""].filter(Boolean).join(" → ");
      list.append(link(el("tr", {}, el("td", { class: "number" }, duration(asleep)), el("td", { class: "words" }, words)), () => go({ trace, from, to, cpu, pid: null })));
    }
    nodes.push(el("h3", {}, truncated ? "Longest sleeps of those that are listed" : "Longest sleeps"), list);
  }
  return nodes;
}
