"""`lmdiag score`: computes the measures from predictions of any program, or of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Json, Scoring
from lmdiag.files import is_folder
from lmdiag.protocol import Protocol
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.results.predictions import External
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
    json: Json = False


def main(options: Options) -> int:
    """Scores and prints; what cannot be computed is said on standard error.

    Raises:
        BadInput: the predictions cannot be used, a measure that was asked for cannot be computed,
            or nothing can.
    """
    from lmdiag import evaluation, results
    from lmdiag.report.formats.terminal import print_setting
    from lmdiag.results.predictions import ids

    asked = _of_a_run(options) if is_folder(options.predictions) else _of_a_file(options)
    rows, read, protocol, cased, kind = asked
    measured = evaluation.evaluate(rows, read.runs, protocol, cased, kind)
    reasons = evaluation.not_computed(rows, read.runs[0], protocol)
    needing: dict[str, bool] = {}  # measure -> whether it needs a row without a prediction
    if read.missing or options.measures:
        needing = evaluation.measures_needing(rows, read.missing, protocol, kind)
    incomplete = [name for name, needs in needing.items() if needs]
    if incomplete:
        absent = f"{ids(read.missing)} missing, and they need these rows"
        reasons.insert(0, f"{', '.join(incomplete)}: {absent}")
    wanted = list(dict.fromkeys([*needing, *measured.measures]))
    if options.measures:
        wanted = evaluation.chosen_measures(options.measures, wanted)
    possible = [name for name in wanted if name in measured.measures and name not in incomplete]
    lacking = [name for name in wanted if name not in possible]
    predicted = [name for name in possible if not name.startswith(evaluation.HUMAN_MEASURES)]
    if not predicted or (options.measures and lacking):
        what = f"{', '.join(lacking)} cannot" if options.measures else "no measure can"
        raise BadInput(f"{options.predictions}: {what} be computed: {'; '.join(reasons)}")
    measured = replace(
        measured,
        signature=results.signature(protocol, rows.fingerprint, asks_words=rows.asks_words),
        measures={n: measure for n, measure in measured.measures.items() if n in possible},
        unscorable=[word for word in measured.unscorable if word.id not in read.missing],
    )
    not_computed = [] if options.measures else [f"not computed: {reason}" for reason in reasons]
    for line in (*read.notes, *not_computed):
        say(f"lmdiag: {line}")
    if options.json:
        print(json.dumps({"task": options.task, **measured.to_json()}, allow_nan=False))
    else:
        print_setting(options.task, options.setting, measured, form=rows.form)
    return 0


def _of_a_file(options: Options) -> tuple[Stimuli, External, Protocol, bool, Kind]:
    """Returns the predictions of files; of their model only the options are known."""
    from lmdiag import stimuli
    from lmdiag.results.predictions import read_external

    rows = stimuli.load(options.data or "lmdiag", options.task, revision=options.data_revision)
    read = read_external(options.predictions, rows, options.setting)
    protocol = options.scoring.of(Protocol(tasks=(options.task,)))
    return rows, read, protocol, options.cased is not False, "masked"


def _of_a_run(options: Options) -> tuple[Stimuli, External, Protocol, bool, Kind]:
    """Returns the predictions of a run directory, which says its model and protocol.

    Raises:
        BadInput: no finished run, other data, or a task, setting or rank that it does not have.
    """
    from lmdiag.results import load_run
    from lmdiag.results.predictions import External

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
    read = External([part for (name, _), part in parts if name == options.setting])
    cased = model.cased if options.cased is None else options.cased
    return run.stimuli[options.task], read, asked, cased, model.kind
