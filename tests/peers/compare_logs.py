"""Compares what lighteval and Inspect logged of our tasks with a run of lmdiag, item by item.

    python tests/peers/compare_logs.py RUN [--lighteval DETAILS] [--inspect LOGS]

Run by hand, with the Python of lmdiag: the two programs need other versions of its libraries, so
their files are read. RUN is a run of the same causal model on the same data set; DETAILS a folder
that `lighteval accelerate --save-details` wrote, LOGS one of `inspect eval --log-format json`.
Prints for each task the number of items, the largest difference in a log-probability (nats), and
the items whose outcome differs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lmdiag import load_run
from lmdiag.report.items import run_scores
from lmdiag.results import Run

Outcomes = list[tuple[str, float, float]]
"""Item, its value by lmdiag, its value by the other program."""


def config_of(task: str) -> str:
    """Returns the config of a task such as `lmdiag:neg136_nat|0` or `lmdiag_neg136`."""
    return task.removeprefix("lmdiag")[1:].partition("|")[0].partition("_")[0]


def values_of(run: Run, task: str, measure: str) -> dict[str, float]:
    """Returns item -> its value of a measure."""
    scores = run_scores(run, task)[measure]
    return dict(zip(scores.items.tolist(), scores.values.tolist(), strict=True))


def of_lighteval(run: Run, folder: Path) -> Iterator[tuple[str, Outcomes]]:
    """Yields `acc` and `sensitivity@0.01` of every contrast, by task."""
    for file in sorted(folder.rglob("details_lmdiag*.parquet")):
        records = pq.read_table(file).to_pylist()
        name = records[0]["doc"]["task_name"]
        task = config_of(name)
        measures = {"sensitivity": "acc", "sensitivity@0.01": "sensitivity@0.01"}
        computed = {measure: values_of(run, task, measure) for measure in measures}
        rows: dict[str, list[float | None]] = {}
        log_probs = run.predictions[task]["none", 0].log_prob
        for contrast, p in zip(run.stimuli[task].columns()["contrast"], log_probs, strict=True):
            rows.setdefault(contrast, []).append(p)
        outcomes: Outcomes = []
        largest = 0.0
        for record in records:
            doc, logged = record["doc"]["specific"], record["model_response"]["logprobs"]
            contrast, n = doc["contrast"], len(doc["targets"])
            for measure, metric in measures.items():
                value = computed[measure][contrast]
                outcomes.append((f"{contrast} {measure}", value, record["metric"][metric]))
            reported = [p - q for p, q in zip(logged[:n], logged[n:] or [0.0] * n, strict=True)]
            both = zip(reported, rows[contrast], strict=True)
            largest = max(largest, *(abs(p - q) for p, q in both if q is not None))
        yield f"{name}, largest difference {largest:.1e} nats", outcomes


def of_inspect(run: Run, folder: Path) -> Iterator[tuple[str, Outcomes]]:
    """Yields accuracy of every row, and sensitivity of contrasts that Inspect compares, by task."""
    for file in sorted(folder.glob("*.json")):
        log = json.loads(file.read_text("utf-8"))
        task = config_of(log["eval"]["task"].rpartition("/")[2])
        columns = run.stimuli[task].columns()
        rows = list(zip(columns["context"], columns["id"], columns["contrast"], strict=True))
        accuracy = {f"accuracy_at_{k}": values_of(run, task, f"accuracy@{k}") for k in (1, 5)}
        sensitivity = values_of(run, task, "sensitivity")
        outcomes: Outcomes = []
        compared = 0
        for sample in log["samples"]:
            score = sample["scores"]["first_tokens"]
            value, n = score["value"], score["metadata"]["compared"]
            same = [
                (row, contrast) for context, row, contrast in rows if context == sample["input"]
            ]
            for name, computed in accuracy.items():
                known = [row for row, _ in same if row in computed]
                outcomes += [(f"{row} {name}", computed[row], value[name]) for row in known]
            contrasts = dict.fromkeys(contrast for _, contrast in same)
            if n == len(contrasts):
                share = sum(sensitivity[contrast] for contrast in contrasts) / n
                outcomes.append((f"{sample['id']} preference", share, value["preference"]))
                compared += n
        yield f"{log['eval']['task']}, {compared} contrasts compared", outcomes


def main() -> None:
    """Compares what is given, and prints how far the programs agree on each task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--lighteval", type=Path)
    parser.add_argument("--inspect", type=Path)
    parser.add_argument("--data")
    args: Any = parser.parse_args()
    run = load_run(args.run, args.data)
    for read, folder in ((of_lighteval, args.lighteval), (of_inspect, args.inspect)):
        for task, outcomes in read(run, folder) if folder else ():
            differ = [f"{item}: lmdiag {p:g}, other {q:g}" for item, p, q in outcomes if p != q]
            print(f"{task}: {len(outcomes)} outcomes, {len(differ)} differ", *differ, sep="\n    ")


if __name__ == "__main__":
    main()
