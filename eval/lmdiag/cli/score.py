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
    from lmdiag.results import SettingResults
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
        "--measures", nargs="+", metavar="NAME",
        help="measures to compute, e.g. accuracy or sensitivity@0.01; each must be possible "
        "(default: all that are possible)",
    )  # fmt: skip
    parser.add_argument(
        "--setting", default="none", metavar="P",
        help="perturbation of the run to score (default: none)",
    )  # fmt: skip
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Scores and prints; what cannot be computed is said on standard error.

    Raises:
        BadInput: the predictions cannot be used, or do not allow what was asked for.
    """
    from lmdiag import evaluation, results
    from lmdiag.report.formats.terminal import print_setting
    from lmdiag.results.original_code import is_original

    is_run = args.predictions.is_dir() and not is_original(args.predictions)
    given = _of_a_run(args) if is_run else _of_a_file(args)
    measured = evaluation.evaluate(
        given.stimuli, given.runs, given.protocol, given.cased, given.kind
    )
    signature = results.signature(given.protocol, given.stimuli.fingerprint)
    measured, remarks = _restricted(replace(measured, signature=signature), given, args)
    for remark in (*given.notes, *remarks):
        say(f"lmdiag: {remark}")
    if args.json:
        print(json.dumps({"task": args.task, **measured.to_json()}, allow_nan=False))
    else:
        print_setting(args.task, args.setting, measured, form=given.stimuli.form)
    return 0


class ScoreInputs(NamedTuple):
    """What is scored, and how; `missing` and `notes` as in `External`."""

    stimuli: Stimuli
    runs: Sequence[Predictions]
    protocol: Protocol
    cased: bool
    kind: Kind
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()


def _restricted(
    measured: SettingResults, given: ScoreInputs, args: argparse.Namespace
) -> tuple[SettingResults, list[str]]:
    """Returns the figures that are wanted and can be computed, and lines on the others.

    Raises:
        BadInput: a measure that was asked for cannot be computed, or nothing can.
    """
    from lmdiag import evaluation
    from lmdiag.results.predictions import ids

    reasons = evaluation.not_computed(given.stimuli, given.runs[0], given.protocol)
    needing: dict[str, bool] = {}
    if given.missing or args.measures:
        needing = evaluation.measures_needing(
            given.stimuli, given.missing, given.protocol, given.kind
        )
    incomplete = [name for name, needs in needing.items() if needs]
    if incomplete:
        absent = f"{ids(given.missing)} missing"
        reasons.insert(0, f"{', '.join(incomplete)}: {absent}, and they need these rows")
    wanted = list(dict.fromkeys([*needing, *measured.measures]))
    if args.measures:
        wanted = evaluation.chosen_measures(args.measures, wanted)
    computed = {
        name: measure
        for name, measure in measured.measures.items()
        if name in wanted and name not in incomplete
    }
    lacking = [name for name in wanted if name not in computed]
    predicted = [name for name in computed if not name.startswith(evaluation.HUMAN_MEASURES)]
    if not predicted or (args.measures and lacking):
        what = f"{', '.join(lacking)} cannot" if args.measures else "no measure can"
        raise BadInput(f"{args.predictions}: {what} be computed: {'; '.join(reasons)}")
    absent_rows = set(given.missing)
    return replace(
        measured,
        measures=computed,
        unscorable=[word for word in measured.unscorable if word.id not in absent_rows],
    ), [f"not computed: {reason}" for reason in ([] if args.measures else reasons)]


def _of_a_file(args: argparse.Namespace) -> ScoreInputs:
    """Returns the predictions of files; of their model only the options are known."""
    from lmdiag import stimuli
    from lmdiag.results.external import read_external

    rows = stimuli.load(args.data or "lmdiag", args.task, revision=args.data_revision)
    read = read_external(args.predictions, rows, args.setting)
    protocol = scored(args, Protocol(tasks=(args.task,)))
    cased = args.cased is not False
    return ScoreInputs(rows, read.runs, protocol, cased, "masked", read.missing, read.notes)


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
