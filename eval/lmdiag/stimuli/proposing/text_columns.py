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

_LEAST_FILLED = 1 / 4  # share of the rows that have a text, in one of several columns of texts


class TextColumns(TableLayout):
    """The columns of texts and words of a table, by what they may be."""

    @cached_property
    def texts_of_rows(self) -> list[str]:
        """The columns of several texts that most rows have, those of readers left out."""
        return [x for x in self.of_kind("text") if len(self.values[x].levels) > 1]

    @cached_property
    def sentences(self) -> list[str]:
        """The columns that may have sentences: of several texts of several words.

        Texts may be missing in some rows, as where an item has fewer conditions than another.
        """
        # in one or two rows, a column may have the same text throughout
        texts = self.of_kind("text") if self.n_rows < 3 else self.texts_of_rows
        long = [x for x in texts if x == "sentence" or not self.values[x].are_short]
        if not long:
            has_readers = bool(named_columns("reader", self.values))  # whose answers may be short
            return [x for x in texts if not has_readers or self.values[x].hardly_repeat]
        # the other columns of texts, most of which lack a text in many rows
        sparse = [x for x in self.values if self.kinds[x] == "text" and x not in texts]
        sparse = [x for x in sparse if not self.values[x].are_short]
        least = _LEAST_FILLED * self.n_rows
        return [*long, *(x for x in sparse if self.values[x].n_filled >= least)]

    @cached_property
    def gapped(self) -> str:
        """The first column of sentences with one gap, the marker of a missing word; "" for none."""
        return next((x for x in self.sentences if self.values[x].have_one_gap), "")

    @cached_property
    def contexts(self) -> list[str]:
        """The columns of texts whose names say that they are contexts, known names first."""
        known = [name for name in named_columns("context", self.values) if name in self.sentences]
        numbered = [name for name in self.sentences if folded(name).startswith("context")]
        return [*dict.fromkeys((*known, *numbered))]

    @cached_property
    def pair(self) -> tuple[str, ...]:
        """Two columns of sentences that differ in part of their names, the good one first."""
        return pair_of_texts(self.sentences)

    @cached_property
    def verdicts(self) -> str:
        """The column that may say in each row which of the pair is good; "" for none."""
        return next(filter(self._may_be_verdict, self.values), "")

    def _may_be_verdict(self, name: str) -> bool:
        """Whether a column has two values, which end the names of the pair or are 0, 1 or 2.

        "good" and "bad", for example, end the names of the pair sent_good and sent_bad.
        """
        if not self.pair or len(self.values[name].levels) != 2:
            return False
        levels = {folded(level) for level in self.values[name].levels}
        has_known_name = folded(name) in ("label", "gold", "better", *NAMES["outcome"])
        if has_known_name and levels <= {"0", "1", "2"}:
            return True
        good, bad = map(folded, self.pair)
        return all(good.endswith(level) or bad.endswith(level) for level in levels)

    @cached_property
    def words(self) -> list[str]:
        """The columns of words that may follow a text, or stand in its gap.

        The first of these choices that the table has:

        1. the column of a known name for targets, as ["target"];
        2. columns whose names begin with such a name, as ["target_sg", "target_pl"];
        3. columns of words of any name, as ["verb"]; if the table has a context or a gap, those
           whose words may follow it.
        """
        kinds = ("word", "label", "text")
        names = [x for x in self.values if x != self.item and x not in self.sentences]
        names = [x for x in names if self.kinds[x] in kinds and self.values[x].are_short]
        targets = named_columns("target", names)
        if targets:
            return targets[:1]
        targets = [name for name in names if folded(name).startswith(NAMES["target"])]
        if targets:
            return targets
        names = [x for x in names if not (self._is_condition(x) or _names_verdicts(x))]
        words = [x for x in self.of_kind("word") if x in names]
        if not words:
            words = [x for x in self.of_kind("label", "text") if x in names]
        text = self.gapped or next(iter(self.contexts), "")
        return self._words_after(text, words) if text else words

    def _is_condition(self, name: str) -> bool:
        """Whether all rows have one value, or most items have most of a few values."""
        values = self.values[name]
        n_levels = len(values.levels)
        if n_levels < 2:
            return values.n_filled > 2
        if not self.item or n_levels > MOST_LABELS:
            return False
        items = self.values[self.item]
        n_pairs = n_distinct(combine_codes(items.codes, values.codes))
        return len(items.levels) > 1 and 2 * n_pairs > n_levels * len(items.levels)

    def _words_after(self, text: str, names: Sequence[str]) -> list[str]:
        """The columns of any name whose words may follow a text, or stand in its gap.

        If texts repeat, it is the one column whose words differ between the rows of a text. If they
        hardly repeat, it is each column with at least half as many different words as texts, or
        with most of its words in another column, too, as those of conditions have. Columns whose
        words stand in the text already are left out. In a table of a few rows, all are returned.

        Args:
            text: the column of texts.
            names: of the columns of words.
        """
        if self.n_rows <= FEW_ROWS:
            return [*names]
        names = [x for x in names if len(self.values[x].levels) > 1]
        names = [x for x in names if not self.stands_in(x, text, whole=False)]
        if not self.values[text].hardly_repeat:
            names = [x for x in names if self.values[x].differs_within(self.values[text])]
            return sorted(names, key=lambda name: -len(self.values[name].levels))[:1]
        n_texts = len(self.values[text].levels)
        words = {name: {*self.values[name].levels} for name in names}
        with_shared_words = set()  # columns that have most of their words in another one, too
        for name, other in permutations(names, 2):
            if 2 * len(words[name] & words[other]) > len(words[name]):
                with_shared_words.add(name)
        names = [x for x in names if x in with_shared_words or 2 * len(words[x]) >= n_texts]
        if len(names) == 1 and len(words[names[0]]) < 0.9 * n_texts:
            return []  # a single column of targets has nearly as many words as there are texts
        return names

    def stands_in(self, word: str, text: str, *, whole: bool = True) -> bool:
        """Returns whether most texts have the word of their row in them.

        Args:
            word: column of words.
            text: column of texts.
            whole: count only texts that end as sentences do.
        """
        pairs = [*zip(self.texts(word, SAMPLE), self.texts(text, SAMPLE), strict=True)]
        texts_with_word = [sentence for target, sentence in pairs if word_spans(sentence, target)]
        if whole:
            texts_with_word = [*filter(is_ended, texts_with_word)]
        return 2 * len(texts_with_word) > len(pairs)

    def shared_words(self, first: str, second: str) -> float:
        """Returns the share of words that the texts of a row have in common, as a median of rows.

        Args:
            first, second: columns of texts.
        """
        return _median_overlap(self._words_of_texts(first), self._words_of_texts(second))

    def _words_of_texts(self, name: str) -> list[frozenset[str]]:
        """The words of each of the first texts of a column."""
        return [*map(words_of, self.texts(name, SAMPLE))]

    def related(self, names: Sequence[str]) -> list[str]:
        """Returns the columns of texts that have the sentences of the conditions of a row.

        The sentences of a row share most words. For example, ["sent_sg", "sent_pl"] of a table that
        also has columns with a context and a comment on each row, which have other words.

        Each of a few columns, named as sentences if there are such names, is compared with all
        columns. The largest group of columns that share words with one of them is returned. In a
        table of readers, whose rows repeat the same texts, the likeliest column alone is returned.

        Args:
            names: of columns of texts.
        """
        texts = self._texts_of_conditions(names)
        sentences = [x for x in names if x in texts and x not in self.contexts]
        sentences = [x for x in sentences if names_sentences(x)]
        if self.reader_attributes:
            return [*sentences, *texts][:1]
        centres = sentences or texts  # columns with which all columns are compared
        in_most_rows = [x for x in centres if 2 * self.values[x].n_filled > self.n_rows]
        centres = (in_most_rows or centres)[:_FIRST_COLUMNS]
        words = {name: self._words_of_texts(name) for name in texts}
        largest_group: list[str] = []
        for centre in centres:
            group = [
                name
                for name in texts
                if name == centre or self._share_more_in_rows(words[centre], words[name])
            ]
            if len(group) > len(largest_group):
                largest_group = group
        return largest_group

    def _texts_of_conditions(self, names: Sequence[str]) -> list[str]:
        """The columns of texts that may have sentences of conditions, complete columns first.

        Answers of readers, parts of the texts of another column and contexts are left out; contexts
        stay if at most one other column is left, which is not named as sentences.
        """
        texts = [*names]
        if not named_columns("reader", self.values):
            # a few texts that repeat are labels, unless all columns have such texts
            no_answers = [name for name in names if not self.are_answers(name)]
            texts = no_answers or [x for x in names if self.values[x].share_ended > 0.5]
        texts = _without_parts({name: self.texts(name, SAMPLE) for name in texts})
        no_contexts = [name for name in texts if name not in self.contexts]
        if len(no_contexts) > 1 or any(map(names_sentences, no_contexts)):
            texts = no_contexts
        # columns that have a text in each row first
        return sorted(texts, key=lambda name: self.values[name].n_filled < self.n_rows)

    def are_related(self, first: str, second: str) -> bool:
        """Returns whether texts of a row share a third of their words, more than of two rows do.

        Args:
            first, second: columns of texts.
        """
        return self._share_more_in_rows(self._words_of_texts(first), self._words_of_texts(second))

    def _share_more_in_rows(
        self, first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]
    ) -> bool:
        """Whether texts of a row share a third of their words, and more than texts of two rows do.

        Args:
            first, second: the words of the texts of two columns, one set per row.
        """
        within_rows = _median_overlap(first, second)
        if within_rows < RELATED:
            return False
        if self.n_rows < 2:
            return True
        # each text beside that of another row, about half a table further
        start = (self.n_rows // 2) % max(1, len(second))
        of_other_rows = [*second[start:], *second[:start]]
        return within_rows > _median_overlap(first, of_other_rows)

    def critical_word(self, texts: Sequence[str]) -> str:
        """Returns the column that has the critical word of all texts, or its position; "" if none.

        It is as `--critical` takes it: COLUMN, or COLUMN:0 for positions from 0.

        Args:
            texts: names of the columns of texts.
        """
        if not any(map(may_be_critical, self.values)):  # by their names
            return ""
        columns = {name: self.texts(name) for name in self.values}
        return next(iter(critical_options(columns, texts)), "")


def _names_verdicts(name: str) -> bool:
    """Whether a column has the name of judgments of texts, or of responses."""
    return is_outcome(name) or folded(name) in ("label", "gold")


def _median_overlap(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> float:
    """The share of words that the texts of a row have in common, as a median of rows.

    Args:
        first, second: the words of the texts of two columns, one set per row; empty ones do not
            count.
    """
    shares = [overlap(a, b) for a, b in zip(first, second, strict=True) if a and b]
    return median(shares) if shares else 0.0


def _without_parts(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns without those whose texts are parts of the text of another column of their row.

    For example, ["sentence"] of the columns sentence ("The dog barks.") and subject ("The dog"). A
    column is left out if nine in ten of its texts are such parts. The column with the largest share
    of parts is left out first, and of columns with equal shares the last one; the shares of the
    others are then computed anew, without it.

    Args:
        texts: column -> its texts, one per row.
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
    """The share of a column's texts that are a part of the text of another column in their row.

    Args:
        texts: column -> its texts, one per row.
        name: of the column.
        names: of the columns that count, with its own.
    """
    n_texts = 0
    n_parts = 0
    for row, text in enumerate(texts[name]):
        if text:
            n_texts += 1
            n_parts += any(text in texts[other][row] for other in names if other != name)
    return n_parts / max(1, n_texts)
