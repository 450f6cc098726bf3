"""What readers see of a run: tables in several formats, items, charts, and the HTML report.

| module | does |
| --- | --- |
| `labels`, `numbers` | names and numbers as readers see them; what tables of comparisons say |
| `grid` | the one shape of tables, and of sections: tables, charts and remarks with a heading |
| `selections` | the figures of the runs of a report with labels, and selections of them |
| `tables`, `remarks` | sections of diagnostics: pivots of selections, and lines below them |
| `designs` | sections of conditions |
| `human`, `multiverse` | tables, charts and pages of fits to human measures, and of multiverses |
| `terminal`, `formats` | these tables on a terminal, as Markdown, LaTeX and csv |
| `items` | every row with its answer, a word at a blank or a sentence; items of rows |
| `item_list` | the items that a page lists, and the controls of the list |
| `charts` | Vega-Lite specifications, for pages, files and notebooks |
| `headline` | headline figures of a page: rows of few models, columns of many |
| `page`, `html` | `report.html`, by the templates in `cards/` |
"""
