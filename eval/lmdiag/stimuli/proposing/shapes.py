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


_WORD_KINDS = ("word", "label", "text")
"""Kinds of columns that may have parts of sentences."""


def candidates(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the options that may read a table, the most likely first."""
    if layout.gapped:
        yield from words_in_gaps(layout)
        return
    if exchanged_parts(layout):  # no option reads them
        return
    options_for_parts = [*parts_of_sentences(layout)]
    if options_for_parts:
        yield from options_for_parts
        return
    options_for_contexts = [*texts_after_contexts(layout)]
    yield from options_for_contexts
    context = _context_column(layout) if options_for_contexts else ""
    yield from sentences(layout, [x for x in layout.sentences if x != context])


def _item_column(layout: TextColumns) -> dict[str, str]:
    """{"item": the column of items}; {} where it is called so, or there is none."""
    return {"item": layout.item} if layout.item and folded(layout.item) != "item" else {}


# ---- words in gaps -------------------------------------------------------------------------------


def words_in_gaps(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the options that read words, or the words of conditions, at the gap of a text."""
    words = layout.words
    # a word that the texts have elsewhere is not the one of the gap
    if len(words) > 1 or (words and not layout.stands_in(words[0], layout.gapped)):
        options = _options_for_words(layout, {**_item_column(layout), "sentence": layout.gapped})
        gap = "_" if layout.values[layout.gapped].are_underscored else ""
        yield replace(options, gap=gap)


def _options_for_words(layout: TextColumns, columns: Mapping[str, str]) -> TableOptions:
    """The options that read the columns of words as target words of contexts or gaps.

    One column of words has the target of each row. Several columns of words have the targets of one
    condition each. For example, for contexts in a column stem:

    - `layout.words` ["word"]: --columns context=stem target=word
    - `layout.words` ["verb_sg", "verb_pl"]: --columns context=stem --wide verb_sg verb_pl

    Args:
        layout: all columns of the table, with their values and kinds.
        columns: known name -> column, of the contexts of the words and of their items.
    """
    if len(layout.words) > 1:
        return _options_for_conditions(layout, layout.words, columns)
    return TableOptions(columns=named_options({**columns, "target": layout.words[0]}))


def _options_for_conditions(
    layout: TextColumns, names: Sequence[str], columns: Mapping[str, str]
) -> TableOptions:
    """The options that read several columns as the texts of one condition each (--wide).

    For example, --wide sent_sg sent_pl; or, for two columns whose names say which text is good,
    --wide sent_good sent_bad --good condition=sent_good --contrast item, which compares them.

    Args:
        layout: all columns of the table, with their values and kinds.
        names: of the columns of texts.
        columns: known name -> column, of what stands beside the texts.
    """
    split = split_of(names, layout.values)  # of names as sg_match, which name two conditions
    condition = wide_condition(layout.values, names)  # the column that gets the names
    pair = pair_of_texts(names) if len(names) == 2 else ()  # the good one first
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
    """Yields options that read columns as parts of sentences.

    They are regions, or words of conditions between the beginning and the end of a sentence.
    """
    parts = _part_columns(layout)
    places = _alternatives(layout) if parts else []
    if len(places) == 1:
        between = _options_between_parts(layout, parts, places[0])
        if between:
            yield between
    if any(map(pairs_of_conditions, places)):
        return  # parts of two conditions are not regions of one sentence
    regions = parts or _numbered_parts(layout)
    if regions:
        columns = named_options(_item_column(layout))
        yield TableOptions(columns=(*columns, *_region_options(regions)))
    inner = parts[1:-1]
    are_words = all(layout.kinds[name] == "word" for name in inner)
    if len(inner) > 1 and are_words and not places:  # words of conditions, or that follow others
        between = _options_between_parts(layout, parts, inner)
        if between:
            yield between


def _region_options(names: Sequence[str]) -> list[str]:
    """What --columns takes for columns of regions: a range, or each of them by its number.

    A range whose ends differ in their numbers alone, as r1..r4, would leave out columns with other
    names between them.
    """
    stems = [re.sub(r"\d+", "", name) for name in names]
    if stems[0] != stems[-1] or len({*stems}) == 1:
        return [f"region={names[0]}..{names[-1]}"]
    return [f"region_{number}={name}" for number, name in enumerate(names, start=1)]


def _part_columns(layout: TextColumns) -> list[str]:
    """The neighbouring columns with the parts of sentences, four or more; [] for none.

    For example, ["start", "noun", "verb", "end"] with "The old", "dog", "chased", "the cat." in a
    row. The first part has two words or more on average; in scripts with capitals, it begins with a
    capital, and most texts of the other parts do not. Only the last part may end sentences. The
    columns are passed in their order, and `_are_parts` decides whether neighbours are parts.
    """
    parts: list[str] = []
    for name, values in layout.values.items():
        is_part = layout.kinds[name] in _WORD_KINDS and values.have_letters
        share_capital = 0.0 if values.share_capital is None else values.share_capital
        if is_part and parts and share_capital < 0.5:
            parts.append(name)
        elif _are_parts(layout, parts):
            break  # the parts end before this column
        else:  # they may begin here
            has_capitals = values.share_capital is None or share_capital >= 0.9
            begins = has_capitals and values.mean_words >= 2 and values.are_fragments
            parts = [name] if is_part and begins else []
        if len(parts) > 1 and not values.are_fragments:
            break  # this column ends sentences
    while parts and layout.kinds[parts[-1]] == "label":
        parts.pop()  # a condition
    return parts if _are_parts(layout, parts) else []


def _are_parts(layout: TextColumns, names: Sequence[str]) -> bool:
    """Whether neighbouring columns, four or more, are parts of sentences.

    Only the last one ends sentences. If none does, two or more have several words, and not the
    same ones, as the sentences of conditions have.
    """
    if len(names) < 4:
        return False
    if not layout.values[names[-1]].are_fragments:
        return all(layout.values[name].are_fragments for name in names[:-1])
    texts = [name for name in names[1:] if layout.kinds[name] == "text"]
    if len(texts) < 2 or layout.values[names[0]].share_capital is None:
        return False
    first, *others = ([*map(_content_words, layout.texts(x, SAMPLE))] for x in texts)
    shares = [overlap(a, b) for words in others for a, b in zip(first, words, strict=True)]
    return median(shares) < RELATED


def _content_words(text: str) -> frozenset[str]:
    """The words of a text without short ones, which are articles and the like."""
    return frozenset(word for word in words_of(text) if len(word) > _SHORT)


def _numbered_parts(layout: TextColumns) -> list[str]:
    """The columns of parts of sentences whose names differ in their numbers alone; [] for none.

    For example, ["part1", "part2", "part3"]. There are three columns or more, without columns of
    other words between them. The texts of the first column must not all end in a full stop, since
    the columns then have whole sentences.
    """
    word_columns = [x for x in layout.values if layout.kinds[x] in _WORD_KINDS]
    has_contexts = any(
        layout.kinds[name] == "text" for name in named_columns("context", layout.values)
    )
    for names in layout.numbered_words():
        if has_contexts and all(layout.kinds[name] != "text" for name in names):
            continue  # words that continue a context
        inside = word_columns[word_columns.index(names[0]) : word_columns.index(names[-1])]
        if not all(re.search(r"\d", name) for name in inside):
            continue
        if not all(map(is_ended, layout.values[names[0]].levels)):
            return names
    return []


def _alternatives(layout: TextColumns) -> list[list[str]]:
    """The columns that have alternatives at one place of a sentence, for each such place.

    For example, [["verb_sg", "verb_pl"]]: their names differ in a condition. Neighbouring columns
    are also alternatives if they have the same words in other rows, or forms of one word.
    """
    names = [x for x in layout.values if layout.kinds[x] in _WORD_KINDS and x != layout.item]
    pairs = pairs_of_conditions(names)
    pairs += [pair for pair in pairwise(names) if _are_exchanged(layout, *pair)]
    places: list[set[str]] = []
    for pair in pairs:  # pairs that share a column are of one place
        place = {*pair}
        for joined_place in places:
            if not joined_place.isdisjoint(pair):
                place |= joined_place
        places = [other for other in places if other.isdisjoint(place)]
        places.append(place)
    return [[name for name in names if name in place] for place in places]


def _are_exchanged(layout: TextColumns, first: str, second: str) -> bool:
    """Whether two columns have most of their words in common, or in most rows forms of one word.

    For example, "walks" and "walked" in a row are forms of one word: their first halves are equal.
    """
    if layout.kinds[first] == layout.kinds[second] == "word":
        first_words = {*layout.values[first].levels}
        second_words = {*layout.values[second].levels}
        fewest = min(len(first_words), len(second_words))
        if fewest > MOST_LABELS and 2 * len(first_words & second_words) >= fewest:
            return True
    n_rows = 0
    n_alike = 0  # rows with two words that have the same first half, as walks and walked
    for word, form in zip(layout.texts(first, SAMPLE), layout.texts(second, SAMPLE), strict=True):
        if word and form:
            half = 1 + max(len(word), len(form)) // 2
            n_rows += 1
            n_alike += word[:half] == form[:half]
    return 2 * n_alike > n_rows


def exchanged_parts(layout: TextColumns) -> list[str]:
    """Returns the parts of sentences that conditions exchange at two places or more; else [].

    For example, noun_sg, noun_pl, verb_sg and verb_pl. No option joins them to the sentence of each
    condition.
    """
    places = named_alternatives(layout)
    firsts = [place[0] for place in places]
    # parts with the same words may be whole texts of the conditions
    are_several = any(layout.shared_words(*pair) < RELATED for pair in combinations(firsts, 2))
    parts = {*chain.from_iterable(places)} if are_several else set()
    return [name for name in layout.values if name in parts]


def named_alternatives(layout: TextColumns) -> list[list[str]]:
    """Returns the parts of sentences whose names differ in a condition, for each place of them.

    For example, [["noun_sg", "noun_pl"], ["verb_sg", "verb_pl"]].
    """
    places = []
    for names in _alternatives(layout):
        parts = [name for name in names if layout.values[name].are_fragments]
        if pairs_of_conditions(parts):
            places.append(parts)
    return places


def _options_between_parts(
    layout: TextColumns, parts: Sequence[str], alternatives: Sequence[str]
) -> TableOptions | None:
    """The options that read words of conditions between the beginning and the end of a sentence.

    For example, --columns context=start right_context=end --wide sg pl for the columns start, sg,
    pl and end. None if there are other parts of the sentence than these.

    Args:
        layout: all columns of the table, with their values and kinds.
        parts: columns of the parts of sentences.
        alternatives: columns of the words of conditions.
    """
    names = [*layout.values]
    first = names.index(alternatives[0])
    last = names.index(alternatives[-1])
    are_neighbours = names[first : last + 1] == alternatives
    neighbours = [*names[max(0, first - 1) : first], *names[last + 1 : last + 2]]
    sides = [name for name in neighbours if name in parts]  # the beginning, and perhaps the end
    has_beginning = sides[:1] == parts[:1]
    has_other_parts = not {*parts} <= {*sides, *alternatives}
    if not are_neighbours or not has_beginning or has_other_parts:
        return None
    columns = _item_column(layout) | dict(zip(("context", "right_context"), sides, strict=False))
    return _options_for_conditions(layout, alternatives, columns)


# ---- texts after contexts ------------------------------------------------------------------------


def texts_after_contexts(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the options that read sentences or words after a context, sentences first.

    These may be sentences with a critical word, whole sentences, or the sentences or words of
    several conditions.
    """
    context = _context_column(layout)
    if not context:
        yield from _word_after_parts(layout)
        return
    options_for_sentences: list[TableOptions] = []
    # of several contexts, it is known which one the sentences follow only by a known name
    if len(layout.contexts) < 2 or len(named_columns("context", layout.contexts)) == 1:
        further = layout.related([x for x in layout.sentences if x != context])
        options_for_sentences = [*_sentences_after(layout, context, further)]
    yield from options_for_sentences
    if not layout.words or not _may_follow(layout, context):
        return
    if options_for_sentences and layout.kinds[layout.words[0]] == "label":
        return  # a condition of the sentences
    columns = {**_item_column(layout), "context": context}
    for name in named_columns("right_context", layout.values):
        if name not in layout.words and layout.kinds[name] not in ("number", "file"):
            columns["right_context"] = name
            break
    yield _options_for_words(layout, columns)


def _word_after_parts(layout: TextColumns) -> Iterator[TableOptions]:
    """Yields the options that read targets after contexts in several columns, as text1 and text2.

    For example, --columns context=text1..text2 for the columns text1, text2 and target: the names
    of the columns of contexts differ in their numbers alone. If the texts of a row have the same
    words, they are those of conditions, and not parts of one context: nothing is yielded.
    """
    parts = [x for x in layout.sentences if re.search(r"\d", x)]
    stems = {re.sub(r"\d+", "", name) for name in parts}
    targets = [x for x in named_columns("target", layout.words) if folded(x).startswith("target")]
    if len(parts) < 2 or len(stems) != 1 or not targets or layout.related(parts) == parts:
        return
    columns = named_options({**_item_column(layout), "target": targets[0]})
    yield TableOptions(columns=(f"context={parts[0]}..{parts[-1]}", *columns))


def _context_column(layout: TextColumns) -> str:
    """The column of contexts: the only one, or one of a known name; "" for none.

    Without a column that is named as contexts, it is the only column of texts, if these do not end
    as sentences do and there are words that may follow them: "The dog chased the" beside "cat".
    """
    if len(layout.contexts) == 1:
        return layout.contexts[0]
    if layout.contexts:
        return next(iter(named_columns("context", layout.contexts)), "")
    if len(layout.sentences) != 1 or not layout.words:
        return ""
    (text,) = layout.sentences
    levels = layout.values[text].levels
    if all(map(ends_open, levels)):
        return text
    # columns with about as many different words as there are texts; conditions have fewer
    are_words = all(
        layout.kinds[name] == "word" and 2 * len(layout.values[name].levels) >= len(levels)
        for name in layout.words
    )
    return text if are_words and layout.values[text].are_fragments else ""


def _sentences_after(
    layout: TextColumns, context: str, names: Sequence[str]
) -> Iterator[TableOptions]:
    """Yields the options that read sentences after a context: as its targets, or a word of them.

    For example, --columns context=story target=sentence for the surprisal of whole sentences; and
    before it, if the column verb has a word of each sentence, --columns context=story --critical
    verb for the surprisal of this word.

    Args:
        layout: all columns of the table, with their values and kinds.
        context: the column of contexts.
        names: of the columns of sentences, one for each condition.
    """
    if not names or layout.stands_in(context, names[0], whole=False):  # they have the context
        return
    columns = {**_item_column(layout), "context": context}
    if len(names) > 1:
        yield _options_for_conditions(layout, names, columns)
        return
    critical = layout.critical_word(names)
    if critical:
        columns_with_sentence = named_options({**columns, "sentence": names[0]})
        yield TableOptions(columns=columns_with_sentence, critical=(critical,))
    yield TableOptions(columns=named_options({**columns, "target": names[0]}))


def _may_follow(layout: TextColumns, context: str) -> bool:
    """Whether the words of the table may follow the texts of a column.

    Words always may follow a column `context`. Words of several conditions may follow texts that do
    not end as sentences do. A single column of words may follow texts, unless most texts are whole
    sentences that have the word of their row in them.
    """
    if context == "context":
        return True
    if len(layout.words) > 1:
        return layout.values[context].are_fragments
    return not layout.stands_in(layout.words[0], context)


# ---- sentences -----------------------------------------------------------------------------------


def sentences(layout: TextColumns, names: Sequence[str]) -> Iterator[TableOptions]:
    """Yields the options that read sentences: one, a good and a bad one, or those of conditions.

    Args:
        layout: all columns of the table, with their values and kinds.
        names: of the columns that may have the sentences.
    """
    related = layout.related(names)
    pair = layout.pair if {*layout.pair} <= {*names} and len(related) < 3 else ()
    texts = [*pair] or related
    if not texts or (len(texts) > 1 and have_target_each(layout, texts)):
        return
    critical_word = layout.critical_word(texts)
    critical = (critical_word,) if critical_word else ()
    # a pair whose names say which is good: as minimal pairs, and below as two conditions
    if pair and are_judged(pair):
        good, bad = pair
        columns = {**_item_column(layout), PAIR[0]: good, PAIR[1]: bad}
        yield TableOptions(columns=named_options(columns))
    if len(texts) == 1:
        columns = {**_item_column(layout), "sentence": texts[0]}
        chosen = named_options(columns)
        if texts == ["sentence"] and "context" in layout.values:  # which would be read instead
            chosen = ("sentence=sentence",)
        yield TableOptions(columns=chosen, critical=critical)
    elif not labels_by_text(layout, texts):
        options = _options_for_conditions(layout, texts, _item_column(layout))
        conditions = _filter_of_complete_rows(layout, texts, critical_word)
        yield replace(options, critical=critical, filter=conditions)


def have_target_each(layout: TextColumns, contexts: Sequence[str]) -> bool:
    """Returns whether each column of contexts has a column of targets, which no option joins.

    As context1 and context2 with target1 and target2.
    """
    are_contexts = all(layout.values[name].are_fragments for name in contexts)
    are_targets = all(folded(name).startswith("target") for name in layout.words)
    return are_contexts and are_targets and len(layout.words) == len(contexts)


def labels_by_text(layout: TextColumns, texts: Sequence[str]) -> list[str]:
    """Returns the columns that have a label for each column of texts; [] where there are none.

    For example, ["label1", "label2"] for the texts ["s1", "s2"]: their names end alike.

    Args:
        layout: all columns of the table, with their values and kinds.
        texts: names of the columns of texts; one alone has no such labels.
    """
    endings = [_distinct_ending(name, texts) for name in texts]
    # name without the ending -> columns, as label -> label1, label2
    families: dict[str, list[str]] = {}
    for name, values in layout.values.items():
        if name in texts or len(values.levels) > MOST_LABELS:
            continue
        plain = folded(name)
        for ending in endings:
            if ending and plain.endswith(ending):
                families.setdefault(plain.removesuffix(ending), []).append(name)
                break
    for names in families.values():
        if len(names) == len(texts) > 1:
            return names
    return []


def _distinct_ending(name: str, names: Sequence[str]) -> str:
    """A name, folded, without the beginning that all names share: "1" of s1 beside s2.

    "" for a name that has nothing more, as s beside s2, and for one name alone.
    """
    plain_names = [folded(x) for x in names]
    n_shared = 0  # letters
    while len({x[: n_shared + 1] for x in plain_names}) == 1 and n_shared < len(plain_names[0]):
        n_shared += 1
    return folded(name)[n_shared:]


def _filter_of_complete_rows(
    layout: TextColumns, texts: Sequence[str], critical: str
) -> tuple[str, ...]:
    """A condition for --filter that leaves out rows without some text, and fillers; or ().

    For example, ("type=critical",) for a column `type` with "critical" in rows with all texts, and
    "filler" in rows that lack a text. () if no column of labels tells these rows apart.

    Args:
        layout: all columns of the table, with their values and kinds.
        texts: names of the columns of texts.
        critical: the column of the critical word, which does not say the type of the rows.
    """
    is_complete = layout.values[texts[0]].codes >= 0  # rows with all texts
    for name in texts[1:]:
        is_complete = is_complete & (layout.values[name].codes >= 0)
    for name, values in layout.values.items():
        n_levels = len(values.levels)
        is_type = 2 <= n_levels <= MOST_LABELS and n_levels < values.n_filled
        if not is_type or name in (*texts, critical) or is_named_as(name, "reader"):
            continue
        complete_codes = {*values.codes[is_complete].tolist()}
        lacking_codes = {*values.codes[~is_complete].tolist()}
        if complete_codes & lacking_codes:
            continue
        kept_levels = [
            level
            for code, level in enumerate(values.levels)
            if code in complete_codes and not is_filler(level)
        ]
        if 0 < len(kept_levels) < n_levels:
            return (f"{name}={','.join(kept_levels)}",)
    return ()
