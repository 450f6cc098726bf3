"""ROLE-88: semantic roles and event knowledge.

Source: Ettinger (2020), sections 5.2 and 8; items of Chow, Smith, Lau and Phillips (2016).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import (
    Chart,
    Column,
    Diagnostic,
    ExtendedSets,
    FigureSelection,
    Perturbation,
    Stimulus,
    TableShape,
)
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels


_PHRASES = {"object": ("which {} the", "which one the"), "subject": ("the {} had", "the other had")}
"""Column -> the phrase with its noun in a context, and what replaces the last such phrase."""


def _without(row: Stimulus, shuffle: int, seed: int, *, nouns: tuple[str, ...]) -> str:
    context: str = row["context"]
    for noun in nouns:
        phrase = _PHRASES[noun][0].format(row[noun])
        before, match, after = f" {context} ".rpartition(f" {phrase} ")
        if not match:
            raise BadInput(f"{row['id']}: the context has no {phrase!r} to replace: {context!r}")
        context = f"{before} {_PHRASES[noun][1]} {after}".strip()
    return context


def _quartiles(rows: Columns) -> dict[str, Labels]:
    from lmdiag.measures import quartiles

    return {"cloze_quartile": quartiles(rows["expected_cloze"])}


_NOUNS = ("object", "subject")
_FIGURES = (FigureSelection(("accuracy@*", "sensitivity*")),)
_QUARTILES = ("1", "2", "3", "4")
_BY_CLOZE = "Accuracy by cloze of the expected word"

DIAGNOSTIC = Diagnostic(
    name="role88",
    title="ROLE-88: semantic roles and event knowledge",
    short_title="ROLE-88",
    about=(
        "Pairs of contexts with the same two nouns in reversed order: who did what to whom decides "
        "which verb fits. Accuracy: the verb that people gave most often is among the first k "
        "words of the model. Sensitivity: a verb is more probable in the order that it fits than "
        "in the reversed order."
    ),
    position=2,
    columns=(
        Column("expected_cloze", "number", required=True),
        Column("target_cloze", "number", required=True),
        Column("target_cloze_strict", "number"),
        Column("expected_responses", "words"),
        Column("object"),
        Column("subject"),
    ),
    accuracy_levels=_quartiles,
    further_measures=("probability_difference", "correlations", "human"),
    perturbations=(
        Perturbation("obj", "-Obj", partial(_without, nouns=_NOUNS[:1]), _NOUNS),
        Perturbation("sub", "-Sub", partial(_without, nouns=_NOUNS[1:]), _NOUNS),
        Perturbation("both", "-Both", partial(_without, nouns=_NOUNS), _NOUNS),
    ),
    tables=(
        TableShape(
            "Accuracy", "Ettinger 2020, table 7", ("accuracy@*",), ("measure",), columns="setting"
        ),
        TableShape(
            _BY_CLOZE,
            "Ettinger 2020, table 8",
            ("accuracy@*",),
            rows=("measure",),
            columns="level",
            by=("cloze_quartile",),
            labels={"1": "lowest quartile", "2": "second", "3": "third", "4": "highest"},
            published={
                "1": ("≤ .17", 25),
                "2": ("≤ .23", 23),
                "3": ("≤ .33", 23),
                "4": ("≤ .77", 17),
            },
        ),
        TableShape(
            "Sensitivity",
            "Ettinger 2020, table 9",
            ("sensitivity*",),
            rows=("setting",),
            labels={"human": "Human baseline (cloze)"},
        ),
    ),
    charts=(
        Chart("figures"),
        Chart("scatter"),
        Chart("cloze"),
        Chart("levels", _BY_CLOZE, "cloze_quartile", _QUARTILES, measures=("accuracy@*",)),
    ),
    headlines=_FIGURES,
    extended_sets=ExtendedSets({"role88": "ROLE-88", "role1500": "ROLE-1500"}, _FIGURES),
    leaderboard=(
        FigureSelection(("accuracy@1",)),
        FigureSelection(("accuracy@5", "sensitivity"), is_overview=True),
        FigureSelection(("sensitivity@0.01",)),
    ),
    level_labels={"cloze_quartile": {level: f"cloze quartile {level}" for level in _QUARTILES}},
    published_rows=88,
)
