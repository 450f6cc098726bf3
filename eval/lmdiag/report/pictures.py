"""Which pictures a diagnostic gets, and the captions that say how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report import curves, figures, numbers
from lmdiag.report.curves import Curve, Ends
from lmdiag.report.figures import Series, Shuffled
from lmdiag.report.items import MOST, Item, run_scores
from lmdiag.report.labels import SETTINGS, knob, label, level_label
from lmdiag.report.layouts import Place
from lmdiag.report.records import Cell
from lmdiag.report.tables import Source

if TYPE_CHECKING:
    from lmdiag.results import Run


class Picture(NamedTuple):
    """An inline SVG and its caption."""

    svg: str
    caption: str


class Diagnostic(NamedTuple):
    """What the pictures of one task are drawn from.

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

    def cell(self, place: Place, run: int = 0) -> Cell | None:
        """Returns the figure at a place of a run."""
        return self.sources[run].cell(self.task, place)

    @property
    def names(self) -> list[str]:
        """The measures that pictures of figures show: accuracy and sensitivity."""
        measures = self.runs[0].results["tasks"][self.task]["none"]["measures"]
        return [name for name in measures if name.startswith(("accuracy@", "sensitivity"))]


def pictures(diagnostic: Diagnostic) -> list[Picture]:
    """Returns the pictures of a task, most telling first."""
    draw = TASKS.get(diagnostic.task, of_any)
    return list(draw(diagnostic))


# ---- figures with intervals ----------------------------------------------------------------------


def measured(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Accuracy and sensitivity: of one run in every setting, of several as they are."""
    runs, names = diagnostic.runs, diagnostic.names
    if len(runs) > 1:
        series = [
            Series(source.label, [diagnostic.cell(Place("none", name), i) for name in names])
            for i, source in enumerate(diagnostic.sources)
        ]
    else:
        settings = runs[0].results["tasks"][diagnostic.task]
        series = [
            Series(words, [diagnostic.cell(Place(setting, name)) for name in names])
            for setting, words in SETTINGS.items()
            if setting in settings
        ]
        people = [diagnostic.cell(Place("none", f"human_{name}")) for name in names]
        series += [Series("People (cloze)", people)] if any(people) else []
    svg = figures.dots(
        f"{diagnostic.task}-measures",
        "Accuracy and sensitivity",
        list(map(long_name, names)),
        series,
    )
    yield Picture(
        svg, "Accuracy and sensitivity with 95% intervals; ± one standard deviation where shuffled."
    )


def long_name(measure: str) -> str:
    """Returns a measure's name in two short lines at most."""
    return f"accuracy\n{knob(measure)}" if measure.startswith("accuracy@") else knob(measure)


def broken_down(
    diagnostic: Diagnostic, by: str, levels: Sequence[str], prefix: str, caption: str
) -> Iterator[Picture]:
    """The levels of a break-down: all measures of one run, or the first one of several."""
    names = [name for name in diagnostic.names if name.startswith(prefix)]
    if len(diagnostic.runs) > 1:
        series = [
            Series(
                source.label, [diagnostic.cell(Place("none", names[0], by, x), i) for x in levels]
            )
            for i, source in enumerate(diagnostic.sources)
        ]
        caption = f"{caption} ({label(names[0])})"
    else:
        series = [
            Series(knob(name), [diagnostic.cell(Place("none", name, by, x)) for x in levels])
            for name in names
        ]
    if any(cell for kind in series for cell in kind.cells):
        name = f"{diagnostic.task}-{by.replace('/', '-').replace('_', '-')}"
        words = [level_label(by, level).replace(", ", "\n") for level in levels]
        yield Picture(figures.dots(name, caption, words, series), f"{caption}, with 95% intervals.")


# ---- probabilities -------------------------------------------------------------------------------


def scattered(diagnostic: Diagnostic, part: str = "", words: str = "") -> Iterator[Picture]:
    """Good against bad completions, a picture per run.

    Args:
        diagnostic: the task.
        part: polarity of neg136, "" for all items.
        words: what to call that part.
    """
    for i, (source, found) in enumerate(zip(diagnostic.sources, diagnostic.items, strict=True)):
        shown = [i for i in found if i.levels.get("subset/polarity", "").endswith(part)]
        if not any(item.difference is not None for item in shown):
            continue
        name = f"{diagnostic.task}-pairs-{part}{i}"
        whose = f"{words}{source.label}: " if len(diagnostic.runs) > 1 else words
        if len(shown) > MOST:
            svg = figures.density(name, shown)
            yield Picture(
                svg,
                f"{whose}p(good) against p(bad) of {len(shown):,} contrasts; the darker, the more. "
                "Above the diagonal the model prefers the good one.",
            )
        else:
            threshold = diagnostic.runs[i].results["protocol"]["threshold"]
            svg = figures.good_and_bad(name, shown, threshold)
            yield Picture(
                svg,
                f"{whose}p(good) against p(bad), one mark a contrast. Above the line the model "
                f"prefers the good one, above the dashed curve by more than {threshold:g}. A mark "
                "leads to its item.",
            )


def against_cloze(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Model against people, a picture per run."""
    for i, (source, found) in enumerate(zip(diagnostic.sources, diagnostic.items, strict=True)):
        columns = diagnostic.runs[i].stimuli[diagnostic.task].columns()
        if "target_cloze" not in columns:
            return
        cloze = dict(zip(columns["id"], columns["target_cloze"], strict=True))
        correlations = [
            f"{words} {numbers.figure(cell.value, percent=False)}"
            for words, measure in (("Spearman", "spearman"), ("Pearson", "pearson"))
            if (cell := diagnostic.cell(Place("none", measure), i))
        ]
        whose = f"{source.label}: " if len(diagnostic.runs) > 1 else ""
        yield Picture(
            figures.cloze(f"{diagnostic.task}-cloze-{i}", found, cloze),
            f"{whose}Probability of the target by the model and by people. Of log p and cloze: "
            f"{', '.join(correlations)}.",
        )


# ---- shuffled runs -------------------------------------------------------------------------------


def shuffled(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Accuracy over the shuffled runs, a picture per run of a model."""
    for i, run in enumerate(diagnostic.runs):
        settings = run.results["tasks"][diagnostic.task]
        rows = [
            row
            for name in diagnostic.names
            if name.startswith("accuracy@")
            for setting in ("shuf", "shuf_trunc")
            if setting in settings and (row := _shuffled(diagnostic, i, setting, name))
        ]
        if rows:
            times = len(rows[0].values)
            whose = f"{diagnostic.sources[i].label}: " if len(diagnostic.runs) > 1 else ""
            yield Picture(
                figures.shuffles(f"{diagnostic.task}-shuffled-{i}", rows),
                f"{whose}Accuracy in {times} shuffles of sentence 1: how often each value came up.",
            )


def _shuffled(diagnostic: Diagnostic, i: int, setting: str, name: str) -> Shuffled | None:
    run, cell = diagnostic.runs[i], diagnostic.cell(Place(setting, name), i)
    if cell is None or cell.value is None:
        return None
    numbers_of_runs = sorted(n for there, n in run.predictions[diagnostic.task] if there == setting)
    values = [
        float(run_scores(run, diagnostic.task, setting, n)[name].values.mean())
        for n in numbers_of_runs
    ]
    against = "trunc" if setting == "shuf_trunc" else "none"
    plain = diagnostic.cell(Place(against, name), i)
    words = f"{SETTINGS[setting]}, {knob(name)}"
    return Shuffled(words, values, cell, plain.value if plain else None)


# ---- agreement -----------------------------------------------------------------------------------


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


# ---- by task -------------------------------------------------------------------------------------


def of_any(diagnostic: Diagnostic) -> Iterator[Picture]:
    """The pictures of a diagnostic of one's own."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)


def of_cprag102(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Constraint and shuffles beside what every diagnostic has."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)
    yield from broken_down(
        diagnostic, "constraint", ("high", "low"), "", "By constraint of the context"
    )
    yield from shuffled(diagnostic)


def of_role88(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Cloze, of the target and of the expected word."""
    yield from measured(diagnostic)
    yield from scattered(diagnostic)
    yield from against_cloze(diagnostic)
    quartiles = ("1", "2", "3", "4")
    words = "Accuracy by cloze of the expected word"
    yield from broken_down(diagnostic, "cloze_quartile", quartiles, "accuracy@", words)


def of_neg136(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Affirmative and negative sentences apart: their difference is the point."""
    polarities = ("affirmative", "negative")
    simp = [f"simp/{polarity}" for polarity in polarities]
    nat = [
        f"{level}/{polarity}" for level in ("natural", "less_natural") for polarity in polarities
    ]
    yield from broken_down(
        diagnostic, "subset/polarity", simp, "sensitivity", "SIMP: true preferred"
    )
    yield from broken_down(
        diagnostic, "natural/polarity", nat, "sensitivity", "NAT: true preferred"
    )
    for polarity in polarities:
        yield from scattered(diagnostic, polarity, f"{polarity.title()} sentences. ")
    levels = ("simp", "nat")
    words = "Accuracy in affirmative sentences"
    yield from broken_down(diagnostic, "subset", levels, "accuracy@", words)


def of_agreement(diagnostic: Diagnostic) -> Iterator[Picture]:
    """The curves, the constructions, and the density of so many pairs."""
    yield from curved(diagnostic)
    names = [name for name in ("mw", "ew", "tse") if diagnostic.cell(Place("none", name))]
    settings = diagnostic.runs[0].results["tasks"][diagnostic.task]["none"]["measures"]
    levels = list(settings[names[0]].get("by", {}).get("construction", {})) if names else []
    if levels:
        series = [
            Series(
                label(name),
                [diagnostic.cell(Place("none", name, "construction", x)) for x in levels],
            )
            for name in names
        ]
        words = [level_label("construction", level).replace(", ", ",\n") for level in levels]
        svg = figures.dots(f"{diagnostic.task}-constructions", "By construction", words, series)
        yield Picture(svg, "MW, EW and TSE of each construction, with 95% intervals.")
    yield from scattered(diagnostic)


TASKS: Mapping[str, Callable[[Diagnostic], Iterator[Picture]]] = {
    "cprag102": of_cprag102,
    "role88": of_role88,
    "neg136": of_neg136,
    "agreement": of_agreement,
}
