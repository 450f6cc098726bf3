"""`lmdiag score`: computes the measures from predictions of any program, or of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Scoring
from lmdiag.protocol import Protocol
from lmdiag.suggestions import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.protocol import Predictions
    from lmdiag.stimuli import Stimuli
    from lmdiag.types import Kind


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Predictions and the rows they are for."""

    task: str
    """config of the data set"""
    predictions: Path
    """JSON lines or Parquet file with id, top_words and log_prob; a run directory; or modelpreds-*
    and modeltgtprobs-* files of the original code (a file or their folder)"""
    data: str | None = None
    """data set: a built directory, a Hub id or a file of your own (default: lmdiag; for a run, the
    data it was made on)"""
    data_revision: str | None = None
    """branch, tag or commit of the Hub data set"""
    scoring: Annotated[Scoring, RECORD] = Scoring()
    cased: Annotated[bool | None, Parameter(negative="--uncased")] = None
    """compare words with the expected words exactly, or ignore letter case (default: exactly; for a
    run, by its own rule)"""
    setting: str = "none"
    """perturbation of the run to score"""
    json: bool = False
    """print one JSON document, nothing else"""


def main(options: Options) -> int:
    """Scores and prints; what cannot be computed is said on standard error."""
    from lmdiag import evaluation, results
    from lmdiag.report.formats.terminal import print_setting
    from lmdiag.results.original_code import is_original

    is_run = options.predictions.is_dir() and not is_original(options.predictions)
    given = _of_a_run(options) if is_run else _of_a_file(options)
    measured = evaluation.evaluate(*given)
    signature = results.signature(given.protocol, given.stimuli.fingerprint)
    measured = replace(measured, signature=signature)
    for note in evaluation.not_computed(given.stimuli, given.runs[0], given.protocol):
        say(f"lmdiag: not computed: {note}")
    if options.json:
        print(json.dumps({"task": options.task, **measured.to_json()}, allow_nan=False))
    else:
        print_setting(options.task, options.setting, measured, form=given.stimuli.form)
    return 0


class ScoreInputs(NamedTuple):
    """What is scored, and how."""

    stimuli: Stimuli
    runs: Sequence[Predictions]
    protocol: Protocol
    cased: bool
    kind: Kind


def _of_a_file(options: Options) -> ScoreInputs:
    """Returns the predictions of files; of their model only the options are known."""
    from lmdiag import stimuli
    from lmdiag.results.external import read_external

    rows = stimuli.load(options.data or "lmdiag", options.task, revision=options.data_revision)
    runs = read_external(options.predictions, rows, options.setting)
    protocol = options.scoring.of(Protocol(tasks=(options.task,)))
    return ScoreInputs(rows, runs, protocol, options.cased is not False, "masked")


def _of_a_run(options: Options) -> ScoreInputs:
    """Returns the predictions of a run directory, which says its model and protocol.

    Raises:
        BadInput: no finished run, other data, or a task, setting or rank that it does not have.
    """
    from lmdiag.results import load_run

    run = load_run(options.predictions, options.data)
    tasks, protocol, model = run.results.tasks, run.results.protocol, run.results.model
    settings = tasks.get(options.task, {})
    if options.setting not in settings:
        close = suggest(options.setting, settings) if settings else suggest(options.task, tasks)
        known = ", ".join(f"{task} ({' '.join(names)})" for task, names in tasks.items())
        raise BadInput(
            f"{options.predictions} has no {options.task} in setting {options.setting}{close}: "
            f"choose from {known}"
        )
    asked = options.scoring.of(protocol)
    if (k := max(asked.k)) > protocol.top:
        raise BadInput(
            f"--k {k}: {options.predictions} keeps the first {protocol.top} words only; "
            f"run the model again with --k {k}"
        )
    parts = sorted(run.predictions[options.task].items())
    runs = [part for (name, _), part in parts if name == options.setting]
    cased = model.cased if options.cased is None else options.cased
    return ScoreInputs(run.stimuli[options.task], runs, asked, cased, model.kind)
