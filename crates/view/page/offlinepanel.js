// The instant of a page without a server: what the columns of tiles show of it.

import { latest } from "./details.js";
import { el, link, swatch } from "./dom.js";
import { WORDS } from "./offline.js";
import { css, taskColor, theme } from "./palette.js";
import { change, named, state } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** All CPUs in the columns of the cursor's instant. @returns {Node[]} */
export function offlineInstant() {
  const { place } = state;
  if (!place) return [el("p", {}, "Click a lane, or press Enter: all CPUs at that instant are shown here.")];
  const trace = state.traces[place.trace];
  const title = el("h2", {}, `CPU ${place.cpu} at ${seconds(place.time, 1)} s`);
  const found = latest("place");
  /** @type {import("./offline.js").AtCpu[] | null} */
  const cpus = found?.question === JSON.stringify(place) ? found.answer : null;
  if (!cpus) return [title, el("p", {}, "…")];
  const column = Math.max(1, ...cpus.map((cpu) => cpu.column));
  const table = el("table", {}, el("tr", {}, el("th", { class: "number" }, "CPU"), el("th", {}, "running"), el("th", { class: "number" }, "waiting")));
  for (const { cpu, shares, least, mean, most } of cpus) {
    const silent = trace.head.cpus.find((other) => other.cpu === cpu)?.silent;
    const what = silent ? "no events: unknown" : shares.map(([id, share]) => {
      const name = WORDS.get(id) ?? (trace.head.tasks[id] ? named(trace.head.tasks[id]) : "a task");
      return shares.length > 1 ? `${name} ${percent(share)}` : name;
    }).join(", ");
    const [first] = shares[0] ?? [];
    const task = first === undefined ? null : trace.head.tasks[first];
    const color = task ? swatch(css(taskColor(task, state.color, state.filter, theme().other))) : null;
    const waiting = silent ? "" : least === most ? (most ? String(most) : "") : `${least} to ${most}, mean ${mean.toFixed(1)}`;
    const row = el("tr", cpu === place.cpu ? { class: "current" } : {}, el("td", { class: "number" }, String(cpu)), el("td", { class: "clip", title: what }, color, what), el("td", { class: "number" }, waiting));
    table.append(link(row, () => change({ place: { ...place, cpu }, ...(task ? { highlight: { trace: trace.index, pid: task.pid } } : {}) })));
  }
  return [title, el("p", {}, `What ran and waited in the column of ${duration(column)} around it. The exact instant needs the program.`), table];
}
