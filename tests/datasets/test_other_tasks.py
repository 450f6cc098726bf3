"""The task files for lighteval and Inspect: the documents and samples that they make of the rows.

Neither program is installed here, so small stand-ins take the place of the classes that the files
construct; `tests/peers/compare_logs.py` compares the figures of the real programs.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "datasets/lmdiag"

NAMES = {
    "lighteval.metrics.metrics_sample": ("SampleLevelComputation",),
    "lighteval.metrics.utils.metric_utils": ("SampleLevelMetricGrouping",),
    "lighteval.tasks.lighteval_task": ("LightevalTaskConfig",),
    "lighteval.tasks.requests": ("Doc", "SamplingMethod"),
    "inspect_ai": ("Task", "task"),
    "inspect_ai.dataset": ("MemoryDataset", "Sample"),
    "inspect_ai.model": ("GenerateConfig",),
    "inspect_ai.scorer": (
        "Metric", "SampleScore", "Score", "Scorer", "Target", "metric", "scorer",
    ),
    "inspect_ai.solver": ("TaskState", "generate"),
}  # fmt: skip
"""Module -> the names that the task files take from it."""


class Given(SimpleNamespace):
    """What a class of the two programs was called with; positional arguments by number."""

    LOGPROBS = "logprobs"

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(**{f"_{i}": value for i, value in enumerate(values)}, **named)


def unchanged(*given: Any, **named: Any) -> Any:
    """A decorator with or without arguments that leaves functions as they are."""
    return given[0] if given and not named else unchanged


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, contents in NAMES.items():
        for parent in (name.rsplit(".", i)[0] for i in range(name.count(".") + 1)):
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent, ModuleType(parent)))
        for each in contents:
            plain = unchanged if each in ("task", "metric", "scorer") else Given
            monkeypatch.setattr(sys.modules[name], each, plain, raising=False)


def rows_of(data: Path, config: str) -> list[dict[str, Any]]:
    return pq.read_table(data / config).to_pylist()


@pytest.mark.usefixtures("stand_ins")
def test_lighteval_asks_every_contrast_once(
    import_file: Any, demo_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = import_file(FOLDER / "lighteval/diagnostics.py")
    monkeypatch.setattr(
        tasks, "load_dataset", lambda name, config, split: rows_of(demo_dir, config)
    )
    asked: dict[str, Counter[str]] = {}
    for table in tasks.TASKS_TABLE:
        for row in rows_of(demo_dir, table.hf_subset):
            doc = table.prompt_function(row, table.name)
            if doc is None:
                continue
            contrast = doc.specific
            asked.setdefault(table.hf_subset, Counter())[contrast["contrast"]] += 1
            assert [f"{doc._0}{choice}" for choice in doc._1[: len(contrast["targets"])]] == [
                f"{contrast['shared']} {choice}"
                for choice in contrast["choices"][: len(contrast["targets"])]
            ]
            assert doc._2 == contrast["good"]
    assert set(asked) == {"cprag102", "role88", "neg136", "agreement"}
    for config, counts in asked.items():
        assert set(counts.values()) == {1}
        assert set(counts) == {row["contrast"] for row in rows_of(demo_dir, config)}


@pytest.mark.usefixtures("stand_ins")
def test_lighteval_prefers_the_more_probable_target(import_file: Any) -> None:
    """p(good) = e^-1 - 0.36 = 0.008 above p(bad): preferred, but not by more than 0.01."""
    tasks = import_file(FOLDER / "lighteval/diagnostics.py")
    doc = Given(specific={"targets": ["bird", "tool"], "good": 0})
    response = Given(logprobs=[-1.0, math.log(0.36)])
    measures = tasks.Preference().compute(doc, response)
    assert measures == {"acc": 1.0, "sensitivity@0.01": 0.0}


@pytest.mark.usefixtures("stand_ins")
def test_inspect_asks_every_context_once(import_file: Any, demo_dir: Path) -> None:
    tasks = import_file(FOLDER / "inspect-ai/diagnostics.py")
    rows = rows_of(demo_dir, "neg136")
    samples = tasks.samples(rows)
    assert [sample._0 for sample in samples] == list(dict.fromkeys(row["context"] for row in rows))
    first = next(sample for sample in samples if sample._0 == "A robin is a")
    assert first.target == ["bird"]
    assert first.metadata["contrasts"] == [["bird", "tree"]]
    two_contexts = tasks.samples(rows_of(demo_dir, "role88"))
    assert not any("contrasts" in sample.metadata for sample in two_contexts)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        # "bird" is second: not in the first word, among the first five, and above "tree"
        (["Ġfish", "Ġbird", "Ġtree"], {"accuracy_at_1": 0, "accuracy_at_5": 1, "preference": 1}),
        # "bird" without the mark of a word's beginning continues a word
        (["bird", "Ġtree", "Ġbird"], {"accuracy_at_1": 0, "accuracy_at_5": 1, "preference": 0}),
        # "tree" is not in the list: the contrast is not compared
        (["Ġbird", "Ġfish"], {"accuracy_at_1": 1, "accuracy_at_5": 1, "preference": math.nan}),
    ],
)
def test_inspect_reads_the_first_tokens(
    import_file: Any, tokens: list[str], value: dict[str, float]
) -> None:
    tasks = import_file(FOLDER / "inspect-ai/diagnostics.py")
    entries = [Given(token=token, logprob=-float(i)) for i, token in enumerate(tokens, start=1)]
    logprobs = Given(content=[Given(top_logprobs=entries)])
    state = Given(
        output=Given(choices=[Given(logprobs=logprobs)]),
        metadata={"expected": ["bird"], "contrasts": [["bird", "tree"]]},
    )
    score = asyncio.run(tasks.first_tokens()(state, None))
    assert score.value == pytest.approx(value, nan_ok=True)
    assert score.metadata == {"compared": int(not math.isnan(value["preference"]))}
