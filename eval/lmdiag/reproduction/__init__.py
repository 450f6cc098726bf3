"""Asking submitted models again: is what a submission says what the model answers?

| module | does |
| --- | --- |
| `sample` | which contexts are asked, and what the submission says of them |
| `agree` | compares answers with what was submitted, within a tolerance for each dtype |
| `worker` | a process that loads one model and asks it |
| `attempts` | one attempt for each entry of a leaderboard, kept on disk and resumed |

Recomputing a submission's figures shows that they follow from its predictions. This shows that the
predictions are the model's. Only `worker` imports a model, in a process of its own.
"""
