"""NEG-136: category membership and negation.

Two data sets: SIMP (18 items, simple sentences, from Fischler et al. 1983) and NAT (16 items
with more or less natural negation, from Nieuwland and Kuperberg 2008).

Source: Ettinger (2020), sections 5.3 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import (
    Chart,
    Column,
    Diagnostic,
    ExtendedSets,
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


_OF_PAIRS = ("sensitivity*",)
_SIMP = {"affirmative": "simp/affirmative", "negative": "simp/negative"}
"""Heading -> level of subset and polarity."""

_NAT = (
    "natural/affirmative", "natural/negative", "less_natural/affirmative", "less_natural/negative",
)  # fmt: skip


def _sensitivity(start: str) -> tuple[Line, ...]:
    """The figures of SIMP, each polarity with a heading that begins so."""
    return tuple(
        Line(start + name, measure="sensitivity", by="subset/polarity", level=level)
        for name, level in _SIMP.items()
    )


_ACCURACY = Line(measure="accuracy@*", by="subset", level="simp")

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
            columns=tuple(
                Line(name.capitalize(), by="subset/polarity", level=level)
                for name, level in _SIMP.items()
            ),
        ),
        TableShape(
            "Sensitivity, NAT",
            "Ettinger 2020, table 14",
            rows=(Line(measure="sensitivity*"),),
            columns=tuple(Line(by="natural/polarity", level=level) for level in _NAT),
        ),
        TableShape(
            "Sensitivity, NAT, both polarities",
            "Ettinger 2020, section 9.4",
            rows=(Line(measure="sensitivity*"),),
            columns=(
                Line(by="natural", level="natural"),
                Line(by="natural", level="less_natural"),
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
        Chart("levels", "Sensitivity, SIMP", "subset/polarity", (*_SIMP.values(),), _OF_PAIRS),
        Chart("levels", "Sensitivity, NAT", "natural/polarity", _NAT, _OF_PAIRS),
        Chart("scatter", "Affirmative sentences", "polarity", ("affirmative",)),
        Chart("scatter", "Negative sentences", "polarity", ("negative",)),
        Chart(
            "levels",
            "Accuracy in affirmative sentences",
            "subset",
            ("simp", "nat"),
            ("accuracy@*",),
        ),
    ),
    headlines=(
        _ACCURACY,
        *_sensitivity("sensitivity, SIMP "),
        Line("sensitivity, NAT natural", measure="sensitivity", by="natural", level="natural"),
        Line(
            "sensitivity, NAT less natural",
            measure="sensitivity",
            by="natural",
            level="less_natural",
        ),
    ),
    extended_sets=ExtendedSets(
        title="Original and extended sets",
        source="Shivagunde et al. 2023",
        labels={
            "neg136": "NEG-136-SIMP",
            "neg1500_gen": "NEG-1500-GEN",  # generated by GPT-3
            "neg1500_temp": "NEG-1500-TEMP",  # by templates
        },
        columns=(_ACCURACY, *_sensitivity("sensitivity, ")),
    ),
    leaderboard=(
        LeaderboardColumn("neg136", "accuracy@1", "subset", "simp"),
        LeaderboardColumn("neg136", "accuracy@5", "subset", "simp", is_overview=True),
        *(
            LeaderboardColumn(
                "neg136",
                "sensitivity",
                "subset/polarity",
                level,
                f"sensitivity, {name}",
                is_overview=True,
            )
            for name, level in _SIMP.items()
        ),
        LeaderboardColumn("neg136", "sensitivity", "subset", "nat", "sensitivity, NAT"),
    ),
    level_labels={
        "subset": {"simp": "SIMP", "nat": "NAT"},
        "subset/polarity": {
            f"{subset}/{polarity}": f"{subset.upper()}, {polarity}"
            for subset in ("simp", "nat")
            for polarity in _SIMP
        },
        "natural": {"natural": "natural", "less_natural": "less natural"},
        "natural/polarity": {level: level.replace("_", " ").replace("/", ", ") for level in _NAT},
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
