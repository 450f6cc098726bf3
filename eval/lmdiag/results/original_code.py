"""Predictions in the files of the original code (aetting/lm-diagnostics) and of its forks.

A folder has two files for each part of the data set, with a line per row: `modelpreds-PART-MODEL`,
the most probable words, separated by blanks, and `modeltgtprobs-PART-MODEL`, the probability of the
target.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmdiag.files.reading import is_folder, read_text
from lmdiag.types import BadInput

_PARTS = {
    "cprag102": {"cprag": ""},
    "role88": {"role": ""},
    "neg136": {"negsimp": "simp", "negnat": "nat"},
}
"""Task -> part in the names of files -> `subset` of its rows; "" for all rows of the task."""
_CONDITIONS = ("TA", "FN", "FA", "TN")
"""Order of the lines of an item of NEG-136: both contexts with one target, then with the other."""


def is_original_output(folder: Path) -> bool:
    """Returns whether a path is a folder with files of the original code."""
    return is_folder(folder) and any(folder.glob("model[pt]*-*-*"))


def original_records(
    folder: Path, task: str, columns: Mapping[str, Sequence[Any]]
) -> tuple[list[tuple[str, Mapping[str, Any]]], list[str]]:
    """Reads the files of one model for the rows of a task; a part without files is left out.

    Lists of words may have different lengths: a token of white space leaves no word, and a token
    that continues a word is not apart from it. Shorter lists get empty words at their end.

    Returns:
        of each row the folder, and id, top_words and log_prob; a line that counts the shorter lists
    """
    word_lists = (text.split() for path in folder.glob("modelpreds-*") for _, text in _lines(path))
    k = max(map(len, word_lists), default=0)
    n_short = 0
    records: dict[str, dict[str, Any]] = {}
    for part, subset in _PARTS.get(task, {}).items():
        for row, _, text in _lines_of_rows(folder, f"modelpreds-{part}-", subset, columns):
            words = text.split()
            n_short += len(words) < k
            records[row] = {"id": row, "top_words": words + [""] * (k - len(words))}
        for row, where, text in _lines_of_rows(folder, f"modeltgtprobs-{part}-", subset, columns):
            records.setdefault(row, {"id": row})["log_prob"] = _log_prob(text, where)
    note = f"{folder}: empty words were added to {n_short} of the lists, which have fewer than {k}"
    return [(str(folder), record) for record in records.values()], [note] if n_short else []


def _lines_of_rows(
    folder: Path, start: str, subset: str, columns: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, str, str]]:
    """Yields id, place and text of the line of each row; nothing without a file.

    `BadInput` for files of several models, and for another number of lines than of rows.
    """
    rows = [*zip(*(columns[name] for name in ("id", "item", "condition")), strict=True)]
    if subset:
        rows = [row for row, name in zip(rows, columns["subset"], strict=True) if name == subset]
        items = [item for _, item, _ in rows]
        rows.sort(key=lambda row: (items.index(row[1]), _CONDITIONS.index(row[2])))
    paths = sorted(folder.glob(f"{start}*"))
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths[:2])
        raise BadInput(f"{folder} has files of several models ({names}): keep those of one")
    for path in paths:
        lines = _lines(path)
        if len(lines) != len(rows):
            problem = f"{path} has {len(lines)} lines, and the data set {len(rows)} rows"
            rule = "a file of the original code has a line per row, in the order of the published"
            raise BadInput(f"{problem}: {rule} items")
        for (row, *_), (where, text) in zip(rows, lines, strict=True):
            yield row, where, text


def _lines(path: Path) -> list[tuple[str, str]]:
    """Returns place ("FILE:3") and text of each line; lines end where Python's `open` ends them."""
    lines = io.StringIO(read_text(path), newline=None)
    return [(f"{path}:{number}", text) for number, text in enumerate(lines, 1)]


def _log_prob(text: str, where: str) -> float | None:
    """The natural log of a probability; None for nan, a word that the model does not have."""
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0
    if math.isnan(probability):
        return None
    if not 0 <= probability <= 1:
        raise BadInput(f"{where}: {text.strip()!r:.40} must be a probability, or nan")
    return math.log(probability) if probability else -math.inf
