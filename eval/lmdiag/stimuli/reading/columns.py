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
    join_texts,
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

_BLANK_COLUMNS = {column.name for column in CORE}
_SENTENCE_COLUMNS = {column.name for column in SENTENCES}

ITEM_COLUMNS = frozenset({*_BLANK_COLUMNS, *_SENTENCE_COLUMNS, *PAIR, "region"})
"""Known columns of stimuli; `region` stands for `region_1`, `region_2` and so on."""

ANALYSED_COLUMNS = frozenset({"item", "model", "surprisal", "region", "good", "contrast"})
"""Known columns of tables of items and responses."""

_KIND_IN_WORDS: Mapping[ValueKind, str] = {
    "number": "numbers", "file": "names of files", "label": "a few labels that repeat",
    "word": "single words", "question": "questions", "list": "lists",
}  # fmt: skip

_NAMES = ITEM_COLUMNS | ANALYSED_COLUMNS | {"condition", "text", "position", "word"}
_NAMES |= {"participant", "response", "count", "cloze"}
_GAP = re.compile(GAP, re.IGNORECASE).search
_REGION = re.compile(r"regions?([1-9]\d{0,3})").fullmatch

# mean words of values that may be texts though they repeat across items, as those of templates
_PHRASE_WORDS = 3

# letters of a name in which another letter is a slip; "mood" and "good" are two words
_LONG_NAME = 8

# renamed columns that a note lists; of more, the first three and the last
_MOST_SHOWN = 8


def name_columns(
    table: Table, options: TableOptions, known: Collection[str], problems: Problems, *,
    copies: bool = False,
) -> Table:  # fmt: skip
    """Returns a table whose columns have the known names that their values fit.

    For example, texts in a column `Sentence` are then in the column `sentence`. A column of a known
    name whose values do not fit keeps its values under this name and `_data`.

    Args:
        table: as it was read.
        options: `columns`, NAME=COLUMN or region=COLUMN..COLUMN, where several columns of texts
            name a text together; `wide` columns keep their names.
        known: names that a difference of spelling is read as.
        problems: gets names of columns that are not there, and what two columns are called.
        copies: keep a column under its own name, too, where formulas of the user may name it.
    """
    from pandas import DataFrame

    # which column gets which known name: as the user says, else by its name and its values
    table, chosen = _with_chosen_columns(table, options.columns, problems)
    spellings = _spellings(table, chosen, options.wide, known)
    fitting = _Fitting(table, chosen, spellings)
    notes: list[str] = []
    for name, column in chosen.items():
        with problems.collected():
            notes += fitting.check_chosen(name, column)
    sources = chosen.copy()  # known name -> the column that gets this name
    for name, columns in _without_unlikely(fitting.spellings_that_fit, chosen).items():
        with problems.collected():
            sources |= _only_spelling(table, name, columns)
    # columns of exactly a known name whose values are of another kind
    unfit = [
        column
        for column in table.columns
        if column in spellings and column not in fitting.spellings_that_fit.get(column, ())
    ]
    notes += fitting.words_as_texts()
    # the columns of the result: one for each name that a column gets
    renamed: dict[str, Series] = {}
    for column, values in table.rows.items():
        names = [name for name, source in sources.items() if source == column]
        if not names or (copies and column not in sources):
            # under its own name, unless another column gets this name, or the values do not fit it
            is_taken = column in sources or (column in unfit and not copies)
            names.append(f"{column}{DATA_SUFFIX}" if is_taken else column)
        for name in names:
            renamed[name] = values
    notes = [*table.notes, *_notes_on_renamed(sources, () if copies else unfit), *notes]
    rows = DataFrame(renamed, index=table.rows.index)
    return replace(table, rows=rows, chosen=chosen, sources=sources, notes=tuple(notes))


def _notes_on_renamed(sources: Mapping[str, str], unfit: Iterable[str]) -> list[str]:
    """One line on the renamed columns, as ["columns: Sentence as sentence, good as good_data"].

    [] where no column is renamed. Of many columns, the first three and the last are shown.

    Args:
        sources: known name -> the column that gets this name.
        unfit: known names that are columns with values of another kind, and get `_data`.
    """
    shown = [f"{column} as {name}" for name, column in sources.items() if name != column]
    # an id of several rows, as that of an item, is common and needs no line
    shown += [f"{name} as {name}{DATA_SUFFIX}" for name in unfit if name != "id"]
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[:3], "...", shown[-1]]
    return [f"columns: {', '.join(shown)}"] if shown else []


def _spellings(
    table: Table, chosen: Mapping[str, str], wide: Iterable[str], known: Collection[str]
) -> dict[str, list[str]]:
    """Known name -> the columns whose names are spellings of it, as {"item": ["Item", "ITEM"]}.

    The known names and columns that the user chose (`chosen`, `wide`) are left out.
    """
    wide_names = {folded(name) for name in wide}
    spellings: dict[str, list[str]] = {}
    for column in table.columns:
        name = _known_name(column, known)
        is_free = column not in chosen.values() and folded(column) not in wide_names
        if name and name not in chosen and is_free:
            spellings.setdefault(name, []).append(column)
    return spellings


class _Fitting:
    """Which columns have values of the kind that their names say.

    Args:
        table: as it was read.
        chosen: known name -> column that the user says it is.
        spellings: known name -> columns whose names are spellings of it, for example
            {"item": ["Item", "ITEM"]}. Columns and names that the user chose are not among them.
    """

    def __init__(
        self, table: Table, chosen: Mapping[str, str], spellings: Mapping[str, list[str]]
    ) -> None:
        self.table = table
        self.chosen = chosen
        self.spellings = spellings
        self.names = {*chosen, *spellings}
        self._values: dict[str, DistinctValues] = {}
        item_column = self._column("item")
        # the number of the item of each row, (n rows,)
        self.items = self.values(item_column).codes if item_column else None

    def values(self, column: str) -> DistinctValues:
        """The distinct values of a column."""
        if column not in self._values:
            self._values[column] = values_of(self.table.columns[column])
        return self._values[column]

    def kind(self, column: str) -> ValueKind:
        """What the values of a column are."""
        return self.values(column).kind(self.items)

    @cached_property
    def spellings_that_fit(self) -> Mapping[str, list[str]]:
        """Known name -> those of the `spellings` that have values of the kind that the name says.

        For example, {"sentence": ["Sentence"]} where the column `Sentence` has texts; {} where it
        has numbers.
        """
        fitting: dict[str, list[str]] = {}
        for name, columns in self.spellings.items():
            fitting_columns = [column for column in columns if self._fits(name, column)]
            if fitting_columns:
                fitting[name] = fitting_columns
        # a right context stands beside a context: a spelling of it, or a column that the user chose
        if "context" not in fitting and "context" not in self.chosen:
            fitting.pop("right_context", None)
        return fitting

    def _fits(self, name: str, column: str) -> bool:
        """Whether a column has values of the kind that its known name says.

        A `position` has numbers, for example, and a `sentence` texts. In doubt, a column of exactly
        the known name fits unless another column has texts: later steps then name the mistakes.
        """
        kind = self.kind(column)
        if kind == "empty":
            return True
        is_phrase = kind == "label" and self.values(column).mean_words >= _PHRASE_WORDS
        is_in_doubt = is_phrase or len(self.table) <= FEW_ROWS
        if column == name and is_in_doubt:
            other_names = {"sentence", "context", *PAIR}.intersection(self.names) - {name}
            other_kinds = {self.kind(self._column(other)) for other in other_names}
            # no other column has texts, or the only other one has contexts
            if other_kinds.isdisjoint(("text", "question")) or other_names == {"context"}:
                return True
        if name == "context" and kind == "question" and "target" not in self.names:
            return False  # only before answers, which are targets
        if name in ("context", "sentence"):
            return kind in ("text", "question")
        if name == "target" and kind == "label" and not self._may_be_targets(column):
            return False
        if name in ("target", "right_context", *PAIR) or name.startswith("region_"):
            return kind not in ("number", "file")
        if name in ("good", "contrast"):  # labels are so only together; one alone is a condition
            other = "contrast" if name == "good" else "good"
            return other in self.names or kind != "label"
        if name == "expected" and kind == "label":  # words, of which some are targets
            target_column = self._column("target")
            targets = self.values(target_column).levels if target_column else ()
            return not {*self.values(column).levels}.isdisjoint(targets)
        if name == "position":
            return kind == "number"
        if name == "id":
            return not self.values(column).are_groups
        return name != "item" or not self._is_within_items(column)

    def _is_within_items(self, column: str) -> bool:
        """Whether a column has labels that differ within the items of another column.

        For example, a column `item` with "sg" and "pl" beside a column `item_nr`: the former has
        conditions, although it is called item, and the latter names the items.
        """
        item_columns = [x for x in named_columns("item", self.table.columns) if x != column]
        return any(self.values(column).are_labels_within(self.values(x)) for x in item_columns)

    def _may_be_targets(self, column: str) -> bool:
        """Whether labels in a column `target` may be target words, and not names of conditions.

        Beside sentences without contexts, they may be targets if some sentence has a gap, or if all
        have the same sign that may mark a gap. Beside sentences and contexts, they may be targets
        if most sentences have the label of their row in them. Without sentences, they may be, too.
        """
        sentences = self._column("sentence")
        if not sentences or self.kind(sentences) not in ("text", "question"):
            return True
        texts = [*map(str, self.table.columns[sentences])]
        if "context" not in self.names:
            return any(map(_GAP, texts)) or bool(unknown_mark(texts))
        words = map(str, self.table.columns[column])
        n_inside = sum(word in text for word, text in zip(words, texts, strict=True))
        return 2 * n_inside > len(texts)

    def _column(self, name: str) -> str:
        """The column of a known name: the user's, or else the first spelling; "" for none."""
        if self.chosen.get(name):
            return self.chosen[name]
        columns = self.spellings.get(name, [])
        return columns[0] if columns else ""

    def words_as_texts(self) -> Iterator[str]:
        """Yields a warning where the only column of sentences has single words."""
        for name, columns in self.spellings_that_fit.items():
            is_text = name == "sentence" and len(columns) == 1
            if is_text and self.kind(columns[0]) == "word":
                example = shortened(self.values(columns[0]).levels[0], 40)
                yield f"warning: {columns[0]} has single words, as {example!r}, read as sentences"

    def check_chosen(self, name: str, column: str) -> Iterator[str]:
        """Yields a warning where the user says that a column is texts, and it has none.

        `BadInput` for numbers, lists and names of files, which cannot be read as texts.

        Args:
            name: known name, as context.
            column: that the user says it is.
        """
        kind = self.kind(column)
        what = _KIND_IN_WORDS.get(kind, "")
        is_text = name in ("context", "sentence", "right_context", *PAIR) or "region_" in name
        if is_text and kind in ("number", "file", "list"):
            example = shortened(self.values(column).levels[0], 40)
            problem = f"{column} has {what}, as {example!r}, which no model reads as text"
            raise BadInput(f"{self.table.name}: --columns {name}={column}: {problem}")
        if name in ("context", "sentence", *PAIR) and kind not in ("text", "empty"):
            example = shortened(self.values(column).levels[0], 40)
            yield f"warning: {column} is read as {name}, and has {what}, as {example!r}"


# ---- what the user says --------------------------------------------------------------------------


def _with_chosen_columns(
    table: Table, options: Iterable[str], problems: Problems
) -> tuple[Table, dict[str, str]]:
    """The table, and known name -> its column, as options say: ["context=stem", "target=word"].

    Several columns that are named as text are joined to one, which is added to the table.
    """
    chosen: dict[str, str] = {}
    text_columns: list[str] = []
    for option in options:
        with problems.collected():
            table, column_of_name = _chosen_by_option(table, option)
            if "text" in column_of_name:
                text_columns.append(column_of_name["text"])
            _refuse_second_column(column_of_name, chosen)
            chosen |= column_of_name
    if len(text_columns) > 1:
        table, chosen["text"] = _with_joined_column(table, text_columns)
    return table, chosen


def _chosen_by_option(table: Table, text: str) -> tuple[Table, dict[str, str]]:
    """The table, and known name -> the column that one option NAME=COLUMN says it is.

    `region=COLUMN..COLUMN` names each column of the range as a region. For another name, the
    columns of a range are joined to one, which takes their place in the table: context=w1..w3 gives
    a column `w1..w3`, and {"context": "w1..w3"}.
    """
    name, _, column = text.partition("=")
    if not column:
        raise BadInput(f"--columns {text!r}: write NAME=COLUMN, e.g. context=text")
    # columns of readers, "participant" in the rows, have many usual names, as "subject"
    known_name = "participant" if is_named_as(name, "reader") else _known_name(name, _NAMES)
    if not known_name:
        choice = ", ".join(sorted(_NAMES))
        raise BadInput(f"--columns {text!r}: no name {name!r}: choose from {choice}")
    # one column, or the first and the last one of a range; the name of a column may have dots, too
    typed_ends = [column] if column in table.columns else column.split("..", 1)
    ends = [table.column_of(end, "--columns") for end in typed_ends]
    if known_name != "region" and len(ends) == 1:
        return table, {known_name: ends[0]}
    parts = _columns_of_range([*table.columns], ends[0], ends[-1])
    if known_name == "region":
        return table, {f"region_{number}": part for number, part in enumerate(parts, start=1)}
    if known_name not in (*TEXT_COLUMNS, *PAIR):
        raise BadInput(f"--columns {text!r}: a range is for regions and texts")
    rows = zip(*(table.columns[part] for part in parts), strict=True)
    joined_texts = [join_texts(str(content or "") for content in row) for row in rows]
    return table.with_columns({column: joined_texts}, without=parts), {known_name: column}


def _columns_of_range(columns: Sequence[str], start: str, end: str) -> list[str]:
    """The columns from one to another, in the order of the table.

    From `w1` to `w3`, whose names differ in a number alone, only columns of such names are taken:
    w1, w2 and w3, and not a column `note` between them. From `noun` to `verb`, all are.
    """
    first, last = sorted((columns.index(start), columns.index(end)))
    inside = columns[first : last + 1]
    stem = re.sub(r"\d+", "", start)
    if re.sub(r"\d+", "", end) != stem:
        return [*inside]
    return [name for name in inside if re.sub(r"\d+", "", name) == stem]


def _refuse_second_column(column_of_name: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    """Refuses another column for a name that has one in `chosen`; texts may have several."""
    names = column_of_name.keys() & chosen.keys() - {"text"}
    for name in names:
        if column_of_name[name] != chosen[name]:
            both = f"{chosen[name]} and {column_of_name[name]}"
            raise BadInput(f"--columns names {both} as {name}: give one of them")


def _with_joined_column(table: Table, names: Sequence[str]) -> tuple[Table, str]:
    """The table with one more column, the values of several joined by "/", and its name.

    For example, the columns story and line make `story/line`, with values as `A/1`. `BadInput`
    where two rows that differ in these columns would have one value.
    """
    rows = [*zip(*(map(str, table.columns[name]) for name in names), strict=True)]
    values = ["/".join(row) for row in rows]
    if len({*values}) < len({*rows}):
        problem = f"values of {', '.join(names)} are the same when they are joined by /"
        raise BadInput(f"{table.name}: --columns text: {problem}: rename them")
    joined_name = "/".join(names)
    return table.with_columns({joined_name: values}), joined_name


# ---- known names and their spellings -------------------------------------------------------------


def _known_name(name: str, known: Iterable[str]) -> str:
    """The known name that a name is a spelling of, as "item" for "Item"; "" for none.

    Where "region" is known, `Region 2` is a spelling of "region_2".
    """
    plain = folded(name)
    region = _REGION(plain)
    if "region" in known and region:
        return f"region_{region[1]}"
    for known_name in known:
        if folded(known_name) == plain:
            return known_name
    return ""


def _without_unlikely(
    spellings: Mapping[str, list[str]], chosen: Collection[str]
) -> Mapping[str, list[str]]:
    """Known name -> its columns, without names that do not go with the other names of the table.

    For example, without `expected` in a table that has no `target`, and without `sentence` beside
    regions, of which the sentence is made.

    Args:
        spellings: known name -> the columns whose names are spellings of it.
        chosen: known names that the user gave to columns.
    """
    if spellings.keys() >= {*PAIR}:  # published sets have columns of any name
        return {name: spellings[name] for name in PAIR}
    names = {*spellings, *chosen}
    unlikely = set()
    if any(name.startswith("region_") for name in names):  # the sentence is made of the regions
        unlikely.add("sentence")
    if "target" not in names:
        unlikely.add("expected")  # of a table with expected and unexpected words
    return {name: columns for name, columns in spellings.items() if name not in unlikely}


def _only_spelling(table: Table, name: str, columns: Sequence[str]) -> dict[str, str]:
    """Known name -> the only column whose name is a spelling of it, as {"item": "Item"}.

    {} where a column has exactly the known name, which then needs no other column. `BadInput` where
    several columns are spellings, since only the user knows which of them is meant.
    """
    if name in columns:
        return {}
    if len(columns) > 1:
        choice = " or ".join(shlex.quote(f"{name}={column}") for column in columns)
        both = " and ".join(columns)
        raise BadInput(f"{table.name}: {both} are both {name}: give --columns {choice}")
    return {name: columns[0]}


# ---- what is wrong -------------------------------------------------------------------------------


def misspelt_names(table: Table, wide: Iterable[str] = ()) -> list[str]:
    """Returns lines on columns whose names differ from a known one by a letter, as `sentense`.

    Several columns that are nearly one text, as `sentence1` and `sentence2`, are not mistakes: they
    are several texts of a row. The columns of `wide` are named by the user and have any name.
    """
    wide_names = {folded(name) for name in wide}
    names = [name for name in table.columns if folded(name) not in wide_names]
    missing = sorted(_missing_names(table, names))
    columns_near: dict[str, list[str]] = {}  # known name -> columns whose names are nearly it
    for name in names:
        meant = next((known for known in missing if _is_near(name, known)), "")
        if meant and not is_region(name) and not _lacks_texts(table.columns[name], meant):
            columns_near.setdefault(meant, []).append(name)
    slips: list[tuple[str, str]] = []  # known name, and the column that is nearly called so
    for meant, columns in columns_near.items():
        if len(columns) == 1 or meant not in (*TEXT_COLUMNS, *PAIR):
            slips += [(meant, name) for name in columns]
    # several slips, each for another known name, are one line with one option
    if len(slips) > 1 and len({meant for meant, _ in slips}) == len(slips):
        both = ", ".join(f"{name!r} is nearly {meant!r}" for meant, name in slips)
        option = " ".join(shlex.quote(f"{meant}={name}") for meant, name in slips)
        return [f"of the columns, {both}: give --columns {option}, or rename them"]
    return [
        f"the column {name!r} is nearly {meant!r}: give --columns {meant}={shlex.quote(name)}, or "
        "rename it"
        for meant, name in slips
    ]


def _missing_names(table: Table, names: Sequence[str]) -> set[str]:
    """The known names that a table may have, by its form, and lacks.

    For example, {"context", "right_context", "expected", ...} for a table with `target` and a
    column `contxt`, whose name may be a slip for one of them.

    Args:
        table: the form follows from the names of all its columns.
        names: of those columns that may be misspelt; regions up to the largest number are known.
    """
    form = form_of(table.columns)
    if form == "minimal_pairs":
        known = {*PAIR}  # published sets have columns of any name
    elif form == "sentences":
        known = {*_SENTENCE_COLUMNS}
    elif {"context", "target"} <= table.columns.keys():
        known = {*_BLANK_COLUMNS}
    else:
        known = _BLANK_COLUMNS | _SENTENCE_COLUMNS | {*PAIR}
    if any(map(is_region, names)):
        matches = [re.search(r"\d+$", name) for name in names]
        numbers = [int(match[0]) for match in matches if match]
        known |= {f"region_{number}" for number in numbers}
        known |= {f"region_{number}" for number in range(min(numbers), max(numbers))}
        known.discard("sentence")  # it is made of the regions
    known.discard("condition")  # a condition has any name
    if named_columns("item", names):
        known.discard("item")
    return known - table.columns.keys()


def _lacks_texts(values: Sequence[Any], known: str) -> bool:
    """Whether the known name is that of a column of texts, and the values are not texts."""
    is_text = known in (*TEXT_COLUMNS, *PAIR) or bool(is_region(known))
    return is_text and values_of(values).kind() in ("number", "file", "list", "empty")


def _is_near(name: str, known: str) -> bool:
    """Whether two names differ by one letter, or by two that are swapped.

    The name of a region may have more behind its number, as in `Region12/verb`.
    """
    a, b = folded(name), folded(known)
    if a == b or known == "id":  # pid and uid, for example, are not misspelt
        return False
    if is_region(known) and re.match(rf"{b}(?!\d)", a):
        return True
    if len(a) == len(b):
        differing = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        if len(differing) == 2:
            first, second = differing
            return a[first] == b[second] and a[second] == b[first]
        return len(differing) == 1 and len(b) >= _LONG_NAME
    short, long = sorted((a, b), key=len)
    if len(long) != len(short) + 1:
        return False
    return any(short == long[:i] + long[i + 1 :] for i in range(len(long)))
