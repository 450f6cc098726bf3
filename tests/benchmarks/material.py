"""What is asked: the data set, from the upstream copies where they are, else from the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.shapes import ROOT

DIAGNOSTICS = ("cprag102", "role88", "neg136")


def build(folder: Path) -> tuple[Path, str]:
    """Builds the data set, unless it is there; returns it and the name of its source."""
    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or ROOT.parent / "shared" / "upstream")
    source = "upstream" if (upstream / "lm-diagnostics").is_dir() else "demo"
    out = folder / f"data-{source}"
    if not (out / "README.md").exists():
        command = [sys.executable, str(ROOT / "datasets/lmdiag/build.py"), str(out), "--source"]
        subprocess.run([*command, str(upstream) if source == "upstream" else "demo"], check=True)
    return out, source


def rows(data: Path) -> list[dict[str, str]]:
    """Returns context and target of each row of the three diagnostics."""
    from lmdiag import stimuli

    found = []
    for task in DIAGNOSTICS:
        columns = stimuli.load(str(data), task).columns()
        for context, target in zip(columns["context"], columns["target"], strict=True):
            found.append({"context": context, "target": target})
    return found


def write_rows(data: Path, path: Path) -> int:
    """Writes the rows as JSON, for programs that know nothing of ours; returns their number."""
    found = rows(data)
    path.write_text(json.dumps(found))
    return len(found)
