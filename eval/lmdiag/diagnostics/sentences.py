"""Sentences of a user's own, with or without contrasts between them."""

from __future__ import annotations

from lmdiag.diagnostics.base import Chart, Diagnostic, FigureSelection

DIAGNOSTIC = Diagnostic(
    name="sentences",
    about=(
        "Whole sentences. Sensitivity, where good and bad sentences are compared: the good one is "
        "more probable, by the sum over its words, or by the mean over its tokens. Surprisal per "
        "word."
    ),
    breakdowns=("condition",),
    further_measures=("sentence_measures", "share_correlation", "surprisal_per_word", "slor"),
    asks="sentence",
    is_form=True,
    charts=(Chart("figures", "Sensitivity", measures=("sensitivity*",)), Chart("scatter")),
    headlines=(
        FigureSelection(("sensitivity*", "surprisal_per_word")),
        FigureSelection(("surprisal_per_word",), "condition"),
    ),
)
