"""What a table of an unknown layout may be, and the options that read it: only proposed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

from lmdiag.diagnostics.base import levels_of
from lmdiag.files import MAX_CELL
from lmdiag.stimuli.columns import READER_NAMES, WORD_PLACES
from lmdiag.stimuli.forms import SENTENCE_ENDS, continuations, critical_span, form_of
from lmdiag.stimuli.table import GAP
from lmdiag.table_files import RawTable
from lmdiag.text import WITHOUT_SPACES, folded
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

# name of a condition -> sets of levels that it usually has
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

_FILLERS = re.compile(r"(filler|fill|practice|prac|training|warm).*", re.IGNORECASE).fullmatch
_CRITICAL = re.compile(r"crit|verb|disambig|target(word|pos)|wordpos|posit")

_CONTEXT = "(sentence)?(context|preamble|stem|frame|prompt|fragment|beginning)|left|pretarget"
_RIGHT = "(sentence)?(continuation|rest|remainder)|right|posttarget"
_LETTER = re.compile(r"[^\W\d]").search
_IN_WORDS = re.compile(f"[{WITHOUT_SPACES}]").findall


class OtherRows(NamedTuple):
    """A layout of tables without stimuli.

    Attributes:
        what: what they have, and for which command.
        names: column that the command reads -> pattern of names that it may have, folded.
    """

    what: str
    names: Mapping[str, str]

    def columns_in(self, table: Collection[str]) -> dict[str, str]:
        """Returns the column of a table for each of the names; {} if there is none for one."""
        found = {}
        for field, pattern in self.names.items():
            names = [name for name in table if re.fullmatch(pattern, folded(name))]
            found[field] = min(names, key=lambda name: folded(name) != field, default="")
        return found if all(found.values()) else {}

    def option(self, table: Collection[str]) -> str:
        """Returns the option that names the columns; "" if it is not needed, or cannot help."""
        found = self.columns_in(table)
        is_known = all(folded(name) == field for field, name in found.items())
        return "" if is_known else as_typed(TableOptions(columns=_named(found)))


WORDS = OtherRows(
    "a row per word: for `lmdiag surprisal` and `lmdiag fit`",
    {
        "text": "(text|item|sentence|sent|trial|doc|story)(id|nr|no|number)?|article",
        "position": "|".join(WORD_PLACES),
        "word": "word|token",
    },
)
RESPONSES = OtherRows(
    "responses of people: for `lmdiag cloze`",
    {"context": _CONTEXT, "response": "response|answer|reply|produced|typed"},
)
_LAYOUTS = (
    OtherRows(
        "responses in numbers: for `lmdiag analyse`", {"item": "item", "surprisal": "surprisal"}
    ),
    WORDS,
    RESPONSES,
    RESPONSES._replace(
        names={
            "participant": "|".join(READER_NAMES),
            "context": _CONTEXT,
            "response": "completion|continuation|ending|word|target",
        }
    ),
)


class UnknownLayout(BadInput):
    """A table without a column of texts that are read.

    Attributes:
        table: as it is.
        lacks: what is missing, e.g. "column of texts".
        kind: what it is if it has no stimuli; "" otherwise.
        options: that may read it; `AS_IT_IS` for no idea.
    """

    def __init__(self, table: RawTable) -> None:
        self.table = table
        self.kind = _kind_of(table)
        self.options = AS_IT_IS if self.kind else proposal(table)
        is_word = not self.kind and "context" in table.columns
        self.lacks = "column target" if is_word else "column of texts"
        names = ", ".join(filter(None, table.columns))
        needs = "give context and target, or a sentence, or sentence_good and sentence_bad"
        hint = f"it may have {self.kind}" if self.kind else f"perhaps {as_typed(self.options)}"
        super().__init__(f"{table.name}: no {self.lacks}; found: {names:.800}; {needs}; {hint}")


def check_layout(table: RawTable) -> None:
    """Raises `UnknownLayout` for a table in which no column has texts and something is known."""
    has_words = {"context", "target"} <= table.columns.keys()
    if not (table.form or form_of(table.columns) or has_words):
        unknown = UnknownLayout(table)
        if unknown.kind or unknown.options != AS_IT_IS:
            raise unknown


def _kind_of(table: RawTable) -> str:
    """Returns what a table without stimuli is, and for which command; "" if it is not known."""
    for layout in _LAYOUTS:
        found = layout.columns_in(table.columns)
        context = found.get("context", "")
        if context and any(re.search(GAP, str(text)) for text in table.columns[context]):
            names = {"sentence" if x == "context" else x: y for x, y in layout.names.items()}
            layout = layout._replace(names=names)
        if found:
            return ", with ".join(filter(None, (layout.what, layout.option(table.columns))))
    return ""


def _named(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Known name -> column, as NAME=COLUMN; those of the known name are left out."""
    return tuple(f"{name}={column}" for name, column in columns.items() if name != column)


def as_typed(options: TableOptions) -> str:
    """Returns options as they are typed, those that make rows first."""
    fields = ("columns", "wide", "split", "critical")
    given = options.stored()
    values = {name: given[name] for name in (*fields, *given) if name in given}
    texts = (shlex.join([value] if isinstance(value, str) else value) for value in values.values())
    return " ".join(f"--{name} {text}" for name, text in zip(values, texts, strict=True))


def proposal(table: RawTable) -> TableOptions:
    """Returns the options that may read a table without a column of texts.

    Several columns of sentences are conditions; one is the sentence.
    """
    names = [*table.columns]
    if regions := _numbered(table):
        return TableOptions(columns=(f"region={regions[0]}..{regions[-1]}",))
    items = [name for name in names if folded(name).startswith("item")]
    named = {"item": items[0]} if items and "item" not in names else {}
    texts = [name for name in names if _has_texts(table.columns[name], 3)]
    contexts = [name for name in names if re.fullmatch(_CONTEXT, folded(name))]
    words = continuations(names)
    if "context" in texts and not words:
        words = [name for name in names if _has_texts(table.columns[name], 1, 2)]
        if len(words) > 1:
            return TableOptions(columns=_named(named), wide=tuple(words))
    if contexts and words:
        named |= {"context": contexts[0], "target": words[0]}
        right = [name for name in names if re.fullmatch(_RIGHT, folded(name)) and name != words[0]]
        named |= {"right_context": right[0]} if right else {}
        return TableOptions(columns=_named(named))
    if not texts or contexts:
        return AS_IT_IS
    rows = [*zip(*(table.columns[name] for name in texts), strict=True)]
    others = {name: values for name, values in table.columns.items() if name not in texts}
    critical = next((name for name, x in others.items() if _is_critical(name, x, rows)), "")
    if len(texts) == 1:
        return TableOptions(columns=_named(named | {"sentence": texts[0]}), critical=critical)
    others.pop(critical, None)
    return TableOptions(
        columns=_named(named),
        wide=tuple(texts),
        split=tuple(f"condition={split}" for split in split_of(texts)),
        critical=critical,
        filter=_filter(others, [all(row) for row in rows]),
    )


def _numbered(table: RawTable) -> list[str]:
    """The columns of parts of sentences whose names differ in their numbers alone, three or more.

    Columns of whole sentences, which end in a full stop, are not parts.
    """
    stems: dict[str, list[str]] = {}
    for name, values in table.columns.items():
        if re.search(r"\d", name) and any(_LETTER(x) for x in values if isinstance(x, str)):
            stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
    for names in stems.values():
        ends = [str(x).rstrip()[-1:] in SENTENCE_ENDS for x in table.columns[names[0]] if x]
        if len(names) > 2 and not all(ends):
            return names
    return []


def _has_texts(values: Sequence[Any], least: int, most: int = MAX_CELL) -> bool:
    """Whether most values are texts of so many words, and most of them differ."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    sizes = {x: max(len(x.split()), len(_IN_WORDS(x)) - 2) for x in texts if _LETTER(x)}
    fitting = [text for text in texts if least <= sizes.get(text, 0) <= most]
    is_most = len(fitting) > (len(texts) if least > 1 else len(values)) / 2
    return is_most and len({*fitting}) > len(fitting) / 2


def critical_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Returns the columns that have the critical word of each `sentence`, not its position."""
    rows = [[text] for text in columns["sentence"]]
    words = {name: x for name, x in columns.items() if not any(str(y).isdecimal() for y in x)}
    return [name for name, values in words.items() if _is_critical(name, values, rows)]


def _is_critical(name: str, values: Sequence[Any], rows: Sequence[Sequence[Any]]) -> bool:
    """Whether a column has the position or the word of the critical word in all texts."""
    pairs = [
        (str(text), x) for x, row in zip(values, rows, strict=True) if all(row) for text in row
    ]
    with suppress(ValueError):
        is_named = bool(pairs and _CRITICAL.search(folded(name)))
        return is_named and all(critical_span(*pair) for pair in pairs)
    return False


def _filter(columns: Mapping[str, Sequence[Any]], is_full: Sequence[bool]) -> tuple[str, ...]:
    """The condition that leaves out rows which lack texts, or which are called fillers."""
    for name, values in columns.items():
        levels = levels_of(values)
        named = {level: None for level in levels if level}
        cells = {*zip(levels, is_full, strict=True)}
        lacking = {level for level, full in cells if not full}
        complete = {level for level, full in cells if full}
        kept = [x for x in named if x in complete - lacking and x not in filler_levels(values)]
        is_kind = len(named) <= 6 and len(named) < len(levels) and folded(name) not in READER_NAMES
        if is_kind and 0 < len(kept) < len(named) and not complete & lacking:
            return (f"{name}={','.join(kept)}",)
    return ()


# ---- names of levels -----------------------------------------------------------------------------


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
        factors = [list(dict.fromkeys(factor)) for factor in zip(*parts, strict=True)]
        if prod(map(len, factors)) == len(levels) and min(map(len, factors)) > 1:
            plain = [{level.casefold() for level in factor} for factor in factors]
            names = [
                next((name for name, of in _FACTORS.items() if factor in of), f"factor_{number}")
                for number, factor in enumerate(plain, start=1)
            ]
            return [f"{separator}:{','.join(names)}"]
    return []


def level_parts(level: str, separator: str) -> list[str]:
    """Returns the parts of a level; without a separator, its characters."""
    return [part.strip() for part in level.split(separator)] if separator else [*level]


def filler_levels(values: Sequence[Any]) -> list[str]:
    """Returns the levels of a column whose names are those of fillers or practice items."""
    return [level for level in dict.fromkeys(levels_of(values)) if level and _FILLERS(level)]
