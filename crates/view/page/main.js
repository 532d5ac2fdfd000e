// The page of `schedviz view`: opens the traces, draws frames, and connects the controls with the state.

import * as api from "./api.js";
import { asked, follow, own, requestList, requestSearch, taskOfAnswer } from "./details.js";
import { followCompare } from "./comparepanel.js";
import { Difference } from "./differences.js";
import { followEvents } from "./events.js";
import { requestFindings } from "./findings.js";
import { followGroups } from "./groups.js";
import { keepHands, keptHands } from "./hands.js";
import { placeHints, showHints } from "./hints.js";
import { attach, attachKeys } from "./input.js";
import { keyOf, kindsOf } from "./layout.js";
import { aboutMarkers, setMarker } from "./marks.js";
import { Minimap } from "./minimap.js";
import { passes, theme } from "./palette.js";
import { Pane } from "./pane.js";
import { build, chooseFirst, leaveSearch } from "./panel.js";
import { addNote } from "./notes.js";
import { onPast, redo, remember, restore, undo } from "./past.js";
import { Plots } from "./plots.js";
import { Rows, choices, followRows } from "./rows.js";
import { followTables } from "./tables.js";
import { TABS, align, awaitsFrame, change, extent, onChange, read, refresh, show, showAll, state, zoom } from "./state.js";
import { Tiles } from "./tiles.js";
import { duration, seconds } from "./time.js";
import { silentCpus } from "./trust.js";

/** The time between two requests for the progress, in ms. */
const POLL = 300;

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @type {Pane[]} */
const panes = [];
/** @type {Minimap} */
let minimap;
/** @type {Difference | null} */
let difference = null;
let colors = theme();

/** Says that the server has ended, as long as that is so. */
function showReach() {
  byId("gone").textContent = api.unreached();
  byId("gone").hidden = byId("gone").textContent === "";
}

async function start() {
  addEventListener("reach", showReach);
  const list = await api.traces();
  state.static = list.static;
  state.plots = list.plots ?? [];
  if (state.plots.length) TABS.push("plots");
  // What a copy without a server cannot show is not offered.
  if (state.static) for (const tab of ["tables", "events"]) TABS.splice(TABS.indexOf(tab), 1);
  byId("opening").textContent = `${list.traces.join(" and ")}: the trace is being opened …`;
  const heads = await Promise.all(list.traces.map((_, index) => firstHead(index)));
  byId("opening").remove();
  document.title = `${list.traces.join(" and ")} – schedviz view`;
  state.traces = heads.map((head, index) => {
    const tiles = new Tiles(index, refresh);
    [tiles.levels, tiles.readable] = [head.levels, head.readable];
    tiles.exists = (level, index) => index >= 0 && index * head.tile.columns * 2 ** level < head.span;
    return /** @type {import("./state.js").Trace} */ (/** @type {unknown} */ ({
      index, head, tiles, zero: 0, collapsed: new Set(), scroll: 0, grouped: false,
      get task() { return taskOfAnswer(index); },
    }));
  });
  for (const trace of state.traces) [trace.plots, trace.rows] = [new Plots(trace), new Rows(trace)];
  if (state.static) await Promise.all(state.traces.map((trace) => trace.rows.open()));
  state.rowless = state.static && state.traces.some((trace) => !trace.rows.facts);
  align();
  for (const trace of state.traces) panes.push(new Pane(trace, byId("panes")));
  if (panes.length === 2) difference = new Difference([panes[0], panes[1]], byId("panes"));
  minimap = new Minimap(/** @type {HTMLCanvasElement} */ (byId("minimap")));
  build();
  follow();
  followGroups();
  followRows();
  followTables();
  followEvents();
  followCompare();
  addEventListener("groups", () => {
    showFiltered();
    showRowsChoice();
  });
  onChange(changed);
  controls();
  hands();
  attachKeys(panes);
  panes.forEach(attach);
  const observer = new ResizeObserver(() => {
    panes.forEach((pane) => pane.resize());
    // Drawn before the browser shows the new size: a canvas is blank once it has another size.
    draw();
  });
  panes.forEach((pane) => observer.observe(/** @type {HTMLElement} */ (pane.canvas.parentElement)));
  read(location.hash.slice(1) || (list.view ?? ""));
  change({ traces: state.traces });
  addEventListener("hashchange", restore);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({ theme: state.theme }));
  for (const trace of state.traces) {
    if (trace.head.full) opened(trace);
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
    const begins = trace.head.readable && !trace.tiles.readable;
    [trace.tiles.levels, trace.tiles.readable] = [trace.head.levels, trace.head.readable];
    if (begins || trace.head.full || trace.head.progress - progress > 0.05) {
      progress = trace.head.progress;
      trace.tiles.renew();
      document.documentElement.dataset.complete = "false";
    }
    align();
    if (whole) showAll();
    change({ traces: state.traces });
  }
  opened(trace);
}

/** All of a trace was read. @param {import("./state.js").Trace} trace */
function opened(trace) {
  trace.plots.open();
  requestFindings(trace);
}

/** The choice of the way of mouse and keys, the buttons of the markers, and the hints of a first visit. */
function hands() {
  const choice = /** @type {HTMLSelectElement} */ (byId("hands"));
  change({ hands: keptHands() });
  choice.addEventListener("change", () => {
    const hands = choice.value === "perfetto" ? "perfetto" : "map";
    keepHands(hands);
    change({ hands });
  });
  for (const name of /** @type {("a" | "b")[]} */ (["a", "b"])) {
    byId(`mark-${name}`).addEventListener("click", () => setMarker(name, state.place?.time ?? state.from + state.span / 2));
  }
  byId("note").addEventListener("click", () => addNote(state.place?.time ?? state.from + state.span / 2));
  byId("undo").addEventListener("click", undo);
  byId("redo").addEventListener("click", redo);
  onPast((undoes, redoes) => {
    /** @type {HTMLButtonElement} */ (byId("undo")).disabled = !undoes;
    /** @type {HTMLButtonElement} */ (byId("redo")).disabled = !redoes;
  });
  showHints();
}

/** Shows the keys and hints of the way of mouse and keys that holds. */
function showHands() {
  /** @type {HTMLSelectElement} */ (byId("hands")).value = state.hands;
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-hands]"))) part.hidden = part.dataset.hands !== state.hands;
}

/** @param {Set<string>} changes */
function changed(changes) {
  if (changes.has("hands")) showHands();
  if (changes.has("aligned")) align();
  if (changes.has("markers")) {
    byId("markers").textContent = aboutMarkers(state.markers);
    for (const name of /** @type {("a" | "b")[]} */ (["a", "b"])) byId(`mark-${name}`).setAttribute("aria-pressed", String(state.markers[name] !== null));
  }
  if (changes.has("theme")) {
    const wanted = state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.classList.toggle("dark", wanted === "dark");
    colors = theme();
  }
  if (changes.has("traces")) showLanesChoice();
  if (changes.has("color")) /** @type {HTMLSelectElement} */ (byId("color")).value = state.color;
  const filter = /** @type {HTMLInputElement} */ (byId("filter"));
  if (changes.has("filter") && filter.value !== state.filter) filter.value = state.filter;
  if (changes.has("filter") || changes.has("traces")) showFiltered();
  if (["rows", "pins", "highlight", "filter", "traces"].some((part) => changes.has(part))) showRowsChoice();
  draw();
  if (changes.size > 0) remember(changes);
}

/** Shows beside the filter how many tasks it lets through: the lanes are grey where it lets none through. */
function showFiltered() {
  const tasks = state.traces.flatMap((trace) => trace.head.tasks);
  const kept = tasks.filter((task) => passes(task, state.filter)).length;
  const none = state.filter !== "" && kept === 0;
  byId("filtered").textContent = !state.filter ? "" : none ? "no task matches" : `${kept.toLocaleString("en")} of ${tasks.length.toLocaleString("en")} tasks`;
  byId("filtered").classList.toggle("fault", none);
  byId("filter").setAttribute("aria-invalid", String(none));
}

/** Shows in the menu which tasks have rows. */
function showRowsChoice() {
  const menu = /** @type {HTMLSelectElement} */ (byId("rows"));
  const options = choices().map(([value, name]) => new Option(name, value));
  if (document.activeElement !== menu || menu.options.length !== options.length) menu.replaceChildren(...options);
  menu.value = state.rows;
}

/** The times of the latest frames. @type {number[]} */
const frames = [];

function draw() {
  const begin = performance.now();
  panes.forEach((pane) => pane.draw(colors));
  difference?.draw(colors);
  minimap.draw(colors);
  placeHints(panes[0]);
  state.traces.forEach((trace) => {
    trace.tiles.pump();
    trace.rows.tiles.pump();
  });
  frames.push(performance.now() - begin);
  if (frames.length > 60) frames.shift();
  panes.forEach((pane) => {
    const { head } = pane.trace;
    const progress = head.full ? "" : `  ·  indexing, ${Math.floor(100 * head.progress)} %; pale: from samples`;
    const losses = head.losses ? `  ·  ${head.losses.toLocaleString("en")} losses` : "";
    const silent = silentCpus(head).length;
    const kernel = /^[0-9]/.test(head.kernel) ? `Linux ${head.kernel}` : head.kernel;
    const text = `${kernel}  ·  ${head.cpus.length} CPUs${silent ? `, ${silent} without events` : ""}  ·  ${head.tasks.length.toLocaleString("en")} tasks  ·  ${duration(head.span)}${losses}${progress}`;
    if (pane.facts.textContent !== text) pane.facts.textContent = text;
  });
  const column = state.span / Math.max(1, panes[0]?.canvas.width ?? 1);
  const missing = state.traces.reduce((sum, trace) => sum + trace.tiles.missing + trace.plots.missing + trace.rows.tiles.missing, 0);
  const coarse = state.traces.reduce((sum, trace) => sum + trace.tiles.coarse, 0);
  const parts = (/** @type {number} */ n) => `${n.toLocaleString("en")} ${n === 1 ? "part" : "parts"}`;
  const absent = (missing ? `  ·  not loaded yet (tinted): ${parts(missing)}` : "") + (coarse ? `  ·  coarse so far: ${parts(coarse)}` : "");
  const text = `${seconds(state.from, column)} s to ${seconds(state.from + state.span, column)} s  ·  ${duration(state.span)}  ·  ${duration(column)} per pixel${absent}`;
  if (byId("status").textContent !== text) byId("status").textContent = text;
  const complete = String(state.traces.every((trace) => trace.tiles.complete() && trace.plots.complete() && trace.rows.tiles.complete() && trace.rows.path.complete()));
  if (document.documentElement.dataset.complete !== complete) document.documentElement.dataset.complete = complete;
}

/** The options of the figure that shows the same window. */
function options() {
  const trace = state.traces[state.highlight?.trace ?? state.place?.trace ?? 0];
  const [from, to] = own(trace, asked());
  /** @type {Record<string, string | number>} */
  const query = { from, to };
  const names = { task: "pid", command: "command", process: "process", cgroup: "cgroup", node: "node", parent: "parent", class: "class" };
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

/** The buttons that keep a window are a menu where the line of controls is short: a choice, Escape and leaving it close it. */
function keepMenu() {
  const [keep, opener] = [byId("keep"), byId("keep-open")];
  const show = (/** @type {boolean} */ isOpen) => {
    keep.classList.toggle("open", isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
  };
  opener.addEventListener("click", () => show(!keep.classList.contains("open")));
  byId("keep-items").addEventListener("click", () => show(false));
  keep.addEventListener("focusout", (event) => {
    if (!keep.contains(/** @type {Node | null} */ (event.relatedTarget))) show(false);
  });
  keep.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !keep.classList.contains("open")) return;
    event.stopPropagation();
    show(false);
    opener.focus();
  });
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
  byId("rows-field").hidden = state.rowless;
  byId("rows").addEventListener("change", (event) => change({ rows: /** @type {HTMLSelectElement} */ (event.target).value }));
  byId("in").addEventListener("click", () => zoom(1 / 1.6));
  byId("out").addEventListener("click", () => zoom(1.6));
  byId("all").addEventListener("click", showAll);
  byId("keep").hidden = state.static;
  keepMenu();
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
  const search = /** @type {HTMLInputElement} */ (byId("search"));
  search.addEventListener("input", () => requestSearch(search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    if (event.key === "ArrowDown") /** @type {HTMLElement | null} */ (document.querySelector("#panel tbody tr.link"))?.focus();
    else if (search.value.trim()) chooseFirst(search.value.trim(), () => panes[0]?.canvas.focus());
  });
  byId("tabs").addEventListener("click", () => {
    leaveSearch();
    change({ tab: state.tab });
    if (state.tab === "lists") requestList();
  });
  byId("theme").addEventListener("click", () => change({ theme: document.documentElement.classList.contains("dark") ? "light" : "dark" }));
  byId("help").addEventListener("click", () => /** @type {HTMLDialogElement} */ (byId("keys")).showModal());
}

/** For tests: the times of the latest frames in ms, and the state with what changes it. */
Object.assign(globalThis, { schedviz: { frames, state, panes, show, change, awaitsFrame } });

start().catch((error) => {
  byId("panes").textContent = `The page could not be opened: ${error instanceof Error ? error.message : error}`;
});
