// The numbers of the figures of `--plot`, with their legend: as `schedviz plot` gives them, of the whole trace or of the selection.

import * as api from "./api.js";
import { own } from "./details.js";
import { el, swatch } from "./dom.js";
import { PALETTE, css, theme } from "./palette.js";
import { change, state } from "./state.js";
import { duration } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */

/** The number of values of an item. */
const VALUES = 10;
/** The numbers of a selection, by trace and figure: the request, and its answer. @type {Map<string, { key: string, answer: any }>} */
const selected = new Map();

/** The numbers of a figure: those of the selection where there is one. @param {Trace} trace @param {number} plot @param {any} head
 * @param {() => void} arrived */
function numbers(trace, plot, head, arrived) {
  if (!state.selection || state.static) return { report: head.report, of: "Whole trace" };
  const [from, to] = own(trace, state.selection);
  const [place, key] = [`${trace.index}/${plot}`, `${from},${to}`];
  const known = selected.get(place);
  if (known?.key === key) return { report: known.answer, of: "Selection" };
  selected.set(place, { key, answer: null });
  api.plotNumbers(trace.index, plot, from, to).then((answer) => {
    if (selected.get(place)?.key !== key) return;
    selected.set(place, { key, answer });
    arrived();
  }, () => selected.delete(place));
  return { report: null, of: "Selection" };
}

/** @param {(string | Node)[]} cells @param {"td" | "th"} [kind] */
const line = (cells, kind = "td") => el("tr", {}, ...cells.map((cell) => el(kind, { class: "number" }, cell)));

/** The patch of an item's colour, or of a value's. @param {Trace} trace @param {number} plot @param {string} item @param {string | null} value */
function patch(trace, plot, item, value) {
  for (const [kind, look] of trace.plots.looks.get(plot) ?? []) {
    if (look.item === item && look.value === value) return [swatch(trace.plots.color(plot, kind, theme()))];
  }
  return [];
}

const length = (/** @type {number | null} */ ns) => (ns === null || ns === undefined ? "none" : duration(ns));

/** @param {Trace} trace @param {number} plot @param {any} report @returns {Node[]} */
function intervals(trace, plot, report) {
  /** @type {Node[]} */
  const nodes = [];
  for (const of of report.intervals) {
    nodes.push(el("h3", {}, ...patch(trace, plot, of.name, null), of.name));
    const table = el("table", {}, line(["number", "total", "share"], "th"));
    table.append(line([of.count.toLocaleString("en"), duration(of.total_ns), `${of.share_percent.toFixed(2)} %`]));
    table.append(line(["median", "99 %", "longest"], "th"), line([length(of.median_ns), length(of.p99_ns), length(of.max_ns)]));
    nodes.push(table);
    const values = el("table");
    for (const value of (of.by ?? []).slice(0, VALUES)) {
      values.append(el("tr", {}, el("td", { class: "clip", title: value.value }, ...patch(trace, plot, of.name, value.value), value.value), el("td", { class: "number" }, value.count.toLocaleString("en")), el("td", { class: "number" }, duration(value.total_ns))));
    }
    nodes.push(values);
    if ((of.by ?? []).length > VALUES) nodes.push(el("p", {}, `and ${of.by.length - VALUES} more values`));
    const odd = [[of.unended, "without an end"], [of.unbegun, "without a beginning"], [of.lost, "with an unknown end: events were lost"], [of.beyond_limit, "beyond the limit of open intervals"], [of.undrawn, "without room"]];
    const parts = odd.filter(([count]) => count > 0).map(([count, words]) => `${count.toLocaleString("en")} ${words}`);
    if (parts.length) nodes.push(el("p", {}, parts.join(", ")));
  }
  if (report.intervals.length) nodes.push(el("p", {}, `share: of the ${report.share_of}`));
  return nodes;
}

/** @param {Trace} trace @param {number} plot @param {any} report @returns {Node[]} */
function pointsAndSeries(trace, plot, report) {
  /** @type {Node[]} */
  const nodes = [];
  for (const of of report.points) {
    nodes.push(el("h3", {}, ...patch(trace, plot, of.name, null), of.name));
    const table = el("table", {}, line(["number", "share"], "th"), line([of.count.toLocaleString("en"), `${of.percent.toFixed(2)} %`]));
    for (const value of (of.by ?? []).slice(0, VALUES)) table.append(line([value.count.toLocaleString("en"), el("span", {}, ...patch(trace, plot, of.name, value.value), value.value)]));
    nodes.push(table);
  }
  for (const of of report.series) {
    nodes.push(el("h3", {}, of.name + (of.unit ? ` (${of.unit})` : "")));
    const table = el("table", {}, line(["samples", "min", "mean", "max"], "th"));
    const value = (/** @type {number | null} */ number) => (number === null ? "none" : String(Number(number.toPrecision(6))));
    of.lines.forEach((/** @type {any} */ one, /** @type {number} */ n) => {
      if (one.by) table.append(el("tr", {}, el("td", { colspan: "4" }, swatch(css(PALETTE[n % PALETTE.length])), one.by)));
      table.append(line([one.count.toLocaleString("en"), value(one.min), value(one.mean), value(one.max)]));
    });
    nodes.push(table);
    if (of.others) nodes.push(el("p", {}, `${of.others.toLocaleString("en")} samples of other values, without a line`));
  }
  return nodes;
}

/** Returns the panel of the figures. @param {() => void} arrived called when numbers have arrived @returns {Node[]} */
export function plotPanel(arrived) {
  /** @type {Node[]} */
  const nodes = [];
  state.plots.forEach((name, plot) => {
    const box = el("input", { type: "checkbox", id: `plot-${plot}` });
    box.checked = !state.hidden.has(plot);
    box.addEventListener("change", () => {
      const hidden = new Set(state.hidden);
      if (!hidden.delete(plot)) hidden.add(plot);
      change({ hidden });
    });
    const title = state.traces.map((trace) => trace.plots.heads[plot]?.report.title).find(Boolean) ?? name;
    nodes.push(el("h2", { class: "switch" }, box, el("label", { for: `plot-${plot}` }, title)));
    state.traces.forEach((trace) => {
      const head = trace.plots.heads[plot];
      if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
      if (!head) return void nodes.push(el("p", trace.plots.faults[plot] ? { class: "fault" } : {}, trace.plots.faults[plot] || "The trace is read for this figure …"));
      if (head.about) nodes.push(el("p", {}, head.about));
      const { report, of } = numbers(trace, plot, head, arrived);
      nodes.push(el("p", {}, of));
      if (!report) return void nodes.push(el("p", {}, "…"));
      nodes.push(...intervals(trace, plot, report), ...pointsAndSeries(trace, plot, report));
      for (const note of report.notes) nodes.push(el("p", {}, `left out: ${note}`));
      const { room } = head;
      if (room.bars_left_out) nodes.push(el("p", {}, `${room.bars_left_out.toLocaleString("en")} bars shorter than ${duration(room.shortest_ns)} are counted and not drawn`));
      if (head.more_lanes) nodes.push(el("p", {}, `${head.more_lanes.toLocaleString("en")} more rows are not drawn`));
    });
  });
  return nodes;
}
