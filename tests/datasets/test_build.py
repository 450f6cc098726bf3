"""`build.py` as a user runs it, and what other programs make of the directory it writes."""

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

import build as script
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard
from leaving import LEAVE
from limits import HANG
from loading.directory import build

CONFIGS = ["cprag102", "role88", "neg136", "agreement", "verbs"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `build.py` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = script.main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse's
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run_copy(folder: Path, *arguments: object, cwd: Path) -> int:
    """Runs the `build.py` of a folder as a program of its own."""
    command = [sys.executable, str(folder / "build.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, check=False, timeout=HANG).returncode


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def front_matter(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])


def test_every_config_of_the_demo_is_built_by_default(demo_dir: Path) -> None:
    entries = front_matter(demo_dir)["configs"]
    assert [entry["config_name"] for entry in entries] == CONFIGS
    assert [entry.get("default") for entry in entries] == [True, None, None, None, None]
    for entry in entries:
        (file,) = entry["data_files"]
        assert file["split"] == "test"
        digest = hashlib.sha256((demo_dir / file["path"]).read_bytes()).hexdigest()
        assert digest in entry["description"]


def test_a_second_build_gives_the_same_bytes(demo_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "elsewhere"
    for _ in range(2):  # into a new directory, and over the one that is there
        assert run(out, "--source", "demo").returncode == 0
        assert contents(out) == contents(demo_dir)
    assert names(out.parent) == ["elsewhere"]  # nothing is left beside it


@pytest.mark.slow
def test_the_built_directory_builds_itself(demo_dir: Path, tmp_path: Path) -> None:
    """What is published holds all that is needed to make it again."""
    copy = shutil.copytree(demo_dir, tmp_path / "copy")
    assert run_copy(copy, "again", "--source", "demo", cwd=tmp_path) == 0
    assert contents(tmp_path / "again") == contents(demo_dir)
    assert run_copy(copy, copy, "--source", "demo", cwd=tmp_path) == 0
    shutil.rmtree(copy / "loading" / "__pycache__", ignore_errors=True)
    assert contents(copy) == contents(demo_dir)


def test_provenance_has_every_file(demo_dir: Path, scripts: Path) -> None:
    record = json.loads((demo_dir / "provenance.json").read_text("utf-8"))
    found = {
        path: hashlib.sha256(content).hexdigest()
        for path, content in contents(demo_dir).items()
        if path != "provenance.json"
    }
    assert record["outputs"] == found
    assert record["source"] == "demo"
    for config, facts in record["configs"].items():
        (file,) = (demo_dir / config).glob("*.parquet")
        assert facts["rows"] == pq.read_metadata(file).num_rows
        assert facts["commit"] is None
        for path, digest in facts["inputs"].items():
            assert hashlib.sha256((scripts / "demo" / path).read_bytes()).hexdigest() == digest


def test_provenance_of_the_published_files(data_dir: Path) -> None:
    record = json.loads((data_dir / "provenance.json").read_text("utf-8"))
    assert set(record["configs"]) == {"cprag102", "role88", "neg136"}
    for facts in record["configs"].values():
        assert facts["repository"] == "aetting/lm-diagnostics"
        assert facts["commit"] == "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
    card = (data_dir / "README.md").read_text("utf-8")
    for facts in record["configs"].values():
        assert all(digest in card for digest in facts["inputs"].values())
    assert "Copyright (c) 2020 Allyson Ettinger" in (
        data_dir / "licenses/lm-diagnostics.txt"
    ).read_text("utf-8")


def test_one_repository_is_enough(upstream: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "out", "--source", upstream / "lm-diagnostics")
    assert done.returncode == 0, done.stderr
    entries = front_matter(tmp_path / "out")["configs"]
    assert [entry["config_name"] for entry in entries] == ["cprag102", "role88", "neg136"]


def test_changed_sources_are_told_from_the_published_ones(upstream: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(upstream / "lm-diagnostics", tree)
    path = tree / "datasets/NEG-136/NEG-136-NAT.tsv"
    path.chmod(0o644)
    path.write_text(path.read_text("utf-8").replace("soft", "hairy"), "utf-8")
    assert run(tmp_path / "out", "--source", tree).returncode == 0
    facts = json.loads((tmp_path / "out/provenance.json").read_text("utf-8"))["configs"]
    assert facts["neg136"]["commit"] is None
    assert facts["role88"]["commit"] is not None
    assert "not the bytes of the pinned commit" in (tmp_path / "out/README.md").read_text("utf-8")


def test_the_card_keeps_the_hub_s_conventions(demo_dir: Path) -> None:
    card = DatasetCard.load(demo_dir / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "mit"
    assert data["language"] == ["en"]
    assert data["size_categories"] == ["1K<n<10K"]  # 54 + 32 + 104 + 760 + 461
    assert {"fill-mask", "text-generation"} <= set(data["task_categories"])
    for words in (
        "## A worked example", "## Known limits", "## Citation", "ettinger-2020-bert",
        "newman-etal-2021-refining", "English", "Drawn from published studies", "Few items",
    ):  # fmt: skip
        assert words in card.text
    tasks = yaml.safe_load((demo_dir / "eval.yaml").read_text("utf-8"))["tasks"]
    assert len({task["id"] for task in tasks}) == len(tasks)
    assert {(task["config"], task["split"]) for task in tasks} == {
        (config, "test") for config in CONFIGS if config != "verbs"
    }


def test_the_card_s_example_is_true(demo_dir: Path) -> None:
    rows = pq.read_table(demo_dir / "neg136").to_pylist()
    text = (demo_dir / "README.md").read_text("utf-8")
    for row in rows[16:20]:
        cells = (f"`{row['id']}`", row["context"], row["target"], str(row["good"]).lower())
        assert f"| {' | '.join(cells)} | `{row['contrast']}` |" in text
    assert rows[16]["expected"] == ["bird"]


def test_eval_yaml_leaves_out_what_is_not_built(data_dir: Path) -> None:
    tasks = yaml.safe_load((data_dir / "eval.yaml").read_text("utf-8"))["tasks"]
    assert {task["config"] for task in tasks} == {"cprag102", "role88", "neg136"}


def test_configs_can_be_chosen_and_earlier_ones_go(demo_dir: Path, tmp_path: Path) -> None:
    out = shutil.copytree(demo_dir, tmp_path / "out")
    (out / ".git").mkdir()
    (out / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    done = run(out, "--source", "demo", "--configs", "neg136", "verbs")
    assert done.returncode == 0, done.stderr
    assert [entry["config_name"] for entry in front_matter(out)["configs"]] == ["neg136", "verbs"]
    assert not (out / "cprag102").exists()
    assert (out / ".git" / "HEAD").exists()  # what was not built here is left alone


MISTAKES = {
    "config": (
        ["--source", "demo", "--configs", "negg"],
        "unknown config 'negg' (did you mean 'neg136'?): choose from cprag",
    ),
    "source": (
        ["--source", "nowhere"],
        "no directory nowhere: --source is upstream, demo or a dir",
    ),
    "empty": (
        ["--source", "."],
        ". holds no source files such as datasets/CPRAG-102/CPRAG-102.tsv",
    ),
    "arguments": (["--sauce", "demo"], "unrecognized arguments: --sauce"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_give_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, message = MISTAKES[case]
    done = run(tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert names(tmp_path) == []


def test_upstream_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    done = run(tmp_path / "out")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "use --source demo, or --source DIR" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tree: Path, tmp_path: Path) -> None:
    (tree / "lm-diagnostics/datasets/CPRAG-102/CPRAG-explanations.tsv").unlink()
    done = run(tmp_path / "out", "--source", tree)
    assert done.returncode == 2
    assert "CPRAG-explanations.tsv is missing: cprag102 is made from it" in done.stderr


def test_a_failed_build_leaves_the_data_set_as_it_was(
    tree: Path, demo_dir: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(demo_dir, tmp_path / "out")
    before = contents(out)
    verbs = tree / "refining-tse/data/verbs/combined_verb_list.csv"
    verbs.write_text(verbs.read_text("utf-8") + "_,goes\n", "utf-8")
    lines = len(verbs.read_text("utf-8").splitlines())
    done = run(out, "--source", tree)
    assert done.returncode == 2
    assert f"combined_verb_list.csv:{lines}: idx,sing,plur,freq are due" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert contents(out) == before
    assert names(tmp_path) == ["out", "tree"]


def test_what_a_killed_build_left_behind_is_swept(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getppid()):
        (tmp_path / f".out.{process}.building" / "new").mkdir(parents=True)
    assert run(tmp_path / "out", "--source", "demo", "--configs", "verbs").returncode == 0
    assert names(tmp_path) == [f".out.{os.getppid()}.building", "out"]  # this one lives


def test_other_people_s_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("It was")
    done = run(tmp_path / "thesis", "--source", "demo")
    assert done.returncode == 2
    assert "thesis holds something else than a data set built here" in done.stderr
    assert contents(tmp_path / "thesis") == {"chapter.txt": b"It was"}
    done = run(tmp_path / "thesis" / "chapter.txt", "--source", "demo")
    assert done.returncode == 2
    assert "chapter.txt is a file" in done.stderr


def test_help_does_not_wait_for_datasets(scripts: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(scripts / "build.py"), "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "--source" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "argparse" in imported
    assert imported.isdisjoint({"datasets", "pyarrow", "yaml", "numpy"})


LOAD = """
import json, sys
from datasets import load_dataset
rows = load_dataset("lmdiag", sys.argv[1], split="test")
features = {name: str(kind) for name, kind in rows.features.items()}
print(json.dumps([rows.num_rows, rows[0], features]))
"""


def load(folder: Path, config: str, caches: Path) -> list:
    """`load_dataset("lmdiag", config)` in a fresh process beside the directory, offline."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(caches)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD + LEAVE, config],
        capture_output=True, text=True, check=False, cwd=folder, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_load_dataset_beside_the_directory(data_dir: Path, tmp_path: Path) -> None:
    count, first, features = load(data_dir.parent, "neg136", tmp_path)
    assert count == 136
    assert first["id"] == "neg136-simp-0-TA"
    assert features["expected"] == "List(Value('string'))"
    assert features["natural"] == "Value('bool')"


@pytest.mark.slow
def test_load_dataset_after_a_rebuild_with_other_rows(tree: Path, tmp_path: Path) -> None:
    """Neither the rows of an earlier build come back from the cache, nor those of a namesake."""
    caches = tmp_path / "caches"
    source = tree / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    text = source.read_text("utf-8")

    def build_and_load(folder: str, subject: str) -> str:
        source.write_text(text.replace("A trout is", f"A {subject} is"), "utf-8")
        build(tmp_path / folder / "lmdiag", str(tree), ["neg136"])
        return load(tmp_path / folder, "neg136", caches)[1]["context"]

    assert build_and_load("one", "trout") == "A trout is a"
    assert build_and_load("one", "perch") == "A perch is a"  # the same size to the byte
    assert build_and_load("two", "tench") == "A tench is a"
    assert load(tmp_path / "one", "neg136", caches)[1]["context"] == "A perch is a"
