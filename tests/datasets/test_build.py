"""`build.py` and the builder as users run them, and what other programs make of the result."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import build as script
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard
from leaving import LEAVE
from limits import HANG
from loading.builder import Lmdiag
from loading.columns import COLUMNS, features
from loading.directory import write_data_set

CONFIGS = list(COLUMNS)
DIAGNOSTICS = ["cprag102", "role88", "neg136"]


def run(*arguments: object) -> tuple[int, str]:
    """Runs `build.py` in this process; returns its exit code and standard error."""
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        try:
            code = script.main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse's
            code = int(end.code or 0)
    return code, error.getvalue()


def build_demo(out: Path, *options: object) -> None:
    assert run(out, "--source", "demo", *options) == (0, "")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def entries(folder: Path) -> list[dict[str, Any]]:
    """The YAML `configs:` of the card."""
    return yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])["configs"]


def configs(folder: Path) -> list[str]:
    return [entry["config_name"] for entry in entries(folder)]


def provenance(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "provenance.json").read_text("utf-8"))


# ---- what is written -----------------------------------------------------------------------------


def test_every_config_of_the_demo_is_built_by_default(demo_dir: Path) -> None:
    assert configs(demo_dir) == CONFIGS
    defaults = [entry.get("default") for entry in entries(demo_dir)]
    assert defaults == [True, None, None, None, None]
    digests = provenance(demo_dir)["outputs"]
    for entry in entries(demo_dir):
        (file,) = entry["data_files"]
        assert file["split"] == "test"
        assert digests[file["path"]] in entry["description"]


def test_a_second_build_gives_the_same_bytes(demo_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "folder"
    for _ in range(2):  # into a new directory, and over the existing one
        build_demo(out)
        assert contents(out) == contents(demo_dir)
    assert names(out.parent) == ["folder"]


@pytest.mark.slow
def test_the_built_directory_builds_itself(demo_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(demo_dir, tmp_path / "copy")
    for out in (tmp_path / "again", copy):
        command = [sys.executable, str(copy / "build.py"), str(out), "--source", "demo"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=HANG)
        shutil.rmtree(copy / "loading" / "__pycache__", ignore_errors=True)
        assert contents(out) == contents(demo_dir)


def test_provenance_has_every_file(demo_dir: Path, scripts: Path) -> None:
    record = provenance(demo_dir)
    files = contents(demo_dir)
    del files["provenance.json"]
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    assert record["outputs"] == digests
    assert record["source"] == "demo"
    for config, facts in record["configs"].items():
        (file,) = (demo_dir / config).glob("*.parquet")
        assert facts["rows"] == pq.read_metadata(file).num_rows
        assert facts["commit"] is None
        for path, digest in facts["inputs"].items():
            assert hashlib.sha256((scripts / "demo" / path).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("folder", ["lm-evaluation-harness", "lighteval", "inspect-ai"])
def test_task_files_are_built_with_the_data(demo_dir: Path, scripts: Path, folder: str) -> None:
    source = {path.name: path.read_bytes() for path in (scripts / folder).glob("*.*")}
    assert contents(demo_dir / folder) == source


def test_provenance_of_the_published_files(data_dir: Path) -> None:
    record = provenance(data_dir)["configs"]
    card = (data_dir / "README.md").read_text("utf-8")
    assert list(record) == DIAGNOSTICS
    for facts in record.values():
        assert facts["repository"] == "aetting/lm-diagnostics"
        assert facts["commit"] == "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
        assert all(digest in card for digest in facts["inputs"].values())
    licence = (data_dir / "licenses/lm-diagnostics.txt").read_text("utf-8")
    assert "Copyright (c) 2020 Allyson Ettinger" in licence


def test_one_repository_is_enough_and_changed_files_are_not_the_published_ones(
    upstream: Path, tmp_path: Path
) -> None:
    tree = shutil.copytree(upstream / "lm-diagnostics", tmp_path / "tree")
    path = tree / "datasets/NEG-136/NEG-136-NAT.tsv"
    path.chmod(0o644)
    path.write_text(path.read_text("utf-8").replace("soft", "hairy"), "utf-8")
    assert run(tmp_path / "out", "--source", tree) == (0, "")
    assert configs(tmp_path / "out") == DIAGNOSTICS
    facts = provenance(tmp_path / "out")["configs"]
    assert facts["neg136"]["commit"] is None
    assert facts["role88"]["commit"] is not None
    assert "not the bytes of the pinned commit" in (tmp_path / "out/README.md").read_text("utf-8")


def test_configs_can_be_chosen_and_earlier_ones_go(demo_dir: Path, tmp_path: Path) -> None:
    out = shutil.copytree(demo_dir, tmp_path / "out")
    (out / ".git").mkdir()
    (out / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    build_demo(out, "--configs", "neg136", "verbs")
    assert configs(out) == ["neg136", "verbs"]
    assert not (out / "cprag102").exists()
    assert (out / ".git" / "HEAD").exists()  # what was not built here is left alone


def test_the_card_follows_the_conventions_of_the_hub(demo_dir: Path, data_dir: Path) -> None:
    card = DatasetCard.load(demo_dir / "README.md")
    data = card.data.to_dict()
    assert (data["license"], data["language"]) == ("mit", ["en"])
    assert data["size_categories"] == ["1K<n<10K"]  # 54 + 32 + 104 + 760 + 461
    assert {"fill-mask", "text-generation"} <= set(data["task_categories"])
    for words in (
        "## A worked example", "## Known limits", "## Citation", "ettinger-2020-bert",
        "newman-etal-2021-refining", "English", "Drawn from published studies", "Few items",
    ):  # fmt: skip
        assert words in card.text
    for folder, built in ((demo_dir, CONFIGS[:4]), (data_dir, DIAGNOSTICS)):
        tasks = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))["tasks"]
        assert len({task["id"] for task in tasks}) == len(tasks)
        assert {(task["config"], task["split"]) for task in tasks} == {(c, "test") for c in built}


def test_the_example_of_the_card_is_true(demo_dir: Path) -> None:
    rows = pq.read_table(demo_dir / "neg136").to_pylist()
    text = (demo_dir / "README.md").read_text("utf-8")
    for row in rows[16:20]:
        cells = (f"`{row['id']}`", row["context"], row["target"], str(row["good"]).lower())
        assert f"| {' | '.join(cells)} | `{row['contrast']}` |" in text
    assert rows[16]["expected"] == ["bird"]


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--source demo --configs negg", "unknown config 'negg' (did you mean 'neg136'?): choose"),
        ("--source nowhere", "no directory nowhere: --source is upstream, demo or a dir"),
        ("--source .", ". has no source files such as datasets/CPRAG-102/CPRAG-102.tsv"),
        ("--sauce demo", "unrecognized arguments: --sauce"),
        ("", "use --source demo, or --source DIR"),
    ],
)
def test_mistakes_give_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    code, error = run("out", *arguments.split())
    assert code == 2
    assert message in error.splitlines()[-1]
    assert "Traceback" not in error
    assert names(tmp_path / "work") == []


def test_a_failed_build_leaves_the_data_set_as_it_was(
    tree: Path, demo_dir: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(demo_dir, tmp_path / "out")
    before = contents(out)
    verbs = tree / "refining-tse/data/verbs/combined_verb_list.csv"
    verbs.write_text(verbs.read_text("utf-8") + "_,goes\n", "utf-8")
    lines = len(verbs.read_text("utf-8").splitlines())
    code, error = run(out, "--source", tree)
    assert code == 2
    assert f"combined_verb_list.csv:{lines}: expected idx,sing,plur,freq" in error
    assert len(error.splitlines()) == 1
    (tree / "lm-diagnostics/datasets/CPRAG-102/CPRAG-explanations.tsv").unlink()
    code, error = run(out, "--source", tree)
    assert code == 2
    assert "CPRAG-explanations.tsv is missing: cprag102 is made from it" in error
    assert contents(out) == before
    assert names(tmp_path) == ["out", "tree"]


def test_the_folders_of_killed_builds_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getppid()):
        (tmp_path / f".out.{process}.building" / "new").mkdir(parents=True)
    build_demo(tmp_path / "out", "--configs", "verbs")
    assert names(tmp_path) == [f".out.{os.getppid()}.building", "out"]  # that process is alive


def test_other_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("It was")
    for out, message in (("thesis", "is not a data set built"), ("thesis/chapter.txt", "a file")):
        code, error = run(tmp_path / out, "--source", "demo")
        assert code == 2
        assert message in error
    assert contents(tmp_path / "thesis") == {"chapter.txt": b"It was"}


def test_help_does_not_wait_for_datasets(scripts: Path) -> None:
    command = [sys.executable, "-X", "importtime", str(scripts / "build.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--source" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "argparse" in imported
    assert imported.isdisjoint({"datasets", "pyarrow", "yaml", "numpy"})


# ---- datasets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_has_its_builder(config: str, tmp_path: Path) -> None:
    assert [each.name for each in Lmdiag.BUILDER_CONFIGS] == CONFIGS
    builder = Lmdiag(config_name=config, source="demo", cache_dir=str(tmp_path))
    assert builder.info.features == features(config)
    assert list(builder.info.features) == list(COLUMNS[config])
    builder.download_and_prepare()
    assert list(builder.as_dataset()) == ["test"]
    assert builder.as_dataset(split="test").num_rows > 0


def test_the_builder_reads_changed_source_files_again(tree: Path, tmp_path: Path) -> None:
    path = tree / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    for subject in ("trout", "perch"):
        path.write_text(path.read_text("utf-8").replace("A trout is", f"A {subject} is"), "utf-8")
        builder = Lmdiag(config_name="neg136", source=str(tree), cache_dir=str(tmp_path / "cache"))
        builder.download_and_prepare()
        assert builder.as_dataset(split="test")[0]["context"] == f"A {subject} is a"


LOAD = """
import json, sys
from datasets import load_dataset
rows = load_dataset("lmdiag", sys.argv[1], split="test")
features = {name: str(kind) for name, kind in rows.features.items()}
print(json.dumps([rows.num_rows, rows[0], features]))
"""


def load(folder: Path, config: str, caches: Path) -> list:
    """`load_dataset("lmdiag", config)` in a new process next to the directory, offline."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(caches)}
    command = [sys.executable, "-c", LOAD + LEAVE, config]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_load_dataset_next_to_the_directory(data_dir: Path, tmp_path: Path) -> None:
    count, first, types = load(data_dir.parent, "neg136", tmp_path)
    assert (count, first["id"]) == (136, "neg136-simp-0-TA")
    assert (types["expected"], types["natural"]) == ("List(Value('string'))", "Value('bool')")


@pytest.mark.slow
def test_load_dataset_after_a_rebuild_with_other_rows(tree: Path, tmp_path: Path) -> None:
    """The cache returns neither the rows of an earlier build nor those of another directory."""
    caches = tmp_path / "caches"
    source = tree / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    text = source.read_text("utf-8")
    for folder, subject in (("one", "trout"), ("one", "perch"), ("two", "tench")):
        source.write_text(text.replace("A trout is", f"A {subject} is"), "utf-8")
        write_data_set(tmp_path / folder / "lmdiag", str(tree), ["neg136"])
        assert load(tmp_path / folder, "neg136", caches)[1]["context"] == f"A {subject} is a"
    assert load(tmp_path / "one", "neg136", caches)[1]["context"] == "A perch is a"
