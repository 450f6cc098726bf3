"""Reads predictions of other programs: JSON lines or Parquet with `id`, `top_words`, `log_prob`.

For whole sentences, `log_prob` is the sum over their words, and `n_tokens` the number of tokens.
Either `top_words` or `log_prob` may be absent from all rows: what the other allows is computed. All
values are checked, and an error names file and line. Files of the original code, which have no ids,
are recognised by their names and read by `lmdiag.results.original_code`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.reading import parquet_names, read_json_lines, read_parquet, readable
from lmdiag.results.original_code import is_original, read_original
from lmdiag.results.predictions import (
    PREDICTION_COLUMNS,
    align,
    read,
    read_sentences,
    sentence_schema,
    take,
)
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_ROUNDING = 1e-6
"""Nats by which a float32 log-probability of a certain word may exceed 0."""

Record = tuple[str, Mapping[str, Any]]
"""Where a prediction is ("FILE:3"), and its values."""


def read_external(path: Path, stimuli: Stimuli, setting: str = "none") -> list[Predictions]:
    """Returns the predictions in a file for the rows of a task, in the order of the rows.

    Args:
        path: JSON lines or Parquet, or files of the original code (one of them, or their folder).
            From a run's own `predictions.parquet`, the task and setting asked for are taken.
        stimuli: the rows.
        setting: perturbation to take from a run's file.

    Returns:
        one for each shuffle of a shuffled setting of a run's file, otherwise one.

    Raises:
        BadInput: no such file, a malformed line (file and line are named), values that cannot be
            log-probabilities, ids that are missing, repeated or unknown.
    """
    rows = stimuli.columns()["id"]
    original = is_original(path)
    if not original and not path.is_file():
        raise BadInput(f"{path} does not exist: --predictions takes a file or a run directory")
    parquet = not original and _is_parquet(path)
    if parquet and {*PREDICTION_COLUMNS, "perturbation", "run"} <= set(parquet_names(path)):
        return [align(part, rows, str(path)) for part in _parts_of_a_run(path, set(rows), setting)]
    if parquet and set(sentence_schema().names) <= set(parquet_names(path)):
        parts = read_sentences(path)
        return [align(_of_rows(part, set(rows)), rows, str(path)) for part in parts.values()]
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    if original:
        return [read_original(path, stimuli)]
    records = _parquet_records(path) if parquet else read_json_lines(path)
    return [align(to_predictions(records, str(path)), rows, str(path))]


def _is_parquet(path: Path) -> bool:
    with readable(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _parts_of_a_run(path: Path, rows: set[str], setting: str) -> Iterator[Predictions]:
    """Yields the shuffles of a setting, with the rows of one task."""
    parts = {key: part for key, part in read(path).items() if key[0] == setting}
    if not parts:
        raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
    for _, part in sorted(parts.items()):
        yield _of_rows(part, rows)


def _of_rows(part: Predictions, rows: set[str]) -> Predictions:
    return take(part, [i for i, row in enumerate(part.id) if row in rows])


def _parquet_records(path: Path) -> Iterator[Record]:
    names = parquet_names(path)
    if "id" not in names:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    table = read_parquet(path, [name for name in PREDICTION_COLUMNS if name in names])
    for number, record in enumerate(table.to_pylist(), start=1):
        yield f"{path}, row {number}", record


# ---- records -------------------------------------------------------------------------------------


def to_predictions(records: Iterable[Record], where: str) -> Predictions:
    """Returns checked predictions in the order of the records.

    Args:
        records: each with its place, for messages.
        where: names all of them in messages.

    Raises:
        BadInput: a malformed record, no records, or nothing in them that can be scored.
    """
    columns: dict[str, Any] = {name: [] for name in PREDICTION_COLUMNS}
    for place, record in records:
        if not isinstance(record.get("id"), str):
            raise BadInput(f"{place}: id is {record.get('id')!r:.60}; it must be the id of a row")
        columns["id"].append(record["id"])
        columns["log_prob"].append(_log_prob(record.get("log_prob"), place))
        columns["top_words"].append(_top_words(record.get("top_words"), place))
        for name in ("rank", "n_tokens"):
            columns[name].append(_count(record.get(name), f"{place}: {name}"))
        columns["top_log_probs"].append(None)
        if (columns["top_words"][0] is None) != (columns["top_words"][-1] is None):
            raise BadInput(f"{place}: top_words are given for some ids only; give all or none")
    if not columns["id"]:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for name in ("top_words", "log_prob") for value in columns[name]):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    return Predictions(**columns)


def _log_prob(value: Any, where: str) -> float | None:
    """A log-probability in nats; None for a word that could not be scored."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: log_prob is {value!r:.60}; it must be a number or null")
    if math.isnan(value):
        raise BadInput(f"{where}: log_prob is NaN; write null for a word that has no score")
    if value > _ROUNDING:
        raise BadInput(
            f"{where}: log_prob is {value}; the natural log of a probability is never above 0"
        )
    return min(float(value), 0.0)


def _top_words(value: Any, where: str) -> list[str] | None:
    if value is None or (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        return value
    raise BadInput(f"{where}: top_words is {value!r:.60}; it must be a list of words, best first")


def _count(value: Any, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise BadInput(f"{where} is {value!r:.60}; it must be an integer from 0 up")
