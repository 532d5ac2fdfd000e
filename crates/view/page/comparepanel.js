// What `schedviz compare` measures of two traces, beside each other: the selection, or the whole.

import * as api from "./api.js";
import { own } from "./details.js";
import { el } from "./dom.js";
import { signed } from "./pairs.js";
import { sortedTable } from "./sorted.js";
import { onChange, state } from "./state.js";
import { duration } from "./time.js";

/** @typedef {import("./api.js").RunMeasures} RunMeasures */

/** The latest answers, with all that they depend on. @type {{ key: string, answers: RunMeasures[], fault: string }} */
let found = { key: "", answers: [], fault: "" };
let isBusy = false;

const keyOf = () => JSON.stringify([state.selection, state.filter.trim(), state.aligned]);

/** Requests the numbers as the state has them; there is one request at a time. */
async function request() {
  if (isBusy) return;
  isBusy = true;
  for (let key = keyOf(); state.tab === "findings" && key !== found.key; key = keyOf()) {
    try {
      const answers = [];
      for (const trace of state.traces) answers.push(await api.measures(trace.index, state.selection ? own(trace, state.selection) : [0, trace.head.span], state.filter.trim()));
      found = { key, answers, fault: "" };
    } catch (error) {
      found = { key, answers: [], fault: error instanceof Error ? error.message : String(error) };
    }
    dispatchEvent(new Event("findings"));
  }
  isBusy = false;
}

/** Follows the state from now on. */
export function followCompare() {
  onChange(() => {
    const isAsked = state.tab === "findings" && state.traces.length === 2 && !state.static && state.traces.every((trace) => trace.head.full);
    if (isAsked && found.key !== keyOf()) request();
  });
}

/** A number with as many digits as tell. @param {number} value */
export function plain(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 4 : 6);
}

/** The numbers of two runs by their metrics. @param {[RunMeasures, RunMeasures]} answers
 * @returns {{ name: string, better: string, values: (number | null)[], difference: number | null }[]} */
export function joinedMeasures([first, second]) {
  const others = new Map(second.measures.map((measure) => [measure.key, measure.value]));
  const rows = first.measures.map(({ key, name, better, value }) => {
    const other = others.get(key) ?? null;
    return { name, better, values: [value, other], difference: value === null || other === null ? null : other - value };
  });
  return rows.filter(({ values }) => values.some((value) => value !== null));
}

/** @returns {Node[]} */
export function comparePanel() {
  if (state.traces.length !== 2 || state.static) return [];
  const [first, second] = state.traces.map((trace) => trace.head.name);
  const part = state.selection ? ` In the selection (${duration(state.selection[1] - state.selection[0])}).` : "";
  const of = state.filter.trim() ? ` Violation and latency are those of the tasks that pass the filter “${state.filter.trim()}”.` : "";
  /** @type {Node[]} */
  const nodes = [el("h2", {}, `What compare measures: ${second} less ${first}`), el("p", { class: "part" }, `One run a side shows no noise: schedviz compare judges changes from three runs a side on.${part}${of}`)];
  if (found.key === keyOf() && found.fault) return [...nodes, el("p", { class: "fault", role: "alert" }, found.fault)];
  const [a, b] = found.key === keyOf() ? found.answers : [];
  if (!a || !b) return [...nodes, el("p", {}, "The traces are read for the numbers …")];
  [a, b].forEach(({ no_violation: why }, n) => {
    if (why) nodes.push(el("p", { class: "fault" }, `⚠ ${state.traces[n].head.name}: the violation is unknown: ${why}.`));
  });
  const rows = joinedMeasures([a, b]);
  /** @typedef {(typeof rows)[0]} Row */
  const cell = (/** @type {number | null} */ value) => (value === null ? "–" : plain(value));
  const verdict = (/** @type {Row} */ { better, difference }) => (difference === null || difference === 0 || better === "neither" ? "" : (difference < 0) === (better === "less") ? "better" : "worse");
  const changed = (/** @type {Row} */ row) => (row.difference === null ? "–" : el("span", { class: verdict(row), title: verdict(row) }, signed(row.difference, plain)));
  const table = sortedTable({
    name: "compare", label: "What compare measures of both traces", rows, changed: () => dispatchEvent(new Event("findings")), choose: () => {},
    columns: /** @type {import("./sorted.js").Column<Row>[]} */ ([
      { key: "name", head: "metric", kind: "words", value: (row) => row.name },
      ...[first, second].map((name, n) => ({ key: `of ${n}`, head: name, kind: "number", value: (/** @type {Row} */ row) => row.values[n], show: (/** @type {Row} */ row) => cell(row.values[n]) })),
      { key: "difference", head: "difference", kind: "number", value: (row) => row.difference, show: changed },
    ]),
  });
  table.classList.add("compared");
  return [...nodes, table];
}
