// The address of the page holds the view, and the browser's list of pages the views before it: the back button returns to the former view, and so
// does undo.

import { read, state, written } from "./state.js";

/** The time after a change at which it is written, in ms: browsers refuse to change the address more often. */
const REST = 150;
/** A move of the window that begins this long after the last one is a new view, in ms. */
const APART = 1000;
/** The changes that are no view of their own. */
const PASSING = new Set(["theme", "filter", "lane", "events", "eventCpus"]);
/** The changes that follow one another while the window moves. */
const MOVES = new Set(["from", "span"]);

/** @type {ReturnType<typeof setTimeout>} */
let writing;
/** Whether the view is that of an entry of the browser's list. */
let restored = true;
/** Whether a new view has begun since the address was written. */
let begun = false;
/** The time of the last move. */
let moved = -Infinity;

/** The number of views before the one that is shown, and the number of all as far as is known. @type {{ at: number, all: number }} */
const past = { at: Number(globalThis.history?.state?.at) || 0, all: 0 };
/** Called when a step to a former or a later view becomes possible or impossible. @type {(undoes: boolean, redoes: boolean) => void} */
let told = () => {};

/** @param {typeof told} listener */
export function onPast(listener) {
  told = listener;
  tell();
}

const tell = () => told(past.at > 0, past.at < past.all);

/** Returns to the former view. */
export function undo() {
  // What was changed last is a view of its own, even before it is written.
  clearTimeout(writing);
  write();
  if (past.at > 0) history.back();
}

/** Goes to the view that was left by undo. */
export function redo() {
  if (past.at < past.all) history.forward();
}

/** Writes the view into the address, soon. @param {Set<string>} changes */
export function remember(changes) {
  const now = performance.now();
  // A view that grows with the index is none of its own.
  restored ||= state.traces.some((trace) => !trace.head.full);
  for (const change of changes) {
    if (MOVES.has(change)) begun ||= now - moved > APART;
    else if (!PASSING.has(change)) begun = true;
  }
  if ([...MOVES].some((move) => changes.has(move))) moved = now;
  clearTimeout(writing);
  writing = setTimeout(write, REST);
}

function write() {
  const text = "#" + written();
  if (text !== location.hash) {
    if (begun && !restored) {
      past.all = ++past.at;
      history.pushState({ at: past.at }, "", text);
    } else history.replaceState({ at: past.at }, "", text);
    tell();
  }
  // The next move is not a part of the one that a step through the list, or the first view, was.
  if (restored) moved = -Infinity;
  begun = restored = false;
}

/** Shows the view of the address, after a step through the browser's list or a change of the address by hand. */
export function restore() {
  restored = true;
  moved = -Infinity;
  const at = history.state?.at;
  // An address that was typed has no number: it is a view behind the one before.
  past.at = Number.isInteger(at) ? at : past.at + 1;
  past.all = Number.isInteger(at) ? Math.max(past.all, at) : past.at;
  if (at !== past.at) history.replaceState({ at: past.at }, "");
  tell();
  read(location.hash.slice(1));
}
