// The places of lanes: CPUs by node, LLC and core, a collapsed node as one lane.

/** @typedef {import("./state.js").Trace} Trace */
/** A row of the timeline: a CPU, or a collapsed group. `place` is the CPU's place in the head.
 * @typedef {{ y: number, group: number, place: number, cpu: number, members: number[] | null }} Row */
/** @typedef {{ group: number, name: string, y: number, height: number, collapsed: boolean }} Group */
/** @typedef {{ rows: Row[], groups: Group[], pitch: number, bar: number, strip: number, wide: number, height: number,
 *   byCpu: Map<number, Row> }} Layout */

/** Returns the kind of the collapsible groups, and the group of a CPU: its node, or its LLC where there is one node. @param {Trace} trace */
export function grouping(trace) {
  const cpus = trace.head.cpus;
  const kinds = /** @type {["node" | "llc", string][]} */ ([["node", "node"], ["llc", "LLC"]]);
  for (const [key, name] of kinds) {
    if (new Set(cpus.map((cpu) => cpu[key])).size > 1) return { key, name };
  }
  return { key: kinds[0][0], name: "" };
}

/** Lays out the lanes of a trace in device pixels. @param {Trace} trace @param {number} available @param {number} wish height of a lane,
 * 0 to fit @param {number} scale device pixels per CSS pixel @returns {Layout} */
export function layOut(trace, available, wish, scale) {
  const { key, name } = grouping(trace);
  const cpus = trace.head.cpus;
  const groupOf = (/** @type {number} */ place) => cpus[place][key] ?? -1;
  const starts = cpus.map((_, place) => place === 0 || groupOf(place) !== groupOf(place - 1));
  const isOpen = (/** @type {number} */ place) => !trace.collapsed.has(groupOf(place));
  const shown = cpus.filter((_, place) => isOpen(place)).length;
  const folded = starts.filter((start, place) => start && !isOpen(place)).length;
  const gap = Math.round((name ? 5 : 0) * scale);
  // The caches of a node are apart by less than nodes are.
  const slit = Math.round((cpus.length <= 256 ? 3 : 1) * scale);
  const splits = cpus.map((cpu, place) => !starts[place] && isOpen(place) && cpu.llc !== cpus[place - 1].llc);
  const gaps = gap * Math.max(0, starts.filter(Boolean).length - 1) + slit * splits.filter(Boolean).length;
  // A collapsed group is as high as three lanes.
  const fit = Math.floor((available - gaps) / Math.max(1, shown + 3 * folded));
  const [lowest, highest] = [Math.round(2 * scale), Math.round(56 * scale)];
  const pitch = wish > 0 ? Math.max(1, Math.round(wish * scale)) : Math.min(Math.max(fit, lowest), highest);
  const space = pitch >= 6 * scale ? Math.max(1, Math.round(pitch * 0.1)) : pitch >= 3 ? 1 : 0;
  const strip = pitch >= 10 * scale ? Math.round(pitch * 0.14) : 0;
  const wide = Math.max(3 * pitch, Math.round(24 * scale));
  /** @type {Row[]} */
  const rows = [];
  /** @type {Group[]} */
  const groups = [];
  const byCpu = new Map();
  let y = 0;
  cpus.forEach((cpu, place) => {
    const group = groupOf(place);
    if (starts[place]) {
      if (place > 0) y += gap;
      groups.push({ group, name: name && group >= 0 ? `${name} ${group}` : "", y, height: 0, collapsed: !isOpen(place) });
    }
    const current = groups[groups.length - 1];
    if (isOpen(place)) {
      if (splits[place]) y += slit;
      rows.push({ y, group, place, cpu: cpu.cpu, members: null });
      y += pitch;
    } else if (starts[place]) {
      rows.push({ y, group, place, cpu: -1, members: [place] });
      y += wide;
    } else {
      rows[rows.length - 1].members?.push(place);
    }
    current.height = y - current.y;
    byCpu.set(cpu.cpu, rows[rows.length - 1]);
  });
  return { rows, groups, pitch, bar: Math.max(1, pitch - space - strip), strip, wide, height: y, byCpu };
}

/** Returns the heights of a collapsed group's lane. @param {Layout} layout */
export function wideHeights(layout) {
  const strip = Math.round(layout.wide * 0.12);
  const space = Math.max(1, Math.round(layout.wide * 0.06));
  return { pitch: layout.wide, bar: layout.wide - strip - space, strip };
}

/** Returns the row at this height, or null. @param {Layout} layout @param {number} y */
export function rowAt(layout, y) {
  let [low, high] = [0, layout.rows.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = layout.rows[middle];
    if (y < row.y) high = middle - 1;
    else if (y >= row.y + heightOf(layout, row)) low = middle + 1;
    else return row;
  }
  return null;
}

/** @param {Layout} layout @param {Row} row */
export const heightOf = (layout, row) => (row.members ? layout.wide : layout.pitch);
