"""What is sent to the Hub, and what is checked before.

| module | does |
| --- | --- |
| `client` | the connection, and the Hub's errors as one line without secrets |
| `publish` | pushes the data set, the metric and the leaderboard |
| `headline` | the figures that stand for a run, and the ids the Hub knows them by |
| `text` | text of other people, made fit to be shown |
| `names` | what a model may be called, and what makes two submissions the same |
| `files` | the files of a submission, read once within bounds |
| `shape` | the form of a `results.json`: bounds, types, known fields |
| `decode` | the columns of a Parquet file, within bounds |
| `benchmark` | the data that submissions are measured on |
| `verify` | computes a run's figures again from its predictions; returns what was verified |
| `refusal` | reasons to refuse, few and short |
| `isolation`, `worker` | judge each submission in a child process with limits |
| `plausible` | what predictions say of each other: numbers that no model gives |
| `card` | the card of a run, for people who decide about a pull request |
| `submit` | offers a run to the model's repository and to the results repository |
"""
