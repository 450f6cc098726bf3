"""What every result can do: print, be displayed in a notebook, be drawn, and be saved in files.

Results are data and import nothing that shows them. What does it is registered here from above, by
`lmdiag/__init__.py`: `lmdiag.report.display`, which knows the types of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import altair


class Display(Protocol):
    """What shows results of every type, see `lmdiag.report.display`."""

    def save_result(self, result: Any, files: Sequence[str | Path], width: float) -> list[Path]:
        """Writes a result into files, whose endings are the formats."""

    def text_of(self, result: Any) -> str:
        """Returns the tables as text."""

    def html_of(self, result: Any) -> str:
        """Returns the tables as HTML for a notebook."""

    def charts_of(self, result: Any) -> dict[str, altair.TopLevelMixin]:
        """Returns the charts by name."""


_loaders: list[Callable[[], Display]] = []
"""The one function that `register_display` was given; empty before."""


def register_display(load: Callable[[], Display]) -> None:
    """Sets the function that returns what shows results; it is called when one is shown."""
    _loaders[:] = [load]


def _display() -> Display:
    """Returns what shows results: it is imported here, once a result is shown."""
    [load] = _loaders
    return load()


class Presentable:
    """A result: `print` shows its tables, a notebook displays them, and `save` writes any format.

    Its `repr` is one line.
    """

    def save(self, *files: str | Path, width: float = 8.0) -> list[Path]:
        """Writes the result into files, and returns their paths; earlier files are replaced.

        Args:
            files: the ending is the format, of those of `lmdiag report --out`, e.g. page.html,
                table.tex, table.docx, figures.csv (the table of `to_frame`) or chart.pdf; a name
                without an ending is a folder for every chart as svg.
            width: of LaTeX tables and charts in centimetres.

        Raises:
            BadInput: another ending, or a chart of a result that has none.
        """
        return _display().save_result(self, files, width)

    def charts(self) -> dict[str, altair.TopLevelMixin]:
        """Returns the charts of the page as altair charts, by name."""
        return _display().charts_of(self)

    def __str__(self) -> str:
        """Returns the tables as text, for `print`."""
        return _display().text_of(self)

    def _repr_html_(self) -> str:
        """Returns the tables as HTML, which a notebook displays."""
        return _display().html_of(self)
