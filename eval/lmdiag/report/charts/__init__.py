"""Charts of results as Vega-Lite specifications: for the report page, files and notebooks.

The specifications are files, `cards/charts/*.json`; `specs` fills them with rows of plain data, and
`kinds` makes the rows from the runs (`charted`) of a diagnostic. `output` colours and sizes them,
writes files and notebook charts, and has the script that draws in a page.
"""
