"""Queries submitted models again: does a submission say what the model answers?

| module | does |
| --- | --- |
| `claims` | which contexts are queried, what the submission says of them, what differs |
| `worker` | a process that loads one model and queries it |
| `attempts` | one attempt for each entry of a leaderboard, kept on disk and resumed |

Recomputing the figures of a submission shows that they follow from its predictions. Reproducing
shows that the predictions are the model's. Only `worker` imports a model, in a process of its own.
"""
