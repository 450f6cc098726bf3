"""Tables of people's responses: which columns have the contexts, the responses and their numbers.

Names only suggest. Responses are words of which several are given to one context, some of them more
than once, and which no condition explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
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

_MOST_SPREAD = 0.1  # of sums of counts, in standard deviations by their mean
_MOST_SAID = 2  # columns of words that people gave: as typed, and as corrected
_ROUNDING = 0.02  # of sums of shares
_MOST_CONTEXTS = 8  # columns that are tried as contexts
_MOST_COLUMNS = 40  # columns of words, and of labels, that are tried for each


class ResponseColumns(NamedTuple):
    """The columns of a table of responses.

    Attributes:
        columns: name that `cloze` reads -> column.
        wide: columns of responses, of which a row has several.
    """

    columns: Mapping[str, str]
    wide: Sequence[str] = ()


def response_columns(layout: TableLayout) -> ResponseColumns | None:
    """Returns the columns of a table with responses to contexts; None for other tables."""
    for context in _contexts(layout)[:_MOST_CONTEXTS]:
        field = "sentence" if layout.values[context].have_gaps else "context"
        has_items = layout.item and layout.values[layout.item].are_groups
        columns = ({"item": layout.item} if has_items else {}) | {field: context}
        if wide := _wide_responses(layout, context):
            return ResponseColumns(columns, wide)
        response = _response(layout, context)
        if response:
            amount = amount_column(layout.values, context, response)
            columns |= {"response": response} | ({amount[0]: amount[1]} if amount else {})
            return ResponseColumns(columns)
    return None


def _contexts(layout: TableLayout) -> list[str]:
    """The columns that may have contexts: of a known name, with gaps, or without an end.

    The latter have the most different texts of the table, as no column of notes has.
    """
    texts = layout.of_kind("text", "question")
    if layout.n_rows > 1 and not named_columns("reader", layout.values):
        texts = [x for x in texts if len(layout.values[x].levels) > 1]
    known = [x for x in named_columns("context", layout.values) if layout.kinds[x] == "text"]
    if known:
        return [x for x in known if x in texts]
    n_texts = {x: len(layout.values[x].levels) for x in texts}
    most = max((2, *n_texts.values()))
    open_texts = (x for x in texts if layout.values[x].are_fragments and n_texts[x] == most)
    open_texts = (x for x in open_texts if not layout.values[x].are_short)
    repeated = (x for x in texts if folded(x) == "sentence" and not layout.values[x].hardly_repeat)
    named_or_gap = (*repeated, *(x for x in texts if layout.values[x].have_gaps))
    return [*dict.fromkeys((*named_or_gap, *open_texts))]


def _response(layout: TableLayout, context: str) -> str:
    """The column with the responses to contexts; "" for none."""
    words = [x for x in layout.values if layout.kinds[x] in ("word", "label", "list", "text")]
    words = [x for x in words if x not in (context, layout.item) and not is_named_as(x, "reader")]
    words = [x for x in words if x not in layout.reader_attributes and not is_named_as(x, "list")]
    # The same few words after all contexts are levels of something, unless they are counted.
    named_words = named_columns("response", words) if _has_several_words(layout, context) else []
    words = [x for x in words if x in named_words or not _are_general(layout, context, x)]
    words = [x for x in words if not _is_condition(x)]
    words = [x for x in words if layout.values[x].have_letters]
    known = named_columns("response", words)
    readers = [layout.values[name] for name in named_columns("reader", layout.values)]
    has_readers = any(len(x.levels) < x.n_filled or x.is_number for x in readers)
    is_said = has_readers or _has_several_words(layout, context)
    if known and (is_said or folded(known[0]) in NAMES_OF_RESPONSES):
        return known[0]
    short = [x for x in words if layout.values[x].are_short and layout.kinds[x] != "label"]
    said = [x for x in short[:_MOST_COLUMNS] if _are_said(layout, context, x)]
    if len(said) > _MOST_SAID:  # parts of sentences
        return ""
    long = [x for x in words if has_readers or x in known]
    long = [x for x in long if layout.kinds[x] == "text" and _are_produced(layout, context, x)]
    return next(iter((*named_columns("response", said), *long, *said)), "")


def _are_general(layout: TableLayout, context: str, name: str) -> bool:
    """Whether values are those of most contexts, as of lists and ratings; words may be, too."""
    contexts = layout.values[context]
    values = layout.values[name]
    n_pairs = n_distinct(combine_codes(contexts.codes, values.codes))
    n_contexts = len(contexts.levels)
    is_general = n_contexts > 2 and 2 * n_pairs > n_contexts * len(values.levels)
    return is_general and (len(values.levels) < 3 or folded(name) not in NAMES_OF_RESPONSES)


def _is_condition(name: str) -> bool:
    return folded(name).startswith("cond")


def _are_produced(layout: TableLayout, context: str, name: str) -> bool:
    """Whether texts of several words hardly repeat, and most contexts have several of them."""
    is_long = not layout.values[name].are_short and layout.values[name].hardly_repeat
    differ = layout.values[name].differs_within(layout.values[context])
    return is_long and differ and not layout.values[context].hardly_repeat


def _has_several_words(layout: TableLayout, context: str) -> bool:
    """Whether counts or shares stand beside contexts, of which most have several rows."""
    contexts = layout.values[context]
    is_counted = not _AMOUNTS.isdisjoint(map(folded, layout.values))
    return is_counted and 2 * len(contexts.levels) <= contexts.n_filled


def _are_said(layout: TableLayout, context: str, name: str) -> bool:
    """Whether words are responses to contexts by what they are.

    In a quarter of the contexts a word stands twice, in a quarter there are several words, and no
    column of labels tells which of them.
    """
    import numpy as np

    contexts = layout.values[context].codes
    words = layout.values[name].codes
    filled = (contexts >= 0) & (words >= 0)
    contexts, words = contexts[filled], words[filled]
    if not len(words):
        return False
    n_words = n_distinct_by(contexts, words)
    n_rows = np.bincount(contexts, minlength=len(n_words))
    n_contexts = np.count_nonzero(n_rows)
    has_several = 4 * np.count_nonzero(n_words > 1) >= n_contexts
    has_repeated = 4 * np.count_nonzero(n_rows > n_words) >= n_contexts
    if not (has_several and has_repeated):
        return False
    few = (v for x, v in layout.values.items() if x != name and len(v.levels) <= MOST_LABELS)
    labels = [values.codes[filled] for values in islice(few, _MOST_COLUMNS)]
    labels = [x for x in labels if 2 * n_distinct(combine_codes(contexts, x)) <= len(words)]
    return not any(is_determined_by(words, [contexts, x]) for x in labels)


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


# ---- numbers of responses ------------------------------------------------------------------------


def amount_column(
    columns: Mapping[str, DistinctValues], context: str, response: str
) -> tuple[Literal["count", "cloze"], str] | None:
    """Returns what the rows of responses are counted by, and its column; None for nothing.

    That is where each word stands once with its context, and no column of readers, counts or shares
    is named: a column of numbers that is called so, whose sums over contexts are shares, or do not
    depend on the number of words.
    """
    import numpy as np

    if named_columns("reader", columns) or not _AMOUNTS.isdisjoint(map(folded, columns)):
        return None
    contexts = columns[context].codes
    pairs = combine_codes(contexts, columns[response].codes)
    n_pairs = n_distinct(pairs)
    n_contexts = len(np.unique(contexts[pairs >= 0]))
    if n_pairs < np.count_nonzero(pairs >= 0) or n_pairs < 2 * n_contexts:
        return None
    names = [name for name, values in columns.items() if values.is_number]
    names = [x for x in names if not any(is_named_as(x, y) for y in ("item", "list", "position"))]
    known = [*named_columns("cloze", names), *named_columns("count", names)]
    for name in dict.fromkeys((*known, *names)):
        values = np.array([*map(float, columns[name].levels), np.nan])[columns[name].codes]
        kind = _kind_of_amounts(values[pairs >= 0], contexts[pairs >= 0], is_known=name in known)
        if kind:
            return kind, name
    return None


def _kind_of_amounts(
    values: NDArray[np.float64], contexts: NDArray[np.intp], *, is_known: bool
) -> Literal["count", "cloze", ""]:
    """What numbers of words are: shares of their context, counts, or nothing of both."""
    import numpy as np

    if np.isnan(values).any() or values.min() < 0 or len({*values.tolist()}) < 2:
        return ""
    sums = np.bincount(contexts, values)[np.unique(contexts)]
    if sums.max() <= 1 + _ROUNDING:
        return "cloze" if is_known or np.median(sums) > 0.5 else ""
    if is_known and (values % 1 == 0).all():
        return "count"
    n_words = np.bincount(contexts)[np.unique(contexts)]
    is_even = sums.std() <= _MOST_SPREAD * sums.mean()
    return "count" if is_even and n_words.std() > 2 * _MOST_SPREAD * n_words.mean() else ""
