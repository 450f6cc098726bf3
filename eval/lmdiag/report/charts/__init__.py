"""Charts of results as Vega-Lite specifications: for the report page, files and notebooks.

`intervals`, `probabilities` and `curves` make specifications from rows of plain data, with `parts`
that they share. `kinds` fills them from the runs (`charted`) of a diagnostic. `theme` colours and
sizes them; `output` writes files and notebook charts and has the script that draws in a page.
"""
