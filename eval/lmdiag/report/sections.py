"""The section of each diagnostic in a report: its tables and the remarks below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmdiag.report.formats.grid import Grid, signs
from lmdiag.report.labels import measure_label
from lmdiag.report.numbers import UNDEFINED, p_value
from lmdiag.report.tables import Source, having, headlines, sources_of, tables_of
from lmdiag.results import Results
from lmdiag.results.published import citation, has_published_rows, human_facts
from lmdiag.text import visible
from lmdiag.types import DIAGNOSTICS

_NAMED = 5
"""Words that are named before the rest is only counted."""


class Section(NamedTuple):
    """All tables of one diagnostic.

    Attributes:
        task: name of the config.
        title: what it tests.
        tables: in the shapes of the papers.
        further: long tables, and the last with every figure that no other table shows.
        signatures: of the runs; figures with equal ones are comparable.
        remarks: what a reader has to know: notes, signs, human facts, words that were left out.
    """

    task: str
    title: str
    tables: list[Grid]
    further: list[Grid]
    signatures: list[str]
    remarks: list[str]


def sections(
    runs: Sequence[Results], rows: Mapping[str, Mapping[str, Sequence[Any]]] = {}
) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance.

    Args:
        runs: the results.
        rows: task -> the columns of its rows, where they are known: predictions of suites are then
            shown by their formulas.
    """
    all_sources = sources_of(runs)
    shown = []
    for task in dict.fromkeys(task for run in runs for task in run.tasks):
        tables, further = (
            [_with_formulas(grid, rows.get(task, {})) for grid in grids]
            for grids in tables_of(task, all_sources)
        )
        sources = having(task, all_sources)
        settings = [source.results.tasks[task] for source in sources]
        unperturbed = (of.get("none", next(iter(of.values()))) for of in settings)
        signatures = list(dict.fromkeys(setting.signature for setting in unperturbed))
        remarks = [
            *dict.fromkeys(_notes(task, [source.results for source in sources])),
            *signs([*tables, *further]),
            *_chance_tests(task, sources),
            *_undefined(task, sources),
            *_human_facts(task, sources[0].results),
            *_left_out(task, sources),
        ]
        title = sources[0].results.diagnostic(task).title
        shown.append(Section(task, title, tables, further, signatures, remarks))
    return shown


def _with_formulas(grid: Grid, rows: Mapping[str, Sequence[Any]]) -> Grid:
    """The table with predictions of suites by their formulas, not by their numbers."""
    suites = dict(zip(rows.get("suite", ()), rows.get("formulas", ()), strict=False))
    texts = {
        visible(f"{suite}/{number}"): f"{suite}: {text}" if len(suites) > 1 else text
        for suite, formulas in suites.items()
        for number, text in enumerate(formulas, start=1)
    }
    labels = [(texts.get(row.labels[0], row.labels[0]), *row.labels[1:]) for row in grid.rows]
    shown = zip(grid.rows, labels, strict=True)
    return grid._replace(rows=tuple(row._replace(labels=label) for row, label in shown))


def _notes(task: str, runs: Sequence[Results]) -> Iterator[str]:
    """Lines on measures that are not there, and on samples."""
    measures = {
        name for run in runs for setting in run.tasks[task].values() for name in setting.measures
    }
    if measures & {"surprisal", "surprisal_per_word"} and "sensitivity" not in measures:
        yield "the rows have no columns good and contrast, so there is no sensitivity"
        if "surprisal" in measures and "rank" not in measures:
            yield (
                "the median rank is not known, because some words have no rank; in unit word, only "
                "words of the top list have one"
            )
    for run in (run for run in runs if run.model.server is not None):
        names = {name for setting in run.tasks[task].values() for name in setting.measures}
        if run.diagnostic(task).has_verbs and not names & {"ew", "mw"}:
            yield (
                "EW and MW are not computed: they need the whole distribution, and a server tells "
                "its most probable tokens only"
            )
        beyond = [f"accuracy@{k}" for k in run.protocol.k if f"accuracy@{k}" not in names]
        # Data of one's own may have no expected words, and then there is no accuracy in any case.
        if beyond and (len(beyond) < len(run.protocol.k) or task in DIAGNOSTICS):
            yield f"{', '.join(beyond)} not computed: the server's list of top tokens is shorter"
    for limit in (run.protocol.limit for run in runs if run.protocol.limit is not None):
        yield (
            f"a sample of {runs[0].data.tasks[task].n} rows, drawn evenly over the break-downs "
            f"(--limit {limit}); the figures over all rows differ"
        )


def _chance_tests(task: str, sources: Sequence[Source]) -> Iterator[str]:
    """One line per model, of up to two, with the p of each headline figure that can be guessed."""
    for i, source in enumerate(sources if len(sources) < 3 else ()):
        tests = ((headline.label, headline.figures[i]) for headline in headlines(task, sources))
        known = [
            (label, p_value(figure.p_chance))
            for label, figure in tests
            if figure and figure.p_chance is not None
        ]
        texts = (f"{visible(label)} p {'' if p[0] == '<' else '= '}{p}" for label, p in known)
        if known:
            of = f" of {source.label}" if len(sources) > 1 else ""
            yield f"exact binomial test against chance{of}: {'; '.join(texts)}"


def _undefined(task: str, sources: Sequence[Source]) -> Iterator[str]:
    """One line per setting and reason that names the measures that are not defined there."""
    names: dict[tuple[str, str], dict[str, None]] = {}
    for source in sources:
        for setting, content in source.results.tasks[task].items():
            for name, measure in content.measures.items():
                if measure.not_defined:
                    of_reason = names.setdefault((setting, measure.not_defined), {})
                    of_reason[measure_label(name)] = None
    diagnostic = sources[0].results.diagnostic(task)
    for (setting, reason), labels in names.items():
        where = "" if setting == "none" else f" in {diagnostic.setting_label(setting)}"
        yield f"{UNDEFINED} {', '.join(labels)}{where} not defined: {visible(reason)}"


def _human_facts(task: str, run: Results) -> Iterator[str]:
    """Averages of human studies, where the rows are those of the paper."""
    for fact in human_facts(task) if has_published_rows(run, task) else ():
        source = f"{citation(fact['source'])}, section {fact['section']}"
        yield f"human baseline: {fact['fact']} {fact['value']} ({source})"


def _left_out(task: str, sources: Sequence[Source]) -> Iterator[str]:
    """One line per model and setting that counts and names the words without a figure."""
    for source in sources:
        by = f" by {source.label}" if len(sources) > 1 else ""
        for setting, content in source.results.tasks[task].items():
            where = "" if setting == "none" else f" in {setting}"
            for state, rows in (("unscorable", content.unscorable), ("censored", content.censored)):
                words = list(dict.fromkeys(visible(row.word) for row in rows))
                named = ", ".join(words[:_NAMED]) + (", …" if len(words) > _NAMED else "")
                if rows:
                    count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
                    yield f"{state}{by}{where}: {count} ({named})"
            n, compared = content.equal_contrasts, content.measures.get("sensitivity")
            if n and compared and compared.value is not None:
                yield (
                    f"not compared{by}: {n:,} contrast{'s' * (n > 1)} whose good and bad rows have "
                    "the same text or the same tokens"
                )
            if content.without_first:
                yield (
                    f"not scored{by}: the first word of {content.without_first:,} sentences, which "
                    "has nothing before it"
                )
