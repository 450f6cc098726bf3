"""Predictions on disk (`docs/specification.md`): reading, writing, and their order.

`predictions.parquet` has a row per stimulus, perturbation and shuffle, `agreement.parquet` one per
distinct context with its EW and MW. Rows that are whole sentences have words instead of ranks and
top words. The same predictions give the same bytes, and a file is there whole or not at all. Files
of other programs have the same columns, of which most may be absent; `lmdiag.results.external`
makes them fit the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.files import has_file, parquet_names, read_json_lines, read_parquet, readable, replacing
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Predictions
from lmdiag.results.folder import EW_AND_MW, PREDICTIONS, advice_to_overwrite
from lmdiag.types import AGREEMENT, BadInput, Kind, WordSpan

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.measures import Columns
    from lmdiag.questions import Setting
    from lmdiag.stimuli import Stimuli

PREDICTION_COLUMNS = (
    "id", "log_prob", "rank", "n_tokens", "top_words", "top_log_probs", "words",
)  # fmt: skip
"""Columns of `predictions.parquet` with a value per row in `Predictions`."""
SETTING_COLUMNS = ("perturbation", "run")
"""Its columns with one value in `Predictions`."""
_ROUNDING = 0.01
"""Nats by which the log-probability of a certain word may exceed 0, in any precision."""
_NAMED = 3
"""Ids that a message names before it only counts."""

SettingKey = tuple[str, int]
"""A setting: (perturbation, run)."""
Context = tuple[str, str, str | None]
"""A context as it was asked: (context, right context or "", right number)."""
ContextValues = tuple[float | None, ...]
Record = tuple[str, Mapping[str, Any]]
"""Where a prediction is ("FILE:3"), and its values by column."""


# ---- a run's own files --------------------------------------------------------------------------


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
        if any(value is not None for value in part.agreement):
            keys = contexts_of(setting.stimuli.columns(), kind)
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
    values = None
    if (folder / EW_AND_MW).exists() and AGREEMENT in stimuli:
        values = read_agreement(folder / EW_AND_MW)
    file = folder / PREDICTIONS
    with advice_to_overwrite():
        parts, _ = read(file)
    runs: dict[str, dict[SettingKey, Predictions]] = {task: {} for task in stimuli}
    for key, part in parts.items():
        for task, own in _by_task(part, stimuli, file).items():
            runs[task][key] = align(own, stimuli[task].columns()["id"], where=str(file))
    if lacking := [task for task, parts in runs.items() if not parts]:
        raise BadInput(f"{file} has no predictions for {lacking[0]}: run again with --overwrite")
    if values is not None:
        _attach(runs[AGREEMENT], values, folder / EW_AND_MW, stimuli[AGREEMENT], kind)
    return runs


def _by_task(
    part: Predictions, stimuli: Mapping[str, Stimuli], file: Path
) -> dict[str, Predictions]:
    """Returns task -> the predictions for its rows.

    Raises:
        BadInput: some are for no row of any task.
    """
    owner = {row: task for task, rows in stimuli.items() for row in rows.columns()["id"]}
    places: dict[str, list[int]] = {}
    for i, row in enumerate(part.id):
        places.setdefault(owner.get(row, ""), []).append(i)
    if foreign := [part.id[i] for i in places.get("", [])]:
        raise BadInput(f"{file}: {ids(foreign)} in none of the tasks {', '.join(stimuli)}")
    return {task: take(part, where) for task, where in places.items()}


def _attach(
    runs: dict[SettingKey, Predictions],
    values: Mapping[Context, ContextValues],
    file: Path,
    rows: Stimuli,
    kind: Kind,
) -> None:
    """Gives each row of agreement, in all `runs`, the EW and MW of its context.

    Raises:
        BadInput: there are none for a row's context.
    """
    try:
        own: list[ContextValues | None] = [values[key] for key in contexts_of(rows.columns(), kind)]
    except KeyError as error:
        raise BadInput(f"{file} lacks the context {error}: run again with --overwrite") from None
    for key, part in runs.items():
        runs[key] = replace(part, agreement=own)


def contexts_of(rows: Columns, kind: Kind) -> list[Context]:
    """Returns the context of each row as a model of this kind is asked it."""
    right = [""] * len(rows["id"]) if kind == "causal" else rows["right_context"]
    return list(zip(rows["context"], right, rows["number"], strict=True))


# ---- the files ----------------------------------------------------------------------------------


def schema() -> pa.Schema:
    """Returns the columns of `predictions.parquet`; `words` are those of whole sentences."""
    import pyarrow as pa

    place = {"start": pa.int32(), "end": pa.int32()}
    word = pa.struct(place | {"log_prob": pa.float64(), "n_tokens": pa.int32()})
    return pa.schema(
        {
            "id": pa.string(),
            "perturbation": pa.string(),
            "run": pa.int32(),
            "log_prob": pa.float64(),
            "rank": pa.int32(),
            "n_tokens": pa.int32(),
            "top_words": pa.list_(pa.string()),
            "top_log_probs": pa.list_(pa.float64()),
            "words": pa.list_(word),
        }
    )


def agreement_schema() -> pa.Schema:
    """Returns the columns of `agreement.parquet`: a context, then `AGREEMENT_LAYOUT`."""
    import pyarrow as pa

    texts = dict.fromkeys(("context", "right_context", "number"), pa.string())
    return pa.schema(texts | dict.fromkeys(AGREEMENT_LAYOUT, pa.float64()))


def write(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of several settings to one Parquet file, in the order given."""
    import pyarrow as pa

    parts = [
        _table(
            {name: getattr(part, name) or [None] * len(part.id) for name in PREDICTION_COLUMNS}
            | {name: [getattr(part, name)] * len(part.id) for name in SETTING_COLUMNS},
            schema(),
        )
        for part in predictions
    ]
    _save(path, pa.concat_tables(parts) if parts else schema().empty_table())


def read(path: Path) -> tuple[dict[SettingKey, Predictions], bool]:
    """Returns (perturbation, run) -> predictions, and whether the file names these settings.

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
    if is_parquet:
        known = set(schema().names)
        table = read_parquet(path, [name for name in parquet_names(path) if name in known])
        columns = {name: _values(table, name) for name in table.column_names}
        if "id" not in columns:
            raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
        whole = checked(columns, lambda row: f"{path}, row {row + 1}")
    else:
        whole = of_records(read_json_lines(path))
        columns = {}
    if not set(columns) >= set(SETTING_COLUMNS):
        return {("none", 0): whole}, False
    rows_of: dict[SettingKey, list[int]] = {}
    for row, key in enumerate(zip(columns["perturbation"], columns["run"], strict=True)):
        rows_of.setdefault(key, []).append(row)
    return {
        key: replace(take(whole, rows), perturbation=key[0], run=key[1])
        for key, rows in rows_of.items()
    }, True


def of_records(records: Iterable[Record]) -> Predictions:
    """Returns checked predictions, in the order of the records; see `checked`.

    Args:
        records: the place of a prediction, for messages, and its values by column.
    """
    places, values = tuple(zip(*records, strict=True)) or ((), ())
    columns = {name: [record.get(name) for record in values] for name in PREDICTION_COLUMNS}
    columns["words"] = list(map(_spans, columns["words"]))
    return checked(columns, lambda row: str(places[row]))


def _spans(words: Any) -> Any:
    """The words of a sentence from their JSON objects; anything else stays as it is."""
    if not isinstance(words, list) or not all(isinstance(word, Mapping) for word in words):
        return words
    return tuple(WordSpan(*map(word.get, WordSpan._fields)) for word in words)


def _values(table: pa.Table, name: str) -> list[Any]:
    """The values of a column; words are read by field, since an object for each takes seconds."""
    from pyarrow import types

    column = table[name].combine_chunks()
    if (
        name != "words"
        or not types.is_list(column.type)
        or not types.is_struct(column.type.value_type)
    ):
        return list(column.to_pylist())
    structs = column.flatten()
    fields = {
        field.name: values.to_pylist()
        for field, values in zip(structs.type, structs.flatten(), strict=True)
    }
    unknown: list[Any] = [None] * len(structs)
    spans = map(WordSpan, *(fields.get(field, unknown) for field in WordSpan._fields))
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else tuple(islice(spans, length)) for length in lengths]


# ---- what the columns hold ----------------------------------------------------------------------


def checked(columns: Mapping[str, list[Any]], place: Callable[[int], str]) -> Predictions:
    """Returns the predictions in columns, after a check of every value.

    Args:
        columns: of `schema`; those that are absent are unknown.
        place: names a row, from 0, in messages.

    Raises:
        BadInput: a value is not what its column holds; the message names row and column.
    """
    for name, (is_valid, kind) in _COLUMN_KINDS.items():
        for row, value in enumerate(columns.get(name, ())):
            if not is_valid(value):
                raise BadInput(f"{place(row)}: {name} is {value!r:.60}; it must be {kind}")
    n_rows = len(columns["id"])
    known: dict[str, Any] = {
        name: columns.get(name, [None] * n_rows) for name in PREDICTION_COLUMNS
    }
    pairs = zip(known["top_words"], known["top_log_probs"], strict=True)
    for row, (words, log_probs) in enumerate(pairs):
        if log_probs is not None and len(log_probs) != len(words or ()):
            raise BadInput(
                f"{place(row)}: top_log_probs has {len(log_probs)} values, top_words "
                f"{len(words or ())}: give as many"
            )
    for row, spans in enumerate(known["words"]):
        _check_words(spans or (), place, row)
    if all(spans is None for spans in known["words"]):
        known["words"] = []
    return Predictions(**known)


def _check_words(spans: Sequence[WordSpan], place: Callable[[int], str], row: int) -> None:
    reached = 0
    for number, (start, end, log_prob, n_tokens) in enumerate(spans, start=1):
        if type(start) is not int or type(end) is not int or not reached <= start <= end:
            raise BadInput(
                f"{place(row)}: word {number} is from {start!r:.60} to {end!r:.60}; give start and "
                "end of each word, in characters, in the order of the sentence"
            )
        for name, value in (("log_prob", log_prob), ("n_tokens", n_tokens)):
            is_valid, kind = _COLUMN_KINDS[name]
            if not is_valid(value):
                what = f"{place(row)}: word {number}: {name}"
                raise BadInput(f"{what} is {value!r:.60}; it must be {kind}")
        reached = end


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_log_prob(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and value <= _ROUNDING)


def _is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    is_whole = isinstance(value, list) and None not in value and all(map(is_item, value))
    return value is None or is_whole


_COLUMN_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_text, "the id of a row"),
    "perturbation": (_is_text, "the name of a perturbation"),
    "run": (lambda value: value is not None and _is_count(value), "an integer from 0 up"),
    "log_prob": (
        _is_log_prob,
        "a number, the natural log of a probability, which is never above 0 (null for a word that "
        "has no score)",
    ),
    "rank": (_is_count, "an integer from 0 up"),
    "n_tokens": (_is_count, "an integer from 0 up"),
    "top_words": (lambda value: _is_list(value, _is_text), "a list of words, best first"),
    "top_log_probs": (
        lambda value: _is_list(value, _is_log_prob),
        "a list of natural logs of probabilities",
    ),
    "words": (
        lambda value: value is None or isinstance(value, tuple),
        "a list of objects, one per word",
    ),
}
"""Column -> whether a value is one of its values, and what they are."""


# ---- EW and MW ----------------------------------------------------------------------------------


def write_agreement(path: Path, contexts: Mapping[Context, ContextValues]) -> None:
    """Writes the EW and MW of contexts."""
    rows = [key + value for key, value in contexts.items()]
    names = agreement_schema().names
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    _save(path, _table(dict(zip(names, columns, strict=True)), agreement_schema()))


def read_agreement(path: Path) -> dict[Context, ContextValues]:
    """Inverse of `write_agreement`.

    Raises:
        BadInput: the file is missing, is not Parquet or has other columns.
    """
    with advice_to_overwrite():
        table = read_parquet(path, schema=agreement_schema())
    rows = zip(*table.to_pydict().values(), strict=True)
    return {(row[0], row[1], row[2]): row[3:] for row in rows}


def _table(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def _save(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file so that at any moment either the old or the new one is there, whole."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")


# ---- predictions and rows -----------------------------------------------------------------------


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
    place = {row: i for i, row in enumerate(part.id)}
    if len(place) < len(part.id):
        doubled = [row for row, times in Counter(part.id).items() if times > 1]
        raise BadInput(f"{where}: {ids(doubled)} more than once: give each row one prediction")
    wanted = set(rows)
    if foreign := [row for row in part.id if row not in wanted]:
        raise BadInput(
            f"{where}: {ids(foreign)} not among the rows: take them out, or name their --task"
        )
    if missing := [row for row in rows if row not in place]:
        raise BadInput(f"{where}: {ids(missing)} missing: give every row a prediction")
    return take(part, [place[row] for row in rows])


def take(part: Predictions, where: Sequence[int]) -> Predictions:
    """Returns the predictions at some positions."""
    columns: dict[str, Any] = {}
    for name in (*PREDICTION_COLUMNS, "agreement"):
        column = getattr(part, name)
        columns[name] = [column[i] for i in where] if column else []
    return replace(part, **columns)


def ids(names: Sequence[str]) -> str:
    """Returns how many ids and the first few, as the start of a message.

    >>> ids(["a", "b", "c", "d"])
    '4 ids (a, b, c, …)'
    """
    named = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"id {named}" if len(names) == 1 else f"{len(names)} ids ({named})"
