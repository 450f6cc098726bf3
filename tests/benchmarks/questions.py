"""What is asked in a benchmark, as files that programs other than lmdiag can read."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import vocabularies

ROOT = Path(__file__).resolve().parents[2]
CONTEXTS = 384
"""Rows of agreement that are asked."""


def build(folder: Path) -> tuple[Path, str]:
    """Builds the data set, from the upstream copies or else from the demo; returns both."""
    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or ROOT.parent / "shared" / "upstream")
    source = "upstream" if (upstream / "lm-diagnostics").is_dir() else "demo"
    data = folder / f"data-{source}"
    if not (data / "README.md").exists():
        command = [sys.executable, str(ROOT / "datasets/lmdiag/build.py"), str(data), "--source"]
        subprocess.run([*command, str(upstream) if source == "upstream" else "demo"], check=True)
    return data, source


def write(folder: Path, work: str, count: int, data: Path) -> Path:
    """Writes the questions of a work and returns the file.

    Args:
        folder: where the file goes.
        work: see `contenders`.
        count: number of sentences; each has 12 random everyday words.
        data: the data set.
    """
    questions: dict[str, Any]
    if work == "sentences":
        rng = random.Random(0)
        words = sorted(set(re.findall(r"[A-Za-z]+", vocabularies.TEXT)))
        texts = [" ".join(rng.choices(words, k=12)) + "." for _ in range(count)]
        questions = {"sentences": texts}
    else:
        import lmdiag

        tasks = ["agreement"] if work == "agreement" else ["cprag102", "role88", "neg136"]
        limit = CONTEXTS if work == "agreement" else None
        columns = [lmdiag.load_stimuli(str(data), task, limit=limit).columns() for task in tasks]
        names = {"context": "context", "right": "right_context", "target": "target"}
        rows = [
            {name: part[column][row] for name, column in names.items()}
            for part in columns
            for row in range(len(part["id"]))
        ]
        questions = {"source": str(data), "tasks": tasks, "limit": limit, "rows": rows}
    file = folder / f"{work}-{count}.json"
    file.write_text(json.dumps(questions))
    return file
