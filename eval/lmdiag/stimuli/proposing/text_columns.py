"""The columns of texts of a table of an unknown layout, and of the words that belong to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations
from statistics import median

from lmdiag.stimuli.values.codes import combine_codes, n_distinct
from lmdiag.stimuli.values.critical_words import critical_options, may_be_critical, word_spans
from lmdiag.stimuli.values.kinds import FEW_ROWS, MOST_LABELS, RELATED, overlap, words_of
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.marks import is_ended
from lmdiag.stimuli.values.names import (
    NAMES,
    is_outcome,
    named_columns,
    names_sentences,
    pair_of_texts,
)
from lmdiag.text import folded

SAMPLE = 60
"""Rows whose texts are compared."""

_FIRST_COLUMNS = 12  # columns whose texts are compared with those of all others


class TextColumns(TableLayout):
    """The columns of texts and words of a table, by what they may be."""

    @cached_property
    def texts_of_rows(self) -> list[str]:
        """The columns of several texts that most rows have, those of readers left out."""
        return [x for x in self.of_kind("text") if len(self.values[x].levels) > 1]

    @cached_property
    def sentences(self) -> list[str]:
        """The columns of several texts of several words, in a quarter of the rows at least."""
        texts = self.of_kind("text") if self.n_rows < 3 else self.texts_of_rows
        long = [x for x in texts if x == "sentence" or not self.values[x].are_short]
        if not long:
            has_readers = bool(named_columns("reader", self.values))  # whose answers may be short
            return [x for x in texts if not has_readers or self.values[x].hardly_repeat]
        sparse = [
            name
            for name, values in self.values.items()
            if name not in texts and self.kinds[name] == "text"
            if 4 * values.n_filled >= self.n_rows and not values.are_short
        ]
        return [*long, *sparse]

    @cached_property
    def gapped(self) -> str:
        """The one of them with the marker of a missing word; "" for none."""
        return next((x for x in self.sentences if self.values[x].have_one_gap), "")

    @cached_property
    def contexts(self) -> list[str]:
        """The columns of texts whose names say that they are contexts, known names first."""
        known = [name for name in named_columns("context", self.values) if name in self.sentences]
        begin = [name for name in self.sentences if folded(name).startswith("context")]
        return [*dict.fromkeys((*known, *begin))]

    @cached_property
    def pair(self) -> tuple[str, ...]:
        """Two columns of sentences that differ in part of their names, the good one first."""
        return pair_of_texts(self.sentences)

    @cached_property
    def verdicts(self) -> str:
        """The column that may say in each row which of the pair is good; "" for none."""
        return next(filter(self._names_pair, self.values), "")

    def _names_pair(self, name: str) -> bool:
        """Whether a column has two values, which end the names of the pair or are 0 and 1."""
        if not self.pair or len(self.values[name].levels) != 2:
            return False
        levels = {folded(level) for level in self.values[name].levels}
        ends = [{x for x in levels if folded(column).endswith(x)} for column in self.pair]
        is_verdict = folded(name) in ("label", "gold", "better", *NAMES["outcome"])
        return (is_verdict and levels <= {"0", "1", "2"}) or set.union(*ends) == levels

    @cached_property
    def words(self) -> list[str]:
        """The columns of words that may follow a text, or stand in its gap.

        That is the one that is named as a target, or those that begin so, or all with words.
        """
        never = (self.item, *self.sentences)
        words = [name for name in self.values if self._is_word(name) and name not in never]
        if targets := named_columns("target", words):
            return targets[:1]
        begin = [name for name in words if folded(name).startswith(NAMES["target"])]
        if begin:
            return begin
        words = [x for x in words if not (self._is_condition(x) or _names_verdicts(x))]
        plain = [x for x in self.of_kind("word") if x in words]
        plain = plain or [x for x in self.of_kind("label", "text") if x in words]
        text = self.gapped or next(iter(self.contexts), "")
        return self._words_after(text, plain) if text else plain

    def _is_condition(self, name: str) -> bool:
        """Whether rows have one value, or most items most of a few."""
        values = self.values[name]
        n = len(values.levels)
        if n < 2 or not self.item or n > MOST_LABELS:
            return n < 2 and values.n_filled > 2
        items = self.values[self.item]
        n_pairs = n_distinct(combine_codes(items.codes, values.codes))
        return len(items.levels) > 1 and 2 * n_pairs > n * len(items.levels)

    def _is_word(self, name: str) -> bool:
        return self.kinds[name] in ("word", "label", "text") and self.values[name].are_short

    def _words_after(self, text: str, names: Sequence[str]) -> list[str]:
        """The columns of any name whose words may follow a text, or stand in its gap.

        Where texts repeat, it is the one that differs between rows of a text. Else most words
        differ between texts, or two columns have the same words.
        """
        if self.n_rows <= FEW_ROWS:
            return [*names]
        words = [x for x in names if len(self.values[x].levels) > 1]
        words = [name for name in words if not self.stands_in(name, text, whole=False)]
        if not self.values[text].hardly_repeat:
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

    def stands_in(self, word: str, text: str, *, whole: bool = True) -> bool:
        """Returns whether most texts have the word of their row, and end as sentences (`whole`)."""
        pairs = [*zip(self.texts(word, SAMPLE), self.texts(text, SAMPLE), strict=True)]
        inside = [y for x, y in pairs if word_spans(y, x)]
        return 2 * sum(not whole or is_ended(text) for text in inside) > len(pairs)

    def shared_words(self, first: str, second: str) -> float:
        """Returns the share of words that texts of a row have in common; a median."""
        return _shared(self._words(first), self._words(second))

    def _words(self, name: str) -> list[frozenset[str]]:
        return [*map(words_of, self.texts(name, SAMPLE))]

    def related(self, names: Sequence[str]) -> list[str]:
        """Returns the columns whose texts have most words in common with those of one of them.

        That is the one that has most of such columns, of those that are named as sentences, if
        there are, since contexts have other words.
        """
        if not named_columns("reader", self.values):
            no_answers = [name for name in names if not self.are_answers(name)]
            names = no_answers or [x for x in names if self.values[x].share_ended > 0.5]
        names = _without_parts({name: self.texts(name, SAMPLE) for name in names})
        no_contexts = [name for name in names if name not in self.contexts]
        sentences = [name for name in no_contexts if names_sentences(name)]
        if sentences or len(no_contexts) > 1:
            names = no_contexts
        names = sorted(names, key=lambda name: self.values[name].n_filled < self.n_rows)
        if self.reader_attributes:  # who read the same texts
            return [*sentences, *names][:1]
        firsts = [x for x in sentences if x in names] or names
        firsts = [x for x in firsts if 2 * self.values[x].n_filled > self.n_rows] or firsts
        words_of_firsts = {first: self._words(first) for first in firsts[:_FIRST_COLUMNS]}
        found: dict[str, list[str]] = {first: [] for first in words_of_firsts}
        for name in names:
            words = self._words(name)
            for first, of_first in words_of_firsts.items():
                if name == first or self._share_more_in_rows(of_first, words):
                    found[first].append(name)
        return max(found.values(), key=len, default=[])

    def are_related(self, first: str, second: str) -> bool:
        """Returns whether texts of two columns share words in a row, more than in two rows."""
        return self._share_more_in_rows(self._words(first), self._words(second))

    def _share_more_in_rows(
        self, first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]
    ) -> bool:
        within = _shared(first, second)
        if within < RELATED:
            return False
        start = (self.n_rows // 2) % max(1, len(second))
        return self.n_rows < 2 or within > _shared(first, [*second[start:], *second[:start]])

    def critical_word(self, texts: Sequence[str]) -> str:
        """Returns the column that has the critical word of all texts, or its position; "" if none.

        It is as `--critical` takes it.
        """
        names = [x for x in self.values if may_be_critical(x)]
        columns = {x: self.texts(x) for x in self.values} if names else {}
        return next(iter(critical_options(columns, texts)), "") if names else ""


def _names_verdicts(name: str) -> bool:
    """Whether a column has the name of judgments of texts, or of responses."""
    return is_outcome(name) or folded(name) in ("label", "gold")


def _shared(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> float:
    """The share of words that pairs of texts have in common; a median."""
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
