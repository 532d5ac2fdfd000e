// The state of the page: one for all traces, which the address holds.

/** @typedef {import("./api.js").Head} Head */
/** @typedef {import("./palette.js").ColorBy} ColorBy */
/** A trace of the page. `zero` is the instant at which its aligned time is 0, in ns since its start; `grouped`: whether the groups of its tasks are known.
 * @typedef {{ index: number, head: Head, tiles: import("./tiles.js").Tiles, zero: number, collapsed: Set<string>, scroll: number,
 *   grouped: boolean, task: any, plots: import("./plots.js").Plots, rows: import("./rows.js").Rows }} Trace */
/** The order of the rows of tasks. @typedef {"waiting" | "running" | "first" | "pid" | "tree"} RowOrder */
/** The property that colours a running task in its row: its CPU, the last-level cache of that, or that of the lanes. @typedef {"cpu" | "llc" | "task"} Paint */
/** The rows of the tables of numbers. @typedef {"task" | "command" | "process" | "cgroup" | "cpu" | "cache"} TableBy */
/** A place: a CPU of a trace and an aligned instant. @typedef {{ trace: number, cpu: number, time: number }} Place */

import { firstCollapsed, firstColor, isFirst } from "./defaults.js";
import { HIGHEST, keyOf } from "./layout.js";
import { completed, readNotes, writtenNote } from "./links.js";
import { RULES, WAYS } from "./palette.js";

export const TABS = ["here", "task", "window", "lists", "tables", "events", "findings", "legend"];
/** @type {RowOrder[]} */
export const ROW_ORDERS = ["waiting", "running", "first", "pid", "tree"];
/** @type {Paint[]} */
export const PAINTS = ["cpu", "llc", "task"];
/** @type {TableBy[]} */
export const TABLES = ["task", "command", "process", "cgroup", "cpu", "cache"];
export const LISTS = ["episodes", "waits", "herds", "missed", "tasks", "notes"];

/** The maximum number of pins in an address. */
const MOST_PINS = 200;

/** The shortest window, in ns. */
export const SHORTEST = 200;

export const state = {
  /** @type {Trace[]} */
  traces: [],
  /** Whether the page is served from a folder, without queries. */
  static: false,
  /** Whether no rows of tasks can be shown: an exported folder can be without them. */
  rowless: false,
  /** The names of the specifications whose figures can be shown. @type {string[]} */
  plots: [],
  /** The places of those that are hidden. @type {Set<number>} */
  hidden: new Set(),
  /** The window in aligned time, in ns. */
  from: 0,
  span: 1e9,
  /** @type {ColorBy} */
  color: "task",
  filter: "",
  /** @type {{ trace: number, pid: number } | null} */
  highlight: null,
  /** @type {[number, number] | null} in aligned time */
  selection: null,
  /** The window that lists are about: the selection, unless that is of one of their entries; null for the whole. @type {[number, number] | null} */
  range: null,
  /** @type {Place | null} */
  place: null,
  /** The episode whose steps are shown in place of the list, in aligned time. @type {{ trace: number, from: number, to: number } | null} */
  story: null,
  /** The wait that is asked about: the longest one of a task within a stretch of its trace's own time. @type {{ trace: number, pid: number, from: number, to: number } | null} */
  wait: null,
  tab: "window",
  list: "episodes",
  /** The instants of the traces' own time at which aligned time is 0, in ns; null for the starts of their commands.
   * @type {number[] | null} */
  aligned: null,
  /** The words that choose events, and the CPUs that recorded them, as a list. */
  events: "",
  eventCpus: "",
  /** The rows of the tables of numbers. @type {TableBy} */
  table: "task",
  /** The rows of the list of tasks. @type {"task" | import("./palette.js").Rule} */
  rule: "task",
  /** The groups of that list whose tasks are shown, each as the number of its trace and its name. @type {Set<string>} */
  opened: new Set(),
  /** The tasks that have rows: none, the application, those that pass the filter, those with pins, those on the critical path, a part of a filter that names
   * a group, `in:` and a filter, or `tree:` and the number of a trace with the PID of a task that is shown with its children. */
  rows: "",
  /** The row of a task on which keys are, or with -1 that of the critical path. @type {{ trace: number, pid: number } | null} */
  row: null,
  /** The task whose critical path is shown in place of the application's, and the aligned instant from which it goes back. @type {{ trace: number, pid: number, at: number | null } | null} */
  along: null,
  /** Whether the critical path is shown over the lanes and rows. */
  trail: true,
  /** @type {RowOrder} */
  order: "waiting",
  /** @type {Paint} */
  paint: "cpu",
  /** The tasks with pins, each as the number of its trace and its PID. @type {Set<string>} */
  pins: new Set(),
  /** The height of a lane in CSS pixels; 0 fits all lanes. */
  lane: 0,
  /** @type {"light" | "dark" | ""} the theme; empty: as the system's */
  theme: "",
  /** The way of mouse and keys; no part of the address. @type {import("./hands.js").Hands} */
  hands: "map",
  /** The markers A and B, in aligned time. @type {{ a: number | null, b: number | null }} */
  markers: { a: null, b: null },
  /** The named marks of the user. @type {import("./links.js").Note[]} */
  notes: [],
};

/** @type {((changed: Set<string>) => void)[]} */
const listeners = [];
/** @type {Set<string>} */
let pending = new Set();
let isAwaited = false;

/** Whether a change waits for the next frame: what is drawn is of the state before it. */
export const awaitsFrame = () => isAwaited;

/** @param {(changed: Set<string>) => void} listener */
export const onChange = (listener) => listeners.push(listener);

/** Changes the state; listeners are called once before the next frame. @param {Partial<typeof state>} patch */
export function change(patch) {
  if (patch.selection !== undefined && patch.range === undefined) patch = { ...patch, range: patch.selection };
  // One frame for all changes until then: a refresh names no part of the state, and a hundred answers come in one frame.
  if (!isAwaited) {
    isAwaited = true;
    requestAnimationFrame(() => {
      const changed = pending;
      [pending, isAwaited] = [new Set(), false];
      for (const listener of listeners) {
        try {
          listener(changed);
        } catch (error) {
          // A fault of one part of the page leaves the others alone; the console has it.
          reportError(error);
        }
      }
    });
  }
  for (const key of Object.keys(patch)) pending.add(key);
  Object.assign(state, patch);
}

/** Whether the starts of the commands are known in several traces, so that these can be aligned there. */
export const isTogether = () => state.traces.length > 1 && state.traces.every((trace) => trace.head.command !== null);

/** Aligns the traces: at the start of the traced commands, unless the state has other instants; one trace begins at 0. */
export function align() {
  const together = isTogether();
  state.traces.forEach((trace, n) => (trace.zero = state.aligned?.[n] ?? (together ? trace.head.command ?? 0 : 0)));
}

/** Asks for a frame without a change. */
export const refresh = () => change({});

/** The aligned time that all traces cover together. */
export function extent() {
  const from = Math.min(...state.traces.map((trace) => -trace.zero));
  const to = Math.max(...state.traces.map((trace) => trace.head.span - trace.zero));
  return { from, to: Math.max(to, from + SHORTEST) };
}

/** Sets the window, kept within the traces. @param {number} from @param {number} span */
export function show(from, span) {
  const all = extent();
  const whole = all.to - all.from;
  span = Math.min(Math.max(span, SHORTEST), whole * 1.04);
  const margin = span * 0.02;
  from = Math.min(Math.max(from, all.from - margin), all.to + margin - span);
  change({ from, span });
}

/** Zooms by a factor about an instant. @param {number} factor @param {number} [about] */
export function zoom(factor, about = state.from + state.span / 2) {
  const all = extent();
  const span = Math.min(Math.max(state.span * factor, SHORTEST), (all.to - all.from) * 1.04);
  show(about - ((about - state.from) * span) / state.span, span);
}

export function showAll() {
  const all = extent();
  show(all.from, all.to - all.from);
}

/** Writes the state into a text for the address. */
export function written() {
  const parts = new URLSearchParams();
  parts.set("w", `${Math.round(state.from)},${Math.round(state.span)}`);
  if (state.color !== firstColor(state.traces)) parts.set("c", state.color);
  if (state.filter) parts.set("f", state.filter);
  if (state.highlight) parts.set("h", `${state.highlight.trace},${state.highlight.pid}`);
  if (state.selection) parts.set("s", state.selection.map(Math.round).join());
  if (String(state.range) !== String(state.selection)) parts.set("r", state.range ? state.range.map(Math.round).join() : "all");
  for (const name of /** @type {("a" | "b")[]} */ (["a", "b"])) if (state.markers[name] !== null) parts.set(`m${name}`, String(Math.round(state.markers[name])));
  for (const note of state.notes) parts.append("nt", writtenNote(note));
  if (state.place) parts.set("p", `${state.place.trace},${state.place.cpu},${Math.round(state.place.time)}`);
  if (state.tab !== "window") parts.set("t", state.tab);
  if (state.list !== "episodes") parts.set("l", state.list);
  if (state.aligned) parts.set("al", state.aligned.map(Math.round).join());
  if (state.events) parts.set("v", state.events);
  if (state.eventCpus) parts.set("vc", state.eventCpus);
  if (state.table !== "task") parts.set("n", state.table);
  if (state.rule !== "task") parts.set("g", state.rule);
  for (const group of state.opened) parts.append("k", group);
  if (state.story) parts.set("e", `${state.story.trace},${Math.round(state.story.from)},${Math.round(state.story.to)}`);
  if (state.wait) parts.set("qw", [state.wait.trace, state.wait.pid, state.wait.from, state.wait.to].map(Math.round).join());
  if (state.rows) parts.set("q", state.rows);
  if (state.along) parts.set("cp", [state.along.trace, state.along.pid, ...(state.along.at === null ? [] : [Math.round(state.along.at)])].join());
  if (!state.trail) parts.set("ct", "0");
  if (state.order !== "waiting") parts.set("qo", state.order);
  if (state.paint !== "cpu") parts.set("qc", state.paint);
  if (state.pins.size) parts.set("qp", [...state.pins].join());
  if (state.lane) parts.set("z", String(state.lane));
  if (state.theme) parts.set("d", state.theme);
  if (state.hidden.size) parts.set("o", [...state.hidden].sort().join());
  const collapsed = state.traces.flatMap((trace) => [...trace.collapsed].map((group) => `${trace.index}:${group}`));
  if (!isFirst(state.traces)) parts.set("x", collapsed.join() || "none");
  return parts.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** Reads the state from the text of an address. Parts that do not parse have their default. @param {string} text */
export function read(text) {
  const parts = completed(new URLSearchParams(text));
  const numbers = (/** @type {string} */ key, /** @type {number} */ count) => {
    const values = (parts.get(key) ?? "").split(",").map(Number);
    return parts.has(key) && values.length === count && values.every(Number.isFinite) ? values : null;
  };
  const hidden = (parts.get("o") ?? "").split(",").filter(Boolean).map(Number).filter((plot) => plot in state.plots);
  const [color, tab, list, theme] = [parts.get("c"), parts.get("t"), parts.get("l"), parts.get("d")];
  const [highlight, selection, place, lane, story] = [numbers("h", 2), numbers("s", 2), numbers("p", 3), numbers("z", 1), numbers("e", 3)];
  const wait = numbers("qw", 4);
  const along = numbers("cp", 3) ?? numbers("cp", 2);
  const inOrder = (/** @type {number[] | null} */ window) => /** @type {[number, number] | null} */ (window && [Math.min(...window), Math.max(...window)]);
  const known = (/** @type {number} */ trace) => trace in state.traces;
  for (const trace of state.traces) {
    trace.collapsed.clear();
    if (!parts.has("x")) firstCollapsed(trace).forEach((key) => trace.collapsed.add(key));
  }
  for (const item of (parts.get("x") ?? "").split(",")) {
    const [trace, group] = item.split(":");
    if (!known(Number(trace)) || !group) continue;
    const { collapsed, head } = state.traces[Number(trace)];
    // A bare number is that of an outermost group, as older addresses have it.
    const key = /^[0-9]+$/.test(group) ? `${head.folds[0]?.kind[0]}${group}` : group;
    if (head.folds.some((fold) => keyOf(fold) === key)) collapsed.add(key);
  }
  change({
    color: WAYS.find((way) => way === color) ?? firstColor(state.traces),
    filter: (parts.get("f") ?? "").slice(0, 200),
    highlight: highlight && known(highlight[0]) ? { trace: highlight[0], pid: highlight[1] } : null,
    selection: inOrder(selection),
    range: inOrder(parts.has("r") ? numbers("r", 2) : selection),
    markers: { a: numbers("ma", 1)?.[0] ?? null, b: numbers("mb", 1)?.[0] ?? null },
    notes: readNotes(parts.getAll("nt")),
    place: place && known(place[0]) ? { trace: place[0], cpu: place[1], time: place[2] } : null,
    tab: tab && TABS.includes(tab) ? tab : "window",
    list: list && LISTS.includes(list) ? list : "episodes",
    aligned: state.traces.length > 1 ? numbers("al", state.traces.length) : null,
    events: (parts.get("v") ?? "").slice(0, 400),
    eventCpus: (parts.get("vc") ?? "").slice(0, 200),
    table: TABLES.find((by) => by === parts.get("n")) ?? "task",
    rule: RULES.find((rule) => rule === parts.get("g")) ?? "task",
    opened: new Set(parts.getAll("k").slice(0, 100)),
    story: story && known(story[0]) && story[1] < story[2] ? { trace: story[0], from: story[1], to: story[2] } : null,
    // A page without a server cannot say why a task waited.
    wait: wait && !state.static && known(wait[0]) && 0 <= wait[2] && wait[2] < wait[3] ? { trace: wait[0], pid: wait[1], from: wait[2], to: wait[3] } : null,
    row: null,
    along: along && known(along[0]) ? { trace: along[0], pid: along[1], at: along[2] ?? null } : null,
    trail: parts.get("ct") !== "0",
    rows: /^(|application|filter|pinned|path|tree:[0-9]+:[0-9]+|in:.*|(command|process|cgroup):=.*)$/s.test(parts.get("q") ?? "") ? (parts.get("q") ?? "").slice(0, 300) : "",
    order: ROW_ORDERS.find((order) => order === parts.get("qo")) ?? "waiting",
    paint: PAINTS.find((paint) => paint === parts.get("qc")) ?? "cpu",
    pins: new Set((parts.get("qp") ?? "").split(",").filter((pin) => /^[0-9]+:[0-9]+$/.test(pin)).slice(0, MOST_PINS)),
    lane: lane ? Math.min(Math.max(lane[0], 0), HIGHEST) : 0,
    hidden: new Set(hidden),
    theme: theme === "dark" || theme === "light" ? theme : "",
  });
  align();
  const window = numbers("w", 2);
  if (window) show(window[0], window[1]);
  else showAll();
}

/** Returns the task with this PID; the most recent one, if several had it. @param {Trace} trace @param {number} pid */
export const taskOf = (trace, pid) => trace.head.tasks.find((task) => task.pid === pid) ?? null;

/** @param {{ pid: number, comm: string }} task */
export const named = (task) => (task.comm ? `${task.comm} ${task.pid}` : String(task.pid));
