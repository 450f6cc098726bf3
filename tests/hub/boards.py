"""Leaderboards for tests, of runs whose texts try to get out of a page or to pass for another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs import make_run

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
"""What is tried -> the text that tries it."""


def hostile_runs(folder: Path, data: Path, texts: dict[str, str]) -> None:
    """Writes two runs for each text: one with it as every free text, one with it as its id."""
    for index, text in enumerate(texts.values()):
        facts = dict.fromkeys(("revision", "architecture", "tokenizer"), text)
        words = [f"{text} {number}" for number in range(20)]
        run = folder / f"a{index:02}"
        make_run(run, data, seed=index, fillers=words, id=f"org/model-{index}", cased=True, **facts)
        make_run(folder / f"b{index:02}", data, id=text)


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Changes the `results.json` of a run, and returns the run."""
    results = json.loads((run / "results.json").read_text())
    change(results)
    (run / "results.json").write_text(json.dumps(results))
    return run


def cheat(results: dict[str, Any]) -> None:
    """Raises a figure above what the predictions give."""
    results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"] = 1.0


def build(out: Path, data: Path, *arguments: Path | str) -> Path:
    """Builds a leaderboard as the command does, and returns its directory.

    Args:
        arguments: runs, and options of the command.
    """
    command = ["leaderboard", *map(str, arguments), "--out", str(out), "--data", str(data)]
    assert main(command) == 0
    return out
