// An episode of violation step by step, as `schedviz why` prints it.

import { answerTo } from "./details.js";
import { el } from "./dom.js";
import { add, begin, isCurrent, setCurrent } from "./entries.js";
import { sortedTable, unitFor } from "./sorted.js";
import { change, show, state } from "./state.js";
import { duration, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {{ at: number, after: number, cpu: number, pid: number | null, text: string }} Step */

/** The episode in the list that it was chosen from. @type {import("./entries.js").Entry | null} */
let chosen = null;

/** Opens the story of an episode of the list. @param {import("./entries.js").Entry} entry */
export function openStory(entry) {
  const { trace, from, to } = entry;
  chosen = entry;
  change({ story: { trace: trace.index, from: from - trace.zero, to: to - trace.zero } });
}

/** Returns to the list. */
export function leaveStory() {
  setCurrent(chosen, "list episodes");
  change({ story: null });
}

/** The number of steps that are shown. */
const STEPS = 500;

/** Zooms to a step, so that its neighbours stay in view. @param {Trace} trace @param {Step[]} steps @param {number} n @param {number} length
 * @param {import("./entries.js").Entry} entry */
export function goToStep(trace, steps, n, length, entry) {
  const { at, cpu, pid } = steps[n];
  const apart = [steps[n - 1], steps[n + 1]].filter(Boolean).map((step) => Math.abs(step.at - at)).filter((ns) => ns > 0);
  const span = Math.min(Math.max(4 * Math.min(...apart, length), 4000), Math.max(1.2 * length, 4000));
  setCurrent(entry);
  show(at - trace.zero - span / 2, span);
  change({
    // The episode is longer than the window: its selection would tint all of it.
    selection: null,
    range: state.range,
    place: { trace: trace.index, cpu, time: at - trace.zero },
    highlight: pid === null ? state.highlight : { trace: trace.index, pid },
    story: state.story,
  });
}

/** The panel of the episode that was chosen. @returns {Node[]} */
export function story() {
  const { story } = state;
  if (!story) return [];
  const trace = state.traces[story.trace];
  const back = el("button", { type: "button", id: "story-back" }, "← All episodes");
  back.addEventListener("click", leaveStory);
  const whole = el("button", { type: "button" }, "Whole episode");
  whole.addEventListener("click", () => show(story.from - (story.to - story.from) * 0.1, (story.to - story.from) * 1.2));
  const title = el("h2", {}, `Violation for ${duration(story.to - story.from)}`);
  const head = [el("div", { class: "choice" }, back, whole), title, el("p", {}, `from ${seconds(story.from, 1)} s`)];
  begin(`story ${story.trace},${story.from},${story.to}`);
  const answer = answerTo("story", story);
  if (!answer) return [...head, el("p", {}, "…")];
  const steps = /** @type {Step[]} */ (answer.steps);
  const entries = steps.map(({ at, cpu, pid }, n) => {
    /** @type {import("./entries.js").Entry} */
    const entry = { trace, from: at, to: at, cpu, pid, place: n };
    entry.go = () => goToStep(trace, steps, n, answer.to - answer.from, entry);
    return add(entry);
  });
  const [unit, ns] = unitFor(answer.to - answer.from);
  const list = el("ul", {});
  for (const words of answer.before) list.append(el("li", {}, words));
  const rows = steps.slice(0, STEPS).map((step, n) => ({ step, n }));
  const table = sortedTable({
    name: "story", label: "Steps of the episode", rows, changed: () => change({ story }), isCurrent: ({ n }) => isCurrent(entries[n]),
    choose: ({ n }) => entries[n].go?.(),
    columns: [
      { key: "after", head: `after (${unit})`, kind: "number", value: ({ n }) => n, show: ({ step }) => (step.after / ns).toFixed(ns === 1 ? 0 : 3) },
      { key: "step", head: "step", kind: "words", value: ({ step }) => step.text },
    ],
  });
  table.classList.add("story");
  const more = steps.length - rows.length + answer.unlisted;
  const command = el("code", {}, answer.command);
  return [...head, el("h3", {}, "After the opening event"), list, el("h3", {}, `Steps: ${(steps.length + answer.unlisted).toLocaleString("en")}`), table,
    ...(more > 0 ? [el("p", {}, `and ${more.toLocaleString("en")} more steps`)] : []), el("h3", {}, "The same in a terminal"), el("p", {}, command)];
}
