"""Minimal pairs of sentences, as BLiMP and its kin have them (Warstadt et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import Chart, Column, Diagnostic, Line, TableShape

if TYPE_CHECKING:
    from lmdiag.measures import Scores, Trials

_UNUSED = (
    "pairID", "pair_id", "lexically_identical", "simple_LM_method", "one_prefix_method",
    "two_prefix_method", "one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad",
    "two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word",
)  # fmt: skip
"""Columns of BLiMP on how a pair may be scored; they are kept, but not used as break-downs."""

_FIGURES = (Line(measure="sensitivity"), Line(measure="sensitivity_mean"))
_ONE = ("sensitivity",)


def _measures(trials: Trials, threshold: float, k: Sequence[int]) -> list[Scores]:
    from lmdiag.measures import sentence_measures

    return sentence_measures(trials)


DIAGNOSTIC = Diagnostic(
    name="minimal_pairs",
    title="",
    short_title="",
    about=(
        "Minimal pairs of a good and a bad sentence. Sensitivity: the good sentence is more "
        "probable, by the sum over its words; or, mean per token, by the mean over its tokens."
    ),
    columns=tuple(map(Column, _UNUSED)),
    breakdowns=("UID", "field", "linguistics_term"),
    further_measures=_measures,
    asks="sentence",
    is_form=True,
    tables=(
        TableShape("Sensitivity", "", rows=(Line("All"),), columns=_FIGURES),
        TableShape("By field", "", rows=(Line(by="field", level="*"),), columns=_FIGURES),
        TableShape(
            "By phenomenon",
            "",
            rows=(Line(by="linguistics_term", level="*"),),
            columns=_FIGURES,
        ),
        TableShape(
            "By paradigm", "", rows=(Line(by="UID", level="*"),), columns=_FIGURES, is_further=True
        ),
    ),
    charts=(
        Chart("levels", "By field", by="field", measures=_ONE),
        Chart("levels", "By phenomenon", by="linguistics_term", measures=_ONE),
        Chart("scatter"),
        Chart("levels", "By paradigm", by="UID", measures=_ONE),
    ),
    headlines=_FIGURES,
    verbatim=frozenset({"UID", "linguistics_term"}),
)
