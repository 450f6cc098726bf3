"""`lmdiag multiverse`: models on the same rows by every combination of knobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmdiag.cli.options import RECORD, Count, Names, Scoring, section, text_or_file
from lmdiag.cli.requested import Models
from lmdiag.cli.run import STOPPED as STOPPED
from lmdiag.cli.run import Data, Running, write_report
from lmdiag.models.loading.options import Loading, LoadOptions
from lmdiag.protocol import KNOBS, Asking

if TYPE_CHECKING:
    from lmdiag.runs.multiverse import Members, OpenKnobs


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """What varies."""

    knobs: Annotated[
        Names, Parameter(help=f"what varies (default: all that apply of {', '.join(KNOBS)})")
    ] = tuple(KNOBS)
    prompt: tuple[str, ...] = ()
    """texts around every context, with {context} in them, or files with such texts, beside none;
    models that are not causal are asked without"""
    chat: bool = False
    """ask in the assistant's turn of the model's chat template, too"""
    instruction: str = ""
    """with chat, the user's turn before it (default: Complete the sentence.)"""

    def open(self) -> OpenKnobs:
        """Returns the knobs; refuses a prompt or an instruction before anything is loaded."""
        from lmdiag.runs.multiverse import OpenKnobs

        prompts = tuple(dict.fromkeys(map(text_or_file, self.prompt)))
        for prompt in prompts:
            LoadOptions(prompt=prompt)
        asked = LoadOptions(chat=self.chat, instruction=self.instruction)
        return OpenKnobs(self.knobs, prompts, asked.instruction if self.chat else None)


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Those of `lmdiag run`, with knobs in place of their options."""

    models: Annotated[Models, section("Models")] = Models()
    data: Annotated[Data, section("Data")] = Data()
    knobs: Annotated[Knobs, section("Knobs")] = Knobs()
    scoring: Annotated[Scoring, section("Scoring")] = Scoring()
    resamples: Count = 10_000
    """number of bootstrap resamples, where models are compared"""
    loading: Annotated[Loading, section("Loading the model")] = Loading()
    running: Annotated[Running, section("Running")] = Running()


def main(options: Options = Options()) -> int:
    """Runs every model by every combination, then writes and shows the figures of all."""
    from lmdiag.runs.multiverse import run_members
    from lmdiag.runs.processes import Processes

    with Processes(together=options.running.tp) as processes:
        with processes.shared_errors():
            models = options.models.requested(options.running.output)
            load_options = LoadOptions(
                tp=options.running.tp, device=processes.device, **vars(options.loading)
            )
            knobs = options.knobs.open()
            inputs = options.data.load(Asking(), options.scoring)
            knobs.check(inputs.asks)
        results = [
            run_members(
                model.id,
                replace(load_options, revision=model.revision),
                inputs,
                knobs,
                options.running.of(model.name),
                processes,
                alone=len(models) == 1,
            )
            for model in models
        ]
        if processes.first:
            _finish(results, options)
    return 0


def _finish(models: Sequence[Members], options: Options) -> None:
    """Writes `multiverse.json`, its page and the reports of all runs; prints the tables."""
    from lmdiag.files import clear_drafts, write_atomically
    from lmdiag.multiverse import RunOfMember, multiverse_of
    from lmdiag.report.formats.terminal import output_console, print_multiverse
    from lmdiag.report.multiverse import render
    from lmdiag.results.multiverse import MULTIVERSE, MULTIVERSE_PAGE
    from lmdiag.text import visible

    runs = [
        RunOfMember(number, choices, run)
        for number, members in enumerate(models)
        for choices, run in members.runs
        if run is not None
    ]
    for member in runs:
        write_report(member.run)
    output = options.running.output
    multiverse = multiverse_of(
        runs,
        output,
        combinations=sum(members.combinations for members in models),
        questions=sum(members.questions for members in models),
        asked=sum(members.asked for members in models),
        resamples=options.resamples,
    )
    multiverse.write(output)
    clear_drafts(output)
    write_atomically(output / MULTIVERSE_PAGE, render(multiverse).encode())
    if options.running.json:
        print(json.dumps(multiverse.to_json(), indent=1, allow_nan=False))
        return
    console = output_console()
    print_multiverse(multiverse, console)
    saved = f"\nSaved in {visible(str(output))}: {MULTIVERSE}, {MULTIVERSE_PAGE}"
    console.print(saved, markup=False, soft_wrap=True)
