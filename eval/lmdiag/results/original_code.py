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
    """Returns whether a path is a folder with files of the original code.

    Their names are modelpreds-PART-MODEL and modeltgtprobs-PART-MODEL.
    """
    return is_folder(folder) and any(folder.glob("model[pt]*-*-*"))


def original_records(
    folder: Path, task: str, columns: Mapping[str, Sequence[Any]]
) -> tuple[list[tuple[str, Mapping[str, Any]]], list[str]]:
    """Reads the files of one model for the rows of a task; a part without files is left out.

    Lists of words may have different lengths: a token of white space leaves no word, and a token
    that continues a word is not apart from it. Shorter lists get empty words at their end.

    Args:
        folder: with the files.
        task: e.g. "neg136".
        columns: of the rows of the task, by name.

    Returns:
        of each row the folder, and its id, top_words and log_prob; and a line that counts the
        shorter lists, if there are any.
    """
    list_lengths = [
        len(text.split()) for path in folder.glob("modelpreds-*") for _, text in _lines(path)
    ]
    k = max(list_lengths, default=0)
    n_short = 0
    records: dict[str, dict[str, Any]] = {}
    for part, subset in _PARTS.get(task, {}).items():  # e.g. "negsimp", of the rows of "simp"
        for row_id, _, text in _lines_of_rows(folder, f"modelpreds-{part}-", subset, columns):
            words = text.split()
            if len(words) < k:
                n_short += 1
                words += [""] * (k - len(words))
            records[row_id] = {"id": row_id, "top_words": words}
        probabilities = _lines_of_rows(folder, f"modeltgtprobs-{part}-", subset, columns)
        for row_id, place, text in probabilities:
            record = records.setdefault(row_id, {"id": row_id})
            record["log_prob"] = _log_prob(text, place)
    note = f"{folder}: empty words were added to {n_short} of the lists, which have fewer than {k}"
    return [(str(folder), record) for record in records.values()], [note] if n_short else []


def _lines_of_rows(
    folder: Path, start: str, subset: str, columns: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, str, str]]:
    """Yields id, place and text of the line of each row; nothing if there is no file.

    For example "neg136-7", "preds/modelpreds-negsimp-bert:7" and "bird robin tree". `BadInput` for
    files of several models, and for a file with more or fewer lines than rows.

    Args:
        folder: with the files.
        start: beginning of the name of the file, e.g. "modelpreds-negsimp-".
        subset: value in the column `subset` of the rows that the file is about; "" for all rows.
        columns: of the rows of the task, by name.
    """
    positions = list(range(len(columns["id"])))
    if subset:
        items = columns["item"]
        positions = [i for i in positions if columns["subset"][i] == subset]
        items_in_order = list(dict.fromkeys(items[i] for i in positions))

        def order_of_lines(i: int) -> tuple[int, int]:
            """Returns the rank of the item of a row, then that of its condition."""
            return items_in_order.index(items[i]), _CONDITIONS.index(columns["condition"][i])

        positions.sort(key=order_of_lines)
    row_ids = [columns["id"][i] for i in positions]
    paths = sorted(folder.glob(f"{start}*"))
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths[:2])
        raise BadInput(f"{folder} has files of several models ({names}): keep those of one")
    for path in paths:
        lines = _lines(path)
        if len(lines) != len(row_ids):
            problem = f"{path} has {len(lines)} lines, and the data set {len(row_ids)} rows"
            rule = "a file of the original code has a line per row, in the order of the published"
            raise BadInput(f"{problem}: {rule} items")
        for row_id, (place, text) in zip(row_ids, lines, strict=True):
            yield row_id, place, text


def _lines(path: Path) -> list[tuple[str, str]]:
    """Returns place ("FILE:3") and text of each line; lines end where Python's `open` ends them."""
    lines = io.StringIO(read_text(path), newline=None)
    return [(f"{path}:{number}", text) for number, text in enumerate(lines, 1)]


def _log_prob(text: str, place: str) -> float | None:
    """Returns the natural log of a probability; None for nan, a word that the model does not have.

    `place` is where the text stands, for the message that it is not a probability.
    """
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0  # refused below, as any number that is not a probability
    if math.isnan(probability):
        return None
    if not 0 <= probability <= 1:
        raise BadInput(f"{place}: {text.strip()!r:.40} must be a probability, or nan")
    return math.log(probability) if probability else -math.inf
