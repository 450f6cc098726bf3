"""Compares MultiBLiMP's task of lm-evaluation-harness with lmdiag, pair by pair.

    python tests/peers/compare_lm_eval_pairs.py MODEL FILE.tsv

Run by hand, with a Python that has both lmdiag and lm_eval; the file has the columns `sen` and
`wrong_sen`. The task is that of the harness, but for where its rows come from. Prints the largest
difference in the log-probability of a sentence, and the pairs whose outcome differs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np


def main(name: str, file: str) -> None:
    """Runs both."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import lm_eval
    import yaml
    from lm_eval.tasks import TaskManager

    import lmdiag

    template = Path(lm_eval.__file__).parent / "tasks" / "multiblimp" / "_template_yaml"
    task = yaml.safe_load(template.read_text("utf-8")) | {
        "task": "multiblimp_here",
        "dataset_path": "csv",
        "dataset_kwargs": {"data_files": file, "sep": "\t"},
    }
    found = lm_eval.simple_evaluate(
        model="hf",
        model_args=f"pretrained={name},dtype=float32,softmax_dtype=float32",
        tasks=[task],
        task_manager=TaskManager(include_defaults=False),
        device="cpu",
        log_samples=True,
        bootstrap_iters=0,
    )
    samples = found["samples"]["multiblimp_here"]
    stimuli = lmdiag.load_stimuli(file)
    predictions = lmdiag.load_model(name, dtype="float32", bos="always").predict(stimuli)
    pairs = np.array(predictions.log_prob, dtype=float).reshape(-1, 2)
    harness = np.array([[float(value) for value, _ in row["filtered_resps"]] for row in samples])
    differ = [
        row["doc"]["sen"]
        for row, (good, bad) in zip(samples, pairs, strict=True)
        if bool(row["acc"]) != (good > bad)
    ]
    print(f"{len(pairs)} pairs, largest difference {np.abs(harness - pairs).max():.1e} nats")
    print(f"acc {found['results']['multiblimp_here']['acc,none']:.4f}, ", end="")
    print(f"sensitivity {(pairs[:, 0] > pairs[:, 1]).mean():.4f}")
    print(f"outcomes that differ: {len(differ)}", *differ, sep="\n  ")


if __name__ == "__main__":
    main(*sys.argv[1:])
