// The server's answers: addresses, types and the layout of tiles. No other module holds an address or an offset.
// All addresses are relative, so that an exported folder serves the same page; its tiles are in packs.

import { Packs } from "./packs.js";

/** @typedef {{ cpu: number, node: number | null, llc: number | null, core: number | null, silent?: boolean }} CpuPlace */
/** A group of tasks: its name, and the place of its colour in the palette. @typedef {{ name: string, place: number | null }} Group */
/** A task. `groups` are there once they were requested; a group that is unknown is null.
 * @typedef {{ pid: number, comm: string, run: number, node: number | null, parent: number | null, class: string, place: number,
 *   command: number | null, groups?: Record<"command" | "process" | "cgroup", Group | null> }} Task */
/** A group of lanes that can be shown as one: its first lane and the one behind its last, the tile of sums that has it, and its place there.
 * @typedef {{ kind: "node" | "llc" | "core", number: number, lanes: [number, number], tile: number, lane: number }} Fold */
/** @typedef {{ name: string, kernel: string, clock: string, start: string, span: number, command: number | null, progress: number,
 *   full: boolean, readable: boolean, cpus: CpuPlace[], folds: Fold[], tasks: Task[], causes: string[], losses: number, recorded?: string[], stacks?: boolean, levels: [number, number], tile: { columns: number, lanes: number } }} Head */
/** A tile of lanes. The runs of lane `n` are those from `first[n]` up to `first[n + 1]`. A sampled run stands for what was not
 * read yet; its queue is unknown.
 * @typedef {{ columns: number, lanes: number, first: Uint32Array, start: Uint16Array, length: Uint16Array, entry: Uint32Array,
 *   entries: Uint8Array, queueMin: Uint32Array, queueMean: Float32Array, queueMax: Uint32Array, ids: Uint32Array,
 *   shares: Uint16Array, sampled: Uint8Array }} LaneTile */
/** A tile of the machine, one value per column. @typedef {{ columns: number, running: Float32Array, waiting: Float32Array,
 *   waitingMax: Float32Array, violation: Float32Array, causes: number, migrations: Uint32Array }} MachineTile */

/** A tile of rows of tasks. The runs of row `n` are those from `first[n]` up to `first[n + 1]`; a run has its states with their shares, the CPUs on
 * which the task ran with theirs, and the CPU of its longest wait, -1 without one; `queues` is 1 if it waited on others as well.
 * @typedef {{ columns: number, rows: number, first: Uint32Array, start: Uint16Array, length: Uint16Array, entry: Uint32Array, entries: Uint8Array,
 *   states: Uint8Array, shares: Uint16Array, named: Uint32Array, cpuCount: Uint8Array, cpus: Uint32Array, cpuShares: Uint16Array, queue: Int32Array,
 *   queues: Uint8Array }} RowTile */
/** The facts about the rows of tasks: the time of each task in each state, in ns, and the start of its first run, in the order of the tasks.
 * @typedef {{ states: string[], times: number[][], first: (number | null)[], levels?: [number, number] | null }} RowFacts */

/** A finding about a trace. `places`: instants in ns, each with its CPU, the first ones of many.
 * @typedef {{ severity: "note" | "repaired" | "incomplete" | "data-loss", text: string, places: [number, number][] }} Finding */

export const IDLE = 0xffffffff;
export const UNKNOWN = 0xfffffffe;
export const OFFLINE = 0xfffffffd;
export const OTHERS = 0xfffffffc;
/** Ids from here on are no tasks. */
export const NO_TASK = OTHERS;
/** The sum of the shares of a column. */
export const WHOLE = 65535;

const LANES_MAGIC = 0x32545653;
const MACHINE_MAGIC = 0x324d5653;
const ROWS_MAGIC = 0x31525653;

/** The time after which a request that failed is made again, in ms. */
export const AGAIN = 2000;

/** An answer other than success. */
export class Refused extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The server does not answer any more. */
export class Gone extends Error {}

/** The traces as the server named them, and whether it is one of static files. */
let served = { names: /** @type {string[]} */ ([]), static: false };

/** Whether the latest request reached the server. */
let isReached = true;

/** Returns the words about a server that does not answer; empty as long as it does. */
export function unreached() {
  if (isReached) return "";
  if (served.static) return "The web server of this page does not answer any more.";
  const word = (/** @type {string} */ name) => (/^[\w./+:@%-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
  const command = ["schedviz view", ...served.names.map(word)].join(" ");
  return `schedviz has ended, so that no further numbers can be read. Start it again (${command}) and open the address that it prints; the part of this address behind # shows the same view there.`;
}

/** @param {boolean} now */
function reach(now) {
  if (now === isReached) return;
  isReached = now;
  globalThis.dispatchEvent(new Event("reach"));
}

/** @param {string} path */
async function get(path) {
  let response;
  try {
    response = await fetch(path, { credentials: "omit", referrerPolicy: "no-referrer" });
  } catch {
    reach(false);
    throw new Gone(unreached());
  }
  reach(true);
  if (response.ok) return response;
  const text = (await response.text()).slice(0, 500);
  let fault = text || response.statusText;
  try {
    fault = JSON.parse(text).error ?? fault;
  } catch {
    // A server of static files answers in its own way.
  }
  throw new Refused(response.status, fault);
}

/** @param {string} path @param {Record<string, string | number>} [query] */
async function json(path, query) {
  return (await get(address(path, query))).json();
}

/** @param {string} path @param {Record<string, string | number>} [query] */
function address(path, query) {
  const text = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) text.set(key, typeof value === "number" ? String(Math.round(value)) : value);
  return query ? `${path}?${text}` : path;
}

/** The packs of each trace, where the page is served from a folder. @type {Packs[]} */
let packs = [];

/** @returns {Promise<{ traces: string[], static: boolean, plots: string[], view?: string }>} */
export async function traces() {
  const opened = await json("traces.json");
  served = { names: opened.traces, static: opened.static };
  packs = opened.static ? opened.traces.map((/** @type {string} */ _, /** @type {number} */ trace) => new Packs((name) => get(`t/${trace}/${name}`))) : [];
  return opened;
}

/** Returns the content of a tile of a series. @param {number} trace @param {string} series @param {number} level @param {number} place
 * @param {string} name @returns {Promise<ArrayBuffer>} */
async function content(trace, series, level, place, name) {
  if (packs.length === 0) return (await get(`t/${trace}/${name}`)).arrayBuffer();
  const found = await packs[trace].tile(series, level, place, name);
  if (!found) throw new Refused(404, "not in this folder");
  return found;
}

/** @param {number} trace @returns {Promise<Head>} */
export const head = (trace) => json(`t/${trace}/head.json`);

/** @param {number} trace @param {number} cpu @param {number} at */
export const at = (trace, cpu, at) => json(`t/${trace}/at.json`, { cpu, at });

/** @param {number} trace @param {number} pid @param {number} from @param {number} to */
export const task = (trace, pid, from, to) => json(`t/${trace}/task.json`, { pid, from, to });

/** The longest wait of a task in a window, and all that bears on it. @param {number} trace @param {number} pid @param {number} from @param {number} to */
export const wait = (trace, pid, from, to) => json(`t/${trace}/wait.json`, { pid, from, to });

/** A place among events: an instant in ns, and the number of chosen events of that instant before it. @typedef {{ ns: number, nth: number }} EventPlace */
/** An event; `lost` is the number of events that its CPU lost before it, 0 if that is unknown, null if none were.
 * @typedef {{ lost: number | null, at: number, nth: number, cpu: number, pid: number, comm: string, name: string, text: string }} ListedEvent */
/** Columns with events: each with a CPU, and with a task; `number` is null where they are too many.
 * @typedef {{ none?: string, number?: number | null, cpus?: [number, number][], tasks?: [number, number][] }} Ticks */

/** The events around a place; `none` is the reason for which there are none. @param {number} trace @param {Record<string, string | number>} query
 * @returns {Promise<{ none?: string, events?: ListedEvent[], before?: EventPlace | null, behind?: EventPlace | null }>} */
export const events = (trace, query) => json(`t/${trace}/events.json`, query);

/** @param {number} trace @param {Record<string, string | number>} query @returns {Promise<Ticks>} */
export const ticks = (trace, query) => json(`t/${trace}/ticks.json`, query);

/** What `compare` measures of a run: `better` is less, more or neither; a value is null where the trace does not show it.
 * @typedef {{ measures: { key: string, name: string, better: string, value: number | null }[], no_violation: string | null }} RunMeasures */

/** @param {number} trace @param {[number, number]} window @param {string} filter @returns {Promise<RunMeasures>} */
export const measures = (trace, [from, to], filter) => json(`t/${trace}/measures.json`, { from, to, ...(filter ? { filter } : {}) });

/** The kinds of events with their numbers. @param {number} trace @returns {Promise<{ system: string, name: string, count: number }[]>} */
export const kinds = async (trace) => (await json(`t/${trace}/kinds.json`)).kinds;

/** The numbers of a row of a table, lengths in ns; null is unknown. @typedef {Record<string, number | null>} TableNumbers */
/** @typedef {TableNumbers & { name: string, pid: number | null, cpu: number | null, group: string | null }} TableRow */
/** A page of a table. `chosen`: the number of tasks that pass the filter, null without one.
 * @typedef {{ by: string, rows: any[], number: number, skip: number, all: TableNumbers, chosen: number | null, missed_unknown: string | null,
 *   commands: { prints: string, line: string }[], trust: import("./trust.js").Trust }} TableAnswer */

/** A page of the table of a window, over the tasks that pass a filter. @param {number} trace @param {string} by @param {[number, number]} window
 * @param {string} filter @param {{ sort: string, down: boolean, skip: number, take: number }} page @returns {Promise<TableAnswer>} */
export function table(trace, by, [from, to], filter, { sort, down, skip, take }) {
  return json(`t/${trace}/table.json`, { by, from, to, ...(filter ? { filter } : {}), sort, down: Number(down), skip, take });
}

/** The stacks of a task in a window. @param {number} trace @param {number} pid @param {number} from @param {number} to
 * @returns {Promise<import("./stacks.js").Answer>} */
export const stacks = (trace, pid, from, to) => json(`t/${trace}/stacks.json`, { pid, from, to });

/** The numbers of a window, over the tasks that pass a filter. @param {number} trace @param {number} from @param {number} to @param {string} filter */
export const window = (trace, from, to, filter) => json(`t/${trace}/window.json`, filter ? { from, to, filter } : { from, to });

/** A list of the whole trace, or of a window; a filter chooses among waits. @param {number} trace @param {string} kind
 * @param {[number, number] | null} window @param {string} filter */
export function list(trace, kind, window, filter) {
  if (packs.length) return json(`t/${trace}/list/${kind}.json`);
  /** @type {Record<string, string | number>} */
  const query = { kind };
  if (window) [query.from, query.to] = window;
  if (filter) query.filter = filter;
  return json(`t/${trace}/list.json`, query);
}

/** The groups of the tasks by each rule: `of` has the place of each task's group, in the order of the tasks of the head. @param {number} trace
 * @returns {Promise<Record<"command" | "process" | "cgroup", { groups: Group[], of: (number | null)[] }>>} */
export const groups = (trace) => json(`t/${trace}/groups.json`);

/** The findings about a trace, the gravest first, with their places in ns; and the judgement on its numbers. @param {number} trace
 * @returns {Promise<{ findings: Finding[], trust: import("./trust.js").Trust }>} */
export const findings = (trace) => json(`t/${trace}/findings.json`);

/** One of the main findings: its list on the page, and its place in ns. @typedef {{ sentence: string, price: string | null, command: string,
 *   list: string | null, place: { from: number, to: number, cpu: number, pid: number | null, more: "wait" | "steps" | null } | null }} MainFinding */

/** The main findings about a trace, the costliest first. @param {number} trace
 * @returns {Promise<{ unit: string, nothing: string | null, findings: MainFinding[] }>} */
export const mainFindings = (trace) => json(`t/${trace}/main.json`);

/** The episode of violation from `from` to `to`, step by step. @param {number} trace @param {number} from @param {number} to */
export const story = (trace, from, to) => json(`t/${trace}/story.json`, { from, to });

/** A place in a search: an instant in ns, and the number of finds from there on that were listed before. @typedef {{ from: number, skip: number }} FoundPlace */

/** @param {number} trace @param {string} text @param {FoundPlace} [place] */
export const search = (trace, text, place) => json(`t/${trace}/search.json`, { q: text, ...place });

/** @param {number} trace @param {Record<string, string | number>} query @returns {Promise<{ command: string }>} */
export const command = (trace, query) => json(`t/${trace}/command.json`, query);

/** The facts about the figure of a specification. @param {number} trace @param {number} plot */
export const plot = (trace, plot) => json(`t/${trace}/plot/${plot}.json`);

/** @param {number} trace @param {number} plot @param {number} level @param {number} index @returns {Promise<import("./plots.js").Block>} */
export async function plotBlock(trace, plot, level, index) {
  const block = await content(trace, `plot/${plot}`, level, index, `plot/${plot}/${level}/${index}.json`);
  return JSON.parse(new TextDecoder().decode(block));
}

/** @param {number} trace @param {number} plot @param {number} lane @param {number} depth @param {number} at */
export const plotBar = (trace, plot, lane, depth, at) => json(`t/${trace}/plot/${plot}/bar.json`, { lane, depth, at });

/** @param {number} trace @param {number} plot @param {number} from @param {number} to */
export const plotNumbers = (trace, plot, from, to) => json(`t/${trace}/plot/${plot}/numbers.json`, { from, to });

/** Returns the address of the window's figure. @param {number} trace @param {string} format
 * @param {Record<string, string | number>} query */
export const figure = (trace, format, query) => address(`t/${trace}/figure.${format}`, query);

/** @param {number} trace @param {number} level @param {number} group @param {number} index */
export async function laneTile(trace, level, group, index) {
  return decodeLanes(await content(trace, "tiles", level, index, `lanes/${level}/${group}/${index}.bin`));
}

/** Groups of lanes, each as one. @param {number} trace @param {number} level @param {number} sums the number of the tile among those of a
 * level @param {number} index */
export async function sumTile(trace, level, sums, index) {
  return decodeLanes(await content(trace, "tiles", level, index, `sums/${level}/${sums}/${index}.bin`));
}

/** The same with commands in place of tasks: each by the first of its tasks. @param {number} trace @param {number} level @param {number} sums
 * @param {number} index */
export async function commandTile(trace, level, sums, index) {
  return decodeLanes(await content(trace, "tiles", level, index, `commands/${level}/${sums}/${index}.bin`));
}

/** @param {number} trace @param {number} level @param {number} index */
export async function machineTile(trace, level, index) {
  return decodeMachine(await content(trace, "tiles", level, index, `machine/${level}/${index}.bin`));
}

/** The numbers of all tasks in an exported folder; null in one without. @param {number} trace @returns {Promise<import("./offline.js").TaskFile | null>} */
export const taskFile = (trace) => json(`t/${trace}/tasks.json`);

/** The facts about the rows of tasks; null in a folder without rows. @param {number} trace @returns {Promise<RowFacts | null>} */
export const rowFacts = (trace) => json(`t/${trace}/rows.json`);

/** A part of the critical path: its edges in ns, the task that has most of it and the CPU of that, the number of its tasks, and its time in each state,
 * by the place of the state. @typedef {[number, number, number, number | null, number, [number, number][]]} PathPart */
/** The critical path in a window; `none` is the reason for which there is none.
 * @typedef {{ none?: string, states: string[], task: { pid: number, command: string } | null, is_untrusted: boolean, is_cut: boolean, parts: PathPart[] }} PathAnswer */
/** The numbers of the critical path of a window, in ns; `none` is the reason for which there is none.
 * @typedef {{ none?: string, task: { pid: number, command: string } | null, ends_with_exit: boolean, length: number, times: Record<string, number | null>,
 *   possible_ns: number, is_untrusted: boolean, is_cut: boolean, tasks: any[], tasks_number: number, command: string }} PathNumbers */

/** The task whose critical path is asked for, and the instant from which it goes back, in ns; without them it is the application's.
 * @typedef {{ of?: number, at?: number }} PathTask */

/** The row of a critical path. @param {number} trace @param {number} from @param {number} to @param {number} columns @param {PathTask} task
 * @returns {Promise<PathAnswer>} */
export const path = (trace, from, to, columns, task) => json(`t/${trace}/path.json`, { from, to, columns, ...task });

/** @param {number} trace @param {number} from @param {number} to @param {PathTask} task @returns {Promise<PathNumbers>} */
export const pathNumbers = (trace, from, to, task) => json(`t/${trace}/path-numbers.json`, { from, to, ...task });

/** The PIDs of the tasks on a critical path, those with the most time first, and their number. @param {number} trace @param {PathTask} task
 * @returns {Promise<{ none?: string, tasks: number[], number: number }>} */
export const pathTasks = (trace, task) => json(`t/${trace}/path-tasks.json`, task);

/** The part of a task's wait that lies on a critical path, in ns, and what of the path is unknown within the wait.
 * @typedef {{ none?: string, queued: number, unknown: number, task: { pid: number, command: string } | null, is_untrusted: boolean }} PathShare */

/** @param {number} trace @param {number} pid @param {number} from @param {number} to @param {PathTask} task @returns {Promise<PathShare>} */
export const pathShare = (trace, pid, from, to, task) => json(`t/${trace}/path-share.json`, { pid, from, to, ...task });

/** The wakeups of a window, and the number of all, null for a window that is too long.
 * @typedef {{ wakeups: import("./rowarrows.js").Wakeup[], number: number | null }} WakeupsAnswer */

/** @param {number} trace @param {number} from @param {number} to @returns {Promise<WakeupsAnswer>} */
export const wakeups = (trace, from, to) => json(`t/${trace}/wakeups.json`, { from, to });

/** The number of tasks of a tile of rows in a folder. */
const TOGETHER = 64;

/** The rows of tasks, by their places among the tasks of the head; a folder has those of neighbours together. @param {number} trace @param {number} level
 * @param {number} index @param {number[]} places @returns {Promise<RowTile & { places: number[] }>} */
export async function rowTile(trace, level, index, places) {
  if (packs.length) {
    const group = Math.floor(places[0] / TOGETHER);
    const tile = decodeRows(await content(trace, "rows", level, index, `rows/${level}/${index}/${group}.bin`));
    return { ...tile, places: Array.from({ length: tile.rows }, (_, row) => group * TOGETHER + row) };
  }
  const tile = await serverRows(trace, level, index, places);
  return { ...tile, places };
}

/** @param {number} trace @param {number} level @param {number} index @param {number[]} places */
async function serverRows(trace, level, index, places) {
  return decodeRows(await (await get(`t/${trace}/rows/${level}/${index}.bin?of=${places.join()}`)).arrayBuffer());
}

/** Reads numbers of a tile one after another. */
class Bytes {
  /** @param {ArrayBuffer} buffer @param {number} at */
  constructor(buffer, at) {
    this.bytes = new Uint8Array(buffer);
    this.at = at;
  }

  byte() {
    if (this.at >= this.bytes.length) throw new Error("a tile ends early");
    return this.bytes[this.at++];
  }

  /** A number of few bytes: seven bits in each, the lowest first. */
  number() {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = this.byte();
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  }

  short() {
    return this.byte() + 256 * this.byte();
  }
}

/** The stored number of an occupant is its distance from this one. */
const FIRST_ID = OTHERS;
/** The bits of a column with a queue, of one that is sampled, and of the number of entries. */
const [QUEUE, SAMPLED, COUNT] = [128, 64, 7];

/** @param {ArrayBuffer} buffer @returns {LaneTile} */
export function decodeLanes(buffer) {
  const data = new DataView(buffer);
  if (buffer.byteLength < 8 || data.getUint32(0, true) !== LANES_MAGIC) throw new Error("not a tile of lanes");
  const [columns, lanes] = [data.getUint16(4, true), data.getUint16(6, true)];
  const bound = Math.floor(buffer.byteLength / 2);
  const first = new Uint32Array(lanes + 1);
  const start = new Uint16Array(bound), length = new Uint16Array(bound), entry = new Uint32Array(bound), entries = new Uint8Array(bound);
  const sampled = new Uint8Array(bound), queueMin = new Uint32Array(bound), queueMean = new Float32Array(bound), queueMax = new Uint32Array(bound);
  const ids = new Uint32Array(bound * 2), shares = new Uint16Array(bound * 2);
  const bytes = new Bytes(buffer, 8);
  let [run, next] = [0, 0];
  for (let lane = 0; lane < lanes; lane++) {
    for (let column = 0; column < columns; run++) {
      start[run] = column;
      length[run] = Math.min(bytes.byte() + 1, columns - column);
      column += length[run];
      const head = bytes.byte();
      if (head & QUEUE) {
        queueMin[run] = bytes.number();
        queueMax[run] = bytes.number();
        queueMean[run] = bytes.number() / 256;
      }
      sampled[run] = head & SAMPLED ? 1 : 0;
      entries[run] = head & COUNT;
      entry[run] = next;
      // The first entry has what the others leave.
      for (let n = 0, rest = WHOLE; n < entries[run]; n++, next++) {
        ids[next] = bytes.number() + FIRST_ID;
        if (n > 0) rest -= shares[next] = bytes.short();
        shares[entry[run]] = rest;
      }
    }
    first[lane + 1] = run;
  }
  return { columns, lanes, first, start, length, entry, entries, queueMin, queueMean, queueMax, ids, shares, sampled };
}

/** The states of a task that runs, and those in which it waits for a CPU, by their numbers. */
const [RUNNING, FIRST_QUEUED, LAST_QUEUED] = [0, 1, 5];
/** The bit of a column with all of its running time on one CPU. */
const ALONE = 128;

/** @param {ArrayBuffer} buffer @returns {RowTile} */
export function decodeRows(buffer) {
  const data = new DataView(buffer);
  if (buffer.byteLength < 8 || data.getUint32(0, true) !== ROWS_MAGIC) throw new Error("not a tile of rows");
  const [columns, rows] = [data.getUint16(4, true), data.getUint16(6, true)];
  const bound = buffer.byteLength;
  const first = new Uint32Array(rows + 1), runs = Math.ceil(bound / 2);
  const start = new Uint16Array(runs), length = new Uint16Array(runs), entry = new Uint32Array(runs), entries = new Uint8Array(runs);
  const named = new Uint32Array(runs), cpuCount = new Uint8Array(runs), queue = new Int32Array(runs).fill(-1), queues = new Uint8Array(runs);
  const states = new Uint8Array(bound), shares = new Uint16Array(bound), cpus = new Uint32Array(bound), cpuShares = new Uint16Array(bound);
  const bytes = new Bytes(buffer, 8);
  let [run, next, cpu] = [0, 0, 0];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; run++) {
      start[run] = column;
      length[run] = Math.min(bytes.byte() + 1, columns - column);
      column += length[run];
      [entries[run], entry[run], named[run]] = [bytes.byte(), next, cpu];
      let [rest, ran, waits] = [WHOLE, 0, false];
      for (let n = 0; n < entries[run]; n++, next++) {
        states[next] = bytes.byte();
        if (n > 0) rest -= shares[next] = bytes.short();
        waits ||= states[next] >= FIRST_QUEUED && states[next] <= LAST_QUEUED;
      }
      if (entries[run] > 0) shares[entry[run]] = rest;
      for (let n = entry[run]; n < next; n++) if (states[n] === RUNNING) ran = shares[n];
      if (ran > 0) {
        const head = bytes.byte();
        cpuCount[run] = head & ~ALONE;
        for (let n = 0; n < cpuCount[run]; n++, cpu++) {
          cpus[cpu] = bytes.number();
          cpuShares[cpu] = head & ALONE ? ran : bytes.short();
        }
      }
      if (waits) {
        const place = bytes.number();
        [queue[run], queues[run]] = [Math.floor(place / 2), place % 2];
      }
    }
    first[row + 1] = run;
  }
  return { columns, rows, first, start, length, entry, entries, states, shares, named, cpuCount, cpus, cpuShares, queue, queues };
}

/** @param {ArrayBuffer} buffer @returns {MachineTile} */
export function decodeMachine(buffer) {
  const data = new DataView(buffer);
  if (buffer.byteLength < 8 || data.getUint32(0, true) !== MACHINE_MAGIC) throw new Error("not a tile of the machine");
  const [columns, causes] = [data.getUint16(4, true), data.getUint16(6, true)];
  const values = [0, 1, 2, 3].map(() => new Float32Array(columns));
  const migrations = new Uint32Array(columns * causes);
  const bytes = new Bytes(buffer, 8);
  for (let column = 0; column < columns; ) {
    const end = Math.min(column + bytes.byte() + 1, columns);
    if (bytes.at + 16 > buffer.byteLength) throw new Error("a tile ends early");
    values.forEach((series, n) => series.fill(data.getFloat32(bytes.at + 4 * n, true), column, end));
    bytes.at += 16;
    for (let rest = bytes.number(); rest > 0; rest--) {
      const [cause, count] = [bytes.number(), bytes.number()];
      for (let at = column; at < end && cause < causes; at++) migrations[at * causes + cause] = count;
    }
    column = end;
  }
  const [running, waiting, waitingMax, violation] = values;
  return { columns, running, waiting, waitingMax, violation, causes, migrations };
}
