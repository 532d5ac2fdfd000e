// Times as text, and ticks of an axis.

/** Returns a length with three significant digits and its unit. @param {number} ns */
export function duration(ns) {
  const size = Math.abs(ns);
  if (size < 1000) return `${Math.round(ns)} ns`;
  for (const [unit, scale] of /** @type {[string, number][]} */ ([["µs", 1e3], ["ms", 1e6], ["s", 1e9]])) {
    const value = ns / scale;
    if (Math.abs(value) < 999.5 || unit === "s") {
      const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
      return `${value.toFixed(unit === "s" && Math.abs(value) >= 99.95 ? 1 : digits)} ${unit}`;
    }
  }
  return "";
}

/** Returns an instant in seconds with as many decimals as `step` needs. @param {number} ns @param {number} [step] */
export function seconds(ns, step = 1) {
  const decimals = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)) - 1e-9)));
  const text = (Math.abs(ns) / 1e9).toFixed(decimals);
  return (Math.round(ns) < 0 && Number(text) !== 0 ? "−" : "") + text;
}

/** @param {number} share between 0 and 1 */
export const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.1 && share > 0 ? 2 : 1)} %` : "–");

/** Returns ascending numbers as ranges: `0-3, 8`. @param {number[]} numbers */
export function ranges(numbers) {
  /** @type {[number, number][]} */
  const found = [];
  for (const number of numbers) {
    const last = found[found.length - 1];
    if (last && last[1] + 1 === number) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(", ");
}

/** Returns the step of an axis that has a tick at least every `ns`: 1, 2 or 5 times a power of ten. @param {number} ns */
export function tickStep(ns) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, ns)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= ns) ?? power * 10;
}
