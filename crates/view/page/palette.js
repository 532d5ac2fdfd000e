// The colours of tasks, as in the figures of `schedviz dat2graph`, and those of the page in light and dark.

/** @typedef {import("./api.js").Task} Task */
/** @typedef {"task" | "command" | "process" | "cgroup" | "node" | "parent" | "class"} ColorBy */
/** A rule by which tasks form groups. @typedef {"command" | "process" | "cgroup"} Rule */

export const PALETTE = [
  0x4088b8, 0x582858, 0xa0d088, 0x5810e8, 0x888840, 0xd0a0e8, 0x881010, 0x7058a0, 0xe8d010, 0x28b8a0, 0x107058, 0x4010a0, 0xe840e8,
  0x58e8e8, 0xd0a040, 0xb82828,
];

/** Ways to colour, in the order of the menu. @type {ColorBy[]} */
export const WAYS = ["task", "command", "process", "cgroup", "node", "parent", "class"];

/** The rules by which the list of tasks can be divided; without one it lists task by task. @type {Rule[]} */
export const RULES = ["command", "process", "cgroup"];

/** The classes of tasks with their places in the palette. @type {Record<string, [string, number]>} */
export const CLASSES = {
  application: ["application", 0],
  task: ["other tasks", 14],
  kernel: ["kernel threads", 10],
  stopper: ["stopper (migration/N)", 12],
  injected: ["kept idle (idle_inject/N)", 13],
};

/** Run-queue lengths from short to long. */
export const BANDS = [0xfde7c8, 0xfbc18a, 0xf48f5a, 0xdb574a, 0xa42a5b, 0x581257];
/** The colours of run-queue lengths on the page: a long queue stands out from a light ground by being dark, and from a dark one by being light. */
export const bands = () => (dark() ? [...BANDS].reverse() : BANDS);

/** The upper bounds of the bands. */
export const BAND_ENDS = [1, 2, 4, 8, 16, Infinity];

/** The colours of migrations by cause, as in `schedviz migrations`. @type {Record<string, number>} */
export const CAUSES = {
  "wakeup placement": 0xa0b0c8,
  "new-idle pull (steal)": 0xc01020,
  "idle balance": 0x1040c0,
  "periodic balance": 0x107840,
  "nohz idle balance (ILB)": 0x20a0a0,
  "new-idle pull of a sleeper": 0xe49098,
  "idle balance of a sleeper": 0x90a8e4,
  "periodic balance of a sleeper": 0x90c0a4,
  "nohz idle balance of a sleeper": 0x98d4d4,
  "active balance": 0xd08010,
  "affinity": 0x589000,
  "active balance or affinity": 0xe8b860,
  "exec": 0x806020,
  "NUMA move": 0x903090,
  "NUMA swap": 0xd040c0,
  "real-time push or pull": 0x6020e0,
  "unknown": 0x303030,
};

/** @param {string} cause */
export function causeColor(cause) {
  const color = CAUSES[cause] ?? CAUSES.unknown;
  return dark() ? lifted(color) : color;
}

/** Whether the page is dark. */
export const dark = () => document.documentElement.classList.contains("dark");

/** Returns a colour that stands out from a dark ground: dark colours are mixed with white. @param {number} rgb */
export function lifted(rgb) {
  const light = luminance(rgb);
  return light > 0.3 ? rgb : mixed(rgb, 0xffffff, 0.32 * (1 - light / 0.3));
}

/** Returns the brightness between 0 and 1, as the eye weighs the channels. @param {number} rgb */
export function luminance(rgb) {
  return (0.299 * (rgb >> 16) + 0.587 * ((rgb >> 8) & 255) + 0.114 * (rgb & 255)) / 255;
}

/** @param {number} a @param {number} b @param {number} part of b */
export function mixed(a, b, part) {
  const channel = (/** @type {number} */ shift) => Math.round(((a >> shift) & 255) * (1 - part) + ((b >> shift) & 255) * part) << shift;
  return channel(16) | channel(8) | channel(0);
}

/** @param {number} rgb */
export const css = (rgb) => "#" + rgb.toString(16).padStart(6, "0");

/** Returns the number of a colour of the theme. @param {string} text such as #a0b0c8 */
export const rgbOf = (text) => parseInt(text.slice(1), 16);

/** Returns a pixel of an ImageData on a little-endian machine. @param {number} rgb */
export const pixel = (rgb) => (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;

/** The colours of the page that a canvas needs. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const value = (/** @type {string} */ name) => style.getPropertyValue("--" + name).trim();
  const isDark = dark();
  return {
    ground: value("ground"), ink: value("ink"), faint: value("faint"), rule: value("rule"), lane: value("lane"), accent: value("accent"),
    select: value("select"), running: value("running"), runningBand: value("running-band"), waiting: value("waiting"),
    waitingBand: value("waiting-band"), violation: value("violation"), chrome: value("chrome"),
    missing: value("missing"), laneRgb: rgbOf(value("lane")), missingRgb: rgbOf(value("missing")),
    other: isDark ? 0x70757c : 0x606060, mixedRgb: isDark ? 0x4a4f56 : 0xd0d0d0, offline: isDark ? 0x6a6f76 : 0x909090,
    hatch: isDark ? 0x5a5f66 : 0xb4b4b4,
    sans: value("sans"),
  };
}

/** Returns a task's place in the palette; `null` if the property is unknown. @param {Task} task @param {ColorBy} by */
function place(task, by) {
  if (by === "task") return task.place;
  if (by === "command") return task.command;
  if (by === "process" || by === "cgroup") return task.groups?.[by]?.place ?? null;
  if (by === "node") return task.node === null ? null : task.node % 16;
  if (by === "parent") return task.parent === null ? null : ((task.parent % 16) + 16) % 16;
  return (CLASSES[task.class] ?? CLASSES.task)[1];
}

/** Whether a task is meant by a text: a part of its name, its PID, or, with a blank, a part of its label such as "hackbench 345".
 * @param {{ pid: number, comm: string }} task @param {string} text in lower case, without blanks around */
export function isMeant(task, text) {
  const comm = task.comm.toLowerCase();
  return String(task.pid) === text || comm.includes(text) || (text.includes(" ") && `${comm} ${task.pid}`.includes(text));
}

/** Whether a task is in the group that a part of the filter asks for: a part of its name behind a colon, or all of it behind an equals sign as well.
 * @param {Task} task @param {Rule} rule @param {string} wanted in lower case */
function isOfGroup(task, rule, wanted) {
  const name = (task.groups?.[rule]?.name ?? `unknown ${rule}`).toLowerCase();
  return wanted.startsWith("=") ? name === wanted.slice(1).trim() : name.includes(wanted);
}

/** Whether a task is in colour by the filter. @param {Task} task @param {string} filter */
export function passes(task, filter) {
  const parts = filter.toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
  return parts.length === 0 || parts.some((part) => {
    const rule = RULES.find((rule) => part.startsWith(`${rule}:`));
    return rule ? isOfGroup(task, rule, part.slice(rule.length + 1).trim()) : isMeant(task, part);
  });
}

/** Returns the colour of a task. @param {Task} task @param {ColorBy} by @param {string} filter @param {number} grey */
export function taskColor(task, by, filter, grey) {
  const at = passes(task, filter) ? place(task, by) : null;
  if (at === null || at === undefined) return grey;
  return dark() ? lifted(PALETTE[at % 16]) : PALETTE[at % 16];
}

/** Returns the colour of text on this ground. @param {number} rgb */
export const inkOn = (rgb) => (2 * (rgb >> 16) + 5 * ((rgb >> 8) & 255) + (rgb & 255) > 8 * 128 ? "#202020" : "#ffffff");
