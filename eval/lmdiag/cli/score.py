"""`lmdiag score`: computes the measures from predictions of any program, or of a run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.cli.exits import say
from lmdiag.cli.parser import add_data_revision, add_json, add_scoring, scored
from lmdiag.schema import BadInput, Protocol
from lmdiag.suggestions import suggest

if TYPE_CHECKING:
    from lmdiag.schema import Kind, Predictions
    from lmdiag.stimuli import Stimuli


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--task", required=True, metavar="T", help="config of the data set")
    parser.add_argument(
        "--predictions", required=True, type=Path, metavar="FILE",
        help="JSON lines or Parquet file with id, top_words and log_prob; a run directory; or "
        "modelpreds-* and modeltgtprobs-* files of the original code (a file or their folder)",
    )  # fmt: skip
    parser.add_argument(
        "--data",
        help="data set: a built directory, a Hub id or a file of your own (default: lmdiag; for a "
        "run, the data it was made on)",
    )
    add_data_revision(parser)
    add_scoring(parser)
    case = parser.add_mutually_exclusive_group()
    case.add_argument(
        "--cased", action="store_true", default=None,
        help="compare words with the expected words exactly (default; for a run, its own rule)",
    )  # fmt: skip
    case.add_argument(
        "--uncased", action="store_false", dest="cased",
        help="ignore letter case when comparing words",
    )  # fmt: skip
    parser.add_argument(
        "--setting", default="none", metavar="P",
        help="perturbation of the run to score (default: none)",
    )  # fmt: skip
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Scores and prints; what cannot be computed is said on standard error."""
    from lmdiag import evaluation, results
    from lmdiag.report.formats.terminal import print_setting
    from lmdiag.results.original_code import is_original

    is_run = args.predictions.is_dir() and not is_original(args.predictions)
    given = _of_a_run(args) if is_run else _of_a_file(args)
    measured = evaluation.evaluate(*given)
    signature = results.signature(given.protocol, given.stimuli.fingerprint)
    measured = replace(measured, signature=signature)
    for note in evaluation.not_computed(given.stimuli, given.runs[0], given.protocol):
        say(f"lmdiag: not computed: {note}")
    if args.json:
        print(json.dumps({"task": args.task, **measured.to_json()}, allow_nan=False))
    else:
        print_setting(args.task, args.setting, measured, form=given.stimuli.form)
    return 0


class ScoreInputs(NamedTuple):
    """What is scored, and how."""

    stimuli: Stimuli
    runs: Sequence[Predictions]
    protocol: Protocol
    cased: bool
    kind: Kind


def _of_a_file(args: argparse.Namespace) -> ScoreInputs:
    """Returns the predictions of files; of their model only the options are known."""
    from lmdiag import stimuli
    from lmdiag.results.external import read_external

    rows = stimuli.load(args.data or "lmdiag", args.task, revision=args.data_revision)
    runs = read_external(args.predictions, rows, args.setting)
    protocol = scored(args, Protocol(tasks=(args.task,)))
    return ScoreInputs(rows, runs, protocol, args.cased is not False, "masked")


def _of_a_run(args: argparse.Namespace) -> ScoreInputs:
    """Returns the predictions of a run directory, which says its model and protocol.

    Raises:
        BadInput: no finished run, other data, or a task, setting or rank that it does not have.
    """
    from lmdiag.results import load_run

    run = load_run(args.predictions, args.data)
    tasks, protocol, model = run.results.tasks, run.results.protocol, run.results.model
    settings = tasks.get(args.task, {})
    if args.setting not in settings:
        close = suggest(args.setting, settings) if settings else suggest(args.task, tasks)
        known = ", ".join(f"{task} ({' '.join(names)})" for task, names in tasks.items())
        raise BadInput(
            f"{args.predictions} has no {args.task} in setting {args.setting}{close}: choose from "
            f"{known}"
        )
    asked = scored(args, protocol)
    if (k := max(asked.k)) > protocol.top:
        raise BadInput(
            f"--k {k}: {args.predictions} keeps the first {protocol.top} words only; "
            f"run the model again with --k {k}"
        )
    parts = sorted(run.predictions[args.task].items())
    runs = [part for (name, _), part in parts if name == args.setting]
    cased = model.cased if args.cased is None else args.cased
    return ScoreInputs(run.stimuli[args.task], runs, asked, cased, model.kind)
