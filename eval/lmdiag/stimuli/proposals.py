"""What a table of an unknown layout may be, and the options that read it: only proposed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lmdiag.diagnostics.base import levels_of
from lmdiag.stimuli.columns import READER_NAMES, WORD_PLACES
from lmdiag.stimuli.forms import form_of
from lmdiag.stimuli.layout import level_parts
from lmdiag.stimuli.regions import CONTINUATIONS
from lmdiag.table_files import RawTable
from lmdiag.text import WITHOUT_SPACES, folded
from lmdiag.types import BadInput

_FACTORS: Mapping[str, Sequence[set[str]]] = {
    "grammaticality": [{"gram", "ungram"}, {"grammatical", "ungrammatical"}, {"g", "ug"}],
    "attractor": [{"match", "mismatch"}],
    "plausibility": [{"plausible", "implausible"}, {"plaus", "implaus"}],
    "number": [{"sg", "pl"}, {"singular", "plural"}, {"sing", "plur"}],
    "expectation": [{"expected", "unexpected"}],
    "relatedness": [{"related", "unrelated"}],
    "ambiguity": [{"ambiguous", "unambiguous"}, {"amb", "unamb"}],
    "length": [{"short", "long"}],
    "frequency": [{"high", "low"}],
}
"""Name of a condition -> sets of levels that it usually has."""

_FILLERS = re.compile(r"(filler|fill|practice|prac|training|warm).*", re.IGNORECASE).fullmatch
_CRITICAL = re.compile(r"crit|verb|disambig|target(word|pos)|wordpos|posit")

_WORDS = "a row per word: for `lmdiag surprisal` and `lmdiag fit`"
_PLACES = {
    "text": ("text", "textid", "article", "story", "docid", "trialid"),
    "position": ("position", *WORD_PLACES),
    "word": ("word",),
}
"""Known column of a table with a row per word -> names that it may have, folded."""

_KINDS = (
    (("item", "response"), "responses of people: for `lmdiag cloze`"),
    (("item", "surprisal"), "responses in numbers: for `lmdiag analyse`"),
)
"""Columns of a table that has no stimuli -> what it is."""


class UnknownLayout(BadInput):
    """A table without a column of texts.

    Attributes:
        table: as it is.
        advice: what it may be, or the options that may read it.
    """

    def __init__(self, table: RawTable) -> None:
        self.table = table
        kind = _kind_of(table)
        options = "" if kind else proposal(table)
        self.advice = kind or options
        names = ", ".join(filter(None, table.columns))
        needs = "context and target, or a sentence, or sentence_good and sentence_bad"
        if kind:
            needs = f"{needs}; it may have {kind}"
        elif options:
            needs = f"{needs}; perhaps {options}"
        super().__init__(f"{table.name}: no column of texts; found: {names:.800}; give {needs}")


def check_layout(table: RawTable) -> None:
    """Raises `UnknownLayout` for a table in which no column has texts and something is known."""
    has_words = {"context", "target"} <= table.columns.keys()
    if not (table.form or form_of(table.columns) or has_words):
        unknown = UnknownLayout(table)
        if unknown.advice:
            raise unknown


def _kind_of(table: RawTable) -> str:
    """Returns what a table without stimuli is, and for which command; "" if it is not known."""
    if (options := columns_of_words(table.columns)) is not None:
        return f"{_WORDS}{options and ', with '}{options}"
    names = {folded(name) for name in table.columns}
    return next((text for columns, text in _KINDS if names >= {*columns}), "")


def columns_of_words(names: Collection[str]) -> str | None:
    """Returns the option that names text, position and word of a table with a row per word.

    "" if the columns are called so, but for spelling; None if there is none for one of them.
    """
    by_name = {folded(name): name for name in reversed([*names])}
    found = {
        field: next((by_name[name] for name in known if name in by_name), "")
        for field, known in _PLACES.items()
    }
    if not all(found.values()):
        return None
    is_known = all(folded(name) == field for field, name in found.items())
    parts = (f"{field}={shell_word(name)}" for field, name in found.items())
    return "" if is_known else f"--columns {' '.join(parts)}"


def proposal(table: RawTable) -> str:
    """Returns the options that may read a table without a column of texts; "" for no idea.

    Several columns of sentences are conditions; one is the sentence.
    """
    if regions := _numbered(table):
        return f"--columns region={shell_word(regions[0])}..{shell_word(regions[-1])}"
    if "context" in table.columns:
        for name in filter(lambda name: folded(name) in CONTINUATIONS, table.columns):
            return f"--columns target={shell_word(name)}"
    texts = [name for name, values in table.columns.items() if _is_sentences(values)]
    if "context" in texts:
        words = [name for name, values in table.columns.items() if _is_words(values)]
        if len(words) < 2:
            return "".join(f"--columns target={shell_word(name)}" for name in words)
        return f"--wide {' '.join(map(shell_word, words))}"
    if not texts:
        return ""
    if len(texts) == 1:
        return f"--columns sentence={shell_word(texts[0])}"
    options = [f"--wide {' '.join(map(shell_word, texts))}"]
    options += [f"--split condition={split}" for split in split_of(texts)]
    is_item = [all(table.columns[name][row] for name in texts) for row in range(len(table))]
    rows = [row for row, is_full in enumerate(is_item) if is_full]
    names = [name for name in table.columns if name not in texts]
    critical = [name for name in names if _is_critical(table, name, texts, rows)][:1]
    options += [f"--critical {shell_word(name)}" for name in critical]
    names = [name for name in names if name not in critical]
    options += [f"--filter {condition}" for condition in _filters(table, names, is_item)][:1]
    return " ".join(options)


def split_of(levels: Sequence[str]) -> list[str]:
    """Returns the one SEPARATOR:NAME,NAME that divides levels into crossed conditions, or none.

    >>> split_of(["Gram_Match", "Gram_Mismatch", "Ungram_Match", "Ungram_Mismatch"])
    ['_:grammaticality,attractor']
    """
    for separator in "_-./ ":
        parts = [level_parts(level, separator) for level in levels]
        n = len(parts[0])
        if n < 2 or any(len(part) != n for part in parts):
            continue
        of_factors = [dict.fromkeys(part[i] for part in parts) for i in range(n)]
        n_cells = 1
        for factor in of_factors:
            n_cells *= len(factor)
        if n_cells == len(levels) and all(len(factor) > 1 for factor in of_factors):
            names = [_factor_name([*factor], i) for i, factor in enumerate(of_factors, start=1)]
            return [f"{shell_word(separator)}:{','.join(names)}"]
    return []


def filler_levels(values: Sequence[Any]) -> list[str]:
    """Returns the levels of a column whose names are those of fillers or practice items."""
    return [level for level in dict.fromkeys(levels_of(values)) if level and _FILLERS(level)]


def shell_word(text: str) -> str:
    """Returns a text as a shell takes it, in quotes where it has blanks or signs."""
    return text if re.fullmatch(r"[\w.@%+,:/-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def _numbered(table: RawTable) -> list[str]:
    """The columns of texts whose names differ in their numbers alone, three or more."""
    stems: dict[str, list[str]] = {}
    for name, values in table.columns.items():
        has_texts = any(isinstance(x, str) and re.search(r"[^\W\d]", x) for x in values)
        if has_texts and re.search(r"\d", name):
            stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
    return next((names for names in stems.values() if len(names) > 2), [])


def _is_words(values: Sequence[Any]) -> bool:
    """Whether most values are one or two words, and most of them differ."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    words = [x for x in texts if len(x.split()) < 3 and re.search(r"[^\W\d]", x)]
    return len(words) > len(values) / 2 and len({*words}) > len(words) / 2


def _is_sentences(values: Sequence[Any]) -> bool:
    """Whether most of the values that are there are texts of three words or more."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    long = [x for x in texts if len(x.split()) > 2 or len(re.findall(f"[{WITHOUT_SPACES}]", x)) > 4]
    return bool(texts) and len(long) > len(texts) / 2 and len({*texts}) > len(texts) / 2


def _factor_name(levels: Sequence[str], number: int) -> str:
    """The usual name of a condition with such levels."""
    names = {level.casefold() for level in levels}
    return next((name for name, of in _FACTORS.items() if names in of), f"factor_{number}")


def _is_critical(table: RawTable, name: str, texts: Sequence[str], rows: Sequence[int]) -> bool:
    """Whether a column has the position or the word of the critical word in all texts."""
    if not _CRITICAL.search(folded(name)) or not rows:
        return False
    for row in rows:
        value = str(table.columns[name][row] or "").strip()
        for text in (table.columns[column][row] for column in texts):
            words = str(text).split()
            is_place = value.isdecimal() and 1 <= int(value) <= len(words)
            if not is_place and value not in [word.strip(".,;:!?\"'()") for word in words]:
                return False
    return True


def _filters(table: RawTable, names: Sequence[str], is_item: Sequence[bool]) -> Iterator[str]:
    """Yields conditions that leave out rows which lack texts, or which are called fillers."""
    for name in names:
        values = table.columns[name]
        levels = levels_of(values)
        named = [level for level in dict.fromkeys(levels) if level]
        is_number_of_row = len(named) == len(levels)
        if not 2 <= len(named) <= 6 or is_number_of_row or folded(name) in READER_NAMES:
            continue
        complete = {x for x, full in zip(levels, is_item, strict=True) if full}
        lacking = {x for x, full in zip(levels, is_item, strict=True) if not full}
        fillers = filler_levels(values) if not lacking else []
        kept = [x for x in named if x in complete and x not in fillers]
        if kept and len(kept) < len(named) and (lacking or fillers) and not complete & lacking:
            yield f"{shell_word(name)}={','.join(kept)}"
