"""Sentences of a user's own, with or without contrasts between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import Chart, Diagnostic, Line, is_factor, levels_of

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels


def _levels(rows: Columns) -> dict[str, Labels]:
    condition = levels_of(rows["condition"])
    return {"condition": condition} if is_factor(condition) else {}


DIAGNOSTIC = Diagnostic(
    name="sentences",
    title="",
    short_title="",
    about=(
        "Whole sentences. Sensitivity, where good and bad sentences are compared: the good one is "
        "more probable, by the sum over its words, or by the mean over its tokens. Surprisal per "
        "word."
    ),
    own_levels=_levels,
    further_measures=("sentence_measures", "surprisal_per_word"),
    asks="sentence",
    is_form=True,
    charts=(Chart("figures", "Sensitivity", measures=("sensitivity*",)), Chart("scatter")),
    headlines=(
        Line(measure="sensitivity*"),
        Line(measure="surprisal_per_word"),
        Line(measure="surprisal_per_word", by="condition", level="*"),
    ),
)
