"""Reads predictions of other programs: JSON lines or Parquet with `id`, `top_words`, `log_prob`.

For whole sentences, `log_prob` is the sum over their words, and `n_tokens` the number of tokens;
both follow from `words` where these are given. Either `top_words` or `log_prob` may be absent from
all rows, and rows may be absent: what the others allow is computed. All values are checked, and an
error names file and line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.results.predictions import PREDICTION_COLUMNS, Record, align, of_records, read, take
from lmdiag.types import BadInput, SentenceAnswer, WordSpan

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_WORD_STARTS = (" ", "Ġ", "▁")
"""How tokenizers mark the beginning of a word: as text, in byte-level BPE, and in SentencePiece."""


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
    parts, names_settings = read(path)
    if names_settings:
        runs = [part for key, part in sorted(parts.items()) if key[0] == setting]
        if not runs:
            raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
        known = set(rows)
        chosen = [take(run, [i for i, row in enumerate(run.id) if row in known]) for run in runs]
        return External([align(run, rows, str(path)) for run in chosen])
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    part, notes = _normalised(parts["none", 0], str(path))
    given = set(part.id)
    missing = tuple(row for row in rows if row not in given)
    part = align(_with_empty(part, missing), rows, str(path))
    _check_spans(part, stimuli, str(path))
    return External([part], missing, tuple(notes))


def _with_empty(part: Predictions, missing: tuple[str, ...]) -> Predictions:
    """Predictions with further rows, which have no values."""
    columns: dict[str, Any] = {name: getattr(part, name) for name in PREDICTION_COLUMNS[1:]}
    empty = [None] * len(missing)
    filled = {name: column + empty if column else [] for name, column in columns.items()}
    return replace(part, id=[*part.id, *missing], **filled)


def _check_spans(part: Predictions, stimuli: Stimuli, where: str) -> None:
    """Refuses words that lie outside of their sentence."""
    texts = stimuli.columns().get("sentence", [])
    for row, words, text in zip(part.id, part.words, texts, strict=False):
        if words and words[-1].end > len(text):
            raise BadInput(
                f"{where}: a word of {row} ends at {words[-1].end}, but its sentence has "
                f"{len(text)} characters: give positions in the sentence of the data"
            )


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
    return _normalised(of_records(records), where)


def _normalised(part: Predictions, where: str) -> tuple[Predictions, list[str]]:
    """See `to_predictions`; the values are those that a run records."""
    if not part.id:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for value in (*part.top_words, *part.log_prob, *part.words)):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    for name in ("top_words", "words"):
        given = [value is not None for value in getattr(part, name)]
        if any(given) and not all(given):
            without = part.id[given.index(False)]
            raise BadInput(f"{where}: {name} are not given for id {without}; give all or none")
    log_prob, n_tokens = part.log_prob, part.n_tokens
    if part.words:
        sums = [SentenceAnswer(_counted(words)) for words in part.words]
        if all(value is None for value in log_prob):
            log_prob = [total.log_prob for total in sums]
        if all(value is None for value in n_tokens):
            n_tokens = [
                None if any(word.n_tokens is None for word in words or ()) else total.n_tokens
                for words, total in zip(part.words, sums, strict=True)
            ]
    top_words = [
        None if words is None else [_bare(word, f"{where}: id {row}") for word in words]
        for row, words in zip(part.id, part.top_words, strict=True)
    ]
    marked = sum(word.startswith(_WORD_STARTS) for words in part.top_words for word in words or ())
    return replace(
        part,
        log_prob=[None if value is None else min(float(value), 0.0) for value in log_prob],
        n_tokens=n_tokens,
        top_words=top_words,
        words=[_counted(words) for words in part.words],
    ), [f"{where}: the leading space (or Ġ, ▁) of {marked} top words was removed"] if marked else []


def _counted(words: tuple[WordSpan, ...] | None) -> tuple[WordSpan, ...]:
    """The words of a sentence, with 0 for numbers of tokens that are not given."""
    return tuple(word._replace(n_tokens=word.n_tokens or 0) for word in words or ())


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
