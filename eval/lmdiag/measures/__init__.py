"""What is measured (SPEC 4): pure functions from rows and predictions to a score per item.

Every measure is a `Scores`: one number per item (a row, a contrast, a context), from which shares,
means, intervals, the bootstrap and comparisons of models all follow (`lmdiag.stats`). Nothing here
reads a file, draws a random number or knows of a model.

- `scores`: the record, and the columns that everything is computed from.
- `levels`: which break-downs a table of rows has.
- `accuracy`: accuracy@k, and how well the top k fit a determiner.
- `contrasts`: sensitivity, and what else compares the rows of a contrast; the human row.
- `agreement`: TSE, EW and MW, their cut-offs and the layout in which they are handed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.measures.accuracy import accuracy, determiner_match, expecting
from lmdiag.measures.agreement import (
    AGREEMENT_LAYOUT,
    CUTOFFS,
    Cutoff,
    agreement,
    ew_mw,
)
from lmdiag.measures.contrasts import (
    correlations,
    human,
    probability_difference,
    sensitivity,
    within_category_boost,
)
from lmdiag.measures.levels import construction, in_order
from lmdiag.measures.scores import Columns, Scores, Statistic

__all__ = [
    "AGREEMENT_LAYOUT", "CUTOFFS", "Columns", "Cutoff", "Scores", "Statistic", "accuracy",
    "agreement", "construction", "correlations", "determiner_match", "ew_mw", "expecting", "human",
    "in_order", "probability_difference", "score", "sensitivity", "within_category_boost",
]  # fmt: skip


def score(
    task: str,
    rows: Columns,
    predictions: Columns,
    *,
    k: Sequence[int] = (1, 5),
    threshold: float = 0.01,
    cased: bool = True,
    left_only: bool = False,
) -> list[Scores]:
    """Returns every measure that these rows and predictions allow.

    What is computed follows from the columns that are there, so a diagnostic of one's own needs no
    code: `expected` and top words give accuracy, log-probabilities give sensitivity, and the
    further columns of the four data sets give their extras. A measure without a single item is left
    out, unless it says why it is not defined.

    Args:
        task: name of the config; only "agreement" has measures of its own.
        rows: the core columns, with the contexts that the model was asked, and any further ones,
            each of n values.
        predictions: columns parallel to the rows: `log_prob` (nats, None where unscorable),
            `top_words`, `n_tokens`, `agreement`; each may be missing or all None.
        k: ranks for accuracy.
        threshold: difference in probability for sensitivity@threshold.
        cased: compare words with `expected` exactly, else case-blind.
        left_only: whether the model saw the left context alone, which decides what contexts are
            distinct.

    Raises:
        ValueError: a contrast has several good rows.
    """
    found = [
        *accuracy(rows, predictions, k=k, cased=cased),
        *sensitivity(rows, predictions, threshold=threshold, left_only=left_only),
        *within_category_boost(rows, predictions),
        *probability_difference(rows, predictions, left_only=left_only),
        *correlations(rows, predictions),
        *human(rows, threshold=threshold),
        *determiner_match(rows, predictions, k=k),
    ]
    if task == "agreement":
        found += agreement(rows, predictions, left_only=left_only)
    return [scores for scores in found if len(scores.items) or scores.not_defined]
