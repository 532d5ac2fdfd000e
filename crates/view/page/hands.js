// The ways of mouse and keys: those of a map, or those of Perfetto. Which one is a matter of the user, kept between visits.
//
// A cookie keeps it, not the storage of the page: each run of the program serves another port, and a storage belongs to one port alone.

/** @typedef {"map" | "perfetto"} Hands */
/** What a wheel does. @typedef {"zoom" | "lanes" | "height" | "time"} Wheel */
/** What a key does. @typedef {"in" | "out" | "left" | "right" | "up" | "down" | "cursorLeft" | "cursorRight" | "select" | "open" | "all" | "fit" | "next" | "former"
 *   | "fold" | "unfold" | "lower" | "higher" | "colour" | "theme" | "search" | "help" | "mark" | "grow" | "panel" | "markA" | "markB" | "pin" | "waker" | "wakee" | "jump" | "path" | "pathBack" | "note" | "undo" | "redo"} Action */

const NAME = "schedviz-hands";
const HINTS = "schedviz-hints";
/** A year, in seconds. */
const YEAR = 31536000;

/** The value of a cookie of the page; empty without one. @param {string} text all cookies @param {string} name */
export const kept = (text, name) => text.split(/;\s*/).find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";

/** @param {string} name @param {string} value */
function keep(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR}; SameSite=Strict`;
}

/** Returns the hands of the former visit. @returns {Hands} */
export const keptHands = () => (kept(document.cookie, NAME) === "perfetto" ? "perfetto" : "map");

/** @param {Hands} hands */
export const keepHands = (hands) => keep(NAME, hands);

/** Whether this is the first visit, as far as is known. */
export const isFirstVisit = () => kept(document.cookie, HINTS) === "";

export const keepHints = () => keep(HINTS, "seen");

/** Returns what the wheel does. @param {Hands} hands @param {{ ctrlKey: boolean, shiftKey: boolean, deltaX: number, deltaY: number }} event @returns {Wheel} */
export function wheelOf(hands, { ctrlKey, shiftKey, deltaX, deltaY }) {
  const isSideways = Math.abs(deltaX) > Math.abs(deltaY);
  if (hands === "perfetto") return ctrlKey ? "zoom" : shiftKey || isSideways ? "time" : "lanes";
  return ctrlKey ? "height" : shiftKey ? "lanes" : isSideways ? "time" : "zoom";
}

/** Whether a drag selects; it moves the window otherwise. @param {Hands} hands @param {{ shiftKey: boolean, axis: boolean }} press */
export const selects = (hands, { shiftKey, axis }) => axis || (hands === "perfetto" ? !shiftKey : shiftKey);

/** The keys of both. @type {Record<string, Action>} */
const BOTH = {
  w: "in", "+": "in", "=": "in", s: "out", "-": "out", "−": "out", a: "left", ArrowLeft: "left", d: "right", ArrowRight: "right",
  ArrowUp: "up", ArrowDown: "down", Enter: "open", 0: "all", Home: "all", c: "fold", e: "unfold", "{": "lower", "}": "higher",
  t: "theme", "/": "search", "?": "help", n: "next", p: "former", A: "markA", B: "markB", i: "pin", "[": "waker", "]": "wakee", j: "jump", k: "path", K: "pathBack", b: "note", u: "undo", U: "redo",
};
/** @type {Record<Hands, Record<string, Action>>} */
const OWN = {
  map: { z: "fit", m: "colour", ",": "cursorLeft", ".": "cursorRight", "<": "select", ">": "select" },
  perfetto: { f: "fit", z: "fit", m: "mark", r: "grow", q: "panel", ",": "former", ".": "next" },
};

/** Returns what a key does; nothing for one that is not used. A letter with the shift key has its own meaning, or else that of the letter.
 * @param {Hands} hands @param {string} key @returns {Action | undefined} */
export function actionOf(hands, key) {
  const small = key.length === 1 ? key.toLowerCase() : key;
  return OWN[hands][key] ?? BOTH[key] ?? OWN[hands][small] ?? BOTH[small];
}
