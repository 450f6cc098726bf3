"""Predictions of other programs: JSON lines or Parquet with `id`, `top_words`, `log_prob`.

Either `top_words` or `log_prob` may be absent from all rows, and rows may be absent: what the
others allow is computed (`docs/specification.md`, section 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import Predictions
from lmdiag.results.predictions import (
    PER_ROW,
    UNNAMED,
    Record,
    align,
    of_records,
    places_of,
    read,
    take,
)
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
    parts = read(path)
    if UNNAMED not in parts:
        runs = [part for key, part in sorted(parts.items()) if key[0] == setting]
        if not runs:
            raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
        known = set(rows)
        chosen = [take(run, [i for i, row in enumerate(run.id) if row in known]) for run in runs]
        return External([align(run, rows, str(path)) for run in chosen])
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    part, notes = _normalised(parts[UNNAMED], str(path))
    place = places_of(part, rows, str(path))
    columns: dict[str, list[Any]] = {name: getattr(part, name) for name in PER_ROW[1:]}
    in_order: dict[str, Any] = {
        name: [values[place[row]] if row in place else None for row in rows]
        for name, values in columns.items()
        if values
    }
    for row, words, text in zip(
        rows, in_order.get("words", ()), stimuli.columns().get("sentence", ()), strict=False
    ):
        if words and words[-1].end > len(text):
            raise BadInput(
                f"{path}: a word of {row} ends at {words[-1].end}, but its sentence has "
                f"{len(text)} characters: give positions in the sentence of the data"
            )
    missing = tuple(row for row in rows if row not in place)
    return External([replace(part, id=list(rows), **in_order)], missing, tuple(notes))


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
    """The predictions with the values that a run records, and notes; see `to_predictions`."""
    if not part.id:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for value in (*part.top_words, *part.log_prob, *part.words)):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    for name in ("top_words", "words"):
        lacking = [
            row for row, value in zip(part.id, getattr(part, name), strict=False) if value is None
        ]
        if 0 < len(lacking) < len(part.id):
            raise BadInput(f"{where}: {name} are not given for id {lacking[0]}; give all or none")
    log_prob, n_tokens = part.log_prob, part.n_tokens
    words: list[tuple[WordSpan, ...] | None] = [
        tuple(word._replace(n_tokens=word.n_tokens or 0) for word in spans or ())
        for spans in part.words
    ]
    sums = [SentenceAnswer(spans or ()) for spans in words]
    if sums and all(value is None for value in log_prob):
        log_prob = [answer.log_prob for answer in sums]
    if sums and all(value is None for value in n_tokens):
        n_tokens = [
            None if any(word.n_tokens is None for word in spans or ()) else answer.n_tokens
            for spans, answer in zip(part.words, sums, strict=True)
        ]
    marked = 0
    top_words: list[list[str] | None] = []
    for row, tops in zip(part.id, part.top_words, strict=True):
        marked += sum(word.startswith(_WORD_STARTS) for word in tops or ())
        bare = [word[1:] if word.startswith(_WORD_STARTS) else word for word in tops or ()]
        for word, text in zip(tops or (), bare, strict=True):
            if " ".join(text.split()) != text:  # no expected word could equal it
                raise BadInput(
                    f"{where}: id {row}: top_words has {word!r:.60}: remove the white space, but "
                    'for one space before a word (for a token of white space alone, give "")'
                )
        top_words.append(None if tops is None else bare)
    log_prob = [None if value is None else min(value, 0.0) for value in log_prob]
    changed = replace(part, log_prob=log_prob, n_tokens=n_tokens, top_words=top_words, words=words)
    note = f"{where}: the leading space (or Ġ, ▁) of {marked} top words was removed"
    return changed, [note] if marked else []
