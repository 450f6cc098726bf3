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


_begins_with_number = re.compile(r"[-+]?[.,]?\d").match


class OtherRows(NamedTuple):
    """What a table without stimuli has.

    Attributes:
        command: that reads it.
        what: its rows, in words.
        columns: name that the command reads -> column, as {"text": "story", "word": "token"}.
        texts: further columns that tell texts apart, beside the column `text` of `columns`; () if
            that column is enough or there is none.
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
        """The options of its command as they are typed, "--response RT --item sentence"; or ""."""
        if self.command != "analyse":
            return as_typed(self.options)
        # `analyse` has options of its own for columns, left out where it finds them by their names
        items = self.items or [self.columns.get("item", "COLUMN")]
        response = self.columns.get("response", "COLUMN")
        words: list[str] = []
        if folded(response) != "surprisal":
            words += ["--response", response]
        if [*map(folded, items)] != ["item"]:
            words += ["--item", *items]
        if self.conditions:
            words += ["--conditions", *self.conditions]
        if self.filter:
            words += ["--filter", self.filter]
        return shlex.join(words)

    @property
    def options(self) -> TableOptions:
        """The options that name the columns of words and of responses of people.

        Columns of the known names need no options. For example, `columns` {"text": "story",
        "position": "n", "word": "word"} with `texts` ["line"] gives --columns text=story text=line
        position=n.
        """
        has_known_names = all(folded(column) == name for name, column in self.columns.items())
        columns = () if has_known_names else named_options(self.columns)
        if self.texts:
            # several columns name a text together only if each of them is named, also a column that
            # is called text; further texts stand beside a text among the columns
            text_columns = [self.columns["text"], *self.texts]
            columns = tuple(option for option in columns if not option.startswith("text="))
            columns = (*(f"text={name}" for name in text_columns), *columns)
        return TableOptions(columns=columns, wide=tuple(self.wide))

    def text(self) -> str:
        """Returns what it is, for which command, and with which option."""
        if not self.command:
            return f"{self.what}: {self.remedy}" if self.remedy else self.what
        fit = " and `lmdiag fit`" if self.command == "surprisal" else ""
        what = f"{self.what}: for `lmdiag {self.command}`{fit}"
        return f"{what}, with {self.option}" if self.option else what


def other_rows(layout: TableLayout) -> OtherRows | None:
    """Returns what the rows of a table without stimuli are, and for which command.

    None where nothing fits. Surprisals of items, as lmdiag writes them, are known by their names.
    """
    numbers = _numbers_of_items(layout)
    if numbers and layout.item == "item" and folded(numbers.columns["response"]) == "surprisal":
        return numbers
    return (
        words_of_texts(layout)
        or responses(layout)
        or _word_list(layout)
        or numbers
        or _regions(layout)
        or _unnamed_numbers(layout)
    )


def words_of_texts(layout: TableLayout) -> OtherRows | None:
    """Returns what a table with a row per word of a text has; None for other tables.

    Its columns are those of the texts, the positions and the words, and perhaps a response.
    """
    columns_of_words = word_rows(layout)
    if not columns_of_words:
        return None
    word, position, texts = columns_of_words
    columns = {"text": texts[0]} if texts else {}
    columns |= {"position": position, "word": word}
    what = "a row per word" if texts else "a row per word of one text"
    measures = _measures(layout, (*texts, position, word))
    measures = [name for name in measures if may_be_response(layout, word, name)]
    response = measures[0] if measures else ""
    return OtherRows(
        command="surprisal", what=what, columns=columns, texts=texts[1:], response=response
    )


def responses(layout: TableLayout) -> OtherRows | None:
    """Returns what a table with people's responses to contexts has; None for other tables."""
    found = response_columns(layout)
    if not found:
        return None
    what = "responses of people"
    return OtherRows(command="cloze", what=what, columns=found.columns, wide=found.wide)


def _regions(layout: TableLayout) -> OtherRows | None:
    """What a table with a row per region of a sentence has; None for other tables."""
    if not any(map(layout.are_pieces, layout.of_kind("text"))):
        return None
    what = "a row per region of a sentence, which no command reads"
    remedy = "write a sentence per row, with a bar between its regions"
    return OtherRows(command="", what=what, remedy=remedy)


def _word_list(layout: TableLayout) -> OtherRows | None:
    """What a list of words with norms, as frequency, has; None for other tables.

    Beside words that hardly repeat it has numbers alone, and neither readers nor repeated items.
    """
    names = [x for x in layout.of_kind("word", "label") if len(layout.values[x].levels) > 1]
    names = [x for x in names if layout.values[x].have_letters]
    other_kinds = {*layout.kinds.values()} - {"word", "label", "empty"}
    items = layout.values[layout.item] if layout.item else None
    has_items = items is not None and 2 * len(items.levels) <= items.n_filled
    has_readers = bool(named_columns("reader", layout.values))
    if not names or has_readers or has_items or other_kinds != {"number"}:
        return None
    words = layout.values[names[0]]
    if len(words.levels) < 0.9 * words.n_filled:  # some words may have two entries
        return None
    return OtherRows(command="", what="a list of words and their norms, which no command reads")


def _numbers_of_items(layout: TableLayout) -> OtherRows | None:
    """What a table with responses in numbers to items has; None for other tables.

    For example, a table with the columns item, condition and rt. A column names the items, or it
    has target words that repeat. A table with texts that do not name items, such as sentences, has
    stimuli and not responses.
    """
    repeated_words = [
        x for x in named_columns("target", layout.values) if _has_repeated_words(layout, x)
    ]
    item = layout.item or next(iter(repeated_words), "")
    texts = [x for x in layout.of_kind("text") if not layout.are_pieces(x)]
    texts = [x for x in texts if not layout.name_items(x)]
    measures = _measures(layout, [item])
    if texts or not item or not measures:
        return None
    columns = {"item": item, "response": measures[0]}
    return OtherRows(command="analyse", what="responses in numbers", columns=columns)


def _unnamed_numbers(layout: TableLayout) -> OtherRows | None:
    """What a table without texts has if it has numbers that may be responses; else None.

    For example, `columns` {"response": "RT"} for a table with the columns code and RT: an item, or
    a response, is left out of `columns` if none is found.
    """
    # `measures` are numbers that look like responses, by their name or values; `numbers` are all
    measures = _measures(layout, [layout.item])
    numbers = [x for x in layout.of_kind("number") if x != layout.item]
    has_texts = layout.of_kind("text") or layout.numbered_words()
    if has_texts or not (measures or (layout.item and numbers)):
        return None
    columns = {"item": layout.item} if layout.item else {}
    likely = measures if len(measures) == 1 else [*filter(is_outcome, measures)]
    if likely:
        columns["response"] = likely[0]
    what = "responses in numbers" if columns else "numbers, which may be responses"
    return OtherRows(command="analyse", what=what, columns=columns)


def responses_beside_texts(columns: Mapping[str, Sequence[Any]]) -> OtherRows | None:
    """Returns the responses in numbers that stand beside the texts of a table; None for none.

    Texts, or items of readers, stand in several rows then. A column of any name has responses where
    it differs between rows with the same texts.

    Args:
        columns: name -> values, one per row.
    """
    layout = TableLayout(columns)
    texts = [x for x in layout.of_kind("text", "question") if len(layout.values[x].levels) > 1]
    item = _repeated_item(layout, texts)
    names = [*layout.of_kind("number"), *_columns_with_units(layout)]
    measures = [x for x in names if x != item and _differs_with_one_text(layout, x, texts)]
    has_readers = any(layout.values[name].are_groups for name in layout.participants)
    if has_readers:
        measures += [x for x in _measures(layout, [item]) if is_outcome(x) and x not in measures]
    measures.sort(key=lambda name: not is_outcome(name))  # known names first
    if not (item and measures):
        return None
    # of models that answered the same texts, without other factors
    labels = [x for x in layout.of_kind("label", "word") if x != item]
    are_models = labels == ["model"] and len(layout.values["model"].levels) <= MOST_LABELS
    return OtherRows(
        command="analyse",
        what="responses in numbers",
        columns={"item": item, "response": measures[0]},
        conditions=labels if are_models else (),
        filter=filter_of_numbers(layout.values, measures[0]),
    )


def _repeated_item(layout: TableLayout, texts: Sequence[str]) -> str:
    """The column of items, or else the only one of the columns of texts, if its values repeat.

    "" where neither repeats.
    """
    if layout.item and layout.values[layout.item].are_groups:
        return layout.item
    if len(texts) == 1 and layout.values[texts[0]].are_groups:
        return texts[0]
    return ""


def filter_of_numbers(columns: Mapping[str, DistinctValues], response: str) -> str:
    """Returns a condition that exactly the rows with numbers meet, as "measure=RT"; "" for none.

    For example, a column `value` has reading times in rows where the column `measure` has "RT", and
    words in rows where it has "answer".

    Args:
        columns: name -> its distinct values; one of them is the condition.
        response: column in which some values are numbers and others words.
    """
    import numpy as np

    values = columns[response]
    if values.is_number:
        return ""
    # whether the response of each row is a number; False where it is missing (code -1)
    is_number = np.array([*map(is_numeral, values.levels), False])[values.codes]
    for name, labels in columns.items():
        if name == response or len(labels.levels) > MOST_LABELS:
            continue
        for code, level in enumerate(labels.levels):
            if ((labels.codes == code) == is_number).all():
                return f"{name}={level}"
    return ""


def _differs_with_one_text(layout: TableLayout, name: str, texts: Sequence[str]) -> bool:
    """Whether numbers may be responses, since they differ between rows with the same texts.

    For example, the ratings 3, 5 and 4 of one sentence. Numbers of readers and trials, and those
    that count rows, also differ between rows with the same texts, and are not responses.

    Args:
        layout: all columns of the table, with their values and kinds.
        name: of the column of numbers.
        texts: names of the columns of texts.
    """
    import numpy as np

    values = layout.values[name]
    roles = ("reader", "position", "text", "list", "item", "set")
    has_other_role = any(is_named_as(name, role) for role in roles) and not is_outcome(name)
    if not texts or has_other_role or name in layout.reader_attributes or _are_trials(layout, name):
        return False
    codes = combine_codes(*(layout.values[text].codes for text in texts))
    are_repeated = 2 * n_distinct(codes) <= np.count_nonzero(codes >= 0)
    if not are_repeated or is_determined_by(values.codes, [codes]):
        return False
    return is_outcome(name) or (len(values.levels) > 2 and not values.are_running_numbers)


def _measures(layout: TableLayout, others: Collection[str]) -> list[str]:
    """The columns of numbers that may be responses, the most likely first.

    In this order: surprisals, columns with the name of a response, other numbers, and answers that
    are right or wrong. For example, ["RT", "pupil", "accuracy"]. Numbers that name or count
    something (trials, rows, items, positions) are left out.

    Args:
        layout: all columns of the table, with their values and kinds.
        others: columns that are known to have something else, as items.
    """
    numbers = [x for x in layout.of_kind("number") if x not in others]
    surprisals = [x for x in numbers if folded(x) == "surprisal"]
    # right or wrong: two values, and the name of a response
    choices = [x for x in numbers if is_outcome(x) and len(layout.values[x].levels) == 2]
    measures = [x for x in numbers if len(layout.values[x].levels) > 2]
    # measures by their names
    with_units = _columns_with_units(layout)
    possible = [x for x in layout.values if x in measures or x in with_units]
    outcomes = named_columns("outcome", possible)  # the preferred names first
    outcomes += filter(is_outcome, possible)  # names with units, as "RT (ms)", and of reading times
    outcomes += [name for name in possible if folded(name) == "value"]
    # measures of any other name
    crossed: set[str] = set()  # columns with each value once in each item, as numbers of readers
    for name in others:
        if name in layout.values:
            crossed |= {*columns_crossed_with(name, layout.values)}
    further = [x for x in measures if not (x in crossed or _names_or_counts(layout, x))]
    further.sort(key=lambda x: len(layout.values[x].levels) <= MOST_LABELS)  # few values last
    return [*dict.fromkeys((*surprisals, *outcomes, *further, *choices))]


def _names_or_counts(layout: TableLayout, name: str) -> bool:
    """Whether a column of numbers names or counts something, by its name or as trials do.

    Examples are the columns subject, position, list, region, trial_nr and ItemCode.
    """
    roles = ("reader", "position", "text", "list", "item", "count")
    has_role = any(is_named_as(name, role) for role in roles)
    return has_role or folded(name) == "region" or names_rows(name) or _are_trials(layout, name)


def _are_trials(layout: TableLayout, name: str) -> bool:
    """Whether a column numbers the trials of each reader.

    Each reader has a number once, and none is larger than the most rows of a reader.
    """
    reader_columns = named_columns("reader", layout.values)
    if not reader_columns:
        return False
    readers = layout.values[reader_columns[0]]
    numbers = layout.values[name]
    is_once = n_distinct(combine_codes(readers.codes, numbers.codes)) == numbers.n_filled
    return is_once and max(map(float, numbers.levels)) <= int(readers.counts.max())


def _columns_with_units(layout: TableLayout) -> list[str]:
    """The columns of words or labels most of which begin with a number, as `85%` does."""
    names = []
    for name in layout.of_kind("word", "label"):
        levels = layout.values[name].levels
        n_numbers = sum(bool(_begins_with_number(level)) for level in levels)
        if 2 * n_numbers > len(levels):
            names.append(name)
    return names


def _has_repeated_words(layout: TableLayout, name: str) -> bool:
    """Whether a column has words of which each stands in two rows or more on average."""
    values = layout.values[name]
    return layout.kinds[name] == "word" and 2 * len(values.levels) <= values.n_filled


def naming_option(columns: Mapping[str, Sequence[Any]], command: str) -> str:
    """Returns the option that names the columns for `surprisal` or `cloze`; "" for none.

    Args:
        columns: name -> values, one per row.
        command: "surprisal" or "cloze".
    """
    layout = TableLayout(columns)
    rows = words_of_texts(layout) if command == "surprisal" else responses(layout)
    return rows.option if rows else ""


def columns_of_words(columns: Mapping[str, Sequence[Any]] | DataFrame) -> Mapping[str, str]:
    """Returns text, position and word -> columns of a table with a row per word; {} for others.

    The key `text` is missing if no column identifies the texts.
    """
    rows = words_of_texts(TableLayout(dict(columns.items())))
    return rows.columns if rows else {}


def is_one_text(columns: Mapping[str, Sequence[Any]] | DataFrame) -> bool:
    """Returns whether a table has a row per word, and no column that tells texts apart."""
    column_of = columns_of_words(columns)
    return bool(column_of) and "text" not in column_of
