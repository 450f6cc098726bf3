"""The section of each diagnostic in a report: its tables and the remarks below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lmdiag.report.labels import measure_label
from lmdiag.report.numbers import UNDEFINED, p_value
from lmdiag.report.tables import Source, Table, headlines, sources_of, tables_of
from lmdiag.results import CHANCE_LEGEND, Results
from lmdiag.results.published import citation, has_published_rows, human_facts
from lmdiag.text import visible
from lmdiag.types import DIAGNOSTICS

_NAMED = 5
"""Words that are named before the rest is only counted."""


@dataclass(frozen=True)
class Section:
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
    tables: tuple[Table, ...]
    further: tuple[Table, ...]
    signatures: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def all_tables(self) -> list[Table]:
        """The tables, then the further ones."""
        return [*self.tables, *self.further]


def sections(runs: Sequence[Results]) -> list[Section]:
    """Returns a section per task that any of the runs has, in order of appearance."""
    sources = sources_of(runs)
    tasks = dict.fromkeys(task for run in runs for task in run.tasks)
    return [_section(task, [s for s in sources if task in s.results.tasks]) for task in tasks]


def _section(task: str, sources: Sequence[Source]) -> Section:
    runs = [source.results for source in sources]
    tables, further = tables_of(task, sources)
    remarks = [
        *_notes(task, runs),
        *signs([*tables, *further]),
        *_chance_tests(task, sources),
        *_undefined(task, runs),
        *(
            f"human baseline: {each['fact']} {each['value']} ({citation(each['source'])}, section "
            f"{each['section']})"
            for each in human_facts(task)
            if has_published_rows(runs[0], task)
        ),
        *_left_out(task, sources),
    ]
    settings = [run.tasks[task] for run in runs]
    unperturbed = (each.get("none", next(iter(each.values()))) for each in settings)
    signatures = dict.fromkeys(each.signature for each in unperturbed)
    return Section(
        task,
        runs[0].diagnostic(task).title,
        tuple(tables),
        tuple(further),
        tuple(signatures),
        tuple(remarks),
    )


def signs(tables: Iterable[Table]) -> list[str]:
    """Returns a line for each sign that figures of the tables have, with its meaning."""
    cells = [cell for table in tables for cell in table.cells]
    lines = []
    if any(cell.published and cell.published.is_within(cell.figure) is False for cell in cells):
        lines.append("* the published figure lies outside our 95% interval")
    if any(cell.figure.chance_sign for cell in cells):
        lines.append(CHANCE_LEGEND)
    if any(cell.figure.sd is not None for cell in cells):
        lines.append("± standard deviation over shuffles")
    return lines


def _chance_tests(task: str, sources: Sequence[Source]) -> Iterator[str]:
    """One line per model, of up to two, with the p of each headline figure that can be guessed."""
    for i, source in enumerate(sources if len(sources) < 3 else ()):
        tests = [(shown.label, shown.figures[i]) for shown in headlines(task, sources)]
        texts = [
            f"{visible(label)} p {'' if p.startswith('<') else '= '}{p}"
            for label, figure in tests
            if figure and figure.p_chance is not None
            for p in [p_value(figure.p_chance)]
        ]
        if texts:
            of = f" of {source.label}" if len(sources) > 1 else ""
            yield f"exact binomial test against chance{of}: {'; '.join(texts)}"


def _notes(task: str, runs: Sequence[Results]) -> Iterator[str]:
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
    yield from dict.fromkeys(line for run in runs for line in _not_told(task, run))
    for limit in dict.fromkeys(run.protocol.limit for run in runs):
        if limit is not None:
            yield (
                f"a sample of {runs[0].data.tasks[task].n} rows, drawn evenly over the break-downs "
                f"(--limit {limit}); the figures over all rows differ"
            )


def _not_told(task: str, run: Results) -> Iterator[str]:
    """One line per measure for which a server tells too little."""
    if run.model.server is None:
        return
    names = {name for setting in run.tasks[task].values() for name in setting.measures}
    if run.diagnostic(task).has_verbs and not names & {"ew", "mw"}:
        yield (
            "EW and MW are not computed: they need the whole distribution, and a server tells its "
            "most probable tokens only"
        )
    beyond = [f"accuracy@{k}" for k in run.protocol.k if f"accuracy@{k}" not in names]
    # Data of one's own may have no expected words, and then there is no accuracy in any case.
    has_accuracy = len(beyond) < len(run.protocol.k) or task in DIAGNOSTICS
    if beyond and has_accuracy:
        yield f"{', '.join(beyond)} not computed: the server's list of top tokens is shorter"


def _undefined(task: str, runs: Sequence[Results]) -> Iterator[str]:
    """One line per setting and reason that names the measures that are not defined there."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        for setting, content in run.tasks[task].items():
            for name, measure in content.measures.items():
                if measure.not_defined:
                    key = setting, measure.not_defined
                    groups.setdefault(key, {})[measure_label(name)] = None
    for (setting, reason), names in groups.items():
        where = (
            "" if setting == "none" else f" in {runs[0].diagnostic(task).setting_label(setting)}"
        )
        yield f"{UNDEFINED} {', '.join(names)}{where} not defined: {visible(reason)}"


def _left_out(task: str, sources: Sequence[Source]) -> Iterator[str]:
    """One line per model and setting that counts and names the words without a figure."""
    several = len(sources) > 1
    for source in sources:
        by = f" by {source.label}" if several else ""
        for setting, content in source.results.tasks[task].items():
            for state, rows in (("unscorable", content.unscorable), ("censored", content.censored)):
                if rows:
                    words = list(dict.fromkeys(visible(row.word) for row in rows))
                    named = ", ".join(words[:_NAMED]) + (", …" if len(words) > _NAMED else "")
                    where = "" if setting == "none" else f" in {setting}"
                    count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
                    yield f"{state}{by}{where}: {count} ({named})"
            compared = content.measures.get("sensitivity")
            if content.equal_contrasts and compared and compared.value is not None:
                n = content.equal_contrasts
                yield (
                    f"not compared{by}: {n:,} contrast{'s' * (n > 1)} whose good and bad rows have "
                    "the same text or the same tokens"
                )
            if content.without_first:
                yield (
                    f"not scored{by}: the first word of {content.without_first:,} sentences, which "
                    "has nothing before it"
                )
