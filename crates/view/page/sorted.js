// Tables with heads that name each column and its unit, and sort by it.

import { el, link } from "./dom.js";
import { seconds } from "./time.js";

/** A column. `kind`: an instant in ns, a length in ns, a plain number, a short text, or words that wrap. `value` is what the column sorts by; `show` is shown in its place.
 * @template Row
 * @typedef {{ key: string, head: string, kind: "time" | "length" | "number" | "text" | "words", value: (row: Row) => number | string | null,
 *   show?: (row: Row) => Node | string, title?: (row: Row) => string }} Column */

/** The order of each table by its name: a column's key and whether the largest come first. @type {Map<string, { key: string, down: boolean }>} */
const orders = new Map();

const UNITS = /** @type {[string, number][]} */ ([["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]);

/** Returns the unit of lengths whose longest is this, with its ns. @param {number} longest */
export const unitFor = (longest) => UNITS.findLast(([, ns]) => longest >= ns) ?? UNITS[0];

/** Orders rows by a column; missing values are last, and rows of equal values stay as they were. @template Row @param {Row[]} rows
 * @param {Column<Row>} column @param {boolean} down @returns {Row[]} */
function ordered(rows, column, down) {
  const way = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return typeof x === "number" && typeof y === "number" ? way * (x - y) : way * String(x).localeCompare(String(y));
  });
}

/** Returns the rows of a table in its order: the given one until a head was clicked. @template Row @param {string} name
 * @param {Column<Row>[]} columns @param {Row[]} rows */
export function inOrder(name, columns, rows) {
  const order = orders.get(name);
  const column = order && columns.find(({ key }) => key === order.key);
  return order && column ? ordered(rows, column, order.down) : rows;
}

/** @param {Column<any>} column */
const isText = ({ kind }) => kind === "text" || kind === "words";

/** Makes a table of rows in their order. @template Row @param {{ name: string, label: string, columns: Column<Row>[], rows: Row[],
 *   isCurrent?: (row: Row) => boolean, choose: (row: Row) => void, changed: () => void }} table */
export function sortedTable({ name, label, columns, rows, isCurrent, choose, changed }) {
  const order = orders.get(name);
  const units = new Map(columns.filter(({ kind }) => kind === "length").map((column) => {
    const longest = rows.reduce((most, row) => Math.max(most, Number(column.value(row) ?? 0)), 0);
    return [column.key, unitFor(longest)];
  }));
  const heads = columns.map((column) => {
    const unit = column.kind === "time" ? "s" : units.get(column.key)?.[0];
    const isOrder = order?.key === column.key;
    const arrow = isOrder ? (order.down ? " ▾" : " ▴") : "";
    const button = el("button", { type: "button", title: `Sort by ${column.head}` }, column.head + (unit ? ` (${unit})` : "") + arrow);
    button.addEventListener("click", () => {
      // Numbers begin with the largest, times and texts with the first.
      const down = isOrder ? !order.down : column.kind === "length" || column.kind === "number";
      orders.set(name, { key: column.key, down });
      changed();
    });
    const sort = isOrder ? (order.down ? "descending" : "ascending") : "none";
    return el("th", { scope: "col", "aria-sort": sort, ...(isText(column) ? {} : { class: "number" }) }, button);
  });
  const text = (/** @type {Column<Row>} */ column, /** @type {Row} */ row) => {
    const value = column.value(row);
    if (column.show) return column.show(row);
    if (value === null) return "–";
    if (column.kind === "time") return seconds(Number(value), 1000);
    const unit = units.get(column.key);
    return unit ? (Number(value) / unit[1]).toFixed(unit[1] === 1 ? 0 : 3) : typeof value === "number" ? value.toLocaleString("en") : value;
  };
  const body = el("tbody");
  for (const row of inOrder(name, columns, rows)) {
    const line = el("tr");
    for (const column of columns) {
      const attributes = { class: column.kind === "text" ? "clip" : column.kind === "words" ? "words" : "number", ...(column.title ? { title: column.title(row) } : {}) };
      line.append(el("td", attributes, text(column, row)));
    }
    if (isCurrent?.(row)) {
      line.className = "current";
      line.setAttribute("aria-current", "true");
    }
    body.append(link(line, () => choose(row)));
    // One stop of the Tab key in a long list: its current row, or its first one.
    line.tabIndex = -1;
  }
  const stop = /** @type {HTMLElement | null} */ (body.querySelector(".current") ?? body.querySelector("tr"));
  if (stop) stop.tabIndex = 0;
  return el("div", { class: "sorted" }, el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, ...heads)), body));
}
