// Tiles of one trace: fetched as they come into view, kept while there is room. A coarser tile stands in for a finer one.

import * as api from "./api.js";
import { standIn, thin } from "./keeping.js";

/** @typedef {import("./api.js").LaneTile} LaneTile */
/** @typedef {import("./api.js").MachineTile} MachineTile */
/** @typedef {{ key: string, level: number, group: number, index: number, tile: LaneTile | MachineTile, stale: boolean, used: number }} Kept */

/** The number of tiles kept. */
const ROOM = 6000;
/** The number of requests under way at once. */
const AT_ONCE = 6;
/** The levels by which a tile is coarser that is requested first where none stands in: it takes the place of sixteen. */
const SOONER = 4;
/** The order of requests: coarse tiles where there are none yet before fine ones, the rows of the machine before lanes. */
const [RANK_COARSE, RANK_FINE] = [0, 2];
/** The group of the machine's own tiles. */
export const MACHINE = -1;
/** The group of a tile of sums; the same function leads back. @param {number} sums the number of the tile among those of a level */
export const sumGroup = (sums) => MACHINE - 1 - sums;
/** The greatest group of tiles of sums by command, below those of sums by task: a machine has fewer of these. */
const COMMANDS = -(2 ** 20);
/** The group of a tile of sums by command. @param {number} sums the number of the tile among those of a level */
export const commandGroup = (sums) => COMMANDS - sums;

export class Tiles {
  /** @param {number} trace @param {() => void} arrived */
  constructor(trace, arrived) {
    this.trace = trace;
    this.arrived = arrived;
    /** @type {Map<string, Kept>} */
    this.kept = new Map();
    /** @type {Map<string, number>} the tiles that a request failed for, with the time of the next attempt, Infinity for none */
    this.failed = new Map();
    this.under_way = new Set();
    /** Tiles by their keys: level, group, index and rank. @type {Map<string, [number, number, number, number]>} */
    this.wanted = new Map();
    this.clock = 0;
    /** The lowest and highest index that a frame asked for, by level and group. @type {Map<string, [number, number, number, number]>} */
    this.asked = new Map();
    /** The number of tiles in view that are not there, nor any coarser one in their place. */
    this.missing = 0;
    /** The number of tiles in view in whose place a coarser one stands until they arrive. */
    this.coarse = 0;
    /** Whether there are tiles: at first nothing was read. */
    this.readable = false;
    /** Whether a tile is within the trace. */
    this.exists = (/** @type {number} */ _level, /** @type {number} */ index) => index >= 0;
    /** The finest and the coarsest level that exist. */
    this.levels = [0, 62];
  }

  /** Begins a frame: what is wanted from now on is what is in view. */
  begin() {
    this.wanted.clear();
    this.asked.clear();
    this.missing = this.coarse = 0;
    this.clock++;
  }

  /** Marks all tiles as out of date: each is drawn until its successor arrives, as the index grows. */
  renew() {
    for (const kept of this.kept.values()) kept.stale = true;
    this.failed.clear();
  }

  /** Returns the tile, or a coarser one with the part of it that stands in: its first column and its number of columns.
   * @param {number} level @param {number} group @param {number} index
   * @returns {{ kept: Kept, first: number, columns: number } | null} */
  get(level, group, index) {
    const asked = this.asked.get(`${level}/${group}`);
    if (asked) [asked[2], asked[3]] = [Math.min(asked[2], index), Math.max(asked[3], index)];
    else this.asked.set(`${level}/${group}`, [level, group, index, index]);
    this.want(level, group, index);
    const found = this.held(level, group, index);
    if (found) {
      found.kept.used = this.clock;
      this.coarse += Number(found.kept.level > level && this.wanted.has(`${level}/${group}/${index}`));
      return found;
    }
    this.missing++;
    const coarse = Math.min(level + SOONER, this.levels[1]);
    this.want(coarse, group, Math.floor(index / 2 ** (coarse - level)), RANK_COARSE);
    return null;
  }

  /** Returns the same as far as it is there, without asking for more. @param {number} level @param {number} group @param {number} index
   * @returns {{ kept: Kept, first: number, columns: number } | null} */
  held(level, group, index) {
    return standIn(this.kept, (level, index) => `${level}/${group}/${index}`, level, index, this.levels[1]);
  }

  /** Whether everything in view is there. */
  complete() {
    return this.wanted.size === 0 && this.under_way.size === 0;
  }

  /** Asks for the tiles that a move of the window brings into view next. @param {number} way 1 to the right, -1 to the left */
  ahead(way) {
    for (const [level, group, first, last] of this.asked.values()) {
      const index = way > 0 ? last + 1 : first - 1;
      if (this.exists(level, index)) this.want(level, group, index);
    }
  }

  /** Notes a tile as wanted, unless it is there. @param {number} level @param {number} group @param {number} index @param {number} [rank] */
  want(level, group, index, rank = RANK_FINE) {
    const key = `${level}/${group}/${index}`;
    const kept = this.kept.get(key);
    if ((!kept || kept.stale) && this.failed.get(key) !== Infinity) this.wanted.set(key, [level, group, index, group === MACHINE ? rank : rank + 1]);
  }

  /** Ends a frame: requests what is wanted by rank, and then in the order of the wishes. */
  pump() {
    if (!this.readable) return;
    const now = performance.now();
    const wanted = [...this.wanted].sort(([, a], [, b]) => a[3] - b[3]);
    for (const [key, [level, group, index]] of wanted) {
      if (this.under_way.size >= AT_ONCE) return;
      if (this.under_way.has(key) || (this.failed.get(key) ?? 0) > now) continue;
      this.under_way.add(key);
      this.request(level, group, index).then(
        (tile) => this.keep({ key, level, group, index, tile, stale: false, used: this.clock }),
        // A tile that does not exist never will: an exported folder holds fine ones of a window alone.
        (error) => this.fail(key, error instanceof api.Refused && error.status === 404),
      ).finally(() => {
        this.under_way.delete(key);
        this.arrived();
      });
    }
  }

  /** Notes that a request failed; unless that is for ever, a frame asks again after some time. @param {string} key @param {boolean} forever */
  fail(key, forever) {
    this.failed.set(key, forever ? Infinity : performance.now() + api.AGAIN);
    if (!forever) setTimeout(this.arrived, api.AGAIN + 1);
  }

  /** @param {number} level @param {number} group @param {number} index @returns {Promise<LaneTile | MachineTile>} */
  request(level, group, index) {
    if (group === MACHINE) return api.machineTile(this.trace, level, index);
    if (group <= COMMANDS) return api.commandTile(this.trace, level, COMMANDS - group, index);
    return group < MACHINE ? api.sumTile(this.trace, level, sumGroup(group), index) : api.laneTile(this.trace, level, group, index);
  }

  /** @param {Kept} kept */
  keep(kept) {
    this.kept.set(kept.key, kept);
    thin(this.kept, ROOM);
  }
}

/** Calls `each` for the runs of columns of a lane that overlap the columns from `from` up to `to`.
 * @param {LaneTile} tile @param {number} lane @param {number} from @param {number} to @param {(run: number) => void} each */
export function runsWithin(tile, lane, from, to, each) {
  for (let run = tile.first[lane]; run < tile.first[lane + 1]; run++) {
    if (tile.start[run] >= to) return;
    if (tile.start[run] + tile.length[run] > from) each(run);
  }
}

/** Returns the run of columns that holds this column. @param {LaneTile} tile @param {number} lane @param {number} column */
export function runAt(tile, lane, column) {
  let [low, high] = [tile.first[lane], tile.first[lane + 1] - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tile.start[middle] <= column) low = middle;
    else high = middle - 1;
  }
  return low;
}
