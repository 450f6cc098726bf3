"""What the values of a column are: texts, words, labels, numbers, lists or names of files.

The rules are those of docs/specification.md, section 1. A column is its distinct values (levels),
which are looked at once each, and the number (code) of its value in each row.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.stimuli.values.codes import combine_codes, n_distinct, n_distinct_by
from lmdiag.stimuli.values.marks import GAP, SINGLE_GAP, is_ended
from lmdiag.tables.table_files import MISSING, coded_texts
from lmdiag.text import WITHOUT_SPACES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import Series

ValueKind = Literal["empty", "number", "file", "label", "list", "word", "question", "text"]

MOST_LABELS = 6
"""Distinct values of a column of labels at most; also the levels of a condition that is found."""

RELATED = 1 / 3
"""Share of the words of the shorter text that two texts of an item have in common at least."""

FEW_ROWS = 12
"""In as many rows or fewer, values that repeat and single words may be texts."""

_SAMPLE_LEVELS = 2_000  # distinct values that are looked at, if there are more
_SAMPLE = 60  # items whose texts are compared
_SHORT = 3  # words of a short text, on average
_LONG = 5  # with more words a value is not a label, if no column names the items

_is_file_name = re.compile(
    r"(https?://\S*|\S.*\.(jpe?g|png|gif|bmp|svg|tiff?|webp|wav|mp[34]|ogg|flac|avi|mov|html?|csv|"
    r"tsv|txt|json|pdf|docx?|xlsx?|textgrid))",
    re.IGNORECASE,
).fullmatch
_has_letter = re.compile(r"[^\W\d_]").search
_gaps_in = re.compile(GAP, re.IGNORECASE).findall
_underscores_in = re.compile(SINGLE_GAP).findall
_has_joined_parts = re.compile(
    rf"[^\W_{WITHOUT_SPACES}]_[^\W_{WITHOUT_SPACES}]"
).search  # filler_1, a name in an experiment
_is_list_text = re.compile(r"\[\s*([\d\"'\[{].*)?\]|\{\s*[\"'].*\}", re.DOTALL).fullmatch
_is_section_number = re.compile(r"[1-9]\d?\.[1-9]").fullmatch  # a name, as of a section
_is_amount = re.compile(rf"\s*[-+]?[\d.,]+\s+[^\s{WITHOUT_SPACES}]+\s*").fullmatch
# \w lacks the vowel signs of Indic scripts and the joiners between letters
_words_in = re.compile(r"[\w\u0900-\u0dff\u200c\u200d]+").findall
_unspaced_characters_in = re.compile(f"[{WITHOUT_SPACES}]").findall
_ends_as_question = re.compile(r"[?？][\"'”’»)]*\Z").search


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column, and which row has which.

    Attributes:
        codes: number of the value of each row, (n rows,); -1 where it is missing.
        levels: the distinct values as texts, in the order of the rows: value 0, value 1, ...
    """

    codes: NDArray[np.intp]
    levels: Sequence[str]

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """The number of rows of each value, (n values,)."""
        import numpy as np

        n_rows = np.bincount(self.codes + 1, minlength=len(self.levels) + 1)
        counts: NDArray[np.intp] = n_rows[1:]  # without the rows that have no value
        return counts

    def by_count(self) -> dict[str, int]:
        """Returns value -> its number of rows, the most frequent one first."""
        n_rows = Counter(dict(zip(self.levels, self.counts.tolist(), strict=True)))
        return dict(n_rows.most_common())

    @property
    def n_filled(self) -> int:
        """Number of rows that have a value."""
        return int(self.counts.sum())

    @property
    def are_groups(self) -> bool:
        """Whether values group the rows, as names of items do: on average two rows or more each."""
        return 1 < len(self.levels) <= self.n_filled / 2

    @cached_property
    def is_number(self) -> bool:
        """Whether all values are numbers."""
        return bool(self.levels) and all(map(is_numeral, self.levels))

    @cached_property
    def sample(self) -> Sequence[str]:
        """Some of the distinct values, evenly spaced; all if there are up to 2,000."""
        step = max(1, len(self.levels) // _SAMPLE_LEVELS)
        return self.levels[::step]

    @cached_property
    def are_texts(self) -> bool:
        """Whether half of the values or more are texts: two words or more, some with letters.

        In scripts without spaces a text has four characters or more. A number with its unit, such
        as `392 ms`, is not a text.
        """
        texts = [level for level in self.sample if _has_words(level)]
        n_texts = sum(not _is_amount(text) for text in texts)
        return 2 * n_texts >= len(self.sample)

    @property
    def mean_words(self) -> float:
        """Number of words of a value, on average; 0 without values."""
        n = sum(n_words(level) for level in self.sample)
        return n / max(1, len(self.sample))

    @cached_property
    def have_letters(self) -> bool:
        """Whether some value has a letter."""
        return any(_has_letter(level) for level in self.levels)

    @property
    def are_short(self) -> bool:
        """Whether values have up to three words on average."""
        return 0 < self.mean_words <= _SHORT

    @cached_property
    def share_ended(self) -> float:
        """The share of values that end as sentences do, with a full stop or the like."""
        n_ended = sum(is_ended(level) for level in self.sample)
        return n_ended / max(1, len(self.sample))

    @property
    def are_fragments(self) -> bool:
        """Whether nine in ten values or more do not end as sentences do."""
        return self.share_ended <= 0.1

    @cached_property
    def share_capital(self) -> float | None:
        """The share of values that begin with a capital letter; None in scripts without them."""
        first_characters = [level[:1] for level in self.sample]
        n_upper = sum(character.isupper() for character in first_characters)
        n_lower = sum(character.islower() for character in first_characters)
        if not (n_upper or n_lower):
            return None
        return n_upper / len(first_characters)

    @property
    def hardly_repeat(self) -> bool:
        """Whether there are several distinct values, more than half as many as rows with one."""
        return len(self.levels) > 1 and 2 * len(self.levels) > self.n_filled

    @cached_property
    def have_gaps(self) -> bool:
        """Whether most values have the mark of a missing word, as ___, or all one underscore."""
        n_texts_with_gaps = sum(bool(_gaps_in(text)) for text in self.levels)
        return 2 * n_texts_with_gaps > len(self.levels) or self.are_underscored

    @cached_property
    def have_one_gap(self) -> bool:
        """Whether each value has the mark of a missing word once."""
        is_one_each = all(len(_gaps_in(text)) == 1 for text in self.levels)
        return (self.have_gaps and is_one_each) or self.are_underscored

    @cached_property
    def are_underscored(self) -> bool:
        """Whether there are several values and each has one underscore by itself, for a gap."""
        is_one_each = all(len(_underscores_in(text)) == 1 for text in self.levels)
        return len(self.levels) > 1 and is_one_each

    @property
    def are_decimals(self) -> bool:
        """Whether all values are numbers from 0 up, of which some are not whole.

        A measure, such as a probability, has such values. Numbers of sections (1.1, 1.2) are names,
        and a column with a number below 0 may be the codes of a contrast (-0.5, 0.5).
        """
        if not self.is_number or all(_is_section_number(level) for level in self.levels):
            return False
        numbers = [float(level) for level in self.levels]
        return min(numbers) >= 0 and not all(number.is_integer() for number in numbers)

    @property
    def are_running_numbers(self) -> bool:
        """Whether the values count something, such as trials: 0, 1, ... or 1, 2, ...

        There are three numbers or more, each in equally many rows.
        """
        n = len(self.levels)
        if n <= 2 or int(self.counts.min()) != int(self.counts.max()):
            return False
        from_zero = {str(number) for number in range(n)}
        from_one = {str(number) for number in range(1, n + 1)}
        return {*self.levels} in (from_zero, from_one)

    def groups_rows_like(self, other: DistinctValues) -> bool:
        """Whether another column groups the rows in the same way, be it by other names."""
        n_pairs = n_distinct(combine_codes(self.codes, other.codes))
        return len(self.levels) == len(other.levels) == n_pairs

    def differs_within(self, groups: DistinctValues) -> bool:
        """Whether these values differ within most groups of rows.

        Args:
            groups: another column; rows with one of its values are a group.
        """
        n_values = n_distinct_by(groups.codes, self.codes)
        n_varying_groups = (n_values > 1).sum()
        n_filled_groups = (n_values > 0).sum()
        return bool(2 * n_varying_groups > n_filled_groups)

    def are_labels_within(self, groups: DistinctValues) -> bool:
        """Whether these are labels that differ within most groups, of which there are more.

        Args:
            groups: another column, such as the items.
        """
        is_fewer = len(self.levels) < len(groups.levels)
        return is_fewer and self.kind(groups.codes) == "label" and self.differs_within(groups)

    def kind(self, items: NDArray[np.intp] | None = None) -> ValueKind:
        """Returns what the values are, e.g. "label": what half of them are, or all for numbers.

        Args:
            items: number of the item of each row, (n rows,); None if no column names items. It
                decides whether a few values are labels, see `_are_labels`.
        """
        if not self.levels:
            return "empty"
        if self.is_number:
            return "number"
        values = [level.strip() for level in self.sample]
        n_files = sum(bool(_is_file_name(value)) for value in values)
        if 2 * n_files >= len(values):
            return "file"
        if self._are_labels(items):
            return "label"
        n_lists = sum(bool(_is_list_text(value)) for value in values)
        if 2 * n_lists >= len(values):
            return "list"
        if not self.are_texts:
            return "word"
        n_questions = sum(bool(_ends_as_question(value)) for value in values)
        return "question" if 2 * n_questions > len(values) else "text"

    def _are_labels(self, items: NDArray[np.intp] | None) -> bool:
        """Whether there are two to six values, in more than twelve rows, which repeat.

        With several items, most values stand in several of them; otherwise the values are short.

        Args:
            items: number of the item of each row; None if no column names items.
        """
        n = len(self.levels)
        is_repeated = self.n_filled > FEW_ROWS and self.n_filled >= 2 * n
        if not (2 <= n <= MOST_LABELS and is_repeated):
            return False
        if items is None or items.max() < 1:  # one item at most
            return self.mean_words < _LONG
        n_items_of_value = n_distinct_by(self.codes, items)
        return bool(2 * (n_items_of_value > 1).sum() > n)


def values_of(column: Sequence[Any] | Series) -> DistinctValues:
    """Returns the distinct values of a column as texts, without missing values.

    A column of lists or dicts is returned as one without values.
    """
    import numpy as np
    from pandas import Series

    series = column if isinstance(column, Series) else Series(column, dtype=object)
    if any(isinstance(value, list | tuple | dict) for value in series.head(50)):
        return DistinctValues(np.full(len(series), -1), [])
    return distinct_values(*coded_texts(series))


def distinct_values(codes: NDArray[np.intp], texts: Sequence[str]) -> DistinctValues:
    """Returns the distinct values of a column whose texts may repeat or stand for missing values.

    For example, codes [0, 1, 2] of the texts ["a", "", "a"] become codes [0, -1, 0] of ["a"].

    Args:
        codes: number of the text of each row, (n rows,); -1 where it is missing.
        texts: text 0, text 1, ...
    """
    import numpy as np

    levels = [text for text in dict.fromkeys(texts) if text not in MISSING]
    if len(levels) < len(texts):
        code_of_level = {level: code for code, level in enumerate(levels)}
        new_codes = [code_of_level.get(text, -1) for text in texts]
        # the last entry is for code -1
        codes = np.array([*new_codes, -1], dtype=np.intp)[codes]
    return DistinctValues(codes, levels)


def _has_words(text: str) -> bool:
    """Whether a text has letters and two words or more; names as filler_1 do not count."""
    if "_" in text:
        text = " ".join(word for word in text.split() if not _has_joined_parts(word))
    return n_words(text) >= 2 and bool(_has_letter(text))


def n_words(text: str) -> int:
    """Returns the number of words of a text, which tells texts from single words and labels.

    In scripts without spaces it is not known where words end. Most words have up to three
    characters there, so that a value of four or more characters is taken for a text, and counts as
    two words or more: its characters less 2.

    >>> n_words("the old man"), n_words("喜欢猫"), n_words("我喜欢猫")
    (3, 1, 2)
    """
    n_characters = len(_unspaced_characters_in(text))  # of scripts without spaces
    return max(len(text.split()), n_characters - 2)


def is_numeral(text: str) -> bool:
    """Returns whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python reads 1_000 as a number, a user means a name


# ---- rows that belong together -------------------------------------------------------------------


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text, in lower case; its characters in scripts without spaces."""
    words = _words_in(text.lower())
    characters = _unspaced_characters_in(text)  # of scripts without spaces
    return frozenset((*words, *characters))


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Returns the share of the words of the shorter text that the other one has, too.

    >>> overlap(frozenset(["the", "cat"]), frozenset(["the", "dog", "barks"]))
    0.5
    """
    n_words_of_shorter = min(len(first), len(second))
    return len(first & second) / n_words_of_shorter if n_words_of_shorter else 0.0


def median_overlaps(texts: Sequence[str], codes: NDArray[np.intp]) -> tuple[float, float]:
    """Returns how many words texts share within a group of rows, and across groups.

    A group is the rows with one value of a column, for example those of an item: texts of an item
    share more words than texts of two items, say (0.8, 0.1). Both numbers are medians of
    `overlap_of_rarer_words` over a sample of pairs. Within groups, the first text of a group is
    paired with each other text of the group; across groups, the first texts of two neighbouring
    groups are a pair. Both are NaN where fewer than two groups have several rows.

    Args:
        texts: of the rows.
        codes: number of the group of each row, (n rows,); -1 where it is missing.
    """
    import numpy as np

    order = np.argsort(codes, kind="stable")  # rows by group, within a group in their order
    order = order[codes[order] >= 0]
    # a group starts where the code changes; -1 is before all codes, so that the first one starts
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = np.split(order, starts[1:])
    step = max(1, len(groups) // _SAMPLE)
    groups = [rows for rows in groups[::step] if len(rows) > 1]
    if len(groups) < 2:
        return math.nan, math.nan
    words_of_groups = [[words_of(texts[row]) for row in rows[:_SAMPLE]] for rows in groups]
    frequent = frequent_words(words_of_groups)
    within = []
    for first_words, *further_words in words_of_groups:
        within += [overlap_of_rarer_words(first_words, words, frequent) for words in further_words]
    first_texts = [words[0] for words in words_of_groups]
    across = [overlap_of_rarer_words(a, b, frequent) for a, b in itertools.pairwise(first_texts)]
    return float(np.median(within)), float(np.median(across))


def frequent_words(groups: Sequence[Sequence[frozenset[str]]]) -> frozenset[str]:
    """Returns the words that more than half of the groups of texts have.

    Such words, as articles, do not tell groups apart. None are returned for fewer than three
    groups: of two groups, every word that both have would be frequent.

    >>> cat, dog, bird = ([words_of(f"the {noun} sat")] for noun in ("cat", "dog", "bird"))
    >>> sorted(frequent_words([cat, dog, bird]))
    ['sat', 'the']

    Args:
        groups: of each group, such as an item, the words of each of its texts.
    """
    if len(groups) < 3:
        return frozenset()
    n_groups_with: Counter[str] = Counter()
    for texts in groups:
        n_groups_with.update(frozenset().union(*texts))
    return frozenset(word for word, n in n_groups_with.items() if 2 * n > len(groups))


def overlap_of_rarer_words(
    first: frozenset[str], second: frozenset[str], frequent: frozenset[str], least: int = 1
) -> float:
    """Returns the `overlap` of the words of two texts without frequent words.

    Frequent words count, too, if a text has fewer than `least` other words.

    >>> first, second = words_of("the cat sat"), words_of("the dog sat")
    >>> overlap_of_rarer_words(first, second, frozenset(["the"]))
    0.5

    Args:
        first: the words of one text.
        second: the words of the other.
        frequent: words that most groups of texts have, see `frequent_words`.
        least: number of other words that both texts must have.
    """
    rarer_first = first - frequent
    rarer_second = second - frequent
    if min(len(rarer_first), len(rarer_second)) < least:
        return overlap(first, second)
    return overlap(rarer_first, rarer_second)
