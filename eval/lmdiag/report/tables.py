"""The tables of one or several runs as plain data: every format prints these and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from lmdiag import published
from lmdiag.hub.text import visible
from lmdiag.published import Beside
from lmdiag.report import numbers
from lmdiag.report.checkpoints import are_checkpoints
from lmdiag.report.labels import SETTINGS, TITLES, label, short_commit
from lmdiag.report.layouts import Layout, Line, Place, everything, layouts
from lmdiag.report.records import Cell, Row, Section, Table, Unscorable

Results = Mapping[str, Any]
"""The content of a `results.json`."""

FRACTIONS = {
    "accuracy", "sensitivity", "human_sensitivity", "within_category_boost", "determiner_match",
    "tse", "ew", "mw", "mass", "left_out",
}  # fmt: skip
"""Measures that readers see in percent."""

NOTHING_COMPARED = (
    "nothing was compared: the rows have no columns good and contrast, so there is no sensitivity"
)
NO_RANK = (
    "the median rank is not known, because some words have no rank; in unit word, only words of "
    "the top list have one"
)

PUBLISHED_ROWS = {"cprag102": 102, "role88": 88, "neg136": 136}
"""Rows of the data that the paper reports on: other data have other numbers of rows."""


class Source(NamedTuple):
    """A run, the name its rows go by, and what the papers say of its model.

    Attributes:
        results: its `results.json`.
        label: what tells its model from those of the other runs.
        beside: task -> published figures by their place.
    """

    results: Results
    label: str
    beside: Mapping[str, Mapping[Place, Beside]]

    def cell(self, task: str, place: Place) -> Cell | None:
        """Returns the figure at a place; None where the run has none."""
        setting = self.results["tasks"][task].get(place.setting, {})
        measure = setting.get("measures", {}).get(place.measure)
        if measure is not None and place.by:
            measure = measure.get("by", {}).get(place.by, {}).get(place.level)
        if measure is None:
            return None
        return Cell(
            value=measure["value"],
            n=measure.get("n"),
            low=measure.get("ci_low"),
            high=measure.get("ci_high"),
            sd=measure.get("sd"),
            percent=is_fraction(place.measure),
            published=self.beside[task].get(place),
            chance=measure.get("chance"),
        )


def sources_of(runs: Sequence[Results]) -> list[Source]:
    """Returns the runs with names that tell them apart and what the papers say of their models."""
    return [
        Source(run, name, {task: published_beside(run, task) for task in run["tasks"]})
        for run, name in zip(runs, names(runs), strict=True)
    ]


def names(runs: Sequence[Results]) -> list[str]:
    """Returns names that tell the runs apart: steps, models, and dtypes or commits where needed."""
    models = [run["model"] for run in runs]
    if are_checkpoints(runs):
        return [f"step {model['training_step']}" for model in models]
    found = [model_label(run) for run in runs]
    for key in ("dtype", "quantization", "commit"):
        twins = {name for name in found if found.count(name) > 1}
        found = [
            f"{name} ({short_commit(visible(str(model[key])))})"
            if name in twins and model.get(key)
            else name
            for name, model in zip(found, models, strict=True)
        ]
    return [
        f"{name} #{i}" if found.count(name) > 1 else name for i, name in enumerate(found, start=1)
    ]


def sections(runs: Sequence[Results]) -> list[Section]:
    """Returns the sections of all tasks that any of the runs has, in order of appearance."""
    sources = sources_of(runs)
    tasks = dict.fromkeys(task for run in runs for task in run["tasks"])
    return [_section(task, [s for s in sources if task in s.results["tasks"]]) for task in tasks]


def _section(task: str, sources: Sequence[Source]) -> Section:
    runs = [source.results for source in sources]
    settings = dict.fromkeys(setting for run in runs for setting in run["tasks"][task])
    measures = _merged(task, runs)
    shown: set[Place] = set()
    filled = [
        _fill(layout, task, sources, shown) for layout in layouts(task, list(settings), measures)
    ]
    rest = _fill(everything(settings, measures), task, sources, set(), skip=shown)
    return Section(
        task=task,
        title=TITLES.get(task, task),
        tables=tuple(table for table in filled if table.rows),
        further=rest if rest.rows else None,
        people=tuple(_people(task)) if are_published_rows(runs[0], task) else (),
        unscorable=tuple(_unscorable(task, sources)),
        signatures=tuple(dict.fromkeys(_signature(run, task) for run in runs)),
        notes=tuple(_notes(task, runs, measures)),
        undefined=tuple(_undefined(task, runs)),
    )


def _notes(task: str, runs: Sequence[Results], measures: Mapping[str, Any]) -> Iterator[str]:
    """What a reader must know of all figures of a task."""
    if "surprisal" in measures:  # it is measured where nothing is compared, and nowhere else
        yield NOTHING_COMPARED
        if "rank" not in measures:
            yield NO_RANK
    for limit in dict.fromkeys(run.get("protocol", {}).get("limit") for run in runs):
        if limit is not None:
            n = runs[0]["data"]["tasks"][task]["n"]
            yield (
                f"a sample of {n} rows, drawn evenly over the break-downs (--limit {limit}); the "
                "figures over all rows are others"
            )


def are_published_rows(run: Results, task: str) -> bool:
    """Whether a run is on the rows that the paper reports on, not on others of the same form."""
    n = run["data"]["tasks"].get(task, {}).get("n")
    return task in PUBLISHED_ROWS and n == PUBLISHED_ROWS[task]


def published_beside(run: Results, task: str) -> dict[Place, Beside]:
    """Returns where the paper has figures of the run's model on these rows, and which."""
    if not are_published_rows(run, task):
        return {}
    return {
        Place(b.figure.setting, b.figure.measure, b.figure.by, b.figure.level): b
        for b in published.beside(run)
        if b.figure.task == task
    }


def _people(task: str) -> Iterator[str]:
    for fact in published.human(task):
        yield f"people: {fact['fact']} {fact['value']} (Ettinger 2020, section {fact['section']})"


def _merged(task: str, runs: Sequence[Results]) -> dict[str, dict[str, Any]]:
    """The names of all measures and levels of a task, over settings and runs."""
    merged: dict[str, dict[str, Any]] = {}
    for run in runs:
        for setting in run["tasks"][task].values():
            for name, measure in setting["measures"].items():
                there = merged.setdefault(name, {"by": {}})["by"]
                for by, levels in measure.get("by", {}).items():
                    there[by] = {**levels, **there.get(by, {})}
    return merged


def _fill(
    layout: Layout,
    task: str,
    sources: Sequence[Source],
    shown: set[Place],
    skip: Set[Place] = frozenset(),
) -> Table:
    """Puts the figures into a layout; rows and columns without any are dropped.

    Args:
        shown: gets every place that the table shows.
        skip: places to leave out.
    """
    rows = []
    for line in layout.rows:
        places = [layout.place(line, column) for column in layout.columns]
        for source in sources[:1] if line.human else sources:
            cells = [None if place in skip else source.cell(task, place) for place in places]
            if any(cells):
                shown.update(p for p, cell in zip(places, cells, strict=True) if cell)
                plain = tuple(map(_plain, layout.columns, cells))
                model = "" if line.human else source.label
                rows.append(Row(line.label, plain, model, line.depth, line.human))
    kept = [i for i in range(len(layout.columns)) if any(row.cells[i] for row in rows)]
    return Table(
        title=layout.title,
        source=layout.source,
        columns=tuple(layout.columns[i].label for i in kept),
        rows=tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows),
    )


def _plain(column: Line, cell: Cell | None) -> Cell | None:
    """The figure as its column shows it."""
    return cell._replace(n=None, low=None, high=None) if cell and column.plain else cell


def is_fraction(measure: str) -> bool:
    """Whether a measure is a proportion or a share, which readers see in percent."""
    return measure.partition("@")[0] in FRACTIONS


def model_label(run: Results) -> str:
    """Returns a model's name (`--name`, else its id), with the revision if one was given."""
    model = run["model"]
    name = model.get("name") or model["id"]
    revision = f"@{model['revision']}" if model.get("revision") else ""
    return visible(f"{name}{revision}")


def _signature(run: Results, task: str) -> str:
    """The signature of the unperturbed figures of a task, or of what there is."""
    settings = run["tasks"][task]
    return str(settings.get("none", next(iter(settings.values())))["signature"])


def _undefined(task: str, runs: Sequence[Results]) -> Iterator[str]:
    """One line per setting and reason that names the measures that are not defined there."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        for setting, content in run["tasks"][task].items():
            for name, measure in content["measures"].items():
                if reason := measure.get("not_defined"):
                    groups.setdefault((setting, reason), {})[label(name)] = None
    for (setting, reason), names in groups.items():
        where = "" if setting == "none" else f" in {SETTINGS.get(setting, setting)}"
        yield f"{numbers.NOTHING} {', '.join(names)}{where} not defined: {visible(reason)}"


def _unscorable(task: str, sources: Sequence[Source]) -> Iterator[Unscorable]:
    for source in sources:
        for setting, content in source.results["tasks"][task].items():
            for entry in content.get("unscorable", []):
                yield Unscorable(source.label, setting, entry["id"], visible(entry["word"]))
