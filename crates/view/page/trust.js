// How far numbers can be trusted, in words. The judgement itself is the server's, which has it of `workcons`.

import { percent, ranges } from "./time.js";

/** The judgement on a window: the reason that waiting tasks are unknown, the CPU time of which nothing is known, the number of places where
 * events are missing, and the bounds of the violation that hold whatever was lost.
 * @typedef {{ why: string | null, unknown_percent: number, gaps: number, bounds: { least_percent: number, most_percent: number } | null }} Trust */
/** The facts that a judgement needs beside it. @typedef {Pick<import("./api.js").Head, "cpus" | "recorded">} Facts */
/** The kind of a number: of waiting tasks, the violation among them, or of running ones alone. @typedef {"waiting" | "running"} Kind */

/** Whether events of a kind were recorded; unknown counts as recorded. @param {Facts} head @param {string} name */
export const isRecorded = (head, name) => head.recorded?.includes(name) ?? true;

/** Returns what stands in the place of a number that depends on a kind of event that was not recorded; empty if it was.
 * @param {Facts} head @param {...string} names any of which suffices */
export function notRecorded(head, ...names) {
  return names.some((name) => isRecorded(head, name)) ? "" : `not recorded (needs ${names.join(" or ")})`;
}

/** The CPUs without events. @param {Facts} head */
export const silentCpus = (head) => head.cpus.filter((place) => place.silent).map((place) => place.cpu);

/** Returns the reasons that a number of a kind is in doubt, the gravest first; none where it is exact.
 * @param {Facts} head @param {Trust} trust of the window @param {import("./api.js").Finding[]} findings about the trace @param {Kind} kind
 * @returns {string[]} */
export function reasons(head, trust, findings, kind) {
  const found = [];
  if (kind === "waiting" && trust.why) found.push(`not to be trusted: ${trust.why}`);
  const places = trust.gaps === 1 ? "1 place" : `${trust.gaps.toLocaleString("en")} places`;
  if (trust.gaps > 0) found.push(`events are missing in ${places}: nothing is known of ${trust.unknown_percent.toFixed(2)} % of the CPU time`);
  else found.push(...findings.filter(({ severity }) => severity === "data-loss").map(({ text }) => text));
  const silent = kind === "waiting" ? silentCpus(head) : [];
  if (silent.length) found.push(`${silent.length === 1 ? "CPU" : "CPUs"} ${ranges(silent)} without any event: tasks may have moved to and from there unseen, and the number of waiting tasks is an upper bound`);
  return found;
}

/** Returns the bounds of a violation in words, empty where there are none: it is exact, or nothing bounds it. @param {Trust} trust */
export const boundsOf = ({ bounds }) => (bounds ? `${percent(bounds.least_percent / 100)} to ${percent(bounds.most_percent / 100)}` : "");
