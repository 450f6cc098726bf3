"""The leaderboard: a static site made of submissions, each verified again from its predictions.

| module | does |
| --- | --- |
| `collect` | finds submissions, has them judged, says why the others are rejected |
| `outcome` | what came of asking a model again (`lmdiag.reproduction` does it) |
| `standing` | rows of figures: models, people, the published ones; their order and ranks |
| `pictures` | models compared by diagnostic, as SVG |
| `pages` | the view of the board and of each model, and the templates in `cards/` |
| `site` | the files: pages, `leaderboard.json`, `leaderboard.parquet`, the Space's card |

Everything in a submission was written by someone else. It reaches a page through autoescaping
templates alone, and the pages' Content-Security-Policy lets nothing run but their own script.
"""
