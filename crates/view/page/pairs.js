// The numbers of two traces in two columns with their difference.

import { el, swatch } from "./dom.js";
import { doubt } from "./findings.js";
import { causeColor, css } from "./palette.js";
import { duration, percent } from "./time.js";
import { boundsOf, notRecorded } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */
/** A number of each trace, null where it is unknown; its kind of number, and how it and its difference are shown. `swatch` is a colour in front of the name.
 * @typedef {{ name: string, about?: string, values: (number | null)[], show: (value: number) => string, by?: (value: number) => string, kind?: import("./trust.js").Kind, swatch?: string }} PairRow */

/** A number with its sign. @param {number} value @param {(value: number) => string} show */
export function signed(value, show) {
  const text = show(Math.abs(value));
  // What is shown as nothing has no sign.
  if (text === show(0)) return show(0);
  return `${value < 0 ? "−" : "+"}${text}`;
}

/** A difference of shares, in percentage points. @param {number} share */
const points = (share) => `${(100 * share).toFixed(1)} points`;

/** A table of numbers of two traces. @param {[Trace, Trace]} traces @param {PairRow[]} rows @param {(import("./trust.js").Trust | undefined)[]} trusts
 * @param {string} label */
export function pairTable(traces, rows, trusts, label) {
  const heads = [...traces.map((trace) => trace.head.name), "difference"];
  const head = el("tr", {}, el("td"), ...heads.map((name) => el("th", { scope: "col", class: "number whole", title: name }, name)));
  const lines = rows.map(({ name, about, values, show, by = show, kind, swatch: color }) => {
    const [a, b] = values;
    const cells = values.map((value, n) => el("td", { class: "number" }, value === null ? "–" : show(value), ...(kind && value !== null ? doubt(traces[n], kind, trusts[n]) : [])));
    const difference = a === null || b === null ? "–" : signed(b - a, by);
    return el("tr", {}, el("th", { scope: "row", ...(about ? { title: about } : {}) }, color ? swatch(color) : null, name), ...cells, el("td", { class: "number difference" }, difference));
  });
  return el("table", { class: "pair", "aria-label": label }, el("thead", {}, head), el("tbody", {}, ...lines));
}

/** The numbers of a window of two traces. @param {[Trace, Trace]} traces @param {any[]} answers @param {[number, number][]} windows in the traces' own
 * time @param {string} waiters the waiting tasks that count in the violation @returns {Node[]} */
export function windowPair(traces, answers, windows, waiters) {
  const lengths = windows.map(([from, to]) => Math.max(1, to - from));
  const all = answers.map((answer) => Math.max(1, answer.busy + answer.idle + answer.unknown + answer.offline));
  const trusts = answers.map((answer) => answer.trust);
  /** @param {(answer: any, n: number) => number} of */
  const values = (of) => answers.map(of);
  const mean = (/** @type {number} */ value) => value.toFixed(2);
  /** @type {PairRow[]} */
  const rows = [
    { name: "length", values: lengths, show: duration },
    { name: "in violation", about: waiters, kind: "waiting", values: values((answer, n) => answer.violation / lengths[n]), show: percent, by: points },
    { name: "… time", about: waiters, values: values((answer) => answer.violation), show: duration },
    { name: "CPU time busy", kind: "running", values: values((answer, n) => answer.busy / all[n]), show: percent, by: points },
    { name: "idle", values: values((answer, n) => answer.idle / all[n]), show: percent, by: points },
  ];
  for (const part of ["unknown", "offline"]) if (answers.some((answer) => answer[part])) rows.push({ name: part, values: values((answer, n) => answer[part] / all[n]), show: percent, by: points });
  rows.push(
    { name: "running, mean", about: "mean number of running tasks", values: values((answer, n) => answer.running / lengths[n]), show: mean },
    { name: "waiting, mean", about: "mean number of waiting tasks", kind: "waiting", values: values((answer, n) => answer.waiting / lengths[n]), show: mean },
  );
  const lacks = traces.map((trace) => notRecorded(trace.head, "sched_migrate_task"));
  const moved = (/** @type {any} */ answer, /** @type {number} */ n, /** @type {string} */ cause) => (lacks[n] ? null : answer.migrations[traces[n].head.causes.indexOf(cause)] ?? 0);
  const causes = traces[0].head.causes.filter((cause) => answers.some((answer, n) => (moved(answer, n, cause) ?? 0) > 0));
  const count = (/** @type {number} */ value) => value.toLocaleString("en");
  const sum = answers.map((answer, n) => (lacks[n] ? null : answer.migrations.reduce((/** @type {number} */ all, /** @type {number} */ one) => all + one, 0)));
  rows.push({ name: "migrations", values: sum, show: count });
  for (const cause of causes) rows.push({ name: cause, swatch: css(causeColor(cause)), values: answers.map((answer, n) => moved(answer, n, cause)), show: count });
  /** @type {Node[]} */
  const nodes = [pairTable(traces, rows, trusts, "Numbers of both traces")];
  trusts.forEach((trust, n) => {
    const bounds = trust ? boundsOf(trust) : "";
    if (bounds) nodes.push(el("p", {}, `Whatever was lost, the violation of ${traces[n].head.name} lies between ${bounds.replace(" to ", " and ")}.`));
    if (lacks[n]) nodes.push(el("p", { class: "absent" }, `Migrations of ${traces[n].head.name}: ${lacks[n]}.`));
  });
  return nodes;
}

/** The name under which rows of two traces are the same: PIDs differ from run to run. @param {string} by @param {string} name */
const sameName = (by, name) => (by === "process" ? name.replace(/ \(\d+\)$/, "") : by === "task" ? name.replace(/ \d+$/, "") : name);

/** The rows of the tables of two traces that have the same name, with a number of each; null where it is unknown or belongs to several rows that
 * cannot be summed. @param {string} by @param {import("./api.js").TableAnswer[]} answers @param {string} key @param {boolean} isSum
 * @returns {{ name: string, values: (number | null)[], difference: number | null }[]} */
export function joinedRows(by, answers, key, isSum) {
  /** @type {Map<string, (number | null | undefined)[]>} */
  const rows = new Map();
  answers.forEach((answer, n) => {
    for (const row of answer.rows) {
      const name = sameName(by, row.name);
      const values = rows.get(name) ?? [undefined, undefined];
      const [known, more] = [values[n], row[key]];
      values[n] = known === undefined ? more : isSum && known !== null && more !== null ? known + more : null;
      rows.set(name, values);
    }
  });
  const all = [...rows].map(([name, found]) => {
    // A row that a trace does not have is nothing there, if the number is a sum that the trace has.
    const values = found.map((value, n) => (value !== undefined ? value : isSum && answers[n].all[key] !== null ? 0 : null));
    return { name, values, difference: values[0] === null || values[1] === null ? null : values[1] - values[0] };
  });
  return all.sort((a, b) => Math.abs(b.difference ?? 0) - Math.abs(a.difference ?? 0));
}
