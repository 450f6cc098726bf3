"""The surprisal of every word: of texts and their files, or of the words of human measures."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pandas import DataFrame, concat

from lmdiag.analysis.human import HumanTable, SurprisalSource, with_word_columns
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
from lmdiag.asking.rules import reset_ineffective
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
from lmdiag.text import describe_shared_tokens
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

    Its columns are those of `_TYPES`: `text` is the number of the text, from 1, also counting texts
    without a word. Equal texts are asked once.

    Args:
        cuts: of each text, the positions, in characters, where a word is cut in two; () for none.
        entropy: ask for the entropy before each word, too.
        how: further arguments of `ask`.
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
    """Returns the tables of `word_surprisals` after each layer as one, with a column `layer`.

    `model` is one that `Model.at_layers` returns; the other arguments are those of
    `word_surprisals`.
    """
    sentences = _sentences(texts, cuts, entropy=entropy)
    questions = _distinct(sentences)
    answers = ask(model, questions, top=0, **how)
    answers_by_layer: list[tuple[SentenceAnswer, ...]]
    if answers:  # to each question an answer of each layer
        answers_by_layer = list(zip(*answers, strict=True))
    else:  # no text has a word
        answers_by_layer = [()] * len(model.layer_numbers)
    table_of_layer = {}
    for layer, answers_of_layer in zip(model.layer_numbers, answers_by_layer, strict=True):
        table_of_layer[layer] = _word_table(texts, sentences, questions, answers_of_layer)
    # the layer, a level of the index, becomes the first column, and rows are numbered anew
    table = concat(table_of_layer, names=["layer"])
    return table.reset_index(level="layer").reset_index(drop=True)


def _sentences(
    texts: Sequence[str], cuts: Sequence[Sequence[int]], *, entropy: bool
) -> list[Sentence]:
    """Returns the texts as sentences, without white space around them.

    White space at the ends would become tokens of its own. Cuts are positions in the text, and
    become positions in the sentence: of "  don't", the cut 4 becomes 2.

    Args:
        cuts: for each text, the positions at which a word is cut in two; () for none.
        entropy: ask for the entropy before each word, too.
    """
    sentences = []
    for text, positions in zip(texts, cuts or [()] * len(texts), strict=True):
        n_spaces = len(text) - len(text.lstrip())
        moved_cuts = tuple(position - n_spaces for position in positions)
        sentences.append(Sentence(text.strip(), moved_cuts, entropy=entropy))
    return sentences


def _distinct(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Returns the sentences that have a text, each once, in their order."""
    return [sentence for sentence in dict.fromkeys(sentences) if sentence.text]


def _word_table(
    texts: Sequence[str],
    sentences: Sequence[Sentence],
    questions: Sequence[Sentence],
    answers: Sequence[SentenceAnswer],
) -> DataFrame:
    """Returns the table of `word_surprisals`.

    Args:
        texts: as they were given.
        sentences: of each text, without white space around it.
        questions: the distinct sentences.
        answers: to each question.
    """
    answer_of = dict(zip(questions, answers, strict=True))
    rows = []
    sharing_of_word = list[str]()
    for number, (text, sentence) in enumerate(zip(texts, sentences, strict=True), start=1):
        n_spaces = len(text) - len(text.lstrip())
        answer = answer_of.get(sentence, SentenceAnswer(()))  # an empty text is not asked
        sharing_of_word += _sharing_neighbours(answer.words)
        # `entropies` is as long as `words`, or empty
        words = zip_longest(answer.words, answer.entropies)
        for position, (span, entropy) in enumerate(words, start=1):
            start = n_spaces + span.start
            word = text[start : n_spaces + span.end]
            surprisal = None  # NaN in the table
            if span.log_prob is not None and not span.shares_token:
                # bits; 0.0 - x, and not -x, which would be -0.0 for a probability of 1
                surprisal = 0.0 - span.log_prob / math.log(2)
            rows.append((number, position, word, start, surprisal, span.n_tokens, entropy))
    table = DataFrame(rows, columns=[*_TYPES]).astype(_TYPES)
    if any(sharing_of_word):
        table[SHARES_TOKEN] = sharing_of_word
    return table


def _sharing_neighbours(words: Sequence[WordSpan]) -> list[str]:
    """Returns for each word which neighbour it shares a token with: "previous", "next" or "".

    If `shares_token` is true of a word, its characters are in the last token of the word before it.
    For the words "New", "York" and "is", of which "York" has no token of its own, the list is
    ["next", "previous", ""].
    """
    neighbours = []
    for word, following in zip_longest(words, words[1:]):
        if word.shares_token:
            neighbours.append("previous")
        elif following and following.shares_token:
            neighbours.append("next")
        else:
            neighbours.append("")
    return neighbours


def shared_tokens_warning(table: DataFrame) -> str | None:
    """Returns a line on the words without a token of their own; None if there are none.

    For example, "1 word that begins in a token of the word before (is a) has no surprisal; that of
    the word before is of both".

    Args:
        table: surprisals, as `word_surprisals` or `layer_surprisals` returns them. The words of the
            line have "previous" in the column `SHARES_TOKEN`.
    """
    if SHARES_TOKEN not in table:
        return None
    if "layer" in table:  # all layers have the same words and tokens
        table = table[table["layer"] == table["layer"].iloc[0]]
    word_groups = list[str]()  # each of these words after the words before it in its token
    group = ""
    for word, neighbour in table[["word", SHARES_TOKEN]].itertuples(index=False):
        if neighbour == "previous":
            group = f"{group} {word}"
            word_groups.append(group)
        else:
            group = word
    verb = "has" if len(word_groups) == 1 else "have"
    words = describe_shared_tokens(word_groups)
    return f"{words} {verb} no surprisal; that of the word before is of both"


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

    The model reads the running texts of the table. Entropies are asked for where the procedure
    needs them.

    Args:
        model: the model to ask.
        options: how the model was loaded.
        table: the words, with human measures.
        layers: layers after which the model answers: numbers, or "all"; () for the last one alone.
        output: folder in which the model's answers are kept; None to keep none.
        batch_size, label, on_progress: see `ask`.

    Returns:
        a pair for each of `layers`, in ascending order, or a single pair without layers. A pair has
        the surprisals, and the options by which the model was asked. These have the number of the
        layer; of the last layer they have None, as they do without layers.
    """
    has_entropy = needs_entropy(table)
    # name of a text -> the text; name -> positions where its words are cut in two; the place of
    # each word of the table among the words of all texts
    texts, cuts_of_text, places = table.running_texts()
    cuts = [cuts_of_text.get(name, ()) for name in texts]
    info = model.info
    # everything beside the model that decides the answers
    journal_facts = [options.unit, str(options.bos), str(options.pll)]
    if has_entropy:
        journal_facts.append(ENTROPY)
    journal_facts += texts.values()
    if cuts_of_text:
        journal_facts.append(str(cuts_of_text))
    inner_layers: Sequence[int | None] = [None]  # None is the last layer
    with kept_answers(output, info, what="words", facts=journal_facts) as journal:
        ask_options: dict[str, Any] = {
            "cuts": cuts, "entropy": has_entropy, "batch_size": batch_size, "journal": journal,
            "label": label, "on_progress": on_progress,
        }  # fmt: skip
        if layers:
            layers_model = model.at_layers(layers)
            inner_layers = layers_model.layers
            words = layer_surprisals(layers_model, [*texts.values()], **ask_options)
        else:
            words = word_surprisals(model, [*texts.values()], **ask_options)
    options, ineffective = reset_ineffective(options, info, "sentence")
    remarks = "; ".join(
        [*table.gap_notes(), *ineffective, *_remarks_on_answers(model, options, texts, words)]
    )
    units_per_bit = math.log(2) if table.procedure.units == "nats" else 1.0
    # The table of human measures has a row per word and reader, that of surprisals one per word:
    # for each row of the first, the number of the row in the second.
    rows = places[table.word_of_row]
    sources = []
    # the groups are in ascending order of layers, as `inner_layers` is
    words_of_layers = words.groupby("layer") if layers else [(None, words)]
    for inner_layer, (layer, words_of_layer) in zip(inner_layers, words_of_layers, strict=True):
        surprisals = words_of_layer[SURPRISAL].to_numpy()[rows] * units_per_bit
        entropies = None
        if has_entropy:
            entropies = words_of_layer[ENTROPY].to_numpy()[rows] * units_per_bit
        neighbours = None
        if SHARES_TOKEN in words_of_layer:
            neighbours = words_of_layer[SHARES_TOKEN].to_numpy(object)[rows]
        asked_options = replace(options, layer=inner_layer) if layers else options
        name = model_label(info, asked_options)
        source = SurprisalSource(
            name, surprisals, note=remarks, entropy=entropies, layer=layer, shares_token=neighbours
        )
        sources.append((source, asked_options))
    return sources


def _remarks_on_answers(
    model: Model, options: LoadOptions, texts: Mapping[str, str], words: DataFrame
) -> list[str]:
    """Returns a line for each thing that readers should know about surprisals of a model.

    The lines are about the beginning-of-sequence token, the files of the model, names of control
    tokens in texts, and words without a token of their own.

    Args:
        model: the model that was asked.
        options: how it was asked.
        texts: name -> text.
        words: the surprisals, a table of `word_surprisals` or `layer_surprisals`.
    """
    shared = shared_tokens_warning(words)
    if shared:
        shared = f"{model_label(model.info, options)}: {shared}"
    lines = [
        bos_remark(options, model.info, "sentence"),
        model.warning,
        control_warning(model, {f"text {name}": text for name, text in texts.items()}),
        shared,
    ]
    return [line for line in lines if line]


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
        """Returns the surprisals of all words of these texts with the names and words of the table.

        `surprisals` is a table of `LanguageModel.surprisals`.
        """
        if "layer" not in surprisals:
            return self._of_layer(surprisals)
        parts = [self._of_layer(part) for _, part in surprisals.groupby("layer")]
        return concat(parts, ignore_index=True)

    def _of_layer(self, surprisals: DataFrame) -> DataFrame:
        """Returns the table of `of_table` for surprisals after one layer."""
        # the column text has the number of the text, from 1
        with_names = surprisals.assign(text=[self.names[n - 1] for n in surprisals["text"]])
        if self.words is None:
            return with_names
        # from the order of the words in the texts to their order in the table
        positions = self.words.place_of_word["position"].to_numpy()
        words = with_names.iloc[self.words.running_texts().places].reset_index(drop=True)
        are_integers = (positions % 1 == 0).all()
        return words.assign(position=positions.astype(int) if are_integers else positions)


def read_texts(path: Path, options: TableOptions = AS_IT_IS, sentence: str = "") -> NamedTexts:
    """Returns the texts of a table, which has a row per text or a row per word.

    The name of a text is the number of its row; or, of a text whose words have a row each, its
    value in the column of texts.

    Args:
        path: of the table.
        options: how it is read.
        sentence: of a table with a row per word, the column of the texts in which the words stand;
            "" if there is none.
    """
    columns = PLACES | {"sentence", "region"}
    table = read_rows(
        path, options, columns,
        raw=True,  # "NA" may be a word
        reads=("separator",),  # divides sentences in regions
        copies=True,  # columns stay under the user's names, too
    )  # fmt: skip
    # the columns of words, positions and texts, as `fit` finds them; "" for one that is not there
    profile = procedure_for(table.columns, None, Procedure(response="surprisal", sentence=sentence))
    profile = with_word_columns(profile, table.columns)
    has_texts = profile.text or is_one_text(table.columns)
    has_words = profile.position and profile.word and has_texts
    if has_words and not _has_texts_as_rows(table, profile):  # a row per word
        words = HumanTable(as_frame(table, raw=True), path.name, profile, table.notes)
        texts, cuts, _ = words.running_texts()
        notes = (*words.notes, *words.gap_notes())
        cuts_of_texts = [cuts.get(name, ()) for name in texts]
        return NamedTexts([*texts.values()], [*texts], notes, cuts_of_texts, words)
    # a row per text
    if sentence:
        rule = "--sentence is for tables with a row per word: leave it out"
        raise BadInput(f"{path}: {rule}, or name {_NAMED_WORDS}")
    # parts of sentences are put together: those of a row into its sentence
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
    """Returns the name of the column that has the texts, "sentence" or "text".

    If the table has both columns, it is the one that the user named by --columns, or else the one
    whose values are texts. `BadInput` if the table has neither, or if both may be meant.
    """
    existing = [name for name in ("sentence", "text") if name in table.columns]
    candidates = [name for name in existing if name in table.chosen] or existing
    columns_of_texts = TableLayout(table.columns).of_kind("text", "question")
    if len(candidates) > 1:
        candidates = [name for name in candidates if name in columns_of_texts] or candidates
    if len(candidates) == 1:
        return candidates[0]
    rule = "a table needs one column text or sentence; give other texts as a .txt file"
    options_of_words = naming_option(table.columns, "surprisal")
    if options_of_words:
        rule = f"if it has a row per word, give {options_of_words}"
    elif columns_of_texts:
        choices = [shlex.quote(f"sentence={name}") for name in columns_of_texts]
        rule = f"name the texts, --columns {' or '.join(choices)}"
    raise BadInput(f"{table.name} has the columns {', '.join(table.source_names())}: {rule}")


def _has_texts_as_rows(table: Table, profile: Profile) -> bool:
    """Whether the rows of a table are whole texts, and not words.

    In a table with a row per word, the column `profile.text` has the name of the text in which a
    word stands. If most of its values have several words, and no column has single words, the
    values are the texts themselves.
    """
    values = [str(value).strip() for value in table.columns.get(profile.text, ())]
    n_texts = sum(" " in value for value in values)
    return n_texts > len(table) / 2 and not columns_of_words(table.columns)
