// Elements with text. Names from a trace are text, never markup.

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {Record<string, string>} [attributes]
 * @param {...(Node | string | null)} children @returns {HTMLElementTagNameMap[K]} */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** Returns a patch of colours, from left to right. @param {...string} colors */
export function swatch(...colors) {
  const canvas = el("canvas", { class: "swatch", width: "14", height: "12", "aria-hidden": "true" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  colors.forEach((color, n) => {
    context.fillStyle = color;
    context.fillRect((n * 14) / colors.length, 0, 14 / colors.length, 12);
  });
  return canvas;
}

/** Returns a table of names and values. @param {[string | Node, string | Node][]} rows */
export function pairs(rows) {
  const table = el("table");
  for (const [name, value] of rows) table.append(el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, value)));
  return table;
}

/** Makes a row of a table that a click or the Enter key chooses. Arrows move from row to row. @param {HTMLTableRowElement} row @param {() => void} choose */
export function link(row, choose) {
  row.classList.add("link");
  row.tabIndex = 0;
  row.addEventListener("click", choose);
  row.addEventListener("keydown", (event) => {
    const next = event.key === "ArrowDown" ? row.nextElementSibling : event.key === "ArrowUp" ? row.previousElementSibling : null;
    if (!next && !["Enter", " ", "ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (next instanceof HTMLElement && next.classList.contains("link")) next.focus();
    else if (event.key === "Enter" || event.key === " ") choose();
  });
  return row;
}
