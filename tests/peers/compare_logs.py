"""Compares what lighteval or Inspect logged of our tasks with a run of lmdiag, item by item.

    python tests/peers/compare_logs.py RUN LOGS

Run by hand, with the Python of lmdiag: the two programs need other versions of its libraries, so
their files are read. RUN is a run of the same causal model on the same data set; LOGS a folder that
`lighteval accelerate --save-details` or `inspect eval --log-format json` wrote. Prints for each
task the number of outcomes, the largest difference in a log-probability (lighteval; nats), and the
outcomes that differ.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lmdiag import load_run
from lmdiag.report.items import run_scores

Outcome = tuple[str, float, float]
"""Item and measure, its value by lmdiag, its value by the other program."""


class Logged:
    """A task of the run, such as `lmdiag:neg136_nat|0` or `lmdiag_neg136` names it."""

    def __init__(self, run: Any, name: str) -> None:
        task = name.removeprefix("lmdiag")[1:].partition("|")[0].partition("_")[0]
        self.columns = run.stimuli[task].columns()
        self.log_prob = run.predictions[task]["none", 0].log_prob
        self.values = {  # measure -> item -> value
            measure: dict(zip(scores.items.tolist(), scores.values.tolist(), strict=True))
            for measure, scores in run_scores(run, task).items()
        }


def of_lighteval(task: Logged, records: list[dict[str, Any]]) -> Iterator[Outcome]:
    """Yields `acc` and `sensitivity@0.01` of every contrast; prints how far numbers agree."""
    rows: dict[str, list[float | None]] = {}
    for contrast, p in zip(task.columns["contrast"], task.log_prob, strict=True):
        rows.setdefault(contrast, []).append(p)
    largest = 0.0
    for record in records:
        doc, logged = record["doc"]["specific"], record["model_response"]["logprobs"]
        contrast, n = doc["contrast"], len(doc["targets"])
        for measure, metric in (("sensitivity", "acc"), ("sensitivity@0.01",) * 2):
            value = task.values[measure][contrast]
            yield f"{contrast} {measure}", value, record["metric"][metric]
        reported = [p - q for p, q in zip(logged[:n], logged[n:] or [0.0] * n, strict=True)]
        both = zip(reported, rows[contrast], strict=True)
        largest = max(largest, *(abs(p - q) for p, q in both if q is not None))
    print(f"largest difference {largest:.1e} nats")


def of_inspect(task: Logged, samples: list[dict[str, Any]]) -> Iterator[Outcome]:
    """Yields accuracy of every row, and sensitivity of contrasts that Inspect compares."""
    columns = task.columns
    rows = [*zip(columns["context"], columns["id"], columns["contrast"], strict=True)]
    for sample in samples:
        score = sample["scores"]["first_tokens"]
        same = [(row, contrast) for context, row, contrast in rows if context == sample["input"]]
        for k in (1, 5):
            accuracy = task.values[f"accuracy@{k}"]
            for row, _ in same:
                if row in accuracy:
                    yield f"{row} accuracy@{k}", accuracy[row], score["value"][f"accuracy_at_{k}"]
        contrasts = {contrast for _, contrast in same}
        if score["metadata"]["compared"] == len(contrasts):
            share = sum(task.values["sensitivity"][c] for c in contrasts) / len(contrasts)
            yield f"{sample['id']} preference", share, score["value"]["preference"]


def main(run: str, folder: str) -> None:
    """Prints how far the programs agree on each task."""
    loaded = load_run(run)
    logs = []
    for file in sorted(Path(folder).rglob("details_lmdiag*.parquet")):
        records = pq.read_table(file).to_pylist()
        name = records[0]["doc"]["task_name"]
        logs.append((name, of_lighteval(Logged(loaded, name), records)))
    for file in sorted(Path(folder).glob("*.json")):
        log = json.loads(file.read_text("utf-8"))
        name = log["eval"]["task"].rpartition("/")[2]
        logs.append((name, of_inspect(Logged(loaded, name), log["samples"])))
    for name, found in logs:
        outcomes = list(found)
        differ = [f"{item}: lmdiag {p:g}, other {q:g}" for item, p, q in outcomes if p != q]
        print(f"{name}: {len(outcomes)} outcomes, {len(differ)} differ", *differ, sep="\n    ")


if __name__ == "__main__":
    main(*sys.argv[1:])
