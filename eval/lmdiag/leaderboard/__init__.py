"""The leaderboard: a static site made of submissions, each verified again from its predictions.

| module | does |
| --- | --- |
| `collect` | finds submissions, verifies them, says why the others are rejected |
| `standing` | rows of figures: models, people, the published ones; their order |
| `pictures` | models compared by diagnostic, as SVG |
| `pages` | the view of the board and of each model, and the templates in `cards/` |
| `site` | the files: pages, `leaderboard.json`, `leaderboard.parquet`, the Space's card |

Everything in a submission is data from a stranger. It reaches a page through autoescaping templates
alone, and the pages' Content-Security-Policy lets nothing run but their own script.
"""
