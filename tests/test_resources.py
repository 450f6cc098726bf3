"""The rooms beside the package are found from a clone and from an installed wheel alike, and a
wheel is all that a run needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest
from limits import HANG

from lmdiag.resources import resource_path
from lmdiag.schema import BadInput

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cards", "metrics/cloze_diagnostics", "datasets/lmdiag")
WRITTEN_BY_TOOLS = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*cache", ".mypy_cache")


def test_editable_install_reads_the_repository() -> None:
    assert resource_path("setup.cfg") == ROOT / "setup.cfg"
    assert resource_path("eval", "run.py") == ROOT / "eval/run.py"


def test_a_missing_file_is_named_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"cards/no-such-card\.md is missing .*make setup"):
        resource_path("cards", "no-such-card.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree, built in a copy so that nothing is left in the repository."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for room in ("eval", "cards", "metrics", "datasets"):
        shutil.copytree(ROOT / room, source / room, ignore=WRITTEN_BY_TOOLS)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
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


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which pip installed the wheel.

    Its dependencies are those of the environment of the tests, so that nothing is downloaded.
    """
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install"]
    options = ["--no-deps", "--no-index", "--quiet", "--ignore-installed", str(wheel)]
    subprocess.run([*install, *options], check=True, timeout=HANG)
    return place / "bin"


def test_an_installed_wheel_finds_the_rooms(installed: Path) -> None:
    say = f"from lmdiag.resources import resource_path\nfor room in {ROOMS}: print(resource_path(room))"  # noqa: E501
    done = subprocess.run(
        [installed / "python", "-I", "-c", say], check=True, capture_output=True, text=True
    )
    share = installed.parent / "share/lmdiag"
    assert done.stdout.splitlines() == [str(share / room) for room in ROOMS]


@pytest.mark.slow
def test_an_installed_wheel_runs_the_demo_from_another_folder(
    installed: Path, tmp_path: Path
) -> None:
    environment = os.environ | {"LMDIAG_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)

    def lmdiag(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [installed / "lmdiag", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )

    built = lmdiag("build", "--source", "demo")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "lmdiag/provenance.json").is_file()
    for more in ([], ["--data", "demo", "--output", "others"]):
        ran = lmdiag("run", "--model", "demo:masked", "demo:causal", "--quiet", *more)
        assert ran.returncode == 0, ran.stderr
        assert "Ettinger 2020, table 12" in ran.stdout
    for run in tmp_path.glob("*/demo--*/diagnostics-token"):
        assert (run / "report.html").is_file()
        shown = lmdiag("report", str(run.relative_to(tmp_path)), "--format", "markdown")
        assert shown.returncode == 0, shown.stderr
        assert "CPRAG-102" in shown.stdout
