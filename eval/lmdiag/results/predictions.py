"""Predictions on disk (`docs/specification.md`, section 7): reading, writing, and their order.

`predictions.parquet` has a row per stimulus, perturbation and shuffle, `agreement.parquet` one per
distinct context with its EW and MW. Files of other programs have the same columns, of which most
may be absent; `lmdiag.results.external` adapts them to the rows. `COLUMNS` declares each column
once, for writing, reading and checking.
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

from lmdiag.files import has_file, parquet_names, read_json_lines, read_parquet, readable, replacing
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Predictions
from lmdiag.results.folder import EW_AND_MW, PREDICTIONS, advice_to_overwrite
from lmdiag.types import AGREEMENT, BadInput, Kind, WordSpan

if TYPE_CHECKING:
    import pyarrow as pa
    from pydantic import TypeAdapter

    from lmdiag.measures import Columns
    from lmdiag.questions import Setting
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
}
"""Column of `predictions.parquet` -> type of its values, and what they are, in messages."""
PER_SETTING = ("perturbation", "run")
"""Columns with one value in `Predictions`; the others have one per row."""
PER_ROW = tuple(name for name in COLUMNS if name not in PER_SETTING)

SettingKey = tuple[str, int]
"""A setting: (perturbation, run)."""
UNNAMED: SettingKey = ("", 0)
"""The setting of a file without the columns `PER_SETTING`."""
Context = tuple[str, str, str | None]
"""A context as it was asked: (context, right context or "", right number)."""
ContextValues = tuple[float | None, ...]
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
        return {str: pa.string(), _Count: pa.int32(), _LogProb: pa.float64()}[kind]

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
    columns = {name: [record.get(name) for record in values] for name in PER_ROW}
    return _predictions(checked(columns, lambda row: str(places[row])))


def _predictions(columns: Mapping[str, list[Any]]) -> Predictions:
    words = [
        None if spans is None else tuple(map(WordSpan._make, spans)) for spans in columns["words"]
    ]
    rows: dict[str, Any] = {name: columns[name] for name in PER_ROW}
    return Predictions(**rows | {"words": words if any(w is not None for w in words) else []})


# ---- the files -----------------------------------------------------------------------------------


def write(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of several settings to one Parquet file, in the order given."""
    import pyarrow as pa

    def table(part: Predictions) -> pa.Table:
        n_rows = len(part.id)
        columns = {name: getattr(part, name) or [None] * n_rows for name in PER_ROW}
        columns |= {name: [getattr(part, name)] * n_rows for name in PER_SETTING}
        arrays = [pa.array(columns[field.name], field.type) for field in schema()]
        return pa.table(arrays, schema=schema())

    _save(path, pa.concat_tables([schema().empty_table(), *map(table, predictions)]))


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
    table = read_parquet(path, [name for name in parquet_names(path) if name in COLUMNS])
    if "id" not in table.column_names:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    given = {name: _values(table[name]) for name in table.column_names}
    columns = checked(given, lambda row: f"{path}, row {row + 1}")
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


def _save(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file so that at any moment either the old or the new one is there, whole."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")


# ---- EW and MW -----------------------------------------------------------------------------------


@cache
def _agreement_schema() -> pa.Schema:
    import pyarrow as pa

    texts = dict.fromkeys(("context", "right_context", "number"), pa.string())
    return pa.schema(texts | dict.fromkeys(AGREEMENT_LAYOUT, pa.float64()))


def write_agreement(path: Path, contexts: Mapping[Context, ContextValues]) -> None:
    """Writes the EW and MW of contexts, in the order of `AGREEMENT_LAYOUT`."""
    rows = [dict(zip(_agreement_schema().names, k + v, strict=True)) for k, v in contexts.items()]
    _save(path, _agreement_schema().empty_table().from_pylist(rows, _agreement_schema()))


def read_agreement(path: Path) -> dict[Context, ContextValues]:
    """Inverse of `write_agreement`.

    Raises:
        BadInput: the file is missing, is not Parquet or has other columns.
    """
    with advice_to_overwrite():
        table = read_parquet(path, schema=_agreement_schema())
    rows = zip(*table.to_pydict().values(), strict=True)
    return {(row[0], row[1], row[2]): row[3:] for row in rows}


def _contexts(rows: Columns, kind: Kind) -> list[Context]:
    """The context of each row as a model of this kind is asked it."""
    right = [""] * len(rows["id"]) if kind == "causal" else rows["right_context"]
    return list(zip(rows["context"], right, rows["number"], strict=True))


# ---- the files of a run --------------------------------------------------------------------------


def write_run(
    folder: Path, predictions: Sequence[Predictions], settings: Sequence[Setting], *, kind: Kind
) -> None:
    """Writes the predictions of a run and, where there are any, the EW and MW of its contexts.

    Args:
        folder: run directory.
        predictions: of each setting.
        settings: the rows that each of them answers, in the same order.
        kind: of the model; a causal one saw the left context alone.
    """
    contexts: dict[Context, ContextValues] = {}
    for part, setting in zip(predictions, settings, strict=True):
        if any(part.agreement):
            keys = _contexts(setting.stimuli.columns(), kind)
            pairs = zip(keys, part.agreement, strict=True)
            contexts |= {key: value for key, value in pairs if value is not None}
    if contexts:
        write_agreement(folder / EW_AND_MW, contexts)
    write(folder / PREDICTIONS, predictions)


def read_run(
    folder: Path, stimuli: Mapping[str, Stimuli], kind: Kind
) -> dict[str, dict[SettingKey, Predictions]]:
    """Returns task -> (perturbation, run) -> predictions in the order of the task's rows.

    Args:
        folder: run directory.
        stimuli: task -> its rows.
        kind: of the model.

    Raises:
        BadInput: a file is missing or damaged, or its ids are not the ids of the rows.
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
    if AGREEMENT in stimuli and (folder / EW_AND_MW).exists():
        values = read_agreement(folder / EW_AND_MW)
        keys = _contexts(stimuli[AGREEMENT].columns(), kind)
        if missing := [context for context in keys if context not in values]:
            where = folder / EW_AND_MW
            raise BadInput(f"{where} lacks the context {missing[0]}: run again with --overwrite")
        for key, part in runs[AGREEMENT].items():
            runs[AGREEMENT][key] = replace(part, agreement=[values[context] for context in keys])
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
    """Returns the predictions at some positions."""
    given = {name: values for name in (*PER_ROW, "agreement") if (values := getattr(part, name))}
    columns: dict[str, Any] = {name: [of[i] for i in places] for name, of in given.items()}
    return replace(part, **columns)


def ids(names: Sequence[str]) -> str:
    """Returns how many ids and the first few, as the start of a message.

    >>> ids(["a", "b", "c", "d"])
    '4 ids (a, b, c, …)'
    """
    named = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"id {named}" if len(names) == 1 else f"{len(names)} ids ({named})"
