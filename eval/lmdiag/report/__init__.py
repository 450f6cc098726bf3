"""What readers see of a run: tables in several formats, items, charts, and the HTML report.

| module | does |
| --- | --- |
| `labels`, `numbers` | names and numbers as readers see them; which runs are checkpoints |
| `tables`, `sections` | the tables that diagnostics declare, as plain data |
| `formats` | the tables on a terminal, as Markdown, LaTeX and csv |
| `items`, `listing` | every item with its words and probabilities; chosen items |
| `comparing` | several runs side by side |
| `charts` | Vega-Lite specifications, for pages, files and notebooks |
| `page`, `html` | `report.html`, by the templates in `cards/` |
"""
