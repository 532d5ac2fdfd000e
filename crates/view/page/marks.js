// The markers A and B, as KernelShark has them: two instants, and their distance. With them the notes are drawn.

import { drawNotes } from "./notes.js";
import { change, state } from "./state.js";
import { duration, seconds } from "./time.js";

/** The colours of the markers. */
export const COLORS = { a: "#2f9e44", b: "#e03131" };

/** Sets a marker at an instant, or removes it if it is there. @param {"a" | "b"} name @param {number} time aligned, in ns */
export function setMarker(name, time) {
  const at = Math.round(time);
  change({ markers: { ...state.markers, [name]: state.markers[name] === at ? null : at } });
}

/** Returns the markers and their distance in words; empty without any. @param {{ a: number | null, b: number | null }} markers */
export function aboutMarkers({ a, b }) {
  const step = a !== null && b !== null ? Math.max(1, Math.abs(b - a) / 1000) : 1;
  const at = (/** @type {string} */ name, /** @type {number | null} */ time) => (time === null ? "" : `${name} ${seconds(time, step)} s`);
  const apart = a !== null && b !== null ? `B − A ${b < a ? "−" : ""}${duration(Math.abs(b - a))}` : "";
  return [at("A", a), at("B", b), apart].filter(Boolean).join("  ·  ");
}

/** The width of the head of a marker, and of its line, in CSS pixels. */
const [HEAD, LINE] = [12, 1.5];

/** The middles of the heads of the markers: side by side where one would hide the other. @param {{ a: number | null, b: number | null }} markers
 * @param {(aligned: number) => number} x the place of an instant, in device pixels @param {number} s device pixels per CSS pixel
 * @returns {{ a: number, b: number }} NaN for a marker that is not set */
export function headsOf({ a, b }, x, s) {
  const [first, second] = [a, b].map((time) => (time === null ? NaN : x(time)));
  if (!(Math.abs(second - first) < HEAD * s)) return { a: first, b: second };
  const [middle, half] = [(first + second) / 2, ((second < first ? -1 : 1) * HEAD * s) / 2];
  return { a: middle - half, b: middle + half };
}

/** Draws the markers over a pane. @param {CanvasRenderingContext2D} context @param {(aligned: number) => number} x the place of an instant
 * @param {{ left: number, right: number, scale: number }} scale @param {number} top @param {number} bottom */
export function drawMarkers(context, x, scale, top, bottom) {
  const s = scale.scale;
  drawNotes(context, x, scale, top, bottom);
  const heads = headsOf(state.markers, x, s);
  const width = Math.max(1, LINE * s);
  for (const name of /** @type {("a" | "b")[]} */ (["a", "b"])) {
    const time = state.markers[name];
    const at = time === null ? NaN : x(time);
    if (!(at >= scale.left && at <= scale.right)) continue;
    context.fillStyle = COLORS[name];
    // At one instant both lines are to be seen, that of A before it.
    const isShared = name === "a" && state.markers.b !== null && Math.abs(x(state.markers.b) - at) < width;
    context.fillRect(Math.round(at) - (isShared ? width : 0), top, width, bottom - top);
    context.fillRect(heads[name] - (HEAD / 2) * s, top - 2 * s, HEAD * s, HEAD * s);
    context.fillStyle = "#ffffff";
    context.font = `600 ${9 * s}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(name.toUpperCase(), heads[name], top + 4.5 * s);
  }
}
