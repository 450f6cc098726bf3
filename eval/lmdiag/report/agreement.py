"""Pictures of agreement: EW and MW over cut-offs, and the constructions side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmdiag.report import curves, figures
from lmdiag.report.curves import Curve, Ends
from lmdiag.report.diagnostic import Diagnostic, Picture
from lmdiag.report.figures import Series
from lmdiag.report.labels import label, level_label
from lmdiag.report.layouts import Place
from lmdiag.report.records import Cell


def curved(diagnostic: Diagnostic) -> Iterator[Picture]:
    """EW and MW over cut-offs: of one run together, of several in a picture each."""
    first = diagnostic.runs[0].results["tasks"][diagnostic.task]["none"]["measures"]
    if not any(name.startswith("ew@") for name in first):
        return
    several = len(diagnostic.runs) > 1
    for measures in (("mw",), ("ew",)) if several else (("mw", "ew"),):
        title = " and ".join(label(name) for name in measures)
        ends = _ends(diagnostic, title, measures, first)
        yield Picture(
            curves.cutoffs(f"{diagnostic.task}-curve-{'-'.join(measures)}", ends),
            f"{title} of the verbs in the top of the distribution, then of those in its bottom: "
            "does the model conjugate rightly what it would say, and what it would hardly say? "
            "Bands: 95% intervals.",
        )
    constructions = first["ew"].get("by", {}).get("construction", {})
    if not several and constructions:
        panels = [
            _ends(diagnostic, level_label("construction", level), ("mw", "ew"), first, level)
            for level in constructions
        ]
        yield Picture(
            curves.small_cutoffs(f"{diagnostic.task}-curves", panels),
            "The same for each construction: left of the line the top cut-offs from .1 to 1, "
            "right of it the bottom ones from .5 down.",
        )


def _ends(
    diagnostic: Diagnostic,
    title: str,
    measures: Sequence[str],
    names: Mapping[str, object],
    level: str = "",
) -> Ends:
    """The curves of some measures over all runs."""
    several = len(diagnostic.runs) > 1
    ends: dict[str, list[Curve]] = {"top": [], "bottom": []}
    by = "construction" if level else ""
    for end, found in ends.items():
        for i, source in enumerate(diagnostic.sources):
            for measure in measures:
                start = f"{measure}@{end}="
                there = [name for name in names if name.startswith(start)]
                points = [
                    (float(name.removeprefix(start)), cell)
                    for name in there
                    if (cell := diagnostic.cell(Place("none", name, by, level), i))
                ]
                called = source.label if several else label(measure)
                found.append(Curve(called, [x for x, _ in points], [cell for _, cell in points]))
    return Ends(title, ends["top"], ends["bottom"])


def constructions(diagnostic: Diagnostic) -> Iterator[Picture]:
    """MW, EW and TSE of each construction: of one run together, of several MW alone."""
    measures = diagnostic.runs[0].results["tasks"][diagnostic.task]["none"]["measures"]
    names = [name for name in ("mw", "ew", "tse") if name in measures]
    levels = list(measures[names[-1]].get("by", {}).get("construction", {})) if names else []
    if not levels:
        return
    if len(diagnostic.runs) > 1:
        names = names[:1]
        series = [
            Series(source.label, _cells(diagnostic, names[0], levels, i))
            for i, source in enumerate(diagnostic.sources)
        ]
    else:
        series = [Series(label(name), _cells(diagnostic, name, levels)) for name in names]
    words = [level_label("construction", level).replace(", ", ",\n") for level in levels]
    svg = figures.dots(f"{diagnostic.task}-constructions", "By construction", words, series)
    shown = ", ".join(map(label, names))
    yield Picture(svg, f"{shown} of each construction, with 95% intervals.")


def _cells(
    diagnostic: Diagnostic, name: str, levels: Sequence[str], run: int = 0
) -> list[Cell | None]:
    places = [Place("none", name, "construction", level) for level in levels]
    return [diagnostic.cell(place, run) for place in places]
