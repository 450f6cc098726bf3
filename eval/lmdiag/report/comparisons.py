"""Comparisons of runs: which runs are compared, and the differences as texts, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from lmdiag import diagnostics
from lmdiag.measures import MeasureName
from lmdiag.report import labels, numbers
from lmdiag.report.charts import MOST_BESIDE, Plot
from lmdiag.report.comparison_findings import findings_on_pairs
from lmdiag.report.grid import CellText, Grid, GridRow, Heading, rows_below_heading, text_grid
from lmdiag.report.output import Deferred, Fact, Output, Section
from lmdiag.report.reported_tests import ReportedTest
from lmdiag.report.run_findings import frequency_findings, run_findings
from lmdiag.report.selections import LabelledRun
from lmdiag.results import FigureKey, Results, Run, cited_signatures
from lmdiag.results.model_labels import weights_text
from lmdiag.results.without_figures import without_any_figure
from lmdiag.studies.comparison import (
    ALPHA,
    IN_PERCENT,
    Comparison,
    Comparisons,
    compare_runs,
    refuse_different,
)
from lmdiag.text import listing, visible

_DIFFERENCE = "difference"
"""Heading of the new figure minus that of the base."""
_NEITHER = "equal"
"""Stands for the model with the larger figure where both figures are equal."""

_LEAST_FOR_INTERVAL = 8
"""Number of items from which on a difference has an interval."""


_TESTS = {
    "mcnemar": "McNemar's score test where each item is right or wrong",
    "sign-flip": "sign-flip test of a mean over items",
    "permutation": "permutation test of a median or a correlation, without an interval",
}
"""Test -> what it is. Where results have several of them, its first letter stands beside p."""


def _tests_made(comparisons: Iterable[Comparison]) -> list[str]:
    """Returns the distinct tests of some comparisons, in the order of `_TESTS`."""
    present = {comparison.test for comparison in comparisons}
    return [test for test in _TESTS if test in present]


def comparison_row(comparison: Comparison, *, names_test: bool = False) -> GridRow:
    """Returns n, the two figures, their difference with its interval, p, and the adjusted p.

    ● marks an adjusted p below .05.

    Args:
        names_test: whether the first letter of the test stands behind p, as in `.043 m`.
    """
    statistic = comparison.statistic
    p = numbers.p_value(comparison.p)
    letter = f" {comparison.test[0]}" if names_test and p != numbers.UNDEFINED else ""
    mark = "● " if comparison.p_adjusted < ALPHA else ""
    interval = numbers.bounds(comparison.ci_low, comparison.ci_high, statistic)
    cells = (
        CellText(f"{comparison.n:,}", f"{comparison.n_tied:,} tied" if comparison.n_tied else ""),
        CellText(numbers.number(comparison.base, statistic)),
        CellText(numbers.number(comparison.new, statistic)),
        CellText(numbers.signed(comparison.difference, statistic), interval),
        CellText(f"{p}{letter}"),
        CellText(f"{mark}{numbers.p_value(comparison.p_adjusted)}"),
    )
    return GridRow((comparison.label,), 0, cells)


def comparison_grids(comparisons: Iterable[Comparison], base: str, new: str) -> list[Grid]:
    """Returns a table for each task and setting, with a row per comparison of the two models.

    Args:
        base, new: names of the models, which are headings of columns.
    """
    comparisons = [*comparisons]
    names_test = len(_tests_made(comparisons)) > 1
    grids = []
    for title, comparisons_there in _by_setting(comparisons):
        rows = [
            comparison_row(comparison, names_test=names_test) for comparison in comparisons_there
        ]
        grids.append(_comparison_grid(title, rows, base, new))
    return grids


def _comparison_grid(title: str, rows: Sequence[GridRow], base: str, new: str) -> Grid:
    """Returns a table of rows that `comparison_row` made.

    Args:
        title: of the table.
        rows: with the cells n, base, new, difference, p and adjusted p.
        base, new: names of the models, which are the headings of their figures.
    """
    names = ("n", base, new, _DIFFERENCE, "p", "p adj.")
    headings = tuple(Heading(name, is_figure=name == _DIFFERENCE) for name in names)
    return Grid(title, ("",), headings, tuple(rows))


def comparisons_output(comparisons: Comparisons) -> Output:
    """Returns what is shown of comparisons: a table and charts per pair of models.

    All pairs have the first model as base. The notes on the tables stand below the last one.
    """
    names = [*map(visible, comparisons.names)]
    names_tests = len(_tests_made(comparisons)) > 1
    pairs = []
    # `compare_runs` returns the comparisons of a pair of models one after the other
    for number, comparisons_of_pair in groupby(comparisons, key=lambda c: c.number):
        by_key = {comparison.key: comparison for comparison in comparisons_of_pair}
        pairs.append(RunPair(names[0], names[number], by_key, number, names_tests))
    sections = []
    for pair in pairs:
        title = pair.table.title if len(names) > 2 else ""
        # `pair.plots` of this pair, which is made when a format reads it
        plots = Deferred(partial(getattr, pair, "plots"))
        sections.append(Section(title, [pair.table], plots=plots))
    if sections:
        sections[-1] = sections[-1]._replace(
            remarks=comparison_notes(comparisons),
            signatures=cited_signatures(comparisons.signatures),
        )
    protocols = {  # models of word counts are asked in one way
        name: run.results.protocol
        for name, run in zip(names, comparisons.runs, strict=True)
        if not run.results.model.counts_words
    }
    warnings = []
    if protocols:
        warnings = labels.asked_differently([*protocols.values()], [*protocols])
    weights = [visible(weights_text(run.results.model)) for run in comparisons.runs]
    facts = [Fact(name, [line] if line else []) for name, line in zip(names, weights, strict=True)]
    return Output(
        kind="comparison", title=f"{names[0]} and {', '.join(names[1:])}", facts=facts,
        findings=[*_findings(comparisons, pairs)], warnings=warnings,
        sections=sections, method=_method(comparisons, names),
        frame=comparisons.to_frame, document=comparisons.to_json,
    )  # fmt: skip


def _by_setting(
    comparisons: Iterable[Comparison], *, is_short: bool = False
) -> Iterator[tuple[str, list[Comparison]]]:
    """Yields the title of each task and setting, and the comparisons there.

    A title is "NEG-136" or "NEG-136, shuffled context".

    Args:
        comparisons: those of a task and setting follow each other.
        is_short: whether titles are short.
    """
    for (task, setting), group in groupby(comparisons, key=lambda c: (c.task, c.setting)):
        diagnostic = diagnostics.get(task)
        title = diagnostic.short_title if is_short else diagnostic.title
        if setting != "none":
            title += f", {diagnostic.setting_label(setting)}"
        yield visible(title), [*group]


def comparison_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Returns lines on how the columns of a table of comparisons were computed, and on what.

    For example, "p: McNemar's score test where each item is right or wrong". A line is left out if
    no comparison has what it explains.
    """
    without_interval = ""
    if any(comparison.n < _LEAST_FOR_INTERVAL for comparison in comparisons):
        without_interval = f"; none for fewer than {_LEAST_FOR_INTERVAL} items"
    n_tests = max((comparison.n_tests for comparison in comparisons), default=0)
    not_common = "no item was scored by both, so there is nothing to compare"
    tied = "two rows of the contrast share the highest probability in one of the models"
    undefined = "the two do not differ in any item, so there is nothing to test"
    tests = _tests_made(comparisons)
    test_names = "; ".join(_TESTS[test] for test in tests)
    if len(tests) > 1:  # their letters stand beside p
        test_names = "; ".join(f"{_TESTS[test]} ({test[0]})" for test in tests)
    lines = {  # line -> whether a comparison has what it explains
        "95% intervals have the differences that the test of p does not reject at "
        f"5%{without_interval}": any(not math.isnan(c.ci_low) for c in comparisons),
        f"p: {test_names}": bool(tests),
        f"{numbers.UNDEFINED}: {undefined}": any(c.test == "none" and c.n for c in comparisons),
        f"n = 0: {not_common}": any(not c.n and not c.n_tied for c in comparisons),
        f"tied: {tied}; these are left out": any(c.n_tied for c in comparisons),
        "● marks an adjusted p below .05": any(c.p_adjusted < ALPHA for c in comparisons),
        f"p adj.: by Holm's method over the {n_tests} distinct tests": n_tests > 1,
    }
    notes = [line for line, is_needed in lines.items() if is_needed]
    for comparison in comparisons:
        if comparison.same_as:
            measure = MeasureName.of(comparison.measure).label
            tested_measure = MeasureName.of(comparison.same_as).label
            notes.append(
                f"{measure} has the same numbers as {tested_measure} by construction: one test"
            )
    return [*dict.fromkeys(notes)]


def _is_drawn(comparison: Comparison) -> bool:
    """Whether charts show a difference: it is in percent, and both models scored some items."""
    return comparison.n > 0 and comparison.statistic in IN_PERCENT


def _method(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[str]:
    """Returns how models are compared, in words, for the end of a page.

    Args:
        comparisons: of the first model with each other one.
        names: of the models.
    """
    new = names[1] if len(names) == 2 else "each other model"
    texts = {
        "mcnemar": "Where each item is right or wrong, p is that of McNemar's score test of the "
        "items in which the two differ, and the interval is Tango's (1998) score interval, which "
        "leaves out 0 exactly where p is below .05.",
        "sign-flip": "A difference of means over items is tested by flipping the signs of the "
        "differences of the items, in all ways for up to 16 items and in 100,000 random ways for "
        "more; the interval has the differences that this test does not reject.",
        "permutation": "Medians and correlations are tested by exchanging the two models' values "
        "of items at random.",
    }
    lines = [f"Differences are {new} minus {names[0]}, over the items that both could score."]
    lines += [texts[test] for test in _tests_made(comparisons)]
    n_tests = max((c.n_tests for c in comparisons), default=0)
    if n_tests > 1:
        lines.append(
            f"p adj. is the p that Holm's method adjusts for the {n_tests} distinct tests of this "
            "comparison; a difference is one beyond chance where it is below .05."
        )
    return lines


# ---- pairs of runs -------------------------------------------------------------------------------


class RunPair(NamedTuple):
    """Two runs, measure by measure.

    Attributes:
        base, new: names of the models; differences are the new minus the base.
        comparisons: address of a figure that both have -> its comparison.
        number: of the pair, from 1, and of the colour and mark of the new model in charts.
        names_tests: whether p has the letter of its test, since several tests were made.
    """

    base: str
    new: str
    comparisons: dict[FigureKey, Comparison]
    number: int
    names_tests: bool = False

    @property
    def table(self) -> Grid:
        """The table of all differences; those of a task and setting stand below its title."""
        rows = list[GridRow]()
        for title, comparisons in _by_setting(self.comparisons.values(), is_short=True):
            rows_there = [comparison_row(c, names_test=self.names_tests) for c in comparisons]
            rows += rows_below_heading(title, rows_there)
        title = labels.difference_title(self.base, self.new)
        return _comparison_grid(title, rows, self.base, self.new)

    def figure_name(self, comparison: Comparison) -> str:
        """Returns what sentences call the compared figure (a number such as an accuracy).

        For example "sensitivity"; if the two runs are compared in several tasks, with the title of
        the task before it: "NEG-136 sensitivity".
        """
        tasks = {c.task for c in self.comparisons.values()}
        if len(tasks) == 1:
            return visible(comparison.label)
        return visible(f"{diagnostics.get(comparison.task).short_title} {comparison.label}")

    @property
    def scale_end(self) -> float | None:
        """The end of the scale of all charts: the bound of an interval that is farthest from 0.

        None where no difference is in percent, and so nothing is drawn.
        """
        drawn = [c for c in self.comparisons.values() if _is_drawn(c)]
        if not drawn:
            return None
        distances = [abs(bound) for c in drawn for bound in (c.ci_low, c.ci_high)]
        # NaN: fewer than eight items have no interval
        farthest = max((x for x in distances if not math.isnan(x)), default=1.0)
        return farthest or 1.0  # a scale from 0 to 0 cannot be drawn

    def _model_with_larger_figure(self, comparison: Comparison) -> str:
        """Returns the name of the model whose figure is larger; "equal" if both are equal."""
        if not comparison.difference:
            return _NEITHER
        return self.new if comparison.difference > 0 else self.base

    @property
    def plots(self) -> list[Plot]:
        """A chart for each task and setting, of the differences that are in percent.

        A difference is a dot with its interval, in the colour of the model with the larger figure.
        All charts have one scale, so that they can be compared. Tasks without such a difference
        have no chart.
        """
        from pandas import DataFrame

        from lmdiag.report.charts.drawing import OTHERS, dot_plot  # loads pandas

        plots = []
        for i, (title, comparisons) in enumerate(_by_setting(self.comparisons.values()), start=1):
            drawn = [*filter(_is_drawn, comparisons)]
            if not (drawn and self.scale_end):
                continue
            rows = DataFrame(
                {
                    "label": c.label, "n": c.n, "base": c.base, "new": c.new,
                    "series": self._model_with_larger_figure(c),
                    "value": c.difference, "low": c.ci_low, "high": c.ci_high,
                    "p_adjusted": c.p_adjusted, "zero": 0.0,
                }
                for c in drawn
            )  # fmt: skip
            # name in the legend -> number of its colour and mark: the base has the first one. Each
            # chart has one new model, so all after the fourth can have the same colour.
            styles = {self.base: 0, self.new: min(self.number, MOST_BESIDE)}
            if _NEITHER in {*rows["series"]}:
                styles[_NEITHER] = OTHERS
            domain = [-self.scale_end, self.scale_end]
            chart = dot_plot(rows, form="+%", styles=styles, domain=domain)
            caption = (
                f"{title}: differences, {self.new} minus {self.base}, in the colour of the model "
                "with the larger figure. Lines are 95% intervals."
            )
            plots.append(Plot("differences", f"differences-{self.number}-{i}", caption, chart))
        return plots


def difference_tables(pairs: Sequence[RunPair]) -> list[Grid]:
    """Returns a table for each pair; of four pairs and more, one for each task and setting.

    The latter have a row per model and a column per figure: the difference from the base, with its
    interval and adjusted p.

    Args:
        pairs: of the same base with each other model.
    """
    if len(pairs) < MOST_BESIDE:  # with the base, as many models as columns may have
        return [pair.table for pair in pairs]
    cells_of: dict[str, dict[str, dict[str, CellText]]] = {}  # title -> model -> figure -> cell
    for pair in pairs:
        for title, comparisons in _by_setting(pair.comparisons.values()):
            cells_of_model = cells_of.setdefault(title, {}).setdefault(pair.new, {})
            for comparison in comparisons:
                cells_of_model[comparison.label] = _difference_cell(comparison)
    tables = []
    for title, cells_of_models in cells_of.items():
        figures = dict.fromkeys(figure for cells in cells_of_models.values() for figure in cells)
        rows = []
        for model, cells in cells_of_models.items():
            row_cells = {figure: cells.get(figure, CellText("")) for figure in figures}
            rows.append(((model,), row_cells))
        tables.append(text_grid(title, (f"minus {pairs[0].base}",), rows))
    return tables


def _difference_cell(comparison: Comparison) -> CellText:
    """Returns a difference with its interval and adjusted p: "+5.6 ● [1.2, 9.9] p adj. .012"."""
    difference = numbers.signed(comparison.difference, comparison.statistic)
    mark = " ●" if comparison.p_adjusted < ALPHA else ""
    interval = numbers.bounds(comparison.ci_low, comparison.ci_high, comparison.statistic)
    p = f"p adj. {numbers.p_value(comparison.p_adjusted)}"
    return CellText(difference + mark, f"{interval} {p}".strip())


def _findings(comparisons: Comparisons, pairs: Sequence[RunPair]) -> Iterator[str]:
    """Yields sentences: why a model has no figure, then what the tests say."""
    for name, run in zip(comparisons.names, comparisons.runs, strict=True):
        yield from without_any_figure(run.results, name)
    if not pairs:
        yield "Nothing is compared: no item was scored by both models."
    yield from pair_findings(pairs)


def pair_findings(pairs: Sequence[RunPair]) -> list[str]:
    """Returns sentences: what the adjusted tests say, and which figures have no item to compare.

    Args:
        pairs: of the same base with each other model.
    """
    return _difference_findings(pairs) + _figures_without_items(pairs)


def findings_beside_frequency(results: Results, pair: RunPair) -> list[str]:
    """Returns sentences on what a model prefers, and what word frequency alone does beside it.

    If no figure has a chance level, they are those of `pair_findings`.

    Args:
        results: of the model.
        pair: the model, which is the base, and word frequencies.
    """
    sentences_on_frequency = frequency_findings(results, pair.comparisons, pair.base)
    if not sentences_on_frequency:
        return pair_findings([pair])
    return [*run_findings(results), *sentences_on_frequency, *_figures_without_items([pair])]


def _figures_without_items(pairs: Sequence[RunPair]) -> list[str]:
    """Returns sentences on the figures of each pair that have no item to compare, and why.

    For example, ["No item of sensitivity was scored by both gpt2 and bert."].
    """
    sentences = []
    for pair in pairs:
        # n counts the items that both models scored and that are tied in neither
        without_items = [c for c in pair.comparisons.values() if not c.n]
        tied = [pair.figure_name(c) for c in without_items if c.n_tied]
        unscored = [pair.figure_name(c) for c in without_items if not c.n_tied]
        names = f"{pair.base} and {pair.new}"
        if unscored:
            sentences.append(f"No item of {listing(unscored)} was scored by both {names}.")
        if tied:
            sentences.append(
                f"In {listing(tied)}, {names} are not compared: all contrasts are tied in one of "
                "the two."
            )
    return sentences


def _difference_findings(pairs: Sequence[RunPair]) -> list[str]:
    """Returns sentences on what the tests of the differences say.

    For example ["B is higher than A in sensitivity (+12.5 points) (adjusted p < .05)."].

    Args:
        pairs: of one base, the first run, with each other model.
    """
    if not pairs:
        return []
    base = pairs[0].base  # the same in all pairs
    tests_of_model: dict[str, list[ReportedTest]] = {}
    for pair in pairs:
        # figures without an item to compare have a sentence in `_figures_without_items`
        with_items = [c for c in pair.comparisons.values() if c.n]
        tests_of_model[pair.new] = [_test_of(c, pair.figure_name(c)) for c in with_items]
    return [*findings_on_pairs(base, tests_of_model)]


def _test_of(comparison: Comparison, figure_name: str) -> ReportedTest:
    """Returns the test of a comparison as sentences need it, e.g. with the text "+12.5 points".

    Args:
        figure_name: what sentences call the figure, e.g. "sensitivity".
    """
    text = numbers.signed(comparison.difference, comparison.statistic)
    if comparison.statistic in IN_PERCENT:
        text += " points"
    return ReportedTest(
        subject=figure_name, text=text, value=comparison.difference,
        p=comparison.p_adjusted, n_tests=comparison.n_tests, n=comparison.n,
    )  # fmt: skip


def run_pairs(
    runs: Sequence[Run],
    sources: Sequence[LabelledRun],
    across: Sequence[str] = (),
    measures: Sequence[str] = (),
) -> list[RunPair]:
    """Returns the comparisons of the first run with each other one; [] for a single run.

    Of checkpoints or layers of one model, only the first and the last run are compared. The
    p-values are adjusted over all comparisons.

    Args:
        runs: finished runs, in the order in which they are shown.
        sources: the same runs with their names.
        across: keys of `KNOBS` in which the runs may differ.
        measures: that are compared; the headline figures if empty.

    Raises:
        BadInput: the runs differ in data or protocol.
    """
    refuse_different(runs, across)
    is_ordered = labels.order_of([run.results for run in runs]) is not None
    positions = detailed_positions(runs) if is_ordered else range(len(runs))
    pairs = [
        RunPair(sources[0].label, sources[position].label, comparisons={}, number=number)
        for number, position in enumerate(positions[1:], start=1)
    ]
    if not pairs:
        return []
    compared_runs = [runs[position] for position in positions]
    for comparison in compare_runs(*compared_runs, across=across, measures=measures):
        # numbers of new runs, and of pairs, are from 1
        pairs[comparison.number - 1].comparisons[comparison.key] = comparison
    comparisons = [comparison for pair in pairs for comparison in pair.comparisons.values()]
    names_tests = len(_tests_made(comparisons)) > 1
    return [pair._replace(names_tests=names_tests) for pair in pairs]


def detailed_positions(runs: Sequence[Run]) -> list[int]:
    """Returns the positions of the runs whose items and charts of items are shown.

    Up to four runs all; of more, whose page would be too large, the first two; of checkpoints and
    layers, the first and the last.
    """
    if labels.order_of([run.results for run in runs]):
        return [0, len(runs) - 1]
    return list(range(len(runs) if len(runs) <= MOST_BESIDE else 2))
