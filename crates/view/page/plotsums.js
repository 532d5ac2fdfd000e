// Bars of a figure on the lane of a collapsed group: the shares of its CPUs' time, column by column.

/** @typedef {import("./plots.js").Block} Block */
/** @typedef {import("./plots.js").Piece} Piece */
/** @typedef {import("./lanes.js").Scale} Scale */

/** The class of nothing. */
const BLANK = 0;

/** Returns the classes of a piece with their times. @param {Piece} piece @returns {[number, number][]} */
const sharesOf = ([start, end, kind]) => (typeof kind === "number" ? [[kind, end - start]] : kind);

/** Adds the bars of some lanes of a block to the sums of columns, one a pixel: by class the share of the lanes' time, from 0 to 1.
 * @param {Map<number, Float64Array>} sums @param {Block} block @param {Map<number, number>} depths the lanes with their numbers of rows
 * @param {Scale} scale of the columns @param {[number, number]} bounds the part of the block that counts, in ns */
export function addSums(sums, block, depths, scale, [from, to]) {
  const width = scale.right - scale.left;
  for (const row of block.rows) {
    const depth = depths.get(row.lane);
    if (depth === undefined) continue;
    for (const piece of row.pieces) {
      const [start, end] = [Math.max(block.from + piece[0], from, scale.from), Math.min(block.from + piece[1], to, scale.from + width * scale.perPixel)];
      if (end <= start) continue;
      for (const [of, ns] of sharesOf(piece)) {
        if (of === BLANK) continue;
        const part = ns / Math.max(1, piece[1] - piece[0]) / (depth * depths.size);
        let columns = sums.get(of);
        if (!columns) sums.set(of, (columns = new Float64Array(width)));
        const [first, last] = [(start - scale.from) / scale.perPixel, (end - scale.from) / scale.perPixel];
        for (let column = Math.floor(first); column < last && column < width; column++) {
          columns[column] += part * (Math.min(column + 1, last) - Math.max(column, first));
        }
      }
    }
  }
}

/** Draws sums from the bottom of a place up: a share of time is a share of the height, and what is lower than a pixel is paler.
 * @param {CanvasRenderingContext2D} context @param {Map<number, Float64Array>} sums @param {Scale} scale
 * @param {{ y: number, height: number }} place @param {(kind: number) => string} color */
export function drawSums(context, sums, scale, place, color) {
  const below = new Float64Array(scale.right - scale.left).fill(place.y + place.height);
  for (const [kind, columns] of [...sums].sort((a, b) => a[0] - b[0])) {
    context.fillStyle = color(kind);
    columns.forEach((share, column) => {
      if (share <= 0) return;
      const part = share * place.height;
      context.globalAlpha = Math.min(1, Math.max(part, 0.08));
      context.fillRect(scale.left + column, below[column] - Math.max(1, part), 1, Math.max(1, part));
      below[column] -= part;
    });
  }
  context.globalAlpha = 1;
}
