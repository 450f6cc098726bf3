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
    """Returns the finished run in a directory if its answers are also the answers to `inputs`.

    This is so if the data have another fingerprint, for example since another column names the
    critical word, but the rows have the same ids, questions and targets. None is returned otherwise
    (also if the data are the same), and if there is no run or its rows cannot be read any more.

    Args:
        path: the run directory.
        inputs: what would be asked now.
        info: of the model; None for the model of the run.
    """
    if not (path / results.RESULTS).exists():
        return None
    try:
        earlier_results = results.read_results(path)
        info = info or earlier_results.model
        identity = inputs.identity(info)
        if not _differs_in_data_alone(identity, earlier_results.identity):
            return None
        run = results.load_run(path)
    except BadInput:  # the run is damaged; the table has changed, or is not there
        return None
    for setting in inputs.settings:
        rows = setting.stimuli
        key = (setting.perturbation, setting.run)
        earlier_rows = run.stimuli.get(rows.task)
        # with a wording, questions name the choices, which are not compared here
        if earlier_rows is None or earlier_rows.form != rows.form or setting.wording is not None:
            return None
        if key not in run.predictions[rows.task]:
            return None
        earlier_setting = replace(setting, stimuli=run.asked(rows.task, *key))
        if _questions_of_rows(earlier_setting, info) != _questions_of_rows(setting, info):
            return None
    return run


def refuse_other_rows(folder: Path, inputs: Inputs) -> None:
    """Raises `BadInput` if the directory of the new run has a run on other rows.

    It is called before a model is loaded, so that the user need not wait for that.

    Args:
        folder: the folder of the model, in which the run would have its directory.
        inputs: what would be asked.
    """
    if inputs.protocol.chat:  # the name of the directory depends on the model's chat template
        files = sorted(folder.glob(f"*-chat*/{results.RESULTS}"))
        paths = [file.parent for file in files]
    else:
        paths = [results.run_folder(folder, inputs.protocol)]
    for path in paths:
        if (path / results.RESULTS).exists():
            _refuse_run_of_other_rows(path, inputs)


def _refuse_run_of_other_rows(path: Path, inputs: Inputs) -> None:
    """Raises `BadInput` if the run in a directory differs from inputs in its rows alone.

    There is no error if the answers of the run are also those to the inputs, see `answers_of_run`.
    """
    try:
        earlier_results = results.read_results(path)
    except BadInput:  # damaged: said when the directory is opened
        return
    if inputs.protocol.chat:
        # the model, which knows its chat template, is not loaded: that of the run is taken
        if inputs.protocol.instruction != earlier_results.protocol.instruction:
            return
        protocol = replace(inputs.protocol, prompt=earlier_results.protocol.prompt)
        inputs = replace(inputs, protocol=protocol)
        if results.run_folder(path.parent, protocol) != path:
            return
    identity = inputs.identity(earlier_results.model)
    has_other_data = _differs_in_data_alone(identity, earlier_results.identity)
    if has_other_data and answers_of_run(path, inputs) is None:
        raise BadInput(results.changed_data_message(path))


def _differs_in_data_alone(identity: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Whether the identities of two runs differ in the fingerprint of their data, and only there.

    An identity is what `results.identity` returns; its signature has the fingerprint as
    "data:1a2b3c4d".
    """

    def without_fingerprint(facts: Mapping[str, Any]) -> dict[str, str]:
        """Returns the facts as texts, without "|data:1a2b3c4d" in the signature."""
        return {key: re.sub(r"\|data:[^|]*", "", str(fact)) for key, fact in facts.items()}

    return identity != earlier and without_fingerprint(identity) == without_fingerprint(earlier)


def _questions_of_rows(setting: Setting, info: ModelInfo) -> list[tuple[str, QuestionKey, str]]:
    """Returns the id, the question and the target of each row.

    A sentence, which has no target, has its id in the place of it.
    """
    columns = setting.stimuli.columns()
    keys = row_keys(setting, kind=info.kind, cased=True)
    targets = columns.get("target", columns["id"])
    return list(zip(columns["id"], keys, targets, strict=True))
