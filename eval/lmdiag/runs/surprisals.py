"""The surprisal of every word: of some texts, as a table, or of the words of human measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.analysis.human import HumanTable, SurprisalSource
from lmdiag.analysis.procedures import ENTROPY, SURPRISAL
from lmdiag.analysis.selection import needs_entropy
from lmdiag.protocol import bos_remark
from lmdiag.results.models import model_label
from lmdiag.runs.asking import ask, control_warning
from lmdiag.runs.journal import kept_answers
from lmdiag.types import Sentence

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.models import LoadOptions, Model

WordColumn = Literal["length", "log_frequency"]
"""A column that a table has on demand."""

_TYPES = {
    "text": "int64", "position": "int64", "word": "str", "start": "int64",
    "surprisal": "float64", "n_tokens": "int64", "entropy": "float64",
}  # fmt: skip
"""Column of a table of words -> its type, which it has without words, too."""


def word_surprisals(
    model: Model, texts: Sequence[str], *, entropy: bool = False, **how: Any
) -> DataFrame:
    """Returns a table with a row per word of the texts, in their order; see `api.surprisals`.

    Equal texts are asked once.

    Args:
        model: a masked or a causal model.
        texts: sentences, or texts of any length. One without a word has a number, but no rows.
        entropy: ask for entropies, too; without them, its column is missing.
        how: batch_size, journal and label, see `ask`.

    Raises:
        BadInput: the model cannot score sentences (encoder-decoder models), or not one of these; a
            server is asked for entropies.
    """
    from pandas import DataFrame

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
            word = text[start : before + span.end]
            bits = None if span.log_prob is None else 0.0 - span.log_prob / math.log(2)
            rows.append((number, position, word, start, bits, span.n_tokens, bits_before))
    return DataFrame(rows, columns=[*_TYPES]).astype(_TYPES)


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
    facts = [options.unit, str(options.bos), str(options.pll), *columns[1:], *texts.values()]
    with kept_answers(output, info, "words", facts) as journal:
        words = word_surprisals(
            model, [*texts.values()], entropy=ENTROPY in columns, batch_size=batch_size,
            journal=journal, label=label,
        )  # fmt: skip
    in_units = math.log(2) if table.procedure.units == "nats" else 1.0
    values = words[[*columns]].to_numpy().T[:, table.word_in_texts[table.word]] * in_units
    warning = control_warning(model, {f"text {name}": text for name, text in texts.items()})
    bos = bos_remark(options, info, "sentence")
    remarks = filter(None, (table.gap_note(), bos, model.warning, warning))
    entropy = values[1] if ENTROPY in columns else None
    return SurprisalSource(model_label(info), values[0], "", "; ".join(remarks), entropy)
