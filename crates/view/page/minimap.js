// The overview of the whole extent: running tasks, violation, and the window in view.

import { fillMissing, profileOf } from "./machine.js";
import { rgbOf } from "./palette.js";
import { Raster } from "./raster.js";
import { change, extent, show, state } from "./state.js";
import { gutterWidth } from "./gutter.js";

/** @typedef {ReturnType<typeof import("./palette.js").theme>} Theme */

export class Minimap {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.raster = new Raster();
    let held = false;
    const move = (/** @type {PointerEvent} */ event) => {
      const { from, perPixel, left } = this.scale();
      const time = from + (event.offsetX * (globalThis.devicePixelRatio || 1) - left) * perPixel;
      show(time - state.span / 2, state.span);
    };
    canvas.addEventListener("pointerdown", (event) => {
      held = true;
      canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    canvas.addEventListener("pointermove", (event) => held && move(event));
    canvas.addEventListener("pointerup", () => (held = false));
    canvas.addEventListener("pointercancel", () => (held = false));
    canvas.addEventListener("dblclick", () => change({ selection: null }));
  }

  scale() {
    const s = globalThis.devicePixelRatio || 1;
    const all = extent();
    const [left, right] = [Math.round(gutterWidth() * s), this.canvas.width - Math.round(10 * s)];
    return { left, right, from: all.from, perPixel: (all.to - all.from) / (right - left), scale: s };
  }

  /** @param {Theme} theme */
  draw(theme) {
    const s = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.canvas.clientWidth * s), Math.round(this.canvas.clientHeight * s)];
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const { context } = this;
    context.fillStyle = theme.chrome;
    context.fillRect(0, 0, width, height);
    const scale = this.scale();
    const each = height / Math.max(1, state.traces.length);
    state.traces.forEach((trace, n) => {
      const own = { ...scale, from: scale.from + trace.zero };
      const profile = profileOf(trace, own);
      const cpus = Math.max(1, trace.head.cpus.filter((place) => !place.silent).length);
      const [top, bar] = [n * each + 3 * s, each - 8 * s];
      const [running, violation] = [rgbOf(theme.runningBand), rgbOf(theme.violation)];
      this.raster.begin(scale.right - scale.left, bar + 4 * s);
      fillMissing(this.raster, trace, own, profile, bar + 4 * s, theme);
      profile.running.forEach((mean, x) => {
        if (mean > 0) this.raster.fill(x, x + 1, bar * (1 - Math.min(1, mean / cpus)), bar, running);
        if (profile.violation[x] > 0) this.raster.fill(x, x + 1, bar + 4 * s * (1 - profile.violation[x]), bar + 4 * s, violation);
      });
      this.raster.draw(context, scale.left, top);
    });
    const x = (/** @type {number} */ time) => scale.left + (time - scale.from) / scale.perPixel;
    const [from, to] = [x(state.from), x(state.from + state.span)];
    context.globalAlpha = 0.55;
    context.fillStyle = theme.chrome;
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = Math.max(1, s);
    context.strokeRect(from, 1, Math.max(2 * s, to - from), height - 2);
  }
}
