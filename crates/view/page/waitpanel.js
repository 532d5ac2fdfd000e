// The answer to "why did it wait?": who placed the task where, who ran meanwhile, which CPUs idled or had shorter queues, how it ended.

import { answerTo, faultOf, shareQuestion } from "./details.js";
import { el, link, swatch } from "./dom.js";
import { css, taskColor, theme } from "./palette.js";
import { kindColors } from "./rowdraw.js";
import { pathName } from "./pathpick.js";
import { change, named, show, state, taskOf } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */

/** The kinds of queued time, in the order of the answer. */
const KINDS = ["held back on an idle CPU, its own", "beside an idle CPU", "beside a shorter queue", "all queues alike"];
/** The words for the ways in which a task joined its queue. @type {Record<string, string>} */
const CAME = { unknown: "joined its queue unseen", woken: "was woken", new: "was forked", moved: "was moved there", preempted: "was preempted" };
/** The number of rows of a table. */
const ROWS = 12;
/** The words for distances of CPUs. @type {Record<string, string>} */
const DISTANCES = { smt: "same core", cluster: "same cluster", llc: "same LLC", node: "same node", machine: "another node" };

/** The wait that was asked about, if it is one of the highlighted task. */
export function askedWait() {
  const { wait, highlight } = state;
  return wait && highlight && wait.trace === highlight.trace && wait.pid === highlight.pid ? wait : null;
}

/** A button in a sentence. @param {string} text @param {() => void} go */
function ref(text, go) {
  const button = el("button", { type: "button", class: "ref" }, text);
  button.addEventListener("click", go);
  return button;
}

/** The answer as sentences and tables. @param {Trace} trace @param {(trace: Trace, pid: number) => void} choose @returns {Node[]} */
export function waitPanel(trace, choose) {
  const wait = askedWait();
  if (!wait) return [];
  const fault = faultOf("wait");
  if (fault) return [el("p", { class: "fault", role: "alert" }, fault)];
  const answer = answerTo("wait", wait);
  if (!answer) return [el("h3", {}, "Why it waited"), el("p", {}, "…")];
  if (!answer.wait) return [el("h3", {}, "Why it waited"), el("p", { class: "empty" }, "It waited on no run queue there.")];
  const { from, to } = answer.wait;
  const length = Math.max(1, to - from);
  const task = (/** @type {{ pid: number, comm: string }} */ who) => (who.pid === 0 ? el("span", {}, "the idle task") : ref(named(who), () => choose(trace, who.pid)));
  const cpu = (/** @type {number} */ number, at = from) => ref(`CPU ${number}`, () => goTo(trace, number, at));
  const cpus = /** @type {number[]} */ (answer.parts.map((/** @type {any[]} */ part) => part[2]));
  const on = cpus.flatMap((number, n) => [n > 0 ? " → " : "", cpu(number, answer.parts[n][0])]);
  /** @type {Node[]} */
  const nodes = [el("h3", {}, "Why it waited"), el("p", { class: "said" }, `${answer.wait.begun ? "" : "At least "}${duration(to - from)}, from ${seconds(from - trace.zero, 1000)} s, on `, ...on, ".")];
  nodes.push(el("p", { class: "said" }, ...placed(answer, task, cpu)));
  for (const [at, origin, dest, cause] of answer.moves) nodes.push(el("p", { class: "said" }, `At ${seconds(at - trace.zero, 1000)} s moved from `, cpu(origin, at), " to ", cpu(dest, at), `: ${cause}.`));
  nodes.push(...ending(answer, task, cpu), onPath(trace, length));
  if (answer.kinds) nodes.push(kindsTable(answer.kinds, length));
  else nodes.push(el("p", {}, "The kinds of its queued time are unknown (needs sched_wakeup)."));
  nodes.push(el("h3", {}, "Who ran there meanwhile"), ranTable(trace, answer.ran, length, choose));
  nodes.push(el("h3", {}, "CPUs that idled, or had a shorter queue"), ...cpusTable(trace, answer, length));
  return nodes;
}

/** Who placed the task, and where. @param {any} answer @param {(who: any) => Node} task @param {(cpu: number) => Node} cpu @returns {(Node | string)[]} */
function placed({ placed: found, came, wait }, task, cpu) {
  if (!found) return [`It ${CAME[came ?? "unknown"]}${wait.begun ? "" : ", before the window of the trace"}.`];
  /** @type {(Node | string)[]} */
  const words = [`It ${CAME[found.measure === "preempted" ? "preempted" : found.measure === "new" ? "new" : came ?? "woken"]}`];
  if (found.waker) words.push(" by ", task(found.waker));
  else if (found.measure === "wakeup") words.push(", by an interrupt or unseen");
  words.push(", and queued on ", cpu(found.queued_on), " behind ", task(found.behind));
  if (found.within_slice !== null) words.push(found.within_slice ? " within its slice" : " beyond its slice");
  words.push(found.idle_cpus === 0 ? "; no CPU idled then." : `; ${found.idle_cpus} ${found.idle_cpus === 1 ? "CPU" : "CPUs"} idled then.`);
  return words;
}

/** How the wait ended. @param {any} answer @param {(who: any) => Node} task @param {(cpu: number, at: number) => Node} cpu @returns {Node[]} */
function ending({ placed: found, wait, parts }, task, cpu) {
  if (wait.open) return [el("p", { class: "said" }, `${wait.open[0].toUpperCase()}${wait.open.slice(1)}.`)];
  if (found) return [el("p", { class: "said" }, "It ran on ", cpu(found.ran_on, wait.to), " after ", task(found.after), ".")];
  const last = parts.at(-1);
  return last ? [el("p", { class: "said" }, `In the end ${last[4]}.`)] : [];
}

/** Whether the wait lay on the critical path. @param {Trace} trace @param {number} length */
function onPath(trace, length) {
  const question = shareQuestion();
  /** @type {import("./api.js").PathShare | null} */
  const share = question && answerTo("share", question);
  const fault = faultOf("share");
  if (!share) return el("p", { class: "said" }, fault ? `On the critical path? ${fault}.` : "On the critical path? The trace is read for it …");
  return el("p", { class: "said" }, pathWords(share, length, pathName(trace, share.task)), share.is_untrusted ? " That path is not to be trusted: more than 20 % of it is unknown." : "");
}

/** The sentence about the part of a wait that lies on a critical path. @param {import("./api.js").PathShare} share @param {number} length of the wait
 * @param {string} name of the path */
export function pathWords({ none, queued, unknown }, length, name) {
  if (none) return "Whether it lay on a critical path is unknown: the trace shows no application.";
  const rest = unknown > 0 ? `; for ${duration(unknown)} of it the path is unknown` : "";
  if (queued === 0) return unknown > 0 ? `Whether it lay on the critical path of ${name} is unknown: the path is, for ${duration(unknown)} of it.` : `None of it lay on the critical path of ${name}.`;
  return queued >= length ? `All of it lay on the critical path of ${name}.` : `${duration(queued)} of it (${percent(queued / length)}) lay on the critical path of ${name}${rest}.`;
}

/** @param {number[]} kinds @param {number} length */
function kindsTable(kinds, length) {
  const table = el("table");
  KINDS.forEach((name, n) => {
    if (kinds[n] > 0) table.append(el("tr", {}, el("td", {}, swatch(kindColors()[n]), name), el("td", { class: "number" }, duration(kinds[n])), el("td", { class: "number" }, percent(kinds[n] / length))));
  });
  if (kinds[4] > 0) table.append(el("tr", {}, el("td", {}, "of it beside an idle CPU that it may not use"), el("td", { class: "number" }, duration(kinds[4])), el("td", { class: "number" }, percent(kinds[4] / length))));
  return table;
}

/** @param {Trace} trace @param {any} ran @param {number} length @param {(trace: Trace, pid: number) => void} choose */
function ranTable(trace, ran, length, choose) {
  const table = el("table");
  const cells = (/** @type {number} */ ns) => [el("td", { class: "number" }, duration(ns)), el("td", { class: "number" }, percent(ns / length))];
  for (const who of ran.tasks.slice(0, ROWS)) {
    const known = taskOf(trace, who.pid);
    const color = known ? taskColor(known, state.color, state.filter, theme().other) : theme().other;
    table.append(link(el("tr", {}, el("td", { class: "clip", title: named(who) }, swatch(css(color)), named(who)), ...cells(who.ns)), () => choose(trace, who.pid)));
  }
  const others = ran.tasks.slice(ROWS);
  const [number, ns] = [others.length + ran.others, others.reduce((/** @type {number} */ sum, /** @type {any} */ who) => sum + who.ns, ran.others_ns)];
  if (number > 0) table.append(el("tr", {}, el("td", {}, `${number} more ${number === 1 ? "task" : "tasks"}`), ...cells(ns)));
  if (ran.idle > 0) table.append(el("tr", {}, el("td", {}, "nothing: the CPU idled"), ...cells(ran.idle)));
  if (ran.unknown > 0) table.append(el("tr", {}, el("td", {}, "unknown"), ...cells(ran.unknown)));
  return table;
}

/** @param {Trace} trace @param {any} answer @param {number} length @returns {Node[]} */
function cpusTable(trace, { cpus, wait }, length) {
  if (cpus.number === 0) return [el("p", { class: "empty" }, "None.")];
  const table = el("table", {}, el("tr", {}, el("th", {}, "CPU"), el("th", { class: "number" }, "idled"), el("th", { class: "number" }, "shorter"), el("th", {}, "")));
  for (const { cpu, idle, shorter, allowed, distance } of cpus.listed.slice(0, ROWS)) {
    const cell = (/** @type {number} */ ns) => el("td", { class: "number", title: percent(ns / length) }, ns > 0 ? duration(ns) : "");
    const words = [DISTANCES[distance] ?? "", allowed ? "" : "it may not run there"].filter(Boolean).join(", ");
    table.append(link(el("tr", {}, el("td", {}, String(cpu)), cell(idle), cell(shorter), el("td", { class: "words" }, words)), () => goTo(trace, cpu, wait.from)));
  }
  const more = cpus.number - Math.min(ROWS, cpus.listed.length);
  return more > 0 ? [table, el("p", {}, `and ${more} more`)] : [table];
}

/** Puts the cursor on a CPU. @param {Trace} trace @param {number} cpu @param {number} at in the trace's own time */
function goTo(trace, cpu, at) {
  const time = at - trace.zero;
  change({ place: { trace: trace.index, cpu, time }, tab: "here" });
  if (time < state.from || time > state.from + state.span) show(time - state.span / 2, state.span);
}

/** Goes to the waker of the highlighted task, or to the task that it woke next: from the cursor. @param {1 | -1} way */
export function alongWakeups(way) {
  const { highlight, place } = state;
  const trace = highlight ? state.traces[highlight.trace] : null;
  const task = trace?.task;
  if (!trace || !task) return;
  const now = (place?.trace === trace.index ? place.time : state.from + state.span / 2) + trace.zero;
  // A wakeup: its time, the other task, the CPU of the waker, and that of the woken task.
  /** @type {[number, number | null, number, number] | undefined} */
  const found = way < 0 ? task.wakeups.findLast((/** @type {any[]} */ [at]) => at <= now + 0.5) : task.woke.find((/** @type {any[]} */ [at]) => at >= now - 0.5);
  const here = document.getElementById("here");
  if (!found || found[1] === null) {
    if (here) here.textContent = way < 0 ? (found ? "it was woken by an interrupt or unseen" : "no wakeup before the cursor in the window") : "it woke no task behind the cursor in the window";
    return;
  }
  const [at, pid, by, on] = found;
  change({ highlight: { trace: trace.index, pid }, place: { trace: trace.index, cpu: way < 0 ? by : on, time: at - trace.zero } });
  const who = taskOf(trace, pid);
  if (here) here.textContent = `${way < 0 ? "woken by" : "it woke"} ${named(who ?? { pid, comm: "" })}, ${seconds(at - trace.zero, 1000)} s`;
}
