"""The surprisal of every word: of texts and their files, or of the words of human measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pandas import DataFrame, concat

from lmdiag.analysis.human import HumanTable, SurprisalSource, with_places
from lmdiag.analysis.procedures import ENTROPY, PLACES, SURPRISAL, Procedure, procedure_for
from lmdiag.analysis.selection import needs_entropy
from lmdiag.protocol import bos_remark
from lmdiag.results.models import model_label
from lmdiag.rules import effective
from lmdiag.runs.asking import ask, control_warning
from lmdiag.runs.journal import kept_answers
from lmdiag.stimuli.forms import form_of, refuse_fragments, with_regions
from lmdiag.stimuli.kinds import values_of
from lmdiag.stimuli.other_rows import is_one_text, naming_option
from lmdiag.stimuli.reading import read_rows
from lmdiag.stimuli.table import text_problem
from lmdiag.table_files import MISSING, as_frame
from lmdiag.types import AS_IT_IS, BadInput, Sentence, SentenceAnswer, TableOptions

if TYPE_CHECKING:
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

    Equal texts are asked once. A text without a word has a number, but no rows. `entropy` asks for
    entropies, too; `how` are further arguments of `ask`.
    """
    questions = _sentences(texts, entropy=entropy)
    return _word_table(texts, questions, ask(model, questions, top=0, **how))


def layer_surprisals(
    model: Model, texts: Sequence[str], *, entropy: bool = False, **how: Any
) -> DataFrame:
    """Returns the tables of `word_surprisals` after each layer, whose number is in `layer`.

    `model` is one that `Model.at_layers` returns.
    """
    questions = _sentences(texts, entropy=entropy)
    answers = ask(model, questions, top=0, **how)
    by_layer = zip(*answers, strict=True) if answers else [()] * len(model.layer_numbers)
    tables = [_word_table(texts, questions, answers_of) for answers_of in by_layer]
    return (
        concat(dict(zip(model.layer_numbers, tables, strict=True)), names=["layer"])
        .reset_index(level="layer")
        .reset_index(drop=True)
    )


def _sentences(texts: Sequence[str], *, entropy: bool) -> list[Sentence]:
    """The distinct texts; blanks around one are not read: they would be tokens of their own."""
    distinct = filter(None, dict.fromkeys(map(str.strip, texts)))
    return [Sentence(text, entropy=entropy) for text in distinct]


def _word_table(
    texts: Sequence[str], questions: Sequence[Sentence], answers: Sequence[SentenceAnswer]
) -> DataFrame:
    """The table of `word_surprisals`, of the answers to the distinct texts."""
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
    layers: Sequence[str | int] = (),
    output: Path | None = None,
    batch_size: int | None = None,
    label: str | None = None,
) -> list[tuple[SurprisalSource, LoadOptions]]:
    """Returns the surprisals of the words of a table, in the units of the procedure.

    The words of each text, joined by blanks, are what the model reads. Entropies are asked for
    where the procedure needs them. `output` keeps answers, see `kept_answers`.

    Returns:
        one source, or one for each of `layers`, see `Model.at_layers`; and how the model was asked,
        after its last layer as without layers.
    """
    columns = (SURPRISAL, ENTROPY) if needs_entropy(table) else (SURPRISAL,)
    texts = table.running_texts()
    info = model.info
    facts = [options.unit, str(options.bos), str(options.pll), *columns[1:], *texts.values()]
    how: dict[str, Any] = {"entropy": ENTROPY in columns, "batch_size": batch_size, "label": label}
    after: Sequence[int | None] = [None]
    with kept_answers(output, info, "words", facts) as journal:
        if layers:
            layered = model.at_layers(layers)
            after = layered.layers
            words = layer_surprisals(layered, [*texts.values()], journal=journal, **how)
        else:
            words = word_surprisals(model, [*texts.values()], journal=journal, **how)
    in_units = math.log(2) if table.procedure.units == "nats" else 1.0
    options, ineffective = effective(options, info, "sentence")
    warning = control_warning(model, {f"text {name}": text for name, text in texts.items()})
    bos = bos_remark(options, info, "sentence")
    remarks = "; ".join(filter(None, (table.gap_note(), *ineffective, bos, model.warning, warning)))
    sources = []
    of_layers = words.groupby("layer") if layers else [(None, words)]
    for inner, (layer, table_of) in zip(after, of_layers, strict=True):
        values = table_of[[*columns]].to_numpy().T[:, table.word_in_texts[table.word]] * in_units
        entropy = values[1] if ENTROPY in columns else None
        asked = replace(options, layer=inner) if layers else options
        name = model_label(info, asked)
        source = SurprisalSource(name, values[0], "", remarks, entropy, layer)
        sources.append((source, asked))
    return sources


class NamedTexts(NamedTuple):
    """Texts and what they are called.

    Attributes:
        texts: what a model reads.
        names: of the texts.
        notes: how the table was read.
        words: the words of the table, where it has a row per word; None for texts.
    """

    texts: list[str]
    names: list[int | str]
    notes: tuple[str, ...] = ()
    words: HumanTable | None = None

    def of_table(self, surprisals: DataFrame) -> DataFrame:
        """Returns a table of `LanguageModel.surprisals` with the names and words of the table."""
        if "layer" in surprisals:
            return concat(
                [self._of_layer(part) for _, part in surprisals.groupby("layer")], ignore_index=True
            )
        return self._of_layer(surprisals)

    def _of_layer(self, surprisals: DataFrame) -> DataFrame:
        """The same of a table without layers, or with one."""
        named = surprisals.assign(text=[self.names[n - 1] for n in surprisals["text"]])
        if self.words is None:
            return named
        positions = self.words.words["position"].to_numpy()
        words = named.iloc[self.words.word_in_texts].reset_index(drop=True)
        whole = (positions % 1 == 0).all()
        return words.assign(position=positions.astype(int) if whole else positions)


def read_texts(path: Path, options: TableOptions = AS_IT_IS) -> NamedTexts:
    """Returns the texts of a table: those of its rows, or of its words.

    A text of a row is called by the number of the row; a text of several rows as in its column.
    """
    columns = PLACES | {"sentence", "region"}
    table = read_rows(path, options, columns, raw=True, reads=("separator",), copies=True)
    how = procedure_for(table.columns, None, Procedure(response="surprisal"))
    how = with_places(how, table.columns)
    names_of_texts = [str(name).strip() for name in table.columns.get(how.text, ())]
    are_texts = sum(" " in name for name in names_of_texts) > len(table) / 2
    has_texts = how.text or is_one_text(table.columns)
    if how.position and how.word and has_texts and not are_texts:
        words = HumanTable(as_frame(table, raw=True), path.name, how, table.notes)
        texts = words.running_texts()
        gaps = [note for note in [words.gap_note()] if note]
        return NamedTexts([*texts.values()], [*texts], (*words.notes, *gaps), words)
    if form_of(table.columns) == "sentences":
        refuse_fragments(table)
        table = with_regions(table, options.separator)
    names = [name for name in ("text", "sentence") if name in table.columns]
    if len(names) != 1:
        rule = "a table needs one column text or sentence; give other texts as a .txt file"
        if remedy := naming_option(table.columns, "surprisal"):
            rule = f"if it has a row per word, give {remedy}"
        raise BadInput(f"{path} has the columns {', '.join(table.columns)}: {rule}")
    texts_of_rows = table.columns[names[0]]
    if values_of(texts_of_rows).is_number:
        rule = "name the columns of a row per word by --columns text=A position=B word=C"
        raise BadInput(f"{path}: the column {names[0]} has numbers, and no text: {rule}")
    for row, text in enumerate(texts_of_rows):
        if not isinstance(text, str) or text.strip() in MISSING:
            raise table.error(row, f"the column {names[0]} is empty or not text")
        if problem := text_problem("sentence", text):
            raise table.error(row, f"the column {names[0]} {problem}")
    return NamedTexts([*texts_of_rows], table.labels("below"), table.notes)
