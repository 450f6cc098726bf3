"""Runs that are kept in a directory: of diagnostics and own rows, and of responses of people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from lmdiag import stimuli
from lmdiag.api.arguments import check_type
from lmdiag.api.model import LanguageModel, load_in_turn
from lmdiag.asking.protocol import Protocol, checked_ranks, checked_threshold, query_options
from lmdiag.models.loading.load_options import LoadKeywords, LoadOptions
from lmdiag.options import (
    DataKeywords,
    DataOptions,
    LayerKeywords,
    LayerOptions,
    Recording,
    RecordingKeywords,
    Running,
    RunningKeywords,
    check_names,
    pop_options,
    with_fields,
)
from lmdiag.results import Run, Runs
from lmdiag.studies.cloze_norms import ClozeNorms, responses_of
from lmdiag.types import (
    BadInput,
    DesignOptions,
    FactorKeywords,
    FactorOptions,
    OnProgress,
    TableKeywords,
    TableOptions,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.runs.inputs import Inputs


class RunKeywords(
    DataKeywords, FactorKeywords, RunningKeywords, LoadKeywords, TableKeywords, total=False
):
    """Keywords of `run` but for `layers`."""

    k: Sequence[int]
    threshold: float
    name: str | None
    on_progress: OnProgress | None


class LayeredRunKeywords(RunKeywords, LayerKeywords, total=False):
    """All keywords of `run`."""


class ClozeKeywords(TableKeywords, LayerKeywords, RecordingKeywords, total=False):
    """Keywords of `cloze`: how the table is read, and how models are asked."""


@overload
def run(  # type: ignore[overload-overlap]  # a text is also an iterable of texts
    model: str | Path, data: Any = ..., **options: Unpack[RunKeywords]
) -> Run: ...


@overload
def run(model: Iterable[str | Path], data: Any = ..., **options: Unpack[RunKeywords]) -> Runs: ...


@overload
def run(
    model: str | Path | Iterable[str | Path],
    data: Any = ...,
    *,
    layers: str | Sequence[int | str],
    **options: Unpack[RunKeywords],
) -> Runs: ...


@with_fields(
    DataOptions, LayerOptions, FactorOptions, Running, LoadOptions, TableOptions,
    keywords=LayeredRunKeywords,
)  # fmt: skip
def run(
    model: str | Path | Iterable[str | Path],
    data: Any = "lmdiag",
    *,
    k: Sequence[int] = (1, 5),
    threshold: float = 0.01,
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Run | Runs:
    """Runs models as `lmdiag run` does, without its tables and page; returns the finished run.

    A finished run in the same directory is read back, an interrupted one is resumed.

    Args:
        model: Hub id, local folder, or `demo:masked` / `demo:causal`; or several of them, whose
            runs are returned as `Runs`, a list, as those of several `layers` are. A model that
            fails ends the call.
        data: a file of own rows; or rows in memory, as `load_stimuli` takes them, which are saved
            below `output`, so that the run can be opened later; or a built directory, a Hub id.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        name: what to call the model in its folder and in tables; None for its id.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the run; the same call resumes it.
        options: those below; fields of `lmdiag.types.FactorOptions`, the design of own data, which
            is stored with the run; of `lmdiag.models.LoadOptions`, e.g. dtype, unit, bos, chat; and
            of `lmdiag.types.TableOptions`, how a table of own rows is read.

    Raises:
        BadInput: see `lmdiag.runs.run_model.run_model`, or an option is not allowed.

    >>> import lmdiag
    >>> run = lmdiag.run("demo:causal", "demo", tasks="neg136")
    >>> run.path.as_posix()
    'results/demo--causal/neg136-token'
    >>> rows = [{"context": "A robin is a", "target": word} for word in ("bird", "tool")]
    >>> lmdiag.run(["demo:causal", "demo:masked"], rows, tasks="robins")
    <2 runs: demo:causal, demo:masked>
    """
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run_model import RunOptions, run_layers, run_model

    # a table in the place of a model is one value here, so that `check_type` refuses its type
    is_table = isinstance(model, Mapping) or hasattr(model, "columns")
    is_one = isinstance(model, str | Path) or is_table or not isinstance(model, Iterable)
    model_ids: list[Any] = [model] if is_one else list(cast("Iterable[Any]", model))
    for model_id in model_ids:
        check_type("model", model_id, (str, Path), "a Hub id, a folder, a demo model or several")
    if len(model_ids) > 1 and name:
        raise BadInput("name is for one model: run several models without it")
    check_names(run, options)
    rows = pop_options(DataOptions, options)
    layers = pop_options(LayerOptions, options).layers
    design = DesignOptions(**pop_options(FactorOptions, options).stored())
    run_options = RunOptions(
        name=name, on_progress=on_progress, **vars(pop_options(Running, options))
    )
    table_options = pop_options(TableOptions, options)
    load_options = LoadOptions.from_keywords(options)
    protocol = Protocol(
        tasks=rows.tasks, perturb=rows.perturb, shuffles=rows.shuffles, seed=rows.seed,
        limit=rows.limit, k=checked_ranks(k), threshold=checked_threshold(threshold),
        **query_options(load_options),
    )  # fmt: skip
    if isinstance(data, str | Path):
        data = str(data)
    elif isinstance(data, Iterator):
        data = list(data)  # the rows are read here and again where they are saved
    inputs = load_inputs(
        data, protocol, verbs=rows.verbs, allow_duplicates=rows.allow_duplicates, design=design,
        table=table_options,
    )  # fmt: skip
    inputs = _with_saved_rows(inputs, data, run_options.output)
    runs: list[Run] = []
    for model_id in model_ids:
        if layers:
            runs += run_layers(str(model_id), load_options, layers, inputs, run_options)
            continue
        finished_run = run_model(str(model_id), load_options, inputs, run_options)
        if finished_run:  # None on further processes of a launcher
            runs.append(finished_run)
    return runs[0] if is_one and not layers else Runs(runs)


def _with_saved_rows(inputs: Inputs, data: Any, output: Path) -> Inputs:
    """Saves rows in memory below `output`, and returns the inputs with this file as their source.

    A run can be opened later only if its rows are in a file.

    Args:
        inputs: the rows that `data` gave; returned as they are if it is a text.
        data: name of a file or data set, or rows in memory as `load_stimuli` takes them.
        output: the folder of all runs.
    """
    if isinstance(data, str):
        return inputs
    [(task, rows)] = inputs.stimuli.items()
    file = stimuli.saved_rows(data, task, output)
    return replace(inputs, stimuli={task: replace(rows, source=str(file))})


@with_fields(LayerOptions, Recording, TableOptions, keywords=ClozeKeywords)
def cloze(
    responses: str | Path | DataFrame,
    *,
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel],
    response: str = "",
    on_progress: OnProgress | None = None,
    **reading: Unpack[ClozeKeywords],
) -> ClozeNorms:
    """Runs models on the words that people gave at blanks (specification, section 4).

    Args:
        responses: a table with a row per response, or per word with its count or cloze, see
            `lmdiag.stimuli.responses.response_rows`: a file or a DataFrame.
        models: models that are asked, in order; those that are named are asked in unit word, and
            after several layers in unit token.
        response: column of the responses or words; "" for `response`, `word` or `target`.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the run; the same call resumes it.
        reading: how the table is read, fields of `lmdiag.types.TableOptions`, e.g. filter, and
            keep_case.

    Raises:
        BadInput: a column or value cannot be used (column and row are named), or the models were
            asked differently.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> responses = DataFrame({"item": 1, "context": "A robin is a", "response": ["bird", "pet"]})
    >>> lmdiag.cloze(responses, models="demo:causal")
    <ClozeNorms of rows.jsonl by demo:causal>
    """
    from pandas import DataFrame

    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run_model import RunOptions, run_layers, run_model

    check_type("responses", responses, (str, Path, DataFrame), "a file or a DataFrame")
    keywords: dict[str, Any] = {**reading}
    layers = pop_options(LayerOptions, keywords).layers
    recording = pop_options(Recording, keywords)
    table_options = responses_of(responses, TableOptions.of(keywords), response)
    source = responses if isinstance(responses, DataFrame) else str(responses)
    inputs = load_inputs(source, Protocol(tasks=()), table=table_options, responses=True)
    inputs = _with_saved_rows(inputs, source, recording.output)
    run_options = RunOptions(on_progress=on_progress, **vars(recording))
    runs: list[Run] = []
    for model in load_in_turn(models, unit="token" if layers else "word"):
        model_id = model.info.id
        options = model.options
        inputs_of_model = inputs.asked_by(options)
        with model.lock:
            if layers:
                runs += run_layers(
                    model_id, options, layers, inputs_of_model, run_options, loaded=model.model
                )
                continue
            finished_run = run_model(
                model_id, options, inputs_of_model, run_options, loaded=model.model
            )
            if finished_run:  # None on further processes of a launcher
                runs.append(finished_run)
    if not runs:
        raise BadInput("no model is named that is asked: give --model, or models in Python")
    options_that_differ = ("layer",) if layers else ()
    return ClozeNorms(runs, options_that_differ)
