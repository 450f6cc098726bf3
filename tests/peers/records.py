"""What comparisons with other programs found: `records.json`, which docs/reproduced.md shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).with_name("records.json")


def keep(name: str, program: str, what: str, command: str, rows: Iterable[Iterable[str]]) -> None:
    """Prints a comparison, and keeps it in place of an earlier one of this name.

    Args:
        name: of the comparison, its heading.
        program: with its version.
        what: is compared.
        command: arguments of Python that make the comparison.
        rows: figure, the program's value, that of lmdiag, difference.
    """
    figures = [*map(" | ".join, rows)]
    print(*figures, sep="\n")
    record = {"program": program, "what": what, "command": f"python {command}", "figures": figures}
    records = json.loads(FILE.read_text("utf-8")) | {name: record}
    text = json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False)
    FILE.write_text(text + "\n", "utf-8")
