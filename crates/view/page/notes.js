// Notes: named marks on an instant or a window, in a list of the panel, in the address, and so in an exported folder.

import { el, link } from "./dom.js";
import { add, begin, go, isCurrent } from "./entries.js";
import { LONGEST_NAME, MOST_NOTES } from "./links.js";
import { change, state } from "./state.js";
import { duration, seconds } from "./time.js";

/** @typedef {import("./links.js").Note} Note */

/** The colour of notes. */
const COLOR = "#7048e8";
/** The notes in the order of time; the number of each is its place in the state. */
const inOrder = () => state.notes.map((note, n) => ({ note, n })).sort((a, b) => a.note.from - b.note.from || a.n - b.n);

/** Adds a note to the selection, or to the cursor's instant, and asks for its name. @param {number} instant */
export function addNote(instant) {
  if (state.notes.length >= MOST_NOTES) return;
  const [from, to] = (state.selection ?? [instant, instant]).map(Math.round);
  change({ notes: [...state.notes, { from, to, text: "" }], tab: "lists", list: "notes", story: null });
  wanted = state.notes.length - 1;
}

/** The note whose name is to be typed as soon as its row is there. */
let wanted = -1;

/** @param {number} n @param {Partial<Note> | null} patch null removes the note */
function edit(n, patch) {
  change({ notes: state.notes.flatMap((note, other) => (other !== n ? [note] : patch ? [{ ...note, ...patch }] : [])) });
}

/** Shows a note. @param {Note} note @param {number} n */
export function showNote({ from, to }, n) {
  const trace = state.traces[0];
  go({ trace, from: from + trace.zero, to: to + trace.zero, cpu: null, pid: null, place: n });
  if (to === from) change({ place: { trace: 0, cpu: state.place?.cpu ?? trace.head.cpus[0]?.cpu ?? 0, time: from } });
}

/** The list of the notes. @returns {Node[]} */
export function noteList() {
  begin("list notes");
  const instant = state.place?.time ?? state.from + state.span / 2;
  const more = el("button", { type: "button", title: "B" }, state.selection ? "Note on the selection" : "Note at the cursor");
  more.disabled = state.notes.length >= MOST_NOTES;
  more.addEventListener("click", () => addNote(instant));
  const bar = el("div", { class: "choice" }, more);
  if (state.notes.length === 0) return [bar];
  const [trace] = state.traces;
  const table = el("table", { class: "notes", "aria-label": "Notes" });
  for (const { note, n } of inOrder()) {
    const entry = add({ trace, from: note.from + trace.zero, to: note.to + trace.zero, cpu: null, pid: null, place: n, go: () => showNote(note, n) });
    const name = el("input", { type: "text", value: note.text, placeholder: "name", "aria-label": "Name of the note", maxlength: String(LONGEST_NAME), spellcheck: "false" });
    name.addEventListener("click", (event) => event.stopPropagation());
    name.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") name.blur();
    });
    // The panel is not drawn anew while a name is typed.
    name.addEventListener("blur", () => name.value.trim() !== note.text && edit(n, { text: name.value.trim() }));
    const away = el("button", { type: "button", class: "ref", title: "Remove the note", "aria-label": "Remove the note" }, "×");
    away.addEventListener("click", (event) => {
      event.stopPropagation();
      edit(n, null);
    });
    const row = el("tr", isCurrent(entry) ? { class: "current" } : {}, el("td", { class: "number" }, `${seconds(note.from, Math.max(1, (note.to - note.from) / 100))} s`), el("td", { class: "number" }, note.to > note.from ? duration(note.to - note.from) : ""), el("td", {}, name), el("td", {}, away));
    table.append(link(row, () => showNote(note, n)));
    if (n === wanted) {
      wanted = -1;
      setTimeout(() => name.focus());
    }
  }
  return [bar, table];
}

/** Returns the note whose flag or bar is at a place of the axis, the latest first. @param {number} x in device pixels
 * @param {(aligned: number) => number} place the place of an instant @param {number} s device pixels per CSS pixel */
export function noteAt(x, place, s) {
  const near = (/** @type {Note} */ note) => x >= place(note.from) - 6 * s && x <= Math.max(place(note.to), place(note.from)) + 6 * s;
  return inOrder().findLast(({ note }) => near(note)) ?? null;
}

/** @param {Note} note */
export function aboutNote({ from, to, text }) {
  const step = Math.max(1, (to - from) / 1000);
  const where = to > from ? `${seconds(from, step)} s to ${seconds(to, step)} s  ·  ${duration(to - from)}` : `${seconds(from, 1)} s`;
  return [text || "note without a name", where, "click: go there"].join("\n");
}

/** Draws the notes over a pane: a flag with its name at an instant, a bar below the axis over a window. @param {CanvasRenderingContext2D} context
 * @param {(aligned: number) => number} x @param {{ left: number, right: number, scale: number }} scale @param {number} top @param {number} bottom */
export function drawNotes(context, x, scale, top, bottom) {
  const s = scale.scale;
  context.font = `${10 * s}px system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  let free = -Infinity;
  for (const { note } of inOrder()) {
    const [from, to] = [Math.max(scale.left, x(note.from)), Math.min(scale.right, x(note.to))];
    if (to < scale.left || from > scale.right) continue;
    context.fillStyle = COLOR;
    if (note.to > note.from) {
      context.globalAlpha = 0.1;
      context.fillRect(from, top, to - from, bottom - top);
      context.globalAlpha = 1;
      context.fillRect(from, top - 3 * s, Math.max(2 * s, to - from), 3 * s);
    }
    context.fillRect(Math.round(from), top - 3 * s, Math.max(1, s), bottom - top);
    const width = context.measureText(note.text).width + 8 * s;
    // A name that would lie over the one before has its line alone; all lie below the length of the selection.
    if (!note.text || from < free || from + width > scale.right) continue;
    context.fillRect(from, top + 20 * s, width, 13 * s);
    context.fillStyle = "#ffffff";
    context.fillText(note.text, from + 4 * s, top + 27 * s);
    free = from + width + 4 * s;
  }
}
