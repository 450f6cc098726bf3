"""What a reader of the tables of a diagnostic has to know, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmdiag.measures import MeasureName
from lmdiag.report import numbers
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.results import Results, SettingResults
from lmdiag.results.published_figures import citation, has_published_rows, human_facts
from lmdiag.text import describe_shared_tokens, first_few, visible


def remarks_on_rows(task: str, figures: ReportFigures) -> list[str]:
    """Returns the lines below a task's tables: why measures are missing, and what was sampled."""
    sources = figures.having(task)
    lacking = dict[str, dict[str, None]]()  # why a measure is not there -> models
    for run, label in sources:
        for content in run.tasks[task].values():
            for reason in content.not_computed:
                lacking.setdefault(visible(reason), {})[label] = None
    lines = []
    for reason, labels in lacking.items():
        by = "" if len(labels) == len(sources) else f" by {first_few([*labels])}"
        lines.append(f"not computed{by}: {reason}")
    for run, label in sources:
        protocol = run.protocol
        if run.n_verbs is not None and run.measure(task, "none", "ew"):
            of = f" of {label}" if len(sources) > 1 else ""
            verbs = f"{run.n_verbs:,} of the {protocol.verbs:,} verbs"
            lines.append(f"EW and MW{of}: over {verbs}, whose two forms are both single tokens")
        if protocol.limit is not None:
            n = sources[0].results.data.tasks[task].n
            how = f"drawn evenly over the break-downs (--limit {protocol.limit})"
            lines.append(f"a sample of {n} rows, {how}; the figures over all rows differ")
    return [*dict.fromkeys(lines)]


def remarks_on_overview(figures: ReportFigures) -> list[str]:
    """Returns what the figures of the tasks lack, in lines that name the task of several."""
    lines = []
    for task in figures.tasks:
        name = ""
        if len(figures.tasks) > 1:
            name = f"{visible(figures.diagnostic(task).short_title)}: "
        remarks = [*remarks_on_rows(task, figures), *_without_figures(task, figures, ("none",))]
        lines += [name + remark for remark in remarks]
    return lines


def remarks_below(task: str, figures: ReportFigures) -> list[str]:
    """Returns tests against chance, averages of human studies, and what has no figure."""
    lines = against_chance(figures, task) if len(figures.sources) < 3 else []
    if has_published_rows(figures.having(task)[0].results, task):
        for fact in human_facts(task):
            section = f"{citation(fact['source'])}, section {fact['section']}"
            lines.append(f"human baseline: {fact['fact']} {fact['value']} ({section})")
    return lines + _without_figures(task, figures)


def _without_figures(task: str, figures: ReportFigures, settings: Sequence[str] = ()) -> list[str]:
    """Which measures are not defined, and which rows have no figure, in some or all settings."""
    undefined = dict[str, dict[str, None]]()  # why measures are not defined -> their names
    left_out = list[str]()
    for run, label in figures.having(task):
        by = f" by {label}" if len(figures.sources) > 1 else ""
        for setting, content in run.tasks[task].items():
            if settings and setting not in settings:
                continue
            words = run.diagnostic(task).setting_label(setting)
            where = "" if setting == "none" else f" in {words}"
            for name, measure in content.measures.items():
                if measure.not_defined:
                    reason = f"{where} not defined: {visible(measure.not_defined)}"
                    undefined.setdefault(reason, {})[MeasureName.of(name).label] = None
            left_out += _left_out(content, f"{by}{where}", _bos_remedy(run))
    lines = (f"{numbers.UNDEFINED} {', '.join(x)}{reason}" for reason, x in undefined.items())
    return [*lines, *left_out]


def against_chance(figures: ReportFigures, task: str = "") -> list[str]:
    """Returns a line per model with p of its headline figures against chance, of all tasks."""
    lines = []
    tables = {name: headlines(name, figures) for name in ([task] if task else figures.tasks)}
    for run, (_, model) in enumerate(figures.sources):
        texts = []
        for name, table in tables.items():
            tested = table[(table["run"] == run) & table["p_chance"].notna()]
            start = f"{figures.diagnostic(name).short_title} " if len(tables) > 1 else ""
            for heading, p_chance in zip(tested["heading"], tested["p_chance"], strict=True):
                p = numbers.p_value(p_chance)
                texts.append(visible(f"{start}{heading} p {'' if p[0] == '<' else '= '}{p}"))
        of = f" of {model}" if len(figures.sources) > 1 else ""
        if texts:
            lines.append(f"exact binomial test against chance{of}: {'; '.join(texts)}")
    return lines


def _bos_remedy(run: Results) -> str:
    """What gives first words a probability; "" where lmdiag did not read the texts."""
    if not run.model.tokenizer:
        return ""
    is_chosen = run.protocol.bos == "never"
    return ": leave --bos never out" if is_chosen else ": compare with --bos eos"


def _left_out(content: SettingResults, where: str, remedy: str) -> Iterator[str]:
    """How many rows of a setting have no figure, and which; `where` names model and setting."""
    for state, rows in (("unscorable", content.unscorable), ("censored", content.censored)):
        words = list(dict.fromkeys(visible(row.word) for row in rows))
        if rows:
            named = ", ".join(words[:5]) + (", …" if len(words) > 5 else "")
            count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
            yield f"{state}{where}: {count} ({named})"
    n = content.equal_contrasts
    compared = content.measures.get("sensitivity")
    if n and compared and compared.value is not None:
        contrasts = (
            f"{n:,} contrast{'s' if n > 1 else ''} whose good and bad rows have the same text"
        )
        yield f"not compared{where}: {contrasts} or the same tokens"
    if content.shared_tokens:
        words = [visible(row.word) for row in content.shared_tokens]
        yield f"not scored{where}: {describe_shared_tokens(words)}"
    if content.without_first:
        first = f"the first word of {content.without_first:,} sentences"
        if n := content.first_word_contrasts:
            first += f", in which the sentences of {n:,} contrast{'s' if n > 1 else ''} differ"
        yield f"not scored{where}: {first}, which has nothing before it{remedy}"
