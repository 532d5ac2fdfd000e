// The numbers of a page without a server: a folder has no answers, but what they are made of. Windows and instants are read from the columns of
// tiles, tasks from the numbers that the folder has of each (crates/view/src/export/task_numbers.rs).

import * as api from "./api.js";
import { IDLE, NO_TASK, OFFLINE, OTHERS, UNKNOWN, WHOLE } from "./api.js";
import { runAt } from "./tiles.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").LaneTile} LaneTile */
/** @typedef {import("./api.js").MachineTile} MachineTile */
/** A tile that stands for a part of a window: its columns begin at `start`, each `column` long, in ns. @template T @typedef {{ tile: T, start: number, column: number, from: number, to: number }} Part */

/** The number of columns that are read of a window. */
const COLUMNS = 512;
/** The number of tasks of a window that are listed. */
const TASKS = 20;

/** Returns the parts of a window by the tiles that hold them, a coarser tile where the folder has no finer one. @template T @param {Trace} trace
 * @param {number} level @param {number} from @param {number} to @param {(level: number, index: number) => Promise<T>} get @returns {Promise<Part<T>[]>} */
async function partsOf(trace, level, from, to, get) {
  const { tile: { columns }, levels } = trace.head;
  /** @type {Part<T>[]} */
  const parts = [];
  const length = columns * 2 ** level;
  for (let index = Math.floor(from / length); index * length < to; index++) {
    const [begin, end] = [Math.max(from, index * length), Math.min(to, (index + 1) * length)];
    for (let up = level; up <= levels[1]; up++) {
      try {
        const place = Math.floor(index / 2 ** (up - level));
        parts.push({ tile: await get(up, place), start: place * columns * 2 ** up, column: 2 ** up, from: begin, to: end });
        break;
      } catch (error) {
        if (!(error instanceof api.Refused)) throw error;
      }
    }
  }
  return parts;
}

/** Calls `each` for the columns of a part with the time of each that is in it. @template {{ columns: number }} T @param {Part<T>} part
 * @param {(column: number, ns: number) => void} each */
function columnsOf({ tile, start, column, from, to }, each) {
  const first = Math.max(0, Math.floor((from - start) / column));
  for (let n = first; n < tile.columns && start + n * column < to; n++) {
    each(n, Math.min(to, start + (n + 1) * column) - Math.max(from, start + n * column));
  }
}

/** The level whose columns divide a window finely enough. @param {Trace} trace @param {number} length in ns */
function levelOf({ head }, length) {
  const level = Math.ceil(Math.log2(Math.max(1, length / COLUMNS)));
  return Math.min(Math.max(level, head.levels[0]), head.levels[1]);
}

/** The number of tiles of lanes at one level and place. @param {Trace} trace */
const groupsOf = ({ head }) => Math.ceil(head.cpus.length / head.tile.lanes);

/** The numbers of a window in the form of the server's, summed from columns: those at its edges count by their parts. `column`: the length of the
 * coarsest ones. @param {Trace} trace @param {number} from @param {number} to */
export async function windowNumbers(trace, from, to) {
  const level = levelOf(trace, to - from);
  const sums = { running: 0, waiting: 0, violation: 0, busy: 0, idle: 0, unknown: 0, offline: 0, column: 0 };
  const migrations = new Array(trace.head.causes.length).fill(0);
  for (const part of await partsOf(trace, level, from, to, (up, index) => api.machineTile(trace.index, up, index))) {
    sums.column = Math.max(sums.column, part.column);
    columnsOf(part, (n, ns) => {
      const { tile } = part;
      if (Number.isNaN(tile.running[n])) return;
      sums.running += tile.running[n] * ns;
      sums.waiting += tile.waiting[n] * ns;
      sums.violation += tile.violation[n] * ns;
      for (let cause = 0; cause < Math.min(tile.causes, migrations.length); cause++) migrations[cause] += (tile.migrations[n * tile.causes + cause] * ns) / part.column;
    });
  }
  /** @type {Map<number, number>} */
  const tasks = new Map();
  for (let group = 0; group < groupsOf(trace); group++) {
    const parts = await partsOf(trace, level, from, to, (up, index) => api.laneTile(trace.index, up, group, index));
    for (const part of parts) {
      for (let lane = 0; lane < part.tile.lanes; lane++) {
        if (!trace.head.cpus[group * trace.head.tile.lanes + lane]?.silent) addLane(part, lane, sums, tasks);
      }
    }
  }
  const longest = [...tasks].sort((a, b) => b[1] - a[1]).slice(0, TASKS);
  return { ...sums, tasks: longest, migrations: migrations.map(Math.round), trust: undefined };
}

/** Adds a lane of a part to the sums. @param {Part<LaneTile>} part @param {number} lane
 * @param {{ busy: number, idle: number, unknown: number, offline: number }} sums @param {Map<number, number>} tasks */
function addLane(part, lane, sums, tasks) {
  const { tile } = part;
  columnsOf(part, (column, ns) => {
    const run = runAt(tile, lane, column);
    for (let n = tile.entry[run]; n < tile.entry[run] + tile.entries[run]; n++) {
      const [id, time] = [tile.ids[n], (ns * tile.shares[n]) / WHOLE];
      if (id === IDLE) sums.idle += time;
      else if (id === UNKNOWN) sums.unknown += time;
      else if (id === OFFLINE) sums.offline += time;
      else sums.busy += time;
      if (id < NO_TASK) tasks.set(id, (tasks.get(id) ?? 0) + time);
    }
  });
}

/** What a column of a lane has: its tasks with their shares, and the length of its queue. @typedef {{ cpu: number, column: number, shares: [number, number][],
 *   least: number, mean: number, most: number }} AtCpu */

/** All CPUs in the finest columns of an instant. @param {Trace} trace @param {number} time of the trace's own @returns {Promise<AtCpu[]>} */
export async function instant(trace, time) {
  /** @type {AtCpu[]} */
  const cpus = [];
  for (let group = 0; group < groupsOf(trace); group++) {
    const [part] = await partsOf(trace, trace.head.levels[0], time, time + 1, (up, index) => api.laneTile(trace.index, up, group, index));
    if (!part) continue;
    const { tile } = part;
    const column = Math.min(tile.columns - 1, Math.floor((time - part.start) / part.column));
    for (let lane = 0; lane < tile.lanes; lane++) {
      const place = trace.head.cpus[group * trace.head.tile.lanes + lane];
      if (!place) continue;
      const run = runAt(tile, lane, column);
      /** @type {[number, number][]} */
      const shares = Array.from({ length: tile.entries[run] }, (_, n) => [tile.ids[tile.entry[run] + n], tile.shares[tile.entry[run] + n] / WHOLE]);
      cpus.push({ cpu: place.cpu, column: part.column, shares: shares.sort((a, b) => b[1] - a[1]), least: tile.queueMin[run], mean: tile.queueMean[run], most: tile.queueMax[run] });
    }
  }
  return cpus;
}

/** The words for what is no task. @type {Map<number, string>} */
export const WORDS = new Map([[IDLE, "idle"], [UNKNOWN, "unknown"], [OFFLINE, "offline"], [OTHERS, "other tasks"]]);

/** The numbers of the tasks that a folder has. @typedef {{ from: number, to: number, tasks: Record<string, { numbers: any, waits: any[] }> }} TaskFile */
/** @type {WeakMap<Trace, Promise<TaskFile | null>>} */
const files = new WeakMap();

/** The numbers and the longest waits of a task in the window of the folder, in the form of the server's answer; null for a task that is not there.
 * @param {Trace} trace @param {number} pid */
export async function taskNumbers(trace, pid) {
  const file = await (files.get(trace) ?? files.set(trace, api.taskFile(trace.index)).get(trace));
  const found = file && Object.hasOwn(file.tasks, pid) ? file.tasks[pid] : null;
  if (!file) throw new Error("This copy has no numbers of tasks: its trace has more than 4,096 of them, or more than four million events.");
  if (!found) throw new Error("Nothing of this task is in the window of this copy.");
  return { runs: [], wakeups: [], woke: [], migrations: [], truncated: false, ...found, window: [file.from, file.to] };
}
