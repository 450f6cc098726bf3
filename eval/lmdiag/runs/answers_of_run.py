"""Answers of a finished run to the questions of rows that are read in another way now.

With `--critical`, `--region` columns or another column of the table, the fingerprint of the data is
another one, and the questions may be the same: the finished run has the answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import results
from lmdiag.asking.questions import QuestionKey, Setting, row_keys
from lmdiag.results import Run
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.runs.inputs import Inputs


def answers_of_run(path: Path, inputs: Inputs, info: ModelInfo | None = None) -> Run | None:
    """Returns the finished run in a directory, if it asked the same questions.

    None where there is no run, it is one on the same data, its rows cannot be read any more, or
    a question, an id, a target or anything but the data differs. Without `info`, the model is taken
    to be the run's.
    """
    if not (path / results.RESULTS).exists():
        return None
    try:
        results_before = results.read_results(path)
        info = info or results_before.model
        identity = inputs.identity(info)
        if (
            _without_fingerprint(identity) != _without_fingerprint(results_before.identity)
            or identity == results_before.identity
        ):
            return None
        run = results.load_run(path)
    except BadInput:  # the run is damaged; the table has changed, or is not there
        return None
    for setting in inputs.settings:
        rows = setting.stimuli
        key = (setting.perturbation, setting.run)
        earlier_rows = run.stimuli.get(rows.task)
        if earlier_rows is None or earlier_rows.form != rows.form or setting.wording is not None:
            return None
        if key not in run.predictions[rows.task]:
            return None
        earlier_setting = replace(setting, stimuli=run.asked(rows.task, *key))
        if _questions(earlier_setting, info) != _questions(setting, info):
            return None
    return run


def refuse_other_rows(folder: Path, inputs: Inputs) -> None:
    """Refuses, before a model is loaded, a run that has asked other questions in its directory.

    Args:
        folder: of the model.
        inputs: what is asked.
    """
    if inputs.protocol.chat:
        runs = sorted(folder.glob(f"*-chat*/{results.RESULTS}"))
        paths = [file.parent for file in runs]
    else:
        paths = [results.run_folder(folder, inputs.protocol)]
    for path in paths:
        if (path / results.RESULTS).exists():
            _refuse_run_of_other_rows(path, inputs)


def _refuse_run_of_other_rows(path: Path, inputs: Inputs) -> None:
    """Refuses to write into the directory of a run that differs in nothing but its data."""
    try:
        results_before = results.read_results(path)
    except BadInput:  # damaged: said when the directory is opened
        return
    if inputs.protocol.chat:  # only a model knows its chat template: taken to be that of the run
        if inputs.protocol.instruction != results_before.protocol.instruction:
            return
        protocol = replace(inputs.protocol, prompt=results_before.protocol.prompt)
        inputs = replace(inputs, protocol=protocol)
        if results.run_folder(path.parent, protocol) != path:
            return
    identity = inputs.identity(results_before.model)
    is_other = identity != results_before.identity and _without_fingerprint(
        identity
    ) == _without_fingerprint(results_before.identity)
    if is_other and answers_of_run(path, inputs) is None:
        raise BadInput(results.changed_data(path))


def _without_fingerprint(identity: Mapping[str, Any]) -> dict[str, str]:
    """Returns what identifies a run, without the fingerprint of its data."""
    return {key: re.sub(r"\|data:[^|]*", "", str(value)) for key, value in identity.items()}


def _questions(setting: Setting, info: ModelInfo) -> list[tuple[str, QuestionKey, str]]:
    """Returns the id, the question and the target of each row; of sentences, the id twice."""
    columns = setting.stimuli.columns()
    keys = row_keys(setting, kind=info.kind, cased=True)
    return [*zip(columns["id"], keys, columns.get("target", columns["id"]), strict=True)]
