"""What people see of a run: terminal tables, tables for papers, and the HTML report.

| module | does |
| --- | --- |
| `labels` | names as readers see them |
| `layouts` | which measure stands where, in the shape of the papers' tables |
| `records`, `tables` | fills the layouts from `results.json`: plain data, shared by all formats |
| `numbers` | figures as readers see them |
| `terminal` | prints the tables on a terminal |
| `text`, `qualitative` | Markdown, LaTeX and csv; top words of chosen items |
| `items`, `listing` | every item with contexts, words, probabilities and verdicts |
| `headline`, `comparing` | the figures one wants first; several runs, and checkpoints |
| `paired` | comparisons of two models on a terminal |
| `drawing`, `figures`, `curves` | inline SVG that follows the page's colours |
| `diagnostic`, `scenes`, `agreement`, `pictures` | which pictures a diagnostic gets |
| `views`, `html` | `report.html`, by the templates in `cards/` |
| `progress` | the one bar of a run |
"""
