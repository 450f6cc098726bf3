"""What comparisons with other programs found: `records.json`, which docs/reproduced.md shows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).with_name("records.json")


def within(difference: float) -> str:
    """A power of ten above a difference: its own digits differ between processors."""
    return f"< 1e{math.floor(math.log10(difference)) + 1}" if difference else "0"


def keep(name: str, program: str, what: str, command: str, rows: Iterable[Iterable[str]]) -> None:
    """Keeps the comparison with a program in place of an earlier one of this name.

    Args:
        name: of the comparison, its heading.
        program: with its version.
        what: is compared.
        command: that makes the comparison.
        rows: figure, the program's value, that of lmdiag, difference.
    """
    records = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    records[name] = {
        "program": program, "what": what, "command": command, "figures": [*map(" | ".join, rows)],
    }  # fmt: skip
    FILE.write_text(
        json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
    )
