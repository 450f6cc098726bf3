"""What is wrong in the declaration of a diagnostic, found when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_args

from lmdiag.diagnostics.base import CHART_KINDS, MEASURES_OF, Chart, FigureColumn
from lmdiag.text import suggest

if TYPE_CHECKING:
    from lmdiag.diagnostics.base import Diagnostic

_OF_ALL = {
    "word": ("accuracy", "sensitivity", "choice_measures", "surprisal", "rank"),
    "sentence": ("choice_measures",),
}
"""What rows ask -> functions of measures that every such diagnostic has."""


def declaration_errors(diagnostic: Diagnostic) -> Iterator[str]:
    """Yields each unknown name with its field; nothing for a declaration that is right."""
    own = [name.rpartition(".")[2] for name in diagnostic.further_measures if isinstance(name, str)]
    functions = (*_OF_ALL[diagnostic.asks], *own)
    measures = [name for function in functions for name in MEASURES_OF.get(function, ())]
    measures += [name.removeprefix("human_") for name in measures]
    is_open = len(own) < len(diagnostic.further_measures)  # names of functions are not known
    columns = {column.name for column in (*diagnostic.core, *diagnostic.columns)}
    breakdowns = columns | {*diagnostic.breakdowns, *diagnostic.verbatim}
    if diagnostic.own_levels or diagnostic.accuracy_levels:
        breakdowns |= diagnostic.level_labels.keys()
    settings = {"none", "human", *(perturbation.name for perturbation in diagnostic.perturbations)}
    labels = {part for name in measures for part in (name, name.partition("@")[0])} | settings
    labels |= {level for levels in diagnostic.level_labels.values() for level in levels}
    labels |= {level for table in diagnostic.tables for level in table.levels}
    names_of: dict[str, Iterable[str]] = {
        "function of lmdiag.measures": MEASURES_OF,
        "measure": measures,
        "break-down": breakdowns,
        "kind": CHART_KINDS,
        "column of figures": get_args(FigureColumn),
        "label": labels,
        "column": columns,
        "setting": settings,
    }
    named = [("further_measures", "function of lmdiag.measures", name) for name in own]
    for field, what, name in (*named, *_names(diagnostic)):
        names = sorted(names_of[what])
        is_known = name in ("", *names)
        if what == "measure":
            is_known = any(fnmatchcase(x, name) or fnmatchcase(name, x) for x in measures)
        if is_open and what in ("measure", "label"):
            is_known |= not suggest(name, names)
        if not is_known:
            choices = f"{suggest(name, names)}: choose from {', '.join(names)}"
            yield f"{field}: unknown {what} {name!r}{choices}"


def _names(diagnostic: Diagnostic) -> Iterator[tuple[str, str, str]]:
    """Field, what is named there, and the name or, of measures, a pattern of names."""
    for field in ("tables", "headlines", "leaderboard", "charts"):
        for selection in getattr(diagnostic, field):
            if selection.measures != Chart("").measures:
                yield from ((field, "measure", name) for name in selection.measures)
            by = selection.by if field == "tables" else [selection.by]
            yield from ((field, "break-down", name) for name in by)
    for name, by in diagnostic.compared_by.items():
        yield from (("compared_by", "measure", f"{name}*"), ("compared_by", "break-down", by))
    yield from (("untagged", "break-down", name) for name in diagnostic.untagged)
    yield from (("level_labels", "break-down", name) for name in diagnostic.level_labels)
    yield ("item_within", "break-down", diagnostic.item_within)
    yield from (("charts", "kind", chart.kind) for chart in diagnostic.charts)
    for table in diagnostic.tables:
        sides = (*table.rows, table.columns)
        yield from (("tables", "column of figures", side) for side in sides)
        yield from (("tables", "label", name) for name in (*table.labels, *table.published))
    for perturbation in diagnostic.perturbations:
        yield from (("perturbations", "column", name) for name in perturbation.needs)
        yield ("perturbations", "setting", perturbation.unshuffled)
