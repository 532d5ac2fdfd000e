// The rows of tasks on the canvas: each column is a stack of the states of the task, a share of time a share of the height.

import { rows as stacked } from "./bitmap.js";
import { levelFor, tilesInView, xOf } from "./lanes.js";
import { PALETTE, css, dark, inkOn, lifted, mixed, pixel, taskColor } from "./palette.js";
import { WAKING, stateColors } from "./pathrow.js";
import { QUEUED, nameAt } from "./rows.js";
import { drawRowTrail } from "./trail.js";
import { state } from "./state.js";
import { duration, percent, seconds } from "./time.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** @typedef {import("./api.js").RowTile} RowTile */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

/** The height of a row, of the words above the rows, and of the row of the critical path between, in CSS pixels. */
const [PITCH, HEAD, PATH] = [18, 26, 22];
/** The height of the row of the critical path in CSS pixels: a page without a server has none. */
const pathHeight = () => (state.static ? 0 : PATH);
/** The places of the states in a tile. */
const STATES = { running: 0, heldBack: 1, idle: 2, shorter: 3, alike: 4, queued: 5, asleep: 6, blocked: 7, throttled: 8, unknown: 9, absent: 10 };
const WHOLE = 65535;
/** The width of a step of a tree in CSS pixels, and the depth from which names are no further to the right. */
const [STEP, DEEPEST] = [9, 7];

/** The colours of CPUs and caches: cold ones, so that those of waiting stand out. */
const COLD = [0x4088b8, 0x28b8a0, 0x5838c8, 0xa0d088, 0x107058, 0x90a8e8, 0x284890, 0x58c8e8, 0x609838, 0x7058a0, 0x1868d8, 0x88c8b0];

/** The colours of the states but that of running: in a light theme, and in a dark one. @type {[number, string, number, number][]} */
const LOOKS = [
  [STATES.heldBack, "held back on its idle CPU", 0x8a1868, 0xe070c0],
  [STATES.idle, "queued beside an idle CPU", 0xc01020, 0xf06058],
  [STATES.shorter, "queued beside a shorter queue", 0xe8781e, 0xf09848],
  [STATES.alike, "queued, all queues alike", 0xf0c040, 0xd8b850],
  [STATES.queued, "queued, kind unknown (needs sched_wakeup)", 0xa89878, 0xa89878],
  [STATES.throttled, "throttled by cpu.max", 0x303030, 0xd8d8d8],
  [STATES.blocked, "blocked (D)", 0x8fb3c4, 0x3f6274],
];

/** The colours of the four kinds of queued time. */
export const kindColors = () => LOOKS.slice(0, 4).map(([, , light, lit]) => css(dark() ? lit : light));

/** The looks of the states for the legend. @param {Theme} theme @returns {[string[], string][]} */
export const legendOfRows = (theme) => [
  [(state.paint === "task" ? PALETTE : COLD).slice(0, 4).map((rgb) => css(dark() ? lifted(rgb) : rgb)), `running; the colour is that of the ${{ cpu: "CPU", llc: "last-level cache, grey where that is unknown", task: "lanes" }[state.paint]}`],
  ...LOOKS.map(([, name, light, lit]) => /** @type {[string[], string]} */ ([[css(dark() ? lit : light)], name])),
  [[WAKING], "critical path: wakeup in progress"],
  [[theme.faint], "asleep (a thin line); on the critical path until an interrupt"],
  [[css(theme.hatch), theme.lane, css(theme.hatch), theme.lane], "unknown (hatched)"],
  [[theme.lane], "not there: not born yet, or ended"],
];

/** The height that the rows of a trace would take, in CSS pixels. @param {Trace} trace */
export const wishOf = (trace) => (state.rows && !state.rowless ? HEAD + pathHeight() + 4 + PITCH * Math.max(1, trace.rows.places().length) : 0);

/** The colour in which a task runs on a CPU. @param {Trace} trace @param {number} place @param {number} cpu @param {Theme} theme */
function runColor(trace, place, cpu, theme) {
  if (state.paint === "task") return taskColor(trace.head.tasks[place], state.color, "", theme.other);
  const at = trace.head.cpus.findIndex((other) => other.cpu === cpu);
  const { cpus } = trace.head;
  const llc = cpus[at]?.llc ?? null;
  const number = state.paint === "cpu" ? at : llc === null ? -1 : [...new Set(cpus.map((other) => other.llc))].indexOf(llc);
  const rgb = at < 0 || number < 0 ? theme.other : COLD[number % COLD.length];
  return dark() && rgb !== theme.other ? lifted(rgb) : rgb;
}

/** The stack of a column from below, each entry a colour with its share: running, waiting, blocked, throttled, unknown. Sleep stays blank.
 * @param {Trace} trace @param {number} place @param {RowTile} tile @param {number} run @param {Theme} theme @returns {[number, number][]} */
function stackOf(trace, place, tile, run, theme) {
  /** @type {[number, number][]} */
  const stack = [];
  const share = (/** @type {number} */ wanted) => {
    for (let n = tile.entry[run]; n < tile.entry[run] + tile.entries[run]; n++) if (tile.states[n] === wanted) return tile.shares[n];
    return 0;
  };
  let rest = share(STATES.running);
  for (let n = tile.named[run]; n < tile.named[run] + tile.cpuCount[run]; n++) {
    const part = Math.min(rest, tile.cpuShares[n]);
    stack.push([runColor(trace, place, tile.cpus[n], theme), part]);
    rest -= part;
  }
  if (rest > 0 && tile.cpuCount[run] > 1) stack.push([theme.mixedRgb, rest]);
  for (const [place, , light, lit] of LOOKS) if (share(place) > 0) stack.push([dark() ? lit : light, share(place)]);
  if (share(STATES.unknown) > 0) stack.push([theme.hatch, share(STATES.unknown)]);
  return stack;
}

/** The picture of a row of a tile, one pixel wide per column. @param {Trace} trace @param {number} place @param {import("./rowtiles.js").KeptRow} kept
 * @param {number} bar @param {Theme} theme */
function pictureOf(trace, place, kept, bar, theme) {
  const key = `${bar} ${theme.ground} ${state.paint} ${state.paint === "task" ? state.color : ""} ${trace.grouped}`;
  if (kept.picture?.key === key) return kept.picture.canvas;
  const { tile, row } = kept;
  const canvas = new OffscreenCanvas(tile.columns, bar);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(tile.columns, bar);
  const pixels = new Uint32Array(image.data.buffer);
  const faint = pixel(mixed(theme.laneRgb, theme.other, 0.45));
  for (let run = tile.first[row]; run < tile.first[row + 1]; run++) {
    const [from, to] = [tile.start[run], tile.start[run] + tile.length[run]];
    const lone = tile.entries[run] === 1 ? tile.states[tile.entry[run]] : -1;
    const column = stacked(stackOf(trace, place, tile, run, theme), bar, theme.laneRgb);
    for (let y = 0; y < bar; y++) {
      if (lone === STATES.unknown) for (let x = from; x < to; x++) pixels[y * tile.columns + x] = (x + y) % 5 === 0 ? pixel(theme.hatch) : 0;
      else if (column[y] >= 0) pixels.fill(pixel(column[y]), y * tile.columns + from, y * tile.columns + to);
      else if (y === bar >> 1 && lone === STATES.asleep) pixels.fill(faint, y * tile.columns + from, y * tile.columns + to);
    }
  }
  context.putImageData(image, 0, 0);
  kept.picture = { key, canvas };
  return canvas;
}

/** The heights of rows in device pixels. @param {number} s */
const heights = (s) => ({ pitch: Math.round(PITCH * s), bar: Math.round((PITCH - 5) * s), head: Math.round((HEAD + pathHeight()) * s) });

/** Calls `each` for the rows in sight, with their tasks and their upper edges. @param {Trace} trace @param {{ bottom: number, below: number }} places
 * @param {number} s @param {(place: number, y: number) => void} each */
function inSight(trace, { bottom, below }, s, each) {
  const { pitch, head } = heights(s);
  const top = bottom + head;
  const tasks = trace.rows.places();
  trace.rows.scroll = Math.max(0, Math.min(trace.rows.scroll, tasks.length * pitch - (below - top)));
  const first = Math.floor(trace.rows.scroll / pitch);
  for (let n = first; n < tasks.length && top + n * pitch - trace.rows.scroll < below; n++) each(tasks[n], Math.round(top + n * pitch - trace.rows.scroll));
}

/** Calls `each` for the rows in sight, with their tasks, their upper edges and their heights. @param {Trace} trace
 * @param {{ bottom: number, below: number }} places @param {number} s @param {(place: number, y: number, bar: number) => void} each */
export const eachRow = (trace, places, s, each) => inSight(trace, places, s, (place, y) => each(place, y, heights(s).bar));

/** Draws the rows. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {Scale} scale @param {{ bottom: number, below: number }} places
 * @param {Theme} theme */
export function drawRows(context, trace, scale, places, theme) {
  const s = scale.scale;
  const { pitch, bar, head } = heights(s);
  trace.rows.tiles.begin();
  const level = levelFor(scale.perPixel, trace.tiles.levels);
  const end = Math.max(scale.left, Math.min(scale.right, Math.ceil(xOf(scale, trace.head.span))));
  context.fillStyle = theme.ground;
  context.fillRect(0, places.bottom, context.canvas.width, head);
  context.fillStyle = theme.rule;
  context.fillRect(0, Math.round(places.bottom + s), context.canvas.width, 1);
  clipped(context, [0, places.bottom + head, scale.right, places.below], () => {
    inSight(trace, places, s, (place, y) => {
      context.fillStyle = theme.lane;
      context.fillRect(Math.max(scale.left, xOf(scale, 0)), y, end - Math.max(scale.left, xOf(scale, 0)), bar);
      drawName(context, trace, place, scale.left, y + bar / 2, s, theme);
    });
  });
  clipped(context, [scale.left, places.bottom + head, end, places.below], () => {
    context.imageSmoothingEnabled = false;
    inSight(trace, places, s, (place, y) => {
      tilesInView(trace, scale, level, (index, x, width) => {
        const found = trace.rows.tiles.get(level, index, place);
        if (found) context.drawImage(pictureOf(trace, place, found.kept, bar, theme), found.first, 0, found.columns, bar, x, y, width, bar);
        else {
          context.fillStyle = theme.missing;
          context.fillRect(x, y, width, bar);
        }
      });
      drawCpus(context, trace, place, scale, level, y, bar, theme);
      if (state.highlight?.trace === trace.index && trace.head.tasks[place]?.pid === state.highlight.pid) {
        context.strokeStyle = theme.accent;
        context.lineWidth = Math.max(1, s);
        context.strokeRect(scale.left + 0.5, y - 0.5, end - scale.left - 1, bar + 1);
      }
      if (state.row?.trace === trace.index && trace.head.tasks[place]?.pid === state.row.pid) {
        context.strokeStyle = theme.ink;
        context.lineWidth = Math.max(1, s);
        context.strokeRect(scale.left - 0.5, y - 1.5, end - scale.left + 1, bar + 3);
      }
    });
  });
  drawOver(context, trace, scale, places, theme);
  drawScroll(context, trace, places, head, pitch, s, theme);
  if (!state.static) trace.rows.path.draw(context, scale, places.bottom + Math.round(HEAD * s), bar, theme, pathColors(theme));
  if (state.row?.trace === trace.index && state.row.pid < 0) {
    context.strokeStyle = theme.ink;
    context.lineWidth = Math.max(1, s);
    context.strokeRect(scale.left + 0.5, places.bottom + Math.round(HEAD * s) - 0.5, end - scale.left - 1, bar + 1);
  }
}

/** The colours of the states of the critical path. @param {Theme} theme */
export function pathColors(theme) {
  const throttled = LOOKS.filter(([place]) => place === STATES.throttled).map(([, , light, lit]) => css(dark() ? lit : light));
  const queued = LOOKS.slice(0, 5).map(([, , light, lit]) => css(dark() ? lit : light));
  return stateColors(queued, throttled[0], theme);
}

/** Draws what leads from row to row: the critical path, and arrows of wakeups. @param {CanvasRenderingContext2D} context @param {Trace} trace
 * @param {Scale} scale @param {{ bottom: number, below: number }} places @param {Theme} theme */
function drawOver(context, trace, scale, places, theme) {
  const s = scale.scale;
  const { bar, head, pitch } = heights(s);
  /** @type {Map<number, number>} */
  const middles = new Map();
  /** @type {Map<number, number>} */
  const edges = new Map();
  inSight(trace, places, s, (place, y) => {
    const { pid } = trace.head.tasks[place];
    middles.set(pid, y + bar / 2);
    edges.set(pid, y + bar + (pitch - bar) / 2 - s);
  });
  clipped(context, [scale.left, places.bottom + head, scale.right, places.below], () => {
    drawRowTrail(context, trace, edges, scale, pathColors(theme), theme);
    if (!state.static) trace.rows.arrows.draw(context, scale, middles, theme);
  });
}

/** Whether the row of the critical path is at this height. @param {{ bottom: number, below: number }} places @param {number} y @param {number} s */
export const isPath = ({ bottom, below }, y, s) => below > bottom && y >= bottom + Math.round(HEAD * s) && y < bottom + Math.round((HEAD + pathHeight()) * s);

/** @param {CanvasRenderingContext2D} context @param {[number, number, number, number]} edges left, top, right, bottom @param {() => void} draw */
function clipped(context, [x, y, right, bottom], draw) {
  context.save();
  context.beginPath();
  context.rect(x, y, right - x, bottom - y);
  context.clip();
  draw();
  context.restore();
}

/** Writes the name of a task left of its row, cut at the left. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {number} place
 * @param {number} right @param {number} y @param {number} s @param {Theme} theme */
function drawName(context, trace, place, right, y, s, theme) {
  context.font = `${11 * s}px system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const task = trace.head.tasks[place];
  const isHighlighted = state.highlight?.trace === trace.index && task?.pid === state.highlight.pid;
  context.fillStyle = isHighlighted ? theme.accent : theme.ink;
  // In a tree the name is behind a step for each ancestor.
  const depth = Math.min(trace.rows.known.depths.get(place) ?? 0, DEEPEST);
  const left = (6 + depth * STEP) * s;
  const room = right - 8 * s - (state.order === "tree" ? left : 6 * s);
  let [comm, pid] = [task?.comm ?? "", String(task?.pid ?? "")];
  const whole = () => (comm ? `${comm} ${pid}` : pid);
  if (context.measureText(whole()).width > room) {
    while (comm && context.measureText(`${comm}… ${pid}`).width > room) comm = comm.slice(0, -1);
    comm += "…";
  }
  if (state.order === "tree") {
    context.textAlign = "left";
    context.fillText(whole(), left, y + 0.5 * s);
    if (depth === 0) return;
    const x = Math.round(left - (STEP - 3) * s) + 0.5;
    context.strokeStyle = theme.faint;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y - 7 * s);
    context.lineTo(x, Math.round(y) + 0.5);
    context.lineTo(left - 2 * s, Math.round(y) + 0.5);
    context.stroke();
  } else context.fillText(whole(), right - 6 * s, y + 0.5 * s);
}

/** Writes the CPUs into long runs. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {number} place @param {Scale} scale
 * @param {number} level @param {number} y @param {number} bar @param {Theme} theme */
function drawCpus(context, trace, place, scale, level, y, bar, theme) {
  const { columns } = trace.head.tile;
  /** @type {[number, number, number][]} */
  const runs = [];
  tilesInView(trace, scale, level, (index) => {
    const found = trace.rows.tiles.held(level, index, place);
    if (!found) return;
    const { tile, row } = found.kept;
    const column = (columns * 2 ** level) / found.columns;
    const base = index * columns * 2 ** level - found.first * column;
    for (let run = tile.first[row]; run < tile.first[row + 1]; run++) {
      const [start, end] = [tile.start[run], tile.start[run] + tile.length[run]];
      if (end <= found.first || start >= found.first + found.columns) continue;
      const isRun = tile.entries[run] === 1 && tile.states[tile.entry[run]] === STATES.running && tile.cpuCount[run] === 1;
      if (isRun) runs.push([base + start * column, base + end * column, tile.cpus[tile.named[run]]]);
    }
  });
  runs.sort((a, b) => a[0] - b[0]);
  const s = scale.scale;
  context.font = `${10 * s}px system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let n = 0; n < runs.length; ) {
    const [from, , cpu] = runs[n];
    let to = runs[n][1];
    for (n++; n < runs.length && runs[n][2] === cpu && runs[n][0] <= to; n++) to = Math.max(to, runs[n][1]);
    const [x, right] = [Math.max(scale.left, xOf(scale, from)), Math.min(scale.right, xOf(scale, to))];
    const text = [`CPU ${cpu}`, String(cpu)].find((text) => text.length * 6.2 * s + 4 * s < right - x);
    if (!text) continue;
    context.fillStyle = inkOn(runColor(trace, place, cpu, theme));
    context.fillText(text, (x + right) / 2, y + bar / 2 + 0.5 * s);
  }
}

/** Shows which part of the rows is in view. @param {CanvasRenderingContext2D} context @param {Trace} trace @param {{ bottom: number, below: number }} places
 * @param {number} head @param {number} pitch @param {number} s @param {Theme} theme */
function drawScroll(context, trace, places, head, pitch, s, theme) {
  const [room, height] = [places.below - places.bottom - head, trace.rows.places().length * pitch];
  if (height <= room) return;
  const bar = Math.max(16 * s, (room * room) / height);
  context.fillStyle = theme.faint;
  context.globalAlpha = 0.5;
  context.fillRect(context.canvas.width - 5 * s, places.bottom + head + ((room - bar) * trace.rows.scroll) / (height - room), 4 * s, bar);
  context.globalAlpha = 1;
}

/** Returns the place of the task whose row is at this height, -1 for none. @param {Trace} trace @param {{ bottom: number, below: number }} places
 * @param {number} y @param {number} s */
export function taskAt(trace, places, y, s) {
  const { pitch, head } = heights(s);
  if (y < places.bottom + head || y >= places.below) return -1;
  return trace.rows.places()[Math.floor((y - places.bottom - head + trace.rows.scroll) / pitch)] ?? -1;
}

/** Scrolls so that the row of a task is in view. @param {Trace} trace @param {{ bottom: number, below: number }} places @param {number} place @param {number} s */
export function revealRow(trace, places, place, s) {
  const { pitch, head } = heights(s);
  const at = trace.rows.above(place);
  if (at < 0) return;
  const room = places.below - places.bottom - head;
  if (at * pitch < trace.rows.scroll) trace.rows.scroll = at * pitch;
  else if ((at + 1) * pitch > trace.rows.scroll + room) trace.rows.scroll = (at + 1) * pitch - room;
}

/** The run of columns of a row at an instant: its states, the longest first, and its edges in the trace's own time. @param {Trace} trace
 * @param {number} place @param {number} time @param {number} perPixel */
export function stretchAt(trace, place, time, perPixel) {
  const level = levelFor(perPixel, trace.tiles.levels);
  const { columns } = trace.head.tile;
  const index = Math.floor(time / (columns * 2 ** level));
  const found = time < 0 || time > trace.head.span ? null : trace.rows.tiles.held(level, index, place);
  if (!found) return null;
  const { tile, row } = found.kept;
  const length = (columns * 2 ** level) / found.columns;
  const base = index * columns * 2 ** level - found.first * length;
  const column = Math.floor((time - base) / length);
  for (let run = tile.first[row]; run < tile.first[row + 1]; run++) {
    if (tile.start[run] > column || tile.start[run] + tile.length[run] <= column) continue;
    const states = Array.from({ length: tile.entries[run] }, (_, n) => ({ state: tile.states[tile.entry[run] + n], share: tile.shares[tile.entry[run] + n] / WHOLE }));
    const cpus = Array.from({ length: tile.cpuCount[run] }, (_, n) => tile.cpus[tile.named[run] + n]);
    return { states, cpus, queue: tile.queue[run], queues: tile.queues[run] === 1, from: base + tile.start[run] * length, to: base + (tile.start[run] + tile.length[run]) * length, column: length };
  }
  return null;
}

/** The text about a place of a row. @param {Trace} trace @param {number} place @param {number} time @param {number} perPixel */
export function aboutRow(trace, place, time, perPixel) {
  const lines = [`${nameAt(trace, place)}  ·  ${seconds(time - trace.zero, perPixel)} s`];
  const found = stretchAt(trace, place, time, perPixel);
  if (!found) return lines[0];
  const names = trace.rows.facts?.states ?? [];
  for (const { state, share } of found.states) {
    const name = QUEUED.includes(names[state]) && names[state] !== "queued" ? `queued, ${names[state]}` : names[state] === "absent" ? "not there" : names[state];
    const where = state === STATES.running ? ` on CPU ${found.cpus.join(", ")}` : state >= STATES.heldBack && state <= STATES.queued && found.queue >= 0 ? ` on CPU ${found.queue}${found.queues ? " and others" : ""}` : "";
    lines.push(`${name}${where}  ·  ${found.states.length === 1 ? duration(found.to - found.from) : `${percent(share)} of ${duration(found.column)}`}`);
  }
  return lines.join("\n");
}
