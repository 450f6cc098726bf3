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

// Rows of one model stay together: groups are ordered by their best row, and rows within them.
function sortBy(table, heading) {
  const column = Number(heading.getAttribute("data-column"));
  const numeric = heading.hasAttribute("data-numeric");
  const now = heading.getAttribute("aria-sort");
  const first = numeric ? "descending" : "ascending";
  const other = numeric ? "ascending" : "descending";
  const direction = now === first ? other : first;
  const sign = direction === "ascending" ? 1 : -1;
  const order = (a, b) => compare(a.key, b.key, numeric, sign) || a.index - b.index;
  const body = table.tBodies[0];
  const groups = new Map();
  Array.from(body.rows).forEach((row, index) => {
    const name = row.dataset.group || String(index);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({ row, index, key: keyOf(row, column) });
  });
  const sorted = Array.from(groups.values(), (rows) => rows.sort(order));
  sorted.sort((a, b) => order(a[0], b[0]));
  body.append(...sorted.flat().map((each) => each.row));
  all("th[aria-sort]", table).forEach((each) => each.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", direction);
  sorted.forEach((rows) => rows.forEach((each, place) => {
    each.row.classList.toggle("further", place > 0);
  }));
  if (heading.classList.contains("figure")) showRanks(sorted, column);
}

// One more than the number of models with a higher figure: equal figures share a rank.
function showRanks(groups, column) {
  const best = (rows) => Math.max(...rows.map((each) => Number(each.key)));
  const ranked = groups.filter((rows) => rows[0].key !== "" && rows[0].row.querySelector(".rank"));
  groups.flat().forEach((each) => {
    const place = each.row.querySelector(".rank");
    if (place) place.textContent = "";
  });
  ranked.forEach((rows) => {
    const higher = ranked.filter((others) => best(others) > best(rows)).length;
    rows[0].row.querySelector(".rank").textContent = String(higher + 1);
  });
}

function textCell(row, name, text, kind) {
  const cell = document.createElement(name);
  cell.textContent = text;
  if (kind) cell.className = kind;
  row.append(cell);
}

// The table of two selected rows: every figure that either has, and their difference in points.
function compareRows(table, section, one, other) {
  const nameOf = (row) => `${row.querySelector("th bdi").textContent} (${row.dataset.detail})`;
  const heads = section.querySelectorAll("thead th");
  heads[1].textContent = nameOf(one);
  heads[2].textContent = nameOf(other);
  const body = section.querySelector("tbody");
  body.replaceChildren();
  all("thead th.figure", table).forEach((heading) => {
    const column = Number(heading.dataset.column);
    const keys = [keyOf(one, column), keyOf(other, column)];
    if (keys[0] === "" && keys[1] === "") return;
    const shown = [one, other].map((row) => {
      const value = row.cells[column].querySelector(".value");
      const interval = row.cells[column].querySelector(".interval");
      if (!value) return "–";
      const bounds = interval ? interval.textContent : "";
      return bounds ? `${value.textContent} (${bounds})` : value.textContent;
    });
    const row = document.createElement("tr");
    const label = heading.querySelector("button").textContent;
    textCell(row, "th", `${heading.dataset.title}, ${label}`);
    textCell(row, "td", shown[0]);
    textCell(row, "td", shown[1]);
    const both = keys[0] !== "" && keys[1] !== "";
    const points = both ? 100 * (Number(keys[1]) - Number(keys[0])) : 0;
    const sign = points > 0 ? "+" : "";
    textCell(row, "td", both ? `${sign}${points.toFixed(1)}` : "–", points > 0 ? "more" : "less");
    body.append(row);
  });
  section.hidden = false;
}

function chooseTwo(table, section) {
  let chosen = [];
  all(".pick", table).forEach((box) => {
    box.hidden = false;
    box.addEventListener("change", () => {
      chosen = chosen.filter((each) => each !== box);
      if (box.checked) chosen.push(box);
      if (chosen.length > 2) chosen.shift().checked = false;
      section.hidden = true;
      if (chosen.length === 2) {
        compareRows(table, section, chosen[0].closest("tr"), chosen[1].closest("tr"));
      }
    });
  });
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
  chooseTwo(board, document.getElementById("comparison"));
  listen(form, () => {
    filterBoard(form, board, count);
    showColumns(board, form.elements.columns.value);
  });
}

const itemControls = document.getElementById("item-controls");
if (itemControls) {
  listen(itemControls, () => filterItems(itemControls, document.getElementById("item-count")));
}
