"""What readers see of a run: tables in several formats, items, charts, and the HTML report.

| module | does |
| --- | --- |
| `labels`, `numbers` | names and numbers as readers see them; what tables of comparisons say |
| `grid`, `tables` | the one shape of tables; the tables of diagnostics and their remarks |
| `terminal`, `formats` | these tables on a terminal, as Markdown, LaTeX and csv |
| `items` | every row with its answer, a word at a blank or a sentence; items of rows |
| `charts` | Vega-Lite specifications, for pages, files and notebooks |
| `page`, `html` | `report.html`, by the templates in `cards/` |
"""
