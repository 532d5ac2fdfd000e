// A group of CPUs as one lane: shares are those of all its CPUs' time, queues are summed.

import { IDLE, OFFLINE, UNKNOWN, WHOLE } from "./api.js";
import { runAt } from "./tiles.js";

/** @typedef {import("./api.js").LaneTile} LaneTile */

/** The number of shares kept in a column. */
const KEPT = 6;

/** @param {[LaneTile, number][]} lanes tiles of the same columns, each with the number of the lane in it @returns {LaneTile} */
export function average(lanes) {
  const columns = lanes[0][0].columns;
  /** @type {[number, number, Map<number, number>, number, number, number][]} */
  const runs = [];
  const places = lanes.map(([tile, lane]) => tile.first[lane]);
  for (let column = 0; column < columns; ) {
    let end = columns;
    /** @type {Map<number, number>} */
    const shares = new Map();
    let [least, mean, most] = [0, 0, 0];
    lanes.forEach(([tile, lane], n) => {
      if (tile.start[places[n]] + tile.length[places[n]] <= column) places[n] = runAt(tile, lane, column);
      const run = places[n];
      end = Math.min(end, tile.start[run] + tile.length[run]);
      for (let e = tile.entry[run]; e < tile.entry[run] + tile.entries[run]; e++) {
        shares.set(tile.ids[e], (shares.get(tile.ids[e]) ?? 0) + tile.shares[e]);
      }
      [least, mean, most] = [least + tile.queueMin[run], mean + tile.queueMean[run], most + tile.queueMax[run]];
    });
    runs.push([column, end - column, shares, least, mean, most]);
    column = end;
  }
  return packed(columns, runs, lanes.length);
}

/** @param {number} columns @param {[number, number, Map<number, number>, number, number, number][]} runs @param {number} cpus
 * @returns {LaneTile} */
function packed(columns, runs, cpus) {
  const [ids, shares] = [/** @type {number[]} */ ([]), /** @type {number[]} */ ([])];
  const [entry, entries] = [new Uint32Array(runs.length), new Uint8Array(runs.length)];
  runs.forEach(([, , all], n) => {
    entry[n] = ids.length;
    const special = [IDLE, UNKNOWN, OFFLINE];
    const sorted = [...all].sort((a, b) => b[1] - a[1]);
    const tasks = sorted.filter(([id]) => !special.includes(id));
    const rest = tasks.slice(KEPT).reduce((sum, [, share]) => sum + share, 0);
    const kept = [...tasks.slice(0, KEPT), ...sorted.filter(([id]) => special.includes(id))];
    if (rest > 0) kept.push([0xfffffffc, rest]);
    for (const [id, share] of kept) {
      ids.push(id);
      shares.push(Math.min(WHOLE, Math.round(share / cpus)));
    }
    entries[n] = kept.length;
  });
  return {
    columns,
    lanes: 1,
    first: Uint32Array.of(0, runs.length),
    start: Uint16Array.from(runs, (run) => run[0]),
    length: Uint16Array.from(runs, (run) => run[1]),
    entry,
    entries,
    queueMin: Uint8Array.from(runs, (run) => Math.min(255, run[3])),
    queueMean: Float32Array.from(runs, (run) => run[4]),
    queueMax: Uint8Array.from(runs, (run) => Math.min(255, run[5])),
    ids: Uint32Array.from(ids),
    shares: Uint16Array.from(shares),
  };
}
