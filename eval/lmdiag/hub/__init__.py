"""What is sent to the Hub, and what is read from it.

| module | does |
| --- | --- |
| `client` | names of repositories; errors of the Hub as one line without secrets |
| `commits` | a commit to a repository, planned and shown before it is sent |
| `publish` | plans to publish the data set, the metric and the leaderboard |
| `requests` | requests to a leaderboard: their schema, and reading them from anywhere |
| `submit` | pull requests with a request and with the figures of a run |
| `benchmark` | the figures of the leaderboard: the tasks of `eval.yaml` |
"""
