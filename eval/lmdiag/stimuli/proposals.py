"""What a table of an unknown layout may be, and the options that read it: only proposed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag.diagnostics.base import levels_of
from lmdiag.stimuli.forms import (
    SENTENCE_ENDS,
    counts_from_zero,
    critical_span,
    form_of,
)
from lmdiag.stimuli.item_names import level_parts
from lmdiag.stimuli.kinds import (
    MOST_LABELS,
    RELATED,
    ValueKind,
    dividing_columns,
    n_words,
    overlap,
    values_of,
    words_of,
)
from lmdiag.stimuli.names import TEXT_COLUMNS, is_named, is_outcome, named
from lmdiag.stimuli.table import GAP
from lmdiag.table_files import Table
from lmdiag.text import DATA_SUFFIX, folded
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame

# name of a condition -> sets of levels that it usually has
_FACTORS: Mapping[str, Sequence[set[str]]] = {
    "grammaticality": [{"gram", "ungram"}, {"grammatical", "ungrammatical"}, {"g", "ug"}],
    "plausibility": [{"plausible", "implausible"}, {"plaus", "implaus"}],
    "number": [{"sg", "pl"}, {"singular", "plural"}, {"sing", "plur"}],
    "expectation": [{"expected", "unexpected"}],
    "relatedness": [{"related", "unrelated"}],
    "ambiguity": [{"ambiguous", "unambiguous"}, {"amb", "unamb"}],
    "length": [{"short", "long"}],
    "frequency": [{"high", "low"}],
}

READS_SENTENCES = "--columns sentence=sentence"
"""The option that reads the sentences of a table that has contexts, too."""

_FILLERS = re.compile(r"(filler|fill|practice|prac|training|warm).*", re.IGNORECASE).fullmatch
_CRITICAL = re.compile(r"crit|verb|disambig|target|wordpos|posit").search
_CRITICAL_POSITION = re.compile(
    r"(crit|verb|disambig|target).*(pos|ind|idx|word|num|nr)|wordpos|posit|crit(ical)?$"
).search
_SENTENCE = re.compile(r"sentence|sent\b|satz|stimul|phrase|oracion|phrase|text").search
_LETTER = re.compile(r"[^\W\d]").search
_GAP = re.compile(GAP, re.IGNORECASE).search
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
        columns = TableLayout(named_columns)
        self.options = AS_IT_IS
        self.other = columns.other_rows()
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


class OtherRows(NamedTuple):
    """What a table without stimuli has.

    Attributes:
        command: that reads it.
        what: its rows, in words.
        columns: name that the command reads -> column.
        texts: further columns that tell texts apart.
        wide: columns of responses, of which a row has several.
    """

    command: Literal["surprisal", "cloze", "analyse", ""]
    what: str
    columns: Mapping[str, str]
    texts: Sequence[str] = ()
    wide: Sequence[str] = ()

    @property
    def option(self) -> str:
        """The option that names the columns; "" if it is not needed."""
        if self.command == "analyse":
            item = shlex.quote(self.columns["item"])
            response = shlex.quote(self.columns["response"])
            option = f"--response {response}" if folded(response) != "surprisal" else ""
            return option if folded(item) == "item" else f"{option} --item {item}".strip()
        is_known = all(folded(name) == field for field, name in self.columns.items())
        columns = () if is_known else _named(self.columns)
        if self.texts:  # which take the place of a column text, unless it is named, too
            names = [self.columns["text"], *self.texts]
            columns = tuple(x for x in columns if not x.startswith("text="))
            columns = (*(f"text={name}" for name in names), *columns)
        return as_typed(TableOptions(columns=columns, wide=tuple(self.wide)))

    def text(self) -> str:
        """Returns what it is, for which command, and with which option."""
        if not self.command:
            return f"{self.what}, which no command reads"
        fit = " and `lmdiag fit`" if self.command == "surprisal" else ""
        what = f"{self.what}: for `lmdiag {self.command}`{fit}"
        return f"{what}, with {self.option}" if self.option else what


class TableLayout:
    """The columns of a table by what their values are, and what they may be for.

    Args:
        columns: name -> values, one per row.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.values = {name: values_of(x) for name, x in columns.items() if name}
        self.n_rows = max(map(len, columns.values()), default=0)
        self.item = "item" if "item" in self.values else self._found_item()
        items = self.values[self.item].codes if self.item else None
        self.kinds = {name: values.kind(items) for name, values in self.values.items()}

    def _found_item(self) -> str:
        """The column that is named as items, whose values are not texts."""
        names = named("item", self.values)
        names += [name for name in self.values if folded(name).startswith("item")]
        for name in names:
            values = self.values[name]
            repeats = 1 < len(values.levels) < values.n_filled
            others = (self.values[other] for other in names if other != name)
            is_factor = any(map(values.differs_within, others))
            if repeats and 2 * len(values.texts) < len(values.levels) and not is_factor:
                return name
        return next((name for name in names if folded(name).startswith("item")), "")

    def of_kind(self, *kinds: ValueKind) -> list[str]:
        """Returns the columns of some kinds that have values in most rows."""
        return [
            name
            for name, kind in self.kinds.items()
            if kind in kinds and 2 * self.values[name].n_filled > self.n_rows
        ]

    # ---- tables without stimuli

    def other_rows(self) -> OtherRows | None:
        """Returns what a table without stimuli has, and for which command."""
        numbers = self._numbers()
        if numbers and (folded(numbers.columns["response"]), self.item) == ("surprisal", "item"):
            return numbers
        return self.words() or self.responses() or self.word_list() or numbers

    def words(self) -> OtherRows | None:
        """A row per word of a text: its position counts words, and most are single words."""
        words = [x for x in named("word", self.values) if folded(x) != "target"]
        words = [name for name in words if self.kinds[name] in ("word", "label")]
        places = [x for x in named("position", self.values) if self.kinds[x] == "number"]
        if not words or not places or words[0] in places:
            return None
        texts = [x for x in named("text", self.values) if x not in (*words, *places)]
        further = dividing_columns(self.values, [*texts[:1], places[0]], words[0])
        first, *others = (*texts[:1], *further) or ("",)
        columns = {"text": first} if first else {}
        columns |= {"position": places[0], "word": words[0]}
        what = "a row per word" if first else "a row per word of one text"
        return OtherRows("surprisal", what, columns, others)

    def responses(self) -> OtherRows | None:
        """A row per response to a context."""
        contexts = [x for x in named("context", self.values) if self.kinds[x] == "text"]
        contexts = contexts or [
            name
            for name in self.of_kind("text", "question")
            if folded(name) == "sentence" or self._has_gaps(name)
        ]
        readers = named("reader", self.values)
        names = named("response", self.values)
        names = [x for x in names if self.kinds[x] in ("word", "label", "text")]
        names = [x for x in names if x not in contexts]
        plain = {"response", "answer", "reply", "produced", "typed"}
        if not contexts:
            return None
        field = "sentence" if self._has_gaps(contexts[0]) else "context"
        columns = {field: contexts[0]}
        what = "responses of people"
        if wide := self._wide_responses(contexts[0]):
            return OtherRows("cloze", what, columns, wide=wide)
        if not names or not (readers or folded(names[0]) in plain):
            return None
        return OtherRows("cloze", what, columns | {"response": names[0]})

    def _wide_responses(self, context: str) -> list[str]:
        """The columns with a response each to the context of a row.

        Their names differ in numbers alone, and some of them have the same response in many rows,
        as words of conditions never have.
        """
        for names in self._numbered_words():
            rows = zip(*(self._texts(name) for name in names), strict=True)
            said = [[word.strip().casefold() for word in row if word.strip()] for row in rows]
            said = [words for words in said if len(words) > 1]
            n_shared = sum(len({*words}) < len(words) for words in said)
            if context not in names and said and 4 * n_shared >= len(said):
                return names
        return []

    def word_list(self) -> OtherRows | None:
        """A row per word with its norms, as frequency: nothing that is read to a model."""
        words = [x for x in self.of_kind("word", "label") if len(self.values[x].levels) > 1]
        others = {self.kinds[name] for name in self.values} - {"word", "label", "empty"}
        is_list = words and not named("reader", self.values) and others == {"number"}
        first = self.values[words[0]] if is_list else None
        if first is None or 10 * len(first.levels) < 9 * first.n_filled:
            return None
        return OtherRows("", "a list of words and their norms", {"word": words[0]})

    def _has_gaps(self, name: str) -> bool:
        return any(_GAP(text) for text in self.values[name].levels)

    def _numbers(self) -> OtherRows | None:
        """A row per item and response in numbers, in a table without texts."""
        items = [x for x in named("target", self.values) if self._repeats(x)]
        item = next(iter((*filter(None, [self.item]), *items)), "")
        if self.of_kind("text") or not item:
            return None
        numbers = [x for x in self.of_kind("number") if x != self.item]
        outcomes = [*named("outcome", numbers), *filter(is_outcome, numbers)]
        outcomes = [x for x in outcomes if len(self.values[x].levels) > 2]
        never = {*named("reader", numbers), *named("position", numbers), *named("text", numbers)}
        never |= {*named("list", numbers), *named("item", numbers)}
        never |= {x for x in numbers if folded(x) == "region"}
        others = [x for x in numbers if len(self.values[x].levels) > 2 and x not in never]
        others.sort(key=lambda x: len(self.values[x].levels) <= MOST_LABELS)
        surprisal = [x for x in numbers if folded(x) == "surprisal"]
        response = [*surprisal, *outcomes, *others][:1]
        if not response:
            return None
        columns = {"item": item, "response": response[0]}
        return OtherRows("analyse", "responses in numbers", columns)

    def _repeats(self, name: str) -> bool:
        """Whether a column has words of which each stands in two rows on average."""
        values = self.values[name]
        return self.kinds[name] == "word" and 2 * len(values.levels) <= values.n_filled

    # ---- tables with stimuli

    def proposal(self) -> TableOptions:
        """Returns the options that may read a table without a column of a known name.

        Several columns of related sentences are conditions; one is the sentence.
        """
        item = {"item": self.item} if self.item and folded(self.item) != "item" else {}
        if regions := self._parts() or self._numbered():
            return TableOptions(columns=(*_named(item), f"region={regions[0]}..{regions[-1]}"))
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
            return TableOptions(columns=_named(columns))
        endings = [x for x in self.of_kind("word") if x != self.item]
        if contexts and not words and len(endings) > 1 and self._are_fragments(contexts[0]):
            return TableOptions(
                columns=_named({**item, "context": contexts[0]}), wide=tuple(endings)
            )
        related = self._related(texts)
        if not related:
            return AS_IT_IS
        critical = self._critical(related)
        if len(related) == 1:
            columns = item | {"sentence": related[0]}
            return TableOptions(columns=_named(columns), critical=critical)
        return TableOptions(
            columns=_named(item),
            wide=tuple(related),
            split=tuple(f"condition={split}" for split in split_of(related)),
            critical=critical,
            filter=self._filter(related, critical),
        )

    def _words_of_context(self, item: Mapping[str, str]) -> TableOptions:
        """The word of a context, or the words of its conditions."""
        words = [name for name in named("target", self.values) if self._is_word(name)]
        if words:
            return TableOptions(columns=_named({**item, "target": words[0]}))
        words = [x for x in self.of_kind("word") if x != self.item]
        words = words or [x for x in self.of_kind("label", "text") if self._is_short(x)]
        if len(words) > 1:
            return TableOptions(columns=_named(item), wide=tuple(words))
        return TableOptions(columns=_named({**item, "target": words[0]})) if words else AS_IT_IS

    def _is_word(self, name: str) -> bool:
        return self.kinds[name] in ("word", "label", "text") and self._is_short(name)

    def _is_short(self, name: str) -> bool:
        sizes = [n_words(level) for level in self.values[name].levels]
        return bool(sizes) and sum(sizes) <= 3 * len(sizes)

    def _are_fragments(self, name: str) -> bool:
        ends = [level.rstrip()[-1:] in SENTENCE_ENDS for level in self.values[name].levels]
        return 10 * sum(ends) <= len(ends)

    def _texts(self, name: str) -> list[str]:
        values = self.values[name]
        levels = [*values.levels, ""]
        return [levels[code] for code in values.codes.tolist()]

    def _stands_in(self, word: str, text: str) -> bool:
        """Whether most texts have the word of their row in them, and end as sentences do."""
        pairs = [*zip(self._texts(word), self._texts(text), strict=True)][:_SAMPLE]
        n_inside = sum(bool(x) and x in y and y.rstrip()[-1:] in SENTENCE_ENDS for x, y in pairs)
        return 2 * n_inside > len(pairs)

    def _related(self, names: Sequence[str]) -> list[str]:
        """The columns whose texts have most words in common with those of the first one.

        Where none has, the column that is named as sentences.
        """
        names = [name for name in names if not self._is_short(name)] or [*names]
        if len(names) < 2:
            return [*names]
        names.sort(key=lambda name: self.values[name].n_filled < self.n_rows)
        sentences = [name for name in names if _SENTENCE(folded(name))]
        first = [*sentences, *names][0]
        if sentences:
            names = [name for name in names if not is_named(name, "context")]
        texts = {name: [*map(words_of, self._texts(name)[:_SAMPLE])] for name in names}
        shares = {
            name: [overlap(a, b) for a, b in zip(texts[first], words, strict=True) if a and b]
            for name, words in texts.items()
        }
        return [x for x in names if x == first or (shares[x] and median(shares[x]) >= RELATED)]

    def _critical(self, texts: Sequence[str]) -> str:
        """The column that has the position or the word of the critical word in all texts."""
        columns = [*map(self._texts, texts)]
        names = (name for name in self.values if name not in texts)
        found = (critical_option(name, self._texts(name), columns) for name in names)
        return next(filter(None, found), "")

    def _parts(self) -> list[str]:
        """The neighbouring columns with the parts of sentences, four or more.

        The first begins with capitals, those after it do not. The last one alone ends sentences, or
        two or more have several words, and not the same ones, as conditions would.
        """
        parts: list[str] = []
        for name, values in self.values.items():
            is_part = self.kinds[name] in ("word", "label", "text") and any(
                map(_LETTER, values.levels)
            )
            n_capital = sum(level[:1].isupper() for level in values.levels)
            is_first = 10 * n_capital >= 9 * len(values.levels) and values.mean_words >= 2
            if is_part and parts and 2 * n_capital < len(values.levels):
                parts.append(name)
            elif self._are_parts(parts):
                break
            else:
                parts = [name] if is_part and is_first and self._are_fragments(name) else []
            if len(parts) > 1 and not self._are_fragments(name):
                break
        while parts and self.kinds[parts[-1]] == "label":
            parts.pop()  # a condition
        return parts if self._are_parts(parts) else []

    def _are_parts(self, names: Sequence[str]) -> bool:
        if len(names) < 4:
            return False
        if not self._are_fragments(names[-1]):
            return all(map(self._are_fragments, names[:-1]))
        texts = [name for name in names[1:] if self.kinds[name] == "text"]
        if len(texts) < 2:
            return False
        first, *others = ([*map(self._content, self._texts(x)[:_SAMPLE])] for x in texts)
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
        for names in self._numbered_words():
            if has_contexts and all(self.kinds[name] != "text" for name in names):
                continue  # words that continue a context
            first = self.values[names[0]].levels
            ends = [level.rstrip()[-1:] in SENTENCE_ENDS for level in first]
            if not all(ends):
                return names
        return []

    def _numbered_words(self) -> list[list[str]]:
        """Three or more columns with letters whose names differ in their numbers alone."""
        stems: dict[str, list[str]] = {}
        for name, values in self.values.items():
            is_text = self.kinds[name] in ("word", "text", "label") and any(
                map(_LETTER, values.levels)
            )
            if re.search(r"\d", name) and is_text:
                stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
        return [names for names in stems.values() if len(names) > 2]

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
                if number in complete and not _FILLERS(level)
            ]
            if 0 < len(kept) < n:
                return (f"{name}={','.join(kept)}",)
        return ()


def _named(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Known name -> column, as NAME=COLUMN; those of the known name are left out."""
    return tuple(f"{name}={column}" for name, column in columns.items() if name != column)


def as_typed(options: TableOptions) -> str:
    """Returns options as they are typed, those that make rows first."""
    fields = ("columns", "wide", "split", "critical")
    given = options.stored()
    values = {name: given[name] for name in (*fields, *given) if name in given}
    words: list[str] = []
    for name, value in values.items():
        texts = [] if value is True else [value] if isinstance(value, str) else value
        words += [f"--{name.replace('_', '-')}", *texts]
    return shlex.join(words)


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


def naming_option(columns: Mapping[str, Sequence[Any]], command: str) -> str:
    """Returns the option that names the columns for `surprisal` or `cloze`; "" for none."""
    found = (
        TableLayout(columns).words() if command == "surprisal" else TableLayout(columns).responses()
    )
    return found.option if found else ""


def columns_of_words(columns: Mapping[str, Sequence[Any]] | DataFrame) -> Mapping[str, str]:
    """Returns text, position and word -> columns of a table with a row per word; {} for others.

    The key `text` is missing if no column identifies the texts.
    """
    found = TableLayout(dict(columns.items())).words()
    return found.columns if found else {}


def is_one_text(columns: Mapping[str, Sequence[Any]] | DataFrame) -> bool:
    """Returns whether a table has a row per word, and no column that tells texts apart."""
    found = columns_of_words(columns)
    return bool(found) and "text" not in found


# ---- names of levels -----------------------------------------------------------------------------


def split_of(levels: Sequence[str]) -> list[str]:
    """Returns the one SEPARATOR:NAME,NAME that divides levels into crossed conditions, or none.

    >>> split_of(["Gram_Match", "Gram_Mismatch", "Ungram_Match", "Ungram_Mismatch"])
    ['_:grammaticality,factor_2']
    """
    for separator in "_-./ ":
        parts = [level_parts(level, separator) for level in levels]
        n = len(parts[0])
        if n < 2 or any(len(part) != n for part in parts):
            continue
        factors = [list(dict.fromkeys(factor)) for factor in zip(*parts, strict=True)]
        if prod(map(len, factors)) == len(levels) and min(map(len, factors)) > 1:
            plain = [{level.casefold() for level in factor} for factor in factors]
            names = [
                next((name for name, of in _FACTORS.items() if factor in of), f"factor_{number}")
                for number, factor in enumerate(plain, start=1)
            ]
            return [f"{separator}:{','.join(names)}"]
    return []


def filler_levels(values: Sequence[Any]) -> list[str]:
    """Returns the levels of a column whose names are those of fillers or practice items."""
    return [level for level in dict.fromkeys(levels_of(values)) if level and _FILLERS(level)]
