"""Minimal pairs of sentences, as BLiMP and its kin have them (Warstadt et al. 2020)."""

from __future__ import annotations

from lmdiag.diagnostics.base import Chart, Column, Diagnostic, FigureSelection, TableShape

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

_FIGURES = ("sensitivity", "sensitivity_mean")
_ONE = ("sensitivity",)


DIAGNOSTIC = Diagnostic(
    name="minimal_pairs",
    about=(
        "Minimal pairs of a good and a bad sentence. Sensitivity: the good sentence is more "
        "probable, by the sum over its words; or, mean per token, by the mean over its tokens."
    ),
    columns=tuple(map(Column, _UNUSED)),
    breakdowns=tuple(_TITLES),
    further_measures=("sentence_measures", "share_correlation"),
    asks="sentence",
    is_form=True,
    tables=(
        TableShape("Sensitivity", "", _FIGURES),
        *(
            TableShape(title, "", _FIGURES, by=(by,), is_further=by == "UID")
            for by, title in _TITLES.items()
        ),
    ),
    charts=(
        *(Chart("levels", _TITLES[by], by, measures=_ONE) for by in _TITLES if by != "UID"),
        Chart("scatter"),
        Chart("levels", _TITLES["UID"], by="UID", measures=_ONE),
    ),
    headlines=(FigureSelection(_FIGURES),),
    verbatim=frozenset({"language", "UID", "linguistics_term", "phenomenon"}),
)
