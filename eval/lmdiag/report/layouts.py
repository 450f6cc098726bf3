"""Which measure stands where, in the shape of the papers' tables.

A layout is a grid of places without any numbers. Tables 4, 5, 7, 8, 9, 11, 12 and 14 are those of
Ettinger (2020); the table of agreement has the rows and columns of Newman et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lmdiag.report.labels import (
    CONSTRUCTIONS,
    SETTINGS,
    Measures,
    label,
    level_label,
    quartile_headings,
)


class Place(NamedTuple):
    """Where a figure is in the `tasks` of `results.json`.

    Attributes:
        setting: perturbation, "none" for the unperturbed one.
        measure: its name.
        by: columns of the break-down, "" for the whole.
        level: level of the break-down.
    """

    setting: str
    measure: str
    by: str = ""
    level: str = ""


@dataclass(frozen=True)
class Line:
    """A row or a column of a layout: its label, and the parts of a place that it fixes.

    Attributes:
        label: what a reader sees.
        setting, by, level: see `Place`; "" leaves them to the other side of the grid.
        measure: name of a measure; in a row, `{}` stands for the column's, as in `{}@top=0.1`.
        depth: 1 for a row that breaks down the one above it.
        human: a row of people's figures.
        plain: a column of bare values, whose n and interval add nothing.
    """

    label: str
    setting: str = ""
    measure: str = ""
    by: str = ""
    level: str = ""
    depth: int = 0
    human: bool = False
    plain: bool = False


@dataclass(frozen=True)
class Layout:
    """A table without numbers.

    Attributes:
        title: what the figures are.
        source: the paper's table that has this shape; "" for our own.
        rows, columns: the two sides of the grid.
    """

    title: str
    source: str
    rows: tuple[Line, ...]
    columns: tuple[Line, ...]

    @staticmethod
    def place(row: Line, column: Line) -> Place:
        """Returns what stands where the two meet."""
        return Place(
            setting=column.setting or row.setting or "none",
            measure=row.measure.replace("{}", column.measure) or column.measure,
            by=row.by or column.by,
            level=row.level or column.level,
        )


HUMAN = Line("People (cloze)", measure="human_{}", human=True)


def layouts(task: str, settings: Sequence[str], measures: Measures) -> list[Layout]:
    """Returns the tables of a diagnostic, the paper's first.

    Args:
        task: config; one that is not the project's own gets one plain table of all measures.
        settings: names of the settings that were run.
        measures: of any setting, for the names and break-downs there are.
    """
    build = {"cprag102": _cprag102, "role88": _role88, "neg136": _neg136, "agreement": _agreement}
    return build[task](settings, measures) if task in build else [everything(settings, measures)]


def everything(settings: Iterable[str], measures: Measures) -> Layout:
    """One row per measure and level, one column per setting.

    A break-down with a single level says nothing new. The curves over cut-offs are broken down in
    pictures and in csv alone: they are thousands.
    """
    rows = []
    for name, measure in measures.items():
        rows.append(Line(label(name), measure=name))
        rows += [
            Line(f"{label(name)}: {level_label(by, level)}", measure=name, by=by, level=level)
            for by, levels in measure.get("by", {}).items()
            for level in levels
            if len(levels) > 1 and "@top=" not in name and "@bottom=" not in name
        ]
    return Layout("All measures", "", tuple(rows), _settings(settings))


def _cprag102(settings: Sequence[str], measures: Measures) -> list[Layout]:
    accuracy = [line for name in _family(measures, "accuracy@") for line in _broken(name)]
    sensitivity = [
        line
        for setting in _known(settings)
        for line in (
            Line(SETTINGS[setting], setting=setting),
            Line("high constraint", setting=setting, by="constraint", level="high", depth=1),
            Line("low constraint", setting=setting, by="constraint", level="low", depth=1),
        )
    ]
    boost = Line(label("within_category_boost"), measure="within_category_boost")
    columns = (*_sensitivity(measures), boost)
    return [
        Layout("Accuracy", "Ettinger 2020, table 4", tuple(accuracy), _settings(settings)),
        Layout("Sensitivity", "Ettinger 2020, table 5", tuple(sensitivity), columns),
    ]


def _role88(settings: Sequence[str], measures: Measures) -> list[Layout]:
    accuracy, asked = _accuracy(measures), _settings(settings)
    quartiles = tuple(
        Line(heading, by="cloze_quartile", level=level)
        for level, heading in quartile_headings(measures).items()
    )
    expected = "Accuracy by cloze of the expected word"
    return [
        Layout("Accuracy", "Ettinger 2020, table 7", accuracy, asked),
        Layout(expected, "Ettinger 2020, table 8", accuracy, quartiles),
        Layout("Sensitivity", "Ettinger 2020, table 9", (*asked, HUMAN), _sensitivity(measures)),
        Layout("Further measures", "", _others(measures), asked),
    ]


def _neg136(settings: Sequence[str], measures: Measures) -> list[Layout]:
    accuracy, sensitivity = _accuracy(measures), _sensitivity(measures)
    subsets = (Line("SIMP", by="subset", level="simp"), Line("NAT", by="subset", level="nat"))
    simp = tuple(
        Line(words, by="subset/polarity", level=f"simp/{words.lower()}")
        for words in ("Affirmative", "Negative")
    )
    natural = tuple(
        Line(f"{short}. {words}", by="natural/polarity", level=f"{level}/{polarity}")
        for words, level in (("NT", "natural"), ("LN", "less_natural"))
        for short, polarity in (("Aff", "affirmative"), ("Neg", "negative"))
    )
    both = tuple(
        Line(words, by="natural", level=level)
        for words, level in (("NT", "natural"), ("LN", "less_natural"))
    )
    return [
        Layout("Accuracy, affirmative contexts", "Ettinger 2020, table 11", accuracy, subsets),
        Layout("Sensitivity, SIMP", "Ettinger 2020, table 12", sensitivity, simp),
        Layout("Sensitivity, NAT", "Ettinger 2020, table 14", sensitivity, natural),
        Layout(
            "Sensitivity, NAT, both polarities", "Ettinger 2020, section 9.4", sensitivity, both
        ),
        Layout("Further measures", "", _others(measures), _settings(settings)),
    ]


def _agreement(settings: Sequence[str], measures: Measures) -> list[Layout]:
    mw, ew = Line("MW", measure="mw"), Line("EW", measure="ew")
    columns = (mw, ew, Line("TSE", measure="tse"), Line("all pairs", measure="sensitivity"))
    names = [name.removeprefix("ew@") for name in measures if name.startswith("ew@")]
    cutoffs = [Line(name.replace("=", " "), measure=f"{{}}@{name}") for name in names]
    mass = Line("mass of verbs", measure="mass", plain=True)
    left_out = Line("contexts left out", measure="left_out", plain=True)
    paper = "Newman et al. 2021"
    return [
        Layout(
            "By construction", paper, (*_levels(measures, "construction"), Line("All")), columns
        ),
        Layout("By cut-off", paper, (*cutoffs, Line("all verbs")), (mw, ew, mass, left_out)),
        Layout("By source", "", _levels(measures, "source"), columns),
        Layout("By template", "", _levels(measures, "template"), columns),
    ]


def _levels(measures: Measures, by: str) -> tuple[Line, ...]:
    """One row for each level of a break-down that any measure has, the known ones first."""
    there = {level for measure in measures.values() for level in measure.get("by", {}).get(by, {})}
    known = [level for level in CONSTRUCTIONS if level in there]
    order = [*known, *sorted(there.difference(known))]
    return tuple(Line(level_label(by, level), by=by, level=level) for level in order)


def _broken(name: str) -> list[Line]:
    """A measure of cprag102 and its two constraints."""
    return [
        Line(label(name), measure=name),
        Line("high constraint", measure=name, by="constraint", level="high", depth=1),
        Line("low constraint", measure=name, by="constraint", level="low", depth=1),
    ]


def _known(settings: Iterable[str]) -> list[str]:
    """The settings in the paper's order."""
    there = set(settings)
    return [name for name in SETTINGS if name in there]


def _settings(settings: Iterable[str]) -> tuple[Line, ...]:
    return tuple(Line(SETTINGS[name], setting=name) for name in _known(settings))


def _accuracy(measures: Measures) -> tuple[Line, ...]:
    return tuple(Line(label(name), measure=name) for name in _family(measures, "accuracy@"))


def _sensitivity(measures: Measures) -> tuple[Line, ...]:
    return tuple(Line(label(name), measure=name) for name in _family(measures, "sensitivity"))


def _others(measures: Measures) -> tuple[Line, ...]:
    """What is neither accuracy nor sensitivity; the two mean differences stand together."""
    known = ("accuracy@", "sensitivity", "human_")
    names = [name for name in measures if not name.startswith(known)]
    names.sort(key=lambda name: not name.endswith("_difference"))
    return tuple(Line(label(name), measure=name) for name in names)


def _family(measures: Measures, prefix: str) -> list[str]:
    return [name for name in measures if name.startswith(prefix)]
