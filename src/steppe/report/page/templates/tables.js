const data = JSON.parse(document.getElementById("data").textContent);

// A cell is a number, a text, true, false, null, or [value, low, high].
const headline = (cell) => (Array.isArray(cell) ? cell[0] : cell);

function compareCells(first, second) {
  const [a, b] = [headline(first), headline(second)];
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, undefined, { numeric: true });
  if (typeof a === "string" || typeof b === "string") return typeof a === "string" ? 1 : -1;
  return Number(a) - Number(b);
}

// Rows in the order of a column; what is missing stays last whichever way the rest is turned.
function sortedRows(cells, column, direction) {
  const order = cells.map((_, row) => row);
  if (direction === "none") return order;
  const sign = direction === "ascending" ? 1 : -1;
  return order.sort((i, j) => {
    const [a, b] = [cells[i][column], cells[j][column]];
    if (a === null || b === null) return (a === null) - (b === null) || i - j;
    return sign * compareCells(a, b) || i - j;
  });
}

const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

function makeSortable(table, cells) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(head.querySelector(".head"));
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const direction = NEXT[head.getAttribute("aria-sort") ?? "none"];
      for (const other of heads) other.removeAttribute("aria-sort");
      if (direction !== "none") head.setAttribute("aria-sort", direction);
      body.append(...sortedRows(cells, column, direction).map((row) => rows[row]));
    });
  });
}

const shownOrder = (table) => [...table.tBodies[0].rows].map((row) => Number(row.dataset.row));

// A text that begins like a formula would be run by a spreadsheet.
function csvField(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function asCsv(table, { heads, cells }) {
  const hasInterval = heads.map((_, column) => cells.some((row) => Array.isArray(row[column])));
  const titles = heads.flatMap((head, i) => (hasInterval[i] ? [head, `${head} low`, `${head} high`] : [head]));
  const spread = (cell, i) => (hasInterval[i] ? (Array.isArray(cell) ? cell : [cell, null, null]) : [cell]);
  const lines = shownOrder(table).map((row) => cells[row].flatMap(spread));
  return [titles, ...lines].map((line) => line.map(csvField).join(",")).join("\n") + "\n";
}

const oneLine = (text) => text.replace(/\s+/g, " ").trim();
const markdownField = (text) => oneLine(text).replace(/[\\|<>&`*_[\]]/g, "\\$&");

function asMarkdown(table, { heads }) {
  const rules = [...table.tHead.rows[0].cells].map((head) => (head.classList.contains("number") ? "--:" : ":--"));
  const lines = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => markdownField(cell.textContent)));
  return [heads.map(markdownField), rules, ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n") + "\n";
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Older browsers, or a page opened where the clipboard asks for more rights.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function makeCopyable(box, table, content) {
  const bar = box.querySelector(".copy");
  const status = bar.querySelector(".copied");
  bar.hidden = false;
  for (const button of bar.querySelectorAll("button")) {
    button.addEventListener("click", async () => {
      const isCsv = button.dataset.copy === "csv";
      const done = await copyText(isCsv ? asCsv(table, content) : asMarkdown(table, content));
      button.focus();
      status.textContent = done ? `Copied ${content.cells.length} rows` : "The browser refused";
      setTimeout(() => (status.textContent = ""), 4000);
    });
  }
}

document.querySelectorAll(".table").forEach((box, number) => {
  const table = box.querySelector("table");
  makeSortable(table, data.tables[number].cells);
  makeCopyable(box, table, data.tables[number]);
});
