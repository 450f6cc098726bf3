"""What is sent to the Hub, and what is checked before.

| module | does |
| --- | --- |
| `client` | the connection, and the Hub's errors as one line without secrets |
| `publish` | pushes the data set, the metric and the leaderboard |
| `submit` | offers a run to the model's repository and to the results repository |
| `benchmark` | the data that submissions are measured on, and the figures of the leaderboard |
| `names` | what a submission may call its model |
"""
