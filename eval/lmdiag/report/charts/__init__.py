"""Charts of results as Vega-Lite specifications: for the report page, files and notebooks.

`specs` has the specifications, `kinds` fills them from runs, `theme` colours and sizes them, and
`output` writes files, notebook charts and the script that draws them in a page.
"""
