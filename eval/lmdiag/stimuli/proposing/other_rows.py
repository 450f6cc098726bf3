"""What a table without stimuli has, as words or responses, and which command reads it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag.stimuli.proposing.response_columns import response_columns
from lmdiag.stimuli.proposing.word_rows import may_be_response, word_rows
from lmdiag.stimuli.values.codes import combine_codes, is_determined_by, n_distinct
from lmdiag.stimuli.values.items import columns_crossed_with, names_rows
from lmdiag.stimuli.values.kinds import MOST_LABELS, DistinctValues, is_numeral
from lmdiag.stimuli.values.layouts import TableLayout, as_typed, named_options
from lmdiag.stimuli.values.names import is_named_as, is_outcome, named_columns
from lmdiag.text import folded
from lmdiag.types import TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame


_NUMBER = re.compile(r"[-+]?[.,]?\d").match


class OtherRows(NamedTuple):
    """What a table without stimuli has.

    Attributes:
        command: that reads it.
        what: its rows, in words.
        columns: name that the command reads -> column.
        texts: further columns that tell texts apart.
        wide: columns of responses, of which a row has several.
        response: of words, a column of what people did at them; "" for none.
        remedy: of rows that no command reads as they are, which options to look at, or what makes
            them readable.
        items, conditions: of responses in numbers, columns that the user names.
        filter: of responses of which some are words, what leaves the numbers.
    """

    command: Literal["surprisal", "cloze", "analyse", ""]
    what: str
    columns: Mapping[str, str] = MappingProxyType({})
    texts: Sequence[str] = ()
    wide: Sequence[str] = ()
    response: str = ""
    remedy: str = ""
    items: Sequence[str] = ()
    conditions: Sequence[str] = ()
    filter: str = ""

    @property
    def option(self) -> str:
        """The option that names the columns; "" if it is not needed."""
        if self.command != "analyse":
            return as_typed(self.options)
        items = self.items or [self.columns.get("item", "COLUMN")]
        response = self.columns.get("response", "COLUMN")
        words = ["--response", response] if folded(response) != "surprisal" else []
        words += ["--item", *items] if [*map(folded, items)] != ["item"] else []
        words += ["--conditions", *self.conditions] if self.conditions else []
        words += ["--filter", self.filter] if self.filter else []
        return shlex.join(words)

    @property
    def options(self) -> TableOptions:
        """The options that name the columns of words and of responses of people."""
        is_known = all(folded(name) == field for field, name in self.columns.items())
        columns = () if is_known else named_options(self.columns)
        if self.texts:  # which take the place of a column text, unless it is named, too
            names = [self.columns["text"], *self.texts]
            columns = tuple(x for x in columns if not x.startswith("text="))
            columns = (*(f"text={name}" for name in names), *columns)
        return TableOptions(columns=columns, wide=tuple(self.wide))

    def text(self) -> str:
        """Returns what it is, for which command, and with which option."""
        if not self.command:
            return f"{self.what}: {self.remedy}" if self.remedy else self.what
        fit = " and `lmdiag fit`" if self.command == "surprisal" else ""
        what = f"{self.what}: for `lmdiag {self.command}`{fit}"
        return f"{what}, with {self.option}" if self.option else what


def other_rows(layout: TableLayout) -> OtherRows | None:
    """Returns what a table without stimuli has, and for which command."""
    numbers = _numbers(layout)
    if numbers and (folded(numbers.columns["response"]), layout.item) == ("surprisal", "item"):
        return numbers
    return (
        words_of_texts(layout)
        or responses(layout)
        or _word_list(layout)
        or numbers
        or _pieces(layout)
        or _unnamed_numbers(layout)
    )


def words_of_texts(layout: TableLayout) -> OtherRows | None:
    """Returns a row per word of a text, see `word_rows`."""
    found = word_rows(layout)
    if not found:
        return None
    first, *others = found.texts or ("",)
    columns = {"text": first} if first else {}
    columns |= {"position": found.position, "word": found.word}
    what = "a row per word" if first else "a row per word of one text"
    measures = _measures(layout, (*found.texts, found.position, found.word))
    measures = [x for x in measures if may_be_response(layout, found.word, x)]
    return OtherRows("surprisal", what, columns, others, response=next(iter(measures), ""))


def responses(layout: TableLayout) -> OtherRows | None:
    """Returns a row per response to a context, see `response_columns`."""
    found = response_columns(layout)
    return (
        OtherRows("cloze", "responses of people", found.columns, wide=found.wide) if found else None
    )


def _pieces(layout: TableLayout) -> OtherRows | None:
    """A row per region of a sentence."""
    pieces = [name for name in layout.of_kind("text") if layout.are_pieces(name)]
    remedy = "write a sentence per row, with a bar between its regions"
    what = "a row per region of a sentence, which no command reads"
    return OtherRows("", what, remedy=remedy) if pieces else None


def _word_list(layout: TableLayout) -> OtherRows | None:
    """A row per word with its norms, as frequency: nothing that is read to a model."""
    words = [x for x in layout.of_kind("word", "label") if len(layout.values[x].levels) > 1]
    words = [x for x in words if layout.values[x].have_letters]
    others = {layout.kinds[name] for name in layout.values} - {"word", "label", "empty"}
    items = layout.values[layout.item] if layout.item else None
    has_items = items is not None and 2 * len(items.levels) <= items.n_filled
    has_readers = bool(named_columns("reader", layout.values))
    is_list = words and not (has_readers or has_items) and others == {"number"}
    first = layout.values[words[0]] if is_list else None
    if first is None or 10 * len(first.levels) < 9 * first.n_filled:
        return None
    return OtherRows("", "a list of words and their norms, which no command reads")


def _numbers(layout: TableLayout) -> OtherRows | None:
    """A row per item and response in numbers, in a table without texts of sentences."""
    items = [x for x in named_columns("target", layout.values) if _repeats(layout, x)]
    item = next(iter((*filter(None, [layout.item]), *items)), "")
    texts = [x for x in layout.of_kind("text") if not layout.are_pieces(x)]
    texts = [x for x in texts if not layout.name_items(x)]
    measures = _measures(layout, [item])
    if texts or not item or not measures:
        return None
    columns = {"item": item, "response": measures[0]}
    return OtherRows("analyse", "responses in numbers", columns)


def _unnamed_numbers(layout: TableLayout) -> OtherRows | None:
    """Numbers in a table without texts, of which the item or the response has no known name."""
    measures = _measures(layout, [layout.item])
    numbers = [x for x in layout.of_kind("number") if x != layout.item]
    has_texts = layout.of_kind("text") or layout.numbered_words()
    if has_texts or not (measures or (layout.item and numbers)):
        return None
    columns = {"item": layout.item} if layout.item else {}
    known = measures if len(measures) == 1 else [*filter(is_outcome, measures)]
    columns |= {"response": known[0]} if known else {}
    what = "responses in numbers" if columns else "numbers, which may be responses"
    return OtherRows("analyse", what, columns)


def responses_beside_texts(columns: Mapping[str, Sequence[Any]]) -> OtherRows | None:
    """Returns the responses in numbers that stand beside the texts of a table.

    Texts, or items of readers, stand in several rows then. A column of any name has responses where
    it differs between rows with the same texts.
    """
    layout = TableLayout(columns)
    texts = [x for x in layout.of_kind("text", "question") if len(layout.values[x].levels) > 1]
    readers = [layout.values[name] for name in layout.participants]
    has_readers = any(values.are_groups for values in readers)
    item = layout.item if layout.item and layout.values[layout.item].are_groups else ""
    item = item or next((x for x in texts if len(texts) == 1 and layout.values[x].are_groups), "")
    with_units = [x for x in layout.of_kind("word", "label") if _has_numbers(layout, x)]
    names = [x for x in (*layout.of_kind("number"), *with_units) if x != item]
    measures = [name for name in names if _differs_with_one_text(layout, name, texts)]
    if has_readers:
        measures += [x for x in _measures(layout, [item]) if is_outcome(x) and x not in measures]
    measures.sort(key=lambda name: not is_outcome(name))
    if not (item and measures):
        return None
    found = {"item": item, "response": measures[0]}
    # of models that answered the same texts, without other factors
    labels = [x for x in layout.of_kind("label", "word") if x != item]
    are_models = labels == ["model"] and len(layout.values["model"].levels) <= MOST_LABELS
    conditions = labels if are_models else ()
    rows = OtherRows("analyse", "responses in numbers", found, conditions=conditions)
    return rows._replace(filter=filter_of_numbers(layout.values, measures[0]))


def filter_of_numbers(columns: Mapping[str, DistinctValues], response: str) -> str:
    """Returns the condition on another column that rows with numbers meet alone; "" for none."""
    import numpy as np

    values = columns[response]
    if values.is_number:
        return ""
    is_number = np.array([*map(is_numeral, values.levels), False])[values.codes]
    for name, labels in columns.items():
        if name == response or len(labels.levels) > MOST_LABELS:
            continue
        for number, level in enumerate(labels.levels):
            if ((labels.codes == number) == is_number).all():
                return f"{name}={level}"
    return ""


def _differs_with_one_text(layout: TableLayout, name: str, texts: Sequence[str]) -> bool:
    """Whether numbers that do not count rows differ between rows with the same texts."""
    import numpy as np

    values = layout.values[name]
    roles = ("reader", "position", "text", "list", "item", "set")
    is_named_else = any(is_named_as(name, role) for role in roles) and not is_outcome(name)
    if not texts or is_named_else or name in layout.reader_attributes or _are_trials(layout, name):
        return False
    codes = combine_codes(*(layout.values[text].codes for text in texts))
    is_repeated = 2 * n_distinct(codes) <= np.count_nonzero(codes >= 0)
    if not is_repeated or is_determined_by(values.codes, [codes]):
        return False
    return is_outcome(name) or (len(values.levels) > 2 and not values.are_counted)


def _measures(layout: TableLayout, others: Collection[str]) -> list[str]:
    """The columns of numbers that may be responses, surprisal and known names first.

    Numbers that each item has once are those of participants or items; right and wrong come last.
    """
    numbers = [x for x in layout.of_kind("number") if x not in others]
    surprisal = [x for x in numbers if folded(x) == "surprisal"]
    choices = [x for x in numbers if is_outcome(x) and len(layout.values[x].levels) == 2]
    numbers = [x for x in numbers if len(layout.values[x].levels) > 2]
    with_units = [x for x in layout.of_kind("word", "label") if _has_numbers(layout, x)]
    known = [x for x in layout.values if x in numbers or x in with_units]
    outcomes = [*named_columns("outcome", known), *filter(is_outcome, known)]
    outcomes += [name for name in known if folded(name) == "value"]
    roles = ("reader", "position", "text", "list", "item", "count")
    further = [x for x in numbers if not any(is_named_as(x, role) for role in roles)]
    further = [x for x in further if folded(x) != "region" and not _are_trials(layout, x)]
    crossed = [
        y for x in others if x in layout.values for y in columns_crossed_with(x, layout.values)
    ]
    further = [x for x in further if not (names_rows(x) or x in crossed)]
    further.sort(key=lambda x: len(layout.values[x].levels) <= MOST_LABELS)
    return [*dict.fromkeys((*surprisal, *outcomes, *further, *choices))]


def _are_trials(layout: TableLayout, name: str) -> bool:
    """Whether numbers are those of the trials of a reader: each once, up to the rows of one."""
    readers = named_columns("reader", layout.values)
    if not readers:
        return False
    reader = layout.values[readers[0]]
    numbers = layout.values[name]
    is_once = n_distinct(combine_codes(reader.codes, numbers.codes)) == numbers.n_filled
    return is_once and max(map(float, numbers.levels)) <= int(reader.counts.max())


def _has_numbers(layout: TableLayout, name: str) -> bool:
    """Whether most values of a column begin with a number, as `85%` does."""
    levels = layout.values[name].levels
    return 2 * sum(bool(_NUMBER(level)) for level in levels) > len(levels)


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
