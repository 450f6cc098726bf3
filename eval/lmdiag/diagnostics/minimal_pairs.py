"""Minimal pairs of a good and a bad sentence, in the form of BLiMP (Warstadt et al. 2020)."""

from __future__ import annotations

from lmdiag.diagnostics.base import Chart, Diagnostic, Line, TableShape

_FIGURES = (Line(measure="sensitivity"), Line(measure="sensitivity_mean"))
_ONE = ("sensitivity",)

DIAGNOSTIC = Diagnostic(
    name="minimal_pairs",
    title="",
    short_title="",
    about=(
        "Minimal pairs of a good and a bad sentence. Sensitivity: the good sentence is more "
        "probable, by the sum over its words; or, mean per token, by the mean over its tokens."
    ),
    asks="sentence",
    is_form=True,
    tables=(
        TableShape("Sensitivity", "", rows=(Line("All"),), columns=_FIGURES),
        TableShape("By field", "", rows=(Line(by="field", level="*"),), columns=_FIGURES),
        TableShape(
            "By term of linguistics",
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
        Chart("levels", "By term of linguistics", by="linguistics_term", measures=_ONE),
        Chart("scatter"),
        Chart("levels", "By paradigm", by="UID", measures=_ONE),
    ),
    headlines=_FIGURES,
)
