"""Compares lm-evaluation-harness on our task files with lmdiag, contrast by contrast.

    python tests/peers/compare_lm_eval.py MODEL DATA [--dtype float32] [--softmax-dtype float32] \\
        [--bos auto|always] [--tasks lmdiag_agreement ...]

Run by hand, with a Python that has both lmdiag and lm_eval; DATA is a built data set directory.
Prints for each task the largest difference in the log-probability of a target, and the contrasts
whose outcome differs, and keeps the figures for docs/reproduced.md: those of the causal demo model
and the demo data set, in a folder `lmdiag`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from records import keep, within

TASKS = {
    "lmdiag_cprag102": "cprag102",
    "lmdiag_role88": "role88",
    "lmdiag_neg136_simp_affirmative": "neg136",
    "lmdiag_neg136_simp_negative": "neg136",
    "lmdiag_neg136_nat": "neg136",
    "lmdiag_agreement": "agreement",
}
TASK_FILES = Path(__file__).resolve().parents[2] / "datasets/lmdiag/lm-evaluation-harness"


def samples_of_lm_eval(model: str, data: Path, tasks: list[str], **options: Any) -> dict[str, Any]:
    """Returns task -> what lm_eval logs of each document; `options` go to its model."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    arguments = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    manager = TaskManager(include_path=str(TASK_FILES), include_defaults=False)
    with contextlib.chdir(data.resolve().parent):
        found = lm_eval.simple_evaluate(
            model="hf",
            model_args=f"pretrained={model},{arguments}",
            tasks=tasks,
            task_manager=manager,
            batch_size=16,
            device="cpu",
            log_samples=True,
            bootstrap_iters=0,
        )
    return dict(found["samples"])


def log_probs(sample: dict[str, Any]) -> list[float]:
    """Returns the log-probability of each row's target by lm_eval (nats)."""
    values = [float(value) for value, _ in sample["filtered_resps"]]
    n = len(sample["doc"]["targets"])
    rest = values[n:] or [0.0] * n
    return [whole - part for whole, part in zip(values[:n], rest, strict=True)]


def by_contrast(model: Any, data: Path, task: str) -> dict[str, list[float]]:
    """Returns contrast -> log-probabilities (nats) of its rows by lmdiag."""
    import lmdiag

    stimuli = lmdiag.load_stimuli(str(data), task)
    rows: dict[str, list[float]] = {}
    log_probs = model.predict(stimuli).log_prob
    for contrast, value in zip(stimuli.columns()["contrast"], log_probs, strict=True):
        rows.setdefault(contrast, []).append(value)
    return rows


def compare(
    task: str, samples: list[dict[str, Any]], by_lmdiag: dict[str, list[float]]
) -> Iterator[tuple[str, str, str, str]]:
    """Yields figure, that of lm_eval, that of lmdiag and difference; prints how far they agree."""
    largest, differ = 0.0, []
    counts = {"acc": [0, 0], "sensitivity@0.01": [0, 0]}
    for sample in samples:
        contrast, good = sample["doc"]["contrast"], sample["doc"]["good"]
        computed, reported = by_lmdiag[contrast], log_probs(sample)
        largest = max(largest, float(np.abs(np.subtract(reported, computed)).max()))
        p = np.exp(computed)
        gaps = p[good] - np.delete(p, good)
        for name, threshold in (("acc", 0.0), ("sensitivity@0.01", 0.01)):
            outcomes = bool(sample[name]), bool((gaps > threshold).all())
            counts[name] = [n + outcome for n, outcome in zip(counts[name], outcomes, strict=True)]
            if outcomes[0] != outcomes[1]:
                differ.append(f"{contrast} ({name}): lmdiag {computed}, lm_eval {reported}")
    n = len(samples)
    print(f"{task}: {n} contrasts, largest difference {largest:.1e}")
    print(f"  outcomes that differ: {len(differ)}", *differ, sep="\n    ")
    yield f"{task}: log-probabilities, nats", f"{n} contrasts", f"{n} contrasts", within(largest)
    for name, (reported, computed) in counts.items():
        gap = str(reported - computed)
        yield f"{task}: {name}", f"{reported} of {n}", f"{computed} of {n}", gap


def main() -> None:
    """Runs both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--softmax-dtype")
    parser.add_argument("--bos", default="auto", choices=("auto", "always"))
    parser.add_argument("--tasks", nargs="+", default=list(TASKS)[:-1], choices=TASKS)
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import lmdiag

    model = lmdiag.load_model(args.model, dtype=args.dtype, bos=args.bos)
    of_lmdiag = {
        config: by_contrast(model, args.data, config)
        for config in {TASKS[task] for task in args.tasks}
    }
    options = {
        "dtype": args.dtype,
        "softmax_dtype": args.softmax_dtype,
        "add_bos_token": True if args.bos == "always" else None,
    }
    name = str(Path(args.model).resolve()) if Path(args.model).is_dir() else args.model
    samples = samples_of_lm_eval(name, args.data, args.tasks, **options)
    rows = [r for task in args.tasks for r in compare(task, samples[task], of_lmdiag[TASKS[task]])]
    keep(
        "lm-evaluation-harness", f"lm-eval {version('lm_eval')}",
        "The causal demo model and the demo data set, float32: the tasks of "
        "`datasets/lmdiag/lm-evaluation-harness`, contrast by contrast",
        "python tests/peers/compare_lm_eval.py eval/lmdiag/models/demo/causal DATA "
        f"--tasks {' '.join(args.tasks)}", rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
