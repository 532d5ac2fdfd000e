// The hints of a first visit, each on the part of the picture that it is about.

import { isFirstVisit, keepHints } from "./hands.js";

/** @typedef {import("./pane.js").Pane} Pane */

/** The width in CSS pixels below which the hints are one list. */
const APART = 900;
/** The height of a picture in CSS pixels below which they are one list, too: apart they would lie over each other. */
const TALL = 280;
/** The least distance of a hint to the edge of its picture, in CSS pixels. */
const EDGE = 4;
/** What ends the hints. */
const USES = ["pointerdown", "keydown", "wheel"];

const list = () => /** @type {HTMLElement} */ (document.getElementById("hints"));

/** Shows the hints on a first visit, until the page is used. */
export function showHints() {
  if (!isFirstVisit()) return;
  list().hidden = false;
  const away = () => {
    list().hidden = true;
    keepHints();
    for (const kind of USES) removeEventListener(kind, away, true);
  };
  for (const kind of USES) addEventListener(kind, away, true);
}

/** Puts each hint on its part of the picture, as long as there are any. @param {Pane | undefined} pane */
export function placeHints(pane) {
  const hints = list();
  if (hints.hidden || !pane) return;
  const box = pane.canvas.getBoundingClientRect();
  const isApart = innerWidth >= APART && box.height >= TALL;
  hints.classList.toggle("apart", isApart);
  if (!isApart) return;
  const [scale, places] = [pane.scale(), pane.places()];
  const s = scale.scale;
  const across = (/** @type {number} */ share) => box.left + (scale.left + share * (scale.right - scale.left)) / s;
  const down = (/** @type {number} */ y) => box.top + y / s;
  const lanes = (/** @type {number} */ share) => down(places.lanes + share * (places.bottom - places.lanes));
  const hands = /** @type {HTMLElement} */ (document.getElementById("hands")).getBoundingClientRect();
  /** @type {Record<string, [number, number]>} the left and upper edge of each hint, below the part that it points at */
  const at = {
    axis: [across(0.6), down(places.top + 10 * s)],
    violation: [across(0.04), lanes(0) - 14],
    lanes: [across(0.42), lanes(0.36)],
    click: [across(0.12), lanes(0.62)],
    hands: [hands.right, hands.top],
  };
  for (const hint of /** @type {NodeListOf<HTMLElement>} */ (hints.querySelectorAll("li:not([hidden])"))) {
    const [left, top] = at[hint.dataset.at ?? ""] ?? [0, 0];
    const isAbove = hint.dataset.at === "hands";
    // The panel beside the picture is not what they are about.
    hint.style.left = `${Math.round(isAbove ? left - hint.offsetWidth : Math.max(0, Math.min(left, box.right - hint.offsetWidth - EDGE)))}px`;
    hint.style.top = `${Math.round(isAbove ? top - hint.offsetHeight - 10 : top)}px`;
  }
}
