"""The tables, headline figures and remarks of runs, in the shapes that the diagnostics declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic, Line, TableShape
from lmdiag.report import numbers
from lmdiag.report.grid import CellText, Grid, GridRow, Section, grid_of, signs
from lmdiag.report.labels import measure_label, run_labels
from lmdiag.results import Figure, Place, Results
from lmdiag.results.published import (
    PublishedFigure,
    citation,
    has_published_rows,
    human_facts,
    published_beside,
)
from lmdiag.text import visible
from lmdiag.types import DIAGNOSTICS


class LabelledRun(NamedTuple):
    """A run, a name that tells it from the others, and the published figures of its model."""

    results: Results
    label: str
    published: Mapping[Place, PublishedFigure]


class Measured(NamedTuple):
    """What was measured on a task, over all runs.

    Attributes:
        diagnostic: of the task.
        sources: runs that have it.
        label_headings: of tables, with the model of each row where there are several runs.
        settings: in the order of the paper.
        measures: name -> break-down -> levels, in order.
    """

    diagnostic: Diagnostic
    sources: Sequence[LabelledRun]
    label_headings: tuple[str, ...]
    settings: list[str]
    measures: dict[str, dict[str, list[str]]]

    def expanded(self, line: Line, column: Line | None = None) -> list[Line]:
        """Returns a line for each measure, setting or level that a `*` stands for.

        `column` is the first column of the table, whose measure `{}@*` expands.
        """
        if line.setting == "*":
            return [replace(line, setting=setting) for setting in self.settings]
        if line.level == "*":
            levels = dict.fromkeys(x for of in self.measures.values() for x in of.get(line.by, ()))
            in_order = self.diagnostic.levels_in_order(line.by, levels)
            return [replace(line, level=level) for level in in_order]
        if not line.measure.endswith("*"):
            return [line]
        is_cutoff = line.measure == "{}@*" and column is not None
        start = f"{column.measure}@" if is_cutoff and column else line.measure.removesuffix("*")
        endings = [name.removeprefix(start) for name in self.measures if name.startswith(start)]
        if is_cutoff:
            return [replace(line, measure=f"{{}}@{x}", label=x.replace("=", " ")) for x in endings]
        return [replace(line, measure=start + end) for end in endings]

    def label(self, line: Line) -> str:
        """Returns the heading of a line: its own, or the usual name of what it fixes."""
        level = self.diagnostic.level_label(line.by, line.level) if line.by else ""
        measure = measure_label(line.measure) if line.measure else ""
        usual = ", ".join(filter(None, (measure, level)))
        return line.label or usual or self.diagnostic.setting_label(line.setting)


def sources_of(runs: Sequence[Results]) -> list[LabelledRun]:
    """Returns the runs with their names and the published figures of their models."""
    named = zip(runs, run_labels(runs), strict=True)
    return [LabelledRun(run, label, published_beside(run)) for run, label in named]


def measured(task: str, sources: Sequence[LabelledRun]) -> Measured:
    """Returns what was measured on a task, over all runs."""
    having = [source for source in sources if task in source.results.tasks]
    runs = [source.results for source in having]
    measures: dict[str, dict[str, list[str]]] = {}
    for place in dict.fromkeys(p for run in runs for p, _ in run.figures() if p.task == task):
        levels = measures.setdefault(place.measure, {})
        if place.by and place.level not in levels.setdefault(place.by, []):
            levels[place.by].append(place.level)
    diagnostic = runs[0].diagnostic(task)
    settings = diagnostic.settings_in_order(
        dict.fromkeys(x for run in runs for x in run.tasks[task])
    )
    return Measured(diagnostic, having, ("", "model")[: len(sources)], settings, measures)


# ---- from shapes to tables -----------------------------------------------------------------------


def _tables(present: Measured, formulas: Mapping[str, str]) -> tuple[list[Grid], list[Grid]]:
    """The tables that a diagnostic declares, and the further ones: long ones, all other figures.

    The last shape has a row per measure and level. A break-down with a single level adds nothing;
    the curves over cut-offs have thousands of levels, which are in charts and in csv only.
    Predictions of suites are named by their formulas.
    """
    lines = []
    for name, breakdowns in present.measures.items():
        lines.append(Line(measure=name))
        if "@top=" not in name and "@bottom=" not in name:
            several = {by: levels for by, levels in breakdowns.items() if len(levels) > 1}
            lines += [Line(measure=name, by=by, level=x) for by in several for x in several[by]]
    everything = TableShape("All measures", "", tuple(lines), (Line(setting="*"),))
    tables, further, shown = list[Grid](), list[Grid](), set[Place]()
    for shape in present.diagnostic.tables or (everything,):
        grid, places = _filled(shape, present, formulas)
        shown |= places
        if grid.rows:
            is_long = shape.is_further and len(grid.rows) > 15
            (further if is_long else tables).append(grid)
    rest, _ = _filled(everything, present, formulas, shown)
    if sets := sets_shape(present):
        tables.append(_filled(sets, present, formulas)[0])
    return tables, further + [rest] * bool(rest.rows)


def _place(row: Line, column: Line, task: str) -> Place:
    """The address where a row and a column meet."""
    measure = row.measure.replace("{}", column.measure) or column.measure
    setting = column.setting or row.setting or "none"
    return Place(row.task or task, setting, measure, row.by or column.by, row.level or column.level)


def _filled(
    shape: TableShape, present: Measured, formulas: Mapping[str, str], without: Set[Place] = set()
) -> tuple[Grid, set[Place]]:
    """The table of a shape without the figures at some addresses, and the addresses of its own."""
    columns = [column for line in shape.columns for column in present.expanded(line)]
    lines = []
    for line in (x for row in shape.rows for x in present.expanded(row, shape.columns[0])):
        lines.append((present.label(line), 0, line))
        below = [(present.label(x), replace(line, by=x.by, level=x.level)) for x in line.below]
        lines += [(label, 1, part) for label, part in below]
    rows, shown = [], set[Place]()
    for label, depth, line in lines:
        places = [_place(line, column, present.diagnostic.name) for column in columns]
        for source in present.sources[: 1 if line.is_human else None]:
            cells = []
            for place, column in zip(places, columns, strict=True):
                figure = None if place in without else source.results.figure(place)
                shown |= {place} if figure else set()
                cells.append(_text(figure, source.published.get(place), column.is_plain))
            name = formulas.get(visible(label), visible(label))
            labels = (name, "" if line.is_human else source.label)[: len(present.label_headings)]
            rows.append(GridRow(labels, depth, tuple(cells), is_human=line.is_human))
    headings = [visible(present.label(column)) for column in columns]
    published_n = [column.published_n for column in columns]
    if all(published_n) and published_n in [[cell.n for cell in row.cells] for row in rows]:
        headings = [visible(column.published) for column in columns]
    return grid_of(shape.title, present.label_headings, headings, rows, shape.source), shown


def _text(
    figure: Figure | None, published: PublishedFigure | None = None, is_plain: bool = False
) -> CellText:
    """The cell of a figure; one that is plain has neither interval nor n."""
    if figure is None:
        return CellText("")
    return CellText(
        numbers.value(figure),
        "" if is_plain else numbers.interval(figure),
        None if is_plain else figure.n,
        None if figure.chance is None else round(figure.chance, 9),  # means of thirds
        numbers.published(published, figure),
        figure.is_percent,
    )


def sets_shape(present: Measured) -> TableShape | None:
    """Returns the shape of a table of small and extended sets: a row per set, a column per figure.

    None unless the runs have several of the sets, of which the task is the first.
    """
    sets = present.diagnostic.extended_sets
    tasks = {task for source in present.sources for task in source.results.tasks}
    labels = {} if sets is None else {x: sets.labels[x] for x in sets.labels if x in tasks}
    if sets is None or len(labels) < 2 or next(iter(labels)) != present.diagnostic.name:
        return None
    rows = tuple(Line(label, task=task) for task, label in labels.items())
    lines = (line for declared in sets.columns for line in present.expanded(declared))
    columns = (replace(x, label=x.label or measure_label(x.measure)) for x in lines)
    return TableShape(sets.title, sets.source, rows, tuple(columns))


# ---- headline figures ----------------------------------------------------------------------------


class HeadlineFigure(NamedTuple):
    """A headline figure of a diagnostic: what was measured, and where.

    `figures` and `published` have an entry per run, None where it has none; `human` is the human
    baseline, None where the data do not contain it.
    """

    label: str
    place: Place
    figures: list[Figure | None]
    human: Figure | None
    published: list[PublishedFigure | None]


def headlines(task: str, sources: Sequence[LabelledRun]) -> list[HeadlineFigure]:
    """Returns the headline figures of a task that any run has, one entry per run in each.

    Where no run has those that the diagnostic declares, they are the usual ones.
    """
    present = measured(task, sources)
    for declared in (present.diagnostic.headlines, diagnostics.get("").headlines):
        lines = [line for shape_line in declared for line in present.expanded(shape_line)]
        found = []
        for place, line in {_place(line, Line(), task): line for line in lines}.items():
            baseline = place._replace(measure=f"human_{place.measure}")
            human = next(filter(None, (x.results.figure(baseline) for x in sources)), None)
            published = [source.published.get(place) for source in sources]
            figures = [source.results.figure(place) for source in sources]
            if any(figures):
                found.append(HeadlineFigure(present.label(line), place, figures, human, published))
        if found:
            return found
    return []


def overview(runs: Sequence[Results]) -> Section:
    """Returns a table per task with a row per run and a column per headline figure."""
    sources, grids = sources_of(runs), []
    for task in dict.fromkeys(task for run in runs for task in run.tasks):
        present = measured(task, sources)
        figures = headlines(task, present.sources)
        headings = [visible(figure.label) for figure in figures]
        rows = [
            GridRow((source.label,), 0, tuple(_text(figure.figures[i]) for figure in figures))
            for i, source in enumerate(present.sources)
        ]
        grids.append(grid_of(present.diagnostic.title, ("",), headings, rows))
    return Section(f"All {len(runs)} models", grids, signs(grids))


# ---- the section of a diagnostic -----------------------------------------------------------------


def sections(
    runs: Sequence[Results], rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance.

    `rows` has the columns of tasks whose predictions are shown by their formulas.
    """
    all_sources, shown = sources_of(runs), []
    for task in dict.fromkeys(task for run in runs for task in run.tasks):
        present, columns = measured(task, all_sources), rows.get(task, {})
        suites = dict(zip(columns.get("suite", ()), columns.get("formulas", ()), strict=False))
        formulas = {
            visible(f"{suite}/{number}"): f"{suite}: {text}" if len(suites) > 1 else text
            for suite, of_suite in suites.items()
            for number, text in enumerate(of_suite, start=1)
        }
        tables, further = _tables(present, formulas)
        remarks = [
            *dict.fromkeys(_notes(task, [source.results for source in present.sources])),
            *signs([*tables, *further]),
            *_tests(task, present.sources),
            *_without_figure(task, present),
        ]
        settings = [source.results.tasks[task] for source in present.sources]
        unperturbed = (of.get("none", next(iter(of.values()))) for of in settings)
        signatures = list(dict.fromkeys(setting.signature for setting in unperturbed))
        title = present.diagnostic.title
        shown.append(Section(title, tables, remarks, further, signatures, task))
    return shown


def _notes(task: str, runs: Sequence[Results]) -> Iterator[str]:
    """Lines on measures that are not there, and on samples."""
    names_of = [{name for x in run.tasks[task].values() for name in x.measures} for run in runs]
    measures = set[str]().union(*names_of)
    if measures & {"surprisal", "surprisal_per_word"} and "sensitivity" not in measures:
        yield "the rows have no columns good and contrast, so there is no sensitivity"
        if "surprisal" in measures and "rank" not in measures:
            why = "some words have no rank; in unit word, only words of the top list have one"
            yield f"the median rank is not known, because {why}"
    for run, names in zip(runs, names_of, strict=True):
        if run.model.server is not None and run.diagnostic(task).has_verbs and "ew" not in names:
            why = "they need the whole distribution, and a server tells its top tokens only"
            yield f"EW and MW are not computed: {why}"
        absent = [f"accuracy@{k}" for k in run.protocol.k if f"accuracy@{k}" not in names]
        # Data of one's own may have no expected words, and then there is no accuracy in any case.
        is_known = len(absent) < len(run.protocol.k) or task in DIAGNOSTICS
        if run.model.server is not None and absent and is_known:
            yield f"{', '.join(absent)} not computed: the server's list of top tokens is shorter"
        if run.protocol.limit is not None:
            how = f"drawn evenly over the break-downs (--limit {run.protocol.limit})"
            n = runs[0].data.tasks[task].n
            yield f"a sample of {n} rows, {how}; the figures over all rows differ"


def _tests(task: str, sources: Sequence[LabelledRun]) -> Iterator[str]:
    """Tests against chance of up to two models, and averages of human studies."""
    for i, source in enumerate(sources if len(sources) < 3 else ()):
        texts = []
        for headline in headlines(task, sources):
            figure = headline.figures[i]
            if figure and figure.p_chance is not None:
                p = numbers.p_value(figure.p_chance)
                texts.append(f"{visible(headline.label)} p {'' if p[0] == '<' else '= '}{p}")
        if texts:
            of = f" of {source.label}" if len(sources) > 1 else ""
            yield f"exact binomial test against chance{of}: {'; '.join(texts)}"
    for fact in human_facts(task) if has_published_rows(sources[0].results, task) else ():
        source_text = f"{citation(fact['source'])}, section {fact['section']}"
        yield f"human baseline: {fact['fact']} {fact['value']} ({source_text})"


def _without_figure(task: str, present: Measured) -> Iterator[str]:
    """Undefined measures, and per model and setting how many rows have no figure, and which."""
    undefined, lines = dict[str, list[str]](), list[str]()
    for source in present.sources:
        by = f" by {source.label}" if len(present.sources) > 1 else ""
        for setting, content in source.results.tasks[task].items():
            label = present.diagnostic.setting_label(setting)
            where = "" if setting == "none" else f" in {label}"
            for name, measure in content.measures.items():
                if measure.not_defined:
                    reason = f"{where} not defined: {visible(measure.not_defined)}"
                    undefined.setdefault(reason, []).append(measure_label(name))
            for state, rows in (("unscorable", content.unscorable), ("censored", content.censored)):
                words = list(dict.fromkeys(visible(row.word) for row in rows))
                named = ", ".join(words[:5]) + (", …" if len(words) > 5 else "")
                if rows:
                    count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
                    lines.append(f"{state}{by}{where}: {count} ({named})")
            n, compared = content.equal_contrasts, content.measures.get("sensitivity")
            if n and compared and compared.value is not None:
                rest = f"{n:,} contrast{'s' * (n > 1)} whose good and bad rows have the same text"
                lines.append(f"not compared{by}: {rest} or the same tokens")
            if n := content.without_first:
                rest = f"the first word of {n:,} sentences, which has nothing before it"
                lines.append(f"not scored{by}: {rest}")
    for reason, names in undefined.items():
        yield f"{numbers.UNDEFINED} {', '.join(dict.fromkeys(names))}{reason}"
    yield from lines
