"""The task files for lm-evaluation-harness, lighteval and Inspect: what they ask, what they score.

None of these programs is installed here. Stand-ins take the place of the classes that the files
construct; tests/peers compares the figures of the real programs.
"""

import asyncio
import math
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow.parquet as pq
import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "datasets/lmdiag"
HARNESS = FOLDER / "lm-evaluation-harness"
TASKS = sorted(path.stem for path in HARNESS.glob("lmdiag_*.yaml"))

MODULES = (
    "lighteval", "lighteval.metrics", "lighteval.metrics.metrics_sample",
    "lighteval.metrics.utils", "lighteval.metrics.utils.metric_utils", "lighteval.tasks",
    "lighteval.tasks.lighteval_task", "lighteval.tasks.requests", "inspect_ai",
    "inspect_ai.dataset", "inspect_ai.model", "inspect_ai.scorer", "inspect_ai.solver",
)  # fmt: skip


class Given(SimpleNamespace):
    """What a class of the two programs was called with; positional arguments by number."""

    LOGPROBS = "logprobs"

    def __init__(self, *values, **named):
        super().__init__(**{f"_{i}": value for i, value in enumerate(values)}, **named)


def unchanged(*given, **named):
    """A decorator with or without arguments that leaves functions as they are."""
    return given[0] if given and not named else unchanged


@pytest.fixture
def stand_ins(monkeypatch):
    decorators = dict.fromkeys(("task", "metric", "scorer"), unchanged)
    for name in MODULES:
        module = ModuleType(name)
        module.__getattr__ = lambda name: decorators.get(name, Given)
        monkeypatch.setitem(sys.modules, name, module)


class Loader(yaml.SafeLoader):
    """Reads a function's name where lm-evaluation-harness reads the function."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def read(name):
    """A file of lm-evaluation-harness with what it includes."""
    own = yaml.load((HARNESS / name).read_text("utf-8"), Loader=Loader)
    return (read(own["include"]) if "include" in own else {}) | own


@pytest.fixture(scope="module")
def contrasts(import_file):
    """The functions that the files name."""
    return import_file(HARNESS / "contrasts.py")


def rows_of(data, config):
    return pq.read_table(data / config).to_pylist()


def test_every_contrast_is_asked_once_with_the_texts_of_its_rows(contrasts, demo_dir):
    asked = {}
    for task in TASKS:
        config = read(f"{task}.yaml")
        assert (config["task"], config["output_type"]) == (task, "multiple_choice")
        assert (config["dataset_path"], config["test_split"]) == ("lmdiag", "test")
        assert config["num_fewshot"] == 0
        data = rows_of(demo_dir, config["dataset_name"])
        docs = getattr(contrasts, config["process_docs"].removeprefix("contrasts."))(data)
        for name in ("doc_to_text", "doc_to_choice", "doc_to_target"):
            assert config[name] in {*docs.column_names, "{{targets[0]}}"}
        measured = contrasts.measures(docs[0], [(-1.0, False)] * len(docs[0]["choices"]))
        assert [metric["metric"] for metric in config["metric_list"]] == list(measured)
        assert {metric["aggregation"] for metric in config["metric_list"]} == {"mean"}
        asked.setdefault(config["dataset_name"], []).extend(docs["contrast"])
        for doc in docs:
            rows = [row for row in data if row["contrast"] == doc["contrast"]]
            n = len(rows)
            texts = [f"{row['context']} {row['target']}" for row in rows]
            if task == "lmdiag_agreement":
                texts = [text[0].upper() + text[1:] for text in texts]
            assert [f"{doc['shared']} {choice}" for choice in doc["choices"][:n]] == texts
            assert [i for i, row in enumerate(rows) if row["good"]] == [doc["good"]]
            assert doc["targets"] == [row["target"] for row in rows]
            if parts := doc["choices"][n:]:
                assert [f"{doc['shared']} {part}" for part in parts] == doc["contexts"]
            else:
                assert len(set(doc["contexts"])) == 1
    for config, names in asked.items():
        assert sorted(names) == sorted({row["contrast"] for row in rows_of(demo_dir, config)})
    group = read("lmdiag.yaml")
    assert sorted([*group["task"], "lmdiag_agreement"]) == TASKS
    assert "aggregate_metric_list" not in group


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
def test_measures_of_a_contrast(contrasts, log_probs, good, acc, at_threshold):
    """What belongs to the contexts, after the two choices, is subtracted."""
    doc = {"targets": ["insect", "tool"], "good": good}
    measures = contrasts.measures(doc, [(value, False) for value in log_probs])
    assert measures == {"acc": acc, "sensitivity@0.01": at_threshold}


@pytest.mark.usefixtures("stand_ins")
def test_lighteval_asks_every_contrast_once(import_file, demo_dir, monkeypatch):
    tasks = import_file(FOLDER / "lighteval/diagnostics.py")
    monkeypatch.setattr(tasks, "load_dataset", lambda data, name, split: rows_of(demo_dir, name))
    asked = {}
    for table in tasks.TASKS_TABLE:
        for row in rows_of(demo_dir, table.hf_subset):
            if doc := table.prompt_function(row, table.name):
                contrast = doc.specific
                asked.setdefault(table.hf_subset, Counter())[contrast["contrast"]] += 1
                choices = [f" {choice}" for choice in contrast["choices"]]
                assert (doc._0, doc._1, doc._2) == (contrast["shared"], choices, contrast["good"])
    assert set(asked) == {"cprag102", "role88", "neg136", "agreement"}
    for config, counts in asked.items():
        assert counts == dict.fromkeys((row["contrast"] for row in rows_of(demo_dir, config)), 1)
    # p(good) = e^-1 - 0.36 = 0.008 above p(bad): preferred, but not by more than 0.01
    doc = Given(specific={"targets": ["bird", "tool"], "good": 0})
    measures = tasks.Preference().compute(doc, Given(logprobs=[-1.0, math.log(0.36)]))
    assert measures == {"acc": 1.0, "sensitivity@0.01": 0.0}


@pytest.mark.usefixtures("stand_ins")
def test_inspect_asks_every_context_once_and_reads_the_first_tokens(import_file, demo_dir):
    tasks = import_file(FOLDER / "inspect-ai/diagnostics.py")
    rows = rows_of(demo_dir, "neg136")
    samples = tasks.contexts(rows)
    assert [sample._0 for sample in samples] == [row["context"] for row in rows if row["expected"]]
    first = next(sample for sample in samples if sample._0 == "A robin is a")
    assert (first.target, first.metadata) == (["bird"], {"part": "simp"})
    for tokens, *expected in (
        (["Ġfish", "Ġbird", "Ġtree"], 0, 1),  # second: not the first word, among the first five
        (["bird", "Ġtree", "Ġbird"], 0, 1),  # without the mark of a beginning it continues a word
        (["Ġfish", "bird"], 0, 0),
    ):
        entries = [Given(token=token) for token in tokens]
        logprobs = Given(content=[Given(top_logprobs=entries)])
        state = Given(output=Given(choices=[Given(logprobs=logprobs)]))
        scoring = tasks.first_tokens()(state, first.target)
        with ThreadPoolExecutor() as pool:  # a browser of another test has this thread's loop
            score = pool.submit(asyncio.run, scoring).result()
        assert [score.value[f"accuracy_at_{k}"] for k in (1, 5)] == expected


@pytest.mark.usefixtures("stand_ins")
def test_inspect_compares_the_last_words_of_prompts(import_file, demo_dir):
    tasks = import_file(FOLDER / "inspect-ai/diagnostics.py")
    rows = rows_of(demo_dir, "neg136")
    samples = tasks.completions(rows)
    assert [s._0 for s in samples] == [f"{row['context']} {row['target']}" for row in rows]
    parts = {sample.metadata["part"] for sample in samples}
    assert parts == {"simp_affirmative", "simp_negative", "nat"}
    for tokens, expected in (
        ([(" a", -9.0), (" b", -1.0), ("ird", -0.5)], -1.5),
        ([(" a", -9.0), ("bird", -2.0)], -2.0),  # SentencePiece decodes a word without its space
        ([(" a", -9.0), (" ", -0.25), ("bird", -2.0)], -2.25),
        ([(" ab", -9.0), ("ird", -2.0)], math.nan),
    ):
        assert tasks.log_prob_of_last_word(tokens, "bird") == pytest.approx(expected, nan_ok=True)
    # p(good) = e^-1 = .368, above .36 by less than .01; the second contrast has no bad row yet
    contrasts = (("x", True, -1.0), ("x", False, math.log(0.36)), ("y", True, -1.0))
    scores = [
        Given(
            score=Given(as_float=lambda value=value: value),
            sample_metadata={"contrast": contrast, "good": good},
        )
        for contrast, good, value in contrasts
    ]
    assert tasks.sensitivity()(scores) == 1
    assert tasks.sensitivity(0.01)(scores) == 0


@pytest.fixture
def benchmark(demo_dir):
    """The tasks of `eval.yaml`, which Inspect runs from this file alone."""
    return yaml.safe_load((demo_dir / "eval.yaml").read_text("utf-8"))["tasks"]


def test_forced_choices_ask_each_contrast_in_every_order(demo_dir, benchmark):
    asked = Counter()
    for task in benchmark:
        rows = rows_of(demo_dir, task["config"])
        source = rows_of(demo_dir, task["config"].partition("_")[0])
        right = {row["contrast"]: row["target"] for row in source if row["good"]}
        for contrast in {row["contrast"] for row in rows}:
            questions = [row for row in rows if row["contrast"] == contrast]
            m = len(questions[0]["choices"])
            good = [row["choices"]["ABC".index(row["target"])] for row in questions]
            assert sorted(row["target"] for row in questions) == list("ABC"[:m])
            assert len(set(good)) == 1
            assert right[contrast] in re.split(r"[ .]", good[0])
            asked[contrast] += 1
        assert task["field_spec"].items() >= {x: x for x in ("input", "choices", "target")}.items()
        names = [x["name"] for part in ("solvers", "scorers") for x in task[part]]
        assert names == ["multiple_choice", "choice"]
    contrasts = {
        row["contrast"]
        for task in ("cprag102", "role88", "neg136")
        for row in rows_of(demo_dir, task)
    }
    assert asked == dict.fromkeys(contrasts, 1)
    shown = next(x for x in rows_of(demo_dir, "neg136_simp_negative_choice") if "-4-" in x["id"])
    assert shown["choices"] == ["A robin is not a tree.", "A robin is not a bird."]


def test_inspect_accepts_the_tasks_of_the_benchmark(benchmark):
    hf = pytest.importorskip("inspect_ai._eval.task.hf", reason="inspect_ai is not installed")
    for task in benchmark:
        assert hf.HFTask.model_validate(task).id == task["id"]
