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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lmdiag import load_run
from lmdiag.report.items import run_scores
from lmdiag.results import Run


def config_of(task: str) -> str:
    """Returns the config of a task such as `lmdiag:neg136_nat|0` or `lmdiag_neg136`."""
    return task.removeprefix("lmdiag")[1:].partition("|")[0].partition("_")[0]


def report(task: str, outcomes: Iterable[tuple[str, float, float]], largest: float | None) -> None:
    """Prints how far two programs agree on one task; an outcome is (item, lmdiag, other)."""
    outcomes = list(outcomes)
    differ = [
        f"{item}: lmdiag {own:g}, other {other:g}" for item, own, other in outcomes if own != other
    ]
    distance = "" if largest is None else f", largest difference {largest:.1e} nats"
    print(
        f"{task}: {len(outcomes)} outcomes, {len(differ)} differ{distance}", *differ, sep="\n    "
    )


def verdicts(run: Run, task: str, measure: str) -> dict[str, float]:
    """Returns item -> its value of a measure."""
    scores = run_scores(run, task)[measure]
    return dict(zip(scores.items.tolist(), scores.values.tolist(), strict=True))


def compare_lighteval(run: Run, folder: Path) -> None:
    """Compares `acc` and `sensitivity@0.01` of every contrast, and log-probabilities."""
    for file in sorted(folder.rglob("details_lmdiag*.parquet")):
        records = pq.read_table(file).to_pylist()
        name = records[0]["doc"]["task_name"]
        task = config_of(name)
        own = {each: verdicts(run, task, each) for each in ("sensitivity", "sensitivity@0.01")}
        rows: dict[str, list[float | None]] = {}
        log_probs = run.predictions[task]["none", 0].log_prob
        for contrast, p in zip(run.stimuli[task].columns()["contrast"], log_probs, strict=True):
            rows.setdefault(contrast, []).append(p)
        outcomes, largest = [], 0.0
        for record in records:
            doc, metric = record["doc"]["specific"], record["metric"]
            contrast, said = doc["contrast"], record["model_response"]["logprobs"]
            for ours, theirs in (("sensitivity", "acc"), ("sensitivity@0.01", "sensitivity@0.01")):
                outcomes.append((f"{contrast} {ours}", own[ours][contrast], metric[theirs]))
            n = len(doc["targets"])
            said = [p - q for p, q in zip(said[:n], said[n:] or [0.0] * n, strict=True)]
            gaps = [abs(p - q) for p, q in zip(said, rows[contrast], strict=True) if q is not None]
            largest = max(largest, *gaps)
        report(name, outcomes, largest)


def compare_inspect(run: Run, folder: Path) -> None:
    """Compares accuracy of every row, and sensitivity of the contrasts that Inspect compares."""
    for file in sorted(folder.glob("*.json")):
        log = json.loads(file.read_text("utf-8"))
        task = config_of(log["eval"]["task"].rpartition("/")[2])
        columns = run.stimuli[task].columns()
        rows = list(zip(columns["context"], columns["id"], columns["contrast"], strict=True))
        accuracy = {f"accuracy_at_{k}": verdicts(run, task, f"accuracy@{k}") for k in (1, 5)}
        sensitivity = verdicts(run, task, "sensitivity")
        outcomes, compared = [], 0
        for sample in log["samples"]:
            own = [(row, contrast) for context, row, contrast in rows if context == sample["input"]]
            value = sample["scores"]["first_tokens"]["value"]
            for name, of_rows in accuracy.items():
                outcomes += [
                    (f"{row} {name}", of_rows[row], value[name]) for row, _ in own if row in of_rows
                ]
            n = sample["scores"]["first_tokens"]["metadata"]["compared"]
            contrasts = dict.fromkeys(contrast for _, contrast in own)
            if n == len(contrasts):
                share = sum(sensitivity[each] for each in contrasts) / n
                outcomes.append((f"{sample['id']} preference", share, value["preference"]))
                compared += n
        report(f"{log['eval']['task']} ({compared} contrasts compared)", outcomes, None)


def main() -> None:
    """Compares what is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--lighteval", type=Path)
    parser.add_argument("--inspect", type=Path)
    parser.add_argument("--data")
    args: Any = parser.parse_args()
    run = load_run(args.run, args.data)
    if args.lighteval:
        compare_lighteval(run, args.lighteval)
    if args.inspect:
        compare_inspect(run, args.inspect)


if __name__ == "__main__":
    main()
