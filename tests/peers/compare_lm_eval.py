"""Compares lm-evaluation-harness with lmdiag: our task files by contrast, minimal pairs by pair.

    python tests/peers/compare_lm_eval.py MODEL DATA

Run by hand, with a Python that has both lmdiag and lm_eval; both use float32. DATA is a built data
set directory, in a folder `lmdiag`; or a tsv file with the columns `sen` and `wrong_sen`, which
MultiBLiMP's task of the harness reads, with a beginning-of-sequence token. Prints for each task the
largest difference in a log-probability, and what has another outcome. Figures of a data set
directory are kept for docs/reproduced.md: those of the causal demo model and the demo data set.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from records import keep

NEG136 = ("neg136_simp_affirmative", "neg136_simp_negative", "neg136_nat")
TASKS = [f"lmdiag_{name}" for name in ("cprag102", "role88", *NEG136, "agreement")]
TASK_FILES = Path(__file__).resolve().parents[2] / "datasets/lmdiag/lm-evaluation-harness"


def by_contrast(names: Iterable[str], log_probs: Iterable[Any]) -> dict[str, list[float]]:
    """Returns contrast -> log-probabilities of its rows, in nats."""
    computed: dict[str, list[float]] = {}
    for name, value in zip(names, log_probs, strict=True):
        computed.setdefault(name, []).append(value)
    return computed


def compare(
    task: str, samples: list[dict[str, Any]], computed: dict[str, list[float]]
) -> Iterator[tuple[str, str, str, str]]:
    """Yields figure, that of lm_eval, that of lmdiag and difference; prints how far they agree.

    Args:
        task: its name.
        samples: what lm_eval logged.
        computed: see `by_contrast`; a pair of sentences is named by the good one.
    """
    largest, differ = 0.0, []
    counts = {name: [0, 0] for name in ("acc", "sensitivity@0.01") if name in samples[0]}
    for sample in samples:
        doc = sample["doc"]
        key, good = doc.get("contrast", doc.get("sen")), doc.get("good", 0)
        logged = [float(value) for value, _ in sample["filtered_resps"]]
        # a target of several tokens has the log-probability of the whole less that of its context
        n = len(doc.get("targets", logged))
        reported = np.subtract(logged[:n], logged[n:] or [0.0] * n)
        largest = max(largest, float(np.abs(reported - computed[key]).max()))
        p = np.exp(computed[key]) if "contrast" in doc else np.array(computed[key])
        gaps = p[good] - np.delete(p, good)
        for name, both in counts.items():
            outcomes = bool(sample[name]), bool((gaps > 0.01 * (name != "acc")).all())
            counts[name] = [count + outcome for count, outcome in zip(both, outcomes, strict=True)]
            if outcomes[0] != outcomes[1]:
                differ.append(f"{key} ({name}): lmdiag {computed[key]}, logged {reported}")
    n = len(samples)
    print(f"{task}: {n} contrasts, largest difference {largest:.1e}, {counts}")
    print(f"  outcomes that differ: {len(differ)}", *differ, sep="\n    ")
    # a power of ten: the digits of a difference differ between processors
    within = f"< 1e{math.floor(math.log10(largest)) + 1}" if largest else "0"
    yield f"{task}: log-probabilities, nats", f"{n} contrasts", f"{n} contrasts", within
    for name, (of_lm_eval, of_lmdiag) in counts.items():
        gap = str(of_lm_eval - of_lmdiag)
        yield f"{task}: {name}", f"{of_lm_eval} of {n}", f"{of_lmdiag} of {n}", gap


def main(folder: str, data: str) -> None:
    """Runs both."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import lm_eval
    import yaml
    from lm_eval.tasks import TaskManager

    import lmdiag

    path, tasks = Path(data), list[Any](TASKS)
    if path.is_file():
        template = Path(lm_eval.__file__).parent / "tasks" / "multiblimp" / "_template_yaml"
        file = {"data_files": str(path.resolve()), "sep": "\t"}
        here = {"task": path.stem, "dataset_path": "csv", "dataset_kwargs": file}
        tasks = [yaml.safe_load(template.read_text("utf-8")) | here]
    model = lmdiag.load_model(folder, dtype="float32", bos="always" if path.is_file() else "auto")
    pretrained = str(Path(folder).resolve()) if Path(folder).is_dir() else folder
    with contextlib.chdir(path.resolve().parent):
        samples = lm_eval.simple_evaluate(
            model="hf",
            model_args=f"pretrained={pretrained},dtype=float32,softmax_dtype=float32",
            tasks=tasks,
            task_manager=TaskManager(include_path=str(TASK_FILES), include_defaults=False),
            batch_size=16,
            device="cpu",
            log_samples=True,
            bootstrap_iters=0,
        )["samples"]
    rows = []
    for task, logged in samples.items():
        stimuli = lmdiag.load_stimuli(data, task.split("_")[1] if task in TASKS else None)
        columns, found = stimuli.columns(), model.predict(stimuli).log_prob
        names = columns["contrast"]
        if task not in TASKS:  # the good sentence of a pair comes first
            names = [columns["sentence"][row - row % 2] for row in range(len(found))]
        rows += compare(task, logged, by_contrast(names, found))
    if path.is_dir():
        what = "The causal demo model and the demo data set, float32: the tasks of "
        what += "`datasets/lmdiag/lm-evaluation-harness`, contrast by contrast"
        command = "tests/peers/compare_lm_eval.py eval/lmdiag/models/demo/causal DATA"
        keep("lm-evaluation-harness", f"lm-eval {version('lm_eval')}", what, command, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
