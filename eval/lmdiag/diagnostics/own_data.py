"""Data of any name: a user's own items, and the forms in which others publish theirs.

No column name has a special meaning beyond the core columns: every further column with a few
distinct values is a break-down, `condition` included.
"""

from __future__ import annotations

from lmdiag.diagnostics.base import Chart, Column, Diagnostic, FigureSelection, Finding, TableShape

_OF_SENTENCES = Finding("prefers the good sentence", "prefers the bad sentence")

WORDS_AT_BLANKS = Diagnostic(
    name="custom",
    form="custom",
    about=(
        "A diagnostic of your own. Accuracy where rows have expected words; sensitivity where good "
        "and bad rows are compared; surprisal and rank of the words."
    ),
    breakdowns=("condition",),
    headlines=(
        FigureSelection(("accuracy@*", "sensitivity*", "surprisal")),
        FigureSelection(("surprisal",), "condition"),
        FigureSelection(("rank",)),
    ),
)

WHOLE_SENTENCES = Diagnostic(
    name="sentences",
    form="sentences",
    asks="sentence",
    about=(
        "Whole sentences. Sensitivity, where good and bad sentences are compared: the good one is "
        "more probable, by the sum over its words, or by the mean over its tokens. Surprisal per "
        "word, or of the critical word."
    ),
    breakdowns=("condition",),
    charts=(Chart("figures", "Sensitivity", measures=("sensitivity*",)), Chart("scatter")),
    headlines=(
        FigureSelection(("sensitivity*", "critical_surprisal")),
        FigureSelection(("critical_surprisal",), "condition"),
        FigureSelection(("surprisal_per_word",), unless="critical_surprisal"),
        FigureSelection(("surprisal_per_word",), "condition", unless="critical_surprisal"),
    ),
    finding=_OF_SENTENCES,
)

_OF_NORMS = ("mass", "top_agrees", "divergence", "spearman", "spearman_pooled")

CLOZE_NORMS = Diagnostic(
    name="cloze",
    form="cloze",
    about=(
        "What people said at a blank, and what models expect there. Mass: the probability of all "
        "words that people gave. Divergence: the bits that a response costs beyond the entropy of "
        "the responses. Spearman: over the words of an item."
    ),
    columns=(Column("cloze", "number", required=True), Column("count", "number")),
    tables=(TableShape("People and models", source="", measures=_OF_NORMS),),
    charts=(),
    headlines=(FigureSelection(_OF_NORMS),),
    top=10,
    interval_from=8,
)

_UNUSED = (
    "pairID", "pair_id", "lexically_identical", "simple_LM_method", "one_prefix_method",
    "two_prefix_method", "one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad",
    "two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word",
)  # fmt: skip
"""Columns of BLiMP on how a pair may be scored; they are kept, but not used as break-downs."""

_TITLES = {
    "language": "By language",
    "field": "By field",
    "linguistics_term": "By phenomenon",
    "phenomenon": "By phenomenon",
    "UID": "By paradigm",
}
"""Break-down -> title of its table and its chart."""

_OF_PAIRS = ("sensitivity", "sensitivity_mean")

# as BLiMP and its kin have them (Warstadt et al. 2020)
MINIMAL_PAIRS = Diagnostic(
    name="minimal_pairs",
    form="minimal_pairs",
    asks="sentence",
    about=(
        "Minimal pairs of a good and a bad sentence. Sensitivity: the good sentence is more "
        "probable, by the sum over its words; or, mean per token, by the mean over its tokens."
    ),
    columns=tuple(map(Column, _UNUSED)),
    breakdowns=tuple(_TITLES),
    tables=(
        TableShape("Sensitivity", source="", measures=_OF_PAIRS),
        *(
            TableShape(title, source="", measures=_OF_PAIRS, by=(by,), is_further=by == "UID")
            for by, title in _TITLES.items()
        ),
    ),
    charts=(
        *(
            Chart("levels", _TITLES[by], by, measures=_OF_PAIRS[:1])
            for by in _TITLES
            if by != "UID"
        ),
        Chart("scatter"),
        Chart("levels", _TITLES["UID"], by="UID", measures=_OF_PAIRS[:1]),
    ),
    headlines=(FigureSelection(_OF_PAIRS),),
    finding=_OF_SENTENCES,
    verbatim=frozenset({"language", "UID", "linguistics_term", "phenomenon"}),
)

# formulas on the surprisals of regions (Hu et al. 2020; Gauthier et al. 2020)
TEST_SUITES = Diagnostic(
    name="suites",
    form="suites",
    asks="sentence",
    has_regions=True,
    about=(
        "Sentences in several conditions, divided into regions, with predictions about the "
        "surprisals of regions. Suite accuracy: the share of a suite's predictions that hold, over "
        "items. Prediction accuracy: the same, prediction by prediction."
    ),
    breakdowns=("suite",),
    tables=(
        TableShape("Suite accuracy", source="", measures=("suite_accuracy",), by=("", "suite")),
        TableShape(
            "By prediction",
            source="",
            measures=("prediction_accuracy",),
            by=("", "prediction"),
            is_further=True,
        ),
    ),
    charts=(
        Chart("levels", "By suite", by="suite", measures=("suite_accuracy",)),
        Chart("regions", by="suite"),
    ),
    headlines=(FigureSelection(("suite_accuracy",)),),
    verbatim=frozenset({"suite", "prediction"}),
)
