"""`lmdiag multiverse`: models on the same rows by every combination of knobs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.cli.parser import add_resamples, add_scoring, fields_of, text_or_file
from lmdiag.cli.requested import requested_models
from lmdiag.cli.run import (
    add_loading_and_splitting,
    add_models_and_data,
    add_running,
    load_asked,
    run_options,
    stopped,
    write_report,
)
from lmdiag.models.loading.options import INSTRUCTION, LoadOptions
from lmdiag.schema import KNOBS, BadInput

if TYPE_CHECKING:
    from lmdiag.results.multiverse import Multiverse, Questions
    from lmdiag.runs.multiverse import FinishedMember, OpenKnobs

__all__ = ["add_arguments", "main", "stopped"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments: those of `lmdiag run`, with knobs in place of their options."""
    add_models_and_data(parser.add_argument_group("models and data"))
    _add_knobs(parser.add_argument_group("knobs"))
    scoring = parser.add_argument_group("scoring")
    add_scoring(scoring)
    add_resamples(scoring)
    add_loading_and_splitting(parser.add_argument_group("loading the model"))
    add_running(parser.add_argument_group("running"))
    # Fields of `Protocol` that vary here have their defaults in what all combinations share.
    parser.set_defaults(chat=False, instruction=None)


def _add_knobs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--knobs", type=lambda text: tuple(text.split(",")), default=tuple(KNOBS), metavar="K,...",
        help=f"what varies (default: all that apply of {', '.join(KNOBS)})",
    )  # fmt: skip
    group.add_argument(
        "--prompt", dest="prompts", type=text_or_file, nargs="+", default=[], metavar="TEXT|FILE",
        help="texts around every context, with {context} in them, beside none; models that are not "
        "causal are asked without",
    )  # fmt: skip
    group.add_argument(
        "--chat", dest="with_chat", action="store_true",
        help="ask in the assistant's turn of the model's chat template, too",
    )  # fmt: skip
    group.add_argument(
        "--instruction", dest="turn", metavar="TEXT",
        help=f"the user's turn before it (default: {INSTRUCTION!r})",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Runs every model by every combination, then writes and shows the figures of all."""
    from lmdiag.runs.multiverse import asks_of, run_members
    from lmdiag.runs.processes import Processes

    models = requested_models(args)
    with Processes(together=args.tp) as processes:
        with processes.shared_errors():
            given = {"revision": None, "device": processes.device}
            options = LoadOptions(**fields_of(LoadOptions, args) | given)
            knobs = _knobs(args)
            inputs = load_asked(args, LoadOptions())
            knobs.check(asks_of(inputs))
        results = [
            run_members(
                model.id,
                replace(options, revision=model.revision),
                inputs,
                knobs,
                run_options(args, model),
                processes,
                alone=len(models) == 1,
            )
            for model in models
        ]
        if processes.first:
            _finish(results, args)
    return 0


def _knobs(args: argparse.Namespace) -> OpenKnobs:
    from lmdiag.runs.multiverse import OpenKnobs

    if args.turn is not None and not args.with_chat:
        raise BadInput("--instruction is the user's turn of a chat: give --chat, too")
    instruction = (args.turn or INSTRUCTION) if args.with_chat else None
    # These refuse a prompt or an instruction that cannot be used, before anything is loaded.
    for prompt in args.prompts:
        LoadOptions(prompt=prompt)
    LoadOptions(instruction=instruction or "")
    return OpenKnobs(args.knobs, tuple(dict.fromkeys(args.prompts)), instruction)


def _finish(
    results: Sequence[tuple[list[FinishedMember], Questions]], args: argparse.Namespace
) -> None:
    """Writes `multiverse.json`, its page and the reports of all runs; prints the tables."""
    from lmdiag.multiverse import RunOfMember, multiverse_of

    runs = [
        RunOfMember(number, member.choices, member.run)
        for number, (members, _) in enumerate(results)
        for member in members
        if member.run is not None
    ]
    for member in runs:
        write_report(member.run)
    first, *others = (questions for _, questions in results)
    multiverse = multiverse_of(runs, sum(others, first), args.output, resamples=args.resamples)
    multiverse.write(args.output)
    _write_page(multiverse, args.output)
    if args.json:
        print(json.dumps(multiverse.to_json(), indent=1, allow_nan=False))
    else:
        _print_tables(multiverse, args.output)


def _write_page(multiverse: Multiverse, folder: Path) -> None:
    """Writes the page of a multiverse beside its `multiverse.json`."""
    from lmdiag.report.multiverse import render
    from lmdiag.results.multiverse import MULTIVERSE_PAGE
    from lmdiag.writing import clear_drafts, write_atomically

    clear_drafts(folder)
    write_atomically(folder / MULTIVERSE_PAGE, render(multiverse).encode())


def _print_tables(multiverse: Multiverse, folder: Path) -> None:
    from rich.console import Console

    from lmdiag.report.formats.terminal import print_multiverse
    from lmdiag.results.multiverse import MULTIVERSE, MULTIVERSE_PAGE
    from lmdiag.text import visible

    console = Console(highlight=False)
    print_multiverse(multiverse, console)
    saved = f"\nSaved in {visible(str(folder))}: {MULTIVERSE}, {MULTIVERSE_PAGE}"
    console.print(saved, markup=False, soft_wrap=True)
