"""What people see of a run: terminal tables, tables for papers, and the HTML report.

| module | does |
| --- | --- |
| `labels`, `numbers` | names and numbers as readers see them |
| `tables`, `sections` | the tables that diagnostics declare, as plain data for all formats |
| `terminal` | prints the tables on a terminal |
| `text`, `qualitative` | Markdown, LaTeX and csv; top words of chosen items |
| `items`, `listing` | every item with contexts, words, probabilities and verdicts |
| `comparing`, `checkpoints` | several runs side by side; steps of training |
| `paired` | comparisons of two models on a terminal |
| `charts` | Vega-Lite specifications, for pages, files and notebooks |
| `page`, `html` | `report.html`, by the templates in `cards/` |
"""
