"""What is measured: pure functions from rows and predictions to a score per item.

Every measure is a `Scores`: one number per item (a row, a contrast, a context), from which shares,
means, intervals and comparisons of models all follow (`lmdiag.stats`). Nothing here
reads a file, draws a random number or depends on a model.

A measure is registered where it is defined (`register`): which diagnostics have it, and
what readers call it. Nothing else has to know of it.
"""

from __future__ import annotations

from lmdiag.measures.accuracy import rows_with_expected
from lmdiag.measures.agreement import AGREEMENT_LAYOUT, CUTOFFS
from lmdiag.measures.cloze import ItemWords, item_measures, response_folds, words_of_items
from lmdiag.measures.contrasts import probability_difference, sensitivity
from lmdiag.measures.norms import cloze_correlations, human_shares
from lmdiag.measures.regions import (
    CRITICAL,
    EMPTY_REGION_BITS,
    critical_region,
    part_bits,
    sentence_parts,
    words_sharing_tokens,
)
from lmdiag.measures.registry import (
    REGISTRY,
    MeasureName,
    is_human,
    is_pooled,
    measures_of,
    register,
    registered,
    shown_as,
)
from lmdiag.measures.rows import PSEUDO
from lmdiag.measures.scores import (
    Columns,
    Labels,
    Scores,
    Statistic,
    Trials,
    fold_word,
    folds_for,
    match_rule,
    quartiles,
)

__all__ = [
    "AGREEMENT_LAYOUT", "CRITICAL", "CUTOFFS", "EMPTY_REGION_BITS", "PSEUDO", "REGISTRY", "Columns",
    "ItemWords", "Labels", "MeasureName", "Scores", "Statistic", "Trials", "cloze_correlations",
    "critical_region", "fold_word", "folds_for", "human_shares", "is_human", "is_pooled",
    "item_measures", "match_rule", "measures_of", "part_bits", "probability_difference",
    "quartiles", "register", "registered", "response_folds", "rows_with_expected", "sensitivity",
    "sentence_parts", "shown_as", "words_of_items", "words_sharing_tokens",
]  # fmt: skip
