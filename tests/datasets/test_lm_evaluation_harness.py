"""The task files for lm-evaluation-harness: their content, documents, measures and results."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

FILES = Path(__file__).resolve().parents[2] / "datasets/lmdiag/lm-evaluation-harness"
TASKS = sorted(path.stem for path in FILES.glob("lmdiag_*.yaml"))


class Loader(yaml.SafeLoader):
    """Reads a function's name where lm-evaluation-harness reads the function."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def read(name: str) -> dict[str, Any]:
    """A file with what it includes."""
    own = yaml.load((FILES / name).read_text("utf-8"), Loader=Loader)
    return (read(own["include"]) if "include" in own else {}) | own


@pytest.fixture(scope="module")
def contrasts(import_file: Any) -> ModuleType:
    """The functions that the files name."""
    return import_file(FILES / "contrasts.py")


def rows_of(data: Path, config: str) -> list[dict[str, Any]]:
    return pq.read_table(data / config).to_pylist()


def by_contrast(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["contrast"]].append(row)
    return groups


def documents(contrasts: ModuleType, data: Path, task: str) -> Any:
    """The documents of a task, by the function that its file names."""
    config = read(f"{task}.yaml")
    function = getattr(contrasts, config["process_docs"].removeprefix("contrasts."))
    return function(rows_of(data, config["dataset_name"]))


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_multiple_choice_on_a_config_of_the_data_set(
    contrasts: ModuleType, demo_dir: Path, task: str
) -> None:
    config = read(f"{task}.yaml")
    assert (config["task"], config["output_type"]) == (task, "multiple_choice")
    assert (config["dataset_path"], config["test_split"]) == ("lmdiag", "test")
    assert config["num_fewshot"] == 0
    docs = documents(contrasts, demo_dir, task)
    for name in ("doc_to_text", "doc_to_choice", "doc_to_target"):
        assert config[name] in {*docs.column_names, "{{targets[0]}}"}
    measured = contrasts.measures(docs[0], [(-1.0, False)] * len(docs[0]["choices"]))
    assert [metric["metric"] for metric in config["metric_list"]] == list(measured)
    assert {metric["aggregation"] for metric in config["metric_list"]} == {"mean"}


def test_the_group_has_the_diagnostics_and_no_average() -> None:
    group = read("lmdiag.yaml")
    assert sorted([*group["task"], "lmdiag_agreement"]) == TASKS
    assert "aggregate_metric_list" not in group


@pytest.mark.parametrize("task", TASKS)
def test_every_choice_is_its_row_of_the_contrast(
    contrasts: ModuleType, demo_dir: Path, task: str
) -> None:
    rows = by_contrast(rows_of(demo_dir, read(f"{task}.yaml")["dataset_name"]))
    docs = documents(contrasts, demo_dir, task)
    assert len(set(docs["contrast"])) == len(docs)
    for doc in docs:
        contrast = rows[doc["contrast"]]
        n = len(contrast)
        texts = [f"{row['context']} {row['target']}" for row in contrast]
        if task == "lmdiag_agreement":
            texts = [text[0].upper() + text[1:] for text in texts]
        assert [f"{doc['shared']} {choice}" for choice in doc["choices"][:n]] == texts
        assert [i for i, row in enumerate(contrast) if row["good"]] == [doc["good"]]
        assert doc["targets"] == [row["target"] for row in contrast]
        if len(doc["choices"]) == n:
            assert len(set(doc["contexts"])) == 1
        else:
            parts = doc["choices"][n:]
            assert [f"{doc['shared']} {part}" for part in parts] == doc["contexts"]


def test_together_the_tasks_ask_every_contrast_once(contrasts: ModuleType, demo_dir: Path) -> None:
    asked = defaultdict(list)
    for task in TASKS:
        asked[read(f"{task}.yaml")["dataset_name"]] += list(
            documents(contrasts, demo_dir, task)["contrast"]
        )
    for config, names in asked.items():
        assert sorted(names) == sorted(by_contrast(rows_of(demo_dir, config)))


def test_the_words_that_two_contexts_share(contrasts: ModuleType) -> None:
    good = {"contrast": "1", "good": True, "context": "An ant is an", "target": "insect"}
    bad = {"contrast": "1", "good": False, "context": "An ant is a", "target": "tool"}
    doc = contrasts.document([good, bad])
    assert doc["shared"] == "An ant is"
    assert doc["choices"] == ["an insect", "a tool", "an", "a"]


@pytest.mark.parametrize(
    ("log_probs", "good", "acc", "at_threshold"),
    [
        # p(insect | an) = e^-3 / e^-1 = 0.135; p(tool | a) = e^-2.5 / e^-0.25 = 0.105
        ((-3.0, -2.5, -1.0, -0.25), 0, 1, 1),
        ((-3.0, -2.5, -1.0, -0.25), 1, 0, 0),
        (tuple(map(math.log, (0.2, 0.209))), 1, 1, 0),
        (tuple(map(math.log, (0.2, 0.2))), 1, 0, 0),  # a tie is not a preference
    ],
)
def test_measures_of_a_contrast(
    contrasts: ModuleType, log_probs: tuple[float, ...], good: int, acc: float, at_threshold: float
) -> None:
    """What belongs to the contexts, after the two choices, is subtracted."""
    doc = {"targets": ["insect", "tool"], "good": good}
    measures = contrasts.measures(doc, [(value, False) for value in log_probs])
    assert measures == {"acc": acc, "sensitivity@0.01": at_threshold}
