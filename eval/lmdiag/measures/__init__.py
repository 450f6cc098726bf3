"""What is measured (SPEC 4): pure functions from rows and predictions to a score per item.

Every measure is a `Scores`: one number per item (a row, a contrast, a context), from which shares,
means, intervals, the bootstrap and comparisons of models all follow (`lmdiag.stats`). Nothing here
reads a file, draws a random number or knows of a model.

- `scores`: the record, and the columns that everything is computed from.
- `levels`: which break-downs a table of rows has.
- `accuracy`: accuracy@k, and how well the top k fit a determiner.
- `words`: surprisal and rank of the words, where no rows are compared.
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
from lmdiag.measures.levels import Levels, construction, in_order, quartiles, row_levels
from lmdiag.measures.scores import Columns, Scores, Statistic
from lmdiag.measures.words import rank, surprisal

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

    A diagnostic of one's own needs no code: `expected` and top words give accuracy,
    log-probabilities give sensitivity, or surprisal and rank where no rows are compared. The four
    diagnostics of the project have extras. A measure without a single item is left out, unless it
    says why it is not defined.

    Args:
        task: name of the config. The names of the four diagnostics are for their rows only; see
            `lmdiag.stimuli`.
        rows: the core columns, with the contexts that the model was asked, and any further ones,
            each of n values; `good` and `contrast` where rows are compared.
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
    levels = row_levels(task, rows)
    bins = {"cloze_quartile": quartiles(rows["expected_cloze"])} if task == "role88" else {}
    found = [
        *accuracy(rows, predictions, levels | bins, k=k, cased=cased),
        *sensitivity(rows, predictions, levels, threshold=threshold, left_only=left_only),
    ]
    if "contrast" not in rows:
        found += [*surprisal(rows, predictions, levels), *rank(rows, predictions, levels)]
    if task == "cprag102":
        found += within_category_boost(rows, predictions, levels)
    elif task == "role88":
        found += cloze_measures(rows, predictions, levels, threshold=threshold, left_only=left_only)
    elif task == "neg136":
        found += determiner_match(rows, predictions, k=k)
    elif task == "agreement":
        found += agreement(rows, predictions, levels, left_only=left_only)
    return [scores for scores in found if len(scores.items) or scores.not_defined]


def cloze_measures(
    rows: Columns, predictions: Columns, levels: Levels, *, threshold: float, left_only: bool
) -> list[Scores]:
    """Returns the measures of ROLE-88 that use the cloze probabilities of its targets."""
    return [
        *probability_difference(rows, predictions, levels, left_only=left_only),
        *correlations(rows, predictions),
        *human(rows, levels, threshold=threshold),
    ]
