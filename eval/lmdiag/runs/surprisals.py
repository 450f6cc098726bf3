"""The surprisal of every word: of texts and their files, or of the words of human measures."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pandas import DataFrame, concat

from lmdiag.analysis.human import HumanTable, SurprisalSource, with_places
from lmdiag.analysis.procedures import (
    ENTROPY,
    PLACES,
    SURPRISAL,
    Procedure,
    Profile,
    procedure_for,
)
from lmdiag.analysis.selection import needs_entropy
from lmdiag.asking.protocol import bos_remark
from lmdiag.asking.rules import effective
from lmdiag.results.model_labels import model_label
from lmdiag.runs.asking import ask, control_warning
from lmdiag.runs.journal import kept_answers
from lmdiag.stimuli.proposing.other_rows import columns_of_words, is_one_text, naming_option
from lmdiag.stimuli.reading.conversion import text_problem
from lmdiag.stimuli.reading.forms import form_of, refuse_fragments, with_regions
from lmdiag.stimuli.reading.steps import read_rows
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.tables.table_files import MISSING, Table, as_frame
from lmdiag.text import without_tokens
from lmdiag.types import (
    AS_IT_IS,
    BadInput,
    OnProgress,
    Sentence,
    SentenceAnswer,
    TableOptions,
    WordSpan,
)

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model

WordColumn = Literal["length", "log_frequency"]
"""A column that a table has on demand."""

_TYPES = {
    "text": "int64", "position": "int64", "word": "str", "start": "int64",
    "surprisal": "float64", "n_tokens": "int64", "entropy": "float64",
}  # fmt: skip
"""Column of a table of words -> its type, which it has without words, too."""

SHARES_TOKEN = "shares_token"
"""Column of a table of words where a token covers two of them: "next" and "previous"."""


def word_surprisals(
    model: Model,
    texts: Sequence[str],
    *,
    cuts: Sequence[Sequence[int]] = (),
    entropy: bool = False,
    **how: Any,
) -> DataFrame:
    """Returns a table with a row per word of the texts, in their order; see `api.surprisals`.

    Equal texts are asked once. A text without a word has a number, but no rows. `entropy` asks for
    entropies, too; `how` are further arguments of `ask`.
    """
    sentences = _sentences(texts, cuts, entropy=entropy)
    questions = _distinct(sentences)
    return _word_table(texts, sentences, questions, ask(model, questions, top=0, **how))


def layer_surprisals(
    model: Model,
    texts: Sequence[str],
    *,
    cuts: Sequence[Sequence[int]] = (),
    entropy: bool = False,
    **how: Any,
) -> DataFrame:
    """Returns the tables of `word_surprisals` after each layer, whose number is in `layer`.

    `model` is one that `Model.at_layers` returns.
    """
    sentences = _sentences(texts, cuts, entropy=entropy)
    questions = _distinct(sentences)
    answers = ask(model, questions, top=0, **how)
    by_layer = zip(*answers, strict=True) if answers else [()] * len(model.layer_numbers)
    tables = [_word_table(texts, sentences, questions, answers_of) for answers_of in by_layer]
    return (
        concat(dict(zip(model.layer_numbers, tables, strict=True)), names=["layer"])
        .reset_index(level="layer")
        .reset_index(drop=True)
    )


def _sentences(
    texts: Sequence[str], cuts: Sequence[Sequence[int]], *, entropy: bool
) -> list[Sentence]:
    """The texts without the blanks around them, which would be tokens of their own."""
    sentences = []
    for text, positions in zip(texts, cuts or repeat(()), strict=bool(cuts)):
        before = len(text) - len(text.lstrip())
        moved = tuple(position - before for position in positions)
        sentences.append(Sentence(text.strip(), moved, entropy=entropy))
    return sentences


def _distinct(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The distinct sentences that have a text."""
    return [sentence for sentence in dict.fromkeys(sentences) if sentence.text]


def _word_table(
    texts: Sequence[str],
    sentences: Sequence[Sentence],
    questions: Sequence[Sentence],
    answers: Sequence[SentenceAnswer],
) -> DataFrame:
    """The table of `word_surprisals`, of the answers to the distinct sentences of some texts."""
    words = {
        asked: [*zip_longest(answer.words, answer.entropies)]  # which may be ()
        for asked, answer in zip(questions, answers, strict=True)
    }
    rows = []
    sharing = list[str]()
    for number, (text, sentence) in enumerate(zip(texts, sentences, strict=True), start=1):
        before = len(text) - len(text.lstrip())
        spans = words.get(sentence, [])
        sharing += _sharing([span for span, _ in spans])
        for position, (span, bits_before) in enumerate(spans, start=1):
            start = before + span.start
            word = text[start : before + span.end]
            bits = None
            if span.log_prob is not None and not span.shares_token:
                bits = 0.0 - span.log_prob / math.log(2)
            rows.append((number, position, word, start, bits, span.n_tokens, bits_before))
    table = DataFrame(rows, columns=[*_TYPES]).astype(_TYPES)
    return table.assign(**{SHARES_TOKEN: sharing}) if any(sharing) else table


def _sharing(words: Sequence[WordSpan]) -> list[str]:
    """With which of its neighbours each word of a text shares a token; "" for none."""
    is_shared = [*(word.shares_token for word in words), False]
    pairs = pairwise(is_shared)
    return ["previous" if this else "next" if later else "" for this, later in pairs]


def shared_warning(table: DataFrame) -> str | None:
    """Returns a line on the words without a token of their own; None without any."""
    if SHARES_TOKEN not in table:
        return None
    names = list[str]()
    first = ""
    for word, sharing in table[["word", SHARES_TOKEN]].itertuples(index=False):
        first = f"{first} {word}" if sharing == "previous" else word
        if sharing == "previous":
            names.append(first)
    verb = "has" if len(names) == 1 else "have"
    return f"{without_tokens(names)} {verb} no surprisal; that of the word before is of both"


def ask_about_words(
    model: Model,
    options: LoadOptions,
    table: HumanTable,
    *,
    layers: Sequence[str | int] = (),
    output: Path | None = None,
    batch_size: int | None = None,
    label: str | None = None,
    on_progress: OnProgress | None = None,
) -> list[tuple[SurprisalSource, LoadOptions]]:
    """Returns the surprisals of the words of a table, in the units of the procedure.

    The model reads the running texts of the table. Entropies are asked for
    where the procedure needs them. `output` keeps answers, see `kept_answers`.

    Returns:
        one source, or one for each of `layers`, see `Model.at_layers`; and how the model was asked,
        after its last layer as without layers.
    """
    columns = (SURPRISAL, ENTROPY) if needs_entropy(table) else (SURPRISAL,)
    texts, all_cuts, places = table.running_texts()
    cuts = [all_cuts.get(name, ()) for name in texts]
    info = model.info
    facts = [options.unit, str(options.bos), str(options.pll), *columns[1:], *texts.values()]
    facts += [str(all_cuts)] if all_cuts else []
    how: dict[str, Any] = {"entropy": ENTROPY in columns, "batch_size": batch_size, "label": label}
    how |= {"cuts": cuts, "on_progress": on_progress}
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
    shared = shared_warning(words)
    if shared:
        shared = f"{model_label(info, options)}: {shared}"
    lines = (*table.gap_notes(), *ineffective, bos, model.warning, warning, shared)
    remarks = "; ".join(filter(None, lines))
    sources = []
    of_layers = words.groupby("layer") if layers else [(None, words)]
    for inner, (layer, table_of) in zip(after, of_layers, strict=True):
        values = table_of[[*columns]].to_numpy().T[:, places[table.word]] * in_units
        entropy = values[1] if ENTROPY in columns else None
        asked = replace(options, layer=inner) if layers else options
        name = model_label(info, asked)
        sharing = None
        if SHARES_TOKEN in table_of:
            sharing = table_of[SHARES_TOKEN].to_numpy(object)[places[table.word]]
        source = SurprisalSource(name, values[0], "", remarks, entropy, layer, sharing)
        sources.append((source, asked))
    return sources


_NAMED_WORDS = "--columns text=A position=B word=C"


class NamedTexts(NamedTuple):
    """Texts and what they are called.

    Attributes:
        texts: what a model reads.
        names: of the texts.
        notes: how the table was read.
        cuts: of each text, where a word follows without a space, in characters; () for none.
        words: the words of the table, where it has a row per word; None for texts.
    """

    texts: list[str]
    names: list[int | str]
    notes: tuple[str, ...] = ()
    cuts: Sequence[Sequence[int]] = ()
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
        words = named.iloc[self.words.running_texts().places].reset_index(drop=True)
        whole = (positions % 1 == 0).all()
        return words.assign(position=positions.astype(int) if whole else positions)


def read_texts(path: Path, options: TableOptions = AS_IT_IS, sentence: str = "") -> NamedTexts:
    """Returns the texts of a table: those of its rows, or of its words.

    A text of a row is called by the number of the row; a text of several rows as in its column.
    `sentence` is the column of the full texts in which the words of a table stand.
    """
    columns = PLACES | {"sentence", "region"}
    table = read_rows(path, options, columns, raw=True, reads=("separator",), copies=True)
    how = procedure_for(table.columns, None, Procedure(response="surprisal", sentence=sentence))
    how = with_places(how, table.columns)
    has_texts = how.text or is_one_text(table.columns)
    if how.position and how.word and has_texts and not _has_texts_as_rows(table, how):
        words = HumanTable(as_frame(table, raw=True), path.name, how, table.notes)
        texts, cuts, _ = words.running_texts()
        notes = (*words.notes, *words.gap_notes())
        of_texts = [cuts.get(name, ()) for name in texts]
        return NamedTexts([*texts.values()], [*texts], notes, of_texts, words)
    if sentence:
        rule = "--sentence is for tables with a row per word: leave it out"
        raise BadInput(f"{path}: {rule}, or name {_NAMED_WORDS}")
    if form_of(table.columns) == "sentences":
        refuse_fragments(table)
        table = with_regions(table, options.separator)
    name = _column_of_texts(table)
    texts_of_rows = table.columns[name]
    if values_of(texts_of_rows).is_number:
        rule = f"name the columns of a row per word, {_NAMED_WORDS}"
        raise BadInput(f"{path}: the column {name} has numbers, and no text: {rule}")
    for row, text in enumerate(texts_of_rows):
        if not isinstance(text, str) or text.strip() in MISSING:
            raise table.error(row, f"the column {name} is empty or not text")
        if problem := text_problem("sentence", text):
            raise table.error(row, f"the column {name} {problem}")
    return NamedTexts([*texts_of_rows], table.labels("below"), table.notes)


def _column_of_texts(table: Table) -> str:
    """The column that is read, sentence or text: the one that the user named or that has texts."""
    there = [name for name in ("sentence", "text") if name in table.columns]
    names = [name for name in there if name in table.chosen] or there
    layout = TableLayout(table.columns)
    texts = layout.of_kind("text", "question")
    if len(names) > 1:
        names = [name for name in names if name in texts] or names
    if len(names) == 1:
        return names[0]
    rule = "a table needs one column text or sentence; give other texts as a .txt file"
    if remedy := naming_option(table.columns, "surprisal"):
        rule = f"if it has a row per word, give {remedy}"
    elif texts:
        rule = (
            f"name the texts, --columns {' or '.join(shlex.quote(f'sentence={x}') for x in texts)}"
        )
    raise BadInput(f"{table.name} has the columns {', '.join(table.source_names())}: {rule}")


def _has_texts_as_rows(table: Table, how: Profile) -> bool:
    """Whether each row is of a text of its own, which stands where names of texts would."""
    names = [str(name).strip() for name in table.columns.get(how.text, ())]
    are_texts = sum(" " in name for name in names) > len(table) / 2
    return are_texts and not columns_of_words(table.columns)
