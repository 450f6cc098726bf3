"""`lmdiag cloze`: what people say at a blank, and what models expect there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lmdiag.asking.protocol import Bos, Protocol, QueryOptions, Unit, query_options
from lmdiag.cli import command_options as options
from lmdiag.cli import say
from lmdiag.models.loading.load_options import Loading, LoadOptions, Serving
from lmdiag.options import LayerOptions
from lmdiag.types import TableOptions

if TYPE_CHECKING:
    from lmdiag.results import Run

_TABLE_OF_RESPONSES = options.TablesOfResponses()


def cloze_command(
    source: Path,
    /,
    *,
    models: Annotated[options.Models, options.section("Models")] = options.Models(),
    response: str = "",
    unit: Unit | None = None,
    bos: Bos = "auto",
    layered: Annotated[LayerOptions, options.RECORD] = LayerOptions(),
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
    table: Annotated[options.TablesOfResponses, options.TABLE] = _TABLE_OF_RESPONSES,
    loading: Annotated[Loading, options.section("Loading the model")] = Loading(),
    serving: Annotated[Serving, options.section("A model behind a server")] = Serving(),
    recording: Annotated[
        options.CommandRecording, options.section("Running")
    ] = options.CommandRecording(),
) -> None:
    """Runs models on the words that people gave at blanks, then compares people and models.

    Args:
        source: table with a row per response (item, context, response), or per word with its count
            or cloze
        response: column of the responses, e.g. of corrected ones (default: response or word)
        unit: of probabilities and the model's list (default: word; behind a server and with layers,
            token)
        bos: whether a causal model's context starts with the beginning-of-sequence token
    """
    showing.check()
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.processes import Processes
    from lmdiag.runs.run_model import RunOptions, run_layers, run_model
    from lmdiag.studies.cloze_norms import ClozeNorms, responses_of

    layers = layered.layers
    # people respond with whole words; a server and inner layers give probabilities of tokens alone
    default_unit: Unit = "token" if serving.server or layers else "word"
    query = QueryOptions(unit=unit or default_unit, bos=bos)
    load_options = LoadOptions(**query_options(query), **vars(loading), **vars(serving))
    # a `TableOptions` again, since records of two types are never equal
    table_options = responses_of(source, TableOptions(**vars(table)), response)
    runs: list[Run] = []
    with Processes() as processes:
        with processes.shared_errors():
            requested = models.requested(recording.output, str(source))
            protocol = Protocol(tasks=(), **query_options(query))  # () for the task of the table
            inputs = load_inputs(str(source), protocol, table=table_options, responses=True)
        for model, revision, name in processes.share(requested):
            model_options = replace(load_options, revision=revision, device=processes.device)
            run_options = RunOptions(name=name, **vars(recording))
            if layers:
                runs += run_layers(model, model_options, layers, inputs, run_options, processes)
            else:
                run = run_model(model, model_options, inputs, run_options, processes)
                runs += [run] if run else []  # none but on the first process
    if runs:
        say(f"lmdiag: runs in {', '.join(str(run.path) for run in runs)}")
        options_that_differ = ("layer",) if layers else ()
        showing.show(ClozeNorms(runs, options_that_differ))
