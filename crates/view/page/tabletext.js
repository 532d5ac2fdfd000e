// Tables as CSV and as Markdown, with the commands that print the same numbers.

import { duration } from "./time.js";

/** @typedef {import("./api.js").TableAnswer} TableAnswer */
/** @typedef {import("./tables.js").Column} Column */

/** A word of CSV. @param {string | number | null} value */
function word(value) {
  const text = value === null ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The table as CSV: lengths in ns, an empty cell where a number is unknown, the commands as comments at the end. @param {TableAnswer} answer
 * @param {Column[]} columns */
export function csvOf(answer, columns) {
  const heads = [answer.by, ...columns.map(({ key, isLength }) => (isLength ? `${key}_ns` : key))];
  const row = (/** @type {string} */ name, /** @type {import("./api.js").TableNumbers} */ row) => [name, ...columns.map(({ key }) => row[key])].map(word).join(",");
  const commands = answer.commands.map(({ prints, line }) => `# ${prints}: ${line}`);
  return [heads.join(","), ...answer.rows.map((of) => row(of.name, of)), row("all", answer.all), ...commands, ""].join("\n");
}

/** The table as Markdown, for a mail. @param {TableAnswer} answer @param {Column[]} columns */
export function markdownOf(answer, columns) {
  const cell = (/** @type {Column} */ { isLength }, /** @type {number | null} */ value) => (value === null ? "–" : isLength ? duration(value) : String(value));
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
  const row = (/** @type {string} */ name, /** @type {import("./api.js").TableNumbers} */ row) => line([name, ...columns.map((column) => cell(column, row[column.key]))]);
  const heads = line([answer.by, ...columns.map(({ head }) => head)]);
  const rule = `|---|${"---:|".repeat(columns.length)}`;
  const commands = answer.commands.flatMap(({ prints, line }) => [`# ${prints}`, line]);
  return [heads, rule, ...answer.rows.map((of) => row(of.name, of)), row("all", answer.all), "", "```", ...commands, "```", ""].join("\n");
}
