"""Writes the site: everything is made beside the target first, then takes its place as a whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.headline import HEADLINES
from lmdiag.hub.publish import SITE_INDEX
from lmdiag.leaderboard.collect import Rejected
from lmdiag.leaderboard.outcome import level
from lmdiag.leaderboard.pages import page_name, render_board, render_model
from lmdiag.leaderboard.standing import Standing
from lmdiag.schema import BadInput

SCHEMA_VERSION = 1
PARQUET = "leaderboard.parquet"


def write_site(
    out: Path, rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> None:
    """Writes the site of these rows into a directory of its own.

    Raises:
        BadInput: the directory holds something else.
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
    (folder / "index.html").write_text(render_board(rows, rejected, benchmark), "utf-8")
    for row in rows:
        if row.entry is not None:
            page = folder / "models" / page_name(row.entry)
            page.write_text(render_model(row.entry), "utf-8")
    record = machine_record(rows, rejected, benchmark)
    (folder / SITE_INDEX).write_text(json.dumps(record, indent=1, allow_nan=False), "utf-8")
    _write_parquet(folder / PARQUET, rows)
    (folder / "README.md").write_text(CARD, "utf-8")


def machine_record(
    rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> dict[str, Any]:
    """Returns the content of `leaderboard.json`: what the pages show, in proportions."""
    return {
        "schema_version": SCHEMA_VERSION,
        "data": benchmark.name,
        "rows": [_machine_row(row) for row in rows],
        "rejected": [asdict(each) for each in rejected],
    }


def _machine_row(row: Standing) -> dict[str, Any]:
    results = row.entry.results if row.entry is not None else {}
    return {
        "name": row.name,
        "origin": row.origin,
        "rank": row.rank,
        **_proof(row),
        "model": dict(row.model or {}),
        "signature": results.get("signature"),
        "finished": results.get("finished"),
        "page": f"models/{page_name(row.entry)}" if row.entry is not None else None,
        "figures": {key: asdict(figure) for key, figure in row.figures.items()},
    }


def _proof(row: Standing) -> dict[str, Any]:
    """What is proved of a row; all None for what was not submitted."""
    if row.entry is None:
        return {"level": None, "same_as": None, "reproduction": None}
    same, outcome = row.entry.same_as, row.entry.outcome
    return {
        "level": level(outcome),
        "same_as": same.submission.place if same else None,
        "reproduction": asdict(outcome) if outcome else None,
    }


def _write_parquet(path: Path, rows: Sequence[Standing]) -> None:
    """One row a model and figure, so that it can be filtered and joined."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        {
            "name": pa.string(),
            "origin": pa.string(),
            "level": pa.string(),
            "commit": pa.string(),
            "kind": pa.string(),
            "dtype": pa.string(),
            "n_parameters": pa.int64(),
            "task": pa.string(),
            "figure": pa.string(),
            "value": pa.float64(),
            "n": pa.int64(),
            "ci_low": pa.float64(),
            "ci_high": pa.float64(),
            "chance": pa.float64(),
        }
    )
    records = [
        {
            "name": row.name,
            "origin": row.origin,
            "level": _proof(row)["level"],
            **{key: (row.model or {}).get(key) for key in schema.names[3:7]},
            "task": headline.task,
            "figure": headline.id,
            "value": figure.value,
            "n": figure.n,
            "ci_low": figure.low,
            "ci_high": figure.high,
            "chance": figure.chance,
        }
        for row in rows
        for headline in HEADLINES
        if (figure := row.figures.get(headline.id)) is not None
    ]
    pq.write_table(pa.Table.from_pylist(records, schema), path)


CARD = """---
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

Made by `lmdiag leaderboard`. Every figure was computed again from the submitted predictions
(*recomputed*); rows marked *reproduced* were also compared with what the model itself answered.
`leaderboard.json` and `leaderboard.parquet` hold the same figures for programs.
"""
"""The card of the static Space."""
