"""`lmdiag multiverse`: models on the same rows by every combination of knobs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmdiag.cli.options import RECORD, Count, Models, Names, Scoring, section, text_or_file
from lmdiag.cli.run import Data, Running, write_report
from lmdiag.models.loading.options import Loading, LoadOptions
from lmdiag.protocol import APPLICABLE, KNOBS, Asking
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.multiverse import MemberRuns


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

    def framings(self, asks: str) -> list[dict[str, Any]]:
        """Returns the fields of `LoadOptions` for each value of the knob `prompt`, none first.

        Args:
            asks: what the rows ask, see `Diagnostic.asks`.

        Raises:
            BadInput: a name is not a knob or does not apply to the rows; a prompt or an instruction
                cannot be used, or is given although the prompt does not vary.
        """
        known = dict.fromkeys(k for (_, of), ks in APPLICABLE.items() if of == asks for k in ks)
        rows = "whole sentences" if asks == "sentence" else "rows with a blank"
        for name in self.knobs:
            if name not in KNOBS:
                close = suggest(name, KNOBS)
                raise BadInput(f"--knobs {name}{close}: choose from {', '.join(KNOBS)}")
            if name not in known and self.knobs != tuple(KNOBS):
                choice = ", ".join(known)
                raise BadInput(f"--knobs {name} does not apply to {rows}: choose from {choice}")
        texts = dict.fromkeys(map(text_or_file, self.prompt))
        framings: list[dict[str, Any]] = [{"prompt": text} for text in texts]
        chat = {"chat": self.chat, "instruction": self.instruction}
        for framing in (*framings, chat):
            LoadOptions(**framing)
        if self.chat:
            framings.append(chat)
        given = "--prompt" if texts else "--chat"
        if framings and asks == "sentence":
            raise BadInput(f"{given} is for rows with a blank: leave it out")
        if framings and "prompt" not in self.knobs:
            raise BadInput(f"{given} is the knob prompt: leave it out, or add prompt to --knobs")
        return [{"prompt": ""}, *framings]


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

    running, knobs = options.running, options.knobs
    with Processes(together=running.tp) as processes:
        with processes.shared_errors():
            models = options.models.requested(running.output)
            load_options = LoadOptions(
                tp=running.tp, device=processes.device, **vars(options.loading)
            )
            inputs = options.data.load(Asking(), options.scoring)
            framings = knobs.framings(inputs.asks)
        members = []
        for model in models:
            of_model = replace(load_options, revision=model.revision), inputs, knobs.knobs, framings
            members.append(run_members(model.id, *of_model, running.of(model.name), processes))
        if processes.first:
            _finish(members, options)
    return 0


def _finish(models: list[MemberRuns], options: Options) -> None:
    """Writes `multiverse.json`, its page and the reports of all runs; prints the tables."""
    from lmdiag.files import clear_drafts, write_atomically
    from lmdiag.multiverse import MULTIVERSE, MULTIVERSE_PAGE, multiverse_of
    from lmdiag.report.labels import run_labels
    from lmdiag.report.multiverse import render
    from lmdiag.report.tables import headlines, sources_of
    from lmdiag.report.terminal import output_console, print_multiverse
    from lmdiag.text import visible

    output = options.running.output
    finished = [[run for _, run in runs if run] for runs, *_ in models]
    for run in (run for runs in finished for run in runs):
        write_report(run)
    labels = run_labels([runs[0].results for runs in finished])
    sources = sources_of([run.results for runs in finished for run in runs])
    shown = [x for task in sources[0].results.data.tasks for x in headlines(task, sources)]
    multiverse = multiverse_of(
        dict(zip(labels, models, strict=True)),
        {headline.place: headline.label for headline in shown},
        output,
        resamples=options.resamples,
    )
    text = json.dumps(multiverse.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    clear_drafts(output)
    write_atomically(output / MULTIVERSE, text.encode())
    write_atomically(output / MULTIVERSE_PAGE, render(multiverse).encode())
    if options.running.json:
        print(json.dumps(json.loads(text), indent=1))
        return
    console = output_console()
    print_multiverse(multiverse, console)
    saved = f"\nSaved in {visible(str(output))}: {MULTIVERSE}, {MULTIVERSE_PAGE}"
    console.print(saved, markup=False, soft_wrap=True)
