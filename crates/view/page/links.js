// The short form of an address, as commands print it (crates/timeline/src/page_address.rs): it names what it is about, and that implies the rest.

/** The least time on either side of a stretch, in ns. */
const LEAST_MARGIN = 1000;

/** Adds the parts that a short address implies: one without a window, which is about a wait, an episode or a selection. The page itself writes
 * addresses with a window, which imply nothing. @param {URLSearchParams} parts */
export function completed(parts) {
  if (parts.has("w")) return parts;
  const numbers = (/** @type {string} */ key, /** @type {number} */ count) => {
    const values = (parts.get(key) ?? "").split(",").map(Number);
    return parts.has(key) && values.length === count && values.every(Number.isFinite) ? values : null;
  };
  const imply = (/** @type {string} */ key, /** @type {string} */ value) => parts.has(key) || parts.set(key, value);
  const [wait, story] = [numbers("qw", 4), numbers("e", 3)];
  if (wait) {
    imply("h", `${wait[0]},${wait[1]}`);
    imply("t", "task");
  } else if (story) {
    imply("s", `${story[1]},${story[2]}`);
    imply("r", "all");
    imply("t", "lists");
  }
  const [highlight, selection] = [numbers("h", 2), numbers("s", 2)];
  if (selection && highlight) imply("t", "task");
  if (highlight && parts.get("q") === "pinned") imply("qp", highlight.join(":"));
  const about = wait?.slice(2) ?? story?.slice(1) ?? selection;
  if (about) {
    const [from, to] = [Math.min(...about), Math.max(...about)];
    const margin = Math.max((to - from) / 4, LEAST_MARGIN);
    imply("w", `${from - margin},${to - from + 2 * margin}`);
  }
  return parts;
}

/** A note: its edges in aligned time, in ns, equal for an instant, and its name. @typedef {{ from: number, to: number, text: string }} Note */

/** The maximum number of notes, and of characters of a name: they are in the address. */
export const [MOST_NOTES, LONGEST_NAME] = [100, 80];

/** Reads the notes of an address; what is none is left out. @param {string[]} parts @returns {Note[]} */
export function readNotes(parts) {
  const notes = parts.slice(0, MOST_NOTES).map((part) => {
    const found = /^(-?[0-9]+),(-?[0-9]+),([^]*)$/.exec(part);
    const [from, to] = found ? [Number(found[1]), Number(found[2])] : [NaN, NaN];
    return { from: Math.min(from, to), to: Math.max(from, to), text: (found?.[3] ?? "").slice(0, LONGEST_NAME) };
  });
  return notes.filter(({ from, to }) => Number.isSafeInteger(from) && Number.isSafeInteger(to));
}

/** The form of a note in an address. @param {Note} note */
export const writtenNote = ({ from, to, text }) => `${from},${to},${text}`;
