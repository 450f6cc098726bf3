"""The critical word of sentences: the column with the word or its position, and its region."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from shlex import quote
from typing import Any

from lmdiag.stimuli.values.kinds import MOST_LABELS
from lmdiag.stimuli.values.names import is_named, names_critical, names_from_zero
from lmdiag.tables.table_files import Table
from lmdiag.text import WITHOUT_SPACES, decomposed, is_decomposed, shortened
from lmdiag.types import BadInput

Span = tuple[int, int]
"""Start and end in a text, in characters."""

# names of the regions: the critical word and the words after it
_REGIONS = ("critical", "spill_1", "spill_2")
_JOINED = "critical_word"  # the critical words of wide columns that have one each
_UNSPACED = re.compile(f"[{WITHOUT_SPACES}]").search
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc", "'''")
_HAS_ZEROS = "some of them are 0"
_MOST_WORDS = 3  # of values, on average, that are words of a sentence
_SAMPLE = 60  # rows that are looked at first
_SHARE = 0.9  # of the rows, in which a column of words tells where positions count from


# ---- words of a text -----------------------------------------------------------------------------


def words_of_text(text: str) -> list[Span]:
    """Returns the words of a text, which are what blanks separate."""
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
    if is_decomposed(text):
        letters, places = decomposed(text)
        found = _spans_as_typed(letters, unicodedata.normalize("NFD", word))
        spans = [(places[start], places[end]) for start, end in found]
        return [span for span in spans if -1 not in span]
    return _spans_as_typed(text, word)


def _spans_as_typed(text: str, word: str) -> list[Span]:
    """Returns where the characters of a word stand in a text; see `word_spans`."""
    spans = [*_found(text, word)]
    if not spans and len(text.lower()) == len(text):
        spans = [*_found(text.lower(), word.lower())]
    return spans


def _found(text: str, word: str) -> Iterator[Span]:
    is_unspaced = bool(_UNSPACED(word))
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        is_part = _is_letter(text[start - 1 : start]) or _is_letter(text[end : end + 1])
        if is_unspaced or not is_part:
            yield start, end
        start = text.find(word, start + 1)


def _is_letter(mark: str) -> bool:
    """Whether a character, if there is one, belongs to a word; vowel signs do."""
    return bool(mark) and (mark.isalnum() or mark == "_" or unicodedata.category(mark)[0] == "M")


# ---- a column of critical words ------------------------------------------------------------------


@dataclass(frozen=True)
class CriticalColumn:
    """A column that has the critical word of each sentence, or its position among the words.

    Attributes:
        name: of the column.
        values: one per sentence, as texts; "" where it is missing.
        texts: the sentences.
        parts: the columns of which it was joined, one for each wide column; () for none.
    """

    name: str
    values: Sequence[str]
    texts: Sequence[str]
    parts: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, values: Iterable[Any], texts: Iterable[Any]) -> CriticalColumn:
        """Returns the column with its values as texts, whole numbers without `.0`."""
        written = ["" if x is None else str(x).strip().removesuffix(".0") for x in values]
        return cls(name, written, [text.strip() if isinstance(text, str) else "" for text in texts])

    @cached_property
    def is_position(self) -> bool:
        """Whether all values are whole numbers."""
        filled = [*filter(None, self.values)]
        return bool(filled) and all(map(str.isdecimal, filled))

    @property
    def sample(self) -> range:
        """Some of the rows."""
        n_rows = len(self.values)
        return range(n_rows)[_sample(n_rows)]

    def span(self, row: int, start: int = 1) -> Span:
        """Returns the critical word of a row: all of the words, as blanks separate them.

        Positions count from `start`. `ValueError`: there is no such word, or several.
        """
        value = self.values[row]
        if not value:
            raise ValueError(
                "it is empty: name the word or its position, or leave such rows out by --filter"
            )
        text = self.texts[row]
        return _at(text, int(value), start) if self.is_position else _named(text, value)

    def problems(self, rows: Iterable[int], start: int = 1) -> dict[int, str]:
        """Returns the rows without one critical word, and why."""
        problems = {}
        for row in rows:
            try:
                self.span(row, start)
            except ValueError as error:
                problems[row] = str(error)
        return problems

    def agrees(self, row: int, span: Span, start: int = 1) -> bool:
        """Returns whether a row has this critical word, which may stand elsewhere, too."""
        if self.is_position:
            words = words_of_text(self.texts[row])
            at = int(self.values[row] or -1) - start
            return 0 <= at < len(words) and words[at] == span
        found = word_spans(self.texts[row], self.values[row])
        return any(start < span[1] and end > span[0] for start, end in found)

    @property
    def has_parts(self) -> bool:
        """Whether half of the values stand in their sentences, be it as parts of words."""
        pairs = [(self.values[row], self.texts[row]) for row in self.sample if self.values[row]]
        return 2 * sum(x.lower() in text.lower() for x, text in pairs) >= len(pairs)

    @property
    def may_count_from_zero(self) -> bool:
        """Whether positions are those of words both if they count from 0 and from 1."""
        pairs = zip(self.values, self.texts, strict=True)
        return self.is_position and all(0 < int(x or 0) < len(text.split()) for x, text in pairs)

    def first_position(self, others: Iterable[CriticalColumn]) -> tuple[int | None, str]:
        """Returns what positions count from, None if it is not known, and how that is known.

        A column of words that stand at these positions decides, else a 0 and the column's name.
        """
        if not self.is_position:
            return None, ""
        for other in others:
            if other.name != self.name and not other.is_position:
                shares = [self._share_of(other, start) for start in (0, 1)]
                if max(shares) >= _SHARE > min(shares):
                    return shares.index(max(shares)), f"{other.name} has these words"
        if any(int(value or 1) == 0 for value in self.values):
            return 0, _HAS_ZEROS
        if names_from_zero(self.name):
            return 0, "it is called so"
        return None, ""

    def _share_of(self, words: CriticalColumn, start: int) -> float:
        """The share of rows in which another column has the word at the position."""
        n = 0
        for row in self.sample:
            places = words_of_text(self.texts[row])
            at = int(self.values[row] or -1) - start
            n += 0 <= at < len(places) and words.agrees(row, places[at])
        return n / max(1, len(self.sample))

    def readings(self) -> str:
        """Returns which words the positions are, from 0 and from 1, in a row that has both."""
        both = (row for row in self.sample if all(self._found(row)))
        row = next(both, 0)
        shown = []
        for start, span in zip((0, 1), self._found(row), strict=True):
            text = self.texts[row]
            reading = "no word of the first row"
            if span:
                reading = f"{text[: span[0]]}[{text[slice(*span)]}]{text[span[1] :]}"
            shown.append(f"{self.option(start)} reads {shortened(reading, 150)}")
        return "; ".join(shown)

    def option(self, start: int) -> str:
        """Returns the option with which positions count from a start."""
        names = self.parts or (self.name,)
        return " ".join(["--critical", *(quote(f"{name}:{start}") for name in names)])

    @property
    def shown_name(self) -> str:
        """The column, or those of which it was joined, for messages."""
        return f"columns {' and '.join(self.parts)}" if self.parts else f"column {self.name}"

    def _found(self, row: int) -> list[Span | None]:
        """The words of a row if positions count from 0 and from 1; None for no word."""
        wrong = [self.problems([row], start) for start in (0, 1)]
        return [None if wrong[start] else self.span(row, start) for start in (0, 1)]


def _sample(n_rows: int) -> slice:
    return slice(0, None, max(1, n_rows // _SAMPLE))


def _at(text: str, position: int, start: int) -> Span:
    words = words_of_text(text)
    if len(words) == 1 and _UNSPACED(text):
        remedy = "name the critical word itself, or divide the sentences by |"
        raise ValueError(f"position {position} counts words, which no blanks separate: {remedy}")
    last = len(words) - 1 + start
    if not start <= position <= last:
        raise ValueError(f"position {position} is not between {start} and {last}, the last word")
    return words[position - start]


def _named(text: str, word: str) -> Span:
    found = word_spans(text, word)
    shown = repr(shortened(word, 60))
    words = words_of_text(text)
    if len(found) != 1:
        remedy = "give its position, from 1"
        if _UNSPACED(word):
            remedy = "divide the sentences by | around it"
        if found:
            raise ValueError(f"{shown} is {len(found)} times in the sentence: {remedy}")
        inside = [text[slice(*x)] for x in words if word.lower() in text[slice(*x)].lower()]
        if len(inside) == 1:
            whole = repr(shortened(inside[0], 60))
            raise ValueError(f"{shown} is only a part of {whole}: give the whole word")
        raise ValueError(f"{shown} is not in the sentence: write it as it stands there")
    start, end = found[0]
    if _UNSPACED(word):
        return start, end
    inside_words = [span for span in words if span[1] > start and span[0] < end]
    return inside_words[0][0], inside_words[-1][1]


def column_and_start(named: str, columns: Collection[str]) -> tuple[str, int | None]:
    """Returns the column of the critical word, and where its positions start, None if not given.

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

    That is where a column is named for each of the wide ones; a table with one for all is returned
    as it is. `BadInput`: another number of columns; positions of which some count from 0.

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
    columns = [table.columns[table.column_of(name, "--critical")] for name, _ in pairs]
    of_wide = dict(zip(wide, columns, strict=True))
    words = [of_wide[name][row] for row, name in enumerate(table.columns[condition])]
    which = ", ".join(f"{name} of {column}" for (name, _), column in zip(pairs, wide, strict=True))
    names = [table.column_of(name, "--critical") for name, _ in pairs]
    return table.having({_JOINED: words}, f"critical: {which}", without=names)


def with_critical(table: Table, named: Sequence[str], wide: Sequence[str] = ()) -> Table:
    """Returns sentences with the region `critical`, and `spill_1` and `spill_2` after it.

    `BadInput`: positions that seem to count from 0, a position beyond the sentence, a word that is
    not in it or several times, a column of one of several wide columns.

    Args:
        table: of sentences.
        named: a column that has the position of the critical word among the words, from 1 (from 0
            by `COLUMN:0`), or the word itself; several if `with_one_critical` joined them; () for
            none.
        wide: columns that the sentences come from.
    """
    if not named:
        return table
    name, start = column_and_start(named[0], table.columns)
    if len(named) > 1:
        name = _JOINED
    name = table.column_of(name, "--critical")
    if "regions" in table.columns:
        remedy = "the sentences have regions: name one by --region"
        raise BadInput(f"{table.name}: --critical: {remedy}")
    if len(named) == 1:
        _refuse_one_of(table, name, wide)
    texts = table.columns["sentence"]
    column = CriticalColumn.of(name, table.columns[name], texts)
    if len(named) > 1:
        parts = [column_and_start(text, table.columns)[0] for text in named]
        column = replace(column, parts=parts)
    first, why = column.first_position(columns_in_texts(table.columns, texts))
    if start is None and first == 0:
        problem = f"--critical: positions of the {column.shown_name} seem to count from 0"
        readings = f"{column.readings()}; give one of the two"
        raise BadInput(f"{table.name}: {problem}, since {why}: {readings}")
    from_position = 1 if start is None else start
    wrong = column.problems(range(len(table)), from_position)
    table.refuse({
        row: f"--critical: the {column.shown_name}: {problem}" for row, problem in wrong.items()
    })  # fmt: skip
    regions = [
        _regions(text, column.span(row, from_position)) for row, text in enumerate(column.texts)
    ]
    notes = [*_longer_words(table, column, from_position)]
    note = "critical: it" if len(named) > 1 else f"critical: {name}"
    note += " is the region critical"
    if any(len(row) > 1 for row in regions):
        note += f"; {' and '.join(_REGIONS[1:])} follow it"
    if start is None and first is None and column.may_count_from_zero:
        note += f"; positions count from 1, and from 0 with {column.option(0)}"
    return table.having({"regions": regions}, note, *notes, without=(_JOINED,) * (len(named) > 1))


def _longer_words(table: Table, column: CriticalColumn, start: int) -> Iterator[str]:
    """Yields a line if words stand together with others, as `homme` in `l'homme`."""
    if column.is_position:
        return
    longer = {}
    for row, word in enumerate(column.values):
        whole = column.texts[row][slice(*column.span(row, start))]
        if len(_letters(whole)) > len(_letters(word)):
            longer[row] = (word, whole.strip(".,;:!?…"))
    if longer:
        word, whole = next(iter(longer.values()))
        is_part = f"{word!r} stands in {whole!r} without a blank"
        others = len({*longer.values()}) - 1
        if others:
            is_part += f", and {others:,} other word{'s' * (others > 1)} likewise"
        what = f"{whole!r}{' and the like' * (others > 0)}"
        rows = table.places([*longer])
        yield f"critical: {is_part} ({rows}): the response is the surprisal of {what}"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _regions(text: str, critical: Span) -> list[dict[str, Any]]:
    """The critical word and the two words after it, as regions."""
    spans = [critical, *(span for span in words_of_text(text) if span[0] >= critical[1])]
    named_spans = zip(count(1), _REGIONS, spans, strict=False)
    return [
        {"number": number, "name": name, "start": start, "end": end}
        for number, name, (start, end) in named_spans
    ]


def _refuse_one_of(table: Table, name: str, wide: Sequence[str]) -> None:
    """Refuses a column that is called like one of several columns of sentences."""
    parts = {column: {*re.findall(r"[^\W_]+", column.casefold())} for column in (*wide, name)}
    shared = set.intersection(*(parts[column] for column in wide)) if wide else set()
    same = [column for column in wide if parts[name] & (parts[column] - shared)]
    if len(same) == 1 and len(wide) > 1:
        problem = f"--critical {name} is called like {same[0]}, and would be read for all of --wide"
        remedy = "name one column for each of --wide, in their order"
        raise BadInput(f"{table.name}: {problem}: {remedy}")


# ---- which columns may be it ---------------------------------------------------------------------


def critical_options(columns: Mapping[str, Sequence[Any]], texts: Sequence[str]) -> list[str]:
    """Returns the columns that are called so and have the critical word of all texts.

    They are as `--critical` takes them: with `:0` for positions from 0.

    Args:
        columns: name -> values.
        texts: names of columns of texts, of which all have the critical word; a row may lack one.
    """
    rows = [
        [(row, text) for row, text in enumerate(columns[name]) if text not in (None, "")]
        for name in texts
    ]
    pairs = [pair for of_text in rows for pair in of_text]
    if not pairs:
        return []
    of_pairs = {
        name: [values[row] for row, _ in pairs]
        for name, values in columns.items()
        if name not in texts
    }
    sentences = [text for _, text in pairs]
    words = [*columns_in_texts(of_pairs, sentences)]
    options = []
    for column in _called_so(of_pairs, sentences):
        first, why = column.first_position(words)
        if not column.problems(range(len(sentences)), 1 if first is None else first):
            options.append(_option(column, first, why))
    return options


def _option(column: CriticalColumn, first: int | None, why: str) -> str:
    """What `--critical` takes, with `:0` if positions surely count from 0."""
    is_sure = first == 0 and why != _HAS_ZEROS  # which may stand for no word
    return f"{column.name}:0" if is_sure else column.name


def may_be_critical(name: str) -> bool:
    """Returns whether a column is called like critical words or their positions."""
    return any(names_critical(name, is_position=x) for x in (False, True))


def _called_so(columns: Mapping[str, Sequence[Any]], texts: Sequence[str]) -> list[CriticalColumn]:
    """The columns that are called like critical words, or their positions if they have numbers."""
    named = filter(may_be_critical, columns)
    found = [CriticalColumn.of(name, columns[name], texts) for name in named]
    return [x for x in found if names_critical(x.name, is_position=x.is_position)]


def columns_in_texts(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> Iterator[CriticalColumn]:
    """Yields the columns with words that stand in most of the texts of their rows."""
    for name, values in columns.items():
        if name in ("id", "sentence", "regions") or is_named(name, "item"):
            continue
        rows = _sample(len(values))
        column = CriticalColumn.of(name, values[rows], texts[rows])
        filled = [*filter(None, column.values)]
        n_words = sum(len(value.split()) for value in filled)
        if not filled or column.is_position or n_words > _MOST_WORDS * len(filled):
            continue
        pairs = zip(column.texts, column.values, strict=True)
        n_found = sum(bool(word_spans(text, word)) for text, word in pairs)
        if 2 * n_found > len(filled):
            yield CriticalColumn.of(name, values, texts)


def critical_lines(
    columns: Mapping[str, Sequence[Any]], shown_rows: Callable[[Sequence[int]], str]
) -> Iterator[str]:
    """Yields which columns may have the critical word of each `sentence`, for `check`.

    Args:
        columns: name -> values.
        shown_rows: what messages call some rows.
    """
    texts = columns["sentence"]
    rows = range(len(texts))
    words = [*columns_in_texts(columns, texts)]
    named = _called_so(columns, texts)
    names = {column.name for column in named}
    for column in named:
        first, why = column.first_position(words)
        problems = column.problems(rows, 1 if first is None else first)
        if not problems:
            has = f"{column.name} has the critical word of each sentence"
            option = quote(_option(column, first, why))
            yield f"{has}: --critical {option} gives its surprisal"
            if first is None and column.may_count_from_zero:
                both = "may count from 0 or from 1"
                yield f"positions of {column.name} {both}: {column.readings()}"
        elif 2 * len(problems) <= len(rows) and (column.is_position or column.has_parts):
            problem = next(iter(problems.values()))
            n = f"{len(problems)} of {len(rows)} sentences ({shown_rows([*problems])})"
            yield f"{column.name} seems to have critical words, but not in {n}: {problem}"
    free = [x for x in words if x.name not in names and len({*x.values}) > MOST_LABELS]
    others = [x.name for x in free if not x.problems(rows)]
    if others:
        has = f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} a word of each sentence"
        yield f"{has}: --critical {quote(others[0])} gives its surprisal"


def critical_uses(
    columns: Mapping[str, Sequence[Any]], regions: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, str]:
    """Returns the columns that have the critical word of the regions, or another word.

    Args:
        columns: name -> values, `sentence` among them.
        regions: of each sentence.
    """
    if not all(row and row[0]["name"] == _REGIONS[0] for row in regions):
        return {}
    spans = [(row[0]["start"], row[0]["end"]) for row in regions]
    texts = columns["sentence"]
    uses = dict.fromkeys(
        (column.name for column in columns_in_texts(columns, texts)),
        "another word of the sentence",
    )
    for name, values in columns.items():
        column = CriticalColumn.of(name, values, texts)
        use = "position of the critical word" if column.is_position else "critical word"
        starts = (1, 0) if column.is_position else (1,) if name in uses else ()
        for start in starts:
            if all(column.agrees(row, span, start) for row, span in enumerate(spans)):
                uses[name] = use
    return uses
