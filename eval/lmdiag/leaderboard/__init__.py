"""The leaderboard: requests, the runs that it makes of them, and a static site of these runs.

| module | does |
| --- | --- |
| `board` | what is run on which data; where each run is kept; which requests have a run |
| `running` | runs a request in a child process with limits; keeps the reason of a failure |
| `rows` | ranked rows, requests without a run, claimed figures |
| `comparisons` | every two rows compared |
| `charts` | models by size against each headline figure |
| `site` | the page, `leaderboard.json`, the reports of the runs, the Space's card |
"""
