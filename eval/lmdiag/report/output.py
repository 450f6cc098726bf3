"""`Output`: the one record by which every result is shown.

A result becomes an `Output` by one function for its type (`lmdiag.report.display.output_of` has the
list), and an `Output` becomes a file or a text by one function for each format
(`lmdiag.report.formats.FORMATS`). So

- a new kind of result is a function that returns an `Output`, and a line in `display`;
- a new format is a module with `render(output, width)`, and a line in `FORMATS`.

Every format shows, in this order: title, warnings, facts, findings, sections; a page begins with
the findings. A section has a title, lines above its tables, charts, tables, remarks, and items.
Formats leave out what they cannot show: a terminal charts and items, csv all but `frame`.

Charts and items take long to make, so they are `Deferred` until a format asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from lmdiag.report.charts import Plot
from lmdiag.report.grid import Grid, signs
from lmdiag.results.model_labels import NO_CONTEXT

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


WARNING = "warning: "
"""Begins remarks on what looks wrong in data."""

_LONG_SIGNATURE = 160
"""Characters of signatures that stand below each table."""


def _capitalized(line: str) -> str:
    """Returns a line with a capital at its beginning, unless it begins with a symbol.

    >>> _capitalized("effects: paired t tests"), _capitalized("p exact: sign-flip test")
    ('Effects: paired t tests', 'p exact: sign-flip test')
    """
    is_symbol = line[1:2] == " "  # a word of one letter, such as n or p
    return line if is_symbol else f"{line[:1].upper()}{line[1:]}"


class Deferred(Sequence[T]):
    """A sequence whose elements are made when it is first read, by a function without arguments."""

    def __init__(self, make_elements: Callable[[], Iterable[T]]) -> None:
        self._make_elements = make_elements
        self._made_elements: list[T] | None = None

    @property
    def _elements(self) -> list[T]:
        """The elements, which are made at the first call and kept."""
        if self._made_elements is None:
            self._made_elements = [*self._make_elements()]
        return self._made_elements

    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._elements[index]


class Section(NamedTuple):
    """Tables, charts and texts with one heading.

    Attributes:
        title: of a diagnostic, or the name of own data; "" for the only section of a result.
        tables, further: in order; a page folds the further ones.
        remarks: what a reader has to know: notes, signs, human facts, words that were left out.
        signatures: of the runs, where no run is named beside the tables.
        task: whose figures the tables have; "" if the tables are not those of a diagnostic.
        plots: above the tables.
        short_title: in the menu of a page; "" for the title.
        about: paragraphs below the title of a page.
        notes: lines below these paragraphs.
        lists: of items, a page shows them below the tables; see `ItemList`.
        findings: what its tests say, in sentences, for the beginning of the whole.
        is_folded: whether a page shows its title alone until a reader opens it.
        anchor: of the section in a page; "" for its number.
        layout, content: macro of `cards/layouts.html.j2` by which a page shows the section in
            place of its charts and tables, and what returns what the macro takes.
    """

    title: str
    tables: Sequence[Grid] = ()
    remarks: Sequence[str] = ()
    further: Sequence[Grid] = ()
    signatures: Sequence[str] = ()
    task: str = ""
    plots: Sequence[Plot] = ()
    short_title: str = ""
    about: Sequence[str] = ()
    notes: Sequence[str] = ()
    lists: Sequence[ItemList] = ()
    findings: Sequence[str] = ()
    is_folded: bool = False
    anchor: str = ""
    layout: str = ""
    content: Callable[[], Mapping[str, Any]] = dict

    @property
    def grids(self) -> list[Grid]:
        """The tables that have rows, the further ones last."""
        return [grid for grid in (*self.tables, *self.further) if grid.rows]

    @property
    def remarks_on_figures(self) -> list[str]:
        """The remarks without warnings on the data, which only the author of the data needs."""
        return [line for line in self.remarks if not line.startswith(WARNING)]


class ItemList(NamedTuple):
    """Items that a page lists.

    Attributes:
        kind: macro of `cards/items.html.j2` that shows them.
        content: what the macro takes.
    """

    kind: str
    content: Mapping[str, Any]


class Fact(NamedTuple):
    """What is known of a model or of data: a name, and lines beside and below it.

    `look` is the number of the model's colour in all charts, from 1; 0 for none.
    """

    name: str
    lines: Sequence[str] = ()
    look: int = 0

    @property
    def is_grey(self) -> bool:
        """Whether its colour is grey: it is on word frequencies, whose name begins so."""
        return self.name.startswith(NO_CONTEXT)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What is shown of a result, by every format.

    Attributes:
        kind: what it is in a word or two, e.g. "comparison".
        title: e.g. the names of the models.
        facts: on each model and on the data.
        signatures: of the runs.
        findings: sentences that say what was found, shown first.
        warnings: what must be read before the figures.
        sections: in order.
        details: how each run was made, for the end of a page: name -> fact -> text.
        method: how to read the figures, for the end of a page.
        frame: returns the tidy table, for csv and Parquet.
        document: returns the JSON document.
        files: that the figures are read from, named at the end of a page.
    """

    kind: str
    title: str
    facts: Sequence[Fact] = ()
    signatures: Sequence[str] = ()
    findings: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section]
    details: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    method: Sequence[str] = ()
    frame: Callable[[], DataFrame]
    document: Callable[[], Any]
    files: Sequence[str] = ()

    @property
    def plots(self) -> list[Plot]:
        """The charts of all sections."""
        return [plot for section in self.sections for plot in section.plots]

    def note(self, section: Section, grid: Grid) -> list[str]:
        """Returns the sentences of the note below a table of a section, for papers.

        First come the notes of the table and the meanings of its signs. Then follow

        - in the section of a diagnostic: the model, if there is one, whose name no column has;
        - in other sections: all models and data, and the signatures. Below the first table there
          are also the remarks of the section that no table has as its notes or signs, and
          signatures that are too long to stand below each table.

        For example, ["Effects: paired t tests over items", "gpt2: causal, 124M parameters"].
        """
        lines = [*map(_capitalized, grid.notes), *signs([grid])]
        if section.task:
            if len(self.facts) == 1:
                (model,) = self.facts
                lines.append(f"{model.name}: {', '.join(model.lines)}")
        else:
            is_first = grid is section.grids[0]
            if is_first:
                lines_of_tables = [
                    line for table in section.grids for line in (*table.notes, *signs([table]))
                ]
                remarks = section.remarks_on_figures
                lines += [line for line in remarks if line not in lines_of_tables]
            lines += [f"{fact.name}: {', '.join(fact.lines)}" for fact in self.facts if fact.lines]
            is_short = len("".join(section.signatures)) <= _LONG_SIGNATURE
            if is_first or is_short:
                lines += section.signatures
        return [line.rstrip(".") for line in dict.fromkeys(lines)]

    @property
    def lines(self) -> list[str]:
        """Warnings, facts ("gpt2: causal · 124M parameters") and findings, one text each."""
        facts = [f"{fact.name}: {' · '.join(fact.lines)}" for fact in self.facts]
        return [*self.warnings, *facts, *self.findings]
