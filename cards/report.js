"use strict";
// Draws the charts, filters and sorts the lists of items, and connects the two: marks lead to items,
// marks that are selected filter the list, and the list highlights its marks.
(() => {
  const FINE = matchMedia("(pointer: fine)").matches; // without a mouse, a selection would block scrolling
  const NARROW = 440; // pixels of a chart whose panels do not stand beside each other
  const SHOWN = "!shown || indexof(shown, replace(datum.item, '\\u2060', '')) >= 0";
  const itemOf = (row) => row.item.replace("\u2060", ""); // which charts put behind names that objects have

  // ---- lists of items -----------------------------------------------------------------------------

  function setUpList(list) {
    const box = list.querySelector(".list");
    const items = [...box.querySelectorAll(".item")];
    const filters = [...list.querySelectorAll("[data-filter]")];
    const sorter = list.querySelector("[data-sort]");
    const clear = list.querySelector("[data-clear]");
    items.forEach((item, i) => {
      item.dataset.order = i;
      item.words = `${item.id} ${item.textContent}`.replace(/\s+/g, " ").toLowerCase();
      item.name = item.dataset.setting === "none" ? item.id : item.id.slice(item.dataset.setting.length + 1);
    });
    list.querySelector(".controls").hidden = false;
    const update = () => {
      for (const item of items) {
        item.hidden = Boolean(list.selected && !list.selected.has(item.name)) ||
          !filters.every((filter) => matches(item, filter.dataset.filter, filter.value));
      }
      const shown = items.filter((item) => !item.hidden);
      list.querySelector(".shown").textContent = `${shown.length} shown`;
      clear.hidden = !list.selected;
      clear.textContent = `Clear selection (${list.selected ? list.selected.size : 0})`;
      list.shown = list.selected || filters.some((filter) => filter.dataset.filter !== "setting" && filter.value)
        ? [...new Set(shown.map((item) => item.name))] : null;
      list.dispatchEvent(new Event("shown"));
    };
    const sort = () => {
      const descending = sorter.value.startsWith("-");
      const key = sorter.value.replace("-", "");
      const value = (item) => { const own = Number(item.dataset[key]); return Number.isNaN(own) ? null : own; };
      items.sort((a, b) => compare(value(a), value(b), descending) || a.dataset.order - b.dataset.order);
      box.append(...items);
    };
    list.select = (names) => {
      list.selected = names;
      if (names) list.open = true;
      update();
    };
    list.reset = (everySetting) => {
      for (const filter of filters) {
        const all = filter.tagName !== "SELECT" || (everySetting && filter.dataset.filter === "setting");
        filter.value = all ? "" : filter.options[0].value;
      }
      list.select(null);
    };
    for (const filter of filters) filter.addEventListener("input", update);
    sorter.addEventListener("input", sort);
    clear.addEventListener("click", () => list.select(null));
    list.reset();
  }

  function matches(item, name, wanted) {
    if (wanted === "") return true;
    if (name === "text") return item.words.includes(wanted.trim().toLowerCase());
    const own = item.dataset[name];
    if (name === "outcome" && wanted === "changed") return /wrong/.test(own) && /right|narrow/.test(own);
    if (name === "outcome") return own.split(" ").includes(wanted);
    if (name === "levels") return own.split("|").includes(wanted);
    if (name === "place" && wanted === "top") return own && own !== "none";
    return own === wanted;
  }

  // Missing values come last in either direction.
  function compare(a, b, descending) {
    if (a === null || b === null) return (a === null) - (b === null);
    return descending ? b - a : a - b;
  }

  // Brings the item of the page's address into view.
  function reveal() {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && document.getElementById(id);
    const list = target && target.closest("[data-items]");
    if (!list) return;
    if (target.closest("[hidden]")) list.reset(true);
    list.open = true;
    target.scrollIntoView({ block: target === list ? "start" : "center" });
  }

  function open(name) {
    if (location.hash === `#${encodeURIComponent(name)}`) reveal();
    else location.hash = encodeURIComponent(name);
  }

  // ---- models -------------------------------------------------------------------------------------

  // A table of many models: sorted by any column; the chart, if there is one, is of that figure.
  function setUpModels(table) {
    const section = table.closest("section");
    const controls = section.querySelector(".controls");
    const choose = controls.querySelector("[data-choose]");
    const intervals = controls.querySelector("[data-intervals]");
    const plots = choose ? [...section.querySelectorAll(".charts figure")] : [];
    const heads = [...table.tHead.rows[1].cells];
    const show = () => {
      for (const figure of plots) figure.hidden = figure.dataset.name !== choose.value;
      if (window.vegaEmbed) drawAll(plots);
    };
    const sort = (column) => {
      const descending = heads[column].getAttribute("aria-sort") !== "descending";
      heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : descending ? "descending" : "ascending"));
      const value = (row) => { const text = row.cells[column].dataset.sort; return text ? Number(text) : null; };
      const name = (row) => row.cells[0].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => column
        ? compare(value(a), value(b), descending) : name(a).localeCompare(name(b)) * (descending ? -1 : 1));
      table.tBodies[0].append(...rows);
      const option = choose && [...choose.options].find((one) => one.text === heads[column].dataset.figure);
      if (option) {
        choose.value = option.value;
        show();
      }
    };
    controls.hidden = false;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(column));
      head.append(button);
    });
    intervals.addEventListener("input", () => {
      table.classList.toggle("with-intervals", intervals.checked);
      showMore();
    });
    if (choose) choose.addEventListener("input", show);
    show();
  }

  // What lies beyond the right edge of a box fades out.
  function showMore() {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    }
  }

  // ---- charts -------------------------------------------------------------------------------------

  // Unpacks the libraries that draw; the policy of the page names the digest of their text.
  async function unpack() {
    const bytes = Uint8Array.from(atob(document.getElementById("library").textContent), (c) => c.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(text).text();
    document.head.append(script);
  }

  async function draw(figure) {
    const plot = figure.querySelector(".plot");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    figure.width = plot.clientWidth;
    size(spec, figure.width);
    spec.description = figure.querySelector("figcaption").firstChild.textContent;
    const list = figure.closest("section").querySelector("[data-items]");
    const points = list && (spec.layer || []).find((layer) => layer.name === "items");
    if (points) {
      spec.params = [...(spec.params || []), { name: "shown", value: null }];
      if (FINE) points.params = [{ name: "brush", select: "interval" }];
      points.encoding.opacity = { condition: { test: SHOWN, value: 1 }, value: 0.12 };
    }
    if (figure.view) figure.view.finalize();
    const config = JSON.parse(document.getElementById("theme").textContent);
    const { view } = await vegaEmbed(plot, spec, {
      ast: true, renderer: "svg", actions: false, defaultStyle: false, config,
      tooltip: (_, event, item, value) => tip(event, value),
    });
    for (const group of plot.querySelectorAll("[role=graphics-symbol]:not([aria-label])")) group.removeAttribute("role");
    figure.view = view;
    figure.rows = spec.data.values;
    if (points) connect(figure, view, points, list);
  }

  // Makes a chart as wide as its place, axes included; in panels, each one its share. Where there is
  // little room, panels stand below each other.
  function size(spec, width) {
    if (spec.usermeta) {
      if (width < NARROW && spec.columns > 1) Object.assign(spec, { columns: 1, usermeta: { beside: 59 } });
      const panel = (width - spec.usermeta.beside) / (spec.columns || 1);
      for (const view of spec.vconcat || [spec.spec]) view.width = Math.floor(panel);
    } else {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
  }

  // Connects the marks of a chart with the list of items in its section.
  function connect(figure, view, points, list) {
    const note = figure.querySelector(".selected") || figure.insertBefore(document.createElement("p"), figure.querySelector("figcaption"));
    note.className = "selected";
    note.setAttribute("role", "status");
    const highlight = () => {
      const [n, link] = [list.selected?.size ?? 0, document.createElement("a")];
      link.href = `#${encodeURIComponent(list.id)}`;
      link.textContent = `${n} selected: to the list of items`;
      note.replaceChildren(...(list.selected ? [link] : []));
      return view.signal("shown", list.shown).runAsync();
    };
    view.addEventListener("click", (_, item) => { if (item && item.datum && item.datum.item) open(itemOf(item.datum)); });
    if (figure.connection) figure.connection.abort();
    figure.connection = new AbortController();
    const { signal } = figure.connection;
    if (FINE) {
      let ranges = null; // of a selection that is being made
      view.addSignalListener("brush", (_, value) => { ranges = value; });
      addEventListener("pointerup", async () => {
        await view.runAsync();
        if (ranges && Object.keys(ranges).length) list.select(within(points, figure.rows, ranges));
        else if (ranges && list.selected) list.select(null);
        ranges = null;
      }, { signal });
    }
    list.addEventListener("shown", highlight, { signal });
    highlight();
    byKeyboard(figure);
  }

  // Names of the items whose marks lie in a selection; values beyond an axis are drawn at its end.
  function within(points, rows, ranges) {
    const low = (field) => Object.values(points.encoding).find((channel) => channel.field === field).scale?.domain?.[0] ?? -Infinity;
    const fields = Object.entries(ranges).map(([field, [a, b]]) => [field, low(field), Math.min(a, b), Math.max(a, b)]);
    const inside = (row) => fields.every(([field, least, a, b]) => {
      const value = Math.max(row[field], least);
      return value >= a && value <= b;
    });
    return new Set(rows.filter(inside).map(itemOf));
  }

  // One tab stop per chart; the arrows go from mark to mark, Enter opens the item.
  function byKeyboard(figure) {
    const marks = [...figure.querySelectorAll(".plot path")].filter((mark) => mark.__data__?.datum?.item);
    marks.forEach((mark, i) => {
      const datum = mark.__data__.datum;
      mark.setAttribute("role", "link");
      mark.setAttribute("aria-label", `${datum.item}: ${datum.context}`);
      mark.setAttribute("tabindex", i ? -1 : 0);
      mark.addEventListener("focus", () => tip(mark.getBoundingClientRect(), mark.__data__.tooltip));
      mark.addEventListener("blur", () => tip(null, null));
      mark.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Enter") open(itemOf(datum));
        else if (step) {
          const next = marks[(i + step + marks.length) % marks.length];
          mark.setAttribute("tabindex", -1);
          next.setAttribute("tabindex", 0);
          next.focus();
          event.preventDefault();
        }
      });
    });
  }

  // Shows what is known of a mark beside it; text stays text.
  const TIP = document.createElement("dl");
  TIP.className = "tip";
  TIP.hidden = true;
  TIP.setAttribute("role", "tooltip");

  function tip(at, value) {
    TIP.hidden = !value || typeof value !== "object";
    if (TIP.hidden) return;
    // Vega writes these for what a mark lacks
    const known = Object.entries(value).filter(([, text]) => !/^(undefined|null|[+−]?NaN%?)$/.test(text));
    TIP.replaceChildren(...known.flatMap(([key, text]) => {
      const [name, said] = [document.createElement("dt"), document.createElement("dd")];
      name.textContent = key;
      said.textContent = text;
      return [name, said];
    }));
    const [x, y] = [at.clientX ?? at.right, at.clientY ?? at.bottom];
    const [wide, high] = [TIP.offsetWidth, TIP.offsetHeight];
    TIP.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - wide - 8))}px`;
    TIP.style.top = `${y + 12 + high > innerHeight ? Math.max(4, y - high - 12) : y + 12}px`;
  }

  // ---- files --------------------------------------------------------------------------------------

  const SAVE = {
    SVG: async (figure) => new Blob([await svg(figure)], { type: "image/svg+xml" }),
    PNG: async (figure) => {
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await svg(figure))}`;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [3 * image.width, 3 * image.height];
      const brush = canvas.getContext("2d");
      brush.fillStyle = getComputedStyle(document.body).backgroundColor;
      brush.fillRect(0, 0, canvas.width, canvas.height);
      brush.drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((done) => canvas.toBlob(done));
    },
    CSV: async (figure) => new Blob([csv(figure.rows)], { type: "text/csv" }),
  };

  // The chart in the colours that the page has now.
  async function svg(figure) {
    const style = getComputedStyle(document.documentElement);
    const colour = (_, key, name) => `${key}="${style.getPropertyValue(name).trim()}"`;
    return (await figure.view.toSVG()).replace(/(fill|stroke)="var\((--\w+)\)"/g, colour);
  }

  // Text that a spreadsheet would take for a formula gets an apostrophe in front.
  function csv(rows) {
    const columns = [...new Set(rows.flatMap(Object.keys))];
    const cell = (value) => {
      if (typeof value !== "string") return value ?? "";
      const text = /^\s*[=+\-@＝＋－＠]/.test(value) ? `'${value}` : value;
      return `"${text.replaceAll('"', '""')}"`;
    };
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))]
      .map((line) => `${line.map(cell).join(",")}\n`).join("");
  }

  function addButtons(figure) {
    const box = document.createElement("span");
    box.className = "save";
    for (const kind of Object.keys(SAVE)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.title = `Save ${kind === "CSV" ? "the data" : "the chart"} as ${kind}`;
      button.addEventListener("click", async () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(await SAVE[kind](figure));
        link.download = `${figure.dataset.name}.${kind.toLowerCase()}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      });
      box.append(button);
    }
    figure.querySelector("figcaption").append(" ", box);
  }

  // ---- start --------------------------------------------------------------------------------------

  async function drawAll(figures) {
    for (const figure of figures) {
      const isFolded = figure.hidden || figure.closest("details:not([open])");
      if (!isFolded && figure.width !== figure.querySelector(".plot").clientWidth) await draw(figure);
    }
    document.documentElement.dataset.drawn = figures.length;
  }

  for (const list of document.querySelectorAll("[data-items]")) setUpList(list);
  for (const table of document.querySelectorAll(".models")) setUpModels(table);
  for (const box of document.querySelectorAll(".scroll")) box.addEventListener("scroll", showMore);
  for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", showMore);
  addEventListener("resize", showMore);
  showMore();
  addEventListener("hashchange", reveal);
  reveal();
  const figures = [...document.querySelectorAll(".charts figure")];
  if (!figures.length) return;
  document.body.append(TIP);
  for (const box of document.querySelectorAll(".charts")) box.hidden = false;
  figures.forEach(addButtons);
  unpack().then(() => drawAll(figures)).then(reveal);
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => { if (window.vegaEmbed) drawAll(figures); });
  }
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    // a frame may change its size before the libraries are unpacked
    resized = setTimeout(() => { if (window.vegaEmbed) drawAll(figures); }, 200);
  });
})();
