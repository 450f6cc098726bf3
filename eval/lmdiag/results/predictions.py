"""Predictions on disk (`docs/specification.md`): reading, writing, and their order.

`predictions.parquet` has a row per stimulus, perturbation and shuffle, `agreement.parquet` one per
distinct context with its EW and MW. Of rows that are whole sentences, `predictions.parquet` has the
words instead of ranks and top words. The same predictions give the same bytes, and a file is there
whole or not at all. What other programs made is read by `lmdiag.results.external`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Predictions
from lmdiag.reading import read_parquet
from lmdiag.results.folder import EW_AND_MW, PREDICTIONS, advice_to_overwrite
from lmdiag.types import AGREEMENT, BadInput, Kind, WordSpan
from lmdiag.writing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.measures import Columns
    from lmdiag.questions import Setting
    from lmdiag.stimuli import Stimuli

PREDICTION_COLUMNS = ("id", "log_prob", "rank", "n_tokens", "top_words", "top_log_probs")
"""Columns of `predictions.parquet` that are fields of `Predictions`, row by row."""
_ROUNDING = 0.01
"""Nats by which the log-probability of a certain word may exceed 0, in any precision."""
_NAMED = 3
"""Ids that a message names before it only counts."""

SettingKey = tuple[str, int]
"""A setting: (perturbation, run)."""
Context = tuple[str, str, str | None]
"""A context as it was asked: (context, right context or "", right number)."""
ContextValues = tuple[float | None, ...]


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
    if any(part.words for part in predictions):
        _write_sentences(folder / PREDICTIONS, predictions)
    else:
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
    whole = all(rows.diagnostic.asks == "sentence" for rows in stimuli.values())
    parts = (read_sentences if whole else read)(folder / PREDICTIONS)
    return by_row(parts, values, stimuli, kind, folder)


def by_row(
    parts: Mapping[SettingKey, Predictions],
    values: Mapping[Context, ContextValues] | None,
    stimuli: Mapping[str, Stimuli],
    kind: Kind,
    folder: Path,
) -> dict[str, dict[SettingKey, Predictions]]:
    """Sorts the content of the two files of a run by the rows of its tasks; see `read_run`."""
    file = folder / PREDICTIONS
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
    """Returns the columns of `predictions.parquet`."""
    import pyarrow as pa

    words, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
    return pa.schema(
        {
            "id": pa.string(),
            "perturbation": pa.string(),
            "run": pa.int32(),
            "log_prob": pa.float64(),
            "rank": pa.int32(),
            "n_tokens": pa.int32(),
            "top_words": words,
            "top_log_probs": numbers,
        }
    )


def sentence_schema() -> pa.Schema:
    """Returns the columns of `predictions.parquet` of whole sentences."""
    import pyarrow as pa

    start, end = pa.field("start", pa.int32()), pa.field("end", pa.int32())
    numbers = [pa.field("log_prob", pa.float64()), pa.field("n_tokens", pa.int32())]
    words = pa.list_(pa.struct([start, end, *numbers]))
    return pa.schema([("id", pa.string()), *numbers, ("words", words)])


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
            {name: getattr(part, name) for name in PREDICTION_COLUMNS}
            | {
                "perturbation": [part.perturbation] * len(part.id),
                "run": [part.run] * len(part.id),
            },
            schema(),
        )
        for part in predictions
    ]
    _save(path, pa.concat_tables(parts) if parts else schema().empty_table())


def read(path: Path) -> dict[SettingKey, Predictions]:
    """Returns (perturbation, run) -> predictions, in the order of the file.

    Raises:
        BadInput: the file is missing, is not Parquet or has other columns; a number cannot be a
            log-probability; a list of top words is damaged.
    """
    parts = by_setting(_load(path, schema()), path)
    for part in parts.values():
        _refuse_impossible(part.id, part.log_prob, path)
        tops = zip(part.id, part.top_words, part.top_log_probs, strict=True)
        if damaged := [row for row, words, said in tops if not _is_whole(words, said)]:
            raise BadInput(
                f"{path}: the top words of {ids(damaged)} are damaged: run again with --overwrite"
            )
    return parts


def _is_whole(words: list[str] | None, log_probs: list[float] | None) -> bool:
    """Whether a list of top words has no gaps, and a log-probability for each word if for any."""
    if None in (words or ()) or any(map(_is_impossible, log_probs or ())):
        return False
    return log_probs is None or (None not in log_probs and len(log_probs) == len(words or ()))


def by_setting(table: pa.Table, path: Path) -> dict[SettingKey, Predictions]:
    """Returns (perturbation, run) -> predictions, from the columns of `predictions.parquet`.

    Raises:
        BadInput: NaN for a log-probability, null for an id or a setting.
    """
    _refuse_nulls(table, ("id", "perturbation", "run"), path)
    columns = table.to_pydict()
    nan = [row for row, p in zip(columns["id"], columns["log_prob"], strict=True) if p != p]
    if nan:
        raise BadInput(f"{path}: the log_prob of {ids(nan)} is NaN: run again with --overwrite")
    places: dict[SettingKey, list[int]] = {}
    for i, key in enumerate(zip(columns.pop("perturbation"), columns.pop("run"), strict=True)):
        places.setdefault(key, []).append(i)
    whole = Predictions(**columns)
    return {
        key: replace(take(whole, where), perturbation=key[0], run=key[1])
        for key, where in places.items()
    }


def _refuse_nulls(table: pa.Table, names: Sequence[str], path: Path) -> None:
    for name in names:
        if table.column(name).null_count:
            raise BadInput(f"{path}: {name} is null in some row: run again with --overwrite")


def _refuse_impossible(rows: Sequence[str], log_probs: Sequence[float | None], path: Path) -> None:
    if wrong := [row for row, p in zip(rows, log_probs, strict=True) if _is_impossible(p)]:
        raise BadInput(
            f"{path}: the log_prob of {ids(wrong)} is NaN or above 0: run again with --overwrite"
        )


def _is_impossible(log_prob: float | None) -> bool:
    return log_prob is not None and not log_prob <= _ROUNDING


def _write_sentences(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of whole sentences, of several tasks, in the order given."""
    import pyarrow as pa

    parts: list[dict[str, Sequence[Any]]] = [
        {
            "id": part.id,
            "log_prob": part.log_prob,
            "n_tokens": part.n_tokens,
            "words": [[word._asdict() for word in words or ()] for words in part.words],
        }
        for part in predictions
    ]
    tables = [_table(part, sentence_schema()) for part in parts]
    _save(path, pa.concat_tables(tables))


def read_sentences(path: Path) -> dict[SettingKey, Predictions]:
    """Returns the predictions of whole sentences, which have one setting; see `read`."""
    table = _load(path, sentence_schema())
    _refuse_nulls(table, ("id",), path)
    _refuse_impossible(table["id"].to_pylist(), table["log_prob"].to_pylist(), path)
    lists = table.column("words").combine_chunks()
    columns = [column.to_pylist() for column in lists.flatten().flatten()]
    if any(None in columns[i] for i in (0, 1, 3)) or any(map(_is_impossible, columns[2])):
        raise BadInput(f"{path}: the words of a sentence are damaged: run again with --overwrite")
    spans = iter([WordSpan(*word) for word in zip(*columns, strict=True)])
    n_rows = len(table)
    predictions = Predictions(
        id=table.column("id").to_pylist(),
        log_prob=table.column("log_prob").to_pylist(),
        rank=[None] * n_rows,
        n_tokens=table.column("n_tokens").to_pylist(),
        top_words=[None] * n_rows,
        top_log_probs=[None] * n_rows,
        words=[tuple(islice(spans, n or 0)) for n in lists.value_lengths().to_pylist()],
    )
    return {("none", 0): predictions}


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
    return by_context(_load(path, agreement_schema()))


def by_context(table: pa.Table) -> dict[Context, ContextValues]:
    """Returns context -> EW and MW, from the columns of `agreement.parquet`."""
    columns = table.to_pydict().values()
    return {(row[0], row[1], row[2]): row[3:] for row in zip(*columns, strict=True)}


def _table(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def _save(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file so that at any moment either the old or the new one is there, whole."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")


def _load(path: Path, schema: pa.Schema) -> pa.Table:
    """Returns a Parquet file's columns of a schema, every value checked.

    Raises:
        BadInput: the file is missing or is not Parquet; a column is missing or of another type.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist: `lmdiag run` writes it")
    with advice_to_overwrite():
        return read_parquet(path, schema=schema)


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
    columns: dict[str, Any] = {
        name: [getattr(part, name)[i] for i in where] for name in PREDICTION_COLUMNS
    }
    for name in ("agreement", "words"):  # which not all predictions have
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
