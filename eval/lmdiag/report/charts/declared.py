"""Which charts each diagnostic has."""

from __future__ import annotations

from lmdiag.report.charts.kinds import Chart

_POLARITIES = ("affirmative", "negative")
_DECLARED = {
    "cprag102": (
        Chart("figures"),
        Chart("scatter"),
        Chart("levels", "By constraint of the context", "constraint", ("high", "low")),
        Chart("shuffles"),
    ),
    "role88": (
        Chart("figures"),
        Chart("scatter"),
        Chart("cloze"),
        Chart(
            "levels",
            "Accuracy by cloze of the expected word",
            "cloze_quartile",
            ("1", "2", "3", "4"),
            "accuracy@",
        ),
    ),
    "neg136": (
        Chart(
            "levels",
            "Sensitivity, SIMP",
            "subset/polarity",
            tuple(f"simp/{p}" for p in _POLARITIES),
            "sensitivity",
        ),
        Chart(
            "levels",
            "Sensitivity, NAT",
            "natural/polarity",
            tuple(f"{n}/{p}" for n in ("natural", "less_natural") for p in _POLARITIES),
            "sensitivity",
        ),
        *(
            Chart("scatter", f"{p.title()} sentences", "subset/polarity", (f"simp/{p}", f"nat/{p}"))
            for p in _POLARITIES
        ),
        Chart(
            "levels", "Accuracy in affirmative sentences", "subset", ("simp", "nat"), "accuracy@"
        ),
    ),
    "agreement": (Chart("cutoffs"), Chart("constructions"), Chart("scatter")),
}


def charts_of(task: str) -> tuple[Chart, ...]:
    return _DECLARED.get(task, (Chart("figures"), Chart("scatter")))
