"""What prints as tables."""

from __future__ import annotations

import io

from rich.console import Console


class Printable:
    """Something with tables: `print` and notebooks show them, `repr` is one line."""

    def show(self, console: Console) -> None:
        """Prints the tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self._recorded().export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._recorded().export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def _recorded(self) -> Console:
        file = io.StringIO()  # in a notebook, rich would also display what is only recorded here
        console = Console(file=file, record=True, width=100, highlight=False, force_jupyter=False)
        self.show(console)
        return console
