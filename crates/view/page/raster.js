// Columns of colour as pixels: a path of a thousand rectangles takes a software renderer a tenth of a second, these a millisecond.

import { mixed } from "./palette.js";

/** The pixels of a strip, drawn column by column and then put onto a canvas. */
export class Raster {
  constructor() {
    this.canvas = new OffscreenCanvas(1, 1);
    this.context = /** @type {OffscreenCanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.image = this.context.createImageData(1, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.width = this.height = 1;
  }

  /** Begins a blank strip. @param {number} width @param {number} height in pixels */
  begin(width, height) {
    [width, height] = [Math.max(1, Math.round(width)), Math.max(1, Math.ceil(height))];
    if (this.width !== width || this.height !== height) {
      [this.width, this.height] = [this.canvas.width, this.canvas.height] = [width, height];
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0);
  }

  /** Fills the columns from `x` up to `right` between two heights. A pixel that is covered in part is as pale as its part, and one that several
   * fills cover is their mixture. @param {number} x @param {number} right @param {number} top @param {number} bottom @param {number} rgb
   * @param {number} [strength] between 0 and 1 */
  fill(x, right, top, bottom, rgb, strength = 1) {
    [x, right] = [Math.max(0, x), Math.min(this.width, right)];
    [top, bottom] = [Math.max(0, top), Math.min(this.height, bottom)];
    for (let y = Math.floor(top); y < bottom; y++) {
      const part = (Math.min(bottom, y + 1) - Math.max(top, y)) * strength;
      for (let at = y * this.width + x, end = y * this.width + right; at < end; at++) this.pixels[at] = over(this.pixels[at], rgb, part);
    }
  }

  /** Draws the strip. @param {CanvasRenderingContext2D} context @param {number} x @param {number} y */
  draw(context, x, y) {
    this.context.putImageData(this.image, 0, 0);
    context.drawImage(this.canvas, x, Math.round(y));
  }
}

/** Returns a pixel with a colour over a part of it. @param {number} below the pixel @param {number} rgb @param {number} part */
function over(below, rgb, part) {
  const covered = (below >>> 24) / 255;
  if (covered === 0 || part >= 0.998) return pixelOf(rgb, Math.min(1, part));
  const old = ((below & 255) << 16) | (below & 0xff00) | ((below >> 16) & 255);
  // The parts are beside one another as long as there is room.
  const beside = Math.min(1, covered + part);
  return pixelOf(mixed(old, rgb, covered + part <= 1 ? part / beside : part), beside);
}

/** @param {number} rgb @param {number} alpha */
const pixelOf = (rgb, alpha) => ((Math.round(255 * alpha) << 24) | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
