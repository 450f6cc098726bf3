"""The surprisal of every word: of some texts, as a table, or of the words of human measures."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from lmdiag.analysis.human import HumanTable, SurprisalSource, log_frequencies
from lmdiag.analysis.procedures import ENTROPY, SURPRISAL
from lmdiag.analysis.selection import needs_entropy
from lmdiag.controls import text_warning
from lmdiag.files import write_atomically
from lmdiag.protocol import bos_remark
from lmdiag.results import model_slug
from lmdiag.runs.asking import ask
from lmdiag.runs.journal import Journal
from lmdiag.types import Sentence

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.models import LoadOptions, Model

WordColumn = Literal["length", "log_frequency"]
"""A column that a table has on demand."""


class WordSurprisal(NamedTuple):
    """A row of the table.

    Attributes:
        text: number of the text, from 1.
        position: of the word in the text, from 1.
        word: as it stands in the text; blanks separate words.
        start: position of its first character in the text, from 0.
        surprisal: -log2 p, bits; None for a word without a probability, see `types.WordSpan`.
        n_tokens: its sub-tokens; 0 where the tokenizer cannot represent it.
        entropy: over tokens, before its first token, bits; None where not asked for, and see
            `types.SentenceAnswer`.
    """

    text: int
    position: int
    word: str
    start: int
    surprisal: float | None
    n_tokens: int
    entropy: float | None = None


def word_surprisals(
    model: Model, texts: Sequence[str], *, entropy: bool = False, **how: Any
) -> list[WordSurprisal]:
    """Returns a row per word of the texts, in their order; equal texts are asked once.

    Args:
        model: a masked or a causal model.
        texts: sentences, or texts of any length. One without a word has a number, but no rows.
        entropy: ask for entropies, too.
        how: batch_size, journal and label, see `ask`.

    Raises:
        BadInput: the model cannot score sentences (encoder-decoder models), or not one of these; a
            server is asked for entropies.
    """
    # Blanks around a text are not read: they would be tokens of their own.
    distinct = filter(None, dict.fromkeys(map(str.strip, texts)))
    questions = [Sentence(text, entropy=entropy) for text in distinct]
    answers = ask(model, questions, top=0, **how)
    words = {
        asked.text: [*zip_longest(answer.words, answer.entropies)]  # which may be ()
        for asked, answer in zip(questions, answers, strict=True)
    }
    rows = []
    for number, text in enumerate(texts, start=1):
        before = len(text) - len(text.lstrip())
        for position, (span, bits_before) in enumerate(words.get(text.strip(), ()), start=1):
            start = before + span.start
            end = before + span.end
            bits = None if span.log_prob is None else 0.0 - span.log_prob / math.log(2)
            scores = bits, span.n_tokens, bits_before
            rows.append(WordSurprisal(number, position, text[start:end], start, *scores))
    return rows


def to_arrow(
    rows: Sequence[WordSurprisal], columns: Sequence[WordColumn] = (), language: str = "en"
) -> pa.Table:
    """Returns the rows as a table with the same types for all texts.

    Args:
        rows: the words.
        columns: further ones: length (characters), log_frequency (log2 of the word's proportion).
        language: of the frequencies.

    Raises:
        BadInput: see `log_frequencies`.
    """
    import pyarrow as pa

    whole = pa.int64()
    types = (whole, whole, pa.string(), whole, pa.float64(), whole, pa.float64())
    schema = pa.schema(list(zip(WordSurprisal._fields, types, strict=True)))
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema)
    words = [row.word for row in rows]
    for name in columns:
        values = [*map(len, words)] if name == "length" else log_frequencies(words, language)
        kind = whole if name == "length" else pa.float64()
        table = table.append_column(name, pa.array(values, kind, from_pandas=True))
    return table


def ask_about_words(
    model: Model,
    options: LoadOptions,
    table: HumanTable,
    *,
    output: Path | None = None,
    batch_size: int | None = None,
    label: str | None = None,
) -> SurprisalSource:
    """Returns the surprisals of the words of a table, in the units of the procedure.

    The words of each text, joined by blanks, are what the model reads. Entropies are asked for
    where the procedure needs them.

    Args:
        model: a masked or a causal model.
        options: how it was loaded.
        table: the rows, and which columns place them.
        output: folder that keeps answers, so that an interrupted run resumes and a finished one is
            not asked again; None to keep nothing.
        batch_size, label: see `ask`.

    Raises:
        BadInput: the procedure names no column of words, a word has a blank, or the model cannot
            score texts, or has no entropies (a server).
    """
    columns = (SURPRISAL, ENTROPY) if needs_entropy(table) else (SURPRISAL,)
    texts = table.running_texts()
    info = model.info
    facts = [info.id, info.commit, info.dtype, str(info.quantization), str(info.server)]
    facts += [options.unit, str(options.bos), str(options.pll), *columns[1:], *texts.values()]
    identity = json.dumps(facts)
    name = f"words-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    folder = output and output / model_slug(info.id, info.revision, info.name) / name
    if folder and (folder / "surprisals.json").is_file():
        asked = json.loads((folder / "surprisals.json").read_text("utf-8"))
    else:
        journal = Journal(folder / "journal", owner=identity) if folder else None
        how: dict[str, Any] = {"batch_size": batch_size, "journal": journal, "label": label}
        rows = word_surprisals(model, [*texts.values()], entropy=ENTROPY in columns, **how)
        asked = [getattr(row, column) for column in columns for row in rows]
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / "surprisals.json", json.dumps(asked).encode())
            shutil.rmtree(folder / "journal", ignore_errors=True)
    in_units = math.log(2) if table.procedure.units == "nats" else 1.0
    values = np.array(asked, dtype=float).reshape(len(columns), -1) * in_units  # None becomes NaN
    values = values[:, table.word]
    warning = text_warning(model, {f"text {name}": text for name, text in texts.items()}, "text")
    remarks = filter(None, (bos_remark(options, info, "sentence"), warning))
    entropy = values[1] if ENTROPY in columns else None
    return SurprisalSource(info.name or info.id, values[0], "", "; ".join(remarks), entropy)
