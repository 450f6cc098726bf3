"""Predictions in the files that the code of Ettinger (2020) reads (aetting/lm-diagnostics).

They know no ids: each of the code's four tests is a list of contexts and target words, and a model
answers it line by line in two files of these names.

    modelpreds-TEST-MODEL       the most probable words, best first, with blanks between them
    modeltgtprobs-TEST-MODEL    the probability of the target word; nan where it has none

TEST is cprag, role, negsimp or negnat, and the lines are in the order of the published TSV files.
Either kind of file will do: words give accuracy, probabilities sensitivity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lmdiag.reading import read_text, readable
from lmdiag.schema import BadInput, Predictions

if TYPE_CHECKING:
    from lmdiag.measures import Columns
    from lmdiag.stimuli import Stimuli

TESTS = {"cprag102": ("cprag",), "role88": ("role",), "neg136": ("negsimp", "negnat")}
"""Task -> the tests that it consists of."""
WORDS, PROBABILITIES = "modelpreds", "modeltgtprobs"
CONDITIONS = ("TA", "FN", "FA", "TN")
"""Order of an item's four lines in negsimp and negnat."""

NAME = re.compile(rf"({WORDS}|{PROBABILITIES})-(cprag|role|negsimp|negnat)-(.+)")
Value = TypeVar("Value")


def is_original(path: Path) -> bool:
    """Returns whether a path is a file so named, or a folder that has one."""
    with readable(path):
        names = [each.name for each in path.iterdir()] if path.is_dir() else [path.name]
    return any(map(NAME.fullmatch, names))


def read_original(path: Path, stimuli: Stimuli) -> Predictions:
    """Returns the predictions of one model for the rows of a task, in their order.

    Args:
        path: one of the model's files, the others lie beside it; or a folder with the files of a
            single model.
        stimuli: the rows, in the order of the data set's build.

    Raises:
        BadInput: a task that the original code does not have, files of several models, a file that
            is missing or has another number of lines, a malformed line (file and line are named).
    """
    if stimuli.task not in TESTS:
        raise BadInput(
            f"{path}: files so named are for {', '.join(TESTS)}, not for {stimuli.task}: "
            "give its predictions as JSON lines"
        )
    folder, model = (path, only_model(path, stimuli.task)) if path.is_dir() else named(path)
    rows = stimuli.columns()
    words: list[Any] | None = values(folder, WORDS, stimuli.task, model, rows, top_words)
    probabilities = values(folder, PROBABILITIES, stimuli.task, model, rows, log_prob)
    if words is None and probabilities is None:
        raise BadInput(nothing_there(folder, stimuli.task, model))
    nothing: list[Any] = [None] * len(stimuli)
    return Predictions(
        id=list(rows["id"]),
        log_prob=probabilities or nothing,
        rank=nothing,
        n_tokens=nothing,
        top_words=words or nothing,
        top_log_probs=nothing,
    )


def named(path: Path) -> tuple[Path, str]:
    """Returns the folder and the model of a file."""
    found = NAME.fullmatch(path.name)
    if found is None or not path.is_file():
        raise BadInput(f"{path} does not exist: --predictions takes a file or a folder")
    return path.parent, found[3]


def only_model(folder: Path, task: str) -> str:
    """Returns the model whose files for a task lie in a folder.

    Raises:
        BadInput: there are files of none, or of several.
    """
    found = filter(None, (NAME.fullmatch(each.name) for each in folder.iterdir()))
    models = sorted({match[3] for match in found if match[2] in TESTS[task]})
    if len(models) == 1:
        return models[0]
    if not models:
        raise BadInput(nothing_there(folder, task, "MODEL"))
    raise BadInput(
        f"{folder} has files of several models ({', '.join(models)}): name one of the files of one "
        "instead of the folder"
    )


def nothing_there(folder: Path, task: str, model: str) -> str:
    """Returns the message for a folder that has nothing for a task."""
    names = [f"{kind}-{test}-{model}" for test in TESTS[task] for kind in (WORDS, PROBABILITIES)]
    return f"{folder} has nothing for {task}: put {' or '.join(names)} there"


def values(
    folder: Path,
    kind: str,
    task: str,
    model: str,
    rows: Columns,
    parse: Callable[[str, str], Value],
) -> list[Value] | None:
    """Returns a value per row from one kind of files; None where the model has none of the kind.

    Raises:
        BadInput: only some of a task's files are there, or one is not as it should be.
    """
    files = {test: folder / f"{kind}-{test}-{model}" for test in TESTS[task]}
    missing = [file for file in files.values() if not file.is_file()]
    if len(missing) == len(files):
        return None
    if missing:
        raise BadInput(f"{missing[0]} is missing: {task} is {' and '.join(files)} together")
    found: dict[int, Value] = {}
    for test, file in files.items():
        places = order(test, rows)
        lines = read_lines(file, len(places))
        for number, (place, line) in enumerate(zip(places, lines, strict=True), start=1):
            found[place] = parse(line, f"{file}, line {number}")
    return [found[place] for place in range(len(rows["id"]))]


def order(test: str, rows: Columns) -> Sequence[int]:
    """Returns the places of a test's rows, in the order of the original code's lines."""
    if not test.startswith("neg"):
        return range(len(rows["id"]))
    keys = zip(rows["item"], rows["condition"], strict=True)
    try:
        subsets = rows["subset"]
        own = {key: i for i, key in enumerate(keys) if f"neg{subsets[i]}" == test}
        items = dict.fromkeys(item for item, _ in own)
        return [own[item, condition] for item in items for condition in CONDITIONS]
    except KeyError as error:
        raise BadInput(f"the data have no {error}: {test} is for the published items") from None


def read_lines(file: Path, n: int) -> list[str]:
    """Returns the n lines of a file."""
    lines = read_text(file).rstrip("\n").split("\n")
    if len(lines) != n:
        raise BadInput(
            f"{file} has {len(lines)} lines, and the data {n} rows for it: one line a row is due, "
            "in the order of the published TSV file"
        )
    return lines


def top_words(line: str, where: str) -> list[str]:
    """Returns the words of a line, best first."""
    words = line.split()
    if not words:
        raise BadInput(f"{where}: no word; write the most probable words, best first")
    return words


def log_prob(line: str, where: str) -> float | None:
    """Returns the natural log of the probability in a line; None for nan, a word without one."""
    try:
        value = float(line)
    except ValueError:
        raise BadInput(f"{where}: {line!r:.60} is no number; write one probability") from None
    if math.isnan(value):
        return None
    if not 0 <= value <= 1:
        raise BadInput(f"{where}: {line.strip()} is no probability; it must be from 0 to 1")
    return math.log(value) if value else -math.inf
