"""Test suites: formulas on the surprisals of regions (Hu et al. 2020; Gauthier et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import Diagnostic, levels_of

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels, Scores, Trials


def _levels(rows: Columns) -> dict[str, Labels]:
    return {"suite": levels_of(rows["suite"])}


def _measures(trials: Trials, threshold: float, k: Sequence[int]) -> list[Scores]:
    from lmdiag.measures import suite_measures

    return suite_measures(trials)


DIAGNOSTIC = Diagnostic(
    name="suites",
    title="",
    short_title="",
    about="",
    breakdowns=("suite",),
    own_levels=_levels,
    further_measures=_measures,
    asks="sentence",
    has_regions=True,
    is_form=True,
)
