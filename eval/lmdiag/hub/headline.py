"""The figures that stand for a run: columns of the leaderboard, and tasks of the benchmark.

The Hub takes one value a task, so each headline figure is a task of its own in the data set's
`eval.yaml`. A task id is the config, the measure with `@` as `_at_` and `.` as `_`, and the level
of a break-down; a test holds this list and that file together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Headline:
    """One figure and where it stands in `results.json`.

    Attributes:
        id: the benchmark's task id.
        task: config.
        measure: name in `measures`.
        label: words for a table's head, below the diagnostic's name.
        by: columns of the break-down, joined by `/`; None for the measure as a whole.
        level: level of the break-down.
    """

    id: str
    task: str
    measure: str
    label: str
    by: str | None = None
    level: str | None = None

    def find(self, results: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns {value, n, ci_low, ci_high} of the unperturbed setting, None where undefined."""
        settings = results["tasks"].get(self.task, {})
        figure = settings.get("none", {}).get("measures", {}).get(self.measure)
        if figure is not None and self.by is not None:
            figure = figure.get("by", {}).get(self.by, {}).get(self.level)
        return figure if figure is not None and figure["value"] is not None else None


SHORT_TITLES = {
    "cprag102": "CPRAG-102",
    "role88": "ROLE-88",
    "neg136": "NEG-136",
    "agreement": "Agreement",
}
"""Config -> its name where there is little room."""

HEADLINES = (
    Headline("cprag102_accuracy_at_1", "cprag102", "accuracy@1", "accuracy@1"),
    Headline("cprag102_accuracy_at_5", "cprag102", "accuracy@5", "accuracy@5"),
    Headline("cprag102_sensitivity", "cprag102", "sensitivity", "sensitivity"),
    Headline("cprag102_sensitivity_at_0_01", "cprag102", "sensitivity@0.01", "sensitivity@0.01"),
    Headline("role88_accuracy_at_1", "role88", "accuracy@1", "accuracy@1"),
    Headline("role88_accuracy_at_5", "role88", "accuracy@5", "accuracy@5"),
    Headline("role88_sensitivity", "role88", "sensitivity", "sensitivity"),
    Headline("role88_sensitivity_at_0_01", "role88", "sensitivity@0.01", "sensitivity@0.01"),
    Headline(
        *("neg136_accuracy_at_1_simp", "neg136", "accuracy@1", "accuracy@1"),
        *("subset", "simp"),
    ),
    Headline(
        *("neg136_accuracy_at_5_simp", "neg136", "accuracy@5", "accuracy@5"),
        *("subset", "simp"),
    ),
    Headline(
        *("neg136_sensitivity_simp_affirmative", "neg136", "sensitivity"),
        *("sensitivity, affirmative", "subset/polarity", "simp/affirmative"),
    ),
    Headline(
        *("neg136_sensitivity_simp_negative", "neg136", "sensitivity"),
        *("sensitivity, negative", "subset/polarity", "simp/negative"),
    ),
    Headline(
        *("neg136_sensitivity_nat", "neg136", "sensitivity", "sensitivity, natural"),
        *("subset", "nat"),
    ),
    Headline("agreement_tse", "agreement", "tse", "TSE"),
    Headline("agreement_ew", "agreement", "ew", "EW"),
    Headline("agreement_mw", "agreement", "mw", "MW"),
)
"""In the order of `eval.yaml`."""

OVERVIEW = (
    "cprag102_accuracy_at_5", "cprag102_sensitivity",
    "role88_accuracy_at_5", "role88_sensitivity",
    "neg136_accuracy_at_5_simp",
    "neg136_sensitivity_simp_affirmative", "neg136_sensitivity_simp_negative",
    "agreement_tse",
)  # fmt: skip
"""Headline figures that a reader sees first; the first of them orders the leaderboard."""
