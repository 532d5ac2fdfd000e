// Packs of an exported folder: files that hold many tiles each, as the server of static files has them. crates/view/src/pack.rs defines them.

/** @typedef {{ directory: Record<string, [number, number]>, contents: Uint8Array<ArrayBuffer> }} Pack */
/** By series and level: the first place of each pack, and its number. @typedef {Record<string, Record<string, [number, number][]>>} Index */

/** The number of bytes of the packs that are kept. */
const ROOM = 64 << 20;
const MAGIC = 0x31505653;

/** The packs of one trace. */
export class Packs {
  /** @param {(name: string) => Promise<Response>} get requests a file of the trace */
  constructor(get) {
    this.get = get;
    /** @type {Promise<Index> | null} */
    this.index = null;
    /** Those used last are behind. @type {Map<number, { pack: Promise<Pack>, bytes: number }>} */
    this.kept = new Map();
  }

  /** Returns the content of a tile, null if the folder has none. @param {string} series @param {number} level @param {number} place
   * @param {string} name @returns {Promise<ArrayBuffer | null>} */
  async tile(series, level, place, name) {
    this.index ??= this.get("packs.json").then((answer) => answer.json());
    const number = (await this.index)[series]?.[level]?.findLast(([first]) => first <= place)?.[1];
    if (number === undefined) return null;
    const { directory, contents } = await this.pack(number);
    const at = Object.hasOwn(directory, name) ? directory[name] : null;
    return at && contents.slice(at[0], at[0] + at[1]).buffer;
  }

  /** @param {number} number @returns {Promise<Pack>} */
  pack(number) {
    const found = this.kept.get(number) ?? { pack: this.request(number), bytes: 0 };
    this.kept.delete(number);
    this.kept.set(number, found);
    return found.pack;
  }

  /** @param {number} number */
  async request(number) {
    try {
      const pack = unpack(await (await this.get(`packs/${number}.bin`)).arrayBuffer());
      const kept = this.kept.get(number);
      if (kept) kept.bytes = pack.contents.length;
      this.discard(number);
      return pack;
    } catch (error) {
      // The next request tries again.
      this.kept.delete(number);
      throw error;
    }
  }

  /** Gives up the packs that were not used for the longest. @param {number} latest a pack that stays */
  discard(latest) {
    let bytes = [...this.kept.values()].reduce((sum, pack) => sum + pack.bytes, 0);
    for (const [number, pack] of this.kept) {
      if (bytes <= ROOM) return;
      // One under way has no size yet.
      if (number === latest || pack.bytes === 0) continue;
      this.kept.delete(number);
      bytes -= pack.bytes;
    }
  }
}

/** @param {ArrayBuffer} buffer @returns {Pack} */
function unpack(buffer) {
  const data = new DataView(buffer);
  if (buffer.byteLength < 8 || data.getUint32(0, true) !== MAGIC) throw new Error("not a pack of tiles");
  const begin = 8 + data.getUint32(4, true);
  const directory = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, begin - 8)));
  return { directory, contents: new Uint8Array(buffer, begin) };
}
