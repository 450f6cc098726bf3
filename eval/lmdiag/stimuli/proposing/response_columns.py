"""Tables of people's responses: which columns have the contexts, the responses and their numbers.

Names only suggest. Responses are words of which several are given to one context, some of them more
than once, and which no condition explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from lmdiag.stimuli.values.codes import combine_codes, is_determined_by, n_distinct, n_distinct_by
from lmdiag.stimuli.values.kinds import MOST_LABELS, DistinctValues
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.names import NAMES_OF_RESPONSES, is_named_as, named_columns
from lmdiag.text import folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AMOUNTS = {"count", "cloze", "targetcloze"}
"""Names of the columns of counts and shares that are read."""

_MOST_SPREAD = 0.1  # of sums of counts: standard deviation by mean
_MOST_RESPONSE_COLUMNS = 2  # of words that people gave: as typed, and as corrected
_ROUNDING = 0.02  # of sums of shares
_MOST_CONTEXTS = 8  # columns that are tried as contexts
_MOST_COLUMNS = 40  # columns of words, and of labels, that are tried for each

# share of the contexts that have several words, and of those that have one word twice, at least: in
# some contexts all people give the same word, and in others each gives another one
_LEAST_CONTEXTS = 1 / 4


class ResponseColumns(NamedTuple):
    """The columns of a table of responses.

    Attributes:
        columns: name that `cloze` reads -> column.
        wide: columns of responses, of which a row has several.
    """

    columns: Mapping[str, str]
    wide: Sequence[str] = ()


def response_columns(layout: TableLayout) -> ResponseColumns | None:
    """Returns the columns of a table with responses to contexts; None for other tables.

    For example, {"context": "stem", "response": "completion", "count": "n"}: contexts with gaps are
    called sentences, and responses may stand in several columns of a row.
    """
    for context in _context_columns(layout)[:_MOST_CONTEXTS]:
        columns: dict[str, str] = {}
        if layout.item and layout.values[layout.item].are_groups:
            columns["item"] = layout.item
        columns["sentence" if layout.values[context].have_gaps else "context"] = context
        if wide := _wide_responses(layout, context):
            return ResponseColumns(columns, wide)
        response = _response_column(layout, context)
        if response:
            columns["response"] = response
            amount = amount_column(layout.values, context, response)
            if amount:
                kind, column = amount
                columns[kind] = column
            return ResponseColumns(columns)
    return None


def _context_columns(layout: TableLayout) -> list[str]:
    """The columns that may have contexts, the most likely first.

    These are columns of a known name, as `stem`. If there is no such column, the following ones:

    1. `sentence`, if its texts repeat;
    2. columns of texts with gaps;
    3. columns of texts that do not end as sentences do, and have the most distinct texts of the
       table. Columns of notes have fewer.
    """
    texts = layout.of_kind("text", "question")
    # one text in all rows is not a context, unless many readers respond to it
    if layout.n_rows > 1 and not named_columns("reader", layout.values):
        texts = [x for x in texts if len(layout.values[x].levels) > 1]
    known = [x for x in named_columns("context", layout.values) if layout.kinds[x] == "text"]
    if known:
        return [x for x in known if x in texts]
    sentences = [x for x in texts if folded(x) == "sentence"]
    repeated = [x for x in sentences if not layout.values[x].hardly_repeat]
    with_gaps = [x for x in texts if layout.values[x].have_gaps]
    n_texts = {x: len(layout.values[x].levels) for x in texts}
    most = max((2, *n_texts.values()))
    open_texts = [x for x in texts if layout.values[x].are_fragments and n_texts[x] == most]
    open_texts = [x for x in open_texts if not layout.values[x].are_short]
    return [*dict.fromkeys((*repeated, *with_gaps, *open_texts))]


def _response_column(layout: TableLayout, context: str) -> str:
    """The column with the responses to the contexts of a column; "" for none.

    A column of a known name, as response, is taken where something else shows that people gave
    words: readers, counts, or a name with no other meaning. Else the values decide.
    """
    # columns of words, without items, readers, lists and conditions
    words = [x for x in layout.values if layout.kinds[x] in ("word", "label", "list", "text")]
    words = [x for x in words if x not in (context, layout.item) and not is_named_as(x, "reader")]
    words = [x for x in words if x not in layout.reader_attributes and not is_named_as(x, "list")]
    are_counted = _has_counts(layout, context)
    # the same few words after all contexts are levels of something, unless they are counted
    counted = named_columns("response", words) if are_counted else []
    levels = [x for x in words if _stand_in_most_contexts(layout, context, x) and x not in counted]
    words = [x for x in words if x not in levels and not folded(x).startswith("cond")]
    words = [x for x in words if layout.values[x].have_letters]
    # by its name
    known = named_columns("response", words)
    readers = [layout.values[name] for name in named_columns("reader", layout.values)]
    has_readers = any(len(x.levels) < x.n_filled or x.is_number for x in readers)
    if known and (has_readers or are_counted or folded(known[0]) in NAMES_OF_RESPONSES):
        return known[0]
    # by its values: responses of a word, and of several words
    short = [x for x in words if layout.values[x].are_short and layout.kinds[x] != "label"]
    short = [x for x in short[:_MOST_COLUMNS] if _are_short_responses(layout, context, x)]
    if len(short) > _MOST_RESPONSE_COLUMNS:  # parts of sentences
        return ""
    long = [x for x in words if layout.kinds[x] == "text" and (has_readers or x in known)]
    long = [x for x in long if _are_long_responses(layout, context, x)]
    likely = [*named_columns("response", short), *long, *short]
    return likely[0] if likely else ""


def _stand_in_most_contexts(layout: TableLayout, context: str, name: str) -> bool:
    """Whether each value of a column stands beside most contexts, as those of lists and ratings do.

    Three or more words in a column that is called response, or the like, may do so.

    Args:
        layout: all columns of the table, with their values and kinds.
        context: the column of contexts.
        name: the column of values.
    """
    contexts = layout.values[context]
    values = layout.values[name]
    n_pairs = n_distinct(combine_codes(contexts.codes, values.codes))
    n_contexts = len(contexts.levels)
    stand_in_most = n_contexts > 2 and 2 * n_pairs > n_contexts * len(values.levels)
    may_be_responses = len(values.levels) > 2 and folded(name) in NAMES_OF_RESPONSES
    return stand_in_most and not may_be_responses


def _are_long_responses(layout: TableLayout, context: str, name: str) -> bool:
    """Whether the texts of a column are responses: of several words, they hardly repeat.

    The contexts do repeat, and most of them have several of the texts.
    """
    texts = layout.values[name]
    contexts = layout.values[context]
    are_own_words = not texts.are_short and texts.hardly_repeat
    return are_own_words and texts.differs_within(contexts) and not contexts.hardly_repeat


def _has_counts(layout: TableLayout, context: str) -> bool:
    """Whether a column is named as counts or shares, and contexts have two rows on average."""
    contexts = layout.values[context]
    has_amounts = any(folded(name) in _AMOUNTS for name in layout.values)
    return has_amounts and 2 * len(contexts.levels) <= contexts.n_filled


def _are_short_responses(layout: TableLayout, context: str, name: str) -> bool:
    """Whether words are responses to contexts, by how they are spread over the rows.

    Many contexts have several words, many have one word twice, and no column of labels tells which
    word stands where, as a condition does.

    Args:
        layout: all columns of the table, with their values and kinds.
        context: the column of contexts.
        name: the column of words.
    """
    import numpy as np

    contexts = layout.values[context].codes
    words = layout.values[name].codes
    filled = (contexts >= 0) & (words >= 0)
    contexts, words = contexts[filled], words[filled]
    if not len(words):
        return False
    n_words = n_distinct_by(contexts, words)  # different words of each context
    n_rows = np.bincount(contexts, minlength=len(n_words))
    least = _LEAST_CONTEXTS * np.count_nonzero(n_rows)
    has_several = np.count_nonzero(n_words > 1) >= least
    has_repeated = np.count_nonzero(n_rows > n_words) >= least
    if not (has_several and has_repeated):
        return False
    labels = [x for x in layout.values if x != name and len(layout.values[x].levels) <= MOST_LABELS]
    for label in labels[:_MOST_COLUMNS]:
        codes = layout.values[label].codes[filled]
        # labels that divide the contexts into single rows would tell any word
        has_several_rows = 2 * n_distinct(combine_codes(contexts, codes)) <= len(words)
        if has_several_rows and is_determined_by(words, [contexts, codes]):
            return False
    return True


def _wide_responses(layout: TableLayout, context: str) -> list[str]:
    """The columns with a response each to the context of a row, as word1, word2, word3; or [].

    The names differ in numbers alone. In many rows, two people gave the same response, while the
    words of two conditions are never the same.
    """
    for names in layout.numbered_words():
        rows = zip(*(layout.texts(name) for name in names), strict=True)
        responses = [[word.strip().casefold() for word in row if word.strip()] for row in rows]
        responses = [words for words in responses if len(words) > 1]
        n_with_repeated = sum(len({*words}) < len(words) for words in responses)
        are_responses = responses and n_with_repeated >= _LEAST_CONTEXTS * len(responses)
        if context not in names and are_responses:
            return names
    return []


# ---- numbers of responses ------------------------------------------------------------------------


def amount_column(
    columns: Mapping[str, DistinctValues], context: str, response: str
) -> tuple[Literal["count", "cloze"], str] | None:
    """Returns the column that says how many people gave each response, and what its numbers are.

    For example, ("count", "n") for numbers of people in a column `n`, and ("cloze", "p") for shares
    of people in a column `p`. None if there is no such column, if a word stands several times with
    one context, if a column names readers, since a row is then one response, or if a column has a
    name such as `count`, which is read anyway.

    Args:
        columns: name -> its distinct values.
        context: the column of contexts.
        response: the column of words.
    """
    import numpy as np

    if named_columns("reader", columns) or any(folded(name) in _AMOUNTS for name in columns):
        return None
    contexts = columns[context].codes
    pairs = combine_codes(contexts, columns[response].codes)
    filled = pairs >= 0
    n_pairs = n_distinct(pairs)
    n_contexts = len(np.unique(contexts[filled]))
    stand_once = n_pairs == np.count_nonzero(filled)
    if not stand_once or n_pairs < 2 * n_contexts:  # fewer than two words for a context
        return None
    names = [name for name, values in columns.items() if values.is_number]
    names = [x for x in names if not any(is_named_as(x, y) for y in ("item", "list", "position"))]
    known = [*named_columns("cloze", names), *named_columns("count", names)]
    for name in dict.fromkeys((*known, *names)):
        numbers = np.array([*map(float, columns[name].levels), np.nan])
        values = numbers[columns[name].codes]  # of each row; NaN, the last, where one is missing
        kind = _kind_of_amounts(values[filled], contexts[filled], is_known=name in known)
        if kind:
            return kind, name
    return None


def _kind_of_amounts(
    values: NDArray[np.float64], contexts: NDArray[np.intp], *, is_known: bool
) -> Literal["count", "cloze", ""]:
    """What the numbers of words are: "cloze" for shares of people, "count" for numbers of them.

    "" where they are neither.

    Args:
        values: (n words,).
        contexts: number of the context of each word, (n words,).
        is_known: whether the column is named as counts or shares.
    """
    import numpy as np

    if np.isnan(values).any() or values.min() < 0 or len({*values.tolist()}) < 2:
        return ""
    sums = np.bincount(contexts, values)[np.unique(contexts)]  # of each context
    if sums.max() <= 1 + _ROUNDING:  # below 1 where rare words are left out
        return "cloze" if is_known or np.median(sums) > 0.5 else ""
    if is_known and (values % 1 == 0).all():
        return "count"
    # counts of any name: as many people in each context, who gave more or fewer different words
    n_words = np.bincount(contexts)[np.unique(contexts)]
    are_sums_even = sums.std() <= _MOST_SPREAD * sums.mean()
    are_words_uneven = n_words.std() > 2 * _MOST_SPREAD * n_words.mean()
    return "count" if are_sums_even and are_words_uneven else ""
