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

_find_whitespace = re.compile(r"\s").search
_MOST_WITH_SPACES = 0.05  # of the words, where some are mistakes
_LEAST_STEPS = 0.6  # of the steps from word to word that go up by one; rows may lack words
_MOST_RISES = 0.8  # of the steps from word to word of a response
_SAMPLE_ROWS = 20_000  # rows that decide first, whether columns are enough
_MOST_TRIED = 24  # columns, those with the fewest values
_MOST_PAIRED = 6  # columns of which two or three are tried together


class WordRows(NamedTuple):
    """The columns of a table with a row per word.

    Attributes:
        word: column of the words.
        position: column of their positions.
        texts: columns that together tell texts apart; () where all rows are of one text.
    """

    word: str
    position: str
    texts: tuple[str, ...]


def word_rows(layout: TableLayout) -> WordRows | None:
    """Returns the columns of a table with a row per word; None for other tables.

    Where all rows are of one text, the column of positions must have a known name.
    """
    for word in words_in(layout):
        for position in _position_columns(layout, word):
            texts = _text_columns(layout, word, position)
            if texts is not None and (texts or is_named_as(position, "position")):
                return WordRows(word, position, texts)
    return None


def words_in(layout: TableLayout) -> list[str]:
    """Returns the columns that may have the words of texts, those of a known name first.

    If columns of a known name, as `word`, have words, no others are returned. A column of another
    name, or a target, must have words at which sentences end, as "home.".
    """
    known = [name for name in named_columns("word", layout.values) if folded(name) != "target"]
    known_words = [name for name in known if layout.kinds[name] == "word"]
    if known_words:
        return known_words
    others = [*named_columns("word", layout.values), *layout.values]
    others = [name for name in dict.fromkeys(others) if name not in known]
    others = [name for name in others if any(map(has_end_mark, layout.values[name].levels))]
    names = [x for x in (*known, *others) if layout.kinds[x] in ("word", "label", "text")]
    return [name for name in names if _are_single_words(layout.values[name])]


def _are_single_words(values: DistinctValues) -> bool:
    """Whether nearly all distinct values of a column are one word each, without white space."""
    n_with_spaces = sum(bool(_find_whitespace(level)) for level in values.levels)
    return n_with_spaces <= _MOST_WITH_SPACES * len(values.levels) and values.have_letters


def _position_columns(layout: TableLayout, word: str) -> Iterator[str]:
    """Yields the columns that may have the positions of words, those of a known name first.

    The other columns have numbers that go up by one from word to word. Of these, the columns with
    the most values come first: they count in texts, and others in sentences.

    Args:
        layout: all columns of the table, with their values and kinds.
        word: the column of words.
    """
    values = layout.values
    numbers = [x for x in values if layout.kinds[x] == "number" and x != word]
    known = named_columns("position", numbers)
    yield from known
    other_roles = ["reader", "list", "outcome", "text"]
    if not named_columns("text", [name for name in values if name not in numbers]):
        other_roles.append("item")  # which counts up where a row is an item
    others = [x for x in numbers if not any(is_named_as(x, role) for role in other_roles)]
    others = [x for x in others if x not in known and _count_words(values[x], values[word])]
    yield from sorted(others, key=lambda name: -len(values[name].levels))


def _count_words(numbers: DistinctValues, words: DistinctValues) -> bool:
    """Whether the numbers of a column go up by one from word to word, in the order of the rows."""
    steps = _steps(numbers, words)
    return len(steps) > 0 and float((steps == 1).mean()) >= _LEAST_STEPS


def may_be_response(layout: TableLayout, word: str, name: str) -> bool:
    """Returns whether numbers may be what people did at words, as reading times.

    They may be if their column has the name of a response. Under another name, they must not be
    surprisals or entropies, have one value for each word, as its length has, or rise from word to
    word, as its place does.

    Args:
        layout: all columns of the table, with their values and kinds.
        word: the column of words.
        name: the column of numbers.
    """
    numbers, words = layout.values[name], layout.values[word]
    if is_outcome(name) or is_named_as(name, "outcome"):
        return True
    if folded(name) in ("surprisal", "entropy") or is_determined_by(numbers.codes, [words.codes]):
        return False
    steps = _steps(numbers, words)  # from each word to the next
    rises = len(steps) > 0 and float((steps > 0).mean()) >= _MOST_RISES
    return not rises and not _count_words(numbers, words)


def _steps(numbers: DistinctValues, words: DistinctValues) -> NDArray[np.float64]:
    """The difference between the numbers of two neighbouring rows, for rows with different words.

    For example, [1, 1, -2] for the numbers 1, 2, 3, 1 of four different words. Two rows with the
    same word have no difference: they may be two readers of one word.
    """
    import numpy as np

    is_other_word = words.codes[1:] != words.codes[:-1]
    steps: NDArray[np.float64] = np.diff(_as_numbers(numbers))[is_other_word]
    return steps


def _as_numbers(values: DistinctValues) -> NDArray[np.float64]:
    """The number of each row, (n rows,); NaN where it is missing."""
    import numpy as np

    # the code of a missing value, -1, is the last index
    return np.array([*map(float, values.levels), np.nan])[values.codes]


def _text_columns(layout: TableLayout, word: str, position: str) -> tuple[str, ...] | None:
    """The columns that together tell texts apart, as ("story",) or ("item", "condition").

    () where all rows are of one text, and None where no columns are sufficient.

    Choices of columns are tried in four tiers:

    1. a column of a known name, as `text`, alone; without such a column, no column at all;
    2. the same with one or two further columns, or one further column alone;
    3. the same with three further columns, as of 2 x 2 x 2 conditions;
    4. a column with the whole text beside each of its words.

    Of the first tier with a sufficient choice, the choice that makes the fewest texts is taken, in
    tier 1 the first choice. If no choice is sufficient, all tiers are tried again with texts in
    which words may be missing.

    Args:
        layout: all columns of the table, with their values and kinds.
        word: the column of words.
        position: the column of their positions.
    """
    columns = layout.values
    known = [x for x in named_columns("text", columns) if x not in (word, position)]
    known.sort(key=lambda name: layout.kinds[name] == "text")  # labels of texts before whole texts
    others = _dividing_candidates(columns, (*known, word, position))
    whole_texts: list[tuple[str, ...]] = [(x,) for x in others if layout.kinds[x] == "text"]
    others = [name for name in others if layout.kinds[name] != "text"]
    names = [*known, *others]
    starts: list[tuple[str, ...]] = [(name,) for name in known] or [()]
    with_one_or_two: list[tuple[str, ...]] = [(name,) for name in others[:_MOST_TRIED]]
    for start in starts:
        # a choice that repeats the column of its start tells no more than this start alone
        with_one_or_two += [(*start, *further) for further in _singles_and_pairs(names)]
    with_three = [  # as of 2 x 2 x 2 conditions
        (*start, *further)
        for further in itertools.combinations(names[:_MOST_PAIRED], 3)
        for start in starts
    ]
    tiers = (starts, sorted(with_one_or_two, key=len), with_three, whole_texts)
    for may_have_gaps, choices in itertools.product((False, True), tiers):
        # choice -> number of texts that it tells apart; 0 if it is not sufficient
        n_texts = {
            choice: _n_texts(columns, word, position, choice, may_have_gaps=may_have_gaps)
            for choice in choices
        }
        sufficient = [choice for choice in choices if n_texts[choice] > 0]
        if sufficient:
            is_known = choices is starts
            best = sufficient[0] if is_known else min(sufficient, key=n_texts.__getitem__)
            return tuple(name for name in columns if name in best)  # in the order of the table
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
    names = _dividing_candidates(columns, (*texts, word, position))
    choices = [*_singles_and_pairs(names)]
    # choice -> number of texts that it tells apart; 0 if it is not sufficient
    n_texts = {x: _n_texts(columns, word, position, (*texts, *x)) for x in choices}
    sufficient = [choice for choice in choices if n_texts[choice] > 0]
    return min(sufficient, key=n_texts.__getitem__, default=())


def _dividing_candidates(
    columns: Mapping[str, DistinctValues], others: Collection[str]
) -> list[str]:
    """The columns that may tell texts apart, those with the fewest values first, lists last.

    Args:
        columns: all columns of the table.
        others: names of those that have something else.
    """
    n_rows = max(len(values.codes) for values in columns.values())
    n_levels = {x: len(v.levels) for x, v in columns.items() if v.n_filled == n_rows}
    names = [x for x, n in n_levels.items() if 1 < n < n_rows / 2 and x not in others]
    names = [name for name in names if not (is_named_as(name, "reader") or is_outcome(name))]
    return sorted(names, key=lambda name: (is_named_as(name, "list"), n_levels[name]))


def _singles_and_pairs(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields each of the first names alone, then pairs of the very first: (a,), (b,), (a, b)."""
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
    """The number of texts that columns tell apart; 0 if they do not divide the rows into texts.

    They divide the rows into texts if each position of a text has one word, and

    - most texts begin at the same position; or
    - most texts have no gap, as between the positions 3 and 5; or, if texts may have gaps, most
      words follow the word before without a gap.

    Where most texts have one word, most of them must begin at the same position, 0 or 1.

    Args:
        columns: all columns of the table.
        word: the column of words.
        position: the column of their positions.
        texts: the columns that tell texts apart.
        may_have_gaps: whether words may be missing from the texts.
    """
    names = (*texts, word, position)
    sample = {x: DistinctValues(columns[x].codes[:_SAMPLE_ROWS], columns[x].levels) for x in names}
    runs = _runs_of_words(sample, word, position, texts)
    if runs and len(columns[word].codes) > _SAMPLE_ROWS:
        runs = _runs_of_words(columns, word, position, texts)
    if not runs:
        return 0
    n_texts = runs.first_positions.total()
    first_position, n_texts_there = runs.first_positions.most_common(1)[0]
    begin_alike = 2 * n_texts_there > n_texts > 1
    if 2 * n_texts > runs.n_words:  # texts have less than two words on average
        are_texts = begin_alike and first_position <= 1
    else:
        # half of the words follow a gap at most, or without gaps, half of the texts have one
        most_runs = runs.n_words / 2 if may_have_gaps else 1.5 * n_texts
        are_texts = begin_alike or runs.n_runs <= most_runs
    return n_texts if are_texts else 0


class _Runs(NamedTuple):
    """Runs of words in texts: words whose positions follow each other without a gap.

    For example, the positions 1, 2, 3, 5, 6 of a text are two runs, of 1 to 3 and of 5 to 6.

    Attributes:
        n_words: number of words of all texts.
        n_runs: number of runs in all texts; a text without a gap is one run.
        first_positions: position of the first word of a text -> number of such texts.
    """

    n_words: int
    n_runs: int
    first_positions: Counter[float]


def _runs_of_words(
    columns: Mapping[str, DistinctValues], word: str, position: str, texts: Sequence[str]
) -> _Runs | None:
    """The runs of words of the texts; None if a position of a text has two words, or no row a word.

    Args:
        columns: of the table.
        word: the column of words.
        position: the column of their positions.
        texts: the columns that tell texts apart.
    """
    import numpy as np

    words = columns[word].codes
    one_text = np.zeros_like(words)  # if no columns tell texts apart
    text_codes = combine_codes(one_text, *(columns[name].codes for name in texts))
    # number of the text and position of each row; -1 for a row without a word
    places = combine_codes(text_codes, columns[position].codes)
    places = np.where(words < 0, -1, places)
    distinct_places, rows = np.unique(places, return_index=True)
    rows = rows[distinct_places >= 0]  # the first row of each place
    if not len(rows) or n_distinct(combine_codes(places, words)) != len(rows):
        return None
    text_codes = text_codes[rows]
    positions = _as_numbers(columns[position])[rows]
    order = np.lexsort((positions, text_codes))  # by text, then by position
    is_first = np.diff(text_codes[order], prepend=-1) != 0
    is_after_gap = np.diff(positions[order], prepend=0) > 1
    n_runs = int(np.count_nonzero(is_first | is_after_gap))
    return _Runs(len(rows), n_runs, Counter(positions[order][is_first].tolist()))
