"""The critical word of sentences: the column with the word or its position, and its region."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote
from typing import Any

from lmdiag.stimuli.values.kinds import MOST_LABELS
from lmdiag.stimuli.values.names import is_named_as, names_critical, names_from_zero
from lmdiag.tables.table_files import Table
from lmdiag.text import WITHOUT_SPACES, decomposed, is_decomposed, shortened
from lmdiag.types import BadInput

Span = tuple[int, int]
"""Start and end in a text, in characters."""

# names of the regions: the critical word and the words after it
_REGIONS = ("critical", "spill_1", "spill_2")
_JOINED = "critical_word"  # the critical words of wide columns that have one each
_has_unspaced_script = re.compile(f"[{WITHOUT_SPACES}]").search
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc", "'''")
_HAS_ZEROS = "some of them are 0"  # why positions count from 0
_MOST_WORDS = 3  # of values, on average, that are words of a sentence
_SAMPLE = 60  # rows that are looked at first
_SHARE = 0.9  # of the rows, in which a column of words tells where positions count from


# ---- words of a text -----------------------------------------------------------------------------


def spans_of_words(text: str) -> list[Span]:
    """Returns where the words of a text stand, which are what blanks separate.

    >>> spans_of_words("He ran.")
    [(0, 2), (3, 7)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def word_spans(text: str, word: str) -> list[Span]:
    """Returns where a word stands in a text, not as a part of another word.

    Letter case counts if the word stands there so; apostrophes are all the same. In scripts without
    spaces a word stands wherever its characters do.

    >>> word_spans("The cat sat on the catalogue.", "cat"), word_spans("我喜欢猫", "喜欢")
    ([(4, 7)], [(1, 3)])
    """
    text = text.translate(_APOSTROPHES)
    word = unicodedata.normalize("NFC", word).translate(_APOSTROPHES)
    if not is_decomposed(text):
        return _spans_as_typed(text, word)
    # search in the text with accents as characters of their own, and translate the spans back
    letters, places = decomposed(text)
    spans = _spans_as_typed(letters, unicodedata.normalize("NFD", word))
    spans = [(places[start], places[end]) for start, end in spans]
    return [span for span in spans if -1 not in span]  # -1: within a letter and its accent


def _spans_as_typed(text: str, word: str) -> list[Span]:
    """Returns where a word stands in a text, in any letter case if it does not stand there so."""
    spans = _spans_of_word(text, word)
    # a few letters are two in lower case, so that spans would be wrong
    if not spans and len(text.lower()) == len(text):
        spans = _spans_of_word(text.lower(), word.lower())
    return spans


def _spans_of_word(text: str, word: str) -> list[Span]:
    """Returns where a word stands in a text exactly as it is written, not as a part of a word.

    >>> _spans_of_word("The cat saw a catalogue.", "cat"), _spans_of_word("A Cat.", "cat")
    ([(4, 7)], [])
    """
    if not word:
        return []
    is_unspaced = bool(_has_unspaced_script(word))
    spans = []
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        character_before = text[start - 1 : start]
        character_behind = text[end : end + 1]
        is_part = _is_letter(character_before) or _is_letter(character_behind)
        if is_unspaced or not is_part:
            spans.append((start, end))
        start = text.find(word, start + 1)
    return spans


def _is_letter(mark: str) -> bool:
    """Returns whether a character, if it is not "", belongs to a word; vowel signs do."""
    if not mark:
        return False
    return mark.isalnum() or mark == "_" or unicodedata.category(mark).startswith("M")


# ---- a column of critical words ------------------------------------------------------------------


@dataclass(frozen=True)
class CriticalColumn:
    """A column that has the critical word of each sentence, or its position among the words.

    Attributes:
        name: of the column.
        values: the word or the position for each sentence, as texts; "" where it is missing.
        texts: the sentences.
        parts: the columns from which it was joined, one for each wide column; () for none.
    """

    name: str
    values: Sequence[str]
    texts: Sequence[str]
    parts: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, values: Iterable[Any], texts: Iterable[Any]) -> CriticalColumn:
        """Returns the column with its values as texts, whole numbers without `.0`.

        Args:
            name: of the column.
            values: words or positions as they were read, None where they are missing.
            texts: the sentences.
        """
        written = []
        for value in values:
            written.append("" if value is None else str(value).strip().removesuffix(".0"))
        sentences = [text.strip() if isinstance(text, str) else "" for text in texts]
        return cls(name, written, sentences)

    @cached_property
    def is_position(self) -> bool:
        """Whether the column has positions: all values that are there are whole numbers."""
        filled = [value for value in self.values if value]
        return bool(filled) and all(value.isdecimal() for value in filled)

    @property
    def sample(self) -> range:
        """Some of the rows, evenly spaced."""
        n_rows = len(self.values)
        return range(n_rows)[_sample(n_rows)]

    def span(self, row: int, start: int = 1) -> Span:
        """Returns where the critical word of a row stands in its sentence.

        A value such as "cat" stands for the word with its punctuation, "cat.". Positions count from
        `start`, 0 or 1. `ValueError` if the value is missing, or stands for no word or several.
        """
        value = self.values[row]
        if not value:
            raise ValueError(
                "it is empty: name the word or its position, or leave such rows out by --filter"
            )
        text = self.texts[row]
        if self.is_position:
            return _span_at(text, int(value), start)
        return _span_of_only(text, value)

    def problems(self, rows: Iterable[int], start: int = 1) -> dict[int, str]:
        """Returns row -> why it does not have exactly one critical word, for such rows.

        Positions count from `start`, 0 or 1.
        """
        problems = {}
        for row in rows:
            try:
                self.span(row, start)
            except ValueError as error:
                problems[row] = str(error)
        return problems

    def agrees(self, row: int, span: Span, start: int = 1) -> bool:
        """Returns whether the value of a row is the word at a span of its sentence.

        For example, True for "cat" and the span (4, 8) of "The cat. A cat.". A word may stand
        elsewhere in the sentence, too. Positions count from `start`, 0 or 1.
        """
        if self.is_position:
            words = spans_of_words(self.texts[row])
            number = int(self.values[row] or -1) - start  # below 0 for a missing value
            return 0 <= number < len(words) and words[number] == span
        for word_start, word_end in word_spans(self.texts[row], self.values[row]):
            # the span may have punctuation that the word lacks, so that they need not be equal
            overlaps = word_start < span[1] and word_end > span[0]
            if overlaps:
                return True
        return False

    @property
    def has_parts(self) -> bool:
        """Whether half of the values or more stand in their sentences, be it as parts of words."""
        filled_rows = [row for row in self.sample if self.values[row]]
        n_inside = sum(self.values[row].lower() in self.texts[row].lower() for row in filled_rows)
        return 2 * n_inside >= len(filled_rows)

    @property
    def may_count_from_zero(self) -> bool:
        """Whether all positions are those of words, be it that they count from 0 or from 1."""
        if not self.is_position:
            return False
        for value, text in zip(self.values, self.texts, strict=True):
            # 0 is no position if words count from 1, and the number of words is none if from 0
            if not 0 < int(value or 0) < len(text.split()):
                return False
        return True

    def likely_start(self, others: Iterable[CriticalColumn]) -> tuple[int | None, str]:
        """Returns what positions count from, 0 or 1, and how this is known; (None, "") if unknown.

        For example, (0, "verb has these words") if the column `verb` has the words at the positions
        counted from 0. If no column has the words at these positions, a position 0 decides, and
        then the name of this column, as `verb_0idx`. A column of words has (None, "").

        Args:
            others: columns that may have these words.
        """
        if not self.is_position:
            return None, ""
        for other in others:
            if other.name != self.name and not other.is_position:
                shares = [self._share_of_words(other, start) for start in (0, 1)]
                # the words are at these positions for one of the two starts, and not for the other
                if max(shares) >= _SHARE > min(shares):
                    return shares.index(max(shares)), f"{other.name} has these words"
        if any(int(value or 1) == 0 for value in self.values):  # a missing value is not 0
            return 0, _HAS_ZEROS
        if names_from_zero(self.name):
            return 0, "it is called so"
        return None, ""

    def _share_of_words(self, words: CriticalColumn, start: int) -> float:
        """Returns the share of rows in which another column has the word at this one's position.

        Positions count from `start`, 0 or 1.
        """
        n_agreeing = 0
        for row in self.sample:
            spans = spans_of_words(self.texts[row])
            number = int(self.values[row] or -1) - start  # below 0 for a missing value
            if 0 <= number < len(spans) and words.agrees(row, spans[number]):
                n_agreeing += 1
        return n_agreeing / max(1, len(self.sample))

    def readings(self) -> str:
        """Returns which words the positions stand for if they count from 0, and from 1.

        It shows the sentence of a row in which both are words, e.g. "--critical pos:0 reads The
        [cat] sat.; --critical pos:1 reads [The] cat sat." Without such a row it shows the first
        one, with "no word of the first row" for the reading in which the position is not a word.
        """
        shown_row = 0
        for row in self.sample:
            if all(self._spans_from_zero_and_one(row)):
                shown_row = row
                break
        text = self.texts[shown_row]
        readings = []
        for start, span in enumerate(self._spans_from_zero_and_one(shown_row)):
            marked = "no word of the first row"
            if span:
                marked = f"{text[: span[0]]}[{text[slice(*span)]}]{text[span[1] :]}"
            readings.append(f"{self.option(start)} reads {shortened(marked, 150)}")
        return "; ".join(readings)

    def option(self, start: int) -> str:
        """Returns the option by which positions count from 0 or 1, e.g. "--critical pos:0"."""
        names = self.parts or (self.name,)
        return " ".join(["--critical", *(quote(f"{name}:{start}") for name in names)])

    @property
    def shown_name(self) -> str:
        """The column, or those of which it was joined, for messages."""
        return f"columns {' and '.join(self.parts)}" if self.parts else f"column {self.name}"

    def _spans_from_zero_and_one(self, row: int) -> list[Span | None]:
        """Returns the word of a row if positions count from 0, and from 1; None for no word."""
        spans: list[Span | None] = []
        for start in (0, 1):
            try:
                spans.append(self.span(row, start))
            except ValueError:
                spans.append(None)
        return spans


def _sample(n_rows: int) -> slice:
    """Returns a slice that takes some sixty rows of all, evenly spaced."""
    return slice(0, None, max(1, n_rows // _SAMPLE))


def _span_at(text: str, position: int, start: int) -> Span:
    """Returns where the word at a position stands; `ValueError` if there is no such word.

    Positions of the words of the text count from `start`, 0 or 1.
    """
    words = spans_of_words(text)
    if len(words) == 1 and _has_unspaced_script(text):
        remedy = "name the critical word itself, or divide the sentences by |"
        raise ValueError(f"position {position} counts words, which no blanks separate: {remedy}")
    last = len(words) - 1 + start
    if not start <= position <= last:
        raise ValueError(f"position {position} is not between {start} and {last}, the last word")
    return words[position - start]


def _span_of_only(text: str, word: str) -> Span:
    """Returns where a word stands in a text, with what stands at it without a blank.

    The word may be several words. `ValueError`, with the remedy, if it does not stand in the text
    exactly once.

    >>> _span_of_only("The cat, too, sat.", "cat"), "The cat, too, sat."[4:8]
    ((4, 8), 'cat,')
    """
    spans = word_spans(text, word)
    words = spans_of_words(text)
    shown = repr(shortened(word, 60))
    if len(spans) > 1:
        remedy = "give its position, from 1"
        if _has_unspaced_script(word):
            remedy = "divide the sentences by | around it"
        raise ValueError(f"{shown} is {len(spans)} times in the sentence: {remedy}")
    if not spans:
        longer_words = [text[start:end] for start, end in words]
        longer_words = [longer for longer in longer_words if word.lower() in longer.lower()]
        if len(longer_words) == 1:
            whole = repr(shortened(longer_words[0], 60))
            raise ValueError(f"{shown} is only a part of {whole}: give the whole word")
        raise ValueError(f"{shown} is not in the sentence: write it as it stands there")
    start, end = spans[0]
    if _has_unspaced_script(word):
        return start, end
    # from the blank before the word to the blank behind it, so that punctuation is included
    overlapping = [span for span in words if span[1] > start and span[0] < end]
    return overlapping[0][0], overlapping[-1][1]


def column_and_start(named: str, columns: Collection[str]) -> tuple[str, int | None]:
    """Returns what `--critical` names: the column, and what its positions count from.

    The latter is None if it is not given.

    Args:
        named: COLUMN, COLUMN:0 or COLUMN:1.
        columns: of the table, whose names may end in :0 themselves.

    >>> column_and_start("position:0", ["position"]), column_and_start("position", ["position"])
    (('position', 0), ('position', None))
    """
    name, mark, start = named.rpartition(":")
    is_given = bool(mark) and start in ("0", "1") and named not in columns
    return (name, int(start)) if is_given else (named, None)


def with_one_critical(
    table: Table, named: Sequence[str], wide: Sequence[str], condition: str
) -> Table:
    """Returns sentences of wide columns with their critical words in one column, `critical_word`.

    For example, with the wide columns sent_sg and sent_pl and the columns verb_sg and verb_pl of
    critical words, a row with the text of sent_pl gets the word of verb_pl. The columns verb_sg and
    verb_pl are then left out. A table for which one column or none is named is returned as it is.

    `BadInput`: another number of columns than wide ones; `:0` or `:1` for some columns alone.

    Args:
        table: a row for each wide column and row, with the text that was in it.
        named: the columns of critical words, in the order of the wide ones.
        wide: the wide columns.
        condition: the column with the name of the wide column of each row.
    """
    if len(named) < 2:
        return table
    if len(named) != len(wide):
        rule = "name one for all, or one for each column of --wide, in their order"
        problem = f"--critical names {len(named)} columns, --wide {len(wide)}"
        raise BadInput(f"{table.name}: {problem}: {rule}")
    pairs = [column_and_start(text, table.columns) for text in named]
    if len({start for _, start in pairs}) > 1:
        raise BadInput(f"{table.name}: --critical: give all columns :0, or :1, or none of them")
    names = [table.column_of(name, "--critical") for name, _ in pairs]
    words_of_wide = dict(zip(wide, (table.columns[name] for name in names), strict=True))
    words = [words_of_wide[column][row] for row, column in enumerate(table.columns[condition])]
    which = ", ".join(f"{name} of {column}" for (name, _), column in zip(pairs, wide, strict=True))
    return table.with_columns({_JOINED: words}, f"critical: {which}", without=names)


def with_critical(table: Table, named: Sequence[str], wide: Sequence[str] = ()) -> Table:
    """Returns sentences with the region `critical`, and `spill_1` and `spill_2` after it.

    These are the critical word and the two words that follow it. For example, with the column c of
    "The cat sat down." having "cat" or 2, `critical` is "cat", `spill_1` "sat" and `spill_2`
    "down.".

    `BadInput`: positions that seem to count from 0, a position beyond the sentence, a word that is
    not in it or several times; a single column whose name is like that of one of several wide
    columns, and which has the critical words of the sentences of this one alone.

    Args:
        table: of sentences.
        named: what `--critical` names: () for nothing; a column that has the critical word of each
            sentence, or its position among the words, from 1, or from 0 by `COLUMN:0`; or a column
            for each wide column, which `with_one_critical` has joined to one.
        wide: columns that the sentences come from; () if they stand in one column of the file.
    """
    if not named:
        return table
    # which column has the critical words, and what its positions count from
    if len(named) > 1 and not wide:
        problem = f"--critical names {len(named)} columns for one column of sentences"
        raise BadInput(f"{table.name}: {problem}: name one")
    is_joined = len(named) > 1  # `with_one_critical` has joined them, and checked their starts
    name, start = column_and_start(named[0], table.columns)
    if is_joined:
        name = _JOINED
    name = table.column_of(name, "--critical")
    if "regions" in table.columns:
        remedy = "the sentences have regions: name one by --region"
        raise BadInput(f"{table.name}: --critical: {remedy}")
    if not is_joined:
        _refuse_column_of_one_wide(table, name, wide)
    texts = table.columns["sentence"]
    column = CriticalColumn.of(name, table.columns[name], texts)
    if is_joined:
        parts = [column_and_start(text, table.columns)[0] for text in named]
        column = replace(column, parts=parts)
    # positions that seem to count from 0, and rows without exactly one critical word, are refused
    likely_start, why = column.likely_start(columns_in_texts(table.columns, texts))
    # `start` is None where the user did not give it, `likely_start` where nothing tells it
    if start is None and likely_start == 0:  # the user may have meant positions from 0
        problem = f"--critical: positions of the {column.shown_name} seem to count from 0"
        readings = f"{column.readings()}; give one of the two"
        raise BadInput(f"{table.name}: {problem}, since {why}: {readings}")
    start_used = 1 if start is None else start
    problems = column.problems(range(len(table)), start_used)
    prefix = f"--critical: the {column.shown_name}"
    table.refuse_rows({row: f"{prefix}: {problem}" for row, problem in problems.items()})
    regions = [
        _regions(text, column.span(row, start_used)) for row, text in enumerate(column.texts)
    ]
    note = _note_on_regions(column, regions)
    # neither the user nor the table says what positions count from, and both starts are possible
    if start is None and likely_start is None and column.may_count_from_zero:
        note += f"; positions count from 1, and from 0 with {column.option(0)}"
    further_notes = _longer_words(table, column, start_used)
    joined_column = (_JOINED,) if is_joined else ()
    return table.with_columns({"regions": regions}, note, *further_notes, without=joined_column)


def _note_on_regions(column: CriticalColumn, regions: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Returns the note on the regions that were made of a column of critical words.

    For example, "critical: verb is the region critical; spill_1 and spill_2 follow it". A column
    that was joined is called "it": an earlier note, of `with_one_critical`, names its parts.
    """
    note = f"critical: {'it' if column.parts else column.name} is the region critical"
    if any(len(row) > 1 for row in regions):
        note += f"; {' and '.join(_REGIONS[1:])} follow it"
    return note


def _longer_words(table: Table, column: CriticalColumn, start: int) -> Iterator[str]:
    """Yields one note if critical words stand together with others, as `homme` in `l'homme`.

    The response to such a word is the surprisal of the whole, from blank to blank. Positions count
    from `start`.
    """
    if column.is_position:
        return
    longer = {}  # row -> critical word, and what stands from blank to blank
    for row, word in enumerate(column.values):
        whole = column.texts[row][slice(*column.span(row, start))]
        if len(_letters(whole)) > len(_letters(word)):
            longer[row] = (word, whole.strip(".,;:!?…"))
    if not longer:
        return
    word, whole = next(iter(longer.values()))
    is_part = f"{word!r} stands in {whole!r} without a blank"
    what = repr(whole)
    n_others = len({*longer.values()}) - 1
    if n_others:
        words = "words" if n_others > 1 else "word"
        is_part += f", and {n_others:,} other {words} likewise"
        what += " and the like"
    rows = table.places([*longer])
    yield f"critical: {is_part} ({rows}): the response is the surprisal of {what}"


def _letters(text: str) -> str:
    """Returns the letters and digits of a text, without punctuation and blanks."""
    return "".join(character for character in text if character.isalnum())


def _regions(text: str, critical: Span) -> list[dict[str, Any]]:
    """Returns the critical word of a text and up to two words after it, as regions.

    For example, [{"number": 1, "name": "critical", "start": 4, "end": 7}, ...].
    """
    spans = [critical, *(span for span in spans_of_words(text) if span[0] >= critical[1])]
    regions = []
    for number, (name, span) in enumerate(zip(_REGIONS, spans, strict=False), start=1):
        regions.append({"number": number, "name": name, "start": span[0], "end": span[1]})
    return regions


def _refuse_column_of_one_wide(table: Table, name: str, wide: Sequence[str]) -> None:
    """Refuses a column of critical words whose name is like that of one wide column of several.

    An example is `verb_sg` for the wide columns `sentence_sg` and `sentence_pl`, from which the
    sentences come.
    """
    if len(wide) < 2:
        return
    words_of_name = {*re.findall(r"[^\W_]+", name.casefold())}
    words_of_wide = {column: {*re.findall(r"[^\W_]+", column.casefold())} for column in wide}
    # a word of all wide columns, as "sentence", does not tell them apart
    shared_words = set.intersection(*words_of_wide.values())
    alike = [column for column in wide if words_of_name & (words_of_wide[column] - shared_words)]
    if len(alike) == 1:
        problem = (
            f"--critical {name} is called like {alike[0]}, and would be read for all of --wide"
        )
        remedy = "name one column for each of --wide, in their order"
        raise BadInput(f"{table.name}: {problem}: {remedy}")


# ---- which columns may be it ---------------------------------------------------------------------


def critical_options(columns: Mapping[str, Sequence[Any]], texts: Sequence[str]) -> list[str]:
    """Returns the columns that are named as critical words and have one for each text.

    They are as `--critical` takes them: for example ["verb", "verb_index:0"], where the second
    column has positions from 0.

    Args:
        columns: name -> values.
        texts: names of columns of texts, of which all have the critical word; a row may lack one.
    """
    # the texts of all columns, one below the other, and the row of each text
    rows: list[int] = []
    sentences: list[str] = []
    for text_column in texts:
        for row, text in enumerate(columns[text_column]):
            if text not in (None, ""):
                rows.append(row)
                sentences.append(text)
    if not sentences:
        return []
    values_of_texts = {
        name: [values[row] for row in rows] for name, values in columns.items() if name not in texts
    }
    words = [*columns_in_texts(values_of_texts, sentences)]
    options = []
    for column in _named_as_critical(values_of_texts, sentences):
        start, why = column.likely_start(words)  # None if nothing tells it, or there are words
        if not column.problems(range(len(sentences)), start=1 if start is None else start):
            options.append(_option(column, start, why))
    return options


def _option(column: CriticalColumn, start: int | None, why: str) -> str:
    """Returns what `--critical` takes: the column, with `:0` if positions surely count from 0.

    `start` and `why` are those of `CriticalColumn.likely_start`.
    """
    # a position 0 alone is not sure, since 0 may stand for no word
    is_sure = start == 0 and why != _HAS_ZEROS
    return f"{column.name}:0" if is_sure else column.name


def may_be_critical(name: str) -> bool:
    """Returns whether a column is called like critical words or their positions."""
    return names_critical(name, is_position=False) or names_critical(name, is_position=True)


def _named_as_critical(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> list[CriticalColumn]:
    """Returns the columns that are named as critical words, or as positions if they have numbers.

    `columns` has the values of each column, and `texts` the sentences.
    """
    named = []
    for name, values in columns.items():
        if may_be_critical(name):
            column = CriticalColumn.of(name, values, texts)
            if names_critical(name, is_position=column.is_position):
                named.append(column)
    return named


def columns_in_texts(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> Iterator[CriticalColumn]:
    """Yields the columns with words that stand in most of the texts of their rows.

    For example, the column `verb` with "sat" beside "The cat sat." Values have up to three words on
    average. Columns of positions are left out, and so are ids, items, sentences and regions.

    Args:
        columns: name -> values.
        texts: of the rows.
    """
    for name, values in columns.items():
        if name in ("id", "sentence", "regions") or is_named_as(name, "item"):
            continue
        # some sixty rows decide, as a slice; the column that is yielded has all rows
        rows = _sample(len(values))
        column = CriticalColumn.of(name, values[rows], texts[rows])
        filled = [value for value in column.values if value]
        n_words = sum(len(value.split()) for value in filled)
        if not filled or column.is_position or n_words > _MOST_WORDS * len(filled):
            continue
        pairs = zip(column.texts, column.values, strict=True)
        n_inside = sum(bool(word_spans(text, word)) for text, word in pairs)
        if 2 * n_inside > len(filled):
            yield CriticalColumn.of(name, values, texts)


def critical_lines(
    columns: Mapping[str, Sequence[Any]], shown_rows: Callable[[Sequence[int]], str]
) -> Iterator[str]:
    """Yields lines for `check`: which columns may have the critical word of each `sentence`.

    Args:
        columns: name -> values.
        shown_rows: returns what messages call some rows, e.g. "lines 4, 5".
    """
    texts = columns["sentence"]
    rows = range(len(texts))
    words = [*columns_in_texts(columns, texts)]
    named = _named_as_critical(columns, texts)
    for column in named:
        start, why = column.likely_start(words)
        problems = column.problems(rows, start=1 if start is None else start)
        if not problems:
            has = f"{column.name} has the critical word of each sentence"
            option = quote(_option(column, start, why))
            yield f"{has}: --critical {option} gives its surprisal"
            if start is None and column.may_count_from_zero:
                may_count = "may count from 0 or from 1"
                yield f"positions of {column.name} {may_count}: {column.readings()}"
        # most rows are right, and the values are not words that have nothing to do with the texts
        elif 2 * len(problems) <= len(rows) and (column.is_position or column.has_parts):
            problem = next(iter(problems.values()))
            n = f"{len(problems)} of {len(rows)} sentences ({shown_rows([*problems])})"
            yield f"{column.name} seems to have critical words, but not in {n}: {problem}"
    names = {column.name for column in named}
    further = []  # columns of words under other names; a few words that repeat are labels
    for column in words:
        is_label = len({*column.values}) <= MOST_LABELS
        if column.name not in names and not is_label and not column.problems(rows):
            further.append(column.name)
    if further:
        have = "has" if len(further) == 1 else "have"
        has = f"{', '.join(further)} {have} a word of each sentence"
        yield f"{has}: --critical {quote(further[0])} gives its surprisal"


def critical_uses(
    columns: Mapping[str, Sequence[Any]], regions: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    """Returns column -> use, for columns with the critical word of the sentences, or another word.

    The uses are "critical word", "position of the critical word" and "another word of the
    sentence". {} if the regions do not begin with that of a critical word.

    Args:
        columns: name -> values, `sentence` among them.
        regions: of each sentence.
    """
    if not all(row and row[0]["name"] == _REGIONS[0] for row in regions):
        return {}
    spans = [(row[0]["start"], row[0]["end"]) for row in regions]
    texts = columns["sentence"]
    uses = {}
    for column in columns_in_texts(columns, texts):
        uses[column.name] = "another word of the sentence"
    for name, values in columns.items():
        column = CriticalColumn.of(name, values, texts)
        use = "critical word"
        # A column of words is compared once, since a start is of positions alone; a column whose
        # values are not in the texts is not compared, and positions are with both starts.
        starts: tuple[int, ...] = (1,) if name in uses else ()
        if column.is_position:
            use = "position of the critical word"
            starts = (1, 0)
        for start in starts:
            if all(column.agrees(row, span, start) for row, span in enumerate(spans)):
                uses[name] = use
    return uses
