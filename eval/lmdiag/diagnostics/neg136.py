"""NEG-136: category membership and negation.

Two data sets: SIMP (18 items, simple sentences, from Fischler et al. 1983) and NAT (16 items
with more or less natural negation, from Nieuwland and Kuperberg 2008).

Source: Ettinger (2020), sections 5.3 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.diagnostics import extended
from lmdiag.diagnostics.base import (
    Chart,
    Column,
    Diagnostic,
    LeaderboardColumn,
    Line,
    TableShape,
    crossed,
    levels_of,
)

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels, Scores, Trials


def _levels(rows: Columns) -> dict[str, Labels]:
    """Subset and naturalness, each alone and crossed with polarity."""
    names = {"true": "natural", "false": "less_natural"}
    polarity = levels_of(rows["polarity"])
    levels = {
        "subset": levels_of(rows["subset"]),
        "natural": [names.get(level or "", level) for level in levels_of(rows["natural"])],
    }
    return levels | {f"{by}/polarity": crossed(levels[by], polarity) for by in levels}


def _measures(trials: Trials, threshold: float, k: Sequence[int]) -> list[Scores]:
    from lmdiag.measures import determiner_match

    return determiner_match(trials, k)


_SIMP = ("simp/affirmative", "simp/negative")
_NAT = (
    "natural/affirmative", "natural/negative", "less_natural/affirmative", "less_natural/negative",
)  # fmt: skip

DIAGNOSTIC = Diagnostic(
    name="neg136",
    title="NEG-136: category membership and negation",
    short_title="NEG-136",
    about=(
        "Affirmative and negated statements, most of them of category membership. Accuracy: the "
        "category is among the first k words of the model in affirmative sentences. Sensitivity: "
        "the word that makes a sentence true is more probable than the word that makes it false."
    ),
    position=3,
    columns=(
        Column("subset", required=True),
        Column("polarity", required=True),
        Column("natural", "boolean", required=True),
    ),
    item_within="subset",
    own_levels=_levels,
    further_measures=_measures,
    tables=(
        TableShape(
            "Accuracy, affirmative contexts",
            "Ettinger 2020, table 11",
            rows=(Line(measure="accuracy@*"),),
            columns=(
                Line("SIMP", by="subset", level="simp"),
                Line("NAT", by="subset", level="nat"),
            ),
        ),
        TableShape(
            "Sensitivity, SIMP",
            "Ettinger 2020, table 12",
            rows=(Line(measure="sensitivity*"),),
            columns=(
                Line("Affirmative", by="subset/polarity", level="simp/affirmative"),
                Line("Negative", by="subset/polarity", level="simp/negative"),
            ),
        ),
        TableShape(
            "Sensitivity, NAT",
            "Ettinger 2020, table 14",
            rows=(Line(measure="sensitivity*"),),
            columns=(
                Line("natural, affirmative", by="natural/polarity", level="natural/affirmative"),
                Line("natural, negative", by="natural/polarity", level="natural/negative"),
                Line(
                    "less natural, affirmative",
                    by="natural/polarity",
                    level="less_natural/affirmative",
                ),
                Line(
                    "less natural, negative", by="natural/polarity", level="less_natural/negative"
                ),
            ),
        ),
        TableShape(
            "Sensitivity, NAT, both polarities",
            "Ettinger 2020, section 9.4",
            rows=(Line(measure="sensitivity*"),),
            columns=(
                Line("natural", by="natural", level="natural"),
                Line("less natural", by="natural", level="less_natural"),
            ),
        ),
        TableShape(
            "Further measures",
            "",
            rows=(Line(measure="determiner_match@*"),),
            columns=(Line(setting="*"),),
        ),
    ),
    charts=(
        Chart("levels", "Sensitivity, SIMP", "subset/polarity", _SIMP, ("sensitivity*",)),
        Chart("levels", "Sensitivity, NAT", "natural/polarity", _NAT, ("sensitivity*",)),
        Chart("scatter", "Affirmative sentences", by="polarity", levels=("affirmative",)),
        Chart("scatter", "Negative sentences", by="polarity", levels=("negative",)),
        Chart(
            "levels",
            "Accuracy in affirmative sentences",
            by="subset",
            levels=("simp", "nat"),
            measures=("accuracy@*",),
        ),
    ),
    headlines=(
        Line(measure="accuracy@*", by="subset", level="simp"),
        Line(
            "sensitivity, SIMP affirmative",
            measure="sensitivity",
            by="subset/polarity",
            level="simp/affirmative",
        ),
        Line(
            "sensitivity, SIMP negative",
            measure="sensitivity",
            by="subset/polarity",
            level="simp/negative",
        ),
        Line("sensitivity, NAT natural", measure="sensitivity", by="natural", level="natural"),
        Line(
            "sensitivity, NAT less natural",
            measure="sensitivity",
            by="natural",
            level="less_natural",
        ),
    ),
    extended_sets=extended.NEGATION_SETS,
    leaderboard=(
        LeaderboardColumn(
            "neg136_accuracy_at_1_simp", "accuracy@1", "accuracy@1", "subset", "simp"
        ),
        LeaderboardColumn(
            "neg136_accuracy_at_5_simp",
            "accuracy@5",
            "accuracy@5",
            "subset",
            "simp",
            is_overview=True,
        ),
        LeaderboardColumn(
            "neg136_sensitivity_simp_affirmative",
            "sensitivity, affirmative",
            "sensitivity",
            "subset/polarity",
            "simp/affirmative",
            is_overview=True,
        ),
        LeaderboardColumn(
            "neg136_sensitivity_simp_negative",
            "sensitivity, negative",
            "sensitivity",
            "subset/polarity",
            "simp/negative",
            is_overview=True,
        ),
        LeaderboardColumn(
            "neg136_sensitivity_nat", "sensitivity, NAT", "sensitivity", "subset", "nat"
        ),
    ),
    level_labels={
        "subset": {"simp": "SIMP", "nat": "NAT"},
        "subset/polarity": {
            "simp/affirmative": "SIMP, affirmative",
            "simp/negative": "SIMP, negative",
            "nat/affirmative": "NAT, affirmative",
            "nat/negative": "NAT, negative",
        },
        "natural": {"natural": "natural", "less_natural": "less natural"},
        "natural/polarity": {
            "natural/affirmative": "natural, affirmative",
            "natural/negative": "natural, negative",
            "less_natural/affirmative": "less natural, affirmative",
            "less_natural/negative": "less natural, negative",
        },
    },
    # A model that ignores negation is right in the affirmative sentences and wrong in the negative
    # ones, which a pooled figure would hide (Ettinger 2020, tables 11, 12 and 14).
    compared_by={
        "accuracy": "subset",
        "sensitivity": "subset/polarity",
        "determiner_match": "polarity",
    },
    untagged=frozenset({"subset", "natural"}),
    published_rows=136,
)
