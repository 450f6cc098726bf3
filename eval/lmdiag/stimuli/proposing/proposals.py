"""The options that may read the stimuli of a table of an unknown layout: only proposed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise, permutations
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.stimuli.proposing.other_rows import other_rows
from lmdiag.stimuli.reading.forms import PAIR, form_of
from lmdiag.stimuli.values.critical_words import critical_options, may_be_critical, word_spans
from lmdiag.stimuli.values.kinds import FEW_ROWS, MOST_LABELS, RELATED, overlap, words_of
from lmdiag.stimuli.values.layouts import TableLayout, as_typed, has_letters, named_options
from lmdiag.stimuli.values.marks import GAP, is_ended
from lmdiag.stimuli.values.names import (
    NAMES,
    TEXT_COLUMNS,
    are_judged,
    is_filler,
    is_named,
    name_conditions,
    named,
    names_sentences,
    pair_of_texts,
)
from lmdiag.stimuli.values.splits import split_of
from lmdiag.tables.table_files import Table
from lmdiag.text import DATA_SUFFIX, folded, shortened
from lmdiag.types import BadInput, TableOptions

if TYPE_CHECKING:
    from lmdiag.stimuli.stimulus_rows import Stimuli

_PARTS = {"number", "start", "surprisal", "state"}  # of a text, as lmdiag writes them
_SHORT = 3  # letters of articles and prepositions
_SAMPLE = 60  # rows whose texts are compared
_FIRST_COLUMNS = 12  # columns whose texts are compared with those of all others
_GAP = re.compile(GAP, re.IGNORECASE).search


READS_SENTENCES = "--columns sentence=sentence"
"""The option that reads the sentences of a table whose rows are something else."""


class Reading(NamedTuple):
    """What options make of a table whose layout is not known.

    Attributes:
        options: beside those that the user gave.
        rows: as they are read; None where they cannot be.
        problem: why not; "" if they can be.
        unread: columns of texts that are not read.
        notes: what is a guess, one line each.
    """

    options: TableOptions
    rows: Stimuli | None
    problem: str = ""
    unread: Sequence[str] = ()
    notes: Sequence[str] = ()


class UnknownLayout(BadInput):
    """A table without a column of texts that are read.

    Attributes:
        table: as it is.
        columns: its columns by the names in the file.
        lacks: what is missing, e.g. "column of texts".
        has_sentences: whether `READS_SENTENCES` reads sentences, which stand beside other rows.
        other: what it has instead of stimuli; None for a table that may have some.
        candidates: options that may read it, the most likely first.
        readings: what they read, after `tried`: first those that read all texts.
    """

    def __init__(self, table: Table) -> None:
        columns = _own_names(table.columns)
        layout = _Proposals(columns)
        self.table = table
        self.columns = [*filter(None, columns)]
        self.other = other_rows(layout)
        candidates = () if self.other else layout.candidates()
        candidates = (_of_source(options, table) for options in candidates)
        self.candidates = [*dict.fromkeys(candidates)]
        self.readings: Sequence[Reading] = ()
        has_text = "context" in columns or layout.gapped
        self.lacks = "column target" if has_text and not self.other else "column of texts"
        self.has_sentences = bool(self.other) and layout.kinds.get("sentence") == "text"
        self.lacks = "sentence per row" if self.has_sentences else self.lacks
        self._texts = [name for name, kind in layout.kinds.items() if kind == "text"]
        self._pair = layout.pair
        self._verdicts = layout.verdicts
        super().__init__(self._message())

    def tried(self, read: Callable[[TableOptions], Stimuli]) -> UnknownLayout:
        """Returns the error with what the candidates read."""
        readings = [self._reading(options, read) for options in self.candidates]
        self.readings = sorted(readings, key=lambda x: (x.rows is None, len(x.unread) > 0))
        self.args = (self._message(),)
        return self

    def _reading(self, options: TableOptions, read: Callable[[TableOptions], Stimuli]) -> Reading:
        try:
            rows = read(options)
        except BadInput as problem:
            return Reading(options, None, str(problem))
        texts = {"good", *TEXT_COLUMNS} - ({"sentence"} if rows.asks_words else {"context"})
        unread = [name for name in self._texts if name in {*rows.columns()} - texts]
        return Reading(options, rows, "", unread, [*self._notes(options, unread)])

    def _notes(self, options: TableOptions, unread: Sequence[str]) -> Iterator[str]:
        """Yields what is a guess in a reading."""
        yield from (f"{name} has texts that are not read" for name in unread)
        is_pair = bool(self._pair) and f"{PAIR[0]}={self._pair[0]}" in options.columns
        if is_pair and not are_judged(self._pair):
            yield f"which is good is a guess: exchange the two if it is {self._pair[1]}"
        if self._verdicts:
            which = f"{self._verdicts} may say which of {' and '.join(self._pair)} is good in a row"
            yield f"{which}: then write it into a column sentence_good, the other in sentence_bad"

    def _message(self) -> str:
        names = ", ".join(self.columns)
        needs = "give context and target, or a sentence, or sentence_good and sentence_bad"
        choices = [as_typed(reading.options) for reading in self.readings if reading.rows]
        choices = choices or [as_typed(options) for options in self.candidates[:1]]
        hint = f"perhaps {', or '.join(choices)}"
        if self.other:
            hint = f"it may have {self.other.text()}"
            hint += f"; {READS_SENTENCES} reads the sentences" if self.has_sentences else ""
        elif self._pair:
            needs = f"{' and '.join(self._pair)} are two texts in a row: say which is good and bad"
        return f"{self.table.name}: no {self.lacks}; found: {names:.800}; {needs:.400}; {hint:.900}"


def _own_names(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns by the names that they have in the file; see `name_columns`."""
    own = {name: name.removesuffix(DATA_SUFFIX) for name in columns}
    return {name if own[name] in columns else own[name]: x for name, x in columns.items()}


def _of_source(options: TableOptions, table: Table) -> TableOptions:
    """Options with columns by the names that they have in the file."""
    pairs = (text.partition("=") for text in options.columns)
    columns = (f"{name}={table.chosen.get(column, column)}" for name, _, column in pairs)
    return replace(options, columns=tuple(columns))


def check_layout(table: Table) -> None:
    """Raises `UnknownLayout` for a table in which no column has texts and something is known.

    Or a row is a word of the sentence that stands beside it, or a person's response to it.
    """
    columns = table.columns
    if columns.keys() >= _PARTS:
        what = "a row is a region or a word of `lmdiag items --per`, which `lmdiag analyse` reads"
        raise BadInput(f"{table.name}: {what}; `lmdiag items` without it writes a row per text")
    form = table.form or form_of(columns, table.chosen.keys() & columns.keys())
    has_words = {"context", "target"} <= columns.keys()
    if form == "sentences" and "target" not in columns and "sentence" in columns:
        form = "" if any(_GAP(str(text)) for text in columns["sentence"][:_SAMPLE]) else form
    if len(table) and not (form or has_words):
        try:
            unknown = UnknownLayout(table)
        except BadInput as problem:
            raise BadInput(f"{table.name}: {problem}") from None
        if unknown.other or unknown.candidates:
            raise unknown
        _refuse_unfit_texts(table)
    is_asked = "sentence" in table.chosen or table.form or form != "sentences"
    sentences = columns.get("sentence", ())
    is_repeated = 2 * len({*map(str, sentences)}) <= len(table)
    if sentences and not is_asked and (is_repeated or _have_no_end(sentences)):
        unknown = UnknownLayout(table)
        if unknown.other and unknown.other.command in ("surprisal", "cloze"):
            raise unknown


def _refuse_unfit_texts(table: Table) -> None:
    """Refuses a table in which columns that are named as texts have values of another kind."""
    for name, values in table.columns.items():
        column = name.removesuffix(DATA_SUFFIX)
        if name != column and column in TEXT_COLUMNS:
            example = shortened(next((str(value) for value in values if value), ""), 40)
            problem = f"no column of texts: {column} has values of another kind, as {example!r}"
            remedy = f"--columns {column}={column} reads them as they are"
            raise BadInput(f"{table.name}: {problem}; {remedy}")


def _have_no_end(texts: Sequence[Any]) -> bool:
    """Whether texts are beginnings of sentences."""
    return not any(is_ended(str(text)) for text in texts[:_SAMPLE] if text)


class _Proposals(TableLayout):
    """The options that may read the stimuli of a table.

    Attributes:
        sentences: columns of texts of several words in a quarter of the rows.
        gapped: the one of them with the marker of a missing word; "" for none.
        words: columns of words that may follow a text, or stand in its gap.
        pair: two columns of them that differ in part of their names, the good one first; () for
            none.
        verdicts: the column that may say which of the pair is good; "" for none.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(columns)
        texts = self.of_kind("text")
        long = [name for name in texts if name == "sentence" or not self.is_short(name)]
        has_readers = bool(named("reader", self.values))  # whose answers may be short and repeat
        short = [x for x in texts if not has_readers or self.hardly_repeats(x)]
        sparse = [
            name
            for name, values in self.values.items()
            if name not in texts and self.kinds[name] == "text"
            if 4 * values.n_filled >= self.n_rows and not self.is_short(name)
        ]
        self.sentences = [*long, *sparse] if long else short
        self.gapped = next(filter(self.has_one_gap, self.sentences), "")
        self.words = self._words()
        self.pair = pair_of_texts(self.sentences)
        self.verdicts = next(filter(self._names_pair, self.values), "")

    def _words(self) -> list[str]:
        """The column that is named as a target, or those that begin so, or all with words."""
        never = (self.item, *self.sentences)
        words = [name for name in self.values if self._is_word(name) and name not in never]
        if targets := named("target", words):
            return targets[:1]
        begin = [name for name in words if folded(name).startswith(NAMES["target"])]
        plain = [name for name in self.of_kind("word") if name in words]
        plain = plain or [x for x in self.of_kind("label", "text") if x in words]
        text = self.gapped or next(iter(self._contexts()), "")
        return begin or (self._words_after(text, plain) if text else plain)

    def _words_after(self, text: str, names: Sequence[str]) -> list[str]:
        """The columns of any name whose words may follow a text, or stand in its gap.

        Where texts repeat, it is the one that differs between rows of a text. Else most words
        differ between texts, or two columns have the same words.
        """
        if self.n_rows <= FEW_ROWS:
            return [*names]
        words = [x for x in names if len(self.values[x].levels) > 1]
        words = [name for name in words if not self._stands_in(name, text, whole=False)]
        if not self.hardly_repeats(text):
            words = [name for name in words if self.values[name].differs_within(self.values[text])]
            return sorted(words, key=lambda name: -len(self.values[name].levels))[:1]
        n_texts = len(self.values[text].levels)
        levels = {name: {*self.values[name].levels} for name in words}
        shared = {
            x for x, y in permutations(words, 2) if 2 * len(levels[x] & levels[y]) > len(levels[x])
        }
        words = [x for x in words if x in shared or 2 * len(levels[x]) >= n_texts]
        is_one = len(words) == 1 and 10 * len(levels[words[0]]) < 9 * n_texts
        return [] if is_one else words

    def _names_pair(self, name: str) -> bool:
        """Whether a column has two values, which end the names of the pair or are 0 and 1."""
        if not self.pair or len(self.values[name].levels) != 2:
            return False
        levels = {folded(level) for level in self.values[name].levels}
        ends = [{x for x in levels if folded(column).endswith(x)} for column in self.pair]
        is_verdict = folded(name) in ("label", "gold", "better", *NAMES["outcome"])
        return (is_verdict and levels <= {"0", "1", "2"}) or set.union(*ends) == levels

    def candidates(self) -> Iterator[TableOptions]:
        """Yields the options that may read the table, the most likely first."""
        item = {"item": self.item} if self.item and folded(self.item) != "item" else {}
        if self.gapped:
            if self.words and not self._stands_in(self.words[0], self.gapped):
                yield self._of_words({**item, "sentence": self.gapped})
            return
        parts = self._parts()
        if parts and (places := self._alternatives()):
            yield self._of_alternatives(parts, places, item)
            return
        regions = parts or self._numbered()
        if regions:
            columns = (*named_options(item), f"region={regions[0]}..{regions[-1]}")
            yield TableOptions(columns=columns)
            return
        contexts = self._contexts()
        contexts = contexts if len(contexts) == 1 else named("context", contexts)
        contexts = contexts or self._open_texts()
        sentences = self.sentences
        after = []
        if len(contexts) == 1:
            further = self._related([x for x in sentences if x not in contexts])
            after = [*self._of_sentences_after(contexts[0], further, item)]
        yield from after
        is_word = self.words and (not after or self.kinds[self.words[0]] != "label")
        if contexts and is_word and self._may_follow(contexts[0]):
            columns_of_words = item | {"context": contexts[0]}
            right = [x for x in named("right_context", self.values) if x not in self.words]
            right = [x for x in right if self.kinds[x] not in ("number", "file")]
            columns_of_words |= {"right_context": right[0]} if right else {}
            yield self._of_words(columns_of_words)
            sentences = [x for x in sentences if x not in columns_of_words.values()]
        yield from self._of_sentences(sentences, item)

    def _alternatives(self) -> list[list[str]]:
        """The columns with words or texts of several conditions at each place of a sentence.

        Names say so, or neighbouring columns have the same words in other rows, or their forms.
        """
        kinds = ("word", "label", "text")
        names = [x for x in self.values if self.kinds[x] in kinds and x != self.item]
        pairs = [pair for pair in combinations(names, 2) if name_conditions(*pair)]
        pairs += [pair for pair in pairwise(names) if self._are_exchanged(*pair)]
        places: list[set[str]] = []
        for pair in pairs:
            place = {*pair}.union(*(other for other in places if not other.isdisjoint(pair)))
            places = [*(other for other in places if other.isdisjoint(place)), place]
        return [[name for name in names if name in place] for place in places]

    def _are_exchanged(self, first: str, second: str) -> bool:
        """Whether two columns have most of their words in common, or forms of them in each row."""
        if {self.kinds[first], self.kinds[second]} == {"word"}:
            one, other = ({*self.values[name].levels} for name in (first, second))
            fewest = min(len(one), len(other))
            if fewest > MOST_LABELS and 2 * len(one & other) >= fewest:
                return True
        rows = zip(self.texts(first, _SAMPLE), self.texts(second, _SAMPLE), strict=True)
        halves = [(1 + max(map(len, row)) // 2, *row) for row in rows if all(row)]
        alike = [word[:half] == form[:half] for half, word, form in halves]
        return 2 * sum(alike) > len(alike)

    def _of_alternatives(
        self, parts: Sequence[str], places: Sequence[Sequence[str]], item: Mapping[str, str]
    ) -> TableOptions:
        """The words of conditions between the beginning and the end of a sentence.

        `BadInput` for parts of sentences that have alternatives at several places.
        """
        alternatives = [*chain.from_iterable(places)]
        names = [*self.values]
        first, last = names.index(alternatives[0]), names.index(alternatives[-1])
        ends = [*names[max(0, first - 1) : first], *names[last + 1 : last + 2]]
        frame = [name for name in ends if name in parts]
        is_alone = frame[:1] == parts[:1] and {*parts} <= {*frame, *alternatives}
        if len(places) > 1 or names[first : last + 1] != alternatives or not is_alone:
            several = f"{', '.join(alternatives)} are parts of sentences of several conditions"
            raise BadInput(f"{several}: write the sentences of each condition into a column")
        sides = dict(zip(("context", "right_context"), frame, strict=False))
        return self._wide(alternatives, {**item, **sides})

    def _contexts(self) -> list[str]:
        """The columns of texts whose names say that they are contexts, known names first."""
        known = [name for name in named("context", self.values) if name in self.sentences]
        begin = [name for name in self.sentences if folded(name).startswith("context")]
        return [*dict.fromkeys((*known, *begin))]

    def _open_texts(self) -> list[str]:
        """The one column of texts, if they have no end, and there are words that may follow."""
        if len(self.sentences) != 1 or not self.are_fragments(self.sentences[0]):
            return []
        n_texts = len(self.values[self.sentences[0]].levels)
        are_words = [
            self.kinds[name] == "word" and 2 * len(self.values[name].levels) >= n_texts
            for name in self.words
        ]
        return self.sentences if are_words and all(are_words) else []

    def _of_sentences_after(
        self, context: str, names: Sequence[str], item: Mapping[str, str]
    ) -> Iterator[TableOptions]:
        """The sentences that continue a context, which are read as its targets."""
        if names and not self._stands_in(context, names[0], whole=False):
            columns = {**item, "context": context}
            if len(names) > 1:
                yield self._wide(names, columns)
            else:
                yield TableOptions(columns=named_options({**columns, "target": names[0]}))

    def _may_follow(self, context: str) -> bool:
        """Whether words may follow a column of contexts."""
        if len(self.words) > 1:
            return context == "context" or self.are_fragments(context)
        return context == "context" or not self._stands_in(self.words[0], context)

    def _of_words(self, columns: Mapping[str, str]) -> TableOptions:
        """The words of a text: one, or those of its conditions."""
        if len(self.words) > 1:
            return self._wide(self.words, columns)
        return TableOptions(columns=named_options({**columns, "target": self.words[0]}))

    def _wide(self, names: Sequence[str], columns: Mapping[str, str]) -> TableOptions:
        """The texts of conditions, which are compared where their names say which one is good."""
        split = split_of(names, self.values)
        pair = pair_of_texts(names) if len(names) == 2 else ()
        is_compared = bool(pair) and are_judged(pair)
        return TableOptions(
            columns=named_options(columns),
            wide=tuple(names),
            split=(f"condition={split}",) if split else (),
            good=f"condition={pair[0]}" if is_compared else "",
            contrast=("item",) if is_compared else (),
        )

    def _of_sentences(
        self, names: Sequence[str], item: Mapping[str, str]
    ) -> Iterator[TableOptions]:
        """The sentences: one, a good and a bad one, or those of conditions."""
        related = self._related(names)
        pair = self.pair if {*self.pair} <= {*names} and len(related) < 3 else ()
        related = [*pair] or related
        if len(related) > 1 and self._have_words_each(related):
            both = f"{', '.join(related)} and {', '.join(self.words)}"
            remedy = "write a row for each context and its target"
            raise BadInput(f"{both} are several contexts and targets in a row: {remedy}")
        readings = []
        critical = self._critical(related) if related else ""
        if pair:
            columns = {**item, **dict(zip(PAIR, pair, strict=True))}
            readings.append(TableOptions(columns=named_options(columns)))
        if len(related) == 1:
            is_alone = related != ["sentence"] or "context" not in self.values
            columns = {**item, "sentence": related[0]}
            chosen = named_options(columns) if is_alone else ("sentence=sentence",)
            readings.append(TableOptions(columns=chosen, critical=critical))
        if len(related) > 1:
            wide = self._wide(related, item)
            kept = self._filter(related, critical)
            readings.append(replace(wide, critical=critical, filter=kept))
        yield from reversed(readings) if self.verdicts else readings

    def _have_words_each(self, contexts: Sequence[str]) -> bool:
        """Whether columns of fragments have as many columns of words, which no option joins."""
        are_contexts = all(map(self.are_fragments, contexts))
        is_named = all(folded(name).startswith("target") for name in self.words)
        return are_contexts and is_named and len(self.words) == len(contexts)

    def _is_word(self, name: str) -> bool:
        return self.kinds[name] in ("word", "label", "text") and self.is_short(name)

    def _stands_in(self, word: str, text: str, *, whole: bool = True) -> bool:
        """Whether most texts have the word of their row in them, and end as sentences (`whole`)."""
        pairs = [*zip(self.texts(word, _SAMPLE), self.texts(text, _SAMPLE), strict=True)]
        inside = [y for x, y in pairs if word_spans(y, x)]
        return 2 * sum(not whole or is_ended(text) for text in inside) > len(pairs)

    def _related(self, names: Sequence[str]) -> list[str]:
        """The columns whose texts have most words in common with those of one of them.

        That is the one that has most of such columns, of those that are named as sentences, if
        there are, since contexts have other words.
        """
        if not named("reader", self.values):
            names = [name for name in names if not self.are_answers(name)]
        names = _without_parts({name: self.texts(name, _SAMPLE) for name in names})
        no_contexts = [name for name in names if name not in self._contexts()]
        sentences = [name for name in no_contexts if names_sentences(name)]
        if sentences or len(no_contexts) > 1:
            names = no_contexts
        names = sorted(names, key=lambda name: self.values[name].n_filled < self.n_rows)
        if self.of_readers:  # who read the same texts
            return [*sentences, *names][:1]
        words = {name: [*map(words_of, self.texts(name, _SAMPLE))] for name in names}

        def related(first: str) -> list[str]:
            return [x for x in names if x == first or _shared(words[first], words[x]) >= RELATED]

        firsts = [x for x in sentences if x in names] or names
        firsts = [x for x in firsts if 2 * self.values[x].n_filled > self.n_rows] or firsts
        return max(map(related, firsts[:_FIRST_COLUMNS]), key=len, default=[])

    def _critical(self, texts: Sequence[str]) -> str:
        """The column that has the position or the word of the critical word in all texts."""
        names = [x for x in self.values if may_be_critical(x)]
        columns = {x: self.texts(x) for x in self.values} if names else {}
        return next(iter(critical_options(columns, texts)), "") if names else ""

    def _parts(self) -> list[str]:
        """The neighbouring columns with the parts of sentences, four or more.

        The first begins with capitals, those after it do not. The last one alone ends sentences, or
        two or more have several words, and not the same ones, as conditions would.
        """
        parts: list[str] = []
        for name, values in self.values.items():
            is_part = self.kinds[name] in ("word", "label", "text") and any(
                map(has_letters, values.levels)
            )
            n_capital = sum(level[:1].isupper() for level in values.levels)
            is_first = 10 * n_capital >= 9 * len(values.levels) and values.mean_words >= 2
            if is_part and parts and 2 * n_capital < len(values.levels):
                parts.append(name)
            elif self._are_parts(parts):
                break
            else:
                parts = [name] if is_part and is_first and self.are_fragments(name) else []
            if len(parts) > 1 and not self.are_fragments(name):
                break
        while parts and self.kinds[parts[-1]] == "label":
            parts.pop()  # a condition
        return parts if self._are_parts(parts) else []

    def _are_parts(self, names: Sequence[str]) -> bool:
        if len(names) < 4:
            return False
        if not self.are_fragments(names[-1]):
            return all(map(self.are_fragments, names[:-1]))
        texts = [name for name in names[1:] if self.kinds[name] == "text"]
        if len(texts) < 2:
            return False
        first, *others = ([*map(self._content, self.texts(x, _SAMPLE))] for x in texts)
        shares = [overlap(a, b) for words in others for a, b in zip(first, words, strict=True)]
        return median(shares) < RELATED

    @staticmethod
    def _content(text: str) -> frozenset[str]:
        """The words of a text without short ones, which are articles and the like."""
        return frozenset(word for word in words_of(text) if len(word) > _SHORT)

    def _numbered(self) -> list[str]:
        """The columns of parts of sentences whose names differ in their numbers alone.

        There are three or more, and not all of them are whole sentences, which end in a full stop.
        """
        has_contexts = any(self.kinds[name] == "text" for name in named("context", self.values))
        for names in self.numbered_words():
            if has_contexts and all(self.kinds[name] != "text" for name in names):
                continue  # words that continue a context
            first = self.values[names[0]].levels
            if not all(map(is_ended, first)):
                return names
        return []

    def _filter(self, texts: Sequence[str], critical: str) -> tuple[str, ...]:
        """The condition that leaves out rows which lack texts, or which are called fillers."""
        is_full = self.values[texts[0]].codes >= 0
        for name in texts[1:]:
            is_full = is_full & (self.values[name].codes >= 0)
        for name, values in self.values.items():
            n = len(values.levels)
            is_kind = 2 <= n <= MOST_LABELS and n < values.n_filled
            if not is_kind or name in (*texts, critical) or is_named(name, "reader"):
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


def _shared(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> float:
    """The share of words that the texts of two columns have in common in a row; a median."""
    shares = [overlap(a, b) for a, b in zip(first, second, strict=True) if a and b]
    return median(shares) if shares else 0.0


def _without_parts(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns but those whose texts are a part of other columns' in nine of ten rows.

    That which is a part in most rows is left out first, of several the last one.
    """
    names = [*texts]
    while 1 < len(names) <= _FIRST_COLUMNS:
        shares = {name: _share_of_parts(texts, name, names) for name in reversed(names)}
        part = max(shares, key=shares.__getitem__)
        if shares[part] < 0.9:
            break
        names.remove(part)
    return names


def _share_of_parts(texts: Mapping[str, Sequence[str]], name: str, names: Sequence[str]) -> float:
    """The share of a column's texts that stand in the row's text of another column."""
    others = [texts[other] for other in names if other != name]
    rows = [(text, row) for text, *row in zip(texts[name], *others, strict=True) if text]
    return sum(any(text in other for other in row) for text, row in rows) / max(1, len(rows))
