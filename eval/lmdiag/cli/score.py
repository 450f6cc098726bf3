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
from lmdiag.files import is_folder
from lmdiag.protocol import Protocol
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.protocol import Predictions
    from lmdiag.results import SettingResults
    from lmdiag.stimuli import Stimuli
    from lmdiag.types import Kind


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Predictions and the rows they are for."""

    task: str
    """config of the data set"""
    predictions: Path
    """JSON lines or Parquet file with id, top_words and log_prob, or a run directory"""
    data: str | None = None
    """data set: a built directory, a Hub id or a file of your own (default: lmdiag; for a run, the
    data it was made on)"""
    data_revision: str | None = None
    """branch, tag or commit of the Hub data set"""
    scoring: Annotated[Scoring, RECORD] = Scoring()
    cased: Annotated[bool | None, Parameter(negative="--uncased")] = None
    """compare words with the expected words exactly, or ignore letter case (default: exactly; for a
    run, by its own rule)"""
    measures: tuple[str, ...] = ()
    """measures to compute, e.g. accuracy or sensitivity@0.01; each must be possible (default: all
    that are possible)"""
    setting: str = "none"
    """perturbation of the run to score"""
    json: bool = False
    """print one JSON document, nothing else"""


def main(options: Options) -> int:
    """Scores and prints; what cannot be computed is said on standard error.

    Raises:
        BadInput: the predictions cannot be used, or do not allow what was asked for.
    """
    from lmdiag import evaluation, results
    from lmdiag.report.formats.terminal import print_setting

    is_run = is_folder(options.predictions)
    given = _of_a_run(options) if is_run else _of_a_file(options)
    measured = evaluation.evaluate(
        given.stimuli, given.runs, given.protocol, given.cased, given.kind
    )
    signature = results.signature(
        given.protocol, given.stimuli.fingerprint, asks_words=given.stimuli.asks_words
    )
    measured, remarks = _restricted(replace(measured, signature=signature), given, options)
    for remark in (*given.notes, *remarks):
        say(f"lmdiag: {remark}")
    if options.json:
        print(json.dumps({"task": options.task, **measured.to_json()}, allow_nan=False))
    else:
        print_setting(options.task, options.setting, measured, form=given.stimuli.form)
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
    measured: SettingResults, given: ScoreInputs, options: Options
) -> tuple[SettingResults, list[str]]:
    """Returns the figures that are wanted and can be computed, and lines on the others.

    Raises:
        BadInput: a measure that was asked for cannot be computed, or nothing can.
    """
    from lmdiag import evaluation
    from lmdiag.results.predictions import ids

    reasons = evaluation.not_computed(given.stimuli, given.runs[0], given.protocol)
    needing: dict[str, bool] = {}
    if given.missing or options.measures:
        needing = evaluation.measures_needing(
            given.stimuli, given.missing, given.protocol, given.kind
        )
    incomplete = [name for name, needs in needing.items() if needs]
    if incomplete:
        absent = f"{ids(given.missing)} missing"
        reasons.insert(0, f"{', '.join(incomplete)}: {absent}, and they need these rows")
    wanted = list(dict.fromkeys([*needing, *measured.measures]))
    if options.measures:
        wanted = evaluation.chosen_measures(options.measures, wanted)
    computed = {
        name: measure
        for name, measure in measured.measures.items()
        if name in wanted and name not in incomplete
    }
    lacking = [name for name in wanted if name not in computed]
    predicted = [name for name in computed if not name.startswith(evaluation.HUMAN_MEASURES)]
    if not predicted or (options.measures and lacking):
        what = f"{', '.join(lacking)} cannot" if options.measures else "no measure can"
        raise BadInput(f"{options.predictions}: {what} be computed: {'; '.join(reasons)}")
    absent_rows = set(given.missing)
    return replace(
        measured,
        measures=computed,
        unscorable=[word for word in measured.unscorable if word.id not in absent_rows],
    ), [f"not computed: {reason}" for reason in ([] if options.measures else reasons)]


def _of_a_file(options: Options) -> ScoreInputs:
    """Returns the predictions of files; of their model only the options are known."""
    from lmdiag import stimuli
    from lmdiag.results.external import read_external

    rows = stimuli.load(options.data or "lmdiag", options.task, revision=options.data_revision)
    read = read_external(options.predictions, rows, options.setting)
    protocol = options.scoring.of(Protocol(tasks=(options.task,)))
    cased = options.cased is not False
    return ScoreInputs(rows, read.runs, protocol, cased, "masked", read.missing, read.notes)


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
