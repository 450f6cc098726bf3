"use strict";
// Sorting and filtering of what the page already holds: no data comes from anywhere else, and text
// is only ever read, never written as markup.

const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

function keyOf(row, column) {
  const cell = row.cells[column];
  return cell && cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : "";
}

function compare(a, b, numeric, sign) {
  // What has no value stands last whichever way the column is sorted.
  if (a === "" || b === "") return (a === "") - (b === "");
  return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b));
}

function sortBy(table, heading) {
  const column = Number(heading.getAttribute("data-column"));
  const numeric = heading.hasAttribute("data-numeric");
  const now = heading.getAttribute("aria-sort");
  const first = numeric ? "descending" : "ascending";
  const other = numeric ? "ascending" : "descending";
  const direction = now === first ? other : first;
  const sign = direction === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows).map((row, index) => ({ row, index, key: keyOf(row, column) }));
  rows.sort((a, b) => compare(a.key, b.key, numeric, sign) || a.index - b.index);
  body.append(...rows.map((each) => each.row));
  all("th[aria-sort]", table).forEach((each) => each.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", direction);
}

function within(size, range) {
  if (range === "") return true;
  const [low, high] = range.split("-").map(Number);
  return size !== "" && Number(size) >= low && Number(size) < high;
}

function filterBoard(form, table, count) {
  const text = form.elements.text.value.trim().toLowerCase();
  const kind = form.elements.kind.value;
  const size = form.elements.size.value;
  const others = form.elements.others.value;
  let shown = 0;
  let models = 0;
  Array.from(table.tBodies[0].rows).forEach((row) => {
    const submitted = row.dataset.origin === "submitted";
    const fits = row.dataset.search.toLowerCase().includes(text)
      && (kind === "" || row.dataset.kind === kind)
      && within(row.dataset.size, size)
      && (submitted || others === "");
    row.hidden = !fits;
    models += submitted;
    shown += fits && submitted;
  });
  count.textContent = `${shown} of ${models} models`;
}

function showColumns(table, group) {
  all("[data-groups]", table).forEach((cell) => {
    cell.hidden = group !== "" && !cell.dataset.groups.split(" ").includes(group);
  });
  all("[data-span]", table).forEach((cell) => {
    const span = group === "overview" ? Number(cell.dataset.overview) : Number(cell.dataset.span);
    cell.hidden = span === 0 || (group !== "" && group !== "overview" && cell.dataset.task !== group);
    cell.colSpan = Math.max(1, span);
  });
}

function filterItems(form, count) {
  const text = form.elements.text.value.trim().toLowerCase();
  const task = form.elements.task.value;
  const outcome = form.elements.outcome.value;
  let shown = 0;
  let total = 0;
  all("section[data-task]").forEach((section) => {
    const here = task === "" || section.dataset.task === task;
    let inside = 0;
    all("tbody", section).forEach((body) => {
      const fits = here
        && body.dataset.search.toLowerCase().includes(text)
        && (outcome === "" || body.dataset.outcome.split(" ").includes(outcome));
      body.hidden = !fits;
      total += 1;
      inside += fits;
    });
    section.hidden = inside === 0;
    shown += inside;
  });
  count.textContent = `${shown} of ${total} items`;
}

function listen(form, update) {
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
}

all("table[data-sortable]").forEach((table) => {
  all("th[aria-sort]", table).forEach((heading) => {
    heading.querySelector("button").addEventListener("click", () => sortBy(table, heading));
  });
});

const board = document.getElementById("board");
if (board) {
  const form = document.getElementById("board-controls");
  const count = document.getElementById("board-count");
  listen(form, () => {
    filterBoard(form, board, count);
    showColumns(board, form.elements.columns.value);
  });
}

const itemControls = document.getElementById("item-controls");
if (itemControls) {
  listen(itemControls, () => filterItems(itemControls, document.getElementById("item-count")));
}
