"""`lmdiag score`: computes the measures from predictions of any program, or of a run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.cli.run import positive, probability
from lmdiag.schema import BadInput, Protocol
from lmdiag.suggestions import suggest

if TYPE_CHECKING:
    from lmdiag.schema import Kind, Predictions
    from lmdiag.stimuli import Stimuli


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--task", required=True, metavar="T", help="config of the data set")
    parser.add_argument(
        "--predictions",
        required=True,
        type=Path,
        metavar="FILE",
        help="JSON lines or Parquet file with id, top_words and log_prob; a run directory; or "
        "modelpreds-* and modeltgtprobs-* files of the original code (a file or their folder)",
    )
    parser.add_argument(
        "--data",
        help="data set: a built directory, a Hub id or a file of your own (default: lmdiag; for a "
        "run, the data it was made on)",
    )
    parser.add_argument(
        "--data-revision", metavar="R", help="branch, tag or commit of the Hub data set"
    )
    parser.add_argument(
        "--k", type=positive, nargs="+", help="ranks k of accuracy@k (default: 1 5)"
    )
    parser.add_argument(
        "--threshold",
        type=probability,
        metavar="P",
        help="probability difference P of sensitivity@P (default: 0.01)",
    )
    case = parser.add_mutually_exclusive_group()
    case.add_argument(
        "--cased",
        action="store_true",
        default=None,
        help="compare words with the expected words exactly (default; for a run, its own rule)",
    )
    case.add_argument(
        "--uncased",
        action="store_false",
        dest="cased",
        help="ignore letter case when comparing words",
    )
    parser.add_argument(
        "--setting",
        default="none",
        metavar="P",
        help="perturbation of the run to score (default: none)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, nothing else")


def main(args: argparse.Namespace) -> int:
    """Scores and prints; what cannot be computed is said on standard error."""
    from lmdiag import results, summary
    from lmdiag.cli.exits import say
    from lmdiag.original import is_original

    is_run = args.predictions.is_dir() and not is_original(args.predictions)
    asked = of_a_run(args) if is_run else of_a_file(args)
    found = summary.evaluate(asked.stimuli, asked.runs, asked.protocol, asked.cased, asked.kind)
    for note in summary.not_computed(asked.stimuli, asked.runs[0], asked.protocol):
        say(f"lmdiag: not computed: {note}")
    signature = results.signature(asked.protocol, asked.stimuli.fingerprint)
    found = replace(found, signature=signature)
    if args.json:
        document = {"task": args.task, **found.to_json()}
        print(json.dumps(document, allow_nan=False))
    else:
        from lmdiag.report.terminal import print_setting

        print_setting(args.task, args.setting, found)
    return 0


class Asked(NamedTuple):
    """What is scored, and how."""

    stimuli: Stimuli
    runs: Sequence[Predictions]
    protocol: Protocol
    cased: bool
    kind: Kind


def of_a_file(args: argparse.Namespace) -> Asked:
    """Returns the predictions of files; nothing is known of their model but what is said."""
    from lmdiag import stimuli
    from lmdiag.elsewhere import read_elsewhere

    rows = stimuli.load(args.data or "lmdiag", args.task, revision=args.data_revision)
    runs = read_elsewhere(args.predictions, rows, args.setting)
    protocol = knobs(args, Protocol(tasks=(args.task,)))
    return Asked(rows, runs, protocol, args.cased is not False, "masked")


def of_a_run(args: argparse.Namespace) -> Asked:
    """Returns the predictions of a run directory, which knows its model and protocol.

    Raises:
        BadInput: no finished run, other data, or a task, setting or rank that it does not have.
    """
    from lmdiag.results import load_run

    run = load_run(args.predictions, args.data)
    settings = run.results["tasks"].get(args.task, {})
    if args.setting not in settings:
        there = ", ".join(f"{task} ({' '.join(of)})" for task, of in run.results["tasks"].items())
        tasks = run.results["tasks"]
        close = suggest(args.setting, settings) if settings else suggest(args.task, tasks)
        wanted = f"{args.task} in setting {args.setting}{close}"
        raise BadInput(f"{args.predictions} has no {wanted}: choose from {there}")
    protocol = Protocol.from_json(run.results["protocol"])
    asked = knobs(args, protocol)
    if max(asked.k) > protocol.top:
        raise BadInput(
            f"--k {max(asked.k)}: {args.predictions} keeps the first {protocol.top} words only; "
            f"run the model again with --k {max(asked.k)}"
        )
    parts = sorted(run.predictions[args.task].items())
    runs = [part for (name, _), part in parts if name == args.setting]
    model = run.results["model"]
    cased = model["cased"] if args.cased is None else args.cased
    return Asked(run.stimuli[args.task], runs, asked, cased, model["kind"])


def knobs(args: argparse.Namespace, protocol: Protocol) -> Protocol:
    """Returns the protocol with the ranks and the threshold that were asked for."""
    k = tuple(sorted(set(args.k))) if args.k else protocol.k
    threshold = protocol.threshold if args.threshold is None else args.threshold
    return replace(protocol, k=k, threshold=threshold)
