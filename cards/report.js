"use strict";
// Filters and sorts the lists of items, and brings the item of a link into view.

for (const list of document.querySelectorAll("[data-items]")) setUp(list);
addEventListener("hashchange", reveal);
reveal();

function setUp(list) {
  const box = list.querySelector(".list");
  const items = [...box.querySelectorAll(".item")];
  const filters = [...list.querySelectorAll("[data-filter]")];
  const sorter = list.querySelector("[data-sort]");
  items.forEach((item, i) => {
    item.dataset.order = i;
    item.words = item.textContent.toLowerCase();
  });
  list.querySelector(".controls").hidden = false;
  const update = () => {
    let shown = 0;
    for (const item of items) {
      item.hidden = !filters.every((filter) => matches(item, filter.dataset.filter, filter.value));
      if (!item.hidden) shown += 1;
    }
    list.querySelector(".shown").textContent = `${shown} shown`;
  };
  const sort = () => {
    const descending = sorter.value.startsWith("-");
    const key = sorter.value.replace("-", "");
    const value = (item) => (item.dataset[key] === "" ? null : Number(item.dataset[key]));
    items.sort((a, b) => compare(value(a), value(b), descending) || a.dataset.order - b.dataset.order);
    box.append(...items);
  };
  list.reset = () => {
    for (const filter of filters) filter.value = filter.tagName === "SELECT" ? filter.options[0].value : "";
    update();
  };
  list.showAll = () => {
    list.reset();
    for (const filter of filters) if (filter.dataset.filter === "setting") filter.value = "";
    update();
  };
  for (const filter of filters) filter.addEventListener("input", update);
  sorter.addEventListener("input", sort);
  list.reset();
}

function matches(item, name, wanted) {
  if (wanted === "") return true;
  if (name === "text") return item.words.includes(wanted.trim().toLowerCase());
  const own = item.dataset[name];
  if (name === "outcome") return own.split(" ").includes(wanted);
  if (name === "levels") return own.split("|").includes(wanted);
  if (name === "expected" && wanted === "top") return own !== "" && own !== "none";
  return own === wanted;
}

// Missing values come last in either direction.
function compare(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  return descending ? b - a : a - b;
}

function reveal() {
  let id = "";
  try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
  const target = id && document.getElementById(id);
  const list = target && target.closest("[data-items]");
  if (!list) return;
  if (target.closest("[hidden]")) list.showAll();
  list.open = true;
  target.scrollIntoView({ block: "center" });
}
