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
"""Stands for the model with the larger figure where there is none."""


_TESTS = {
    "mcnemar": "McNemar's score test where each item is right or wrong",
    "sign-flip": "sign-flip test of a mean over items",
    "permutation": "permutation test of a median or a correlation, without an interval",
}
"""Test -> what it is. Where results have several of them, its first letter stands beside p."""


def _tests_made(comparisons: Iterable[Comparison]) -> list[str]:
    """The tests that were made, in the order of `_TESTS`."""
    present = {c.test for c in comparisons}
    return [test for test in _TESTS if test in present]


def comparison_row(c: Comparison, *, names_test: bool = False) -> GridRow:
    """Returns n, the two figures, their difference with its interval, p, and the adjusted p.

    p has the letter of its test if it `names_test`, as `.043 m`; ● marks an adjusted p below .05.
    """
    p = numbers.p_value(c.p)
    letter = f" {c.test[0]}" if names_test and p != numbers.UNDEFINED else ""
    mark = "● " if c.p_adjusted < ALPHA else ""
    interval = numbers.bounds(c.ci_low, c.ci_high, c.statistic)
    cells = (
        CellText(f"{c.n:,}", f"{c.n_tied:,} tied" if c.n_tied else ""),
        CellText(numbers.number(c.base, c.statistic)),
        CellText(numbers.number(c.new, c.statistic)),
        CellText(numbers.signed(c.difference, c.statistic), interval),
        CellText(f"{p}{letter}"),
        CellText(f"{mark}{numbers.p_value(c.p_adjusted)}"),
    )
    return GridRow((c.label,), 0, cells)


def comparison_grids(comparisons: Iterable[Comparison], base: str, new: str) -> list[Grid]:
    """Returns a table for each task and setting, with the names of the two models as headings."""
    comparisons = [*comparisons]
    row_of = partial(comparison_row, names_test=len(_tests_made(comparisons)) > 1)
    return [
        _comparison_grid(title, [*map(row_of, compared)], base, new)
        for title, compared in _by_setting(comparisons)
    ]


def _comparison_grid(title: str, rows: Sequence[GridRow], base: str, new: str) -> Grid:
    """A table of rows of `comparison_row`."""
    names = ("n", base, new, _DIFFERENCE, "p", "p adj.")
    headings = tuple(Heading(name, (), name == _DIFFERENCE) for name in names)
    return Grid(title, ("",), headings, tuple(rows))


def comparisons_output(comparisons: Comparisons) -> Output:
    """Returns what is shown of comparisons: a table and charts per pair of models."""
    names = [*map(visible, comparisons.names)]
    names_tests = len(_tests_made(comparisons)) > 1
    pairs = [
        RunPair(names[0], names[number], {c.key: c for c in of_pair}, number, names_tests)
        for number, of_pair in groupby(comparisons, key=lambda c: c.number)
    ]
    sections = []
    for pair in pairs:
        title = pair.table.title if len(names) > 2 else ""
        plots = Deferred(partial(getattr, pair, "plots"))
        sections.append(Section(title, [pair.table], plots=plots))
    if sections:
        signatures = cited_signatures(comparisons.signatures)
        sections[-1] = sections[-1]._replace(remarks=notes(comparisons), signatures=signatures)
    protocols = {  # models of word counts are asked in one way
        name: run.results.protocol
        for name, run in zip(names, comparisons.runs, strict=True)
        if not run.results.model.counts_words
    }
    weights = [visible(weights_text(run.results.model)) for run in comparisons.runs]
    facts = [Fact(name, [line] if line else []) for name, line in zip(names, weights, strict=True)]
    return Output(
        kind="comparison", title=f"{names[0]} and {', '.join(names[1:])}", facts=facts,
        findings=[*_findings(comparisons, pairs)],
        warnings=labels.asked_differently([*protocols.values()], [*protocols]) if protocols else [],
        sections=sections, method=_method(comparisons, names),
        frame=comparisons.to_frame, document=comparisons.to_json,
    )  # fmt: skip


def _by_setting(
    comparisons: Iterable[Comparison], *, is_short: bool = False
) -> Iterator[tuple[str, list[Comparison]]]:
    """Yields the title of each task and setting with the comparisons there."""
    for (task, setting), compared in groupby(comparisons, key=lambda c: (c.task, c.setting)):
        diagnostic = diagnostics.get(task)
        after = "" if setting == "none" else f", {diagnostic.setting_label(setting)}"
        title = diagnostic.short_title if is_short else diagnostic.title
        yield visible(title + after), [*compared]


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Returns how the columns of a table of comparisons were computed, and on what."""
    few = "; none for fewer than 8 items" if any(c.n < 8 for c in comparisons) else ""
    n_tests = max((c.n_tests for c in comparisons), default=0)
    not_common = "no item was scored by both, so there is nothing to compare"
    tied = "two rows of the contrast share the highest probability in one of the models"
    undefined = "the two do not differ in any item, so there is nothing to test"
    tests = _tests_made(comparisons)
    used = "; ".join(_TESTS[test] for test in tests)
    if len(tests) > 1:  # their letters stand beside p
        used = "; ".join(f"{_TESTS[test]} ({test[0]})" for test in tests)
    lines = {
        f"95% intervals have the differences that the test of p does not reject at 5%{few}":
            any(not math.isnan(c.ci_low) for c in comparisons),
        f"p: {used}": bool(used),
        f"{numbers.UNDEFINED}: {undefined}": "none" in {c.test for c in comparisons if c.n},
        f"n = 0: {not_common}": not all(c.n or c.n_tied for c in comparisons),
        f"tied: {tied}; these are left out": any(c.n_tied for c in comparisons),
        "● marks an adjusted p below .05": any(c.p_adjusted < ALPHA for c in comparisons),
        f"p adj.: by Holm's method over the {n_tests} distinct tests": n_tests > 1,
    }  # fmt: skip
    same = dict.fromkeys(
        (MeasureName.of(c.measure), MeasureName.of(c.same_as)) for c in comparisons if c.same_as
    )
    return [line for line, is_needed in lines.items() if is_needed] + [
        f"{measure.label} has the same numbers as {other.label} by construction: one test"
        for measure, other in same
    ]


def _is_drawn(c: Comparison) -> bool:
    """Whether charts have a difference: it is in percent, and there are items."""
    return c.n > 0 and c.statistic in IN_PERCENT


def _method(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[str]:
    """How models are compared, in words, for the end of a page."""
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
        comparisons: of the measures that both have, by their addresses.
        number: of the pair, from 1; of the colour and mark of the new model.
        names_tests: whether p has the letter of its test, since several were made.
    """

    base: str
    new: str
    comparisons: dict[FigureKey, Comparison]
    number: int
    names_tests: bool = False

    @property
    def table(self) -> Grid:
        """The differences of all tasks and settings, below each other."""
        rows = list[GridRow]()
        for title, compared in _by_setting(self.comparisons.values(), is_short=True):
            made = [comparison_row(c, names_test=self.names_tests) for c in compared]
            rows += rows_below_heading(title, made)
        return _comparison_grid(
            labels.difference_title(self.base, self.new), rows, self.base, self.new
        )

    def named(self, c: Comparison) -> str:
        """Returns the figure of a comparison, with its diagnostic where there are several."""
        if len({other.task for other in self.comparisons.values()}) == 1:
            return visible(c.label)
        return visible(f"{diagnostics.get(c.task).short_title} {c.label}")

    @property
    def reach(self) -> float | None:
        """The largest bound of any interval in percent, in either direction: the end of a scale.

        None where nothing is in percent.
        """
        percent = [c for c in self.comparisons.values() if _is_drawn(c)]
        if not percent:
            return None
        bounds = [abs(bound) for c in percent for bound in (c.ci_low, c.ci_high)]
        return max((bound for bound in bounds if not math.isnan(bound)), default=1.0) or 1.0

    def _larger(self, c: Comparison) -> str:
        """The model with the larger figure."""
        if not c.difference:
            return _NEITHER
        return self.new if c.difference > 0 else self.base

    @property
    def plots(self) -> list[Plot]:
        """A chart of the differences that are in percent for each task and setting."""
        from pandas import DataFrame

        from lmdiag.report.charts.drawing import OTHERS, dot_plot  # loads pandas

        plots = []
        for i, (title, comparisons) in enumerate(_by_setting(self.comparisons.values()), start=1):
            percent = [*filter(_is_drawn, comparisons)]
            if not (percent and self.reach):
                continue
            rows = DataFrame(
                {
                    "label": c.label, "n": c.n, "base": c.base, "new": c.new,
                    "series": self._larger(c),
                    "value": c.difference, "low": c.ci_low, "high": c.ci_high,
                    "p_adjusted": c.p_adjusted, "zero": 0.0,
                }
                for c in percent
            )  # fmt: skip
            looks = {self.base: 0, self.new: min(self.number, MOST_BESIDE)}
            if _NEITHER in {*rows["series"]}:
                looks[_NEITHER] = OTHERS
            chart = dot_plot(rows, form="+%", styles=looks, domain=[-self.reach, self.reach])
            caption = (
                f"{title}: differences, {self.new} minus {self.base}, in the colour of the model "
                "with the larger figure. Lines are 95% intervals."
            )
            plots.append(Plot("differences", f"differences-{self.number}-{i}", caption, chart))
        return plots


def difference_tables(pairs: Sequence[RunPair]) -> list[Grid]:
    """Returns a table for each pair; of many pairs, one for each task and setting.

    The latter have a row per model, its figures minus those of the base, with the adjusted p.
    """
    if len(pairs) < MOST_BESIDE:
        return [pair.table for pair in pairs]
    cells: dict[str, dict[str, dict[str, CellText]]] = {}  # title -> model -> figure -> difference
    for pair in pairs:
        for title, compared in _by_setting(pair.comparisons.values()):
            cells_of_model = cells.setdefault(title, {}).setdefault(pair.new, {})
            cells_of_model |= {c.label: _difference_cell(c) for c in compared}
    tables = []
    for title, cells_of_models in cells.items():
        names = dict.fromkeys(
            name for cells_of_model in cells_of_models.values() for name in cells_of_model
        )
        rows = [
            ((model,), {name: cells_of_model.get(name, CellText("")) for name in names})
            for model, cells_of_model in cells_of_models.items()
        ]
        tables.append(text_grid(title, (f"minus {pairs[0].base}",), rows))
    return tables


def _difference_cell(c: Comparison) -> CellText:
    """A difference, with its interval and its adjusted p."""
    *_, difference, _, adjusted = comparison_row(c).cells
    mark = " ●" if "●" in adjusted.value else ""
    p = f"p adj. {adjusted.value.removeprefix('● ')}"
    return CellText(difference.value + mark, f"{difference.interval} {p}".strip())


def _findings(comparisons: Comparisons, pairs: Sequence[RunPair]) -> Iterator[str]:
    """Yields why a model has no figure, then what the tests say."""
    for name, run in zip(comparisons.names, comparisons.runs, strict=True):
        yield from without_any_figure(run.results, name)
    if not pairs:
        yield "Nothing is compared: no item was scored by both models."
    yield from pair_findings(pairs)


def pair_findings(pairs: Sequence[RunPair]) -> list[str]:
    """Returns what the adjusted tests say of the differences, in sentences.

    Figures of which there is no item to compare are named.
    """
    return _difference_findings(pairs) + _without_items(pairs)


def findings_beside_frequency(results: Results, pair: RunPair) -> list[str]:
    """Returns what a model does, and what word frequency alone does, by the adjusted tests.

    Without a figure that has a chance level, it is what `pair_findings` returns.
    """
    frequency = frequency_findings(results, pair.comparisons, pair.base)
    if not frequency:
        return pair_findings([pair])
    return [*run_findings(results), *frequency, *_without_items([pair])]


def _without_items(pairs: Sequence[RunPair]) -> list[str]:
    """Returns a sentence for the figures of each pair that have no item to compare."""
    sentences = []
    for pair in pairs:
        empty = [c for c in pair.comparisons.values() if not c.n]
        tied = [pair.named(c) for c in empty if c.n_tied]
        unscored = [pair.named(c) for c in empty if not c.n_tied]
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
    """Returns what the tests of the differences say, in sentences."""
    tests = {}
    for pair in pairs:
        with_items = [c for c in pair.comparisons.values() if c.n]
        tests[pair.new] = [_test_of(c, pair.named(c)) for c in with_items]
    return [*findings_on_pairs(pairs[0].base, tests)] if pairs else []


def _test_of(c: Comparison, name: str) -> ReportedTest:
    """Returns the test of a comparison as sentences need it.

    Args:
        name: what sentences call the figure.
    """
    text = numbers.signed(c.difference, c.statistic)
    if c.statistic in IN_PERCENT:
        text += " points"
    return ReportedTest(name, text, c.difference, c.p_adjusted, c.n_tests, c.n)


def compared(
    runs: Sequence[Run],
    sources: Sequence[LabelledRun],
    across: Sequence[str] = (),
    measures: Sequence[str] = (),
) -> list[RunPair]:
    """Returns the comparisons of the first run with each other one; of checkpoints, with the last.

    The p-values are adjusted over all of them. `sources` are those of the runs, parallel;
    `measures` are those that are compared.

    Raises:
        BadInput: the runs differ in data or protocol.
    """
    refuse_different(runs, across)
    checkpoints = labels.order_of([run.results for run in runs])
    detailed = in_detail(runs) if checkpoints else range(len(runs))
    pairs = [
        RunPair(sources[0].label, sources[i].label, {}, number)
        for number, i in enumerate(detailed[1:], start=1)
    ]
    shown_runs = [runs[number] for number in detailed]
    for comparison in compare_runs(*shown_runs, across=across, measures=measures) if pairs else ():
        pairs[comparison.number - 1].comparisons[comparison.key] = comparison
    names_tests = len(_tests_made(c for pair in pairs for c in pair.comparisons.values())) > 1
    return [pair._replace(names_tests=names_tests) for pair in pairs]


def in_detail(runs: Sequence[Run]) -> list[int]:
    """Returns the runs whose items and charts of items are shown.

    Up to four all; of more, whose page would be too large, the first two; of checkpoints, the first
    and the last.
    """
    if labels.order_of([run.results for run in runs]):
        return [0, len(runs) - 1]
    return list(range(len(runs) if len(runs) <= MOST_BESIDE else 2))
