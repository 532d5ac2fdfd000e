// The groups of tasks by command, process and cgroup: learned when the page first needs them, since that reads the trace once more.

import * as api from "./api.js";
import { onChange, refresh, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").Task} Task */
/** @typedef {import("./palette.js").Rule} Rule */

/** The names of the groups in the plural. */
export const PLURALS = { command: "commands", process: "processes", cgroup: "cgroups" };

/** The reason for which the groups of a trace are missing. @type {Map<Trace, string>} */
const faults = new Map();
/** The traces whose groups were requested. @type {Set<Trace>} */
const requested = new Set();

/** @param {Trace} trace */
export const groupFault = (trace) => faults.get(trace) ?? "";

/** Returns the name of a task's group. @param {Task} task @param {Rule} rule */
export const groupName = (task, rule) => task.groups?.[rule]?.name ?? `unknown ${rule}`;

/** Whether the view depends on the groups of tasks. */
function areNeeded() {
  return state.color === "process" || state.color === "cgroup" || /(process|cgroup):/i.test(state.filter) || /^(in:.*)?(command|process|cgroup):/.test(state.rows) || state.rows.startsWith("in:") || (state.rows !== "" && state.highlight !== null) || (state.tab === "lists" && state.list === "tasks" && state.rule !== "task");
}

/** Follows the state: the groups are requested when it needs them, and the event "groups" tells that there are more. */
export function followGroups() {
  onChange(() => {
    if (!areNeeded()) return;
    for (const trace of state.traces) if (trace.head.full && !requested.has(trace)) void request(trace);
  });
}

/** @param {Trace} trace */
async function request(trace) {
  requested.add(trace);
  try {
    const rules = await api.groups(trace.index);
    trace.head.tasks.forEach((task, place) => {
      const of = (/** @type {Rule} */ rule) => rules[rule].groups[rules[rule].of[place] ?? -1] ?? null;
      task.groups = { command: of("command"), process: of("process"), cgroup: of("cgroup") };
    });
    trace.grouped = true;
  } catch (error) {
    faults.set(trace, error instanceof Error ? error.message : String(error));
  }
  dispatchEvent(new Event("groups"));
  refresh();
}
