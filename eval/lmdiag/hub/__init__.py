"""What is sent to the Hub, and what is read from it.

| module | does |
| --- | --- |
| `client` | names of repositories; errors of the Hub as one line without secrets |
| `publish` | commits, shown before they are sent; the data set, the metric, the leaderboard |
| `requests` | requests to a leaderboard: their schema; pull requests with them and with figures |
| `benchmark` | the figures of the leaderboard: the tasks of `eval.yaml` |
"""
