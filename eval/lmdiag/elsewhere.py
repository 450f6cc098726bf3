"""Predictions that another program made: JSON lines or Parquet with `id`, `top_words`, `log_prob`.

Both `top_words` and `log_prob` may be missing as a whole: what the other allows is computed.
Everything that is there is checked, and an error names the file and the line. The files of the
original code, which have no ids, are told by their names and read by `lmdiag.original`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.original import is_original, read_original
from lmdiag.reading import parquet_names, parse_json, read_parquet, readable
from lmdiag.results.predictions import PREDICTION_COLUMNS, align, read, take
from lmdiag.schema import BadInput, Predictions

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

ROUNDING = 1e-6
"""A float32 log-probability of a certain word may come out this much above 0 (nats)."""


def read_elsewhere(path: Path, stimuli: Stimuli, setting: str = "none") -> list[Predictions]:
    """Returns the predictions in a file for the rows of a task, in their order.

    Args:
        path: JSON lines or Parquet, or files of the original code (one of them, or their folder). A
            run's own `predictions.parquet` will do: of its several tasks and settings those that
            are asked for are taken.
        stimuli: the rows.
        setting: perturbation to take from a run's file.

    Returns:
        One for each run of the setting: one, but for the shuffled settings of a run's file.

    Raises:
        BadInput: no such file, a malformed line (file and line are named), values that are no
            log-probabilities, ids that are missing, doubled or foreign.
    """
    rows = stimuli.columns()["id"]
    if is_original(path):
        refuse_setting(path, setting)
        return [read_original(path, stimuli)]
    if not path.is_file():
        raise BadInput(f"{path} does not exist: --predictions takes a file or a run directory")
    if is_parquet(path) and is_of_a_run(path):
        return [align(part, rows, str(path)) for part in parts_of_a_run(path, set(rows), setting)]
    refuse_setting(path, setting)
    return [align(gather(records(path), str(path)), rows, str(path))]


def refuse_setting(path: Path, setting: str) -> None:
    """Raises `BadInput` if a perturbation is asked of a file that knows none."""
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")


def is_parquet(path: Path) -> bool:
    """Returns whether a file starts like Parquet."""
    with readable(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


def is_of_a_run(path: Path) -> bool:
    """Returns whether a Parquet file is a run's own."""
    return {*PREDICTION_COLUMNS, "perturbation", "run"} <= set(parquet_names(path))


def parts_of_a_run(path: Path, rows: set[str], setting: str) -> Iterator[Predictions]:
    """Yields the runs of a setting, with the rows of one task."""
    found = {key: part for key, part in read(path).items() if key[0] == setting}
    if not found:
        raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
    for _, part in sorted(found.items()):
        yield take(part, [i for i, row in enumerate(part.id) if row in rows])


Record = tuple[str, Mapping[str, Any]]
"""Where a prediction stands ("FILE, line 3"), and what it says."""


def records(path: Path) -> Iterator[Record]:
    """Yields the predictions of a file, each with the place to name in an error."""
    if is_parquet(path):
        columns = parquet_columns(path)
        for number, values in enumerate(zip(*columns.values(), strict=True), start=1):
            yield f"{path}, row {number}", dict(zip(columns, values, strict=True))
        return
    with readable(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield f"{path}, line {number}", parse(line, f"{path}, line {number}")


def parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Returns those columns of a Parquet file that predictions can have."""
    there = parquet_names(path)
    if "id" not in there:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    table = read_parquet(path, [name for name in PREDICTION_COLUMNS if name in there])
    columns: dict[str, list[Any]] = table.to_pydict()
    return columns


def parse(line: bytes, where: str) -> dict[str, Any]:
    """Returns the object in a line of JSON."""
    record = parse_json(line, where)
    if not isinstance(record, dict):
        raise BadInput(
            f'{where}: not an object; write one {{"id": ..., "top_words": [...]}} a line'
        )
    return record


def gather(found: Iterable[Record], where: str) -> Predictions:
    """Returns predictions in their order, every value checked; `where` names the whole of them."""
    columns: dict[str, Any] = {name: [] for name in PREDICTION_COLUMNS}
    for place, record in found:
        columns["id"].append(row_id(record, place))
        columns["log_prob"].append(log_prob(record, place))
        columns["top_words"].append(top_words(record, place))
        columns["rank"].append(count(record, "rank", place))
        columns["n_tokens"].append(count(record, "n_tokens", place))
        columns["top_log_probs"].append(None)
        if (columns["top_words"][0] is None) != (columns["top_words"][-1] is None):
            raise BadInput(f"{place}: top_words are there for some ids only; give all or none")
    if not columns["id"]:
        raise BadInput(f"{where} is empty: write one prediction a line")
    if all(value is None for name in ("top_words", "log_prob") for value in columns[name]):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    return Predictions(**columns)


def row_id(record: Mapping[str, Any], where: str) -> str:
    """Returns the id of the row that a prediction is for."""
    value = record.get("id")
    if not isinstance(value, str):
        raise BadInput(f"{where}: id is {value!r:.60}; it must be the id of a row")
    return value


def log_prob(record: Mapping[str, Any], where: str) -> float | None:
    """Returns a log-probability in nats; None for a word that could not be scored."""
    value = record.get("log_prob")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: log_prob is {value!r:.60}; it must be a number or null")
    if math.isnan(value):
        raise BadInput(f"{where}: log_prob is NaN; write null for a word that has no score")
    if value > ROUNDING:
        raise BadInput(
            f"{where}: log_prob is {value}; the natural log of a probability is never above 0"
        )
    return min(float(value), 0.0)


def top_words(record: Mapping[str, Any], where: str) -> list[str] | None:
    """Returns the most probable words, best first; None where the program did not say."""
    value = record.get("top_words")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise BadInput(
            f"{where}: top_words is {value!r:.60}; it must be a list of words, best first"
        )
    return value


def count(record: Mapping[str, Any], name: str, where: str) -> int | None:
    """Returns a count that a prediction may have."""
    value = record.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadInput(f"{where}: {name} is {value!r:.60}; it must be a whole number")
    return value
