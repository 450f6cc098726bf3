"""`docs/migration.md`: its commands and blocks run, on files as the other programs write them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from test_original import write

from lmdiag.cli import main
from lmdiag.perturb import NAMES


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/migration.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(root: Path, demo_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a reader of the page: the data set, files of the original code, a template."""
    shutil.copytree(demo_dir, tmp_path / "lmdiag")
    write(tmp_path / "original", root / "datasets/lmdiag/demo")
    monkeypatch.chdir(tmp_path)
    assert main(["template"]) == 0
    return tmp_path


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def here(text: str) -> str:
    """A command or block with the demo model in the Hub's place."""
    return re.sub(r"\bgpt2\b", "demo:causal", text)


def test_everything_on_the_page_runs(
    page: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score, suite = (
        [shlex.split(here(line)) for line in block.splitlines()] for block in blocks(page, "bash")
    )
    printed = []
    for _, *arguments in score:
        assert main(arguments) == 0, arguments
        printed.append(capsys.readouterr().out)
    assert "accuracy" in printed[0].lower()
    assert json.loads(printed[1])["measures"]["sensitivity"]["n"] > 0

    surprisals, convert = blocks(page, "python")
    exec(compile(here(surprisals), "surprisals", "exec"), {})
    assert len(re.findall(r"surprisal \d+\.\d\d bits", capsys.readouterr().out)) == 5

    Path("suite.json").write_text(*blocks(page, "json"))
    exec(compile(convert, "convert", "exec"), {})
    ((_, *arguments),) = suite
    assert main(arguments) == 0
    (results,) = folder.glob("results/*/*/results.json")
    measures = json.loads(results.read_text())["tasks"]["suite"]["none"]["measures"]
    assert measures["sensitivity"]["n"] == 1


def test_the_settings_named_are_those_of_the_command(page: str) -> None:
    (settings,) = re.findall(r"`--perturb ([\w ]+)`", page)
    assert tuple(settings.split()) == NAMES


def test_the_harness_finds_the_group_of_tasks(page: str, folder: Path) -> None:
    (line,) = (line for line in page.splitlines() if line.startswith("$ lm_eval"))
    words = shlex.split(line)
    tasks = folder / words[words.index("--include_path") + 1]
    group = yaml.safe_load((tasks / f"{words[words.index('--tasks') + 1]}.yaml").read_text())
    assert group["group"] == "lmdiag"
    for task in group["task"]:
        assert (tasks / f"{task}.yaml").is_file()
