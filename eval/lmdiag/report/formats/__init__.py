"""The formats of tables.

`terminal` prints; every other module is a format of `lmdiag report --format` and has a function
`render(runs, chosen) -> str`. To add a format, add its module; `grid` has the texts of a table.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmdiag.report.qualitative import Chosen
    from lmdiag.results import Results


def format_names() -> list[str]:
    """Returns the names of the formats that are written to a file: markdown, latex, csv."""
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    return sorted(names - {"grid", "terminal"}, reverse=True)


def render_tables(name: str, runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    """Returns the tables of one or several runs in a format, and the top words of chosen items."""
    text: str = importlib.import_module(f"{__name__}.{name}").render(runs, chosen)
    return text
