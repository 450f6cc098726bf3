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
    """Returns lines on what the figures of a task are computed over.

    They say why measures are missing ("not computed by gpt2: ..."), which verbs EW and MW (measures
    of agreement) are over, and that the rows are a sample ("a sample of 80 rows, ...").
    """
    sources = figures.runs_with(task)
    models_by_reason = dict[str, dict[str, None]]()  # why a measure is missing -> models
    for run, label in sources:
        for content in run.tasks[task].values():
            for reason in content.not_computed:
                models_by_reason.setdefault(visible(reason), {})[label] = None
    lines = []
    for reason, models in models_by_reason.items():
        by_models = "" if len(models) == len(sources) else f" by {first_few([*models])}"
        lines.append(f"not computed{by_models}: {reason}")
    for run, label in sources:
        protocol = run.protocol
        if run.n_verbs is not None and run.measure(task, "none", "ew"):
            of_model = f" of {label}" if len(sources) > 1 else ""
            verbs = f"{run.n_verbs:,} of the {protocol.verbs:,} verbs"
            lines.append(
                f"EW and MW{of_model}: over {verbs}, whose two forms are both single tokens"
            )
        if protocol.limit is not None:
            n = sources[0].results.data.tasks[task].n
            how = f"drawn evenly over the break-downs (--limit {protocol.limit})"
            lines.append(f"a sample of {n} rows, {how}; the figures over all rows differ")
    return [*dict.fromkeys(lines)]


def remarks_on_overview(figures: ReportFigures) -> list[str]:
    """Returns the lines below the headline figures: their rows, and what has no figure.

    Of several tasks, each line begins with the name of its task.
    """
    lines = []
    for task in figures.tasks:
        remarks = [*remarks_on_rows(task, figures), *_missing_figures(task, figures, ("none",))]
        start = ""
        if len(figures.tasks) > 1:
            start = f"{visible(figures.diagnostic(task).short_title)}: "
        lines += [start + remark for remark in remarks]
    return lines


def remarks_below(task: str, figures: ReportFigures) -> list[str]:
    """Returns the lines below a task's tables, but for those of `remarks_on_rows`.

    They give the tests of one or two models against chance, averages of human studies on the same
    rows, and what has no figure.
    """
    lines = against_chance(figures, task) if len(figures.sources) < 3 else []
    if has_published_rows(figures.runs_with(task)[0].results, task):
        for fact in human_facts(task):  # e.g. an average accuracy, with its source
            section = f"{citation(fact['source'])}, section {fact['section']}"
            lines.append(f"human baseline: {fact['fact']} {fact['value']} ({section})")
    return lines + _missing_figures(task, figures)


def _missing_figures(task: str, figures: ReportFigures, settings: Sequence[str] = ()) -> list[str]:
    """Returns lines on the measures that are not defined, and on the rows without a figure.

    For example, "– accuracy in shuffled contexts not defined: ..." and "unscorable by gpt2: 2 rows
    (robin, sparrow)".

    Args:
        settings: the settings that are looked at; all if empty.
    """
    undefined_measures = dict[str, dict[str, None]]()  # where, and why -> names of measures
    lines_on_rows = list[str]()
    for run, label in figures.runs_with(task):
        by_model = f" by {label}" if len(figures.sources) > 1 else ""
        for setting, content in run.tasks[task].items():
            if settings and setting not in settings:
                continue
            where = ""
            if setting != "none":
                where = f" in {run.diagnostic(task).setting_label(setting)}"
            for name, measure in content.measures.items():
                if measure.not_defined:
                    reason = f"{where} not defined: {visible(measure.not_defined)}"
                    undefined_measures.setdefault(reason, {})[MeasureName.of(name).label] = None
            lines_on_rows += _rows_left_out(content, f"{by_model}{where}", _bos_remedy(run))
    lines = [
        f"{numbers.UNDEFINED} {', '.join(measures)}{reason}"
        for reason, measures in undefined_measures.items()
    ]
    return lines + lines_on_rows


def against_chance(figures: ReportFigures, task: str = "") -> list[str]:
    """Returns a line per model with p of its headline figures against chance.

    For example, "exact binomial test against chance of gpt2: accuracy p = .012; ...".

    Args:
        task: whose figures are taken; of all tasks if "".
    """
    lines = []
    tables = {name: headlines(name, figures) for name in ([task] if task else figures.tasks)}
    for run, (_, model) in enumerate(figures.sources):
        tests = []
        for name, table in tables.items():
            tested = table[(table["run"] == run) & table["p_chance"].notna()]
            task_title = f"{figures.diagnostic(name).short_title} " if len(tables) > 1 else ""
            for heading, p_chance in zip(tested["heading"], tested["p_chance"], strict=True):
                p = numbers.p_in_sentence(p_chance)
                tests.append(visible(f"{task_title}{heading} {p}"))
        of_model = f" of {model}" if len(figures.sources) > 1 else ""
        if tests:
            lines.append(f"exact binomial test against chance{of_model}: {'; '.join(tests)}")
    return lines


def _bos_remedy(run: Results) -> str:
    """Returns which option gives first words a probability, to stand behind a remark.

    "" for a model without a tokenizer, to which the option does not apply.
    """
    if not run.model.tokenizer:
        return ""
    return ": leave --bos never out" if run.protocol.bos == "never" else ": compare with --bos eos"


_MOST_WORDS = 5
"""Words without a figure that a line names."""


def _rows_left_out(content: SettingResults, where: str, remedy: str) -> Iterator[str]:
    """Yields lines on the rows, contrasts and words of a setting that have no figure.

    For example, "unscorable by gpt2: 2 rows (robin, sparrow)".

    Args:
        content: the results of a setting, among them its rows without a probability.
        where: model and setting, " by gpt2 in shuffled contexts", as far as there are several.
        remedy: what a user can do for first words, see `_bos_remedy`.
    """
    for state, rows in (("unscorable", content.unscorable), ("censored", content.censored)):
        if rows:
            words = [*dict.fromkeys(visible(row.word) for row in rows)]
            more = ", …" if len(words) > _MOST_WORDS else ""
            count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
            yield f"{state}{where}: {count} ({', '.join(words[:_MOST_WORDS])}{more})"
    # contrasts that are not compared are named where others are compared
    n = content.equal_contrasts
    sensitivity = content.measures.get("sensitivity")
    if n and sensitivity and sensitivity.value is not None:
        contrasts = f"{n:,} contrast{'s' if n > 1 else ''}"
        texts = "whose good and bad rows have the same text or the same tokens"
        yield f"not compared{where}: {contrasts} {texts}"
    if content.shared_tokens:
        words = [visible(row.word) for row in content.shared_tokens]
        yield f"not scored{where}: {describe_shared_tokens(words)}"
    if content.without_first:
        first_words = f"the first word of {content.without_first:,} sentences"
        if n := content.first_word_contrasts:
            contrasts = f"{n:,} contrast{'s' if n > 1 else ''}"
            first_words += f", in which the sentences of {contrasts} differ"
        yield f"not scored{where}: {first_words}, which has nothing before it{remedy}"
