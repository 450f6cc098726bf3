"""Which column is what: columns that the user names, and names that are spelled in another way.

What differs from a known name in letter case, zeros, blanks, dots or underscores is read as it, if
its values are of the kind that the name says. One letter's difference is refused with the remedy.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.stimuli.reading.forms import (
    PAIR,
    form_of,
    is_region,
    joined_text,
    unknown_mark,
)
from lmdiag.stimuli.values.kinds import FEW_ROWS, DistinctValues, ValueKind, values_of
from lmdiag.stimuli.values.marks import GAP
from lmdiag.stimuli.values.names import TEXT_COLUMNS, is_named_as, named_columns
from lmdiag.tables.table_files import Problems, Table
from lmdiag.text import DATA_SUFFIX, folded, shortened
from lmdiag.types import BadInput, TableOptions

if TYPE_CHECKING:
    from pandas import Series

_BLANKS, _SENTENCES = ({column.name for column in core} for core in (CORE, SENTENCES))

ITEM_COLUMNS = frozenset({*_BLANKS, *_SENTENCES, *PAIR, "region"})
"""Known columns of stimuli; `region` stands for `region_1`, `region_2` and so on."""

ANALYSED_COLUMNS = frozenset({"item", "model", "surprisal", "region", "good", "contrast"})
"""Known columns of tables of items and responses."""

_WORDS_OF: Mapping[ValueKind, str] = {
    "number": "numbers", "file": "names of files", "label": "a few labels that repeat",
    "word": "single words", "question": "questions", "list": "lists",
}  # fmt: skip

_NAMES = ITEM_COLUMNS | ANALYSED_COLUMNS | {"condition", "text", "position", "word"}
_NAMES |= {"participant", "response", "count", "cloze"}
_GAP = re.compile(GAP, re.IGNORECASE).search
_REGION = re.compile(r"regions?([1-9]\d{0,3})").fullmatch

# words of values that may be texts though they repeat across items, as those of templates
_PHRASE = 3

# letters of a name in which another letter is a slip; "mood" and "good" are two words
_LONG = 8


def name_columns(
    table: Table, options: TableOptions, known: Collection[str], problems: Problems, *,
    copies: bool = False,
) -> Table:  # fmt: skip
    """Returns a table whose columns have the known names that their values fit.

    A column of a known name whose values do not fit keeps its values under this name and `_data`.

    Args:
        options: `columns`, NAME=COLUMN or region=COLUMN..COLUMN, where several columns of texts
            name a text together; `wide` columns keep their names.
        known: names that a difference of spelling is read as.
        problems: gets names of columns that are not there, and what two columns are called.
        copies: keep a column under its own name, too, where formulas of the user may name it.
    """
    from pandas import DataFrame

    chosen: dict[str, str] = {}
    texts: list[str] = []
    for text in options.columns:
        with problems.kept():
            table, given = _given_names(table, text)
            texts += [given["text"]] if "text" in given else []
            _refuse_second_column(given, chosen)
            chosen |= given
    if len(texts) > 1:
        table, chosen["text"] = _with_joined(table, texts)
    wide = {*map(folded, options.wide)}
    claims: dict[str, list[str]] = {}
    for column in table.columns:
        name = _known_name(column, known)
        is_free = column not in chosen.values() and folded(column) not in wide
        if name and name not in chosen and is_free:
            claims.setdefault(name, []).append(column)
    fitting = _Fitting(table, chosen, claims)
    notes: list[str] = []
    for name, column in chosen.items():
        with problems.kept():
            notes += fitting.check_chosen(name, column)
    sources = chosen.copy()
    for name, columns in _plausible(fitting.claims, {*chosen}).items():
        with problems.kept():
            sources |= _only_claim(table, name, columns)
    unfit = [x for x in table.columns if x in claims and x not in fitting.claims.get(x, ())]
    shown_unfit = [] if copies else [name for name in unfit if name != "id"]
    notes += fitting.words_as_texts()
    renamed: dict[str, Series] = {}
    for column, values in table.rows.items():
        names = [name for name, source in sources.items() if source == column]
        if not names or (copies and column not in sources):
            is_taken = column in sources or (column in unfit and not copies)
            names.append(f"{column}{DATA_SUFFIX}" if is_taken else column)
        renamed |= dict.fromkeys(names, values)
    shown = [f"{column} as {name}" for name, column in sources.items() if name != column]
    shown += [f"{name} as {name}{DATA_SUFFIX}" for name in shown_unfit]
    if len(shown) > 8:
        shown = [*shown[:3], "...", shown[-1]]
    if shown:
        notes.insert(0, f"columns: {', '.join(shown)}")
    notes = [*table.notes, *notes]
    rows = DataFrame(renamed, index=table.rows.index)
    return replace(table, rows=rows, chosen=chosen, sources=sources, notes=tuple(notes))


class _Fitting:
    """Which columns have values of the kind that their names say.

    Args:
        table: as it was read.
        chosen: known name -> column that the user says it is.
        claimed: known name -> columns that are spelled so.
    """

    def __init__(
        self, table: Table, chosen: Mapping[str, str], claimed: Mapping[str, list[str]]
    ) -> None:
        self.table = table
        self.chosen = chosen
        self.claimed = claimed
        self.names = {*chosen, *claimed}
        self._values: dict[str, DistinctValues] = {}
        item = self._column("item")
        self.items = self.values(item).codes if item else None

    def values(self, column: str) -> DistinctValues:
        """The distinct values of a column."""
        if column not in self._values:
            self._values[column] = values_of(self.table.columns[column])
        return self._values[column]

    def kind(self, column: str) -> ValueKind:
        """What the values of a column are."""
        return self.values(column).kind(self.items)

    @cached_property
    def claims(self) -> Mapping[str, list[str]]:
        """The known names, and the columns that are spelled so and have values of the kind."""
        fitting = {
            name: [column for column in columns if self._fits(name, column)]
            for name, columns in self.claimed.items()
        }
        if "context" not in fitting or not fitting["context"]:
            fitting.pop("right_context", None)
        return {name: columns for name, columns in fitting.items() if columns}

    def _fits(self, name: str, column: str) -> bool:
        """Whether a column has values of the kind that its name says.

        In a table of a few rows without other texts, or beside contexts, mistakes are named later.
        """
        kind = self.kind(column)
        if kind == "empty":
            return True
        is_phrase = kind == "label" and self.values(column).mean_words >= _PHRASE
        if column == name and (is_phrase or len(self.table) <= FEW_ROWS):
            texts = {"sentence", "context", *PAIR} & self.names - {name}
            kinds = {self.kind(self._column(other)) for other in texts}
            if not kinds & {"text", "question"} or texts == {"context"}:
                return True
        if name == "context" and kind == "question" and "target" not in self.names:
            return False
        if name in ("context", "sentence"):
            return kind in ("text", "question")
        if name == "target" and kind == "label" and not self._may_be_asked(column):
            return False
        if name in ("target", "right_context", *PAIR) or name.startswith("region_"):
            return kind not in ("number", "file")
        if name in ("good", "contrast"):
            other = "contrast" if name == "good" else "good"
            return other in self.names or kind != "label"
        if name == "expected" and kind == "label":
            targets = self._column("target")
            words = {*self.values(targets).levels} if targets else set()
            return bool({*self.values(column).levels} & words)
        if name == "position":
            return kind == "number"
        if name == "id":
            return not self.values(column).are_groups
        return name != "item" or not self._is_within_items(column)

    def _is_within_items(self, column: str) -> bool:
        """Whether a column has labels of which most items of another column have several."""
        others = (x for x in named_columns("item", self.table.columns) if x != column)
        return any(self.values(column).are_labels_within(self.values(x)) for x in others)

    def _may_be_asked(self, column: str) -> bool:
        """Whether labels may be words at a blank: of a gap, or after a context."""
        sentences = self._column("sentence")
        if not sentences or self.kind(sentences) not in ("text", "question"):
            return True
        texts = self.table.columns[sentences]
        words = self.table.columns[column]
        if "context" not in self.names:
            written = [*map(str, texts)]
            return any(map(_GAP, written)) or bool(unknown_mark(written))
        pairs = [(str(word), str(text)) for word, text in zip(words, texts, strict=True)]
        return 2 * sum(word in text for word, text in pairs) > len(pairs)

    def _column(self, name: str) -> str:
        return self.chosen.get(name) or next(iter(self.claimed.get(name, ())), "")

    def words_as_texts(self) -> Iterator[str]:
        """Yields a line on a column of a known name that has single words, and is read as texts."""
        for name, columns in self.claims.items():
            is_text = name == "sentence" and len(columns) == 1
            if is_text and self.kind(columns[0]) == "word":
                example = shortened(self.values(columns[0]).levels[0], 40)
                yield f"warning: {columns[0]} has single words, as {example!r}, read as sentences"

    def check_chosen(self, name: str, column: str) -> Iterator[str]:
        """Yields a line on a column that the user named whose values are of another kind.

        `BadInput` for one that cannot be read as it: numbers, lists and names of files.
        """
        kind = self.kind(column)
        what = _WORDS_OF.get(kind, "")
        is_text = name in ("context", "sentence", "right_context", *PAIR) or "region_" in name
        if is_text and kind in ("number", "file", "list"):
            example = shortened(self.values(column).levels[0], 40)
            problem = f"{column} has {what}, as {example!r}, which no model reads as text"
            raise BadInput(f"{self.table.name}: --columns {name}={column}: {problem}")
        if name in ("context", "sentence", *PAIR) and kind not in ("text", "empty"):
            example = shortened(self.values(column).levels[0], 40)
            yield f"warning: {column} is read as {name}, and has {what}, as {example!r}"


def _given_names(table: Table, text: str) -> tuple[Table, dict[str, str]]:
    """The table, and known name -> the column that the user says it is.

    A range is several regions, or is joined to one more column of texts.
    """
    name, _, column = text.partition("=")
    if not column:
        raise BadInput(f"--columns {text!r}: write NAME=COLUMN, e.g. context=text")
    field = "participant" if is_named_as(name, "reader") else _known_name(name, _NAMES)
    if not field:
        choice = ", ".join(sorted(_NAMES))
        raise BadInput(f"--columns {text!r}: no name {name!r}: choose from {choice}")
    ends = [column] if column in table.columns else column.split("..", 1)  # a name may have dots
    ends = [table.column_of(end, "--columns") for end in ends]
    if field != "region" and len(ends) == 1:
        return table, {field: ends[0]}
    # the columns between them of the same name but for its number, or all
    columns = [*table.columns]
    first, last = sorted((columns.index(ends[0]), columns.index(ends[-1])))
    stems = {re.sub(r"\d+", "", end) for end in ends}
    inside = columns[first : last + 1]
    parts = [name for name in inside if len(stems) > 1 or re.sub(r"\d+", "", name) in stems]
    if field == "region":
        return table, {f"region_{number}": name for number, name in enumerate(parts, start=1)}
    if field not in (*TEXT_COLUMNS, *PAIR):
        raise BadInput(f"--columns {text!r}: a range is for regions and texts")
    rows = zip(*(table.columns[name] for name in parts), strict=True)
    texts = [joined_text(str(part or "") for part in row) for row in rows]
    return table.having({column: texts}, without=parts), {field: column}


def _refuse_second_column(given: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    """Refuses another column for a name that has one; texts alone are named by several."""
    for name in given.keys() & chosen.keys() - {"text"}:
        if given[name] != chosen[name]:
            both = f"{chosen[name]} and {given[name]}"
            raise BadInput(f"--columns names {both} as {name}: give one of them")


def _with_joined(table: Table, names: Sequence[str]) -> tuple[Table, str]:
    """A table with one more column, the values of several joined by "/", and its name.

    `BadInput` where two rows that differ in these columns would have one value.
    """
    rows = [*zip(*(map(str, table.columns[name]) for name in names), strict=True)]
    values = ["/".join(row) for row in rows]
    if len({*values}) < len({*rows}):
        problem = f"values of {', '.join(names)} are the same when they are joined by /"
        raise BadInput(f"{table.name}: --columns text: {problem}: rename them")
    joined = "/".join(names)
    return table.having({joined: values}), joined


def _known_name(name: str, known: Iterable[str]) -> str:
    """The known name that a name is a spelling of; "" for none."""
    if "region" in known and (match := _REGION(folded(name))):
        return f"region_{match[1]}"
    return next((known_name for known_name in known if folded(known_name) == folded(name)), "")


def _plausible(claims: Mapping[str, list[str]], names: Collection[str]) -> Mapping[str, list[str]]:
    """The known names, and the columns that are spelled so, which fit the others of a table."""
    if claims.keys() >= {*PAIR}:  # published sets have columns of any name
        return {name: claims[name] for name in PAIR}
    never = set()
    if any(name.startswith("region_") for name in (*claims, *names)):
        never.add("sentence")
    if "target" not in (*claims, *names):
        never.add("expected")  # of a table with expected and unexpected words
    return {name: columns for name, columns in claims.items() if name not in never}


def _only_claim(table: Table, name: str, columns: Sequence[str]) -> dict[str, str]:
    """Known name -> the only one of the columns that are spellings of it, see `_known_name`.

    {} where a column has exactly this name and needs no other. `BadInput` where there are several
    spellings, since only the user knows which column is meant.
    """
    if name in columns:
        return {}
    if len(columns) > 1:
        choice = " or ".join(shlex.quote(f"{name}={column}") for column in columns)
        both = " and ".join(columns)
        raise BadInput(f"{table.name}: {both} are both {name}: give --columns {choice}")
    return {name: columns[0]}


# ---- what is wrong -------------------------------------------------------------------------------


def near_names(table: Table, wide: Iterable[str] = ()) -> list[str]:
    """Returns what is wrong with names: one letter misses a known one.

    Several columns that are nearly one text are several texts of a row. The columns of `wide` are
    named by the user and have any name. Of a table whose form is known, these are the columns of
    its form that it does not have.
    """
    wide_names = {*map(folded, wide)}
    names = [name for name in table.columns if folded(name) not in wide_names]
    form = form_of(table.columns)
    known = _BLANKS | _SENTENCES | {*PAIR}
    if form == "minimal_pairs":
        known = {*PAIR}  # published sets have columns of any name
    elif form or {"context", "target"} <= table.columns.keys():
        known = _SENTENCES if form else _BLANKS
    regions = [name for name in names if is_region(name)]
    if regions:
        ends = (re.search(r"\d+$", name) for name in names)
        numbers = [int(end[0]) for end in ends if end]
        known = {*known, *(f"region_{number}" for number in numbers)} - {"sentence"}
        known |= {f"region_{number}" for number in range(min(numbers), max(numbers))}
    known = known - {"condition"}  # a condition has any name
    known = {
        x for x in known - table.columns.keys() if x != "item" or not named_columns("item", names)
    }
    near: dict[str, list[str]] = {}
    for name in names:
        meant = next((x for x in sorted(known) if _is_near(name, x)), "")
        if meant and name not in regions and not _are_other_values(table.columns[name], meant):
            near.setdefault(meant, []).append(name)
    texts = {*TEXT_COLUMNS, *PAIR}  # of which a row may have several
    pairs = [
        (meant, name)
        for meant, columns in near.items()
        for name in columns
        if len(columns) == 1 or meant not in texts
    ]
    if len(pairs) > 1 and len({meant for meant, _ in pairs}) == len(pairs):
        both = ", ".join(f"{name!r} is nearly {meant!r}" for meant, name in pairs)
        option = " ".join(shlex.quote(f"{meant}={name}") for meant, name in pairs)
        return [f"of the columns, {both}: give --columns {option}, or rename them"]
    return [
        f"the column {name!r} is nearly {meant!r}: give --columns {meant}={shlex.quote(name)}, or "
        "rename it"
        for meant, name in pairs
    ]


def _are_other_values(values: Sequence[Any], known: str) -> bool:
    """Whether a column has no texts, and the known name is that of texts."""
    is_text = known in (*TEXT_COLUMNS, *PAIR) or bool(is_region(known))
    return is_text and values_of(values).kind() in ("number", "file", "list", "empty")


def _is_near(name: str, known: str) -> bool:
    """Whether two names differ by one letter, or by two that are swapped.

    The name of a region may have more behind its number, as in `Region12/verb`.
    """
    a, b = folded(name), folded(known)
    if a == b or known == "id":
        return False
    if is_region(known) and re.match(rf"{b}(?!\d)", a):
        return True
    if len(a) == len(b):
        other = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        is_swap = len(other) == 2 and a[other[0]] == b[other[1]] and a[other[1]] == b[other[0]]
        return is_swap or (len(other) == 1 and len(b) >= _LONG)
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        short == long[:i] + long[i + 1 :] for i in range(len(long))
    )
