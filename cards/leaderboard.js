"use strict";
// Sorting, filtering and comparing of what the page already holds: no data comes from anywhere else,
// and text is only ever read, never written as markup.

const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
const board = document.getElementById("board");
const comparison = document.getElementById("comparison");
const rows = () => Array.from(board.tBodies[0].rows);
const keyOf = (row, column) => row.cells[column].getAttribute("data-sort");

function compareKeys(a, b, numeric, sign) {
  // What has no value stands last whichever way the column is sorted.
  if (a === "" || b === "") return (a === "") - (b === "");
  return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b));
}

function sortBy(heading) {
  const column = Number(heading.dataset.column);
  const numeric = "numeric" in heading.dataset;
  const orders = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
  const order = heading.getAttribute("aria-sort") === orders[0] ? orders[1] : orders[0];
  const sign = order === "ascending" ? 1 : -1;
  const keyed = rows().map((row, index) => ({ row, index, key: keyOf(row, column) }));
  keyed.sort((a, b) => compareKeys(a.key, b.key, numeric, sign) || a.index - b.index);
  board.tBodies[0].append(...keyed.map((item) => item.row));
  all("th[aria-sort]", board).forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", order);
  if (heading.classList.contains("figure")) showRanks(keyed);
}

// One more than the number of rows with a higher figure: equal figures share a rank.
function showRanks(keyed) {
  const values = keyed.filter((item) => item.key !== "").map((item) => Number(item.key));
  keyed.forEach((item) => {
    const higher = values.filter((value) => value > Number(item.key)).length;
    item.row.querySelector(".rank").textContent = item.key === "" ? "" : String(higher + 1);
  });
}

function addCell(row, name, text, kind) {
  const cell = document.createElement(name);
  cell.textContent = text;
  if (kind) cell.className = kind;
  row.append(cell);
}

const points = (share) => `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)}`.replace("-", "−");

// Difference, interval and p of a comparison as text; dashes for what is not defined or not compared.
function shown([difference, low, high, p]) {
  return [
    difference === null ? "–" : points(difference),
    low === null ? "–" : `${points(low)} to ${points(high)}`,
    p === null ? "–" : p < 0.001 ? "< .001" : p > 0.9995 ? "1" : p.toFixed(3).slice(1),
  ];
}

function compareRows(base, added) {
  const pair = [base, added];
  const heads = all("thead th", comparison);
  pair.forEach((row, i) => {
    const name = `${row.querySelector("th bdi").textContent} (${row.dataset.detail})`;
    heads[i + 1].textContent = `${["Base", "New"][i]}: ${name}`;
  });
  const { results, columns } = JSON.parse(comparison.dataset.comparisons);
  const numbers = pair.map((row) => Number(row.dataset.number));
  const body = comparison.querySelector("tbody");
  body.replaceChildren();
  all("thead th[data-id]", board).forEach((heading) => {
    const column = Number(heading.dataset.column);
    const keys = pair.map((row) => keyOf(row, column));
    if (keys[0] === "" && keys[1] === "") return;
    const row = document.createElement("tr");
    addCell(row, "th", heading.dataset.name);
    keys.forEach((key) => addCell(row, "td", key === "" ? "–" : (100 * Number(key)).toFixed(1)));
    const result = results[columns[heading.dataset.id][numbers[0]][numbers[1]]] || [null, null, null, null];
    const kind = result[0] > 0 ? "more" : result[0] < 0 ? "less" : "";
    shown(result).forEach((text, i) => addCell(row, "td", text, i === 0 ? kind : ""));
    body.append(row);
  });
  comparison.hidden = false;
}

let chosen = [];
all(".pick", board).forEach((box) => {
  box.hidden = false;
  box.addEventListener("change", () => {
    chosen = chosen.filter((other) => other !== box);
    if (box.checked) chosen.push(box);
    if (chosen.length > 2) chosen.shift().checked = false;
    comparison.hidden = true;
    if (chosen.length === 2) compareRows(...chosen.map((pick) => pick.closest("tr")));
  });
});

function isWithin(size, range) {
  const [low, high] = range.split("-").map(Number);
  return range === "" || (Number(size) >= low && Number(size) < high);
}

function filterRows(controls) {
  const text = controls.text.value.trim().toLowerCase();
  let shown = 0;
  rows().forEach((row) => {
    row.hidden = !(row.dataset.search.toLowerCase().includes(text)
      && (controls.kind.value === "" || row.dataset.kind === controls.kind.value)
      && isWithin(row.dataset.size, controls.size.value));
    shown += !row.hidden;
  });
  document.getElementById("board-count").textContent = `${shown} of ${rows().length} rows`;
}

function showColumns(group) {
  all("[data-groups]", board).forEach((cell) => {
    cell.hidden = group !== "" && !cell.dataset.groups.split(" ").includes(group);
  });
  all("[data-span]", board).forEach((cell) => {
    const span = Number(group === "overview" ? cell.dataset.overview : cell.dataset.span);
    cell.hidden = span === 0 || !["", "overview", cell.dataset.task].includes(group);
    cell.colSpan = Math.max(1, span);
  });
}

// What lies beyond the right edge of a box fades out.
function showMore() {
  all(".scroll").forEach((box) => {
    box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  });
}

all("th[aria-sort]", board).forEach((heading) => {
  heading.querySelector("button").addEventListener("click", () => sortBy(heading));
});
const form = document.getElementById("board-controls");
const update = () => {
  filterRows(form.elements);
  showColumns(form.elements.columns.value);
  showMore();
};
all(".scroll").forEach((box) => box.addEventListener("scroll", showMore));
addEventListener("resize", showMore);
form.addEventListener("input", update);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
update();
