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
from compare_lm_eval import by_contrast, compare

from lmdiag import load_run
from lmdiag.report.items import run_scores


def of_inspect(run: Any, task: str, samples: list[Any]) -> Iterator[tuple[str, float, float]]:
    """Yields accuracy of rows, and sensitivity of contrasts that Inspect compares, by both."""
    values = {  # measure -> item -> value
        measure: dict(zip(scores.items.tolist(), scores.values.tolist(), strict=True))
        for measure, scores in run_scores(run, task).items()
    }
    columns = run.stimuli[task].columns()
    rows = [*zip(columns["context"], columns["id"], columns["contrast"], strict=True)]
    for sample in samples:
        score = sample["scores"]["first_tokens"]
        same = [(row, contrast) for context, row, contrast in rows if context == sample["input"]]
        for k in (1, 5):
            accuracy = values[f"accuracy@{k}"]
            for row in [row for row, _ in same if row in accuracy]:
                yield f"{row} accuracy@{k}", accuracy[row], score["value"][f"accuracy_at_{k}"]
        contrasts = {contrast for _, contrast in same}
        if score["metadata"]["compared"] == len(contrasts):
            share = sum(values["sensitivity"][name] for name in contrasts) / len(contrasts)
            yield f"{sample['id']} preference", share, score["value"]["preference"]


def main(run_folder: str, folder: str) -> None:
    """Prints how far the programs agree on each task, such as `lmdiag:neg136_nat|0`."""
    run = load_run(run_folder)
    for file in sorted(Path(folder).rglob("details_lmdiag*.parquet")):
        records = pq.read_table(file).to_pylist()
        name = records[0]["doc"]["task_name"]
        task = name.removeprefix("lmdiag:").partition("|")[0].partition("_")[0]
        samples = []
        for record in records:
            replies = [(log_prob, False) for log_prob in record["model_response"]["logprobs"]]
            sample = {"doc": record["doc"]["specific"], "filtered_resps": replies}
            samples.append(sample | record["metric"])
        log_probs = run.predictions[task]["none", 0].log_prob
        list(
            compare(name, samples, by_contrast(run.stimuli[task].columns()["contrast"], log_probs))
        )
    for file in sorted(Path(folder).glob("*.json")):
        log = json.loads(file.read_text("utf-8"))
        name = log["eval"]["task"].rpartition("/")[2]
        outcomes = list(of_inspect(run, name.removeprefix("lmdiag_"), log["samples"]))
        differ = [f"{item}: lmdiag {p:g}, Inspect {q:g}" for item, p, q in outcomes if p != q]
        print(f"{name}: {len(outcomes)} outcomes, {len(differ)} differ", *differ, sep="\n    ")


if __name__ == "__main__":
    main(*sys.argv[1:])
