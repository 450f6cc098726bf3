// What scrolls can be reached by the keyboard; titles in the navigation are headings of a level.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .cell_output, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  for (const title of document.querySelectorAll("p.caption[role=heading]")) title.ariaLevel = "2";
});
