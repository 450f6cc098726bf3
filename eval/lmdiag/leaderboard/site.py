"""Writes the site: all files are made in a directory beside the target, which then replaces it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmdiag.hub.benchmark import Benchmark, columns
from lmdiag.hub.publish import SITE_INDEX
from lmdiag.leaderboard.collect import Rejected
from lmdiag.leaderboard.pages import render_board, render_model
from lmdiag.leaderboard.standing import Standing
from lmdiag.types import BadInput

_SCHEMA_VERSION = 1
_FIGURE = {"value": "value", "n": "n", "low": "ci_low", "high": "ci_high", "chance": "chance"}
"""Key of a figure in `leaderboard.json` -> attribute."""
_PARQUET = "leaderboard.parquet"
_PARQUET_TYPES = {
    **dict.fromkeys(("name", "origin", "commit", "kind", "dtype"), "string"),
    **{"n_parameters": "int64", "task": "string", "figure": "string", "value": "double"},
    **{"n": "int64", "ci_low": "double", "ci_high": "double", "chance": "double"},
}
"""Column of `leaderboard.parquet` -> its type."""


def write_site(
    out: Path, rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> None:
    """Writes the site of these rows into a directory of its own.

    Raises:
        BadInput: the directory is a file, or has other content.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file: name a directory")
    if out.is_dir() and any(out.iterdir()) and not (out / SITE_INDEX).is_file():
        raise BadInput(f"--out {out} is not a leaderboard directory: choose an empty one")
    work = out.parent / f".{out.name}.{os.getpid()}.building"
    before = work.with_suffix(".before")
    shutil.rmtree(work, ignore_errors=True)
    try:
        (work / "models").mkdir(parents=True)
        _write_all(work, rows, rejected, benchmark)
        if out.exists():
            out.replace(before)
        work.replace(out)
    finally:
        if before.exists() and not out.exists():  # interrupted between the two renames
            before.replace(out)
        for folder in (work, before):
            shutil.rmtree(folder, ignore_errors=True)


def _write_all(
    folder: Path, rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> None:
    record = {
        "schema_version": _SCHEMA_VERSION,
        "data": benchmark.name,
        "rows": [_record(row) for row in rows],
        "rejected": [asdict(submission) for submission in rejected],
    }
    (folder / SITE_INDEX).write_text(json.dumps(record, indent=1, allow_nan=False), "utf-8")
    (folder / "index.html").write_text(render_board(rows, rejected, benchmark), "utf-8")
    for row in rows:
        if row.entry is not None:
            (folder / row.page).write_text(render_model(row.entry), "utf-8")
    _write_parquet(folder / _PARQUET, rows)
    (folder / "README.md").write_text(_CARD, "utf-8")


def _record(row: Standing) -> dict[str, Any]:
    """Returns a row of `leaderboard.json`: what the pages show, in proportions."""
    entry = row.entry
    return {
        "name": row.name,
        "origin": row.origin,
        "rank": row.rank,
        "model": dict(row.model),
        "signature": entry.results.signature if entry else None,
        "finished": entry.results.finished if entry else None,
        "page": row.page or None,
        "figures": {
            key: {name: getattr(figure, attribute) for name, attribute in _FIGURE.items()}
            for key, figure in row.figures.items()
        },
    }


def _write_parquet(path: Path, rows: Sequence[Standing]) -> None:
    """Writes one line per row and figure, so that they can be filtered and joined."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = [
        {
            **row.model,
            **asdict(row.figures[column.task_id]),
            "name": row.name,
            "origin": row.origin,
            "task": place.task,
            "figure": column.task_id,
        }
        for row in rows
        for place, column in columns().items()
        if column.task_id in row.figures
    ]
    schema = pa.schema([pa.field(name, kind) for name, kind in _PARQUET_TYPES.items()])
    pq.write_table(pa.Table.from_pylist(records, schema), path)


_CARD = """---
title: lmdiag leaderboard
emoji: 🐦
colorFrom: blue
colorTo: green
sdk: static
app_file: index.html
pinned: false
license: mit
short_description: Psycholinguistic diagnostics for language models
tags:
- leaderboard
- psycholinguistics
---

# lmdiag leaderboard

Made by `lmdiag leaderboard` from runs.
`leaderboard.json` and `leaderboard.parquet` have the same figures for programs.
"""
"""The card of the static Space."""
