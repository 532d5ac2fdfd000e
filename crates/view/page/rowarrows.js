// Arrows between the rows of tasks: each leads from a waker to the task that it woke. They are asked for around the view once that rests.

import * as api from "./api.js";
import { xOf } from "./lanes.js";
import { refresh, state } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */
/** @typedef {import("./lanes.js").Scale} Scale */
/** A wakeup: its time in ns, its waker, if that was a task, and the woken task. @typedef {[number, number | null, number]} Wakeup */
/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

/** The number of arrows in view beyond which none is drawn: they would be a grey mass. */
const MOST = 250;
/** The rest of the view after which arrows are asked for, in ms. */
const REST = 250;

/** The wakeups in view between rows in sight, those of one task apart. @param {Wakeup[]} wakeups @param {[number, number]} view
 * @param {(pid: number) => boolean} inSight @param {number} highlighted its PID, or -1 @returns {{ own: Wakeup[], others: Wakeup[] }} */
export function between(wakeups, [from, to], inSight, highlighted) {
  const shown = wakeups.filter(([at, by, pid]) => at >= from && at <= to && by !== null && by !== pid && inSight(by) && inSight(pid));
  const isOwn = (/** @type {Wakeup} */ [, by, pid]) => by === highlighted || pid === highlighted;
  return { own: shown.filter(isOwn), others: shown.filter((wakeup) => !isOwn(wakeup)) };
}

export class RowArrows {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {import("./api.js").WakeupsAnswer | null} */
    this.answer = null;
    /** The window of the answer. */
    this.known = { from: 0, to: -1 };
    this.asking = false;
    this.pause = 0;
    /** The view, and since when it rests. */
    this.view = { key: "", since: 0 };
    /** Whether there are too many for the latest frame. */
    this.tooMany = false;
    /** The number of arrows of the latest frame. */
    this.shown = 0;
  }

  /** Whether the answer has all of its window. */
  isWhole() {
    return this.answer !== null && this.answer.number === this.answer.wakeups.length;
  }

  /** Asks for what is in view, unless it is there, or the view still moves. @param {[number, number]} view */
  want(view) {
    const { known } = this;
    const isInside = known.from <= view[0] && known.to >= view[1];
    // One that is too long for the server is asked for again when it has become much shorter.
    if (isInside && (this.isWhole() || (view[1] - view[0]) * 4 > known.to - known.from)) return;
    const now = performance.now();
    const key = view.join();
    if (this.view.key !== key) this.view = { key, since: now };
    if (this.asking || now < this.pause) return;
    if (now - this.view.since < REST) return void setTimeout(refresh, REST + 10);
    void this.ask(view);
  }

  /** @param {[number, number]} view */
  async ask([from, to]) {
    this.asking = true;
    const margin = (to - from) / 2;
    const window = { from: Math.max(0, Math.floor(from - margin)), to: Math.min(this.trace.head.span, Math.ceil(to + margin)) };
    try {
      this.answer = await api.wakeups(this.trace.index, window.from, window.to);
      this.known = window;
    } catch {
      this.pause = performance.now() + api.AGAIN;
      setTimeout(refresh, api.AGAIN + 1);
    }
    this.asking = false;
    refresh();
  }

  /** Draws the arrows. @param {CanvasRenderingContext2D} context @param {Scale} scale @param {Map<number, number>} middles the heights of the rows in sight, by
   * the PIDs of their tasks @param {Theme} theme */
  draw(context, scale, middles, theme) {
    const { head, index } = this.trace;
    const view = /** @type {[number, number]} */ ([Math.max(0, scale.from), Math.min(head.span, scale.from + (scale.right - scale.left) * scale.perPixel)]);
    [this.tooMany, this.shown] = [false, 0];
    if (!head.full || middles.size < 2 || view[1] <= view[0]) return;
    this.want([Math.floor(view[0]), Math.ceil(view[1])]);
    const highlighted = state.highlight?.trace === index ? state.highlight.pid : -1;
    // Some of a window are none: those that are left out would be missing.
    const wakeups = this.isWhole() && this.answer ? this.answer.wakeups : [];
    const { own, others } = between(wakeups, view, (pid) => middles.has(pid), highlighted);
    this.tooMany = this.answer !== null && !this.isWhole();
    for (const [shown, color] of /** @type {[Wakeup[], string][]} */ ([[others, theme.faint], [own, theme.accent]])) {
      if (shown.length > MOST) this.tooMany = true;
      else this.arrows(context, scale, middles, shown, color);
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Scale} scale @param {Map<number, number>} middles @param {Wakeup[]} wakeups @param {string} color */
  arrows(context, scale, middles, wakeups, color) {
    const s = scale.scale;
    this.shown += wakeups.length;
    // Many are paler than a few: the rows are to be seen behind them.
    context.globalAlpha = wakeups.length > MOST / 4 ? 0.55 : 0.85;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = Math.max(1, s);
    for (const [at, by, pid] of wakeups) {
      const x = Math.round(xOf(scale, at)) + 0.5;
      const [from, to] = [middles.get(by ?? -1) ?? 0, middles.get(pid) ?? 0];
      const back = (to > from ? -4 : 4) * s;
      context.beginPath();
      context.moveTo(x, from);
      context.lineTo(x, to + back);
      context.stroke();
      context.beginPath();
      context.moveTo(x, to);
      context.lineTo(x - 2.5 * s, to + back);
      context.lineTo(x + 2.5 * s, to + back);
      context.fill();
    }
  }
}
