"""The records that tables are made of: what all formats print, whatever they look like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lmdiag.published import Beside

NAMED = 5
"""Unscorable words that are named before the rest is only counted."""

CHANCE = "†"
"""Marks a figure whose interval contains the chance level."""

AT_CHANCE = f"{CHANCE} not distinguishable from chance: the 95% interval contains the chance level"


class Cell(NamedTuple):
    """One figure.

    Attributes:
        value: as in `results.json`: a proportion in [0, 1], or a number of its own unit.
        n: how many rows, contrasts or contexts it is over.
        low, high: its 95% interval, None where there is none.
        sd: standard deviation over the runs of a shuffled setting, else None.
        percent: whether readers see it times 100.
        published: the paper's figure for this model, None where it has none.
        chance: what guessing gives, None for a measure without a chance level.
    """

    value: float | None
    n: int | None
    low: float | None
    high: float | None
    sd: float | None
    percent: bool
    published: Beside | None = None
    chance: float | None = None

    @property
    def at_chance(self) -> bool:
        """Whether the figure cannot be told from guessing: its interval holds the chance level."""
        if self.value is None or self.chance is None or self.low is None or self.high is None:
            return False
        return self.low <= self.chance <= self.high


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        label: what was measured.
        cells: one a column, None where there is no such figure.
        model: whose figures these are, "" for people's.
        depth: 1 for a break-down of the row above.
        human: whether the figures are people's.
    """

    label: str
    cells: tuple[Cell | None, ...]
    model: str
    depth: int = 0
    human: bool = False

    @property
    def counts(self) -> list[int]:
        """The distinct n of its figures, in order."""
        return _counts(self.cells)

    @property
    def n(self) -> str:
        """The n of its figures, e.g. `34`, or `31–33` where they differ."""
        return "–".join(dict.fromkeys(f"{n:,}" for n in (*self.counts[:1], *self.counts[-1:])))

    @property
    def chances(self) -> list[float]:
        """The distinct chance levels of its figures, in order."""
        return sorted({chance for chance in _chances(self.cells) if chance is not None})

    @property
    def is_published(self) -> bool:
        """Whether the paper has any of its figures."""
        return any(cell and cell.published is not None for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table: a title, the paper's table of the same shape, headings and rows."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def part(self, start: int, stop: int) -> Table:
        """Returns the table with some of its columns, and the rows that have figures there."""
        cut = (replace(row, cells=row.cells[start:stop]) for row in self.rows)
        rows = tuple(row for row in cut if any(row.cells))
        return replace(self, columns=self.columns[start:stop], rows=rows)

    @property
    def percent(self) -> bool:
        """Whether all figures are percentages."""
        return all(cell.percent for row in self.rows for cell in row.cells if cell)

    @property
    def n_by(self) -> Literal["row", "column"]:
        """Where n is said: once a row, or once a column where only that says it all."""
        rows = all(len(row.counts) <= 1 for row in self.rows)
        columns = all(self.column_n(i) is not None for i in range(len(self.columns)))
        return "column" if columns and not rows else "row"

    @property
    def chance_by(self) -> Literal["row", "column", ""]:
        """Where the chance level is said: in the heads of columns if those say it all."""
        columns = ([row.cells[i] for row in self.rows] for i in range(len(self.columns)))
        chances = [set(_chances(cells)) for cells in columns]
        if not any(each - {None} for each in chances):
            return ""
        return "column" if all(len(each) <= 1 for each in chances) else "row"

    def column_chance(self, column: int) -> float | None:
        """The chance level of a column whose figures share it."""
        return next(iter(_chances(row.cells[column] for row in self.rows)), None)

    def column_facts(self, column: int) -> list[str]:
        """What is said of a column below its head: n and chance, where all its figures share it."""
        chance = self.column_chance(column) if self.chance_by == "column" else None
        n = [f"n = {self.column_n(column)}"] if self.n_by == "column" else []
        return n + ([] if chance is None else [f"chance {100 * chance:.1f}"])

    def column_n(self, column: int) -> int | None:
        """The n of a column, where its figures share it."""
        counts = _counts(row.cells[column] for row in self.rows)
        return counts[0] if len(counts) == 1 else None


class Unscorable(NamedTuple):
    """A word that a tokenizer cannot spell."""

    model: str
    setting: str
    id: str
    word: str


@dataclass(frozen=True)
class Section:
    """All tables of one diagnostic.

    Attributes:
        task: name of the config.
        title: what it tests.
        tables: in the paper's shape.
        further: every figure that the tables do not show, none where they show all.
        people: what the papers say of people, beyond what the data give.
        unscorable: words left out.
        signatures: what makes the figures comparable, one for each run.
        notes: what a reader must know of all figures, e.g. that they are of a sample.
        undefined: why a figure that one would look for is not defined.
    """

    task: str
    title: str
    tables: tuple[Table, ...]
    further: Table | None
    people: tuple[str, ...]
    unscorable: tuple[Unscorable, ...]
    signatures: tuple[str, ...]
    notes: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What stands under the tables: notes, what signs say, people, words left out."""
        further = [self.further] if self.further else []
        said = signs([*self.tables, *further])
        left_out = _left_out(self.unscorable)
        return [*self.notes, *said, *self.undefined, *self.people, *left_out]


def signs(tables: Iterable[Table]) -> list[str]:
    """Returns a line for each sign that figures in the tables have, saying what it means."""
    cells = [cell for table in tables for row in table.rows for cell in row.cells if cell]
    outside = any(cell.published and cell.published.within is False for cell in cells)
    found = {
        "* the published figure lies outside our 95% interval": outside,
        AT_CHANCE: any(cell.at_chance for cell in cells),
        "± standard deviation over shuffles": any(cell.sd is not None for cell in cells),
    }
    return [line for line, is_there in found.items() if is_there]


def _chances(cells: Iterable[Cell | None]) -> Iterator[float | None]:
    """The chance levels of the figures that are defined, None for those without one."""
    known = (cell.chance for cell in cells if cell and cell.value is not None)
    return (None if chance is None else round(chance, 9) for chance in known)  # means of thirds


def _counts(cells: Iterable[Cell | None]) -> list[int]:
    """The distinct n of some figures, in order; figures without one do not matter."""
    return sorted({cell.n for cell in cells if cell and cell.n is not None})


def _left_out(words: Iterable[Unscorable]) -> Iterator[str]:
    """One line per model and setting that counts and names the words left out."""
    groups: dict[tuple[str, str], list[str]] = {}
    for model, setting, _, word in words:
        groups.setdefault((model, setting), []).append(word)
    several = len({model for model, _ in groups}) > 1
    for (model, setting), left_out in groups.items():
        distinct = list(dict.fromkeys(left_out))
        named = ", ".join(distinct[:NAMED]) + (", …" if len(distinct) > NAMED else "")
        where = "" if setting == "none" else f" in {setting}"
        whose = f" by {model}" if several else ""
        rows = "1 row" if len(left_out) == 1 else f"{len(left_out)} rows"
        yield f"unscorable{whose}{where}: {rows} ({named})"
