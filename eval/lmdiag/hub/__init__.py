"""What is sent to the Hub, and what is checked before.

| module | does |
| --- | --- |
| `client` | the connection, and the Hub's errors as one line without secrets |
| `publish` | pushes the data set, the metric and the leaderboard |
| `headline` | the figures that stand for a run, and the ids the Hub knows them by |
| `text` | strangers' text, made fit to be shown |
| `shape` | the form of a `results.json`, read strictly |
| `verify` | recomputes a run from its predictions; says what is wrong with it |
| `plausible` | what predictions say of each other: numbers that no model gives |
| `card` | the card of a run, for people who decide about a pull request |
| `submit` | offers a run to the model's repository and to the results repository |
"""
