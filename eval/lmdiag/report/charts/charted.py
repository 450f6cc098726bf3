"""What charts are made from: runs with their items, and figures as rows of data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.diagnostics import Diagnostic
from lmdiag.report.charts.specs import Datum, Plot, Spec, in_one_color
from lmdiag.report.items import Item
from lmdiag.report.labels import measure_label
from lmdiag.report.tables import Source
from lmdiag.results import Figure, Measure, Place
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.results import Run


_LINE = 26
"""Characters of a line of a label."""

_MOST_LEVELS = 40
"""Levels in a chart; more make it longer than a page of a paper."""


@dataclass(frozen=True)
class Charted:
    """The material of the charts of one task.

    Attributes:
        task: its name.
        runs: the runs that have it.
        sources: the same runs as tables see them.
        items: the unperturbed items of each run, parallel to `runs`.
    """

    task: str
    runs: Sequence[Run]
    sources: Sequence[Source]
    items: Sequence[Sequence[Item]]

    @property
    def diagnostic(self) -> Diagnostic:
        """The declaration of the task."""
        return self.runs[0].results.diagnostic(self.task)

    @property
    def settings(self) -> list[str]:
        """The settings of the first run, in the order of the paper."""
        return self.diagnostic.settings_in_order(self.runs[0].results.tasks[self.task])

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The unperturbed measures of the first run."""
        settings = self.runs[0].results.tasks[self.task]
        return settings["none"].measures if "none" in settings else {}

    def names(self, *patterns: str) -> list[str]:
        """The measures of these names; a `*` at the end stands for everything that begins so."""
        return [
            name
            for pattern in patterns
            for name in self.measures
            if name == pattern or (pattern[-1] == "*" and name.startswith(pattern[:-1]))
        ]

    def levels(self, by: str, chosen: Iterable[str] = ()) -> dict[str, str]:
        """Levels of a break-down in order, or chosen ones -> their labels.

        Labels are broken at commas, and long ones at blanks.
        """
        present = dict.fromkeys(x for each in self.measures.values() for x in each.by.get(by, ()))
        levels = list(chosen) or self.diagnostic.levels_in_order(by, present)
        label = self.diagnostic.level_label
        return {level: _broken(visible(label(by, level))) for level in levels}

    def level_groups(self, by: str, chosen: Iterable[str] = ()) -> dict[str, dict[str, str]]:
        """Name of a group -> its levels with their labels; "" for all where they fit one chart.

        Very many levels are grouped by the break-down that each of them belongs to one level of,
        or counted off.
        """
        levels = self.levels(by, chosen)
        if len(levels) <= _MOST_LEVELS:
            return {"": levels}
        groups: dict[str, dict[str, str]] = {}
        owner = self._owners(by)
        for i, (level, label) in enumerate(levels.items()):
            name = owner.get(level) or f"part {1 + i // _MOST_LEVELS}"
            groups.setdefault(name, {})[level] = label
        return groups

    def _owners(self, by: str) -> dict[str, str]:
        """Level -> the level of another break-down, in words, that it is a part of.

        Of several such break-downs, the one with the most levels.
        """
        of_others: dict[str, dict[str, set[str]]] = {}
        for item in self.items[0]:
            for other in item.levels.keys() - {by} if by in item.levels else ():
                owners = of_others.setdefault(other, {}).setdefault(item.levels[by], set())
                owners.add(item.levels[other])
        nested = {
            other: {level: owner for level, (owner,) in of.items()}
            for other, of in of_others.items()
            if all(len(owners) == 1 for owners in of.values())
        }
        if not nested:
            return {}
        best = max(sorted(nested), key=lambda other: len(set(nested[other].values())))
        label = self.diagnostic.level_label
        return {level: visible(label(best, owner)) for level, owner in nested[best].items()}

    def row(self, label: str, series: str, i: int, *place: str, task: str = "") -> list[Datum]:
        """The figure at a place of run i as a row; none if it is not there or not defined.

        Args:
            label, series: of the row.
            i: number of the run.
            place: parts of its address after the task.
            task: of another set than the chart's; "" for this one.
        """
        address = Place(task or self.task, *place)
        figure = self.sources[i].results.figure(address)
        if figure is None or figure.value is None:
            return []
        published = self.sources[i].published.get(address)
        row = figure_row(figure) | {"label": label, "series": series}
        return [row | ({"published": published.value / 100} if published else {})]

    def rows(
        self, names: Sequence[str], by: str, level: str, label: str = "", series: str = ""
    ) -> list[Datum]:
        """Unperturbed figures; series are the runs, or of a single run the measures."""
        several = len(self.runs) > 1
        return [
            row
            for i, source in enumerate(self.sources)
            for name in names
            for row in self.row(
                label,
                source.label if several else series or measure_label(name),
                i,
                *("none", name, by, level),
            )
        ]

    def of_run(self, i: int, kind: str, name: str, caption: str, spec: Spec) -> Plot:
        """Returns the chart of a run; beside others, it has the name and the colour of its model.

        Args:
            i: number of the run.
            kind, name, caption, spec: see `Plot`.
        """
        if len(self.runs) == 1:
            return Plot(kind, name, caption, spec)
        label = self.sources[i].label
        painted = in_one_color(spec, i % 6 + 1)
        return Plot(kind, f"{name}-{i + 1}", f"{label}: {caption}", painted, heading=label)


def name_part(text: str) -> str:
    """Returns text as a part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


def _broken(label: str) -> str:
    """The label with a line feed after each comma, and where a line would be too long."""
    parts = label.replace(", ", ",\n").split("\n")
    return "\n".join(line for part in parts for line in _lines(part))


def _lines(text: str) -> list[str]:
    """The lines of a text, which may end after an underscore."""
    lines = textwrap.wrap(text.replace("_", "_\0 "), _LINE) or [text]
    return [line.replace("\0 ", "").rstrip("\0") for line in lines]


def figure_row(figure: Figure) -> dict[str, Any]:
    """Returns a figure as fields of a row."""
    return {
        "value": figure.value, "low": figure.ci_low, "high": figure.ci_high, "n": figure.n,
        "chance": figure.chance, "versus_chance": figure.versus_chance, "sd": figure.sd,
    }  # fmt: skip
