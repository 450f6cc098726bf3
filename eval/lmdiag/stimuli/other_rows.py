"""What a table without stimuli has, as words or responses, and which command reads it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag.stimuli.kinds import MOST_LABELS
from lmdiag.stimuli.layouts import TableLayout, as_typed, named_options
from lmdiag.stimuli.names import NAMES_OF_RESPONSES, is_outcome, named
from lmdiag.stimuli.word_rows import word_rows
from lmdiag.text import folded
from lmdiag.types import TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame


class OtherRows(NamedTuple):
    """What a table without stimuli has.

    Attributes:
        command: that reads it.
        what: its rows, in words.
        columns: name that the command reads -> column.
        texts: further columns that tell texts apart.
        wide: columns of responses, of which a row has several.
    """

    command: Literal["surprisal", "cloze", "analyse", ""]
    what: str
    columns: Mapping[str, str]
    texts: Sequence[str] = ()
    wide: Sequence[str] = ()

    @property
    def option(self) -> str:
        """The option that names the columns; "" if it is not needed."""
        if self.command == "analyse":
            item = shlex.quote(self.columns["item"])
            response = shlex.quote(self.columns["response"])
            option = f"--response {response}" if folded(response) != "surprisal" else ""
            return option if folded(item) == "item" else f"{option} --item {item}".strip()
        is_known = all(folded(name) == field for field, name in self.columns.items())
        columns = () if is_known else named_options(self.columns)
        if self.texts:  # which take the place of a column text, unless it is named, too
            names = [self.columns["text"], *self.texts]
            columns = tuple(x for x in columns if not x.startswith("text="))
            columns = (*(f"text={name}" for name in names), *columns)
        return as_typed(TableOptions(columns=columns, wide=tuple(self.wide)))

    def text(self) -> str:
        """Returns what it is, for which command, and with which option."""
        if not self.command:
            return f"{self.what}, which no command reads"
        fit = " and `lmdiag fit`" if self.command == "surprisal" else ""
        what = f"{self.what}: for `lmdiag {self.command}`{fit}"
        return f"{what}, with {self.option}" if self.option else what


def other_rows(layout: TableLayout) -> OtherRows | None:
    """Returns what a table without stimuli has, and for which command."""
    numbers = _numbers(layout)
    if numbers and (folded(numbers.columns["response"]), layout.item) == ("surprisal", "item"):
        return numbers
    return words_of_texts(layout) or responses(layout) or _word_list(layout) or numbers


def words_of_texts(layout: TableLayout) -> OtherRows | None:
    """Returns a row per word of a text: its position counts words, and most are single words."""
    found = word_rows(layout)
    if not found:
        return None
    first, *others = found.texts or ("",)
    columns = {"text": first} if first else {}
    columns |= {"position": found.position, "word": found.word}
    what = "a row per word" if first else "a row per word of one text"
    return OtherRows("surprisal", what, columns, others)


def responses(layout: TableLayout) -> OtherRows | None:
    """Returns a row per response to a context."""
    contexts = [x for x in named("context", layout.values) if layout.kinds[x] == "text"]
    contexts = contexts or [
        name
        for name in layout.of_kind("text", "question")
        if folded(name) == "sentence" or layout.has_gaps(name)
    ]
    readers = named("reader", layout.values)
    names = named("response", layout.values)
    names = [x for x in names if layout.kinds[x] in ("word", "label", "text")]
    names = [x for x in names if x not in contexts]
    if not contexts:
        return None
    field = "sentence" if layout.has_gaps(contexts[0]) else "context"
    has_items = layout.item and layout.values[layout.item].are_groups
    columns = ({"item": layout.item} if has_items else {}) | {field: contexts[0]}
    what = "responses of people"
    if wide := _wide_responses(layout, contexts[0]):
        return OtherRows("cloze", what, columns, wide=wide)
    if not names or not (readers or folded(names[0]) in NAMES_OF_RESPONSES):
        return None
    return OtherRows("cloze", what, columns | {"response": names[0]})


def _wide_responses(layout: TableLayout, context: str) -> list[str]:
    """The columns with a response each to the context of a row.

    Their names differ in numbers alone, and some of them have the same response in many rows,
    as words of conditions never have.
    """
    for names in layout.numbered_words():
        rows = zip(*(layout.texts(name) for name in names), strict=True)
        said = [[word.strip().casefold() for word in row if word.strip()] for row in rows]
        said = [words for words in said if len(words) > 1]
        n_shared = sum(len({*words}) < len(words) for words in said)
        if context not in names and said and 4 * n_shared >= len(said):
            return names
    return []


def _word_list(layout: TableLayout) -> OtherRows | None:
    """A row per word with its norms, as frequency: nothing that is read to a model."""
    words = [x for x in layout.of_kind("word", "label") if len(layout.values[x].levels) > 1]
    others = {layout.kinds[name] for name in layout.values} - {"word", "label", "empty"}
    is_list = words and not named("reader", layout.values) and others == {"number"}
    first = layout.values[words[0]] if is_list else None
    if first is None or 10 * len(first.levels) < 9 * first.n_filled:
        return None
    return OtherRows("", "a list of words and their norms", {"word": words[0]})


def _numbers(layout: TableLayout) -> OtherRows | None:
    """A row per item and response in numbers, in a table without texts."""
    items = [x for x in named("target", layout.values) if _repeats(layout, x)]
    item = next(iter((*filter(None, [layout.item]), *items)), "")
    if layout.of_kind("text") or not item:
        return None
    numbers = [x for x in layout.of_kind("number") if x != layout.item]
    outcomes = [*named("outcome", numbers), *filter(is_outcome, numbers)]
    outcomes = [x for x in outcomes if len(layout.values[x].levels) > 2]
    never = {*named("reader", numbers), *named("position", numbers), *named("text", numbers)}
    never |= {*named("list", numbers), *named("item", numbers)}
    never |= {x for x in numbers if folded(x) == "region"}
    others = [x for x in numbers if len(layout.values[x].levels) > 2 and x not in never]
    others.sort(key=lambda x: len(layout.values[x].levels) <= MOST_LABELS)
    surprisal = [x for x in numbers if folded(x) == "surprisal"]
    response = [*surprisal, *outcomes, *others][:1]
    if not response:
        return None
    columns = {"item": item, "response": response[0]}
    return OtherRows("analyse", "responses in numbers", columns)


def _repeats(layout: TableLayout, name: str) -> bool:
    """Whether a column has words of which each stands in two rows on average."""
    values = layout.values[name]
    return layout.kinds[name] == "word" and 2 * len(values.levels) <= values.n_filled


def naming_option(columns: Mapping[str, Sequence[Any]], command: str) -> str:
    """Returns the option that names the columns for `surprisal` or `cloze`; "" for none."""
    layout = TableLayout(columns)
    found = words_of_texts(layout) if command == "surprisal" else responses(layout)
    return found.option if found else ""


def columns_of_words(columns: Mapping[str, Sequence[Any]] | DataFrame) -> Mapping[str, str]:
    """Returns text, position and word -> columns of a table with a row per word; {} for others.

    The key `text` is missing if no column identifies the texts.
    """
    found = words_of_texts(TableLayout(dict(columns.items())))
    return found.columns if found else {}


def is_one_text(columns: Mapping[str, Sequence[Any]] | DataFrame) -> bool:
    """Returns whether a table has a row per word, and no column that tells texts apart."""
    found = columns_of_words(columns)
    return bool(found) and "text" not in found
