"""Leaderboards for tests, and the names of models whose makers mean no good."""

from __future__ import annotations

from pathlib import Path

from lmdiag.cli import main

HOSTILE = {
    "script": "<script>document.title = 'owned'</script>",
    "attribute": '"><img src=x onerror="document.title = \'owned\'">',
    "end of script": "</script></style><script>document.title = 'owned'</script>",
    "address": "javascript:document.title='owned'",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "direction": "org/\u202egpj.elcihe\u202c\u2066",
    "control": "org/\x1b[2J\x00name\r\nSet-Cookie: a=b",
    "path": "../../../etc/passwd",
    "windows path": "..\\..\\con",
    "entity": "&lt;b&gt; &#x3c;script&#x3e;",
    "long": "w" * 300,
    "many": "a/" * 150,
    "formula": "=cmd|' /C calc'!A0 $\\frac{1}{0}$",
}
"""What is tried -> the name that tries it."""


def build(out: Path, data: Path, *places: Path | str) -> Path:
    """Builds the leaderboard of some runs as the command does, and returns its directory."""
    command = ["leaderboard", *map(str, places), "--out", str(out), "--data", str(data)]
    assert main(command) == 0
    return out
