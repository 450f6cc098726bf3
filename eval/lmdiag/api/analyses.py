"""What is computed from runs, predictions and tables: analyses, fits and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from lmdiag.analysis.designs import PARTS_OF, Analysis, analyse_table
from lmdiag.analysis.fit import HumanFit, fit_surprisals
from lmdiag.analysis.human import (
    HumanTable,
    SurprisalSource,
    read_human,
    read_surprisals,
    surprisals_in_table,
)
from lmdiag.analysis.items import is_table_file, items_of, labels_of
from lmdiag.analysis.procedures import SURPRISAL, Procedure, ProcedureKeywords
from lmdiag.analysis.rows import with_numbers
from lmdiag.analysis.selection import check_table
from lmdiag.api.arguments import as_names, check_type
from lmdiag.api.model import LanguageModel, load_in_turn
from lmdiag.asking.protocol import Predictions, QueryOptions
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
from lmdiag.runs.surprisals import ask_about_words
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
    procedure_fields = Procedure.__dataclass_fields__
    # fields that both records have, as `filter`, are those of the procedure
    reading_names = TableOptions.__dataclass_fields__.keys() - procedure_fields.keys()
    reading = {name: keywords.pop(name) for name in reading_names & keywords.keys()}
    unknown = keywords.keys() - procedure_fields.keys()
    if unknown:
        choice = ", ".join(procedure_fields)
        raise BadInput(f"fit has no option {min(unknown)!r}: choose from {choice}")
    # what remains are fields of the procedure, which has tuples in place of lists
    keywords |= {name: tuple(value) for name, value in keywords.items() if isinstance(value, list)}
    table = read_human(human, profile, Procedure(**keywords), TableOptions.of(reading))
    # surprisals: of the columns and files that the user names, then of models, in this order
    columns_or_files = [surprisal] if isinstance(surprisal, str) else surprisal
    if [*columns_or_files] == [SURPRISAL]:
        columns_or_files = ()  # the column of the table that is read without being named, see below
    sources = [read_surprisals(table, column_or_file) for column_or_file in columns_or_files]
    if models:
        check_table(table)  # before any model is loaded
    sources += _surprisals_of_models(models, table, asking, layers, on_progress)
    if not sources and SURPRISAL in table.frame.columns:  # nothing is named
        table, sources = surprisals_in_table(table)
    if not sources:
        remedy = "name a model to ask, --model MODEL, or what has them, --surprisal COLUMN or FILE"
        raise BadInput(f"no surprisals: {remedy}")
    return fit_surprisals(table, sources)


def _surprisals_of_models(
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel],
    table: HumanTable,
    asking: Asking,
    layers: Sequence[str | int],
    on_progress: OnProgress | None,
) -> list[SurprisalSource]:
    """Asks models for the surprisals of the words of a table, one model after the other.

    The names of the sources tell models, and what they were asked, from each other.

    Args:
        asking: how batches are made, and where answers are kept.
        layers: after which each model answers, a source for each; () for the last one alone.
    """
    sources = []
    model_infos = []
    asked_options: list[QueryOptions] = []
    for model in load_in_turn(models):
        with model.lock:
            surprisals_of_model = ask_about_words(
                model.model, model.options, table, layers=layers, output=asking.output,
                batch_size=asking.batch_size, label=None if asking.quiet else model.info.id,
                on_progress=on_progress,
            )  # fmt: skip
        for source, query_options in surprisals_of_model:
            sources.append(source)
            model_infos.append(model.info)
            asked_options.append(query_options)
    labels = model_labels(model_infos, asked_options)
    return [source._replace(name=label) for source, label in zip(sources, labels, strict=True)]


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

    sources = _opened_sources(source)
    runs = [part for part in sources if isinstance(part, Run)]
    are_all_runs = len(runs) == len(sources)
    # the design: that of the first run, and over it what the user names
    named_by_user: dict[str, Any] = {
        "conditions": as_names(conditions), "item": as_names(item), "region": str(region),
        "levels": _level_orders(levels), "coding": coding if coding != "sum" else "", "by": by,
    }  # fmt: skip
    design = runs[0].results.design.given() if runs else {}
    # an argument at its default, which is empty here (that of `coding`, "sum", became empty above),
    # leaves the design of the run as it is
    design |= {name: value for name, value in named_by_user.items() if value}
    # what the runs asked: "word", "sentence" or both
    asked_units = {rows.diagnostic.asks for run in runs for rows in run.stimuli.values()}
    labels = labels_of(runs)
    if are_all_runs:  # a table among the sources has responses of its own
        causes = _why_no_figures(runs, labels, task)
        if causes:
            raise BadInput(" ".join(causes).rstrip("."))
    if asked_units == {"sentence"}:
        # a causal model and one of another kind give whole sentences different quantities
        design["not_compared"] = [labels[number] for number in runs_of_other_kind(runs)]
    response_column = response or formula.partition("~")[0].strip(" `") or "surprisal"
    options = TableOptions.of(reading)
    # what of the data of a run becomes a row of the analysed table
    per: Per = "region" if design.get("region") else "row"
    if design.get("region") == WHOLE_SENTENCE:
        per = "sentence"
        design.pop("region")
    # the items of each source as a table
    label_of_run = iter(labels)  # the next label is that of the next run among the sources
    frames = []
    notes: dict[str, None] = {}  # as a set, in order
    facts_of_sources = {
        label: f"{weights_text(run.results.model)}, data {Path(run.results.data.source).name}"
        for label, run in zip(labels, runs, strict=True)
    }
    for part in sources:
        frame, notes_of_source = _read_source(
            part, stimuli, options, response_column, per=per, task=task,
            label=next(label_of_run) if isinstance(part, Run) else "",
        )  # fmt: skip
        frames.append(frame)
        notes |= dict.fromkeys(notes_of_source)
        if is_table_file(part):  # a run has its facts already; predictions and frames have no name
            facts_of_sources[Path(str(part)).name] = f"{len(frame):,} rows"
    # the tables of all sources are analysed as one
    table = items_of(frames)
    if "levels" in design and not named_by_user["levels"]:  # the orders are those of the run
        design["levels"] = _orders_of_present_levels(design["levels"], table)
    analysis = analyse_table(table, response=response, formula=formula, **design)
    # what a response is of, in words, if all sources asked the same
    row_part = PARTS_OF[asked_units.pop()] if are_all_runs and len(asked_units) == 1 else ""
    # the reading of a table is shown; that of a run's rows was shown when the run was made
    are_all_tables = all(isinstance(part, DataFrame) or is_table_file(part) for part in sources)
    return replace(
        analysis, notes=(*notes, *analysis.notes), part=row_part,
        reads=analysis.reads if are_all_tables else (), sources=facts_of_sources,
        signatures=_signatures_in(table),
    )  # fmt: skip


def _opened_sources(source: Any) -> list[Any]:
    """Returns the sources that `analyse` gets, one or several, as a list.

    A run directory is opened: it becomes a `Run`. A file of a table stays the name of a file. Runs
    of word frequencies come last, as in all results.
    """
    from pandas import DataFrame

    given_sources = list(source) if isinstance(source, list | tuple) else [source]
    if not given_sources:
        raise BadInput("source is empty: give predictions, runs or tables")
    expected = "predictions, a run, its directory, a DataFrame or a table's file"
    for part in given_sources:
        check_type("source", part, (DataFrame, Predictions, Run, str, Path), expected)
    sources = []
    for part in given_sources:
        is_directory = isinstance(part, str | Path) and not is_table_file(part)
        sources.append(load_run(part) if is_directory else part)
    sources.sort(key=lambda part: isinstance(part, Run) and needs_no_context(part.results.model))
    return sources


def _signatures_in(table: DataFrame) -> tuple[str, ...]:
    """Returns the signatures of the runs whose items are in a table, as they are cited.

    A table that `lmdiag items` wrote has them in a column.
    """
    if "signature" not in table:
        return ()
    texts = [str(text) for text in table["signature"].unique()]
    return tuple(cited_signatures(text for text in texts if text.startswith("lmdiag:")))


def _orders_of_present_levels(
    orders: Mapping[str, Sequence[str]], table: DataFrame
) -> dict[str, tuple[str, ...]]:
    """Returns the orders of levels without the levels that no row of the table has.

    The orders are stored with a run, of which only some rows may be analysed. For example,
    {"size": ["s", "m", "l"]} becomes {"size": ("s", "l")} for a table without "m". A column of
    which fewer than two levels are left is left out.

    Args:
        orders: column -> its levels in order.
        table: the rows that are analysed.
    """
    orders_of_present = {}
    for name, order in orders.items():
        levels_in_table = {*level_texts(table[column_like(name, table)]).dropna()}
        present_levels = tuple(level for level in order if level in levels_in_table)
        if len(present_levels) > 1:
            orders_of_present[name] = present_levels
    return orders_of_present


def _level_orders(
    levels: Mapping[str, Sequence[object]] | str | Sequence[str],
) -> Mapping[str, Sequence[object]]:
    """Returns column -> its levels in order: {"size": ["s", "l"]} for ["size=s,l"].

    `BadInput` for a text that is not COLUMN=a,b,c.
    """
    if isinstance(levels, Mapping):
        return levels
    orders: dict[str, list[str]] = DesignOptions.of({"levels": levels}).given().get("levels", {})
    return orders


def _why_no_figures(runs: Sequence[Run], labels: Sequence[str], task: str) -> list[str]:
    """Returns a sentence per run and task that says why it has no figure; [] if a run has a figure.

    Without figures there is nothing to analyse, and the reason is better than an empty table.

    Args:
        runs: the runs that are analysed.
        labels: what to call the model of each run.
        task: the only task that is analysed; "" for all of each run.
    """
    causes = []
    for run, label in zip(runs, labels, strict=True):
        causes_of_run = without_any_figure(run.results, label, task)
        n_tasks = 1 if task else len(run.results.tasks)
        if len(causes_of_run) < n_tasks:
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
    """Returns the items of one source of `analyse` as a table, and notes on how its rows were read.

    Args:
        source: predictions, a run, a DataFrame or the file of a table.
        stimuli: the rows of predictions that do not have them; None for none.
        options: how rows are read: filters, names of columns, divided columns.
        response: the column of numbers that is analysed.
        per: what of a run a row of the result is: a row of the data, a region or a sentence.
        task: the only task of a run; "" for all.
        label: what to call the model of a run.
    """
    from pandas import DataFrame

    table = source
    known_columns = ANALYSED_COLUMNS
    source_name = MEMORY
    if isinstance(source, Run):
        table = items_of(source, task=task, per=per, labels=[label])
        known_columns = frozenset()  # its columns have the names of lmdiag already
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
        table, options, known_columns,
        copies=True,  # columns stay under the user's names, too, which formulas have
        text=response,  # wide columns have responses, and not texts
        reads=("good", "contrast"),  # options of pairs that apply to tables of items, too
    )  # fmt: skip
    if isinstance(table, DataFrame):
        frame = frame.set_axis(range(1, len(frame) + 1))  # messages name rows by the index
    return with_numbers(frame, response, source_name), notes


Comparable = Measures | Run | str | Path
"""What `compare` takes: results of `measure`, or a finished run or its directory."""


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
    expected = "results of `measure`, finished runs or their directories"
    for source in sources:
        check_type("base and new", source, (Measures, Run, str, Path), expected)
    if not new:
        raise BadInput("compare takes two or more results of `measure`, or two or more runs")
    if len({isinstance(source, Measures) for source in sources}) > 1:
        raise BadInput("compare takes results of `measure`, or runs, but not both")
    runs = [_run_of(source) for source in sources]
    seed = Seeded.of(seeded).seed
    comparisons = compare_runs(*runs, seed=seed, across=across, tasks=tasks, measures=measures)
    return Comparisons(comparisons, runs, across, seed)


def _run_of(source: Comparable) -> Run:
    """Returns the run that measures are of, a run as it is, or the run in a directory."""
    if isinstance(source, Measures):
        return source.run
    return source if isinstance(source, Run) else load_run(source)
