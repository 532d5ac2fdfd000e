// Mouse and keys.

import { IDLE, NO_TASK, OFFLINE, OTHERS, UNKNOWN, WHOLE, at, plotBar } from "./api.js";
import { HIGHEST, LOWEST, around, keyOf, nameOf } from "./layout.js";
import { advance } from "./entries.js";
import { actionOf, selects, wheelOf } from "./hands.js";
import { aboutMachine } from "./machine.js";
import { setMarker } from "./marks.js";
import { addNote } from "./notes.js";
import { redo, undo } from "./past.js";
import { searches } from "./details.js";
import { drawnAt } from "./drawnhits.js";
import { leaveSearch } from "./panel.js";
import { leaveStory } from "./story.js";
import { barText } from "./plots.js";
import { aboutRow, stretchAt } from "./rowdraw.js";
import { pathOfHighlight } from "./pathpick.js";
import { jumpRows, rowHit, stepRows } from "./rowkeys.js";
import { pin } from "./rows.js";
import { WAYS } from "./palette.js";
import { alongWakeups } from "./waitpanel.js";
import { change, extent, named, show, showAll, state, zoom } from "./state.js";
import { duration, percent, ranges, seconds } from "./time.js";

/** @typedef {import("./pane.js").Pane} Pane */
/** @typedef {ReturnType<Pane["hit"]>} Hit */

/** The distance in CSS pixels from which a press is a drag. */
const DRAG = 4;

/** Handles mouse and touch on a pane. @param {Pane} pane */
export function attach(pane) {
  const { canvas, trace } = pane;
  /** @type {{ x: number, y: number, from: number, scroll: number, rows: boolean, selects: boolean, moved: boolean, start: number } | null} */
  let press = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const amount = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    const hit = pane.hit(event.offsetX, event.offsetY);
    // A wheel with the shift key goes sideways in some browsers.
    switch (wheelOf(state.hands, event)) {
      case "height": return setLane(pane, amount > 0 ? 1 / 1.15 : 1.15);
      case "lanes": return scroll(pane, amount || event.deltaX, hit.region);
      case "time": return show(state.from + ((event.deltaX || amount) * state.span) / canvas.clientWidth, state.span);
      default: return zoom(1.0016 ** amount, hit.aligned);
    }
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const hit = pane.hit(event.offsetX, event.offsetY);
    press = { x: event.offsetX, y: event.offsetY, from: state.from, scroll: hit.region === "tasks" ? trace.rows.scroll : trace.scroll, rows: hit.region === "tasks", selects: selects(state.hands, { shiftKey: event.shiftKey, axis: hit.axis && !hit.gutter }), moved: false, start: hit.aligned };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!press) return hover(pane, event);
    const [dx, dy] = [event.offsetX - press.x, event.offsetY - press.y];
    if (!press.moved && Math.hypot(dx, dy) < DRAG) return;
    press.moved = true;
    hideTip();
    if (press.selects) {
      const now = pane.hit(event.offsetX, event.offsetY).aligned;
      change({ selection: [Math.min(press.start, now), Math.max(press.start, now)], tab: tabOfSelection() });
    } else {
      const scale = pane.scale();
      show(press.from - dx * scale.scale * scale.perPixel, state.span);
      if (press.rows) trace.rows.scroll = press.scroll - dy * scale.scale;
      else trace.scroll = press.scroll - dy * scale.scale;
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const pressed = press;
    press = null;
    if (!pressed || pressed.moved) return;
    const hit = pane.hit(event.offsetX, event.offsetY);
    const drawn = drawnAt(pane, event.offsetX, event.offsetY);
    if (drawn && !event.altKey) drawn.click();
    else if (event.altKey && !hit.gutter) setMarker(event.shiftKey ? "b" : "a", hit.aligned);
    else click(pane, hit);
  });
  canvas.addEventListener("pointercancel", () => (press = null));
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", (event) => zoom(0.25, pane.hit(event.offsetX, event.offsetY).aligned));
}

/** @param {Pane} pane @param {number} factor */
function setLane(pane, factor) {
  const current = pane.layout.pitch / (globalThis.devicePixelRatio || 1);
  change({ lane: Math.min(HIGHEST, Math.max(LOWEST, Math.round(current * factor + (factor > 1 ? 0.5 : -0.5)))) });
}

/** @param {Pane} pane @param {number} amount in CSS pixels @param {Hit["region"]} region the part that is scrolled */
function scroll(pane, amount, region = "lanes") {
  const way = amount * (globalThis.devicePixelRatio || 1);
  if (region === "plots") pane.trace.plots.scroll += way;
  else if (region === "tasks") pane.trace.rows.scroll += way;
  else pane.trace.scroll += way;
  change({});
}

/** The tab that shows a selection: a list obeys it, and stays. */
const tabOfSelection = () => (state.tab === "lists" && !state.story ? "lists" : "window");

/** The tab behind each row of the machine. @type {Record<import("./machine.js").Part, Partial<typeof state>>} */
const BEHIND = { tasks: { tab: "here" }, violation: { tab: "lists", list: "episodes", story: null }, migrations: { tab: "window" } };

/** Opens the state at an instant and highlights the task that has most of the column there. @param {Pane} pane @param {Hit} hit */
export function click(pane, hit) {
  const { trace } = pane;
  if (hit.group) return toggle(pane, hit.group.fold);
  if (hit.part) {
    const cpu = state.place?.trace === trace.index ? state.place.cpu : trace.head.cpus.find((place) => !place.silent)?.cpu ?? 0;
    const time = Math.round(Math.min(Math.max(hit.time, 0), trace.head.span)) - trace.zero;
    return change({ place: { trace: trace.index, cpu, time }, ...BEHIND[hit.part] });
  }
  if (hit.path) return hit.gutter ? undefined : trace.rows.path.choose(hit.time);
  if (hit.task >= 0) return clickTask(pane, hit);
  if (state.row) change({ row: null });
  if (!hit.row) return change({ selection: null });
  if (hit.gutter) return change({ place: { trace: trace.index, cpu: hit.row.members ? trace.head.cpus[hit.row.place].cpu : hit.row.cpu, time: Math.round(center()) }, tab: "here" });
  const found = pane.runAt(hit.row, hit.time);
  let id = NO_TASK;
  // Of a command the column does not say which task has most of it.
  if (found && !found.isByCommand) {
    const { tile, run } = found;
    let most = -1;
    for (let n = tile.entry[run]; n < tile.entry[run] + tile.entries[run]; n++) {
      if (tile.ids[n] < NO_TASK && tile.shares[n] > most) [id, most] = [tile.ids[n], tile.shares[n]];
    }
  }
  const cpu = hit.row.members ? trace.head.cpus[hit.row.place].cpu : hit.row.cpu;
  const task = id < NO_TASK ? trace.head.tasks[id] : null;
  change({
    place: { trace: trace.index, cpu, time: Math.round(hit.aligned) },
    highlight: task ? { trace: trace.index, pid: task.pid } : state.highlight,
    tab: state.tab === "task" && task ? "task" : "here",
  });
}

/** Highlights the task of a row, and puts the cursor where it was then. @param {Pane} pane @param {Hit} hit */
function clickTask(pane, hit) {
  const { trace } = pane;
  const found = stretchAt(trace, hit.task, hit.time, hit.ns);
  const cpu = found?.cpus[0] ?? (found && found.queue >= 0 ? found.queue : state.place?.trace === trace.index ? state.place.cpu : trace.head.cpus[0]?.cpu ?? 0);
  const time = Math.round(Math.min(Math.max(hit.time, 0), trace.head.span)) - trace.zero;
  const place = hit.gutter ? state.place : { trace: trace.index, cpu, time };
  const { pid } = trace.head.tasks[hit.task];
  // The column under the mouse, where the task waited for some of it.
  const column = found ? found.from + Math.floor((hit.time - found.from) / found.column) * found.column : hit.time;
  // Where the column is not loaded yet the server knows whether the task waited.
  const asks = !state.static && !hit.gutter && (found ? found.queue >= 0 : hit.time >= 0 && hit.time <= trace.head.span);
  const wait = asks ? { trace: trace.index, pid, from: Math.floor(column), to: Math.ceil(column + Math.max(1, found?.column ?? hit.ns)) } : null;
  change({ highlight: { trace: trace.index, pid }, place, wait, tab: "task", row: { trace: trace.index, pid } });
}

/** Collapses a group, or expands it. @param {Pane} pane @param {number} fold its place among the head's groups */
function toggle(pane, fold) {
  const { collapsed, head } = pane.trace;
  const key = keyOf(head.folds[fold]);
  if (!collapsed.delete(key)) collapsed.add(key);
  change({ traces: state.traces });
}

/** Returns the text about a group: its name and its CPUs. @param {Pane} pane @param {number} fold */
function aboutGroup(pane, fold) {
  const { cpus, folds } = pane.trace.head;
  const own = cpus.slice(...folds[fold].lanes).map(({ cpu }) => cpu);
  return `${nameOf(folds[fold])}  ·  ${own.length} CPUs: ${ranges(own)}`;
}

/** Returns the text about a CPU: its number and its place in the machine. @param {Pane} pane @param {import("./layout.js").Row} row */
function aboutCpu(pane, row) {
  const { node, llc, core } = pane.trace.head.cpus[row.place];
  const parts = [["node", node], ["LLC", llc], ["core", core]].filter(([, number]) => number !== null);
  const where = parts.map(([name, number]) => `${name} ${number}`).join(", ");
  return `CPU ${row.cpu}${where && `  ·  ${where}`}`;
}

/** What a click on each row of the machine shows. @type {Record<import("./machine.js").Part, string>} */
const WORDS = { tasks: "all CPUs at this instant", violation: "the episodes of violation", migrations: "the migrations of the window" };

/** Returns the text about a place: the time, and the shares of its column. @param {Pane} pane @param {Hit} hit */
export function about(pane, hit) {
  const { trace } = pane;
  if (hit.part) return [...aboutMachine(trace, hit.time, hit.ns), `click: ${WORDS[hit.part]}`].join("\n");
  if (hit.path) return trace.rows.path.about(hit.time, hit.ns);
  if (hit.task >= 0) return aboutRow(trace, hit.task, hit.time, hit.ns);
  if (!hit.row) return `${seconds(hit.aligned, hit.ns)} s`;
  const lane = hit.row.members ? aboutGroup(pane, hit.row.fold) : aboutCpu(pane, hit.row);
  const lines = [`${lane}  ·  ${seconds(hit.aligned, hit.ns)} s`];
  if (hit.time < 0 || hit.time > trace.head.span) return [...lines, `${hit.time < 0 ? "before the start" : "behind the end"} of this trace`].join("\n");
  if (hit.row.silent) return [...lines, "no events of this CPU: what ran and waited there is unknown"].join("\n");
  const found = pane.runAt(hit.row, hit.time);
  if (!found) return lines[0];
  const { tile, run, from, to, column, isByCommand } = found;
  /** @type {Map<number, string>} */
  const words = new Map([[IDLE, "idle"], [UNKNOWN, "unknown: events were lost"], [OFFLINE, "offline"], [OTHERS, "other tasks"]]);
  const shares = [];
  for (let n = tile.entry[run]; n < tile.entry[run] + tile.entries[run]; n++) shares.push(n);
  shares.sort((a, b) => tile.shares[b] - tile.shares[a]);
  if (shares.length === 0) lines.push("not read yet");
  for (const n of shares.slice(0, 6)) {
    const task = trace.head.tasks[tile.ids[n]];
    const name = words.get(tile.ids[n]) ?? (task ? (isByCommand && task.comm ? task.comm : named(task)) : "a task");
    const length = shares.length === 1 ? duration(to - from) : `${percent(tile.shares[n] / WHOLE)} of ${duration(column)}`;
    lines.push(`${name}  ·  ${length}`);
  }
  if (shares.length > 6) lines.push(`and ${shares.length - 6} more`);
  if (tile.sampled[run]) lines.push("from samples: not read yet, queue unknown");
  if (tile.queueMax[run] > 0) lines.push(`waiting: mean ${tile.queueMean[run].toFixed(2)}, ${tile.queueMin[run]} to ${tile.queueMax[run]}`);
  return lines.join("\n");
}

/** @param {Pane} pane @param {PointerEvent} event */
function hover(pane, event) {
  const hit = pane.hit(event.offsetX, event.offsetY);
  const scale = pane.scale();
  pane.canvas.classList.toggle("group", hit.group !== null || hit.part !== null);
  const drawn = drawnAt(pane, event.offsetX, event.offsetY);
  if (drawn) {
    stopAsking();
    pane.canvas.classList.add("group");
    return showTip(event, drawn.text);
  }
  const plotted = hit.gutter ? null : pane.trace.plots.about(event.offsetX * scale.scale, event.offsetY * scale.scale, scale);
  if (hit.gutter && hit.row && !hit.row.members && !hit.group) {
    stopAsking();
    return showTip(event, `${aboutCpu(pane, hit.row)}\nclick: this CPU at the cursor`);
  }
  if (!hit.group && hit.task < 0 && !hit.path && (hit.gutter || (!hit.row && !hit.part && !plotted))) return hideTip();
  if (hit.group) hideTip();
  else if (plotted) askBar(pane, plotted.row);
  else if (hit.part || hit.path || hit.task >= 0) stopAsking();
  else ask(pane, hit);
  const click = hit.group?.collapsed ? "click: show its lanes" : "click: show as one lane";
  showTip(event, hit.group ? `${aboutGroup(pane, hit.group.fold)}\n${click}` : plotted ? plotted.text : about(pane, hit));
}

/** Shows a text beside the mouse. @param {PointerEvent} event @param {string} text */
function showTip(event, text) {
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  tip.textContent = text;
  tip.hidden = false;
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const x = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  // The style object is not a style attribute of the markup: the content security policy allows it.
  tip.style.transform = `translate(${Math.max(0, x)}px, ${Math.max(0, y)}px)`;
}

/** The rest of the mouse after which the tip asks for the state at its place, in ms. */
const REST = 110;
/** @type {ReturnType<typeof setTimeout>} */
let resting;
/** The number of the latest question. */
let question = 0;

/** Completes the tip by the exact run and the waiting tasks, once the mouse rests. @param {Pane} pane @param {Hit} hit */
function ask(pane, hit) {
  clearTimeout(resting);
  const number = ++question;
  if (state.static || !pane.trace.head.full || !hit.row || hit.row.members || hit.row.silent || hit.time < 0 || hit.time > pane.trace.head.span) return;
  const cpu = hit.row.cpu;
  resting = setTimeout(async () => {
    try {
      const answer = await at(pane.trace.index, cpu, hit.time);
      if (number === question) moreOf(answer, hit);
    } catch {
      // The tip shows the column without it.
    }
  }, REST);
}

/** Completes the tip by the exact bar, once the mouse rests. @param {Pane} pane
 * @param {{ plot: number, lane: number, depth: number, time: number } | null} row */
function askBar(pane, row) {
  clearTimeout(resting);
  const number = ++question;
  if (state.static || !row) return;
  resting = setTimeout(async () => {
    try {
      const bar = await plotBar(pane.trace.index, row.plot, row.lane, row.depth, row.time);
      const look = bar && pane.trace.plots.looks.get(row.plot)?.get(bar.class);
      if (number === question && bar) /** @type {HTMLElement} */ (document.getElementById("tip")).textContent = barText(pane.trace, bar, look?.value);
    } catch {
      // The tip shows the column without it.
    }
  }, REST);
}

/** @param {any} answer @param {Hit} hit */
function moreOf(answer, hit) {
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  const lines = [];
  const { running, waiting } = answer;
  if (typeof running !== "string") {
    const until = running.until === null ? "" : ` of ${duration(running.until - running.since)}`;
    lines.push(`here: ${named(running)}, for ${duration(hit.time - running.since)}${until}`);
  }
  for (const wait of waiting.slice(0, 5)) lines.push(`waits: ${named(wait)}, for ${duration(hit.time - wait.since)}`);
  if (waiting.length > 5) lines.push(`and ${waiting.length - 5} more`);
  if (lines.length) tip.textContent += "\n" + lines.join("\n");
}

/** Drops what the tip has asked for. */
function stopAsking() {
  clearTimeout(resting);
  question++;
}

function hideTip() {
  stopAsking();
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  tip.hidden = true;
}

/** Handles keys on the whole page. @param {Pane[]} panes */
export function attachKeys(panes) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = target instanceof HTMLInputElement && target.type !== "checkbox";
    if (event.key === "Escape") {
      if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) target.blur();
      if (searches()) return leaveSearch();
      if (state.story && state.tab === "lists") return leaveStory();
      return change({ selection: null, highlight: null, place: null, row: null });
    }
    if (!typing && (event.ctrlKey || event.metaKey) && !event.altKey && /^[zy]$/i.test(event.key)) {
      event.preventDefault();
      return event.key.toLowerCase() === "y" || event.shiftKey ? redo() : undo();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    // A menu keeps the keys that move in it; the others are those of the page, so that they work once something was chosen.
    if (target instanceof HTMLSelectElement && (event.key.length > 1 || event.key === " ")) return;
    if (target instanceof HTMLInputElement && event.key === " ") return;
    const active = panes.find((pane) => pane.canvas === document.activeElement);
    const pane = active ?? panes[state.place?.trace ?? 0] ?? panes[0];
    // Without a focus the keys are those of the first timeline.
    hideTip();
    if (pane && key(event, pane, active !== undefined || document.activeElement === document.body)) event.preventDefault();
  });
}

/** Returns whether the key was used. @param {KeyboardEvent} event @param {Pane} pane @param {boolean} focused whether the pane has the focus */
function key(event, pane, focused) {
  const step = state.span / 10;
  const inside = !(event.target instanceof HTMLButtonElement) && !(event.target instanceof HTMLTableRowElement);
  if (event.key === "PageUp" || event.key === "PageDown") {
    if (focused) scroll(pane, event.key === "PageUp" ? -200 : 200);
    return focused;
  }
  switch (actionOf(state.hands, event.key)) {
    case "in": zoom(1 / 1.4, center()); return true;
    case "out": zoom(1.4, center()); return true;
    case "left": show(state.from - step, state.span); return true;
    case "right": show(state.from + step, state.span); return true;
    case "up": if (focused) moveLane(pane, -1); return focused;
    case "down": if (focused) moveLane(pane, 1); return focused;
    case "cursorLeft": moveCursor(pane, -1, false); return true;
    case "cursorRight": moveCursor(pane, 1, false); return true;
    case "select": moveCursor(pane, event.key === "<" ? -1 : 1, true); return true;
    case "open": if (focused && inside) open(pane); return focused;
    case "all": showAll(); return true;
    case "fit": zoomTo(); return true;
    case "next": advance(1); return true;
    case "former": advance(-1); return true;
    case "fold": foldAtCursor(pane, false); return true;
    case "unfold": foldAtCursor(pane, true); return true;
    case "lower": setLane(pane, 1 / 1.15); return true;
    case "higher": setLane(pane, 1.15); return true;
    case "colour": change({ color: WAYS[(WAYS.indexOf(state.color) + 1) % WAYS.length] }); return true;
    case "markA": setMarker("a", center()); return true;
    case "markB": setMarker("b", center()); return true;
    case "note": addNote(center()); return true;
    case "undo": undo(); return true;
    case "redo": redo(); return true;
    case "mark": markSelection(); return true;
    case "grow": selectRun(pane); return true;
    case "panel": togglePanel(); return true;
    case "waker": alongWakeups(-1); return true;
    case "wakee": alongWakeups(1); return true;
    case "jump": if (jumpRows(pane)) announce(pane); return true;
    case "path": pathOfHighlight(false); return true;
    case "pathBack": pathOfHighlight(true); return true;
    case "pin": if (state.highlight) pin(state.highlight.trace, state.highlight.pid); return true;
    case "theme": document.getElementById("theme")?.click(); return true;
    case "search": document.getElementById("search")?.focus(); return true;
    case "help": document.getElementById("help")?.click(); return true;
    default: return false;
  }
}

/** Sets the markers at the edges of the selection, or A at the cursor where there is none. */
function markSelection() {
  if (state.selection) change({ markers: { a: Math.round(state.selection[0]), b: Math.round(state.selection[1]) } });
  else setMarker("a", center());
}

/** Selects the run of the highlighted task at the cursor, or the column of the lane there. @param {Pane} pane */
function selectRun(pane) {
  const hit = hitOf(pane);
  const run = pane.trace.task?.runs.find((/** @type {number[]} */ [from, to]) => from <= hit.time && hit.time <= to);
  const found = hit.row && pane.runAt(hit.row, hit.time);
  const [from, to] = run ?? (found ? [found.from, found.to] : [0, 0]);
  if (to > from) change({ selection: [from - pane.trace.zero, to - pane.trace.zero], tab: tabOfSelection() });
}

/** Hides the panel, or shows it again. */
function togglePanel() {
  document.documentElement.classList.toggle("wide");
}

/** The instant that keys zoom about: the cursor if it is in view. */
function center() {
  const time = state.place?.time;
  return time !== undefined && time >= state.from && time <= state.from + state.span ? time : state.from + state.span / 2;
}

function zoomTo() {
  if (state.selection) return show(state.selection[0], state.selection[1] - state.selection[0]);
  const task = state.highlight ? state.traces[state.highlight.trace].task : null;
  const run = task?.runs.find((/** @type {number[]} */ run) => run[1] - state.traces[task ? state.highlight?.trace ?? 0 : 0].zero > center());
  if (run && state.highlight) show(run[0] - state.traces[state.highlight.trace].zero - (run[1] - run[0]), 3 * (run[1] - run[0]));
}

/** @param {Pane} pane */
function placeIn(pane) {
  const { place } = state;
  const cpus = pane.trace.head.cpus;
  return place?.trace === pane.trace.index ? place : { trace: pane.trace.index, cpu: cpus[0]?.cpu ?? 0, time: Math.round(state.from + state.span / 2) };
}

/** @param {Pane} pane @param {1 | -1} step */
function moveLane(pane, step) {
  if (stepRows(pane, step)) return announce(pane);
  const place = placeIn(pane);
  const rows = pane.layout.rows;
  const row = pane.layout.byCpu.get(place.cpu);
  const next = rows[Math.min(Math.max(rows.findIndex((other) => other === row) + (state.place ? step : 0), 0), rows.length - 1)];
  if (!next) return;
  const cpu = next.members ? pane.trace.head.cpus[next.place].cpu : next.cpu;
  change({ place: { ...place, cpu } });
  pane.reveal(cpu);
  announce(pane);
}

/** @param {Pane} pane @param {1 | -1} step @param {boolean} selects */
function moveCursor(pane, step, selects) {
  const place = placeIn(pane);
  const all = extent();
  const time = Math.round(Math.min(Math.max(place.time + (step * state.span) / 100, all.from), all.to));
  if (selects) {
    const [from, to] = state.selection ?? [place.time, place.time];
    const other = Math.abs(from - place.time) < Math.abs(to - place.time) ? to : from;
    change({ selection: [Math.min(other, time), Math.max(other, time)], tab: tabOfSelection() });
  }
  change({ place: { ...place, time } });
  if (time < state.from || time > state.from + state.span) show(time - state.span / 2, state.span);
  announce(pane);
}

/** @param {Pane} pane @returns {Hit} the hit of the cursor */
function hitOf(pane) {
  const place = placeIn(pane);
  const below = rowHit(pane);
  const row = below ? null : pane.layout.byCpu.get(place.cpu) ?? null;
  return { time: place.time + pane.trace.zero, aligned: place.time, row, group: null, gutter: false, part: null, task: -1, path: false, region: "lanes", axis: false, ns: pane.scale().perPixel, ...below };
}

/** @param {Pane} pane */
function announce(pane) {
  const output = document.getElementById("here");
  if (output) output.textContent = about(pane, hitOf(pane)).replaceAll("\n", ";  ");
}

/** @param {Pane} pane */
function open(pane) {
  click(pane, hitOf(pane));
  announce(pane);
}

/** Collapses the innermost open group of the cursor's lane, so that the next call collapses the one around it; or expands the collapsed one.
 * @param {Pane} pane @param {boolean} expands */
function foldAtCursor(pane, expands) {
  const { head, collapsed } = pane.trace;
  const row = hitOf(pane).row;
  if (!row) return;
  const open = around(pane.trace, row.place).filter((fold) => !collapsed.has(keyOf(head.folds[fold])));
  const outside = row.members ? open.filter((fold) => head.folds[fold].lanes[1] - head.folds[fold].lanes[0] > (row.members?.length ?? 0)) : open;
  const fold = expands ? row.fold : outside[outside.length - 1] ?? -1;
  if (fold < 0) return;
  toggle(pane, fold);
  const here = document.getElementById("here");
  if (here) here.textContent = `${aboutGroup(pane, fold)}, ${expands ? "expanded" : "collapsed"}`;
}
