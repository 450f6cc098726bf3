"""Shapes of a row, one function each: the options that read a table whose rows have it.

What a function yields is only tried: it may not read the table, see `proposals`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise
from statistics import median

from lmdiag.stimuli.proposing.text_columns import SAMPLE, TextColumns
from lmdiag.stimuli.reading.forms import PAIR
from lmdiag.stimuli.reading.steps import wide_condition
from lmdiag.stimuli.values.kinds import MOST_LABELS, RELATED, overlap, words_of
from lmdiag.stimuli.values.layouts import named_options
from lmdiag.stimuli.values.marks import ends_open, is_ended
from lmdiag.stimuli.values.names import (
    are_judged,
    is_filler,
    is_named_as,
    named_columns,
    pair_of_texts,
    pairs_of_conditions,
)
from lmdiag.stimuli.values.splits import split_of
from lmdiag.text import folded
from lmdiag.types import TableOptions

_SHORT = 3  # letters of articles and prepositions


def candidates(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the options that may read a table, the most likely first."""
    if layout.gapped:
        yield from words_in_gaps(layout)
        return
    if has_many_alternatives(layout):
        return
    of_parts = [*parts_of_sentences(layout)]
    yield from of_parts
    if not of_parts:
        after = [*texts_after_contexts(layout)]
        yield from after
        context = _context(layout) if after else ""
        yield from sentences(layout, [x for x in layout.sentences if x != context])


def _item(layout: TextColumns) -> dict[str, str]:
    """The column of the items, by the name that is read."""
    return {"item": layout.item} if layout.item and folded(layout.item) != "item" else {}


# ---- words in gaps -------------------------------------------------------------------------------


def words_in_gaps(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the words at the gap of a text."""
    words = layout.words
    if len(words) > 1 or (words and not layout.stands_in(words[0], layout.gapped)):
        options = _of_words(layout, {**_item(layout), "sentence": layout.gapped})
        gap = "_" if layout.values[layout.gapped].are_underscored else ""
        yield replace(options, gap=gap)


def _of_words(layout: TextColumns, columns: Mapping[str, str]) -> TableOptions:
    """The words of a text: one, or those of its conditions."""
    if len(layout.words) > 1:
        return _wide(layout, layout.words, columns)
    return TableOptions(columns=named_options({**columns, "target": layout.words[0]}))


def _wide(layout: TextColumns, names: Sequence[str], columns: Mapping[str, str]) -> TableOptions:
    """The texts of conditions, which are compared where their names say which one is good."""
    split = split_of(names, layout.values)
    condition = wide_condition(layout.values, names)
    pair = pair_of_texts(names) if len(names) == 2 else ()
    is_compared = bool(pair) and are_judged(pair)
    return TableOptions(
        columns=named_options(columns),
        wide=tuple(names),
        split=(f"{condition}={split}",) if split else (),
        good=f"{condition}={pair[0]}" if is_compared else "",
        contrast=("item",) if is_compared else (),
    )


# ---- parts of sentences --------------------------------------------------------------------------


def parts_of_sentences(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields columns as the regions of sentences, or as alternatives between two parts of them."""
    parts = _parts(layout)
    places = _alternatives(layout) if parts else []
    yield from filter(None, [_between(layout, parts, places)])
    if any(map(pairs_of_conditions, places)):
        return
    regions = parts or _numbered(layout)
    if regions:
        columns = named_options(_item(layout))
        yield TableOptions(columns=(*columns, *_as_regions(regions)))
    inner = parts[1:-1]
    are_words = all(layout.kinds[name] == "word" for name in inner)
    if len(inner) > 1 and are_words and not places:  # words of conditions, or that follow others
        yield from filter(None, [_between(layout, parts, [inner])])


def _as_regions(names: Sequence[str]) -> list[str]:
    """The option that reads columns as regions: a range, or each of them by its number.

    A range of columns that differ in their numbers alone leaves out others between them.
    """
    stems = [re.sub(r"\d+", "", name) for name in names]
    if stems[0] != stems[-1] or len({*stems}) == 1:
        return [f"region={names[0]}..{names[-1]}"]
    return [f"region_{number}={name}" for number, name in enumerate(names, start=1)]


def _parts(layout: TextColumns) -> list[str]:
    """The neighbouring columns with the parts of sentences, four or more.

    None but the last ends sentences. In scripts with capitals, the first alone begins with them.
    The last one ends sentences, or two or more have several words, and not the same ones.
    """
    parts: list[str] = []
    for name, values in layout.values.items():
        is_part = layout.kinds[name] in ("word", "label", "text") and values.have_letters
        capital = values.share_capital
        if is_part and parts and (capital is None or capital < 0.5):
            parts.append(name)
        elif _are_parts(layout, parts):
            break
        else:
            is_first = (capital is None or capital >= 0.9) and values.mean_words >= 2
            parts = [name] if is_part and is_first and values.are_fragments else []
        if len(parts) > 1 and not values.are_fragments:
            break
    while parts and layout.kinds[parts[-1]] == "label":
        parts.pop()  # a condition
    return parts if _are_parts(layout, parts) else []


def _are_parts(layout: TextColumns, names: Sequence[str]) -> bool:
    if len(names) < 4:
        return False
    if not layout.values[names[-1]].are_fragments:
        return all(layout.values[name].are_fragments for name in names[:-1])
    texts = [name for name in names[1:] if layout.kinds[name] == "text"]
    if len(texts) < 2 or layout.values[names[0]].share_capital is None:
        return False
    first, *others = ([*map(_content, layout.texts(x, SAMPLE))] for x in texts)
    shares = [overlap(a, b) for words in others for a, b in zip(first, words, strict=True)]
    return median(shares) < RELATED


def _content(text: str) -> frozenset[str]:
    """The words of a text without short ones, which are articles and the like."""
    return frozenset(word for word in words_of(text) if len(word) > _SHORT)


def _numbered(layout: TextColumns) -> list[str]:
    """The columns of parts of sentences whose names differ in their numbers alone.

    There are three or more, with no other words between them, and not all of them are whole
    sentences, which end in a full stop.
    """
    order = [x for x in layout.values if layout.kinds[x] in ("word", "label", "text")]
    has_contexts = any(
        layout.kinds[name] == "text" for name in named_columns("context", layout.values)
    )
    for names in layout.numbered_words():
        if has_contexts and all(layout.kinds[name] != "text" for name in names):
            continue  # words that continue a context
        inside = order[order.index(names[0]) : order.index(names[-1])]
        if not all(re.search(r"\d", name) for name in inside):
            continue
        if not all(map(is_ended, layout.values[names[0]].levels)):
            return names
    return []


def _alternatives(layout: TextColumns) -> list[list[str]]:
    """The columns with words or texts of several conditions at each place of a sentence.

    Names say so, or neighbouring columns have the same words in other rows, or their forms.
    """
    kinds = ("word", "label", "text")
    names = [x for x in layout.values if layout.kinds[x] in kinds and x != layout.item]
    pairs = pairs_of_conditions(names)
    pairs += [pair for pair in pairwise(names) if _are_exchanged(layout, *pair)]
    places: list[set[str]] = []
    for pair in pairs:
        place = {*pair}.union(*(other for other in places if not other.isdisjoint(pair)))
        places = [*(other for other in places if other.isdisjoint(place)), place]
    return [[name for name in names if name in place] for place in places]


def _are_exchanged(layout: TextColumns, first: str, second: str) -> bool:
    """Whether two columns have most of their words in common, or forms of them in each row."""
    if {layout.kinds[first], layout.kinds[second]} == {"word"}:
        one, other = ({*layout.values[name].levels} for name in (first, second))
        fewest = min(len(one), len(other))
        if fewest > MOST_LABELS and 2 * len(one & other) >= fewest:
            return True
    rows = zip(layout.texts(first, SAMPLE), layout.texts(second, SAMPLE), strict=True)
    halves = [(1 + max(map(len, row)) // 2, *row) for row in rows if all(row)]
    alike = [word[:half] == form[:half] for half, word, form in halves]
    return 2 * sum(alike) > len(alike)


def has_many_alternatives(layout: TextColumns) -> list[str]:
    """Returns the parts of sentences of which several conditions name two or more each; else [].

    No option joins them to the sentence of each condition.
    """
    places = named_alternatives(layout)
    firsts = [place[0] for place in places]
    are_apart = any(layout.shared_words(*pair) < RELATED for pair in combinations(firsts, 2))
    parts = {*chain.from_iterable(places)} if are_apart else set()
    return [name for name in layout.values if name in parts]


def named_alternatives(layout: TextColumns) -> list[list[str]]:
    """Returns the parts of sentences at each place whose names differ in a condition."""
    places = [
        [x for x in place if layout.values[x].are_fragments] for place in _alternatives(layout)
    ]
    return [x for x in places if pairs_of_conditions(x)]


def _between(
    layout: TextColumns, parts: Sequence[str], places: Sequence[Sequence[str]]
) -> TableOptions | None:
    """The words of conditions between the beginning and the end of a sentence."""
    if len(places) != 1:
        return None
    alternatives = places[0]
    names = [*layout.values]
    first, last = names.index(alternatives[0]), names.index(alternatives[-1])
    ends = [*names[max(0, first - 1) : first], *names[last + 1 : last + 2]]
    frame = [name for name in ends if name in parts]
    is_alone = frame[:1] == parts[:1] and {*parts} <= {*frame, *alternatives}
    if names[first : last + 1] != alternatives or not is_alone:
        return None
    sides = dict(zip(("context", "right_context"), frame, strict=False))
    return _wide(layout, alternatives, {**_item(layout), **sides})


# ---- texts after contexts ------------------------------------------------------------------------


def texts_after_contexts(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the sentences or words after a context: with a critical word, whole, of conditions."""
    context = _context(layout)
    if not context:
        yield from _word_after_parts(layout)
        return
    after: list[TableOptions] = []
    if len(layout.contexts) < 2 or len(named_columns("context", layout.contexts)) == 1:
        further = layout.related([x for x in layout.sentences if x != context])
        after = [*_sentences_after(layout, context, further)]
    yield from after
    is_word = layout.words and (not after or layout.kinds[layout.words[0]] != "label")
    if is_word and _may_follow(layout, context):
        right = [x for x in named_columns("right_context", layout.values) if x not in layout.words]
        right = [x for x in right if layout.kinds[x] not in ("number", "file")]
        sides = {"context": context} | ({"right_context": right[0]} if right else {})
        yield _of_words(layout, _item(layout) | sides)


def _word_after_parts(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the words after contexts in several columns, whose names differ in their numbers."""
    parts = [x for x in layout.sentences if re.search(r"\d", x)]
    is_one = len({re.sub(r"\d+", "", name) for name in parts}) == 1
    targets = [x for x in named_columns("target", layout.words) if folded(x).startswith("target")]
    if len(parts) < 2 or not (is_one and targets) or layout.related(parts) == parts:
        return
    columns = named_options({**_item(layout), "target": targets[0]})
    yield TableOptions(columns=(f"context={parts[0]}..{parts[-1]}", *columns))


def _context(layout: TextColumns) -> str:
    """The column of contexts: the only one, or one of a known name; "" for none.

    Or the one column of texts, if they have no end, and there are words that may follow.
    """
    if layout.contexts:
        known = (
            layout.contexts
            if len(layout.contexts) == 1
            else named_columns("context", layout.contexts)
        )
        return next(iter(known), "")
    if len(layout.sentences) != 1 or not layout.words:
        return ""
    (text,) = layout.sentences
    levels = layout.values[text].levels
    if all(map(ends_open, levels)):
        return text
    are_words = all(
        layout.kinds[name] == "word" and 2 * len(layout.values[name].levels) >= len(levels)
        for name in layout.words
    )
    return text if are_words and layout.values[text].are_fragments else ""


def _sentences_after(
    layout: TextColumns, context: str, names: Sequence[str]
) -> Iterator[TableOptions]:
    """The sentences that continue a context, which are read as its targets."""
    if not names or layout.stands_in(context, names[0], whole=False):
        return
    columns = {**_item(layout), "context": context}
    if len(names) > 1:
        yield _wide(layout, names, columns)
        return
    critical = layout.critical_word(names)
    if critical:
        both = named_options({**columns, "sentence": names[0]})
        yield TableOptions(columns=both, critical=(critical,))
    yield TableOptions(columns=named_options({**columns, "target": names[0]}))


def _may_follow(layout: TextColumns, context: str) -> bool:
    """Whether words may follow a column of contexts."""
    if len(layout.words) > 1:
        return context == "context" or layout.values[context].are_fragments
    return context == "context" or not layout.stands_in(layout.words[0], context)


# ---- sentences -----------------------------------------------------------------------------------


def sentences(layout: TextColumns, names: Sequence[str]) -> Iterator[TableOptions]:
    """Yields the sentences of some columns: one, a good and a bad one, or those of conditions."""
    related = layout.related(names)
    pair = layout.pair if {*layout.pair} <= {*names} and len(related) < 3 else ()
    related = [*pair] or related
    if not related or (len(related) > 1 and have_words_each(layout, related)):
        return
    critical = layout.critical_word(related)
    of_word = (critical,) if critical else ()
    if pair and are_judged(pair):
        columns = {**_item(layout), **dict(zip(PAIR, pair, strict=True))}
        yield TableOptions(columns=named_options(columns))
    if len(related) == 1:
        is_alone = related != ["sentence"] or "context" not in layout.values
        columns = {**_item(layout), "sentence": related[0]}
        chosen = named_options(columns) if is_alone else ("sentence=sentence",)
        yield TableOptions(columns=chosen, critical=of_word)
    elif not labels_of_each(layout, related):
        wide = _wide(layout, related, _item(layout))
        yield replace(wide, critical=of_word, filter=_filter(layout, related, critical))


def have_words_each(layout: TextColumns, contexts: Sequence[str]) -> bool:
    """Returns whether fragments have as many columns of words, which no option joins."""
    are_contexts = all(layout.values[name].are_fragments for name in contexts)
    is_target = all(folded(name).startswith("target") for name in layout.words)
    return are_contexts and is_target and len(layout.words) == len(contexts)


def labels_of_each(layout: TextColumns, texts: Sequence[str]) -> list[str]:
    """Returns the columns with a label of each text, as label1 and label2 of s1 and s2; else [].

    Args:
        layout: of all columns.
        texts: names of the columns of texts; one alone has no such labels.
    """
    ends = [_own_end(name, texts) for name in texts]
    others: dict[str, list[str]] = {}
    for name, values in layout.values.items():
        end = next((x for x in ends if x and folded(name).endswith(x)), "")
        if end and name not in texts and len(values.levels) <= MOST_LABELS:
            others.setdefault(folded(name).removesuffix(end), []).append(name)
    return next((names for names in others.values() if len(names) == len(texts) > 1), [])


def _own_end(name: str, names: Sequence[str]) -> str:
    """A name, folded, without the beginning that all names share: "1" of s1 beside s2.

    "" for a name that is nothing else, as s beside s2, and for one name alone.
    """
    plain = [folded(other) for other in names]
    start = 0
    while len({x[: start + 1] for x in plain}) == 1 and start < len(plain[0]):
        start += 1
    return folded(name)[start:]


def _filter(layout: TextColumns, texts: Sequence[str], critical: str) -> tuple[str, ...]:
    """The condition that leaves out rows which lack texts, or which are called fillers."""
    is_full = layout.values[texts[0]].codes >= 0
    for name in texts[1:]:
        is_full = is_full & (layout.values[name].codes >= 0)
    for name, values in layout.values.items():
        n = len(values.levels)
        is_kind = 2 <= n <= MOST_LABELS and n < values.n_filled
        if not is_kind or name in (*texts, critical) or is_named_as(name, "reader"):
            continue
        complete = {*values.codes[is_full].tolist()}
        lacking = {*values.codes[~is_full].tolist()}
        if complete & lacking:
            continue
        kept = [
            level
            for number, level in enumerate(values.levels)
            if number in complete and not is_filler(level)
        ]
        if 0 < len(kept) < n:
            return (f"{name}={','.join(kept)}",)
    return ()
