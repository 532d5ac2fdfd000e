// The page of `schedviz view`: opens the traces, draws frames, and connects the controls with the state.

import * as api from "./api.js";
import { asked, follow, own, requestSearch, requestList } from "./details.js";
import { attach, attachKeys } from "./input.js";
import { keyOf, kindsOf } from "./layout.js";
import { Minimap } from "./minimap.js";
import { theme } from "./palette.js";
import { Pane } from "./pane.js";
import { build, leaveSearch } from "./panel.js";
import { Plots } from "./plots.js";
import { TABS, change, extent, onChange, read, refresh, show, showAll, state, written, zoom } from "./state.js";
import { Tiles } from "./tiles.js";
import { duration, seconds } from "./time.js";

/** The time between two requests for the progress, in ms. */
const POLL = 300;

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @type {Pane[]} */
const panes = [];
/** @type {Minimap} */
let minimap;
let colors = theme();
/** The text that this page wrote into the address last. */
let address = "";

async function start() {
  const opened = await api.traces();
  state.static = opened.static;
  state.plots = opened.plots ?? [];
  if (state.plots.length) TABS.push("plots");
  const heads = await Promise.all(opened.traces.map((_, index) => firstHead(index)));
  document.title = `${opened.traces.join(" and ")} – schedviz view`;
  state.traces = heads.map((head, index) => {
    const tiles = new Tiles(index, refresh);
    tiles.levels = head.levels;
    tiles.exists = (level, index) => index >= 0 && index * head.tile.columns * 2 ** level < head.span;
    return /** @type {import("./state.js").Trace} */ (/** @type {unknown} */ ({ index, head, tiles, zero: 0, collapsed: new Set(), scroll: 0, task: null }));
  });
  for (const trace of state.traces) trace.plots = new Plots(trace);
  align();
  for (const trace of state.traces) panes.push(new Pane(trace, byId("panes")));
  minimap = new Minimap(/** @type {HTMLCanvasElement} */ (byId("minimap")));
  build();
  follow();
  onChange(changed);
  controls();
  attachKeys(panes);
  panes.forEach(attach);
  const observer = new ResizeObserver(() => {
    panes.forEach((pane) => pane.resize());
    // Drawn before the browser shows the new size: a canvas is blank once it has another size.
    draw();
  });
  panes.forEach((pane) => observer.observe(/** @type {HTMLElement} */ (pane.canvas.parentElement)));
  read(location.hash.slice(1));
  change({ traces: state.traces });
  addEventListener("hashchange", () => location.hash.slice(1) !== address && read(location.hash.slice(1)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({ theme: state.theme }));
  for (const trace of state.traces) {
    if (trace.head.full) trace.plots.open();
    else poll(trace);
  }
  // Tests wait for this.
  document.documentElement.dataset.ready = "true";
}

/** Returns the head of a trace as soon as its reading has begun. @param {number} index */
async function firstHead(index) {
  for (;;) {
    try {
      return await api.head(index);
    } catch (error) {
      if (!(error instanceof api.Refused) || error.status !== 503) throw error;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }
}

/** Two traces are aligned at the start of their traced commands; one trace begins at 0. */
function align() {
  const together = state.traces.length > 1 && state.traces.every((trace) => trace.head.command !== null);
  for (const trace of state.traces) trace.zero = together ? trace.head.command ?? 0 : 0;
}

/** Follows the progress of the index until it is complete. @param {import("./state.js").Trace} trace */
async function poll(trace) {
  let progress = trace.head.progress;
  while (!trace.head.full) {
    await new Promise((resolve) => setTimeout(resolve, POLL));
    const before = extent();
    const whole = state.from === before.from && state.span === before.to - before.from;
    try {
      trace.head = await api.head(trace.index);
    } catch {
      continue;
    }
    trace.tiles.levels = trace.head.levels;
    if (trace.head.full || trace.head.progress - progress > 0.05) {
      progress = trace.head.progress;
      trace.tiles.renew();
    }
    align();
    if (whole) showAll();
    change({ traces: state.traces });
  }
  trace.plots.open();
}

/** @type {ReturnType<typeof setTimeout>} */
let writing;

/** @param {Set<string>} changes */
function changed(changes) {
  if (changes.has("theme")) {
    const wanted = state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.classList.toggle("dark", wanted === "dark");
    colors = theme();
  }
  if (changes.has("traces")) showLanesChoice();
  if (changes.has("color")) /** @type {HTMLSelectElement} */ (byId("color")).value = state.color;
  const filter = /** @type {HTMLInputElement} */ (byId("filter"));
  if (changes.has("filter") && filter.value !== state.filter) filter.value = state.filter;
  draw();
  if (changes.size === 0) return;
  clearTimeout(writing);
  // Browsers refuse to change the address more often.
  writing = setTimeout(() => {
    address = written();
    history.replaceState(null, "", "#" + address);
  }, 150);
}

/** The times of the latest frames. @type {number[]} */
const frames = [];

function draw() {
  const begin = performance.now();
  panes.forEach((pane) => pane.draw(colors));
  minimap.draw(colors);
  state.traces.forEach((trace) => trace.tiles.pump());
  frames.push(performance.now() - begin);
  if (frames.length > 60) frames.shift();
  panes.forEach((pane) => {
    const { head } = pane.trace;
    const progress = head.full ? "" : `  ·  indexing, ${Math.floor(100 * head.progress)} %; pale: from samples`;
    const losses = head.losses ? `  ·  ${head.losses.toLocaleString("en")} losses` : "";
    const kernel = /^[0-9]/.test(head.kernel) ? `Linux ${head.kernel}` : head.kernel;
    const text = `${kernel}  ·  ${head.cpus.length} CPUs  ·  ${head.tasks.length.toLocaleString("en")} tasks  ·  ${duration(head.span)}${losses}${progress}`;
    if (pane.facts.textContent !== text) pane.facts.textContent = text;
  });
  const column = state.span / Math.max(1, panes[0]?.canvas.width ?? 1);
  const text = `${seconds(state.from, column)} s to ${seconds(state.from + state.span, column)} s  ·  ${duration(state.span)}  ·  ${duration(column)} per pixel`;
  if (byId("status").textContent !== text) byId("status").textContent = text;
  const complete = String(state.traces.every((trace) => trace.tiles.complete() && trace.plots.complete()));
  if (document.documentElement.dataset.complete !== complete) document.documentElement.dataset.complete = complete;
}

/** The options of the figure that shows the same window. */
function options() {
  const trace = state.traces[state.highlight?.trace ?? state.place?.trace ?? 0];
  const [from, to] = own(trace, asked());
  /** @type {Record<string, string | number>} */
  const query = { from, to };
  const names = { task: "pid", command: "command", node: "node", parent: "parent", class: "class" };
  if (state.color !== "task") query["color-by"] = names[state.color];
  return { trace, query };
}

/** Shows in the menu which groups are collapsed: none, all of a kind, or some. */
function showLanesChoice() {
  const choice = /** @type {HTMLSelectElement} */ (byId("lanes"));
  const kinds = new Set(state.traces.flatMap(kindsOf));
  byId("lanes-field").hidden = kinds.size === 0;
  for (const option of choice.options) option.hidden = !(option.value === "" || kinds.has(/** @type {any} */ (option.value)));
  const isShown = (/** @type {string} */ kind) => state.traces.every(({ head, collapsed }) => {
    const keys = head.folds.filter((fold) => fold.kind === kind).map(keyOf);
    return keys.length === collapsed.size && keys.every((key) => collapsed.has(key));
  });
  choice.value = ["", ...kinds].find(isShown) ?? "some";
}

function controls() {
  byId("skip").addEventListener("click", (event) => {
    // The address holds the view, not a place of the page.
    event.preventDefault();
    panes[0]?.canvas.focus();
  });
  byId("lanes").addEventListener("change", (event) => {
    const kind = /** @type {HTMLSelectElement} */ (event.target).value;
    for (const { head, collapsed } of state.traces) {
      collapsed.clear();
      head.folds.filter((fold) => fold.kind === kind).forEach((fold) => collapsed.add(keyOf(fold)));
    }
    change({ traces: state.traces });
  });
  byId("in").addEventListener("click", () => zoom(1 / 1.6));
  byId("out").addEventListener("click", () => zoom(1.6));
  byId("all").addEventListener("click", showAll);
  byId("keep").hidden = state.static;
  if (state.static) /** @type {HTMLInputElement} */ (byId("search")).placeholder = "name or PID";
  for (const format of ["pdf", "svg", "png"]) {
    byId(format).addEventListener("click", () => {
      const { trace, query } = options();
      const link = document.createElement("a");
      link.href = api.figure(trace.index, format, query);
      link.download = `${trace.head.name.replace(/\.[a-z]+$/, "")}.${format}`;
      link.click();
    });
  }
  byId("copy").addEventListener("click", async () => {
    const { trace, query } = options();
    try {
      const { command } = await api.command(trace.index, query);
      byId("here").textContent = command;
      await navigator.clipboard.writeText(command);
      byId("here").textContent = `copied: ${command}`;
    } catch (error) {
      if (error instanceof api.Refused) byId("here").textContent = error.message;
    }
  });
  byId("color").addEventListener("change", (event) => change({ color: /** @type {any} */ (event.target).value }));
  byId("filter").addEventListener("input", (event) => change({ filter: /** @type {HTMLInputElement} */ (event.target).value.slice(0, 200) }));
  byId("search").addEventListener("input", (event) => requestSearch(/** @type {HTMLInputElement} */ (event.target).value));
  byId("tabs").addEventListener("click", () => {
    leaveSearch();
    change({ tab: state.tab });
    if (state.tab === "lists") requestList();
  });
  byId("theme").addEventListener("click", () => change({ theme: document.documentElement.classList.contains("dark") ? "light" : "dark" }));
  byId("help").addEventListener("click", () => /** @type {HTMLDialogElement} */ (byId("keys")).showModal());
}

/** For tests: the times of the latest frames in ms, and the state. */
Object.assign(globalThis, { schedviz: { frames, state, panes, show } });

start().catch((error) => {
  byId("panes").textContent = `The page could not be opened: ${error instanceof Error ? error.message : error}`;
});
