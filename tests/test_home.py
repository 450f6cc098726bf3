"""The rooms beside the package are found from a clone and from an installed wheel alike."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from lmdiag.home import home
from lmdiag.schema import BadInput

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cards", "metrics/cloze_diagnostics", "datasets/lmdiag")
WRITTEN_BY_TOOLS = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*cache", ".mypy_cache")


def test_editable_install_reads_the_repository() -> None:
    assert home("setup.cfg") == ROOT / "setup.cfg"
    assert home("eval", "run.py") == ROOT / "eval/run.py"


def test_a_missing_file_is_named_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"cards/no-such-card\.md is missing .*make setup"):
        home("cards", "no-such-card.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree, built in a copy so that nothing is left in the repository."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for room in ("eval", "cards", "metrics", "datasets"):
        shutil.copytree(ROOT / room, source / room, ignore=WRITTEN_BY_TOOLS)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (built,) = (source / "dist").glob("*.whl")
    return built


def written_by_us(folder: Path) -> list[Path]:
    """The files of a folder without what tools leave in it."""
    files = (file for file in folder.rglob("*") if file.is_file())
    tools = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    return [file for file in files if tools.isdisjoint(file.parts)]


def test_the_wheel_carries_every_file_of_the_rooms(wheel: Path) -> None:
    names = {name for name in ZipFile(wheel).namelist() if not name.endswith("/")}
    data = f"{wheel.name.split('-py3')[0]}.data/data/share/lmdiag/"
    for room in ROOMS:
        for file in written_by_us(ROOT / room):
            assert data + str(file.relative_to(ROOT)) in names, f"add {file} to setup.cfg"
    for file in written_by_us(ROOT / "eval/lmdiag"):
        assert str(file.relative_to(ROOT / "eval")) in names, f"add {file} to setup.cfg"


def test_an_installed_wheel_finds_the_rooms(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/*/site-packages")
    unpacked = tmp_path / "unpacked"
    ZipFile(wheel).extractall(unpacked)
    shutil.copytree(unpacked / "lmdiag", site / "lmdiag")
    (share,) = unpacked.glob("*.data/data/share")
    shutil.copytree(share, tmp_path / "venv/share")

    say = f"from lmdiag.home import home\nfor room in {ROOMS}: print(home(room))"
    python = tmp_path / "venv/bin/python"
    done = subprocess.run([python, "-I", "-c", say], check=True, capture_output=True, text=True)
    expected = [str(tmp_path / "venv/share/lmdiag" / room) for room in ROOMS]
    assert done.stdout.splitlines() == expected
