"""`lmdiag run`, and `accelerate launch eval/run.py`: query models and score their answers."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.cli.exits import say
from lmdiag.cli.parser import (
    add_asking,
    add_conventions,
    add_data_revision,
    add_framing,
    add_json,
    add_loading,
    add_scoring,
    add_server,
    fields_of,
    scored,
    whole_number,
)
from lmdiag.cli.requested import RequestedModel, add_models, requested_models
from lmdiag.models.loading.options import LoadOptions
from lmdiag.perturb import names, tasks_with
from lmdiag.schema import DIAGNOSTICS, BadInput, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmdiag.results import Run
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.processes import Processes
    from lmdiag.runs.run import RunOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments, named as the fields of `Protocol` and `LoadOptions`."""
    add_models_and_data(parser.add_argument_group("models and data"))
    scoring = parser.add_argument_group("scoring")
    add_scoring(scoring)
    add_conventions(scoring)
    add_framing(scoring)
    add_loading_and_splitting(parser.add_argument_group("loading the model"))
    add_server(parser.add_argument_group("a model behind a server"))
    add_running(parser.add_argument_group("running"))


def add_loading_and_splitting(group: argparse._ArgumentGroup) -> None:
    """Declares how a model is loaded, over several processes, too."""
    add_loading(group)
    group.add_argument(
        "--tp", action="store_true", help="split each layer over the processes (tensor parallelism)"
    )


def add_models_and_data(group: argparse._ArgumentGroup) -> None:
    """Declares what is asked of whom; `load_asked` reads it."""
    add_models(group)
    group.add_argument(
        "--data", default="lmdiag",
        help="data set: a built directory, a Hub id, a file of your own rows or of an extended set "
        "(ROLE-1500.txt), or demo (default: the directory lmdiag, or the published items, which "
        "are built on first use)",
    )  # fmt: skip
    add_data_revision(group)
    group.add_argument(
        "--tasks", nargs="+", metavar="T",
        help="configs of the data set to run (default: the three diagnostics)",
    )  # fmt: skip
    group.add_argument(
        "--perturb", nargs="+", default=["none"], metavar="P", choices=("none", "all", *names()),
        help=f"none, all, or any of {', '.join(names())} (default: none)",
    )  # fmt: skip
    group.add_argument(
        "--shuffles", type=whole_number, default=100, metavar="N",
        help="number of shuffles of shuf and shuf_trunc (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=int, default=0,
        help="random seed of the shuffles and of the sample (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--limit", type=whole_number, metavar="N",
        help="a sample of N rows of each task, even over its break-downs",
    )  # fmt: skip
    group.add_argument(
        "--verbs", dest="verb_file", metavar="FILE",
        help="csv file of singular,plural verb forms for EW and MW (default: the data set's)",
    )  # fmt: skip


def add_running(group: argparse._ArgumentGroup) -> None:
    """Declares how a run proceeds, and where its results go."""
    add_asking(group)
    group.add_argument(
        "--output", type=Path, default=Path("results"), metavar="DIR",
        help="directory for results (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--overwrite", action="store_true",
        help="discard an earlier run of the same model and protocol",
    )  # fmt: skip
    add_json(group)


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted run."""
    without = " without --overwrite" if args.overwrite else ""
    return f"answers saved so far are kept; run the same command again{without} to continue"


def main(args: argparse.Namespace) -> int:
    """Runs every model at every revision; one that fails does not stop the rest."""
    from lmdiag.runs.processes import Processes

    if args.instruction is not None and not args.chat:
        raise BadInput("--instruction is the user's turn of a chat: add --chat")
    options = LoadOptions(**fields_of(LoadOptions, args) | {"revision": None})
    with Processes(together=args.tp) as processes:
        with processes.shared_errors():
            models = requested_models(args)
        models = processes.share(models)  # what the Hub lists may change
        options = replace(options, device=processes.device)
        with processes.shared_errors():
            inputs = load_asked(args, options)
        runs, failures = _run_all(models, args, inputs, options, processes)
        _show_all(runs, args)
    return _report_failures(failures, len(models)) if processes.first else 0


def _run_all(
    models: Sequence[RequestedModel],
    args: argparse.Namespace,
    inputs: Inputs,
    options: LoadOptions,
    processes: Processes,
) -> tuple[list[Run], list[tuple[RequestedModel, str]]]:
    """Runs each model; returns the runs (on the first process), and what failed with its reason.

    Raises:
        BadInput: the only model fails.
    """
    runs, failures = [], []
    for model in models:
        try:
            if run := _run(model, args, inputs, options, processes):
                runs.append(run)
        except BadInput as error:
            if len(models) == 1:
                raise
            # Not the error itself, which holds on to what was loaded of the model.
            failures.append((model, str(error)))
            if processes.first:
                say(f"lmdiag: {model} failed: {error}")
    return runs, failures


def _show_all(runs: Sequence[Run], args: argparse.Namespace) -> None:
    """Prints the figures of several models side by side, or all results as JSON."""
    if runs and args.json:
        documents = [run.results.to_json() for run in runs]
        print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1))
    elif len(runs) > 1:
        from lmdiag.report.formats.terminal import print_overview

        print_overview([run.results for run in runs])


def _report_failures(failures: Sequence[tuple[RequestedModel, str]], n_models: int) -> int:
    """Names the models that failed; returns the exit code."""
    if not failures:
        return 0
    sys.stdout.flush()  # the tables come first
    print(f"\n{len(failures)} of {n_models} runs failed:", file=sys.stderr)
    for model, reason in failures:
        say(f"  {model}: {reason}")
    return 1


def load_asked(args: argparse.Namespace, load_options: LoadOptions) -> Inputs:
    """Loads what is asked of every model."""
    from lmdiag import stimuli
    from lmdiag.runs.inputs import load_inputs

    tasks = args.tasks
    if tasks is None:
        known = stimuli.tasks(args.data, revision=args.data_revision)
        tasks = [task for task in known if task in DIAGNOSTICS] or known
    if "none" in args.perturb and len(args.perturb) > 1:
        raise BadInput("--perturb none cannot be combined with other perturbations: leave it out")
    perturb = tuple(
        name
        for name in names()
        if name in args.perturb or ("all" in args.perturb and {*tasks_with(name)} & {*tasks})
    )
    options = fields_of(Protocol, args) | {"tasks": tuple(dict.fromkeys(tasks)), "perturb": perturb}
    if args.chat:
        options["instruction"] = load_options.instruction
    protocol = scored(args, Protocol(**options))
    return load_inputs(args.data, protocol, revision=args.data_revision, verbs=args.verb_file)


def _run(
    model: RequestedModel,
    args: argparse.Namespace,
    inputs: Inputs,
    options: LoadOptions,
    processes: Processes,
) -> Run | None:
    """Runs one model, writes its report and prints its tables; None but on the first process."""
    from lmdiag.runs.run import run_model

    options = replace(options, revision=model.revision)
    run = run_model(model.id, options, inputs, run_options(args, model), processes)
    if run is not None:
        _show(run, as_tables=not args.json)
    return run


def run_options(args: argparse.Namespace, model: RequestedModel) -> RunOptions:
    """Returns how the run of a model is made."""
    from lmdiag.runs.run import RunOptions

    return RunOptions(**fields_of(RunOptions, args) | {"name": model.name})


def _show(run: Run, *, as_tables: bool) -> None:
    from lmdiag.report.formats.terminal import print_results
    from lmdiag.results import saved_files
    from lmdiag.text import visible

    write_report(run)
    if as_tables:
        print_results(run.results)
        print(f"\nSaved in {visible(str(run.path))}: {', '.join(saved_files(run.path))}")
        return
    for task, rows in run.stimuli.items():
        if not rows.compared:  # the tables say it, too
            say(f"lmdiag: nothing was compared in {task}: no columns good and contrast")


def write_report(run: Run) -> None:
    """Writes the report of a finished run if it is not there."""
    from lmdiag.results import REPORT
    from lmdiag.writing import write_atomically

    if not (run.path / REPORT).exists():
        from lmdiag.report.html import render

        write_atomically(run.path / REPORT, render(run).encode())
