"""The leaderboard: requests, the runs that it makes of them, and a static site of these runs.

| module | does |
| --- | --- |
| `entries` | reads requests; rows are entries with a run, a rank and claimed figures |
| `board` | runs requests in child processes with limits; keeps runs and reasons of failures |
| `comparisons` | every two rows compared |
| `site` | the page and its charts, `leaderboard.json`, the reports of the runs, the Space's card |
"""
