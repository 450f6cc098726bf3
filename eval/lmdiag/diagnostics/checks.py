"""What is wrong in the declaration of a diagnostic, found when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_args

from lmdiag.diagnostics.base import CHART_KINDS, MEASURES_OF, FigureColumn
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
    own = [x.rpartition(".")[2] for x in diagnostic.further_measures if isinstance(x, str)]
    for name in own:
        if name not in MEASURES_OF:
            yield _unknown("further_measures", "function of lmdiag.measures", name, MEASURES_OF)
    functions = (*_OF_ALL[diagnostic.asks], *own)
    measures = [name for x in functions for name in MEASURES_OF.get(x, ())]
    measures += [name.removeprefix("human_") for name in measures]
    is_open = len(own) < len(diagnostic.further_measures)  # names of functions are not known
    columns = {column.name for column in (*diagnostic.core, *diagnostic.columns)}
    known = columns | {*diagnostic.breakdowns, *diagnostic.verbatim, ""}
    if diagnostic.has_own_levels:
        known |= diagnostic.level_labels.keys()
    for field, name in _measures_named(diagnostic):
        is_known = any(fnmatchcase(x, name) or fnmatchcase(name, x) for x in measures)
        if not is_known and (not is_open or suggest(name, measures)):
            yield _unknown(field, "measure", name, measures)
    for field, name in _breakdowns_named(diagnostic):
        if name not in known:
            yield _unknown(field, "break-down", name, known)
    for chart in diagnostic.charts:
        if chart.kind not in CHART_KINDS:
            yield _unknown("charts", "kind", chart.kind, CHART_KINDS)
    levels = {level for labels in diagnostic.level_labels.values() for level in labels}
    settings = {"none", "human", *(x.name for x in diagnostic.perturbations)}
    for table in diagnostic.tables:
        for side in (*table.rows, table.columns):
            if side not in get_args(FigureColumn):
                yield _unknown("tables", "column of figures", side, get_args(FigureColumn))
        names = {part for name in measures for part in (name, name.partition("@")[0])}
        names |= levels | settings | {*table.levels, ""}
        for label in (*table.labels, *table.published):
            if label not in names and not (is_open and not suggest(label, names)):
                yield _unknown("tables", "label", label, names)
    for perturbation in diagnostic.perturbations:
        for name in perturbation.needs:
            if name not in columns:
                yield _unknown("perturbations", "column", name, columns)
        if perturbation.unshuffled not in settings:
            yield _unknown("perturbations", "setting", perturbation.unshuffled, settings)


def _measures_named(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    """Fields with the measures, or patterns of them, that they name."""
    yield from (("compared_by", f"{name}*") for name in diagnostic.compared_by)
    fields = {"tables": diagnostic.tables, "headlines": diagnostic.headlines}
    fields |= {"leaderboard": diagnostic.leaderboard}
    for field, selections in fields.items():
        yield from ((field, name) for x in selections for name in x.measures)  # type: ignore[attr-defined]
    default = type(diagnostic.charts[0])("").measures if diagnostic.charts else ()
    for chart in diagnostic.charts:
        yield from (("charts", name) for name in chart.measures if chart.measures != default)


def _breakdowns_named(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    """Fields with the break-downs that they name."""
    yield from (("tables", name) for table in diagnostic.tables for name in table.by)
    yield from (("headlines", selection.by) for selection in diagnostic.headlines)
    yield from (("leaderboard", selection.by) for selection in diagnostic.leaderboard)
    yield from (("charts", chart.by) for chart in diagnostic.charts)
    yield from (("compared_by", name) for name in diagnostic.compared_by.values())
    yield from (("untagged", name) for name in diagnostic.untagged)
    yield from (("level_labels", name) for name in diagnostic.level_labels)
    yield ("item_within", diagnostic.item_within)


def _unknown(field: str, what: str, name: str, known: Iterable[str]) -> str:
    names = sorted({*known} - {""})
    return f"{field}: unknown {what} {name!r}{suggest(name, names)}: choose from {', '.join(names)}"
