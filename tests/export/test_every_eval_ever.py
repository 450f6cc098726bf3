"""`lmdiag export`: the records of Every Eval Ever, checked against what its schema 0.3.0 asks.

The project's own validator runs in `tests/peers/validate_every_eval_ever.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from report.forms import run_on, write_pairs, write_sentences, write_suites
from runs import PERTURBED, WITH_AGREEMENT, make_run

from lmdiag.cli import main
from lmdiag.export import EXPORT_FORMATS, Provenance, export_run
from lmdiag.export.every_eval_ever import COLLECTION, SCHEMA
from lmdiag.export.metrics import metric_of, parameters_of
from lmdiag.protocol import Protocol
from lmdiag.results import Run, load_run
from lmdiag.stimuli.building import script
from lmdiag.types import BadInput

FORMAT = "every-eval-ever"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
NEEDED = {
    "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info",
    "eval_library", "evaluation_results",
}  # fmt: skip
NEEDED_OF_SAMPLES = {
    "schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id",
    "interaction_type", "input", "answer_attribution", "evaluation", "output",
}  # fmt: skip
FURTHER = {"evaluation_timestamp", "detailed_evaluation_results"}
FURTHER_OF_SAMPLES = {"evaluation_result_id", "sample_hash", "metadata"}


def exported(run: Run, folder: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The record of a run, and those of its items."""
    file, *samples = export_run(run, FORMAT, folder, Provenance(**options))
    lines = samples[0].read_text("utf-8").splitlines() if samples else []
    return json.loads(file.read_text("utf-8")), [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def runs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs with every measure that there is."""
    folder = tmp_path_factory.mktemp("exported")

    def blanks(name: str, protocol: Protocol) -> Run:
        return load_run(make_run(folder / name, demo_dir, protocol, unscorable=1))

    own = folder / "own.csv"
    own.write_text("context,target,kind\n" + "".join(f"A {i},w{i},{i % 2}\n" for i in range(4)))
    return {
        "perturbed": blanks("perturbed", PERTURBED),
        "agreement": blanks("agreement", WITH_AGREEMENT),
        "own": run_on(own, folder / "own"),
        "pairs": run_on(write_pairs(folder / "data/pairs"), folder / "pairs"),
        "suites": run_on(write_suites(folder / "data/suites"), folder / "suites"),
        "sentences": run_on(write_sentences(folder / "s.csv"), folder / "sentences"),
    }


RUNS = ("perturbed", "agreement", "own", "pairs", "suites", "sentences")


def texts(record: Any) -> Iterator[Any]:
    """The values of all objects of which the schema says that they are texts."""
    if isinstance(record, dict):
        for key, value in record.items():
            if key in ("additional_details", "details", "metadata"):
                yield from value.values()
            else:
                yield from texts(value)
    elif isinstance(record, list):
        for each in record:
            yield from texts(each)


@pytest.mark.parametrize("name", RUNS)
def test_records_have_the_form_of_the_schema(
    runs: dict[str, Run], name: str, tmp_path: Path
) -> None:
    record, samples = exported(runs[name], tmp_path)
    assert NEEDED <= set(record) <= NEEDED | FURTHER
    assert record["schema_version"] == SCHEMA
    assert all(isinstance(value, str) for value in texts([record, samples]))
    for one in record["evaluation_results"]:
        score, metric = one["score_details"], one["metric_config"]
        low, high = float(metric["min_score"]), float(metric["max_score"])
        assert metric["score_type"] == "continuous"
        assert low <= score["score"] <= high
        interval = score["uncertainty"].get("confidence_interval", {"lower": low, "upper": high})
        assert interval["lower"] <= interval["upper"]
        assert score["uncertainty"]["num_samples"] > 0
        assert one["source_data"]["source_type"] == "other"
    for sample in samples:
        assert NEEDED_OF_SAMPLES <= set(sample) <= NEEDED_OF_SAMPLES | FURTHER_OF_SAMPLES
        assert sample["evaluation_id"] == record["evaluation_id"]
        assert sample["model_id"] == record["model_info"]["id"] == "org/model"
        for part in (sample["input"]["reference"], sample["output"]["raw"]):
            assert all(isinstance(text, str) for text in part)
        assert all(isinstance(one["extracted_value"], str) for one in sample["answer_attribution"])


@pytest.mark.parametrize("name", RUNS)
def test_items_give_the_figures(runs: dict[str, Run], name: str, tmp_path: Path) -> None:
    """The mean of the items of a figure is the figure (the median for ranks), and so is n."""
    record, samples = exported(runs[name], tmp_path)
    scores = defaultdict(list)
    for sample in samples:
        scores[sample["evaluation_result_id"]].append(sample["evaluation"]["score"])
    figures = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert set(scores) <= set(figures)
    assert len(figures) == len(record["evaluation_results"])
    for key, one in figures.items():
        whole = "=" not in key
        if not whole or metric_of(key.split("/")[2]).over is None:
            assert key not in scores
            continue
        details = one["score_details"]
        n_shuffles = int(details["details"].get("shuffles", 1))
        assert len(scores[key]) == n_shuffles * details["uncertainty"]["num_samples"]
        if not key.endswith("/rank"):
            mean = math.fsum(scores[key]) / len(scores[key])
            assert mean == pytest.approx(details["score"], abs=1e-12)
    assert len({(s["evaluation_result_id"], s["sample_id"]) for s in samples}) == len(samples)


def test_all_figures_of_the_model_are_in_the_record(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["perturbed"]
    record, _ = exported(run, tmp_path)
    values = {
        "/".join([*place[:3], *([f"{place.by}={place.level}"] if place.by else [])]): figure
        for place, figure in run.results.figures()
    }
    ours = {key: each for key, each in values.items() if each.value is not None}
    human = {key for key in ours if "human" in key or "cloze_difference" in key}
    assert human
    assert len(values) > len(ours)  # both nouns of ROLE-88 replaced: nothing to compare
    shown = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert set(shown) == set(ours) - human
    for key, one in shown.items():
        assert one["score_details"]["score"] == ours[key].value
    first = json.loads(shown["neg136/none/sensitivity"]["score_details"]["details"]["unscorable"])
    assert first == [run.stimuli["neg136"].columns()["id"][0]]


def test_the_files_lie_where_the_data_store_has_them(runs: dict[str, Run], tmp_path: Path) -> None:
    file, samples = export_run(runs["pairs"], FORMAT, tmp_path, Provenance("google-bert/bert"))
    assert file.parent == tmp_path / "data" / COLLECTION / "google-bert/bert"
    assert UUID.fullmatch(file.stem)
    assert samples == file.with_name(f"{file.stem}_samples.jsonl")
    record = json.loads(file.read_text())
    said = record["detailed_evaluation_results"]
    content = samples.read_bytes()
    assert said == {
        "format": "jsonl", "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(content).hexdigest(), "total_rows": len(content.splitlines()),
        "file_path": samples.relative_to(tmp_path).as_posix(),
    }  # fmt: skip
    assert {path.name for path in file.parent.iterdir()} == {file.name, samples.name}
    assert record["model_info"]["id"] == "google-bert/bert"
    assert record["model_info"]["developer"] == "google-bert"


def test_an_item_in_full(tmp_path: Path) -> None:
    """A row and a contrast of a planted model: the good completion has 0.6, the bad one 0.3."""
    rows = tmp_path / "cups.csv"
    rows.write_text(
        "id,contrast,good,context,right_context,target,expected\n"
        "r1,c1,true,She drinks a cup of,with milk.,tea,tea\n"
        "r2,c1,false,She drinks a cup of,with milk.,sand,\n"
    )
    run = run_on(rows, tmp_path / "run", skill=50.0)
    _, samples = exported(run, tmp_path)
    accuracy = next(s for s in samples if s["evaluation_result_id"] == "cups/none/accuracy@1")
    assert accuracy["sample_id"] == "r1"
    assert accuracy["input"] == {
        "raw": "She drinks a cup of ____ with milk.", "reference": ["tea"],
    }  # fmt: skip
    assert accuracy["output"] == {"raw": ["tea"]}
    assert accuracy["evaluation"] == {"score": 1.0, "is_correct": True}
    recipe = '{"raw":"She drinks a cup of ____ with milk.","reference":["tea"]}'
    assert accuracy["sample_hash"] == hashlib.sha256(recipe.encode()).hexdigest()
    contrast = next(s for s in samples if s["evaluation_result_id"] == "cups/none/sensitivity")
    assert contrast["sample_id"] == "c1"
    assert contrast["input"] == {
        "raw": "She drinks a cup of ____ with milk.",
        "reference": ["tea"],
        "choices": ["tea", "sand"],
    }
    assert contrast["answer_attribution"][0]["extracted_value"] == "tea"
    log_probs = json.loads(contrast["metadata"]["log_probs"])
    assert log_probs == run.predictions["cups"]["none", 0].log_prob


def test_contexts_that_differ_are_choices_in_full(runs: dict[str, Run], tmp_path: Path) -> None:
    _, samples = exported(runs["perturbed"], tmp_path)
    one = next(s for s in samples if s["evaluation_result_id"] == "role88/none/sensitivity")
    contexts = one["input"]["raw"].split("\n")
    assert len(contexts) == len(one["input"]["choices"]) == 2
    for context, choice in zip(contexts, one["input"]["choices"], strict=True):
        assert choice.startswith(context.removesuffix("____"))
    assert one["output"]["raw"][0] in one["input"]["choices"]
    right = one["output"]["raw"] == one["input"]["reference"]
    assert right == one["evaluation"]["is_correct"]


def test_where_the_rows_come_from(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["agreement"]

    def source(folder: str, **changes: Any) -> dict[str, Any]:
        stimuli = {task: replace(rows, **changes) for task, rows in run.stimuli.items()}
        record, _ = exported(Run(run.path, run.results, stimuli), tmp_path / folder)
        found: dict[str, Any] = record["evaluation_results"][0]["source_data"]
        return found

    commit = script("sources").pinned()["lm-diagnostics"]["commit"]
    url = f"https://github.com/aetting/lm-diagnostics/tree/{commit}"
    assert source("built", source="lmdiag", revision=commit)["url"] == [url]
    hub = source("hub", source="org/lmdiag", revision="b" * 40)
    assert (hub["source_type"], hub["hf_repo"], hub["hf_split"]) == (
        "hf_dataset", "org/lmdiag", "test",
    )  # fmt: skip
    assert hub["additional_details"]["commit"] == "b" * 40
    own = source("own", source="/home/me/rows.csv", revision=None)
    assert (own["source_type"], own["dataset_name"]) == ("other", "rows.csv")


def test_two_runs_of_a_model_have_two_names_and_one_run_has_one(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    first, *_ = export_run(runs["pairs"], FORMAT, tmp_path, Provenance())
    second, *_ = export_run(runs["suites"], FORMAT, tmp_path, Provenance())
    again, *_ = export_run(runs["pairs"], FORMAT, tmp_path, Provenance(), overwrite=True)
    assert first == again != second


# ---- the command ---------------------------------------------------------------------------------


def test_the_command(command: Commands) -> None:
    run = make_run(
        command.folder / "run", command.data, id="demo:masked", commit="sha256:" + "a" * 16
    )
    arguments = ("export", run, "--format", FORMAT, "--output", command.folder)
    options = ("--organization", "A Lab", "--relationship", "third_party")
    code, out, err = command(*arguments, *options)
    assert (code, err) == (0, "")
    file = Path(out.splitlines()[0].removeprefix("Saved in "))
    assert file.parent == command.folder / "data/lmdiag/lmdiag/demo-masked"
    assert json.loads(file.read_text())["source_metadata"] == {
        "source_name": "lmdiag", "source_type": "evaluation_run",
        "source_organization_name": "A Lab", "evaluator_relationship": "third_party",
    }  # fmt: skip
    before = file.read_bytes()
    assert "exists already" in command.refused(*arguments)
    assert file.read_bytes() == before
    assert command(*arguments, "--overwrite")[0] == 0


def test_what_cannot_be_exported(command: Commands) -> None:
    empty = command.folder / "empty"
    empty.mkdir()
    assert "is not a finished run" in command.refused("export", empty, "--format", FORMAT)
    run = make_run(command.folder / "run", command.data, id="gpt2")
    arguments = ("export", run, "--output", command.folder / "out")
    assert "--format" in command.refused(*arguments)
    assert "every-eval-ever" in command.refused(*arguments, "--format", "every-eval-evr")
    assert "--model-id ORG/NAME" in command.refused(*arguments, "--format", FORMAT)
    for name in ("gpt2", "a/b/c", "a b/c", "../x"):
        refusal = command.refused(*arguments, "--format", FORMAT, "--model-id", name)
        assert "ORG/NAME" in refusal
    assert not (command.folder / "out").exists()


def test_a_damaged_run_leaves_nothing(command: Commands) -> None:
    run = make_run(command.folder / "run", command.data)
    (run / "predictions.parquet").write_bytes(b"no")
    command.refused("export", run, "--format", FORMAT, "--output", command.folder / "out")
    assert not [path for path in (command.folder / "out").rglob("*") if path.is_file()]


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(BadInput, match="recall@5 is not a measure"):
        metric_of("recall@5")


def test_help_names_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in EXPORT_FORMATS)


@pytest.mark.parametrize("name", ["sensitivity@0&01", "accuracy@²", "accuracy@nan", "accuracy@"])
def test_a_measure_has_a_number_as_its_parameter_or_none(name: str) -> None:
    if name == "accuracy@":
        assert parameters_of(name) == {}
        return
    with pytest.raises(BadInput, match=r"is not a measure of this version"):
        parameters_of(name)
    for known, value in (
        ("sensitivity@1e-05", 1e-5),
        ("sensitivity@0.01", 0.01),
        ("accuracy@5", 5),
    ):
        assert [*parameters_of(known).values()] == [value]
