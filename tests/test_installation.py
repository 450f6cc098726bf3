"""Files outside the package are found in a clone and in an installation; a source distribution, and
the wheel that pip makes of it, are enough to run everything."""

import errno
import json
import os
import re
import shutil
import sys
import sysconfig
import tarfile
import venv
from configparser import ConfigParser
from pathlib import Path

import pytest
from launched import finished, outcome

import lmdiag
from lmdiag.cli import main
from lmdiag.files.reading import resource_path
from lmdiag.files.writing import take_lock
from lmdiag.hub.requests import RunRequest
from lmdiag.leaderboard.board import Board
from lmdiag.types import BadInput

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("cards", "metrics/cloze_diagnostics", "datasets/lmdiag")
OF_TOOLS = ("__pycache__", "*.egg-info", ".*cache")
"""Folders that tools leave in the working tree."""


def test_an_editable_install_reads_the_repository():
    assert resource_path("eval", "run.py") == ROOT / "eval/run.py"
    with pytest.raises(BadInput, match=r"cards/no-such-card\.md is missing .*make setup"):
        resource_path("cards", "no-such-card.md")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the working tree, so that nothing is left in the repository."""
    copy = tmp_path_factory.mktemp("source")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    for folder in ("eval", "cards", "metrics", "datasets", "docs", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns(*OF_TOOLS))
    return copy


@pytest.fixture(scope="module")
def sdist(source):
    call = "from setuptools.build_meta import build_sdist as build; build('dist')"
    finished(sys.executable, "-c", call, cwd=source)
    (built,) = (source / "dist").glob("*.tar.gz")
    return built


PIP = ["install", "--no-deps", "--no-index", "--quiet"]
"""No dependencies: they are those of the environment of the tests, so nothing is downloaded."""
FIND = f"from lmdiag.files.reading import resource_path as path\nfor f in {FOLDERS}: print(path(f))"


@pytest.fixture(scope="module")
def wheel(sdist, source):
    pip = [sys.executable, "-m", "pip", "wheel", *PIP[1:], "--no-build-isolation"]
    finished(*pip, "--wheel-dir", source / "dist", sdist)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of an environment with the wheel that pip made of the source distribution."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", *PIP]
    finished(*pip, "--ignore-installed", wheel)
    return place / "bin"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["--user", "--target"])
def test_every_scheme_of_pip_has_the_files(scheme, wheel, tmp_path):
    python = sys._base_executable
    place = [tmp_path / "target"] if scheme == "--target" else []
    user = {"PYTHONUSERBASE": str(tmp_path), "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    pip = [sys.executable, "-m", "pip", "--python", python, *PIP, "--no-compile"]
    finished(*pip, scheme, *place, wheel, **user)
    user["PYTHONPATH"] = os.pathsep.join([sysconfig.get_path("purelib"), *map(str, place)])
    paths = finished(python, "-P", "-c", FIND, **user).splitlines()
    assert [Path(path).is_relative_to(tmp_path) for path in paths] == [True] * len(FOLDERS)


@pytest.mark.slow
def test_the_source_distribution_has_every_file(sdist, source):
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = ("dist/", "build/", "eval/lmdiag.egg-info/")
    for file in source.rglob("*"):
        path = str(file.relative_to(source))
        if file.is_file() and not path.startswith((*made, "MANIFEST.in", ".git")):
            assert path in names, f"add {path} to MANIFEST.in"


@pytest.mark.slow
def test_an_installation_has_the_files_of_the_source_and_finds_them(installed, source):
    (site,) = installed.parent.glob("lib/*/site-packages")
    for folder in (*FOLDERS, "eval/lmdiag"):
        for file in filter(Path.is_file, (source / folder).rglob("*")):
            path = file.relative_to(source)
            in_package = folder.startswith("eval")
            place = site / path.relative_to("eval") if in_package else site / "lmdiag" / path
            assert place.is_file(), f"add {path} to setup.cfg"
            assert place.read_bytes() == file.read_bytes(), path
    paths = [str(site / "lmdiag" / folder) for folder in FOLDERS]
    assert finished(installed / "python", "-I", "-c", FIND).splitlines() == paths


@pytest.mark.slow
def test_an_installation_runs_the_demo_from_another_folder(installed, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def lmdiag(*words):
        cache = str(tmp_path / "cache")
        return finished(installed / "lmdiag", *words, cwd=tmp_path, LMDIAG_CACHE=cache)

    lmdiag("build", "--source", "demo")
    assert (tmp_path / "lmdiag/provenance.json").is_file()
    for data, named in (("lmdiag", []), ("demo", ["--data", "demo"])):
        words = ["--quiet", "--model", "demo:masked", *named, "--output", f"{data}-results"]
        assert f"Saved in {data}-results" in lmdiag("run", *words)
    runs = sorted(tmp_path.glob("*-results/demo--*/diagnostics-token"))
    assert [(run / "report.html").is_file() for run in runs] == [True] * 2
    shown = lmdiag("report", str(runs[0].relative_to(tmp_path)), "--format", "markdown")
    assert "CPRAG-102" in shown
    launch = [installed / "python", "-m", "accelerate.commands.launch", "-m", "lmdiag", "run"]
    options = ["--quiet", "--model", "demo:masked", "--data", "lmdiag", "--output", "launched"]
    finished(*launch, *options, cwd=tmp_path, LMDIAG_CACHE=str(tmp_path / "cache"))
    assert outcome(tmp_path / "launched") == outcome(tmp_path / "lmdiag-results")
    load = f"{FIND}\nimport evaluate; print(evaluate.load(str(path(FOLDERS[1]))).name)"
    shown = finished(
        installed / "python", "-c", load.replace("FOLDERS", str(FOLDERS)), cwd=tmp_path
    )
    assert "cloze_diagnostics" in shown.splitlines()[-1]


def test_the_image_of_docker_installs_extras_that_exist_and_runs_the_command():
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    steps = dict(
        re.findall(r"^(RUN|ENTRYPOINT|COPY) (.*)$", (ROOT / "Dockerfile").read_text(), re.M)
    )
    assert steps["COPY"] == ". /src"
    extras = re.fullmatch(r"pip install --no-cache-dir '/src\[(.*)\]'", steps["RUN"])[1]
    assert {*extras.split(",")} <= {*settings["options.extras_require"]}
    (command,) = json.loads(steps["ENTRYPOINT"])
    assert f"{command} = lmdiag.cli:program" in settings["options.entry_points"]["console_scripts"]


def test_the_oldest_tested_versions_are_the_floors():
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    floors = re.findall(r"^([\w-]+)>=(\S+)$", settings["options"]["install_requires"], re.MULTILINE)
    text = (ROOT / "constraints-oldest.txt").read_text("utf-8").lower()
    oldest = dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))
    del oldest["torch"]  # see the comment in the file
    for name, floor in floors:
        assert f"{oldest.get(name.lower(), floor)}.0".startswith(f"{floor}."), name


@pytest.mark.parametrize(("model", "mean"), [("masked", -2.519721), ("causal", -3.770256)])
def test_all_versions_give_the_same_figures(model, mean):
    """Those of the demo models, which a version that reads configurations otherwise changes."""
    asked = lmdiag.load_model(f"demo:{model}")
    tasks = [lmdiag.load_stimuli("demo", task) for task in ("cprag102", "role88", "neg136")]
    values = [x for task in tasks for x in asked.predict(task).to_frame()["log_prob"]]
    assert sum(values) / len(values) == pytest.approx(mean, abs=1e-5)


def test_a_file_system_without_locks_has_a_marker_and_one_warning(tmp_path, monkeypatch, capsys):
    """As some clusters' home directories; the marker of a killed process does not count."""
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    code = "import os, sys, filelock; x = filelock.SoftFileLock(sys.argv[1]).acquire(); os._exit(0)"
    finished(sys.executable, "-c", code, tmp_path / ".lock.soft")
    assert (tmp_path / ".lock.soft").exists()
    for _ in range(2):
        with take_lock(tmp_path / ".lock", "busy"), pytest.raises(BadInput, match="busy"):
            take_lock(tmp_path / ".lock", "busy")
    assert not (tmp_path / ".lock.soft").exists()
    error = capsys.readouterr().err
    assert error.startswith(f"lmdiag: warning: {tmp_path} is on a file system without locks; ")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_run_is_the_same_on_another_system(tmp_path):
    """See `tests/systems`: without the modules of POSIX, and without locks."""
    paths, cache = str(ROOT / "tests/systems"), str(tmp_path / "cache")
    command = [sys.executable, "-m", "lmdiag", "run", "--model", "demo:masked", "--data", "demo"]
    command += ["--tasks", "neg136", "--quiet", "--output"]
    assert not main([*command[3:], str(tmp_path / "here")])
    for system in ("windows", "no-locks"):
        finished(*command, tmp_path / system, PYTHONPATH=paths, SYSTEM=system, LMDIAG_CACHE=cache)
        assert outcome(tmp_path / system) == outcome(tmp_path / "here")


def test_windows_has_no_runs_of_a_leaderboard(tmp_path, monkeypatch):
    board = Board(tmp_path, data="demo")
    request = RunRequest(model="org/model", commit="0" * 40, dtype="float32")
    assert board.signature  # builds the data here
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(BadInput, match=r"limits that Windows does not have: .* with --no-run$"):
        board.run_missing([request], print)
