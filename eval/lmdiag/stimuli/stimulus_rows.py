"""The stimuli of a task, the fingerprint that identifies them, and samples for a quick run."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.tables.table_files import shown_places
from lmdiag.text import first_few
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import MultiIndex

    from lmdiag.diagnostics import Diagnostic
    from lmdiag.measures import Labels

_Levels = tuple[str, ...]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_OWN_FORMS = ("", "sentences", "minimal_pairs")
_BLOCK = 10_000  # rows that are written at a time
_MOST_BALANCED = 24  # distinct values of a column that a sample balances; more are texts


@dataclass(frozen=True, repr=False)
class Stimuli:
    """The rows of one task.

    Attributes:
        task: name of the config.
        source: where the data came from, as the user named it.
        revision: commit of a Hub data set; for a directory the commit that its sources were pinned
            to; None if there is none.
        form: name of the form of data in `lmdiag.diagnostics` that the rows have, e.g. "sentences";
            "" for rows with a blank.
        index: places of the rows in their file, see `lmdiag.tables.table_files.row_index`; None
            for rows that were made.
        notes: how a user's own table was read, a line for each step that changed it.
        perturbed: the same rows in other settings, made by `lmdiag.stimuli.perturbations.perturb`.
        whole: of a sample, all rows of the task, whose design it has; None for all rows.
    """

    task: str
    _columns: Mapping[str, list[Any]]
    source: str
    revision: str | None = None
    form: str = ""
    index: MultiIndex | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = ()
    perturbed: dict[Any, Stimuli] = field(default_factory=dict, compare=False, repr=False)
    whole: Stimuli | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Checks that columns can be stored; `BadInput` if one mixes types or is not Unicode."""
        import pyarrow as pa

        for name, values in self._columns.items():
            try:
                pa.array(values)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
                reason = str(error).partition("\n")[0]
                problem = f"the column {name} cannot be stored: {reason}"
                raise BadInput(f"{self.source}: {problem}") from error

    @cached_property
    def fingerprint(self) -> str:
        """8 hexadecimal digits of a hash over all rows and columns, in any order.

        The same for a directory and its copy on the Hub, and for the rows in another setting, see
        `with_contexts`.
        """
        return fingerprint(self._columns)

    @cached_property
    def content(self) -> str:
        """The fingerprint of the rows, without the name of the task in their ids.

        Ids, items and contrasts that lmdiag makes begin with the name of the task, as "mine-1".
        Without this beginning, the same rows have the same content under any name of their task.
        """
        columns = {**self._columns}
        for name in ("id", "item", "contrast"):
            if name in columns:
                columns[name] = [
                    str(value).removeprefix(f"{self.task}-") for value in columns[name]
                ]
        return fingerprint(columns)

    @property
    def diagnostic(self) -> Diagnostic:
        """What is declared for the task."""
        return diagnostics.get(self.task, self.form)

    @cached_property
    def levels(self) -> Mapping[str, Labels]:
        """Break-down -> level of each row; of a user's own rows, those of `breakdown_columns`."""
        from lmdiag.stimuli.designs.breakdowns import breakdown_columns

        levels = self.diagnostic.levels(self._columns)
        if self.task in diagnostics.built_in() or self.form not in _OWN_FORMS:
            return levels
        rows = self.whole or self  # of a sample, all rows decide
        text_columns = ("context", "target") if self.asks_words else ("sentence",)
        names = breakdown_columns(rows.columns(), levels, rows.texts(*text_columns))
        return {name: levels[name] for name in names}

    @property
    def asks_words(self) -> bool:
        """Whether a row asks for the word at a blank, not for a whole sentence."""
        return self.diagnostic.asks == "word"

    @property
    def regions(self) -> list[list[dict[str, Any]]] | None:
        """The regions of each sentence: number, name, start and end; None without any."""
        # all rows have regions, or none has: the first one tells
        regions = self._columns.get("regions", [None])
        has_regions = not self.asks_words and isinstance(regions[0], list)
        return regions if has_regions else None

    @property
    def compared(self) -> bool:
        """Whether rows are compared with each other."""
        return "contrast" in self._columns

    @cached_property
    def table(self) -> pa.Table:
        """One row per stimulus: the core columns and further ones."""
        import pyarrow as pa

        return pa.table(dict(self._columns))

    def __repr__(self) -> str:
        return f"<Stimuli {self.task}: {len(self):,} rows of {self.source}>"

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def columns(self) -> Mapping[str, list[Any]]:
        """Column name -> values, in the rows' order. Shared: not to be changed."""
        return self._columns

    def texts(self, *names: str) -> list[str]:
        """Returns the text of each row: its columns of these names, joined by spaces."""
        columns = [self._columns[name] for name in names if name in self._columns]
        return [" ".join(texts) for texts in zip(*columns, strict=True)]

    def shown_rows(self, rows: Sequence[int]) -> str:
        """Returns what messages call some rows: their lines, or their ids if they have none."""
        if self.index is not None:
            return shown_places(self.index[[*rows]])
        return first_few([self._columns["id"][row] for row in rows], 5)

    def with_contexts(self, contexts: Sequence[str]) -> Stimuli:
        """Returns the same rows, with the same fingerprint, but with other left contexts."""
        columns = {**self._columns, "context": list(contexts)}
        rows = replace(self, _columns=columns, perturbed={})
        # kept where `cached_property` keeps it; set in this way since the record is frozen
        object.__setattr__(rows, "fingerprint", self.fingerprint)
        return rows


def fingerprint(columns: Mapping[str, Sequence[Any]]) -> str:
    """Returns 8 hexadecimal digits of a SHA-256 over the rows as a set.

    Each row is written as JSON, columns in the order of their names, and hashed. The hashes of the
    rows are hashed in sorted order, so that the order of rows and of columns does not matter.
    """
    names = sorted(columns)
    n_rows = max(map(len, columns.values()), default=0)
    digests: list[bytes] = []  # of each row
    for start in range(0, n_rows, _BLOCK):
        cells_of_columns = [_json_texts(columns[name][start : start + _BLOCK]) for name in names]
        for cells in zip(*cells_of_columns, strict=True):
            row = f"[{','.join(cells)}]"
            digests.append(hashlib.sha256(row.encode()).digest())
    digests.sort()
    return hashlib.sha256(_encode(names).encode() + b"".join(digests)).hexdigest()[:8]


def _json_texts(values: Sequence[Any]) -> list[str]:
    """Returns the values as JSON.

    A text is written by `quoted`, which writes the same as `_encode` in a third of the time.
    """
    if {*map(type, values)} == {str}:
        return [*map(quoted, values)]
    return [quoted(value) if isinstance(value, str) else _encode(value) for value in values]


def sample(
    columns: Mapping[str, Sequence[Any]],
    limit: int,
    seed: int,
    diagnostic: Diagnostic,
    *,
    by_item: bool = False,
) -> list[int]:
    """Returns the positions of the sampled rows, in the order of the rows.

    A unit is a contrast, or an item of a test suite and of own data (`by_item`). Units are taken
    whole or not at all, but the first unit is taken even if it has more than `limit` rows. They are
    drawn one by one so that the sample has about equally many of all levels: a unit is drawn from
    the combination of levels that has been drawn least, and among such combinations from the one
    whose single levels have been drawn least.

    Some break-downs have levels in some units alone, as naturalness in NEG-136. The levels of such
    a break-down are not balanced against units without a level: they share the part of the sample
    that the combination of the other levels gets.

    Ties are decided by a SHA-256 of the seed and the unit, so that the sample depends neither on
    the machine nor on the order of the rows.

    Args:
        columns: name -> values, of all rows.
        limit: number of rows at most.
        seed: for other samples of the same size.
        diagnostic: of the rows.
        by_item: whether items are taken whole, instead of contrasts.
    """

    @cache
    def digest(part: str | _Levels) -> bytes:
        return hashlib.sha256(f"{seed}/{part}".encode("utf-8", "surrogatepass")).digest()

    column_of_units = "item" if diagnostic.has_regions or by_item else "contrast"
    rows_of_units = _rows_of_units(columns, column_of_units)
    balanced = _balanced_columns(columns, diagnostic)
    has_all = [not any(value is None or value == "" for value in column) for column in balanced]
    good = columns.get("good", [True] * len(columns["id"]))
    # levels that all units have -> all levels of the good row -> units, the next one last
    strata: dict[_Levels, dict[_Levels, list[str]]] = {}
    for unit in sorted(rows_of_units, key=digest, reverse=True):
        good_row = min(rows_of_units[unit], key=lambda row: not good[row])
        levels = tuple(str(column[good_row]) for column in balanced)
        shared = tuple(level for level, has in zip(levels, has_all, strict=True) if has)
        strata.setdefault(shared, {}).setdefault(levels, []).append(unit)
    n_drawn: Counter[Any] = Counter()  # of shared levels, of all levels, of each level alone

    def n_drawn_alone(levels: _Levels) -> int:
        return sum(n_drawn[number, level] for number, level in enumerate(levels))

    def rank_of_shared(shared: _Levels) -> tuple[int, int, bytes]:
        least = min(n_drawn_alone(levels) for levels in strata[shared])
        return n_drawn[shared], least, digest(shared)

    def rank_of_levels(levels: _Levels) -> tuple[int, int, bytes]:  # `shared`: of the loop below
        return n_drawn[shared, levels], n_drawn_alone(levels), digest(levels)

    sampled_rows: list[int] = []
    while True:
        shared_left = [shared for shared, units in strata.items() if any(units.values())]
        if not shared_left:
            break
        shared = min(shared_left, key=rank_of_shared)
        levels_left = [levels for levels, units in strata[shared].items() if units]
        levels = min(levels_left, key=rank_of_levels)
        rows = rows_of_units[strata[shared][levels].pop()]
        if sampled_rows and len(sampled_rows) + len(rows) > limit:
            break
        sampled_rows += rows
        n_drawn.update([shared, (shared, levels), *enumerate(levels)])
    return sorted(sampled_rows)


def _rows_of_units(columns: Mapping[str, Sequence[Any]], name: str) -> dict[str, list[int]]:
    """Returns contrast or item -> its rows; a row without one is a unit by itself, under its id.

    For example, {"1": [0, 1], "filler-7": [2]} for two rows of item 1 and a row with the id
    filler-7 and no item.

    Args:
        columns: name -> values, `id` among them.
        name: of the column of contrasts or items.
    """
    ids = columns["id"]
    rows_of_units: dict[str, list[int]] = {}
    for row, unit in enumerate(columns.get(name, ids)):
        rows_of_units.setdefault(unit or ids[row], []).append(row)
    return rows_of_units


def _balanced_columns(
    columns: Mapping[str, Sequence[Any]], diagnostic: Diagnostic
) -> list[Sequence[Any]]:
    """Returns the columns whose levels a sample balances: conditions, break-downs and a few labels.

    Labels are 2 to 24 distinct texts, whole numbers or truth values; others are texts.
    """
    balanced = [columns["condition"]]
    for name in sorted(columns.keys() - diagnostic.core_columns):
        types = {type(value) for value in columns[name]} - {type(None)}
        n_values = len({*columns[name]}) if types <= {str, bool, int} else 0
        if 2 <= n_values <= _MOST_BALANCED or name in diagnostic.breakdowns:
            balanced.append(columns[name])
    return balanced
