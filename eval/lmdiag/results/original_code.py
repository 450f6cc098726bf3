"""Reads predictions in the files of the code of Ettinger (2020), aetting/lm-diagnostics.

These files have no ids: each of the code's four tests is a list of contexts and target words, and
a model answers it line by line in two files with these names:

    modelpreds-TEST-MODEL       the most probable words, best first, separated by spaces
    modeltgtprobs-TEST-MODEL    the probability of the target word; nan if it has none

TEST is cprag, role, negsimp or negnat; the lines are in the order of the published TSV files. One
kind of file is enough: words give accuracy, probabilities give sensitivity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.reading import is_file, read_text, readable
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_TESTS = {"cprag102": ("cprag",), "role88": ("role",), "neg136": ("negsimp", "negnat")}
"""Task -> the tests that it consists of."""
_WORDS, _PROBABILITIES = "modelpreds", "modeltgtprobs"
_CONDITIONS = ("TA", "FN", "FA", "TN")
"""Order of an item's four lines in negsimp and negnat."""

_NAME = re.compile(rf"({_WORDS}|{_PROBABILITIES})-(cprag|role|negsimp|negnat)-(.+)")


def is_original(path: Path) -> bool:
    """Returns whether a path is a file with such a name, or a folder that has one."""
    with readable(path):
        names = [file.name for file in path.iterdir()] if path.is_dir() else [path.name]
    return any(map(_NAME.fullmatch, names))


def read_original(path: Path, stimuli: Stimuli) -> Predictions:
    """Returns the predictions of one model for the rows of a task, in the order of the rows.

    Args:
        path: one of the files of the model, with the others next to it; or a folder with the files
            of a single model.
        stimuli: the rows, in the order of the data set's build.

    Raises:
        BadInput: a task that the original code does not have, files of several models, a file that
            is missing or has another number of lines, a malformed line (file and line are named).
    """
    task, rows = stimuli.task, stimuli.columns()
    if task not in _TESTS:
        raise BadInput(
            f"{path}: files with such names are for {', '.join(_TESTS)}, not for {task}: "
            "give its predictions as JSON lines"
        )
    folder, model = _folder_and_model(path, task)
    words = _values(folder, _WORDS, task, model, rows, _top_words)
    log_probs = _values(folder, _PROBABILITIES, task, model, rows, _log_prob)
    if words is None and log_probs is None:
        raise _nothing(folder, task, model)
    nothing: list[Any] = [None] * len(stimuli)
    return Predictions(
        id=list(rows["id"]),
        log_prob=log_probs or nothing,
        rank=nothing,
        n_tokens=nothing,
        top_words=words or nothing,
        top_log_probs=nothing,
    )


def _folder_and_model(path: Path, task: str) -> tuple[Path, str]:
    """The folder of the files, and the model that the path names or that is alone in the folder."""
    if not path.is_dir():
        match = _NAME.fullmatch(path.name)
        if match is None or not path.is_file():
            raise BadInput(f"{path} does not exist: --predictions takes a file or a folder")
        return path.parent, match[3]
    matches = filter(None, (_NAME.fullmatch(file.name) for file in path.iterdir()))
    models = sorted({match[3] for match in matches if match[2] in _TESTS[task]})
    if not models:
        raise _nothing(path, task, "MODEL")
    if len(models) > 1:
        raise BadInput(
            f"{path} has files of several models ({', '.join(models)}): name one of the files "
            "instead of the folder"
        )
    return path, models[0]


def _nothing(folder: Path, task: str, model: str) -> BadInput:
    names = [f"{kind}-{test}-{model}" for test in _TESTS[task] for kind in (_WORDS, _PROBABILITIES)]
    return BadInput(f"{folder} has nothing for {task}: put {' or '.join(names)} there")


def _values(
    folder: Path,
    kind: str,
    task: str,
    model: str,
    rows: Mapping[str, Sequence[Any]],
    parse: Callable[[str, str], Any],
) -> list[Any] | None:
    """A value per row from one kind of files; None if the model has none of the kind."""
    files = {test: folder / f"{kind}-{test}-{model}" for test in _TESTS[task]}
    missing = [file for file in files.values() if not is_file(file)]
    if len(missing) == len(files):
        return None
    if missing:
        raise BadInput(f"{missing[0]} is missing: {task} is {' and '.join(files)} together")
    values: dict[int, Any] = {}
    for test, file in files.items():
        positions = _positions(test, rows)
        lines = read_text(file).rstrip("\n").split("\n")
        if len(lines) != len(positions):
            raise BadInput(
                f"{file} has {len(lines)} lines, but the data have {len(positions)} rows for it: "
                "write one line per row, in the order of the published TSV file"
            )
        for number, (position, line) in enumerate(zip(positions, lines, strict=True), start=1):
            values[position] = parse(line, f"{file}:{number}")
    return [values[position] for position in range(len(rows["id"]))]


def _positions(test: str, rows: Mapping[str, Sequence[Any]]) -> Sequence[int]:
    """The positions of a test's rows, in the order of the original code's lines."""
    if not test.startswith("neg"):
        return range(len(rows["id"]))
    keys = zip(rows["item"], rows["condition"], rows["subset"], strict=True)
    own = {key[:2]: i for i, key in enumerate(keys) if f"neg{key[2]}" == test}
    try:
        items = dict.fromkeys(item for item, _ in own)
        return [own[item, condition] for item in items for condition in _CONDITIONS]
    except KeyError as error:
        raise BadInput(f"the data have no {error}: {test} is for the published items") from None


def _top_words(line: str, where: str) -> list[str]:
    words = line.split()
    if not words:
        raise BadInput(f"{where}: no word; write the most probable words, best first")
    return words


def _log_prob(line: str, where: str) -> float | None:
    """The natural log of the probability in a line; None for nan, a word without one."""
    try:
        value = float(line)
    except ValueError:
        raise BadInput(f"{where}: {line!r:.60} is not a number; write one probability") from None
    if math.isnan(value):
        return None
    if not 0 <= value <= 1:
        raise BadInput(f"{where}: {line.strip()} is not a probability; it must be from 0 to 1")
    return math.log(value) if value else -math.inf
