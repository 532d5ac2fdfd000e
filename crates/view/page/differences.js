// Two traces compared over time: rows for the difference of running, waiting and violation, and the way in which the traces are aligned.

import * as api from "./api.js";
import { el } from "./dom.js";
import { isDoubtful } from "./findings.js";
import { machineAt, profileOf } from "./machine.js";
import { signed } from "./pairs.js";
import { rgbOf } from "./palette.js";
import { Raster } from "./raster.js";
import { change, isTogether, state } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./pane.js").Pane} Pane */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

/** The rows: a number of the machine, its name, its colour and how it is shown.
 * @type {{ key: "running" | "waiting" | "violation", name: string, color: "running" | "waiting" | "violation", show: (value: number) => string, least: number }[]} */
const ROWS = [
  { key: "running", name: "running", color: "running", show: (value) => value.toFixed(2), least: 1 },
  { key: "waiting", name: "waiting", color: "waiting", show: (value) => value.toFixed(2), least: 1 },
  { key: "violation", name: "violation", color: "violation", show: (value) => `${(100 * value).toFixed(1)} points`, least: 0.05 },
];
/** The heights of a row and of the gap below it, in CSS pixels. */
const [ROW, GAP] = [26, 5];

/** The differences of two profiles, pixel by pixel: the second less the first, NaN where one of them is not known.
 * @param {Float32Array[]} values of the two traces @param {Float32Array[]} known what is NaN where nothing is known */
export function differences([a, b], [first, second]) {
  return a.map((value, n) => (Number.isNaN(first[n]) || Number.isNaN(second[n]) ? NaN : b[n] - value));
}

/** The strip below two panes. */
export class Difference {
  /** @param {[Pane, Pane]} panes @param {HTMLElement} parent */
  constructor(panes, parent) {
    this.panes = panes;
    const [first, second] = panes.map((pane) => pane.trace.head.name);
    const section = el("section", { class: "difference" });
    this.menu = el("select", { "aria-label": "Alignment of the traces", title: "The instant at which both traces have the same place" });
    const nudge = (/** @type {string} */ text, /** @type {number} */ way) => {
      const button = el("button", { type: "button", title: `Move ${second} by a hundredth of the window; with Shift by a tenth` }, text);
      button.addEventListener("click", (event) => this.move(-way * state.span * (event.shiftKey ? 0.1 : 0.01)));
      return button;
    };
    this.said = el("small", { class: "fault", role: "status" });
    /** The alignment that was chosen here last, as text, and its name. */
    this.chosen = { name: "", key: "" };
    section.append(el("h2", {}, "Difference ", el("small", {}, `${second} less ${first}`), el("label", { class: "field" }, "aligned at", this.menu), el("span", { class: "group" }, nudge("◂", -1), nudge("▸", 1)), this.said));
    this.canvas = el("canvas", { role: "img", "aria-label": `Running tasks, waiting tasks and violation of ${second} less those of ${first}` });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.raster = new Raster();
    section.append(this.canvas);
    parent.append(section);
    this.menu.addEventListener("change", () => this.choose(this.menu.value));
    this.canvas.addEventListener("pointermove", (event) => this.tip(event));
    this.canvas.addEventListener("pointerleave", () => (/** @type {HTMLElement} */ (document.getElementById("tip")).hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const cpu = this.panes[0].trace.head.cpus[0].cpu;
      change({ place: { trace: 0, cpu: state.place?.trace === 0 ? state.place.cpu : cpu, time: this.timeAt(event.offsetX) } });
    });
  }

  /** @param {number} x in CSS pixels */
  timeAt(x) {
    const { left, perPixel, scale } = this.panes[0].scale();
    return state.from + (x * scale - left) * perPixel;
  }

  /** Places the second trace along the first, which stays where it is: the window, the selection, the cursor, markers and notes are in its time.
   * @param {string} name of the way @param {number} zero of the second trace, in ns of its own time */
  align(name, zero) {
    const aligned = [state.traces[0].zero, Math.round(zero)];
    this.chosen = { name, key: String(aligned) };
    change({ aligned });
  }

  /** Moves the second trace along the first. @param {number} by in ns of aligned time, to earlier times if positive */
  move(by) {
    // Two moves within a frame: the place of the trace is that of the frame before, and the state has the first move.
    this.align("hand", (state.aligned?.[1] ?? state.traces[1].zero) + by);
  }

  /** Aligns the traces. @param {string} way */
  async choose(way) {
    const [first, second] = state.traces;
    this.said.textContent = "";
    if (way === "command") return change({ aligned: null });
    if (way === "start") return this.align("the starts of the traces", first.zero);
    const { a, b } = state.markers;
    if (way === "markers" && a !== null && b !== null) {
      this.align("A of the first, B of the second", second.zero + b - a);
      // B has met A: both are the same instant from now on.
      return change({ markers: { a, b: a } });
    }
    if (way !== "event") return;
    const words = state.events.trim();
    try {
      const found = await Promise.all([first, second].map((trace) => api.events(trace.index, { q: words, at: 0, nth: 0, behind: 1 })));
      const [a, b] = found.map(({ events }) => events?.[0]?.at);
      if (a !== undefined && b !== undefined) return this.align(`the first ${words}`, first.zero + b - a);
      this.said.textContent = `⚠ ${(a === undefined ? first : second).head.name} has no event ${words}.`;
    } catch (error) {
      this.said.textContent = `⚠ ${error instanceof Error ? error.message : String(error)}`;
    }
    // The menu shows again what holds.
    this.menu.dataset.key = "";
    this.showWays();
  }

  /** Shows the ways of alignment that there are, and the one that holds. */
  showWays() {
    const words = state.events.trim();
    /** @type {[string, string][]} */
    const ways = [];
    if (isTogether()) ways.push(["command", "the starts of the commands"]);
    ways.push(["start", "the starts of the traces"]);
    if (words && !state.static) ways.push(["event", `the first ${words}`]);
    if (state.markers.a !== null && state.markers.b !== null && state.markers.a !== state.markers.b) ways.push(["markers", "A of the first, B of the second"]);
    let now = state.aligned === null && isTogether() ? "command" : "start";
    const [first, second] = state.traces.map((trace) => trace.zero);
    if (state.aligned && first !== second) {
      const name = this.chosen.key === String(state.aligned) ? this.chosen.name : "hand";
      now = ways.find((way) => way[1] === name)?.[0] ?? "now";
      if (now === "now") ways.push(["now", name === "hand" ? this.byHand() : name]);
    }
    const key = JSON.stringify([ways, now]);
    if (this.menu.dataset.key === key) return;
    this.menu.dataset.key = key;
    this.menu.replaceChildren(...ways.map(([value, name]) => new Option(name, value)));
    this.menu.value = now;
  }

  /** The place of the second trace in words: how far it is from the one in which the traces begin. */
  byHand() {
    const [first, second] = state.traces;
    const usual = isTogether() ? (second.head.command ?? 0) - (first.head.command ?? 0) : 0;
    const later = first.zero - second.zero + usual;
    return later === 0 ? "by hand" : `by hand: ${duration(Math.abs(later))} ${later > 0 ? "later" : "earlier"}`;
  }

  /** @param {PointerEvent} event */
  tip(event) {
    const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
    const time = this.timeAt(event.offsetX);
    const { perPixel } = this.panes[0].scale();
    const [a, b] = this.panes.map(({ trace }) => machineAt(trace, time + trace.zero, perPixel));
    const lines = ROWS.map(({ key, name, show }) => {
      if (!a || !b) return `${name}: unknown`;
      const value = key === "violation" ? percent : show;
      return `${name}: ${value(a[key])}, then ${value(b[key])}: ${signed(b[key] - a[key], show)}`;
    });
    tip.textContent = [`${seconds(time, perPixel)} s`, ...lines].join("\n");
    tip.hidden = false;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4);
    tip.style.transform = `translate(${Math.max(0, x)}px, ${Math.max(0, event.clientY - tip.offsetHeight - 10)}px)`;
  }

  /** @param {Theme} theme */
  draw(theme) {
    this.showWays();
    const scales = this.panes.map((pane) => pane.scale());
    const { left, right, scale: s } = scales[0];
    const height = Math.round(ROWS.length * (ROW + GAP) * s);
    const width = this.panes[0].canvas.width;
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const { context, raster } = this;
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, width, height);
    const profiles = this.panes.map((pane, n) => profileOf(pane.trace, scales[n]));
    const known = profiles.map((profile) => profile.running);
    raster.begin(right - left, height);
    const texts = ROWS.map((row, n) => {
      const values = differences(profiles.map((profile) => profile[row.key]), known);
      const most = values.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), row.least);
      const [top, half] = [Math.round(n * (ROW + GAP) * s), (ROW * s) / 2];
      const middle = Math.round(top + half);
      const rgb = rgbOf(theme[row.color]);
      values.forEach((value, x) => {
        if (Number.isNaN(value)) return;
        const length = (Math.abs(value) / most) * half;
        raster.fill(x, x + 1, value > 0 ? middle - length : middle, value > 0 ? middle : middle + length, rgb);
      });
      return { row, most, middle };
    });
    raster.draw(context, left, 0);
    const doubtful = this.panes.some((pane) => isDoubtful(pane.trace));
    context.textBaseline = "middle";
    for (const { row, most, middle } of texts) {
      context.fillStyle = theme.rule;
      context.fillRect(left, middle, right - left, 1);
      context.textAlign = "right";
      context.font = `${10 * s}px system-ui, "DejaVu Sans", sans-serif`;
      context.fillStyle = theme[row.color];
      context.fillText(row.name + (doubtful && row.key !== "running" ? " ⚠" : ""), left - 6 * s, middle - 6 * s);
      context.fillStyle = theme.faint;
      context.fillText(`±${row.key === "violation" ? `${Math.round(100 * most)} %` : most.toFixed(most < 10 ? 1 : 0)}`, left - 6 * s, middle + 6 * s);
    }
  }
}
