// Tiles of the rows of tasks: fetched for the rows in sight, many rows a request, and kept while there is room. A coarser one stands in.

import * as api from "./api.js";
import { standIn, thin } from "./keeping.js";

/** @typedef {import("./api.js").RowTile} RowTile */
/** A row of a tile. @typedef {{ key: string, level: number, tile: RowTile, row: number, used: number, picture: { key: string, canvas: OffscreenCanvas } | null }} KeptRow */
/** A row that was found, with the part of its tile that stands for the one that was asked for. @typedef {{ kept: KeptRow, first: number, columns: number }} FoundRow */

/** The number of rows of tiles that are kept. */
const ROOM = 6000;
/** The number of requests under way at once, and the number of rows of one. */
const [AT_ONCE, ROWS] = [3, 64];
/** The levels by which a tile is coarser that is requested first where none stands in. */
const SOONER = 4;

export class RowTiles {
  /** @param {number} trace @param {() => void} arrived */
  constructor(trace, arrived) {
    this.trace = trace;
    this.arrived = arrived;
    /** @type {Map<string, KeptRow>} */
    this.kept = new Map();
    /** The tiles that are wanted, each with its rows. @type {Map<string, { level: number, index: number, coarse: boolean, places: Set<number> }>} */
    this.wanted = new Map();
    /** The rows under way. @type {Set<string>} */
    this.underWay = new Set();
    this.requests = 0;
    /** The time of the next attempt, behind a failure. */
    this.pause = 0;
    this.clock = 0;
    /** The number of rows of tiles in view that are not there, nor any coarser one in their place. */
    this.missing = 0;
    this.levels = [0, 62];
    /** The finest level of which there are tiles. */
    this.finest = 0;
  }

  /** Begins a frame: what is wanted from now on is what is in view. */
  begin() {
    this.wanted.clear();
    this.missing = 0;
    this.clock++;
  }

  /** Returns the row of a tile, or of a coarser one. @param {number} level @param {number} index @param {number} place of the task
   * @returns {FoundRow | null} */
  get(level, index, place) {
    const least = Math.max(level, this.finest);
    const above = Math.floor(index / 2 ** (least - level));
    if (!this.kept.has(`${least}/${above}/${place}`)) this.want(least, above, place, false);
    const found = this.held(level, index, place);
    if (found) {
      found.kept.used = this.clock;
      return found;
    }
    this.missing++;
    const coarse = Math.min(Math.max(level + SOONER, least), this.levels[1]);
    this.want(coarse, Math.floor(index / 2 ** (coarse - level)), place, true);
    return null;
  }

  /** Returns the same as far as it is there, without asking for more. @param {number} level @param {number} index @param {number} place
   * @returns {FoundRow | null} */
  held(level, index, place) {
    return standIn(this.kept, (level, index) => `${level}/${index}/${place}`, level, index, this.levels[1]);
  }

  /** @param {number} level @param {number} index @param {number} place @param {boolean} coarse */
  want(level, index, place, coarse) {
    if (this.underWay.has(`${level}/${index}/${place}`)) return;
    const key = `${level}/${index}`;
    const wanted = this.wanted.get(key) ?? { level, index, coarse, places: new Set() };
    wanted.coarse ||= coarse;
    wanted.places.add(place);
    this.wanted.set(key, wanted);
  }

  /** Whether everything in view is there. */
  complete() {
    return this.wanted.size === 0 && this.requests === 0;
  }

  /** Ends a frame: requests what is wanted, coarse tiles first. */
  pump() {
    if (performance.now() < this.pause) return;
    const wanted = [...this.wanted.values()].sort((a, b) => Number(b.coarse) - Number(a.coarse));
    for (const { level, index, places } of wanted) {
      if (this.requests >= AT_ONCE) return;
      this.request(level, index, [...places].slice(0, ROWS));
    }
  }

  /** @param {number} level @param {number} index @param {number[]} places */
  async request(level, index, places) {
    const keys = places.map((place) => `${level}/${index}/${place}`);
    keys.forEach((key) => this.underWay.add(key));
    this.requests++;
    try {
      const tile = await api.rowTile(this.trace, level, index, places);
      tile.places.forEach((place, row) => {
        const key = `${level}/${index}/${place}`;
        if (!this.kept.has(key)) this.kept.set(key, { key, level, tile, row, used: this.clock, picture: null });
      });
      thin(this.kept, ROOM);
    } catch {
      this.pause = performance.now() + api.AGAIN;
      setTimeout(this.arrived, api.AGAIN + 1);
    }
    keys.forEach((key) => this.underWay.delete(key));
    this.requests--;
    this.arrived();
  }
}
