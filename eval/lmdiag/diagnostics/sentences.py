"""Sentences of a user's own, with or without contrasts between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import Diagnostic, is_factor, levels_of

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels, Scores, Trials


def _levels(rows: Columns) -> dict[str, Labels]:
    condition = levels_of(rows["condition"])
    return {"condition": condition} if is_factor(condition) else {}


def _measures(trials: Trials, threshold: float, k: Sequence[int]) -> list[Scores]:
    from lmdiag.measures import sentence_measures

    return sentence_measures(trials)


DIAGNOSTIC = Diagnostic(
    name="sentences",
    title="",
    short_title="",
    about="",
    own_levels=_levels,
    further_measures=_measures,
    asks="sentence",
    is_form=True,
)
