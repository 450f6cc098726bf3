"""`lmdiag run`, and `accelerate launch eval/run.py`: query models and score their answers."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmdiag.cli import options
from lmdiag.cli.exits import say
from lmdiag.models.loading.options import Loading, LoadOptions, Serving
from lmdiag.perturb import chosen, names
from lmdiag.protocol import Asking, Protocol, asking_of
from lmdiag.types import DIAGNOSTICS, BadInput

if TYPE_CHECKING:
    from lmdiag.report.designs import Design
    from lmdiag.results import Run
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.run import RunOptions


@dataclass(frozen=True, kw_only=True)
class Data:
    """What is asked of every model."""

    data: str = "lmdiag"
    """data set: a built directory, a Hub id, a file of your own rows or of an extended set
    (ROLE-1500.txt), or demo (default: the directory lmdiag, or the published items, which are built
    on first use)"""
    data_revision: str | None = None
    """branch, tag or commit of the Hub data set"""
    tasks: tuple[str, ...] = ()
    """configs of the data set to run (default: the three diagnostics)"""
    perturb: Annotated[
        tuple[str, ...], Parameter(help=f"none (default), all, or any of {', '.join(names())}")
    ] = ()
    shuffles: options.Count = 100
    """number of shuffles of shuf and shuf_trunc"""
    seed: options.Seed = 0
    """random seed of the shuffles and of the sample"""
    limit: options.Count | None = None
    """a sample of N rows of each task, even over its break-downs"""
    verbs: str | None = None
    """csv file of singular,plural verb forms for EW and MW (default: the data set's)"""

    def load(self, asking: Asking, scoring: options.Scoring) -> Inputs:
        """Loads the rows in every setting, with the protocol.

        Raises:
            BadInput: see `load_inputs`; or a perturbation is not known.
        """
        from lmdiag import stimuli
        from lmdiag.runs.inputs import load_inputs

        tasks, revision = self.tasks, self.data_revision
        if not tasks:
            known = stimuli.tasks(self.data, revision=revision)
            tasks = tuple(task for task in known if task in DIAGNOSTICS) or tuple(known)
        protocol = Protocol(
            tasks=tuple(dict.fromkeys(tasks)),
            perturb=chosen(self.perturb, tasks),
            shuffles=self.shuffles,
            seed=self.seed,
            limit=self.limit,
            **asking_of(asking),
        )
        return load_inputs(self.data, scoring.of(protocol), revision=revision, verbs=self.verbs)


@dataclass(frozen=True, kw_only=True)
class Running:
    """How runs proceed, and where their results go."""

    batching: Annotated[options.Batching, options.RECORD] = options.Batching()
    tp: bool = False
    """split each layer of a model over the processes (tensor parallelism)"""
    output: Path = Path("results")
    """directory for results"""
    overwrite: bool = False
    """discard an earlier run of the same model and protocol"""
    json: options.Json = False

    def of(self, name: str | None) -> RunOptions:
        """Returns how the run of a model of this name is made."""
        from lmdiag.runs.run import RunOptions

        return RunOptions(self.output, name, overwrite=self.overwrite, **vars(self.batching))


def main(
    *,
    models: Annotated[options.Models, options.section("Models")] = options.Models(),
    data: Annotated[Data, options.section("Data")] = Data(),
    scoring: Annotated[options.Scoring, options.section("Scoring")] = options.Scoring(),
    asking: Annotated[Asking, options.section("How models are asked")] = Asking(),
    loading: Annotated[Loading, options.section("Loading the model")] = Loading(),
    serving: Annotated[Serving, options.section("A model behind a server")] = Serving(),
    running: Annotated[Running, options.section("Running")] = Running(),
) -> int:
    """Runs every model at every revision; one that fails does not stop the rest.

    Raises:
        BadInput: the data cannot be used, or the only model fails.
    """
    from lmdiag.runs.processes import Processes
    from lmdiag.runs.run import run_model

    asking = replace(asking, prompt=options.text_or_file(asking.prompt))
    load_options = LoadOptions(tp=running.tp, **vars(asking), **vars(loading), **vars(serving))
    runs: list[Run] = []  # on the first process
    failures: list[str] = []
    with Processes(together=running.tp) as processes:  # imports torch if there are several
        with processes.shared_errors():
            requested = models.requested(running.output)
            inputs = data.load(asking, scoring)
        requested = processes.share(requested)  # what the Hub lists may change
        for model in requested:
            how = replace(load_options, revision=model.revision, device=processes.device)
            try:
                if run := run_model(model.id, how, inputs, running.of(model.name), processes):
                    _finish(run, as_json=running.json)
                    runs.append(run)
            except BadInput as error:
                if len(requested) == 1:
                    raise
                # Not the error itself, which holds on to what was loaded of the model.
                failures.append(f"  {model}: {error}")
                if processes.first:
                    say(f"lmdiag: {model} failed: {error}")
    if runs and running.json:
        documents = [run.results.to_json() for run in runs]
        print(json.dumps(documents if len(runs) > 1 else documents[0], indent=1))
    if len(runs) > 1:
        _compare(runs, running.output, as_json=running.json)
    if not failures or not processes.first:
        return 0
    sys.stdout.flush()  # the tables come first
    print(f"\n{len(failures)} of {len(requested)} runs failed:", file=sys.stderr)
    for line in failures:
        say(line)
    return 1


def write_report(run: Run, designs: Sequence[Design] | None = None) -> None:
    """Writes the report of a finished run if it is not there; `designs` as for `render`."""
    from lmdiag.files import write_atomically
    from lmdiag.report.html import render
    from lmdiag.results import REPORT

    if not (run.path / REPORT).exists():
        write_atomically(run.path / REPORT, render(run, designs=designs).encode())


def _finish(run: Run, *, as_json: bool) -> None:
    """Writes the report of a run and prints its tables."""
    from lmdiag.report.designs import designs_of
    from lmdiag.report.terminal import print_results
    from lmdiag.results import PREDICTIONS, REPORT, RESULTS
    from lmdiag.text import visible

    designs = designs_of([run])
    write_report(run, designs)
    if not as_json:
        print_results(run.results, designs=designs, stimuli=run.stimuli)
        saved = [name for name in (RESULTS, PREDICTIONS, REPORT) if (run.path / name).exists()]
        print(f"\nSaved in {visible(str(run.path))}: {', '.join(saved)}")
        return
    for task, rows in run.stimuli.items():
        if not rows.compared:  # the tables say it, too
            say(f"lmdiag: nothing was compared in {task}: no columns good and contrast")


def _compare(runs: Sequence[Run], output: Path, *, as_json: bool) -> None:
    """Writes the page that compares the models of a command, and prints their figures."""
    from lmdiag.files import write_atomically
    from lmdiag.report.html import render
    from lmdiag.report.terminal import print_overview
    from lmdiag.text import visible

    page = output / "comparison.html"
    try:
        write_atomically(page, render(runs).encode())
    except BadInput as error:  # an option that has no effect on one of them: they differ in it
        say(f"lmdiag: no comparison was written: {error}")
        return
    if not as_json:
        print_overview([run.results for run in runs])
        first, second = (visible(shlex.quote(str(run.path))) for run in runs[:2])
        print(f"\nComparison: open {visible(str(page))} in a browser")
        print(f"Next: lmdiag compare {first} {second} tests two models on all measures")
