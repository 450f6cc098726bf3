"""What readers see of a run: tables in several formats, items, charts, and the HTML report.

| module | does |
| --- | --- |
| `labels`, `numbers` | names and numbers as readers see them; which runs are checkpoints |
| `tables`, `sections` | the tables that diagnostics declare, and the remarks below them |
| `formats` | `grid`, the one shape of tables, and its forms: on a terminal, Markdown, LaTeX, csv |
| `items` | every row with its answer, a word at a blank or a sentence; items of rows |
| `listing` | items as a page lists them; chosen items |
| `comparing` | several runs side by side |
| `charts` | Vega-Lite specifications, for pages, files and notebooks |
| `page`, `html` | `report.html`, by the templates in `cards/` |
"""
