"""What is measured: pure functions from rows and predictions to a score per item.

Every measure is a `Scores`: one number per item (a row, a contrast, a context), from which shares,
means, intervals and comparisons of models all follow (`lmdiag.stats`). Nothing here
reads a file, draws a random number or depends on a model.

Each file of `lmdiag.diagnostics` declares which of them it adds to those of `Diagnostic.score`.
"""

from __future__ import annotations

from lmdiag.measures.agreement import AGREEMENT_LAYOUT, CUTOFFS, agreement
from lmdiag.measures.contrasts import (
    choice_measures,
    human,
    human_shares,
    probability_difference,
    sensitivity,
    sentence_measures,
    share_correlation,
    within_category_boost,
)
from lmdiag.measures.regions import EMPTY_REGION_BITS, part_bits, sentence_parts, suite_measures
from lmdiag.measures.rows import (
    accuracy,
    cloze_correlations,
    correlations,
    determiner_match,
    rank,
    slor,
    surprisal,
    surprisal_per_word,
    with_expected,
)
from lmdiag.measures.scores import Columns, Labels, Scores, Statistic, Trials, quartiles

__all__ = [
    "AGREEMENT_LAYOUT", "CUTOFFS", "EMPTY_REGION_BITS", "Columns", "Labels", "Scores",
    "Statistic", "Trials", "accuracy", "agreement", "choice_measures", "cloze_correlations",
    "correlations", "determiner_match", "human", "human_shares", "part_bits",
    "probability_difference", "quartiles", "rank", "sensitivity", "sentence_measures",
    "sentence_parts", "share_correlation", "slor", "suite_measures", "surprisal",
    "surprisal_per_word", "with_expected", "within_category_boost",
]  # fmt: skip
