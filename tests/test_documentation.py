"""Every command and every Python block of the README is run, in order, in one place.

Nothing is fetched here, so some things stand for others: the demo data for the published items
in the directory `lmdiag`, the two demo models for the Hub's, two shuffles for a hundred, and `make
run` uses the environment that the tests run in. `make check` is what runs this.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from leaving import LEAVE

STANDS_FOR = {"bert-base-uncased": "demo:masked", "gpt2": "demo:causal"}
"""A model of the Hub -> the demo model that is run in its place."""

SHUFFLES = "2"
"""In place of the paper's hundred."""

ROOMS = ("cards", "datasets", "eval", "metrics", "Makefile")

OUTPUT = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(root: Path, demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a clone, in which nothing but the data set has been made yet."""
    place = tmp_path_factory.mktemp("clone")
    for room in ROOMS:
        (place / room).symlink_to(root / room)
    shutil.copytree(demo_dir, place / "lmdiag")
    return place


def run(words: list[str], folder: Path) -> str:
    """Runs a command as a person in the environment would; returns its standard output."""
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "COLUMNS": "100"}
    environment.pop("MAKEFLAGS", None)
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def replaced(command: str) -> list[str]:
    """The words of a documented command, with what stands for others here."""
    words = shlex.split(command)
    if words[:2] == ["lmdiag", "build"]:
        return [*words, "--source", "demo"]
    words = [SHUFFLES if before == "--shuffles" else w for before, w in pairwise(["", *words])]
    for name, model in STANDS_FOR.items():
        slug = model.replace(":", "--")
        words = [model if w == name else w.replace(f"/{name}/", f"/{slug}/") for w in words]
    return words


def commands(text: str) -> list[str]:
    """Returns the commands of a block."""
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.slow
def test_every_command_and_python_block_of_the_readme_runs(readme: str, folder: Path) -> None:
    programs = Path(sys.executable).parent
    python = ""
    ran = []
    for kind, text in BLOCK.findall(readme):
        if kind == "python":
            python += text
            if "import lmdiag" in text:
                printed = run([sys.executable, "-c", python + LEAVE], folder)
                assert "sensitivity" in printed
            continue
        for command in commands(text):
            if command in ("make test", "make check") or command.startswith("pip install"):
                continue
            if command == "make run":
                shown = run(["make", "-o", "setup", "run", f"BIN={programs}"], folder)
                assert OUTPUT.findall(readme)[0].strip() in shown
            else:
                run(replaced(command), folder)
            ran.append(command.split()[:2])
    assert len(ran) >= 10
    for made in ("lmdiag/README.md", "leaderboard/index.html", "garden_paths.csv"):
        assert (folder / made).is_file(), made


def test_every_page_that_is_linked_is_there(root: Path) -> None:
    for page in (root / "README.md", *(root / "docs").glob("*.md")):
        for link in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
