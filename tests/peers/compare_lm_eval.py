"""Compares lm-evaluation-harness with lmdiag: our task files by contrast, minimal pairs by pair.

    python tests/peers/compare_lm_eval.py MODEL DATA [--dtype float32] [--softmax-dtype float32] \\
        [--bos auto|always] [--tasks lmdiag_agreement ...]
    python tests/peers/compare_lm_eval.py MODEL FILE.tsv --softmax-dtype float32 --bos always

Run by hand, with a Python that has both lmdiag and lm_eval. DATA is a built data set directory;
FILE.tsv has the columns `sen` and `wrong_sen`, and MultiBLiMP's task of the harness reads it.
Prints for each task the largest difference in a log-probability, and what has another outcome. The
figures of a data set directory are kept for docs/reproduced.md: those of the causal demo model and
the demo data set, in a folder `lmdiag`.
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


def log_probs(sample: dict[str, Any]) -> list[float]:
    """Returns the log-probabilities (nats) of the targets of a sample by lm_eval.

    A target of several tokens has that of the whole less that of its context.
    """
    values = [float(value) for value, _ in sample["filtered_resps"]]
    n = len(sample["doc"].get("targets", values))
    return [whole - part for whole, part in zip(values[:n], values[n:] or [0.0] * n, strict=True)]


def compare(
    task: str, samples: list[dict[str, Any]], computed: dict[str, list[float]]
) -> Iterator[tuple[str, str, str, str]]:
    """Yields figure, that of lm_eval, that of lmdiag and difference; prints how far they agree.

    Args:
        task: its name.
        samples: what lm_eval logged.
        computed: contrast, or the good sentence -> log-probabilities by lmdiag.
    """
    largest, differ = 0.0, []
    names = [name for name in ("acc", "sensitivity@0.01") if name in samples[0]]
    counts = {name: [0, 0] for name in names}
    for sample in samples:
        doc = sample["doc"]
        key, good = doc.get("contrast", doc.get("sen")), doc.get("good", 0)
        reported = log_probs(sample)
        largest = max(largest, float(np.abs(np.subtract(reported, computed[key])).max()))
        p = np.exp(computed[key]) if "contrast" in doc else np.array(computed[key])
        gaps = p[good] - np.delete(p, good)
        for name in names:
            outcomes = bool(sample[name]), bool((gaps > 0.01 * (name != "acc")).all())
            counts[name] = [n + outcome for n, outcome in zip(counts[name], outcomes, strict=True)]
            if outcomes[0] != outcomes[1]:
                differ.append(f"{key} ({name}): lmdiag {computed[key]}, lm_eval {reported}")
    n = len(samples)
    print(f"{task}: {n} contrasts, largest difference {largest:.1e}, {counts}")
    print(f"  outcomes that differ: {len(differ)}", *differ, sep="\n    ")
    yield f"{task}: log-probabilities, nats", f"{n} contrasts", f"{n} contrasts", within(largest)
    for name, (of_lm_eval, of_lmdiag) in counts.items():
        gap = str(of_lm_eval - of_lmdiag)
        yield f"{task}: {name}", f"{of_lm_eval} of {n}", f"{of_lmdiag} of {n}", gap


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
    import lm_eval
    import yaml
    from lm_eval.tasks import TaskManager

    import lmdiag

    tasks: list[Any] = args.tasks
    if args.data.is_file():
        template = Path(lm_eval.__file__).parent / "tasks" / "multiblimp" / "_template_yaml"
        file = {"data_files": str(args.data.resolve()), "sep": "\t"}
        here = {"task": args.data.stem, "dataset_path": "csv", "dataset_kwargs": file}
        tasks = [yaml.safe_load(template.read_text("utf-8")) | here]
    model = lmdiag.load_model(args.model, dtype=args.dtype, bos=args.bos)
    options = {
        "pretrained": str(Path(args.model).resolve()) if Path(args.model).is_dir() else args.model,
        "dtype": args.dtype,
        "softmax_dtype": args.softmax_dtype,
        "add_bos_token": True if args.bos == "always" and args.data.is_dir() else None,
    }
    manager = TaskManager(include_path=str(TASK_FILES), include_defaults=False)
    with contextlib.chdir(args.data.resolve().parent):
        samples = lm_eval.simple_evaluate(
            model="hf",
            model_args=",".join(f"{name}={x}" for name, x in options.items() if x is not None),
            tasks=tasks,
            task_manager=manager,
            batch_size=16,
            device="cpu",
            log_samples=True,
            bootstrap_iters=0,
        )["samples"]
    rows = []
    for task, logged in samples.items():
        stimuli = lmdiag.load_stimuli(str(args.data), TASKS.get(task))
        columns, found = stimuli.columns(), model.predict(stimuli).log_prob
        computed: dict[str, list[float]] = {}
        if task in TASKS:
            for contrast, value in zip(columns["contrast"], found, strict=True):
                computed.setdefault(contrast, []).append(value)
        else:
            pairs = zip(found[::2], found[1::2], strict=True)
            computed = dict(zip(columns["sentence"][::2], map(list, pairs), strict=True))
        rows += compare(task, logged, computed)
    if args.data.is_dir():
        keep(
            "lm-evaluation-harness", f"lm-eval {version('lm_eval')}",
            "The causal demo model and the demo data set, float32: the tasks of "
            "`datasets/lmdiag/lm-evaluation-harness`, contrast by contrast",
            "python tests/peers/compare_lm_eval.py eval/lmdiag/models/demo/causal DATA "
            f"--tasks {' '.join(args.tasks)}", rows,
        )  # fmt: skip


if __name__ == "__main__":
    main()
