// The findings about a trace: the main ones, as `schedviz findings` ranks them; and losses, contradictions and other doubts, as `schedviz info`
// reports them, with their places on the time axis.

import * as api from "./api.js";
import { el } from "./dom.js";
import { add, begin, go, isCurrent } from "./entries.js";
import { xOf } from "./lanes.js";
import { change, named, refresh, state, taskOf } from "./state.js";
import { openStory } from "./story.js";
import { seconds } from "./time.js";
import { reasons } from "./trust.js";

/** @typedef {import("./state.js").Trace} Trace */

/** The titles of the severities, the gravest first. @type {[api.Finding["severity"], string][]} */
const TITLES = [["data-loss", "Missing events: numbers are in doubt"], ["incomplete", "Not recorded: what depends on it is approximate or unknown"], ["repaired", "Contradictions, resolved by rules"], ["note", "Worth knowing"]];
/** The number of places of a finding that are listed. */
const PLACES = 20;

/** The findings of each trace with the judgement on its numbers, once they are known.
 * @type {WeakMap<Trace, { findings: api.Finding[], trust: import("./trust.js").Trust }>} */
const known = new WeakMap();

/** The names of the lists that have more of a kind. @type {Record<string, string>} */
const LISTS = { episodes: "all episodes of violation", waits: "the longest waits", herds: "all herds" };
/** The places of main findings are numbered behind those of doubts. */
const MAIN = 1e6;

/** The main findings of each trace, or the reason for which there are none, once they were asked for.
 * @type {WeakMap<Trace, { answer: Awaited<ReturnType<typeof api.mainFindings>> | null, fault: string }>} */
const ranked = new WeakMap();

/** Requests the main findings of a trace: the trace is read for them. @param {Trace} trace */
async function requestMain(trace) {
  ranked.set(trace, { answer: null, fault: "" });
  try {
    ranked.set(trace, { answer: await api.mainFindings(trace.index), fault: "" });
  } catch (error) {
    ranked.set(trace, { answer: null, fault: error instanceof Error ? error.message : String(error) });
  }
  globalThis.dispatchEvent(new Event("findings"));
}

/** The main findings of a trace, each with links to the place and the list that it speaks of. @param {Trace} trace @returns {Node[]} */
function main(trace) {
  if (!ranked.has(trace)) requestMain(trace);
  const { answer, fault } = ranked.get(trace) ?? { answer: null, fault: "" };
  if (fault) return [el("p", { class: "fault", role: "alert" }, fault)];
  if (!answer) return [el("p", {}, "The trace is read for the findings …")];
  if (answer.nothing) return [el("p", { class: "empty" }, answer.nothing)];
  /** @type {Node[]} */
  const nodes = [el("h3", {}, "The costliest first"), el("p", {}, `Cost: ${answer.unit}; costs overlap`)];
  for (const [n, finding] of answer.findings.entries()) {
    nodes.push(el("p", { class: "finding", title: finding.command }, finding.sentence + (finding.price ? ` [${finding.price}]` : "")));
    const links = el("div", { class: "choice" });
    if (finding.place) {
      const { from, cpu } = finding.place;
      const entry = add({ trace, ...finding.place, place: MAIN + n });
      const button = el("button", { type: "button", "aria-pressed": String(isCurrent(entry)) }, `${seconds(from - trace.zero, 1000)} s, CPU ${cpu}`);
      button.addEventListener("click", () => go(entry));
      links.append(button, ...moreOf(entry, finding.place.more));
    }
    const { list } = finding;
    if (list) {
      const button = el("button", { type: "button" }, LISTS[list] ?? list);
      button.addEventListener("click", () => change({ tab: "lists", list, story: null }));
      links.append(button);
    }
    if (links.childElementCount) nodes.push(links);
  }
  return nodes;
}

/** The link from the place of a finding to what the program knows of it: why the task waited there, or the steps of the episode.
 * @param {import("./entries.js").Entry} entry @param {"wait" | "steps" | null} more @returns {Node[]} */
function moreOf(entry, more) {
  const { trace, from, to, pid } = entry;
  if (!more || state.static) return [];
  const words = more === "steps" ? "step by step" : `why ${named(taskOf(trace, pid ?? 0) ?? { pid: pid ?? 0, comm: "" })} waited`;
  const button = el("button", { type: "button" }, words);
  button.addEventListener("click", () => {
    go(entry);
    if (more === "steps") {
      change({ tab: "lists", list: "episodes" });
      openStory(entry);
    } else if (pid !== null) change({ wait: { trace: trace.index, pid, from, to }, tab: "task" });
  });
  return [button];
}

/** Requests the findings of a trace that was read. @param {Trace} trace */
export async function requestFindings(trace) {
  try {
    known.set(trace, await api.findings(trace.index));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const unknown = `The findings about this trace are not known: ${text}`;
    known.set(trace, { findings: [{ severity: "data-loss", text: unknown, places: [] }], trust: { why: null, unknown_percent: 0, gaps: 0, bounds: null } });
  }
  globalThis.dispatchEvent(new Event("findings"));
  refresh();
}

/** @param {Trace} trace @param {api.Finding["severity"]} severity */
const ofSeverity = (trace, severity) => (known.get(trace)?.findings ?? []).filter((finding) => finding.severity === severity);

/** Returns the reasons that a number of a trace is in doubt, the gravest first; none where it is exact, or not known yet. @param {Trace} trace
 * @param {import("./trust.js").Kind} [kind] @param {import("./trust.js").Trust} [trust] that of the number's own window */
export function doubtsOf(trace, kind = "waiting", trust = known.get(trace)?.trust) {
  const found = known.get(trace);
  if (!found || !trust) return [];
  // A kind of event that is missing in the trace is missing in each window, also where too little happens to show it.
  return reasons(trace.head, { ...trust, why: found.trust.why ?? trust.why }, found.findings, kind);
}

/** Whether numbers of waiting tasks, and with them the violation, are in doubt. @param {Trace} trace */
export const isDoubtful = (trace) => doubtsOf(trace).length > 0;

/** Returns the mark beside a title, which opens the findings; it is hidden as long as nothing is in doubt. @param {Trace} trace */
export function markOf(trace) {
  const mark = el("button", { type: "button", class: "doubt", "aria-haspopup": "true" });
  mark.hidden = true;
  mark.addEventListener("click", () => change({ tab: "findings" }));
  addEventListener("findings", () => {
    const [doubts, found] = [doubtsOf(trace), TITLES.slice(0, -1).flatMap(([severity]) => ofSeverity(trace, severity))];
    const isGrave = doubts.length > 0;
    mark.hidden = !isGrave && found.length === 0;
    mark.classList.toggle("grave", isGrave);
    const kinds = found.length === 1 ? "1 finding" : `${found.length} findings`;
    mark.textContent = [isGrave ? "⚠ in doubt" : "", found.length ? kinds : ""].filter(Boolean).join(": ");
    mark.title = [...new Set([...doubts, ...found.map(({ text }) => text)])].join("\n");
  });
  return mark;
}

/** Returns what stands behind a number that is in doubt: a mark with the reasons, which opens the findings. @param {Trace} trace
 * @param {import("./trust.js").Kind} [kind] @param {import("./trust.js").Trust} [trust] that of the number's own window
 * @returns {(Node | string)[]} */
export function doubt(trace, kind, trust) {
  const why = doubtsOf(trace, kind, trust);
  if (why.length === 0) return [];
  const mark = el("button", { type: "button", class: "doubt grave", title: `${why.join("\n")}\nClick: the findings` }, "in doubt");
  mark.addEventListener("click", () => change({ tab: "findings" }));
  return [" ", mark];
}

/** The panel of the findings. @returns {Node[]} */
export function findingsPanel() {
  /** @type {Node[]} */
  const nodes = [el("h2", {}, "Findings")];
  begin("findings");
  for (const trace of state.traces) {
    if (state.traces.length > 1) nodes.push(el("h2", {}, trace.head.name));
    const all = known.get(trace)?.findings;
    if (!all) nodes.push(el("p", {}, trace.head.full ? "…" : "The trace is still being read."));
    else nodes.push(...main(trace));
    if (all?.length === 0) nodes.push(el("p", { class: "empty" }, "Nothing was lost, and no event contradicts another."));
    for (const why of doubtsOf(trace)) nodes.push(el("p", { class: "fault" }, `Numbers of waiting tasks, and the violation: ${why}.`));
    for (const [severity, title] of TITLES) {
      const found = ofSeverity(trace, severity);
      if (found.length) nodes.push(el("h3", severity === "data-loss" || severity === "incomplete" ? { class: "grave" } : {}, title));
      for (const finding of found) nodes.push(el("p", { class: "finding" }, finding.text), ...placesOf(trace, finding));
    }
  }
  return nodes;
}

/** The places of a finding, each of which a click shows. @param {Trace} trace @param {api.Finding} finding @returns {Node[]} */
function placesOf(trace, { places }) {
  if (places.length === 0) return [];
  const list = el("div", { class: "choice" });
  for (const [n, [at, cpu]] of places.slice(0, PLACES).entries()) {
    const entry = add({ trace, from: at, to: at, cpu, pid: null, place: n });
    const button = el("button", { type: "button", "aria-pressed": String(isCurrent(entry)) }, `${seconds(at - trace.zero, 1000)} s, CPU ${cpu}`);
    button.addEventListener("click", () => go(entry));
    list.append(button);
  }
  return places.length > PLACES ? [list, el("p", {}, `and more: the marks above the lanes show the first ${places.length}`)] : [list];
}

/** Returns the places of losses and contradictions whose marks are at a place of the time axis, the gravest first. @param {Trace} trace
 * @param {number} x in device pixels @param {import("./lanes.js").Scale} scale @returns {{ text: string, at: number, cpu: number }[]} */
export function placesAt(trace, x, scale) {
  return ["data-loss", "incomplete", "repaired"].flatMap((severity) => ofSeverity(trace, /** @type {any} */ (severity)).flatMap(({ text, places }) => {
    const near = places.filter(([at]) => Math.abs(xOf(scale, at) - x) <= 5 * scale.scale);
    return near.map(([at, cpu]) => ({ text, at, cpu }));
  }));
}

/** Marks the places of losses and contradictions on the time axis. @param {CanvasRenderingContext2D} context @param {Trace} trace
 * @param {import("./lanes.js").Scale} scale @param {number} bottom of the axis @param {{ waiting: string, faint: string }} theme */
export function drawPlaces(context, trace, scale, bottom, theme) {
  const s = scale.scale;
  for (const [severity, color] of /** @type {[api.Finding["severity"], string][]} */ ([["repaired", theme.faint], ["incomplete", theme.waiting], ["data-loss", theme.waiting]])) {
    context.fillStyle = color;
    for (const { places } of ofSeverity(trace, severity)) {
      let last = -Infinity;
      for (const [at] of places) {
        const x = xOf(scale, at);
        if (x < scale.left || x > scale.right || x - last < 2 * s) continue;
        last = x;
        context.beginPath();
        context.moveTo(x - 3.5 * s, bottom - 6 * s);
        context.lineTo(x + 3.5 * s, bottom - 6 * s);
        context.lineTo(x, bottom);
        context.fill();
      }
    }
  }
}
