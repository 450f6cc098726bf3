"""The few figures of each diagnostic that a reader wants first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.report.labels import TITLES, label
from lmdiag.report.layouts import Place
from lmdiag.report.records import Cell
from lmdiag.report.tables import Source


class Figure(NamedTuple):
    """A headline figure.

    Attributes:
        label: what was measured.
        cells: of each run, None where it has none.
        people: the same of people, None where the data do not say it.
    """

    label: str
    cells: list[Cell | None]
    people: Cell | None


class Headline(NamedTuple):
    """The headline figures of one task."""

    task: str
    title: str
    figures: list[Figure]


def headline(sources: Sequence[Source]) -> list[Headline]:
    """Returns the headline figures of every task, without those that no run has."""
    tasks = dict.fromkeys(task for source in sources for task in source.results["tasks"])
    found = [Headline(task, TITLES.get(task, task), _figures(task, sources)) for task in tasks]
    return [each for each in found if each.figures]


def _figures(task: str, sources: Sequence[Source]) -> list[Figure]:
    having = [source for source in sources if task in source.results["tasks"]]
    return _filled(_places(task, having[0]), task, sources, having) or _filled(
        _plain_places(_measures(task, having[0])), task, sources, having
    )


def _filled(
    places: Sequence[tuple[str, Place]],
    task: str,
    sources: Sequence[Source],
    having: Sequence[Source],
) -> list[Figure]:
    """The figures at some places, without those that no run has."""
    figures = []
    for words, place in places:
        cells = [source.cell(task, place) if source in having else None for source in sources]
        people = having[0].cell(task, place._replace(measure=f"human_{place.measure}"))
        if any(cells):
            figures.append(Figure(words, cells, people))
    return figures


def _places(task: str, source: Source) -> list[tuple[str, Place]]:
    """What is worth a headline, and where it stands."""
    measures = _measures(task, source)
    if task == "agreement":
        return [(label(name), Place("none", name)) for name in ("mw", "ew", "tse")]
    if task == "neg136":
        accuracy = [name for name in measures if name.startswith("accuracy@")]
        return [
            *((f"{label(name)}, SIMP", Place("none", name, "subset", "simp")) for name in accuracy),
            *(
                (f"sensitivity, {words}", Place("none", "sensitivity", by, level))
                for words, by, level in NEG136
            ),
        ]
    return _plain_places(measures)


def _measures(task: str, source: Source) -> list[str]:
    return list(source.results["tasks"][task].get("none", {}).get("measures", {}))


def _plain_places(measures: Sequence[str]) -> list[tuple[str, Place]]:
    """Accuracy and sensitivity, or what words have that are not compared."""
    families = ("accuracy@",), ("sensitivity", "surprisal", "rank")
    names = [name for family in families for name in measures if name.startswith(family)]
    return [(label(name), Place("none", name)) for name in names]


NEG136 = (
    ("SIMP affirmative", "subset/polarity", "simp/affirmative"),
    ("SIMP negative", "subset/polarity", "simp/negative"),
    ("NAT natural", "natural", "natural"),
    ("NAT less natural", "natural", "less_natural"),
)
"""Negation makes the difference, so the two polarities never share a headline."""
