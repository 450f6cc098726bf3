"""The leaderboard: a static site made of submissions, each verified again from its predictions.

| module | does |
| --- | --- |
| `collect` | finds submissions, has them judged, says why the others are rejected |
| `standing` | rows: models, the human baseline, published figures; their order and ranks |
| `pictures` | models compared by diagnostic, as SVG |
| `pages` | the page of the board and of each model; templates are in `cards/` |
| `site` | the files: pages, `leaderboard.json`, `leaderboard.parquet`, the Space's card |

Everything in a submission was written by someone else. It reaches a page only through templates
that escape it, and the pages' Content-Security-Policy runs nothing but their own script.
"""
