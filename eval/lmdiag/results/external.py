"""Reads predictions of other programs: JSON lines or Parquet with `id`, `top_words`, `log_prob`.

For whole sentences, `log_prob` is the sum over their words, and `n_tokens` the number of tokens;
both follow from `words` where these are given. Either `top_words` or `log_prob` may be absent from
all rows, and rows may be absent: what the others allow is computed. All values are checked, and an
error names file and line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.reading import has_file, parquet_names, read_json_lines, read_parquet, readable
from lmdiag.results.predictions import (
    PREDICTION_COLUMNS,
    align,
    read,
    read_sentences,
    sentence_schema,
    take,
)
from lmdiag.types import BadInput, SentenceAnswer, WordSpan

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_ROUNDING = 1e-6
"""Nats by which a float32 log-probability of a certain word may exceed 0."""

_WORD_STARTS = (" ", "Ġ", "▁")
"""How tokenizers mark the beginning of a word: as text, in byte-level BPE, and in SentencePiece."""

_COLUMNS = (*PREDICTION_COLUMNS[:-1], "words")

Record = tuple[str, Mapping[str, Any]]
"""Where a prediction is ("FILE:3"), and its values."""


@dataclass(frozen=True)
class External:
    """Predictions of another program, or of a run's file.

    Attributes:
        runs: one for each shuffle of a shuffled setting of a run's file, otherwise one; in the
            order of the rows.
        missing: ids of the rows that have no prediction; in `runs`, all their values are None.
        notes: a line for each thing that was changed in what was read.
    """

    runs: list[Predictions]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_external(path: Path, stimuli: Stimuli, setting: str = "none") -> External:
    """Returns the predictions in a file for the rows of a task, in the order of the rows.

    Args:
        path: JSON lines or Parquet. From a run's own `predictions.parquet`, the task and setting
            asked for are taken.
        stimuli: the rows.
        setting: perturbation to take from a run's file.

    Raises:
        BadInput: no such file, a malformed line (file and line are named), values that cannot be
            log-probabilities, ids that are repeated or unknown, and missing ones in a run's file.
    """
    rows = stimuli.columns()["id"]
    if not has_file(path):
        raise BadInput(f"{path} does not exist: --predictions takes a file or a run directory")
    parquet = _is_parquet(path)
    if parquet and {*PREDICTION_COLUMNS, "perturbation", "run"} <= set(parquet_names(path)):
        parts = _parts_of_a_run(path, set(rows), setting)
        return External([align(part, rows, str(path)) for part in parts])
    if parquet and set(sentence_schema().names) <= set(parquet_names(path)):
        [sentences] = read_sentences(path).values()
        return External([align(_of_rows(sentences, set(rows)), rows, str(path))])
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    records = _parquet_records(path) if parquet else read_json_lines(path)
    part, notes = to_predictions(records, str(path))
    given = set(part.id)
    missing = tuple(row for row in rows if row not in given)
    part = align(_with_empty(part, missing), rows, str(path))
    _check_spans(part, stimuli, str(path))
    return External([part], missing, tuple(notes))


def _with_empty(part: Predictions, missing: tuple[str, ...]) -> Predictions:
    """Predictions with further rows, which have no values."""
    columns = {name: getattr(part, name) for name in _COLUMNS if name != "id"}
    empty = [None] * len(missing)
    filled: dict[str, Any] = {
        name: column + empty if column else [] for name, column in columns.items()
    }
    return replace(
        part, id=[*part.id, *missing], top_log_probs=[*part.top_log_probs, *empty], **filled
    )


def _check_spans(part: Predictions, stimuli: Stimuli, where: str) -> None:
    """Refuses words that lie outside of their sentence."""
    texts = stimuli.columns().get("sentence", [])
    for row, words, text in zip(part.id, part.words, texts, strict=False):
        if words and words[-1].end > len(text):
            raise BadInput(
                f"{where}: a word of {row} ends at {words[-1].end}, but its sentence has "
                f"{len(text)} characters: give positions in the sentence of the data"
            )


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
    table = read_parquet(path, [name for name in _COLUMNS if name in names])
    for number, record in enumerate(table.to_pylist(), start=1):
        yield f"{path}, row {number}", record


# ---- records -------------------------------------------------------------------------------------


def to_predictions(records: Iterable[Record], where: str) -> tuple[Predictions, list[str]]:
    """Returns checked predictions in the order of the records, and notes on what was changed.

    Args:
        records: each with its place, for messages.
        where: names all of them in messages.

    Returns:
        the predictions, and a line if the mark of a word's beginning was removed from top words.

    Raises:
        BadInput: a malformed record, no records, or nothing in them that can be scored.
    """
    columns: dict[str, Any] = {name: [] for name in _COLUMNS}
    marked = 0
    for place, record in records:
        if not isinstance(record.get("id"), str):
            raise BadInput(f"{place}: id is {record.get('id')!r:.60}; it must be the id of a row")
        top_words = _top_words(record.get("top_words"), place)
        marked += sum(word.startswith(_WORD_STARTS) for word in top_words or ())
        words = _words(record.get("words"), place)
        total = SentenceAnswer(words or ())
        log_prob = _log_prob(record.get("log_prob", total.log_prob), f"{place}: log_prob")
        columns["id"].append(record["id"])
        columns["log_prob"].append(log_prob)
        columns["rank"].append(_count(record.get("rank"), f"{place}: rank"))
        counted = words and all(word.get("n_tokens") is not None for word in record["words"])
        n_tokens = record.get("n_tokens", total.n_tokens if counted else None)
        columns["n_tokens"].append(_count(n_tokens, f"{place}: n_tokens"))
        columns["top_words"].append(top_words and [_bare(word, place) for word in top_words])
        columns["words"].append(words)
        for name in ("top_words", "words"):
            if (columns[name][0] is None) != (columns[name][-1] is None):
                raise BadInput(f"{place}: {name} are given for some ids only; give all or none")
    if not columns["id"]:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for name in ("top_words", "log_prob") for value in columns[name]):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    if columns["words"][0] is None:
        columns["words"] = []
    notes = [f"{where}: the leading space (or Ġ, ▁) of {marked} top words was removed"]
    unknown: list[Any] = [None] * len(columns["id"])
    return Predictions(**columns, top_log_probs=unknown), notes if marked else []


def _bare(word: str, where: str) -> str:
    """A top word without the mark of its beginning.

    Several words may be one target ("New York"); other white space makes a word that no expected
    word can equal.
    """
    bare = word[1:] if word.startswith(_WORD_STARTS) else word
    if " ".join(bare.split()) != bare:
        raise BadInput(
            f"{where}: top_words has {word!r:.60}: remove the white space, but for one space "
            'before a word (for a token of white space alone, give "")'
        )
    return bare


def _log_prob(value: Any, where: str) -> float | None:
    """A log-probability in nats; None for a word that could not be scored."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where} is {value!r:.60}; it must be a number or null")
    if math.isnan(value):
        raise BadInput(f"{where} is NaN; write null for a word that has no score")
    if value > _ROUNDING:
        raise BadInput(f"{where} is {value}; the natural log of a probability is never above 0")
    return min(float(value), 0.0)


def _top_words(value: Any, where: str) -> list[str] | None:
    if value is None or (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        return value
    raise BadInput(f"{where}: top_words is {value!r:.60}; it must be a list of words, best first")


def _words(value: Any, where: str) -> tuple[WordSpan, ...] | None:
    """The words of a sentence, in the form of `predictions.parquet`."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(word, Mapping) for word in value):
        raise BadInput(f"{where}: words is {value!r:.60}; it must be a list of objects")
    spans: list[WordSpan] = []
    for number, word in enumerate(value, start=1):
        name = f"{where}: word {number}"
        start, end = (_count(word.get(key), f"{name}: {key}") for key in ("start", "end"))
        if start is None or end is None or not (spans[-1].end if spans else 0) <= start <= end:
            raise BadInput(
                f"{name} is from {start} to {end}; give start and end of each word, in characters, "
                "in the order of the sentence"
            )
        log_prob = _log_prob(word.get("log_prob"), f"{name}: log_prob")
        n_tokens = _count(word.get("n_tokens"), f"{name}: n_tokens") or 0
        spans.append(WordSpan(start, end, log_prob, n_tokens))
    return tuple(spans)


def _count(value: Any, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise BadInput(f"{where} is {value!r:.60}; it must be an integer from 0 up")
