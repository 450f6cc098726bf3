"""The options that may read the stimuli of a table of an unknown layout: only proposed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import Any

from lmdiag.stimuli.forms import SENTENCE_ENDS, counts_from_zero, critical_span, form_of
from lmdiag.stimuli.kinds import MOST_LABELS, RELATED, overlap, words_of
from lmdiag.stimuli.layouts import TableLayout, as_typed, has_letters, named_options
from lmdiag.stimuli.names import TEXT_COLUMNS, is_filler, is_named, named
from lmdiag.stimuli.other_rows import other_rows
from lmdiag.stimuli.splits import split_of
from lmdiag.table_files import Table
from lmdiag.text import DATA_SUFFIX, folded
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

READS_SENTENCES = "--columns sentence=sentence"
"""The option that reads the sentences of a table that has contexts, too."""

_CRITICAL = re.compile(r"crit|verb|disambig|target|wordpos|posit").search
_CRITICAL_POSITION = re.compile(
    r"(crit|verb|disambig|target).*(pos|ind|idx|word|num|nr)|wordpos|posit|crit(ical)?$"
).search
_SENTENCE = re.compile(r"sentence|sent\b|satz|stimul|phrase|oracion|phrase|text").search
_LETTER = re.compile(r"[^\W\d]").search
_SHORT = 3  # letters of articles and prepositions
_SAMPLE = 60  # rows whose texts are compared


class UnknownLayout(BadInput):
    """A table without a column of texts that are read.

    Attributes:
        table: as it is.
        columns: its columns by the names in the file.
        lacks: what is missing, e.g. "column of texts".
        other: what it has instead of stimuli; None for a table that may have some.
        options: that may read it; `AS_IT_IS` for no idea.
        has_sentences: whether `READS_SENTENCES` would read it, too.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        named_columns = _own_names(table.columns)
        self.columns = [*filter(None, named_columns)]
        columns = _Proposals(named_columns)
        self.options = AS_IT_IS
        self.other = other_rows(columns)
        if not self.other:
            self.options = columns.proposal()
        is_word = not self.other and "context" in table.columns
        self.has_sentences = is_word and "sentence" in table.columns
        self.lacks = "column target" if is_word else "column of texts"
        names = ", ".join(self.columns)
        needs = "give context and target, or a sentence, or sentence_good and sentence_bad"
        hint = f"perhaps {as_typed(self.options)}"
        if self.other:
            hint = f"it may have {self.other.text()}"
        if self.has_sentences:
            hint += f"; {READS_SENTENCES} reads the column sentence"
        super().__init__(f"{table.name}: no {self.lacks}; found: {names:.800}; {needs}; {hint}")


def _own_names(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns by the names that they have in the file; see `name_columns`."""
    renamed = {f"{name}{DATA_SUFFIX}": name for name in (*TEXT_COLUMNS, "item", "expected")}
    free = {x: name for x, name in renamed.items() if name not in columns}
    return {free.get(name, name): values for name, values in columns.items()}


def check_layout(table: Table) -> None:
    """Raises `UnknownLayout` for a table in which no column has texts and something is known."""
    has_words = {"context", "target"} <= table.columns.keys()
    if len(table) and not (table.form or form_of(table.columns) or has_words):
        unknown = UnknownLayout(table)
        if unknown.other or unknown.options != AS_IT_IS:
            raise unknown


class _Proposals(TableLayout):
    """The options that may read the stimuli of a table."""

    def proposal(self) -> TableOptions:
        """Returns the options that may read a table without a column of a known name.

        Several columns of related sentences are conditions; one is the sentence.
        """
        item = {"item": self.item} if self.item and folded(self.item) != "item" else {}
        if regions := self._parts() or self._numbered():
            return TableOptions(
                columns=(*named_options(item), f"region={regions[0]}..{regions[-1]}")
            )
        texts = self.of_kind("text")
        if "context" in texts:
            return self._words_of_context(item)
        contexts = [name for name in named("context", self.values) if name in texts]
        words = [name for name in named("target", self.values) if self._is_word(name)]
        if contexts and words and not self._stands_in(words[0], contexts[0]):
            columns = item | {"context": contexts[0], "target": words[0]}
            right = [x for x in named("right_context", self.values) if x != words[0]]
            right = [x for x in right if self.kinds[x] not in ("number", "file")]
            columns |= {"right_context": right[0]} if right else {}
            return TableOptions(columns=named_options(columns))
        endings = [x for x in self.of_kind("word") if x != self.item]
        if contexts and not words and len(endings) > 1 and self.are_fragments(contexts[0]):
            return TableOptions(
                columns=named_options({**item, "context": contexts[0]}), wide=tuple(endings)
            )
        related = self._related(texts)
        if not related:
            return AS_IT_IS
        critical = self._critical(related)
        if len(related) == 1:
            columns = item | {"sentence": related[0]}
            return TableOptions(columns=named_options(columns), critical=critical)
        split = split_of(related, self.values)
        return TableOptions(
            columns=named_options(item),
            wide=tuple(related),
            split=(f"condition={split}",) if split else (),
            critical=critical,
            filter=self._filter(related, critical),
        )

    def _words_of_context(self, item: Mapping[str, str]) -> TableOptions:
        """The word of a context, or the words of its conditions."""
        words = [name for name in named("target", self.values) if self._is_word(name)]
        if words:
            return TableOptions(columns=named_options({**item, "target": words[0]}))
        words = [x for x in self.of_kind("word") if x != self.item]
        words = words or [x for x in self.of_kind("label", "text") if self.is_short(x)]
        if len(words) > 1:
            return TableOptions(columns=named_options(item), wide=tuple(words))
        return (
            TableOptions(columns=named_options({**item, "target": words[0]})) if words else AS_IT_IS
        )

    def _is_word(self, name: str) -> bool:
        return self.kinds[name] in ("word", "label", "text") and self.is_short(name)

    def _stands_in(self, word: str, text: str) -> bool:
        """Whether most texts have the word of their row in them, and end as sentences do."""
        pairs = [*zip(self.texts(word), self.texts(text), strict=True)][:_SAMPLE]
        n_inside = sum(bool(x) and x in y and y.rstrip()[-1:] in SENTENCE_ENDS for x, y in pairs)
        return 2 * n_inside > len(pairs)

    def _related(self, names: Sequence[str]) -> list[str]:
        """The columns whose texts have most words in common with those of the first one.

        Where none has, the column that is named as sentences.
        """
        names = [name for name in names if not self.is_short(name)] or [*names]
        if len(names) < 2:
            return [*names]
        names.sort(key=lambda name: self.values[name].n_filled < self.n_rows)
        sentences = [name for name in names if _SENTENCE(folded(name))]
        first = [*sentences, *names][0]
        if sentences:
            names = [name for name in names if not is_named(name, "context")]
        texts = {name: [*map(words_of, self.texts(name)[:_SAMPLE])] for name in names}
        shares = {
            name: [overlap(a, b) for a, b in zip(texts[first], words, strict=True) if a and b]
            for name, words in texts.items()
        }
        return [x for x in names if x == first or (shares[x] and median(shares[x]) >= RELATED)]

    def _critical(self, texts: Sequence[str]) -> str:
        """The column that has the position or the word of the critical word in all texts."""
        columns = [*map(self.texts, texts)]
        names = (name for name in self.values if name not in texts)
        found = (critical_option(name, self.texts(name), columns) for name in names)
        return next(filter(None, found), "")

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
        first, *others = ([*map(self._content, self.texts(x)[:_SAMPLE])] for x in texts)
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
            ends = [level.rstrip()[-1:] in SENTENCE_ENDS for level in first]
            if not all(ends):
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


def critical_options(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Returns the columns that have the critical word of each `sentence`, as options name them."""
    found = (critical_option(x, values, [columns["sentence"]]) for x, values in columns.items())
    return [*filter(None, found)]


def critical_option(name: str, values: Sequence[Any], columns: Sequence[Sequence[Any]]) -> str:
    """Returns what `--critical` takes if a column has the critical word of all texts, else "".

    That is its name, with `:0` for positions from 0.

    Args:
        name, values: of the column.
        columns: of the texts.
    """
    plain = folded(name)
    if not (_CRITICAL(plain) or _CRITICAL_POSITION(plain)):
        return ""
    texts = [str(value) for value in values]
    is_position = all(text.removesuffix(".0").isdecimal() for text in texts)
    pattern = _CRITICAL_POSITION if is_position else _CRITICAL
    if not pattern(plain):
        return ""
    start = 0 if counts_from_zero(name, texts) else 1
    rows = zip(texts, zip(*columns, strict=True), strict=True)
    pairs = [(str(x), text) for text, row in rows if all(row) for x in row]
    with suppress(ValueError):
        if pairs and all(critical_span(x, text, start) for x, text in pairs):
            is_named = counts_from_zero(name, ["1"])  # a 0 alone may stand for no word
            return f"{name}:0" if is_named else name
    return ""
