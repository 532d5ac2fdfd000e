// How a page begins: a trace of many CPUs with a lane for each last-level cache, coloured by command, since two hundred lanes of a few pixels
// show neither tasks nor queues.

import { keyOf } from "./layout.js";

/** The number of CPUs from which on lanes begin together. */
const MANY = 256;

/** @typedef {import("./state.js").Trace} Trace */

/** The way of colouring of an address that names none. @param {Trace[]} traces @returns {import("./palette.js").ColorBy} */
export const firstColor = (traces) => (traces.some((trace) => trace.head.cpus.length >= MANY) ? "command" : "task");

/** The groups of a trace that are one lane each in an address that names none: the last-level caches, or else the nodes, of many CPUs.
 * @param {Trace} trace @returns {Set<string>} */
export function firstCollapsed({ head }) {
  if (head.cpus.length < MANY) return new Set();
  const of = (/** @type {string} */ kind) => head.folds.filter((fold) => fold.kind === kind);
  const [caches, nodes] = [of("llc"), of("node")];
  return new Set((caches.length ? caches : nodes).map(keyOf));
}

/** Whether the groups that are one lane each are those of an address that names none. @param {Trace[]} traces */
export const isFirst = (traces) => traces.every((trace) => {
  const first = firstCollapsed(trace);
  return first.size === trace.collapsed.size && [...first].every((key) => trace.collapsed.has(key));
});
