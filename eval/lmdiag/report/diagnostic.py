"""What the pictures of one task are drawn from, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report.items import Item
from lmdiag.report.layouts import Place
from lmdiag.report.records import Cell
from lmdiag.report.tables import Source

if TYPE_CHECKING:
    from lmdiag.results import Run


class Picture(NamedTuple):
    """An inline SVG and its caption."""

    svg: str
    caption: str


class Diagnostic(NamedTuple):
    """What the pictures of one task are drawn from.

    Attributes:
        task: its name.
        runs: the runs that have it.
        sources: the same runs as tables see them.
        items: the unperturbed items of each run, parallel to `runs`.
    """

    task: str
    runs: Sequence[Run]
    sources: Sequence[Source]
    items: Sequence[Sequence[Item]]

    def cell(self, place: Place, run: int = 0) -> Cell | None:
        """Returns the figure at a place of a run."""
        return self.sources[run].cell(self.task, place)

    @property
    def names(self) -> list[str]:
        """The measures that pictures of figures show: accuracy and sensitivity."""
        measures = self.runs[0].results["tasks"][self.task]["none"]["measures"]
        return [name for name in measures if name.startswith(("accuracy@", "sensitivity"))]
