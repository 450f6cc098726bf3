"""What the values of a column are: texts, words, labels, numbers, lists or names of files.

The rules are those of docs/specification.md, section 1. A column is its distinct values, which are
looked at once each, and their numbers (codes) in the rows.
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

from lmdiag.stimuli.values.codes import combined, n_distinct, n_distinct_by
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

_FILE = re.compile(
    r"(https?://\S*|\S.*\.(jpe?g|png|gif|bmp|svg|tiff?|webp|wav|mp[34]|ogg|flac|avi|mov|html?|csv|"
    r"tsv|txt|json|pdf|docx?|xlsx?|textgrid))",
    re.IGNORECASE,
).fullmatch
_LETTER = re.compile(r"[^\W\d_]").search
_GAPS = re.compile(GAP, re.IGNORECASE).findall
_UNDERSCORES = re.compile(SINGLE_GAP).findall
_JOINED_PARTS = re.compile(
    rf"[^\W_{WITHOUT_SPACES}]_[^\W_{WITHOUT_SPACES}]"
).search  # filler_1, a name in an experiment
_LIST = re.compile(r"\[\s*([\d\"'\[{].*)?\]|\{\s*[\"'].*\}", re.DOTALL).fullmatch
_PART_NUMBER = re.compile(r"[1-9]\d?\.[1-9]").fullmatch  # a name, as of a section
_AMOUNT = re.compile(rf"\s*[-+]?[\d.,]+\s+[^\s{WITHOUT_SPACES}]+\s*").fullmatch
# \w lacks the vowel signs of Indic scripts and the joiners between letters
_WORDS = re.compile(r"[\w\u0900-\u0dff\u200c\u200d]+").findall
_JOINED = re.compile(f"[{WITHOUT_SPACES}]").findall
_QUESTION_END = re.compile(r"[?？][\"'”’»)]*\Z").search


@dataclass(frozen=True)
class Distinct:
    """The distinct values of a column.

    Attributes:
        codes: number of the value of each row, (n rows,); -1 where it is missing.
        levels: the values as texts, in the order of the rows.
    """

    codes: NDArray[np.intp]
    levels: Sequence[str]

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """The number of rows of each value, (n values,)."""
        import numpy as np

        counts: NDArray[np.intp] = np.bincount(self.codes + 1, minlength=len(self.levels) + 1)[1:]
        return counts

    def by_count(self) -> dict[str, int]:
        """Returns value -> its number of rows, the most frequent one first."""
        return dict(
            Counter(dict(zip(self.levels, self.counts.tolist(), strict=True))).most_common()
        )

    @property
    def n_filled(self) -> int:
        """Number of rows that have a value."""
        return int(self.counts.sum())

    @property
    def are_groups(self) -> bool:
        """Whether values have two rows or more each, on average, as names of items have."""
        return 1 < len(self.levels) <= self.n_filled / 2

    @cached_property
    def is_number(self) -> bool:
        """Whether all values are numbers."""
        return bool(self.levels) and all(map(is_numeral, self.levels))

    @cached_property
    def sample(self) -> Sequence[str]:
        """Some of the values, or all if they are not many."""
        return self.levels[:: max(1, len(self.levels) // _SAMPLE_LEVELS)]

    @cached_property
    def are_texts(self) -> bool:
        """Whether half of the values have letters and two words, without blanks four characters.

        A number with its unit, such as `392 ms`, does not count.
        """
        texts = [level for level in self.sample if _has_words(level)]
        n_texts = sum(not _AMOUNT(text) for text in texts)
        return 2 * n_texts >= len(self.sample)

    @property
    def mean_words(self) -> float:
        """Words of a value, on average; 0 without any."""
        return sum(map(n_words, self.sample)) / max(1, len(self.sample))

    @cached_property
    def have_letters(self) -> bool:
        """Whether some value has a letter."""
        return any(map(_LETTER, self.levels))

    @property
    def are_short(self) -> bool:
        """Whether values have up to three words on average."""
        return 0 < self.mean_words <= _SHORT

    @cached_property
    def share_ended(self) -> float:
        """The share of values that end as sentences do."""
        return sum(map(is_ended, self.sample)) / max(1, len(self.sample))

    @property
    def are_fragments(self) -> bool:
        """Whether nine in ten values do not end as sentences do."""
        return self.share_ended <= 0.1

    @cached_property
    def share_capital(self) -> float | None:
        """The share of values that begin with a capital letter; None in scripts without them."""
        firsts = [level[:1] for level in self.sample]
        cased = [x for x in firsts if x.isupper() or x.islower()]
        return sum(map(str.isupper, cased)) / len(firsts) if cased else None

    @property
    def hardly_repeat(self) -> bool:
        """Whether there are several values, more than half as many as rows."""
        return len(self.levels) > 1 and 2 * len(self.levels) > self.n_filled

    @cached_property
    def have_gaps(self) -> bool:
        """Whether most values have the marker of a missing word, or all have one underscore."""
        n_gaps = sum(bool(_GAPS(text)) for text in self.levels)
        return 2 * n_gaps > len(self.levels) or self.are_underscored

    @cached_property
    def have_one_gap(self) -> bool:
        """Whether each value has the marker of a missing word once."""
        is_once = self.have_gaps and all(len(_GAPS(text)) == 1 for text in self.levels)
        return is_once or self.are_underscored

    @cached_property
    def are_underscored(self) -> bool:
        """Whether each of several values has one underscore by itself, which marks a gap."""
        n_marks = (len(_UNDERSCORES(text)) for text in self.levels)
        return len(self.levels) > 1 and all(n == 1 for n in n_marks)

    @property
    def are_amounts(self) -> bool:
        """Whether all values are numbers and some not whole, but for names as 1.2 and codes.

        A measure, as a probability, has such values; the code of a contrast is below 0 in a row.
        """
        if not self.is_number or all(map(_PART_NUMBER, self.levels)):
            return False
        numbers = [*map(float, self.levels)]
        return min(numbers) >= 0 and not all(map(float.is_integer, numbers))

    @property
    def are_counted(self) -> bool:
        """Whether the numbers from 0 or 1 up stand equally often, as those of rows and trials."""
        n = len(self.levels)
        is_even = n > 2 and int(self.counts.min()) == int(self.counts.max())
        return is_even and {*self.levels} in ({*map(str, range(n))}, {*map(str, range(1, n + 1))})

    def is_same_as(self, other: Distinct) -> bool:
        """Whether another column groups the rows in the same way."""
        n_pairs = n_distinct(combined(self.codes, other.codes))
        return len(self.levels) == len(other.levels) == n_pairs

    def differs_within(self, groups: Distinct) -> bool:
        """Whether most values of another column have several of these."""
        n_values = n_distinct_by(groups.codes, self.codes)
        return bool(2 * (n_values > 1).sum() > (n_values > 0).sum())

    def are_labels_within(self, groups: Distinct) -> bool:
        """Whether these are labels of which most values of another column have several."""
        is_fewer = len(self.levels) < len(groups.levels)
        return is_fewer and self.kind(groups.codes) == "label" and self.differs_within(groups)

    def kind(self, items: NDArray[np.intp] | None = None) -> ValueKind:
        """Returns what the values are.

        Args:
            items: number of the item of each row, (n rows,), where a column names items: a few
                values are labels if they repeat across items, and else if they are short.
        """
        if not self.levels:
            return "empty"
        if self.is_number:
            return "number"
        n = len(self.sample)
        if sum(bool(_FILE(level.strip())) for level in self.sample) * 2 >= n:
            return "file"
        if self._are_labels(items):
            return "label"
        if sum(bool(_LIST(level.strip())) for level in self.sample) * 2 >= len(self.sample):
            return "list"
        if not self.are_texts:
            return "word"
        questions = sum(bool(_QUESTION_END(level.strip())) for level in self.sample)
        return "question" if 2 * questions > n else "text"

    def _are_labels(self, items: NDArray[np.intp] | None) -> bool:
        """Whether there are two to six values, in more than twelve rows, which repeat."""
        n = len(self.levels)
        if not (2 <= n <= MOST_LABELS and self.n_filled > FEW_ROWS and self.n_filled >= 2 * n):
            return False
        if items is None or items.max() < 1:
            return self.mean_words < _LONG
        return bool(2 * (n_distinct_by(self.codes, items) > 1).sum() > n)


def values_of(column: Sequence[Any] | Series) -> Distinct:
    """Returns the distinct values of a column as texts, without what is missing."""
    import numpy as np
    from pandas import Series

    series = column if isinstance(column, Series) else Series(column, dtype=object)
    if any(isinstance(value, list | tuple | dict) for value in series.head(50)):
        return Distinct(np.full(len(series), -1), [])
    return distinct_values(*coded_texts(series))


def distinct_values(codes: NDArray[np.intp], texts: Sequence[str]) -> Distinct:
    """Returns the distinct values of a column, of which some texts are the same or missing.

    Args:
        codes: number of the text of each row, (n rows,); -1 where it is missing.
        texts: in the order of the rows.
    """
    import numpy as np

    unique = dict.fromkeys(texts)
    for text in MISSING:
        unique.pop(text, None)
    levels = [*unique]
    if len(levels) < len(texts):
        numbers = {level: number for number, level in enumerate(levels)}
        new = [numbers.get(text, -1) for text in texts]
        codes = np.array([*new, -1], dtype=np.intp)[codes]
    return Distinct(codes, levels)


def _has_words(text: str) -> bool:
    """Whether a text has letters and two words or more, names as filler_1 not counted."""
    if "_" in text:
        text = " ".join(word for word in text.split() if not _JOINED_PARTS(word))
    return n_words(text) >= 2 and bool(_LETTER(text))


def n_words(text: str) -> int:
    """Returns the number of words; two characters less than there are, without blanks."""
    return max(len(text.split()), len(_JOINED(text)) - 2)


def is_numeral(text: str) -> bool:
    """Returns whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


# ---- rows that belong together -------------------------------------------------------------------


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text, in lower case; its characters in scripts without blanks."""
    return frozenset((*_WORDS(text.lower()), *_JOINED(text)))


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Returns the share of the words of the shorter text that the other one has, too."""
    fewest = min(len(first), len(second))
    return len(first & second) / fewest if fewest else 0.0


def shared_words(texts: Sequence[str], codes: NDArray[np.intp]) -> tuple[float, float]:
    """Returns the overlap of texts in rows of one value, and of texts in rows of two values.

    Both are medians, over a sample; NaN where there are too few rows.

    Args:
        texts: of the rows.
        codes: number of the value of each row, (n rows,); -1 where it is missing.
    """
    import numpy as np

    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = np.split(order, starts[1:])
    groups = [rows for rows in groups[:: max(1, len(groups) // _SAMPLE)] if len(rows) > 1]
    if len(groups) < 2:
        return math.nan, math.nan
    words = [[words_of(texts[row]) for row in rows[:_SAMPLE]] for rows in groups]
    frequent = frequent_words(words)
    within = [own_overlap(first, other, frequent) for first, *others in words for other in others]
    across = [own_overlap(a[0], b[0], frequent) for a, b in itertools.pairwise(words)]
    return float(np.median(within)), float(np.median(across))


def frequent_words(groups: Sequence[Sequence[frozenset[str]]]) -> frozenset[str]:
    """Returns the words in texts of more than half of the groups, of which there are three or more.

    They are articles and the like, and say nothing of a group.
    """
    n_groups: Counter[str] = Counter()
    for texts in groups:
        n_groups.update(frozenset().union(*texts))
    is_enough = len(groups) > 2
    return frozenset(word for word, n in n_groups.items() if is_enough and 2 * n > len(groups))


def own_overlap(
    first: frozenset[str], second: frozenset[str], frequent: frozenset[str], least: int = 1
) -> float:
    """Returns the overlap of two texts without frequent words.

    With them, where one text has fewer than `least` others.
    """
    if min(len(first - frequent), len(second - frequent)) < least:
        return overlap(first, second)
    return overlap(first - frequent, second - frequent)
