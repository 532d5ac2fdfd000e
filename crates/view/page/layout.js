// The places of lanes: CPUs within nodes, last-level caches and cores, each of which can be shown as one lane.

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./api.js").Fold} Fold */
/** A row of the timeline: a CPU, or a collapsed group. `place` is the place of its first CPU in the head; `members` are the places of a
 * group's CPUs, `fold` is its place among the head's groups. A silent row is that of a CPU without events.
 * @typedef {{ y: number, height: number, bar: number, strip: number, place: number, cpu: number, members: number[] | null, fold: number, silent: boolean }} Row */
/** A group in view: `fold` is its place among the head's groups, `depth` that of its kind.
 * @typedef {{ fold: number, depth: number, name: string, y: number, height: number, collapsed: boolean }} Group */
/** @typedef {{ rows: Row[], groups: Group[], pitch: number, bar: number, strip: number, height: number, byCpu: Map<number, Row> }} Layout */
/** A row before its height is known: the gap above it, and its CPUs. @typedef {{ gap: number, place: number, count: number, fold: number, silent: boolean }} Line */

/** The kinds of groups with their names, from the outermost on. @type {[Fold["kind"], string][]} */
export const KINDS = [["node", "node"], ["llc", "LLC"], ["core", "core"]];
/** The gaps between groups of these kinds, in CSS pixels. */
const GAPS = { node: 5, llc: 3, core: 1 };
/** The number of CPUs from which cores are not set apart. */
const MANY = 64;
/** The lowest and the highest lane, in CSS pixels: those of few CPUs fill the height of a large screen. */
export const [LOWEST, HIGHEST] = [2, 160];
/** The height of the lane of a CPU without events where there is more room, in CSS pixels. */
const SILENT = 14;
/** The least heights of collapsed groups that are drawn as one, two and three lanes, in CSS pixels. */
const LEAST = [0, 12, 24];

/** @param {Fold} fold */
export const nameOf = (fold) => `${KINDS.find(([kind]) => kind === fold.kind)?.[1]} ${fold.number}`;

/** Returns the text that stands for a group in the address. @param {Fold} fold */
export const keyOf = (fold) => fold.kind[0] + fold.number;

/** The kinds of groups that a trace has, from the outermost on. @param {Trace} trace */
export const kindsOf = (trace) => KINDS.map(([kind]) => kind).filter((kind) => trace.head.folds.some((fold) => fold.kind === kind));

/** The groups that hold a lane, from the outermost on, by their places among the head's. @param {Trace} trace @param {number} place */
export function around(trace, place) {
  return trace.head.folds.flatMap((fold, at) => (fold.lanes[0] <= place && place < fold.lanes[1] ? [at] : []));
}

/** Returns the outermost collapsed group of each lane, -1 for none. @param {Trace} trace */
function collapsedOf(trace) {
  const found = new Int32Array(trace.head.cpus.length).fill(-1);
  // The head has the outermost groups first.
  trace.head.folds.forEach((fold, at) => {
    if (!trace.collapsed.has(keyOf(fold)) || found[fold.lanes[0]] >= 0) return;
    found.fill(at, ...fold.lanes);
  });
  return found;
}

/** Returns the rows from above to below, without heights. @param {Trace} trace @param {Int32Array} collapsed @param {number} scale
 * @returns {Line[]} */
function linesOf(trace, collapsed, scale) {
  const cpus = trace.head.cpus;
  const gap = (/** @type {number} */ place) => {
    if (place === 0) return 0;
    const apart = KINDS.find(([kind]) => cpus[place][kind] !== cpus[place - 1][kind])?.[0];
    // Cores without siblings are not set apart, nor those of many CPUs: the gaps would take the room of a third of the lanes.
    if (!apart || (apart === "core" && (cpus.length > MANY || !trace.head.folds.some((fold) => fold.kind === "core")))) return 0;
    return Math.round((cpus.length > 256 && apart !== "node" ? 1 : GAPS[apart]) * scale);
  };
  /** @type {Line[]} */
  const lines = [];
  for (let place = 0; place < cpus.length; ) {
    const fold = collapsed[place];
    const count = fold < 0 ? 1 : trace.head.folds[fold].lanes[1] - place;
    lines.push({ gap: gap(place), place, count, fold, silent: fold < 0 && cpus[place].silent === true });
    place += count;
  }
  return lines;
}

/** The height of a row: a collapsed group has half of its lanes' together, that of one to three lanes. `least`: whether it has its least height
 * at any pitch. @param {Line} line @param {number} pitch @param {number} scale @param {boolean} least */
function heightFor(line, pitch, scale, least) {
  if (line.silent) return Math.min(pitch, Math.round(SILENT * scale));
  if (line.fold < 0) return pitch;
  const lanes = Math.min(3, Math.ceil(line.count / 2));
  return Math.min(line.count * pitch, Math.max(lanes * pitch, least ? Math.round(LEAST[lanes - 1] * scale) : 0));
}

/** Returns the pitch of the lanes with which all rows fit, if any does, and the height of each row with it. Where collapsed groups alone have
 * room for less than their least heights, they share what there is, and what is left over.
 * @param {Line[]} lines @param {number} available @param {number} scale @returns {{ pitch: number, heights: number[] }} */
function fitting(lines, available, scale) {
  const sum = (/** @type {number} */ pitch, /** @type {boolean} */ least) => lines.reduce((sum, line) => sum + line.gap + heightFor(line, pitch, scale, least), 0);
  const lowest = Math.round(LOWEST * scale);
  const highest = Math.max(lowest, Math.min(Math.floor(available / Math.max(1, lines.length)), Math.round(HIGHEST * scale)));
  const least = sum(lowest, true) <= available;
  let pitch = highest;
  while (pitch > lowest && sum(pitch, least) > available) pitch--;
  const heights = lines.map((line) => heightFor(line, pitch, scale, least));
  // The lanes of CPUs have one height: their tiles hold many.
  const grow = lines.filter((line) => line.fold >= 0);
  const spare = Math.floor((available - sum(pitch, least)) / Math.max(1, grow.length));
  if (spare > 0 && pitch < Math.round(HIGHEST * scale)) lines.forEach((line, n) => (heights[n] += line.fold >= 0 ? spare : 0));
  return { pitch, heights };
}

/** Returns the parts of a row: its bar, and the strip of the queue below it. @param {number} height */
function parts(height, /** @type {number} */ scale) {
  const space = height >= 6 * scale ? Math.max(1, Math.round(height * 0.1)) : height >= 3 ? 1 : 0;
  const strip = height >= 10 * scale ? Math.round(height * 0.14) : 0;
  return { bar: Math.max(1, height - space - strip), strip };
}

/** The layout of each trace, with all that it depends on. @type {WeakMap<Trace, { key: string, layout: Layout }>} */
const known = new WeakMap();

/** Lays out the lanes of a trace in device pixels. @param {Trace} trace @param {number} available @param {number} wish height of a lane,
 * 0 to fit @param {number} scale device pixels per CSS pixel @returns {Layout} */
export function layOut(trace, available, wish, scale) {
  const key = [available, wish, scale, trace.head.cpus.length, ...trace.collapsed].join(" ");
  const last = known.get(trace);
  if (last?.key === key) return last.layout;
  const lines = linesOf(trace, collapsedOf(trace), scale);
  const wished = Math.max(1, Math.round(wish * scale));
  const { pitch, heights } = wish > 0 ? { pitch: wished, heights: lines.map((line) => heightFor(line, wished, scale, true)) } : fitting(lines, available, scale);
  /** @type {Row[]} */
  const rows = [];
  const byCpu = new Map();
  let y = 0;
  for (const [n, line] of lines.entries()) {
    const { gap, place, count, fold, silent } = line;
    y += gap;
    const height = heights[n];
    const members = fold < 0 ? null : Array.from({ length: count }, (_, n) => place + n);
    const row = { y, height, ...parts(height, scale), place, cpu: members ? -1 : trace.head.cpus[place].cpu, members, fold, silent };
    rows.push(row);
    for (let n = 0; n < count; n++) byCpu.set(trace.head.cpus[place + n].cpu, row);
    y += height;
  }
  const layout = { rows, groups: groupsOf(trace, byCpu), pitch, ...parts(pitch, scale), height: y, byCpu };
  known.set(trace, { key, layout });
  return layout;
}

/** Returns the groups in view: all but those within a collapsed one. @param {Trace} trace @param {Map<number, Row>} byCpu @returns {Group[]} */
function groupsOf(trace, byCpu) {
  const kinds = kindsOf(trace);
  return trace.head.folds.flatMap((fold, at) => {
    const [first, last] = [fold.lanes[0], fold.lanes[1] - 1].map((place) => /** @type {Row} */ (byCpu.get(trace.head.cpus[place].cpu)));
    // A collapsed group that holds all of it hides it.
    if (first.fold >= 0 && first.fold !== at && trace.head.folds[first.fold].lanes[1] >= fold.lanes[1]) return [];
    return [{ fold: at, depth: kinds.indexOf(fold.kind), name: nameOf(fold), y: first.y, height: last.y + last.height - first.y, collapsed: first.fold === at }];
  });
}

/** Returns the row at this height, or null. @param {Layout} layout @param {number} y */
export function rowAt(layout, y) {
  let [low, high] = [0, layout.rows.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = layout.rows[middle];
    if (y < row.y) high = middle - 1;
    else if (y >= row.y + row.height) low = middle + 1;
    else return row;
  }
  return null;
}
