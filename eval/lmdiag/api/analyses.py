"""What is computed from runs, predictions and tables: analyses, fits and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from lmdiag.analysis.designs import PARTS_OF, Analysis, analyse_table
from lmdiag.analysis.fit import HumanFit, fit_surprisals
from lmdiag.analysis.human import own_surprisals, read_human, read_surprisals
from lmdiag.analysis.items import is_table_file, items_of, labels_of
from lmdiag.analysis.procedures import SURPRISAL, Procedure, ProcedureKeywords
from lmdiag.analysis.rows import with_numbers
from lmdiag.analysis.selection import check_table
from lmdiag.asking.protocol import (
    Predictions,
    QueryOptions,
)
from lmdiag.options import (
    Asking,
    AskingKeywords,
    LayerKeywords,
    LayerOptions,
    Seeded,
    SeedKeywords,
    pop_options,
    with_fields,
)
from lmdiag.results import Run, cited_signatures, load_run
from lmdiag.results.item_rows import Per, items_of_predictions
from lmdiag.results.measured import Measures
from lmdiag.results.model_labels import model_labels, needs_no_context, weights_text
from lmdiag.results.without_figures import without_any_figure
from lmdiag.runs.surprisals import (
    ask_about_words,
)
from lmdiag.stimuli import Stimuli
from lmdiag.stimuli.reading.columns import ANALYSED_COLUMNS
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.stimuli.values.levels import level_texts
from lmdiag.studies.comparison import Comparisons, compare_runs, runs_of_other_kind
from lmdiag.tables.table_files import MEMORY
from lmdiag.text import column_like
from lmdiag.types import (
    WHOLE_SENTENCE,
    BadInput,
    Coding,
    DesignOptions,
    OnProgress,
    ReadingKeywords,
    TableKeywords,
    TableOptions,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    Analysable: TypeAlias = Run | DataFrame | str | Path | Predictions
from lmdiag.api.arguments import as_names, check_type
from lmdiag.api.model import LanguageModel, load_in_turn

READING = TableOptions.__dataclass_fields__.keys()
"""Names of the options of tables."""


class FitKeywords(ProcedureKeywords, ReadingKeywords, LayerKeywords, AskingKeywords, total=False):
    """Keywords of `fit`: a procedure, how the table is read, and how models are asked."""


@with_fields(LayerOptions, Asking, Procedure, TableOptions, keywords=FitKeywords)
def fit(
    human: str | Path | DataFrame,
    *,
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel] = (),
    surprisal: str | Sequence[str] = (),
    profile: str | None = None,
    on_progress: OnProgress | None = None,
    **procedure: Unpack[FitKeywords],
) -> HumanFit:
    """Fits human measures with and without surprisals (docs/specification.md, section 10).

    Args:
        human: a table with a row per word, or per word and reader: a file or a DataFrame; or a run
            directory, whose items are the rows.
        models: models that are asked, in order; a model of another thread is waited for.
        surprisal: columns of the table, or files, with surprisals that were made elsewhere; without
            models, its column `surprisal` if none is named.
        profile: a published procedure, of `lmdiag.analysis.procedures.PROFILES`.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the call; with `output`, it can be resumed.
        procedure: fields of `lmdiag.analysis.procedures.Procedure`, e.g. response="time", and how
            the table is read, fields of `lmdiag.types.TableOptions`, e.g. columns={"word": "ia"}.

    Raises:
        BadInput: a column or a value cannot be used (column and row are named), or there are
            neither models nor surprisals.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> words = "The key to the old cabinets was on a table near the door".split()
    >>> human = DataFrame({"position": range(1, 14), "word": words})
    >>> human["surprisal"] = [2.5, 9, 1, 1.5, 7, 8, 3, 2, 3, 6, 5, 1, 4]
    >>> human["rt"] = [260, 300, 240, 250, 310, 330, 255, 245, 260, 290, 280, 235, 275]
    >>> lmdiag.fit(human, response="rt", controls=["length"], lags=0).to_frame()["n"].tolist()
    [13]
    """
    from pandas import DataFrame

    check_type("human", human, (str, Path, DataFrame), "a file, a DataFrame or a run directory")
    keywords: dict[str, Any] = {**procedure}
    layers = pop_options(LayerOptions, keywords).layers
    asking = pop_options(Asking, keywords)
    fields = Procedure.__dataclass_fields__
    reading = {name: keywords.pop(name) for name in READING & keywords.keys() - fields.keys()}
    if unknown := keywords.keys() - fields.keys():
        raise BadInput(f"fit has no option {min(unknown)!r}: choose from {', '.join(fields)}")
    keywords |= {name: tuple(value) for name, value in keywords.items() if isinstance(value, list)}
    options = TableOptions.of(reading)
    table = read_human(human, profile, Procedure(**keywords), options)
    files = [surprisal] if isinstance(surprisal, str) else surprisal
    if [*files] == [SURPRISAL]:
        files = ()
    sources = [read_surprisals(table, source) for source in files]
    if models:
        check_table(table)  # before any model is loaded
    infos_of_layers = []
    options_of_layers: list[QueryOptions] = []
    model_surprisals = []
    for model in load_in_turn(models):
        ask_options: dict[str, Any] = {"output": asking.output, "batch_size": asking.batch_size}
        ask_options |= {"label": None if asking.quiet else model.info.id, "layers": layers}
        ask_options["on_progress"] = on_progress
        with model.lock:
            surprisals_of_model = ask_about_words(model.model, model.options, table, **ask_options)
        model_surprisals += [source for source, _ in surprisals_of_model]
        infos_of_layers += [model.info] * len(surprisals_of_model)
        options_of_layers += [query_options for _, query_options in surprisals_of_model]
    with_labels = zip(
        model_surprisals, model_labels(infos_of_layers, options_of_layers), strict=True
    )
    sources += [source._replace(name=label) for source, label in with_labels]
    if not sources and SURPRISAL in table.frame.columns:
        table, sources = own_surprisals(table)
    if not sources:
        remedy = "name a model to ask, --model MODEL, or what has them, --surprisal COLUMN or FILE"
        raise BadInput(f"no surprisals: {remedy}")
    return fit_surprisals(table, sources)


@with_fields(TableOptions)
def analyse(
    source: Analysable | Sequence[Analysable],
    stimuli: Stimuli | None = None,
    *,
    response: str = "",
    conditions: Sequence[str] = (),
    formula: str = "",
    item: str | Sequence[str] = (),
    region: str | int = "",
    levels: Mapping[str, Sequence[object]] | str | Sequence[str] = (),
    coding: Coding = "sum",
    by: str = "",
    task: str = "",
    **reading: Unpack[TableKeywords],
) -> Analysis:
    """Analyses the conditions of items: cell means, effects over items, mixed models.

    Args:
        source: predictions; runs or their directories; or a table with a row per item and
            condition, made by `items()` or another program, or its file; or several of them.
        stimuli: the rows of predictions that are not from `LanguageModel.predict`.
        response: surprisal (bits), probability, log_odds (nats), correct, or a column of numbers;
            "" for the left side of the formula, else surprisal.
        formula: mixed model in lme4's notation, e.g. "surprisal ~ a * b + (1 | item)".
        conditions, item, region, coding, by: see `lmdiag.types.DesignOptions`.
        levels: column -> its levels in order, or "column=a,b"; of others, alphabetical, numbers by
            size.
        task: of runs with several tasks.
        reading: how the rows are read, fields of `lmdiag.types.TableOptions`, e.g.
            filter="block=swap"; of runs, those that choose rows or divide conditions.

    What is not given is taken from the design that is stored with the first run.

    Raises:
        BadInput: there are no items, no conditions or no such columns; the formula cannot be
            fitted.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> items = DataFrame({"item": [1, 1, 2, 2, 3, 3], "prime": ["related", "unrelated"] * 3})
    >>> items["surprisal"] = [4.0, 6.0, 5.0, 7.5, 3.0, 4.5]
    >>> analysis = lmdiag.analyse(items)
    >>> analysis
    <Analysis of surprisal by prime>
    >>> means = analysis.to_frame().dropna(subset="mean")
    >>> dict(zip(means["prime"], means["mean"]))
    {'related': 4.0, 'unrelated': 6.0}
    """
    from pandas import DataFrame

    sources: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise BadInput("source is empty: give predictions, runs or tables")
    for part in sources:
        expected = "predictions, a run, its directory, a DataFrame or a table's file"
        check_type("source", part, (DataFrame, Predictions, Run, str, Path), expected)
    parts = [
        x if isinstance(x, DataFrame | Predictions | Run) or is_table_file(x) else load_run(x)
        for x in sources
    ]
    parts.sort(key=lambda part: isinstance(part, Run) and needs_no_context(part.results.model))
    runs = [part for part in parts if isinstance(part, Run)]
    named_by_user: dict[str, Any] = {
        "conditions": as_names(conditions), "item": as_names(item), "region": str(region),
        "levels": _orders(levels), "coding": coding if coding != "sum" else "", "by": by,
    }  # fmt: skip
    design = runs[0].results.design.given() if runs else {}
    design |= {name: value for name, value in named_by_user.items() if value}
    asked_units = {rows.diagnostic.asks for run in runs for rows in run.stimuli.values()}
    labels = labels_of(runs)
    if causes := _without_any_value(runs, labels, task) if len(runs) == len(parts) else []:
        raise BadInput(" ".join(causes).rstrip("."))
    if asked_units == {"sentence"}:
        design["not_compared"] = [labels[number] for number in runs_of_other_kind(runs)]
    response_column = response or formula.partition("~")[0].strip(" `") or "surprisal"
    options = TableOptions.of(reading)
    per: Per = "region" if design.get("region") else "row"
    if design.get("region") == WHOLE_SENTENCE:
        per = "sentence"
        design.pop("region")
    label_of_run = iter(labels)
    tables = [
        _read_source(
            part, stimuli, options, response_column, per=per, task=task,
            label=next(label_of_run) if isinstance(part, Run) else "",
        )
        for part in parts
    ]  # fmt: skip
    table = items_of([frame for frame, _ in tables])
    if "levels" in design and not named_by_user["levels"]:
        design["levels"] = _of_chosen_rows(design["levels"], table)
    analysis = analyse_table(table, response=response, formula=formula, **design)
    notes = dict.fromkeys(note for _, lines in tables for note in lines)
    is_of_runs = len(asked_units) == 1 and len(runs) == len(parts)
    row_unit = PARTS_OF[asked_units.pop()] if is_of_runs else ""
    is_table = all(isinstance(part, DataFrame) or is_table_file(part) for part in parts)
    first_rows = analysis.reads if is_table else ()
    facts_of_sources = {
        label: f"{weights_text(run.results.model)}, data {Path(run.results.data.source).name}"
        for label, run in zip(labels, runs, strict=True)
    }
    facts_of_sources |= {
        Path(str(part)).name: f"{len(frame):,} rows"
        for part, (frame, _) in zip(parts, tables, strict=True)
        if is_table_file(part)
    }
    # a table that `items` wrote has the signatures of its runs
    signatures_of_rows = map(str, table["signature"].unique()) if "signature" in table else ()
    signatures = cited_signatures(x for x in signatures_of_rows if x.startswith("lmdiag:"))
    return replace(
        analysis, notes=(*notes, *analysis.notes), part=row_unit, reads=first_rows,
        sources=facts_of_sources, signatures=tuple(signatures),
    )  # fmt: skip


def _of_chosen_rows(
    orders: Mapping[str, Sequence[str]], table: DataFrame
) -> dict[str, tuple[str, ...]]:
    """The orders that are stored with a run, of the levels that the chosen rows have."""
    kept = {}
    for name, order in orders.items():
        present = {*level_texts(table[column_like(name, table)]).dropna()}
        kept[name] = tuple(level for level in order if level in present)
    return {name: order for name, order in kept.items() if len(order) > 1}


def _orders(
    levels: Mapping[str, Sequence[object]] | str | Sequence[str],
) -> Mapping[str, Sequence[object]]:
    """Returns column -> its levels in order; `BadInput` for a text other than COLUMN=a,b,c."""
    if isinstance(levels, Mapping):
        return levels
    orders: dict[str, list[str]] = DesignOptions.of({"levels": levels}).given().get("levels", {})
    return orders


def _without_any_value(runs: Sequence[Run], labels: Sequence[str], task: str) -> list[str]:
    """Returns why no run has a figure, a sentence per run; [] if at least one has a figure.

    Without figures there is nothing to analyse, and the reason is better than an empty table.
    """
    causes = []
    for run, label in zip(runs, labels, strict=True):
        causes_of_run = without_any_figure(run.results, label, task)
        if len(causes_of_run) < (1 if task else len(run.results.tasks)):
            return []
        causes += causes_of_run
    return causes


def _read_source(
    source: Any,
    stimuli: Stimuli | None,
    options: TableOptions,
    response: str,
    *,
    per: Per,
    task: str,
    label: str,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns the items of one source of `analyse` as a table, and how its rows were read.

    Args:
        source: predictions, a run, a DataFrame or the file of a table.
        stimuli: the rows of predictions that do not have them.
        response: the column of numbers that is analysed.
        per: whether a row of the table is a row, a region or a sentence.
        label: what to call the model of a run.
    """
    from pandas import DataFrame

    table = source
    known_columns = ANALYSED_COLUMNS
    source_name = MEMORY
    if isinstance(source, Run):
        table = items_of(source, task=task, per=per, labels=[label])
        known_columns = frozenset()
        source_name = str(source.path)
    elif isinstance(source, Predictions):
        rows = getattr(source, "stimuli", None) or stimuli
        if rows is None:
            rule = "analyse takes predictions with their stimuli"
            raise BadInput(f"{rule}: analyse(predictions, stimuli)")
        table = items_of_predictions(source, rows, per)
    elif not isinstance(source, DataFrame):
        source_name = Path(source).name
    frame, notes = read_frame_rows(
        table, options, known_columns, copies=True, text=response, reads=("good", "contrast")
    )
    if isinstance(table, DataFrame):
        frame = frame.set_axis(range(1, len(frame) + 1))
    return with_numbers(frame, response, source_name), notes


Comparable = Measures | Run | str | Path


@with_fields(Seeded)
def compare(
    base: Comparable,
    *new: Comparable,
    across: Sequence[str] = (),
    tasks: Sequence[str] = (),
    measures: Sequence[str] = (),
    **seeded: Unpack[SeedKeywords],
) -> Comparisons:
    """Compares a model with each of the others on the same rows, item by item.

    Differences are new minus base. The statistics are those of docs/specification.md, section 5.

    Args:
        base, new: results of `measure`, or finished runs or their directories; not both.
        across, tasks, measures: see `lmdiag.studies.comparison.compare_runs`.

    Raises:
        BadInput: fewer than two are given, or they were not measured on the same data in the same
            way; the differing parts of their signatures are named.

    >>> import lmdiag
    >>> stimuli = lmdiag.load_stimuli("demo", "role88")
    >>> models = [lmdiag.load_model(name) for name in ("demo:masked", "demo:causal")]
    >>> base, new = (lmdiag.measure(model.predict(stimuli), stimuli) for model in models)
    >>> compared = lmdiag.compare(base, new)
    >>> compared
    <4 comparisons of demo:masked with demo:causal>
    """
    sources = (base, *new)
    for source in sources:
        what = "results of `measure`, finished runs or their directories"
        check_type("base and new", source, (Measures, Run, str, Path), what)
    if not new:
        raise BadInput("compare takes two or more results of `measure`, or two or more runs")
    if len({isinstance(source, Measures) for source in sources}) > 1:
        raise BadInput("compare takes results of `measure`, or runs, but not both")
    runs = [_run_of(source) for source in sources]
    seed = Seeded.of(seeded).seed
    compared = compare_runs(*runs, seed=seed, across=across, tasks=tasks, measures=measures)
    return Comparisons(compared, runs, across, seed)


def _run_of(source: Comparable) -> Run:
    """Returns the run of measures, a run itself, or the run in a directory."""
    if isinstance(source, Measures):
        return source.run
    return source if isinstance(source, Run) else load_run(source)
