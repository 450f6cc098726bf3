"""Tables with a row per word: which columns have the words, their positions and the texts.

Names only suggest. A column of positions goes up by one from one word to the next, and begins anew.
Columns tell texts apart if each position of a text has one word, and these follow each other.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.stimuli.values.codes import combine_codes, is_determined_by, n_distinct
from lmdiag.stimuli.values.kinds import DistinctValues
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.marks import has_end_mark
from lmdiag.stimuli.values.names import is_named_as, is_outcome, named_columns
from lmdiag.text import folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WHITESPACE = re.compile(r"\s").search
_MOST_WITH_SPACES = 0.05  # of the words, where some are mistakes
_LEAST_STEPS = 0.6  # of the steps from word to word that go up by one
_MOST_RISES = 0.8  # of the steps from word to word of a response
_SAMPLE_ROWS = 20_000  # rows that decide first, whether columns are enough
_MOST_TRIED = 24  # columns, those with the fewest values
_MOST_PAIRED = 6  # columns of which two or three are tried together


class WordRows(NamedTuple):
    """The columns of a table with a row per word.

    Attributes:
        word: of the words.
        position: of their positions.
        texts: of the names of texts, which tell them apart together; () where all rows are of one.
    """

    word: str
    position: str
    texts: tuple[str, ...]


def word_rows(layout: TableLayout) -> WordRows | None:
    """Returns the columns of a table with a row per word; None for other tables."""
    for word in words_in(layout):
        for position in _positions(layout, word):
            texts = _texts(layout, word, position)
            if texts or (texts is not None and is_named_as(position, "position")):
                return WordRows(word, position, texts)
    return None


def words_in(layout: TableLayout) -> list[str]:
    """Returns the columns that may have the words of texts, those of a known name first.

    One of another name, or a target, has words at which sentences end.
    """
    known = [name for name in named_columns("word", layout.values) if folded(name) != "target"]
    if words := [name for name in known if layout.kinds[name] == "word"]:
        return words
    others = [*named_columns("word", layout.values), *layout.values]
    others = [name for name in dict.fromkeys(others) if name not in known]
    others = [name for name in others if any(map(has_end_mark, layout.values[name].levels))]
    return [name for name in (*known, *others) if _has_single_words(layout, name)]


def _has_single_words(layout: TableLayout, name: str) -> bool:
    """Whether nearly all distinct values of a column are one word each, without white space."""
    values = layout.values[name]
    if layout.kinds[name] not in ("word", "label", "text"):
        return False
    n_with_spaces = sum(bool(_WHITESPACE(level)) for level in values.levels)
    return n_with_spaces <= _MOST_WITH_SPACES * len(values.levels) and values.have_letters


def _positions(layout: TableLayout, word: str) -> Iterator[str]:
    """Yields the columns that may have the positions of words, those of a known name first.

    Of the others, those with the most values come first, which are of the longest texts.
    """
    values = layout.values
    numbers = [x for x in values if layout.kinds[x] == "number" and x != word]
    known = named_columns("position", numbers)
    yield from known
    roles = ["reader", "list", "outcome", "text"]
    if not named_columns("text", [name for name in values if name not in numbers]):
        roles.append("item")  # which counts up where a row is an item
    others = [x for x in numbers if not any(is_named_as(x, role) for role in roles)]
    others = [x for x in others if x not in known and _counts(values[x], values[word])]
    yield from sorted(others, key=lambda name: -len(values[name].levels))


def _counts(numbers: DistinctValues, words: DistinctValues) -> bool:
    """Whether whole numbers go up by one from word to word, in the order of the rows."""
    steps = _steps(numbers, words)
    return len(steps) > 0 and float((steps == 1).mean()) >= _LEAST_STEPS


def may_be_response(layout: TableLayout, word: str, name: str) -> bool:
    """Returns whether numbers may be what people did at words.

    They are called so, or they are not surprisals, do not follow from the word, as its length, and
    do not rise from word to word, as its place.
    """
    numbers, words = layout.values[name], layout.values[word]
    if is_outcome(name) or is_named_as(name, "outcome"):
        return True
    if folded(name) in ("surprisal", "entropy") or is_determined_by(numbers.codes, [words.codes]):
        return False
    steps = _steps(numbers, words)
    rises = len(steps) > 0 and float((steps > 0).mean()) >= _MOST_RISES
    return not rises and not _counts(numbers, words)


def _steps(numbers: DistinctValues, words: DistinctValues) -> NDArray[np.float64]:
    """The differences from one word to the next, in the order of the rows."""
    import numpy as np

    is_step = words.codes[1:] != words.codes[:-1]
    steps: NDArray[np.float64] = np.diff(_as_numbers(numbers))[is_step]
    return steps


def _as_numbers(values: DistinctValues) -> NDArray[np.float64]:
    """The number of each row, (n rows,); NaN where it is missing."""
    import numpy as np

    return np.array([*map(float, values.levels), np.nan])[values.codes]


def _texts(layout: TableLayout, word: str, position: str) -> tuple[str, ...] | None:
    """The columns that tell texts apart: one that is called so, or else those of the fewest texts.

    None if none are enough.
    """
    columns = layout.values
    known = [x for x in named_columns("text", columns) if x not in (word, position)]
    known.sort(key=lambda name: layout.kinds[name] == "text")  # names before whole texts
    others = _may_divide(columns, (*known, word, position))
    whole: list[tuple[str, ...]] = [(name,) for name in others if layout.kinds[name] == "text"]
    others = [name for name in others if layout.kinds[name] != "text"]
    starts: list[tuple[str, ...]] = [(name,) for name in known] or [()]
    further: list[tuple[str, ...]] = [(name,) for name in others[:_MOST_TRIED]]
    further += [(*x, *more) for x in starts for more in _of_one_or_two([*known, *others])]
    of_three = itertools.combinations([*known, *others][:_MOST_PAIRED], 3)  # as of 2 x 2 x 2
    triples = [(*x, *more) for more in of_three for x in starts]
    tiers = (starts, sorted(further, key=len), triples, whole)
    for gaps, choices in itertools.product((False, True), tiers):
        sizes = {x: _n_texts(columns, word, position, x, may_have_gaps=gaps) for x in choices}
        enough = [x for x, n in sizes.items() if n]
        if enough:
            found = enough[0] if choices is starts else min(enough, key=sizes.__getitem__)
            return tuple(name for name in columns if name in found)
    return None


def dividing_columns(
    columns: Mapping[str, DistinctValues], word: str, position: str, texts: Sequence[str]
) -> tuple[str, ...]:
    """Returns the one or two further columns by which each position of a text has one word.

    These are the columns that make the fewest texts, lists after others; () if none are enough.

    Args:
        columns: all columns of the table.
        word, position: of them, the columns of words and of their positions.
        texts: those that name texts.
    """
    choices = [*_of_one_or_two(_may_divide(columns, (*texts, word, position)))]
    sizes = {x: _n_texts(columns, word, position, (*texts, *x)) for x in choices}
    return min((x for x in choices if sizes[x]), key=sizes.__getitem__, default=())


def _may_divide(columns: Mapping[str, DistinctValues], others: Collection[str]) -> list[str]:
    """The columns that may tell texts apart, those with the fewest values first, lists last."""
    n_rows = max(len(values.codes) for values in columns.values())
    sizes = {x: len(v.levels) for x, v in columns.items() if v.n_filled == n_rows}
    names = [x for x, n in sizes.items() if 1 < n < n_rows / 2 and x not in others]
    names = [name for name in names if not (is_named_as(name, "reader") or is_outcome(name))]
    return sorted(names, key=lambda name: (is_named_as(name, "list"), sizes[name]))


def _of_one_or_two(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in names[:_MOST_TRIED])
    yield from itertools.combinations(names[:_MOST_PAIRED], 2)


def _n_texts(
    columns: Mapping[str, DistinctValues],
    word: str,
    position: str,
    texts: Sequence[str],
    *,
    may_have_gaps: bool = True,
) -> int:
    """The number of texts that columns name, if words of a text follow others; else 0.

    That is where each position has one word, and most texts begin at the same position, or have no
    gap; with gaps, where most words follow the word before. Texts with one word each begin with it.
    """
    names = (*texts, word, position)
    sample = {x: DistinctValues(columns[x].codes[:_SAMPLE_ROWS], columns[x].levels) for x in names}
    found = _beginnings(sample, word, position, texts)
    if found and len(columns[word].codes) > _SAMPLE_ROWS:
        found = _beginnings(columns, word, position, texts)
    if not found:
        return 0
    n_words, n_runs, beginnings = found
    (beginning, n_alike), *_ = beginnings.most_common()
    n_texts = beginnings.total()
    begin_alike = 2 * n_alike > n_texts > 1
    if 2 * n_texts > n_words:
        are_texts = begin_alike and beginning <= 1
    else:
        most_runs = n_words / 2 if may_have_gaps else 1.5 * n_texts
        are_texts = begin_alike or n_runs <= most_runs
    return n_texts if are_texts else 0


def _beginnings(
    columns: Mapping[str, DistinctValues], word: str, position: str, texts: Sequence[str]
) -> tuple[int, int, Counter[float]] | None:
    """The number of words, of runs of words without a gap, and of texts by their first position.

    None where a position of a text has two words.
    """
    import numpy as np

    words = columns[word].codes
    names = combine_codes(np.zeros_like(words), *(columns[name].codes for name in texts))
    places = combine_codes(names, columns[position].codes)
    places = np.where(words < 0, -1, places)
    rows = np.unique(places, return_index=True)[1][int(places.min(initial=0) < 0) :]
    if not len(rows) or n_distinct(combine_codes(places, words)) != len(rows):
        return None
    numbers = _as_numbers(columns[position])[rows]
    order = np.lexsort((numbers, names[rows]))
    is_first = np.diff(names[rows][order], prepend=-1) != 0
    is_after_gap = np.diff(numbers[order], prepend=0) > 1
    n_runs = int(np.count_nonzero(is_first | is_after_gap))
    return len(rows), n_runs, Counter(numbers[order][is_first].tolist())
