"""Predictions on disk (`docs/specification.md`, section 7): reading, writing, and their order.

`predictions.parquet` has a row per stimulus, perturbation and shuffle. Files of other programs have
the same columns, of which most may be absent; `lmdiag.results.external` adapts them to the rows.
`COLUMNS` declares each column once, for writing, reading and checking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le

from lmdiag.files import has_file, read_json_lines, read_parquet, readable, replacing
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Predictions
from lmdiag.results.folder import PREDICTIONS, advice_to_overwrite
from lmdiag.types import BadInput, WordSpan

if TYPE_CHECKING:
    import pyarrow as pa
    from pydantic import TypeAdapter

    from lmdiag.stimuli import Stimuli

_Count = Annotated[int, Ge(0)]
_LogProb = Annotated[float, Le(0.01)]
"""Nats. That of a certain word exceeds 0 by rounding, in low precision."""


class _Word(NamedTuple):
    """A `WordSpan` in a file; other programs may leave out the last fields."""

    start: _Count
    end: _Count
    log_prob: _LogProb | None = None
    n_tokens: _Count | None = None


_COUNT = "an integer from 0 up"
_LOG_PROB = "a number, the natural log of a probability, which is never above 0"
_WORDS = "a list of objects with start, end (characters), log_prob and n_tokens, one per word"
COLUMNS: Mapping[str, tuple[Any, str]] = {
    "id": (str, "the id of a row"),
    "perturbation": (str, "the name of a perturbation"),
    "run": (_Count, _COUNT),
    "log_prob": (_LogProb | None, f"{_LOG_PROB} (null for a word that has no score)"),
    "rank": (_Count | None, _COUNT),
    "n_tokens": (_Count | None, _COUNT),
    "top_words": (list[str] | None, "a list of words, best first"),
    "top_log_probs": (list[_LogProb] | None, f"a list; each value is {_LOG_PROB}"),
    "words": (list[_Word] | None, _WORDS),
    "agreement": (
        list[float | None] | None,
        "EW and MW of a context, in the order of `AGREEMENT_LAYOUT`",
    ),
}
"""Column of `predictions.parquet` -> type of its values, and what they are, in messages."""
PER_SETTING = ("perturbation", "run")
"""Columns with one value in `Predictions`; the others have one per row."""
PER_ROW = tuple(name for name in COLUMNS if name not in PER_SETTING)

SettingKey = tuple[str, int]
"""A setting: (perturbation, run)."""
UNNAMED: SettingKey = ("", 0)
"""The setting of a file without the columns `PER_SETTING`."""
Record = tuple[str, Mapping[str, Any]]
"""Where a prediction is ("FILE:3"), and its values by column."""


# ---- the columns ---------------------------------------------------------------------------------


@cache
def schema() -> pa.Schema:
    """Returns the Arrow types of `COLUMNS`."""
    import pyarrow as pa

    def arrow(kind: Any) -> pa.DataType:
        if type(None) in get_args(kind):
            return arrow(get_args(kind)[0])
        if get_origin(kind) is list:
            return pa.list_(arrow(get_args(kind)[0]))
        if kind is _Word:
            hints = get_type_hints(_Word, include_extras=True)
            return pa.struct({name: arrow(hint) for name, hint in hints.items()})
        types = {str: pa.string(), _Count: pa.int32(), _LogProb: pa.float64(), float: pa.float64()}
        return types[kind]

    return pa.schema({name: arrow(kind) for name, (kind, _) in COLUMNS.items()})


@cache
def _checks(name: str) -> TypeAdapter[list[Any]]:
    from pydantic import ConfigDict, TypeAdapter

    kind: Any = COLUMNS[name][0]
    return TypeAdapter(list[kind], config=ConfigDict(strict=True))


def checked(columns: Mapping[str, list[Any]], place: Callable[[int], str]) -> dict[str, list[Any]]:
    """Returns all columns with checked values; None for what is not given.

    Args:
        columns: of `COLUMNS`.
        place: names a row, from 0, in messages.

    Raises:
        BadInput: a value is not what its column holds; the message names row and column.
    """
    from pydantic import ValidationError

    valid: dict[str, list[Any]] = {}
    for name, values in columns.items():
        try:
            valid[name] = _checks(name).validate_python(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            row, *inner = first["loc"]
            path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in inner)
            message = f"{name}{path} is {first['input']!r:.60}; {name} must be {COLUMNS[name][1]}"
            raise BadInput(f"{place(int(row))}: {message}") from None
    valid |= {name: [None] * len(valid["id"]) for name in PER_ROW if name not in valid}
    pairs = zip(valid["top_words"], valid["top_log_probs"], strict=True)
    for row, (words, log_probs) in enumerate(pairs):
        if log_probs is not None and len(log_probs) != len(words or ()):
            raise BadInput(
                f"{place(row)}: top_log_probs has {len(log_probs)} values, top_words "
                f"{len(words or ())}: give as many"
            )
    for row, words in enumerate(valid["words"]):
        reached = 0
        for number, word in enumerate(words or ()):
            if not reached <= word.start <= word.end:
                raise BadInput(
                    f"{place(row)}: words[{number}] is from {word.start} to {word.end}; give start "
                    "and end of each word, in characters, in the order of the sentence"
                )
            reached = word.end
    return valid


def of_records(records: Iterable[Record]) -> Predictions:
    """Returns checked predictions, in the order of the records; see `checked`."""
    places, values = tuple(zip(*records, strict=True)) or ((), ())
    names = [name for name in PER_ROW if name != "agreement"]  # which no other program has
    columns = {name: [record.get(name) for record in values] for name in names}
    return _predictions(checked(columns, lambda row: str(places[row])))


def _predictions(columns: Mapping[str, list[Any]]) -> Predictions:
    words = [
        None if spans is None else tuple(map(WordSpan._make, spans)) for spans in columns["words"]
    ]
    rows: dict[str, Any] = {name: columns[name] for name in PER_ROW} | {"words": words}
    return take(Predictions(**rows), range(len(rows["id"])))


# ---- the files -----------------------------------------------------------------------------------


def write(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of several settings to one Parquet file, in the order given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def table(part: Predictions) -> pa.Table:
        n_rows = len(part.id)
        columns = {name: getattr(part, name) or [None] * n_rows for name in PER_ROW}
        columns |= {name: [getattr(part, name)] * n_rows for name in PER_SETTING}
        arrays = [pa.array(columns[field.name], field.type) for field in schema()]
        return pa.table(arrays, schema=schema())

    whole = pa.concat_tables([schema().empty_table(), *map(table, predictions)])
    with replacing(path) as file:
        pq.write_table(whole, file, compression="zstd")


def read(path: Path) -> dict[SettingKey, Predictions]:
    """Returns setting -> predictions; `UNNAMED` -> predictions of a file that names no settings.

    Args:
        path: Parquet or JSON lines, of a run or of another program. All columns but `id` may be
            absent.

    Raises:
        BadInput: the file is missing or damaged, or a value is not what its column holds; the
            message names file, row and column.
    """
    if not has_file(path):
        raise BadInput(f"{path} does not exist")
    with readable(path), path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        return {UNNAMED: of_records(read_json_lines(path))}
    table = read_parquet(path, COLUMNS)
    if "id" not in table.column_names:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    given = {name: _values(table[name]) for name in table.column_names if name != "agreement"}
    columns = checked(given, lambda row: f"{path}, row {row + 1}")
    if "agreement" in table.column_names:
        columns["agreement"] = _agreement(table["agreement"], str(path))
    whole = _predictions(columns)
    if not columns.keys() >= {*PER_SETTING}:
        return {UNNAMED: whole}
    rows_of: dict[SettingKey, list[int]] = {}
    for row, key in enumerate(zip(*(columns[name] for name in PER_SETTING), strict=True)):
        rows_of.setdefault(key, []).append(row)
    return {
        key: replace(take(whole, rows), perturbation=key[0], run=key[1])
        for key, rows in rows_of.items()
    }


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; of words, by field, since a dictionary for each takes seconds."""
    column = column.combine_chunks()
    if column.type != schema().field("words").type:
        return list(column.to_pylist())
    words = zip(*(field.to_pylist() for field in column.flatten().flatten()), strict=True)
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else [*islice(words, length)] for length in lengths]


def _agreement(column: pa.ChunkedArray, where: str) -> list[tuple[float | None, ...] | None]:
    """EW and MW of each row; equal ones, as of the same context, are one object."""
    import pyarrow.compute as pc

    size = len(AGREEMENT_LAYOUT)
    is_valid = column.type == schema().field("agreement").type
    if is_valid and column.null_count < len(column):
        low, high = pc.min_max(column.combine_chunks().flatten()).as_py().values()
        is_valid = low is None or 0 <= low <= high <= 1.01
        is_valid &= pc.all(pc.equal(pc.list_value_length(column), size)).as_py()
    if not is_valid:
        raise BadInput(f"{where}: agreement must be lists of {size} numbers in [0, 1]")
    shared: dict[tuple[float | None, ...] | None, tuple[float | None, ...] | None] = {}
    rows = []
    for start in range(0, len(column), 10_000):
        for values in column.slice(start, 10_000).to_pylist():
            key = None if values is None else tuple(values)
            rows.append(shared.setdefault(key, key))
    return rows


# ---- the files of a run --------------------------------------------------------------------------


def read_run(
    folder: Path, stimuli: Mapping[str, Stimuli]
) -> dict[str, dict[SettingKey, Predictions]]:
    """Returns task -> (perturbation, run) -> predictions in the order of the task's rows.

    Args:
        folder: run directory.
        stimuli: task -> its rows.

    Raises:
        BadInput: the file is missing or damaged, or its ids are not the ids of the rows.
    """
    file = folder / PREDICTIONS
    with advice_to_overwrite():
        parts = read(file)
    task_of = {row: task for task, rows in stimuli.items() for row in rows.columns()["id"]}
    runs: dict[str, dict[SettingKey, Predictions]] = {task: {} for task in stimuli}
    for key, part in parts.items():
        places: dict[str, list[int]] = {}
        for i, row in enumerate(part.id):
            places.setdefault(task_of.get(row, ""), []).append(i)
        if foreign := [part.id[i] for i in places.get("", [])]:
            raise BadInput(f"{file}: {ids(foreign)} in none of the tasks {', '.join(stimuli)}")
        for task, rows in places.items():
            runs[task][key] = align(take(part, rows), stimuli[task].columns()["id"], str(file))
    if lacking := [task for task, settings in runs.items() if not settings]:
        raise BadInput(f"{file} has no predictions for {lacking[0]}: run again with --overwrite")
    return runs


# ---- predictions and rows ------------------------------------------------------------------------


def align(part: Predictions, rows: Sequence[str], where: str) -> Predictions:
    """Returns the predictions in the order of the rows, exactly one for each.

    Args:
        part: predictions in any order.
        rows: ids of the rows.
        where: the file, for messages.

    Raises:
        BadInput: ids are missing, doubled or foreign; the first few are named.
    """
    if part.id == list(rows):
        return part
    place = places_of(part, rows, where)
    if missing := [row for row in rows if row not in place]:
        raise BadInput(f"{where}: {ids(missing)} missing: give every row a prediction")
    return take(part, [place[row] for row in rows])


def places_of(part: Predictions, rows: Sequence[str], where: str) -> dict[str, int]:
    """Returns id -> position of its prediction.

    Raises:
        BadInput: ids are doubled, or not among the rows.
    """
    if doubled := [row for row, times in Counter(part.id).items() if times > 1]:
        raise BadInput(f"{where}: {ids(doubled)} more than once: give each row one prediction")
    known = set(rows)
    if foreign := [row for row in part.id if row not in known]:
        raise BadInput(
            f"{where}: {ids(foreign)} not among the rows: take them out, or name their --task"
        )
    return {row: i for i, row in enumerate(part.id)}


def take(part: Predictions, places: Sequence[int]) -> Predictions:
    """Returns the predictions at some positions; `words` and `agreement` are empty if all None."""
    given = {name: values for name in PER_ROW if (values := getattr(part, name))}
    columns: dict[str, Any] = {name: [of[i] for i in places] for name, of in given.items()}
    for name in ("words", "agreement"):
        if all(value is None for value in columns.get(name, ())):
            columns[name] = []
    return replace(part, **columns)


def ids(names: Sequence[str]) -> str:
    """Returns how many ids and the first few, as the start of a message.

    >>> ids(["a", "b", "c", "d"])
    '4 ids (a, b, c, …)'
    """
    named = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"id {named}" if len(names) == 1 else f"{len(names)} ids ({named})"
