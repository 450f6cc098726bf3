"""The tables and remarks of runs: selections of their figures, pivoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lmdiag.diagnostics import Diagnostic, TableShape
from lmdiag.report import numbers
from lmdiag.report.grid import CellText, Grid, GridRow, Section, grid_of, signs
from lmdiag.report.labels import measure_label
from lmdiag.report.selections import (
    HUMAN,
    LabelledRun,
    ReportFigures,
    figure_label,
    figures_of_sets,
    headlines,
    in_patterns,
    rank_in,
)
from lmdiag.results import Figure, Results, Run
from lmdiag.results.figures import select
from lmdiag.results.published import PublishedFigure, citation, has_published_rows, human_facts
from lmdiag.text import visible
from lmdiag.types import DIAGNOSTICS

# ---- from shapes to tables -----------------------------------------------------------------------


def _tables(
    task: str, of_runs: ReportFigures, formulas: Mapping[str, str]
) -> tuple[list[Grid], list[Grid]]:
    """The tables that a diagnostic declares, and the further ones: long ones, all other figures.

    A measure that no table has is in a table of further measures. A break-down with a single level
    adds nothing; the curves over cut-offs have thousands of levels, which are in charts and in csv
    only. Predictions of suites are named by their formulas.
    """
    diagnostic = of_runs.diagnostic(task)
    of_task = of_runs.table[of_runs.table["task"] == task]
    of_task = of_task.assign(is_curve=of_task["cutoff"].str.match("top=|bottom="))
    tables = list[Grid]()
    further = list[Grid]()
    rest = of_task
    for shape in diagnostic.tables:
        pivot = Pivot(of_runs, diagnostic, shape, _selected(of_task, shape))
        grid = pivot.grid(formulas)
        is_long = shape.is_further and len(grid.rows) > 15
        (further if is_long else tables).append(grid)
        rest = rest.drop(index=pivot.table.index, errors="ignore")
    if diagnostic.tables:
        shown = of_task["measure"][~of_task.index.isin(rest.index)]
        new = rest[~rest["measure"].isin(shown) & (rest["by"] == "") & ~rest["is_curve"]]
        shape = TableShape("Further measures", "", ("*",), ("measure",), "setting")
        tables.append(Pivot(of_runs, diagnostic, shape, new).grid(formulas))
        rest = rest.drop(index=new.index)
    n_levels = rest.groupby(["measure", "by"])["level"].transform("nunique")
    rest = rest[(rest["by"] == "") | ((n_levels > 1) & ~rest["is_curve"])]
    everything = TableShape("All measures", "", ("*",), ("measure", "by", "level"), "setting")
    grid = Pivot(of_runs, diagnostic, everything, rest).grid(formulas)
    (further if diagnostic.tables else tables).append(grid)
    tables += _table_of_sets(task, of_runs)
    return [grid for grid in tables if grid.rows], [grid for grid in further if grid.rows]


def _selected(table: pd.DataFrame, shape: TableShape) -> pd.DataFrame:
    """The figures of a table, in all settings if they are one of its sides."""
    has_settings = "setting" in (*shape.rows, shape.columns)
    settings = () if has_settings else ("none",)
    return select(table, shape.measures, shape.by, shape.levels, settings)


@dataclass(frozen=True)
class Pivot:
    """A printed table of a diagnostic: figures with what their rows and columns are."""

    of_runs: ReportFigures
    diagnostic: Diagnostic
    shape: TableShape
    table: pd.DataFrame

    def grid(self, formulas: Mapping[str, str] = {}) -> Grid:
        """Returns the texts of the table."""
        shape = self.shape
        sides = [*self.shape.rows, self.shape.columns]
        texts = [
            cell_of(figure, reported, is_plain=score in shape.plain)
            for figure, reported, score in zip(
                self.table["figure"], self.table["reported"], self.table["score"], strict=True
            )
        ]
        ordered = {side: pd.Categorical(self.table[side], self._order(side)) for side in sides}
        named = self.table.assign(cell=pd.Series(texts, self.table.index, object), **ordered)
        cells = named.pivot(index=[*shape.rows, "run"], columns=shape.columns, values="cell")
        headings = [visible(self._label(shape.columns, key)) for key in cells.columns]
        label_headings = ("", "model")[
            : 1 + (len(self.of_runs.sources) > 1 and len(shape.rows) > 0)
        ]
        rows = list[GridRow]()
        baselines = list[list[str]]()
        for index, *texts in cells.itertuples(name=None):
            *keys, run = index if shape.rows else (index,)
            is_human = HUMAN in keys
            if is_human and keys in baselines:  # the same for all models
                continue
            baselines += [keys] * is_human
            labels = ["" if is_human else self.of_runs.sources[run].label]
            if keys:
                name = visible(self._row_label(keys))
                labels.insert(0, formulas.get(name, name))
            depth = int(len(keys) == 2 and keys[1] != "")
            row = tuple(text if isinstance(text, CellText) else CellText("") for text in texts)
            shown = tuple(labels[: len(label_headings)])
            rows.append(GridRow(shown, depth, row, is_human=is_human))
        known = [shape.published.get(key) for key in cells.columns]
        n = [heading and heading[1] for heading in known]
        if known and all(known) and n in [[cell.n for cell in row.cells] for row in rows]:
            headings = [visible(heading[0]) for heading in known if heading]
        return grid_of(shape.title, label_headings, headings, rows, shape.source)

    def _order(self, side: str) -> list[str]:
        """The values of a side of the table in their order."""
        if side == "setting":
            return self.diagnostic.settings_in_order(self.table["setting"].unique())
        measures = in_patterns(self.table["measure"].unique(), self.shape.measures)
        table = self.table.assign(
            measure_rank=rank_in(self.table["measure"], measures),
            by_rank=rank_in(self.table["by"], self.shape.by),
        )
        keys = []
        if side in ("measure", "score", "cutoff"):
            keys = ["measure_rank"]
        elif side == "level" and "by" not in self.shape.rows:
            keys = ["by_rank", "level_rank"]
        return [*table.sort_values(keys, kind="stable")[side].unique()]

    def _row_label(self, keys: Sequence[str]) -> str:
        """The heading of a row: of the last column that it has a value of."""
        if "by" in self.shape.rows:
            return figure_label(self.diagnostic, *keys)
        last = len(keys) - 1 if keys[-1] else 0
        return self._label(self.shape.rows[last], keys[last])

    def _label(self, side: str, key: str) -> str:
        """The heading of a value of a side."""
        if key in self.shape.labels:
            return self.shape.labels[key]
        if side == "level":
            by = self.table["by"][self.table["level"] == key].iloc[0]
            return self.diagnostic.level_label(by, key) if by else "All"
        if side == "setting":
            return "Human baseline" if key == HUMAN else self.diagnostic.setting_label(key)
        if side == "cutoff":
            return key.replace("=", " ")
        return key if side in ("heading", "set") else measure_label(key)


def cell_of(
    figure: Figure | None, published: PublishedFigure | None = None, *, is_plain: bool = False
) -> CellText:
    """Returns the cell of a figure; one that is plain has neither interval nor n."""
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


def _table_of_sets(task: str, of_runs: ReportFigures) -> list[Grid]:
    """The table of small and extended sets, a row per set and a column per figure."""
    table = figures_of_sets(task, of_runs)
    sets = of_runs.diagnostic(task).extended_sets
    if table.empty or sets is None:
        return []
    shape = TableShape(sets.title, sets.source, (), ("set",), "heading")
    return [Pivot(of_runs, of_runs.diagnostic(task), shape, table).grid()]


# ---- headline figures ----------------------------------------------------------------------------


def overview(runs: Sequence[Results]) -> Section:
    """Returns a table per task with a row per run and a column per headline figure."""
    of_runs = ReportFigures.of(runs)
    grids = []
    for task in of_runs.tasks:
        table = headlines(task, of_runs)
        diagnostic = of_runs.diagnostic(task)
        headings = dict(zip(table["address"], table["heading"], strict=True))
        shape = TableShape(diagnostic.title, "", (), (), "address", labels=headings)
        grids.append(Pivot(of_runs, diagnostic, shape, table.assign(reported=None)).grid())
    return Section(f"All {len(runs)} models", grids, signs(grids))


# ---- the section of a diagnostic -----------------------------------------------------------------


def sections(
    of_runs: ReportFigures, rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance.

    `rows` has the columns of tasks whose predictions are shown by their formulas.
    """
    shown = []
    for task in of_runs.tasks:
        sources = of_runs.having(task)
        columns = rows.get(task, {})
        suites = dict(zip(columns.get("suite", ()), columns.get("formulas", ()), strict=False))
        formulas = {
            visible(f"{suite}/{number}"): f"{suite}: {text}" if len(suites) > 1 else text
            for suite, of_suite in suites.items()
            for number, text in enumerate(of_suite, start=1)
        }
        tables, further = _tables(task, of_runs, formulas)
        remarks = [
            *dict.fromkeys(_notes(task, [source.results for source in sources])),
            *signs([*tables, *further]),
            *_tests(task, of_runs),
            *_without_figure(task, sources),
        ]
        settings = [source.results.tasks[task] for source in sources]
        unperturbed = (of.get("none", next(iter(of.values()))) for of in settings)
        signatures = list(dict.fromkeys(setting.signature for setting in unperturbed))
        title = of_runs.diagnostic(task).title
        shown.append(Section(title, tables, remarks, further, signatures, task))
    return shown


def sections_of(runs: Sequence[Run], figures: ReportFigures | None = None) -> list[Section]:
    """Returns the sections of runs, with the formulas of their suites; see `sections`."""
    columns = {task: rows.columns() for run in runs for task, rows in run.stimuli.items()}
    return sections(figures or ReportFigures.of([run.results for run in runs]), columns)


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
        is_asked = run.protocol.elicitation == "probability"
        if run.model.server is not None and absent and is_known and is_asked:
            yield f"{', '.join(absent)} not computed: the server's list of top tokens is shorter"
        if run.protocol.limit is not None:
            how = f"drawn evenly over the break-downs (--limit {run.protocol.limit})"
            n = runs[0].data.tasks[task].n
            yield f"a sample of {n} rows, {how}; the figures over all rows differ"


def _tests(task: str, of_runs: ReportFigures) -> Iterator[str]:
    """Tests against chance of up to two models, and averages of human studies."""
    sources = of_runs.sources
    found = headlines(task, of_runs).dropna(subset="p_chance")
    for i, source in enumerate(sources if len(sources) < 3 else ()):
        of_run = found[found["run"] == i]
        texts = []
        for heading, p_chance in zip(of_run["heading"], of_run["p_chance"], strict=True):
            p = numbers.p_value(p_chance)
            texts.append(f"{visible(heading)} p {'' if p[0] == '<' else '= '}{p}")
        if texts:
            of = f" of {source.label}" if len(sources) > 1 else ""
            yield f"exact binomial test against chance{of}: {'; '.join(texts)}"
    for fact in (
        human_facts(task) if has_published_rows(of_runs.having(task)[0].results, task) else ()
    ):
        source_text = f"{citation(fact['source'])}, section {fact['section']}"
        yield f"human baseline: {fact['fact']} {fact['value']} ({source_text})"


def _without_figure(task: str, sources: Sequence[LabelledRun]) -> Iterator[str]:
    """Undefined measures, and per model and setting how many rows have no figure, and which."""
    undefined = dict[str, list[str]]()
    lines = list[str]()
    for source in sources:
        by = f" by {source.label}" if len(sources) > 1 else ""
        for setting, content in source.results.tasks[task].items():
            label = source.results.diagnostic(task).setting_label(setting)
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
            n = content.equal_contrasts
            compared = content.measures.get("sensitivity")
            if n and compared and compared.value is not None:
                rest = f"{n:,} contrast{'s' * (n > 1)} whose good and bad rows have the same text"
                lines.append(f"not compared{by}: {rest} or the same tokens")
            if n := content.without_first:
                rest = f"the first word of {n:,} sentences, which has nothing before it"
                lines.append(f"not scored{by}: {rest}")
    for reason, names in undefined.items():
        yield f"{numbers.UNDEFINED} {', '.join(dict.fromkeys(names))}{reason}"
    yield from lines
