/**
 * The places where a spreadsheet would read a formula. Some split lines at `;` or tabs, whatever our
 * separator is. Quotes in the middle of a line then have no effect.
 */
const FORMULA = /(^|[;\t\r\n])(?=["\s]*[=+\-@])|^(?=[\t\r])/g;

export type Cell = string | number | boolean | null | undefined;

function cell(value: Cell): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const safe = value.replace(FORMULA, "$1'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows as CSV text, with the byte order mark that makes spreadsheets read UTF-8. */
export function csv(rows: Cell[][]): string {
  return `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

export function download(name: string, rows: Cell[][]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv;charset=utf-8" }));
  link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}
