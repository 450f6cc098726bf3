"""Queries submitted models again: does a submission say what the model answers?

| module | does |
| --- | --- |
| `sample` | which contexts are queried, and what the submission says of them |
| `agree` | compares answers with the submission, within a tolerance for each dtype |
| `worker` | a process that loads one model and queries it |
| `attempts` | one attempt for each entry of a leaderboard, kept on disk and resumed |

Recomputing the figures of a submission shows that they follow from its predictions. Reproducing
shows that the predictions are the model's. Only `worker` imports a model, in a process of its own.
"""
