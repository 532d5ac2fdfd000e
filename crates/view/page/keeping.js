// What the tiles of lanes and those of rows have in common: a coarser one stands in for one that is missing, and the oldest give way.

/** A tile that is kept. @typedef {{ key: string, used: number, tile: { columns: number } }} AnyKept */

/** Returns the tile of a place, or the finest coarser one with the part of it that stands in: its first column and its number of columns.
 * @template {AnyKept} K @param {Map<string, K>} kept @param {(level: number, index: number) => string} keyOf @param {number} level @param {number} index
 * @param {number} top the coarsest level @returns {{ kept: K, first: number, columns: number } | null} */
export function standIn(kept, keyOf, level, index, top) {
  for (let up = 0; level + up <= top; up++) {
    const parent = Math.floor(index / 2 ** up);
    const found = kept.get(keyOf(level + up, parent));
    if (!found) continue;
    const columns = found.tile.columns / 2 ** up;
    return { kept: found, first: (index - parent * 2 ** up) * columns, columns };
  }
  return null;
}

/** Drops a quarter of the tiles, those that were not drawn for the longest, where there are more than the room. @param {Map<string, AnyKept>} kept
 * @param {number} room */
export function thin(kept, room) {
  if (kept.size <= room) return;
  const oldest = [...kept.values()].sort((a, b) => a.used - b.used).slice(0, room / 4);
  for (const { key } of oldest) kept.delete(key);
}
