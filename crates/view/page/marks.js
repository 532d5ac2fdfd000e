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

/** Draws the markers over a pane. @param {CanvasRenderingContext2D} context @param {(aligned: number) => number} x the place of an instant
 * @param {{ left: number, right: number, scale: number }} scale @param {number} top @param {number} bottom */
export function drawMarkers(context, x, scale, top, bottom) {
  const s = scale.scale;
  drawNotes(context, x, scale, top, bottom);
  for (const name of /** @type {("a" | "b")[]} */ (["a", "b"])) {
    const time = state.markers[name];
    const at = time === null ? NaN : x(time);
    if (!(at >= scale.left && at <= scale.right)) continue;
    context.fillStyle = COLORS[name];
    context.fillRect(Math.round(at), top, Math.max(1, 1.5 * s), bottom - top);
    context.fillRect(at - 6 * s, top - 2 * s, 12 * s, 12 * s);
    context.fillStyle = "#ffffff";
    context.font = `600 ${9 * s}px system-ui, "DejaVu Sans", sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(name.toUpperCase(), at, top + 4.5 * s);
  }
}
