"""Fixtures for all tests: the data sets, built once a session, and caches of the tests' own."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from browser import chromium, new_page, page  # noqa: F401 (fixtures)
from filelock import FileLock
from hypothesis import HealthCheck, settings

from lmdiag.cli import main, run_command
from lmdiag.files.writing import write_atomically
from lmdiag.text import names_options
from lmdiag.types import DIAGNOSTICS

ROOT = Path(__file__).resolve().parent.parent
UPSTREAM = Path(os.environ.get("LMDIAG_UPSTREAM") or ROOT.parent / "shared" / "upstream")
# Hypothesis's limits on time (200 ms an example) fail tests because the machine is busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
WRITE_PAGE = run_command._write_page
names_options.set(True)  # messages are tested as commands print them


def pytest_configure(config):
    """Gives the session its own caches, before anything reads where they are, and Ctrl-C.

    All its processes share what lmdiag keeps: the demo data, the script of the charts.
    """
    caches = tempfile.TemporaryDirectory(prefix="lmdiag-tests-")
    config.add_cleanup(caches.cleanup)
    os.environ["HF_HOME"] = str(Path(caches.name) / "huggingface")
    os.environ["XDG_CACHE_HOME"] = str(Path(caches.name) / "cache")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # as many processes as cores: more threads than one each would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in ("HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        os.environ.pop(name, None)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["LMDIAG_CACHE"] = str(Path(caches.name) / "lmdiag")
    # A shell has its background jobs, and all that they start, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leaves torch and all other modules out of collections, which take a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000)
        gc.enable()


def pytest_collection_modifyitems(items):
    """Begins with the tests that take longest: none is left for one process at the end."""

    def seconds(item):
        mark = item.get_closest_marker("long")
        return mark.kwargs.get("seconds", 20) if mark else 0

    items.sort(key=seconds, reverse=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skips a test that makes links where the system does not allow it, as Windows mostly."""
    try:
        return (yield)
    except OSError as error:
        if "privilege" not in str(error):
            raise
        pytest.skip(f"no links here: {error}")


pytest_runtest_setup = pytest_runtest_call


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Returns a folder that a function fills, once for all processes of the session. Read only."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def made(name, make):
        with FileLock(base / f"{name}.lock"):
            if not (base / name).is_dir():
                make(base / name)
        return base / name

    return made


def build(source, *configs):
    """Returns what builds a data set directory with all configs of a source, or some."""

    def make(folder):
        command = ["build", str(folder / "lmdiag"), "--source", source]
        assert main([*command, "--configs", *configs] if configs else command) == 0

    return make


@pytest.fixture(scope="session")
def root():
    return ROOT


def upstream_folder(name):
    """A folder of upstream data; skips where there is none."""
    if not (UPSTREAM / name).is_dir():
        pytest.skip(f"no upstream data at {UPSTREAM / name}: set LMDIAG_UPSTREAM")
    return UPSTREAM / name


@pytest.fixture(scope="session")
def upstream():
    """The folder with copies of both upstream repositories."""
    upstream_folder("refining-tse")
    return upstream_folder("lm-diagnostics").parent


@pytest.fixture(scope="session")
def original_outputs():
    """The folder with outputs and figures of the original code."""
    return upstream_folder("lm-diagnostics-models")


@pytest.fixture(scope="session")
def public_suites():
    """The folder with the public SyntaxGym suites."""
    return upstream_folder("syntactic-generalization/test_suites/json")


@pytest.fixture(scope="session")
def human():
    """The folder with human measures and published figures."""
    return upstream_folder("human")


@pytest.fixture(scope="session")
def data_dir(upstream, made_once):
    """The three upstream diagnostics, built. Read only: copy it to change it."""
    return made_once("diagnostics", build(str(upstream), *DIAGNOSTICS)) / "lmdiag"


@pytest.fixture(scope="session")
def agreement_dir(upstream, made_once):
    """The upstream minimal pairs and verbs, built: 250,440 rows. Read only, as the others."""
    return made_once("agreement", build(str(upstream), "agreement", "verbs")) / "lmdiag"


@pytest.fixture(scope="session")
def demo_dir(made_once):
    """The demo data set, built: all five configs. Read only: copy it to change it."""
    return made_once("demo", build("demo")) / "lmdiag"


@pytest.fixture(scope="session")
def family_dir(made_once):
    """Returns a function from a family's name to the folder of its model, made on first use."""
    from families import FAMILIES, SENTENCE_FAMILIES

    def make(name):
        family = (FAMILIES | SENTENCE_FAMILIES)[name]
        return made_once(f"family-{name}", lambda folder: family.make(folder / name)) / name

    return make


@pytest.fixture(scope="session")
def tiny_models(family_dir, made_once):
    """Folders of a tiny masked and a tiny causal model with random weights. Read only.

    The causal one has a chat template.
    """

    def make(folder):
        from families import CHAT

        shutil.copytree(family_dir("gpt2"), folder / "gpt2")
        (folder / "gpt2/chat_template.jinja").write_text(CHAT)

    return {"bert": family_dir("bert"), "gpt2": made_once("chat", make) / "gpt2"}


@pytest.fixture(scope="session")
def finished_runs(demo_dir, made_once):
    """Run directories of two invented models on the demo data, the better one first. Read only."""
    from invented_runs import make_run

    def make(folder):
        make_run(folder / "a", demo_dir, id="org/[b]first", skill=3.0, seed=1)
        make_run(folder / "b", demo_dir, id="org/second", skill=0.0, seed=2)

    folder = made_once("finished-runs", make)
    return [folder / "a", folder / "b"]


@pytest.fixture
def outside_of_commands():
    """Messages name parameters, as in Python."""
    token = names_options.set(False)
    yield
    names_options.reset(token)


@pytest.fixture(autouse=True, scope="session")
def short_pages():
    """`run` and `multiverse` write short pages of runs, in fixtures, too; see `whole_pages`.

    To make a page takes longer than to ask a tiny model.
    """
    written = partial(write_atomically, data=b"<!doctype html>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmdiag.cli.run_command._write_page", lambda path, _: written(path))
        yield


@pytest.fixture(autouse=True)
def whole_pages(request, monkeypatch):
    """Tests that read the pages of runs are marked `pages`."""
    if request.node.get_closest_marker("pages"):
        monkeypatch.setattr("lmdiag.cli.run_command._write_page", WRITE_PAGE)


class Commands:
    """Runs commands of `lmdiag`; the fixture `command`.

    Attributes:
        folder: an empty directory of the test.
    """

    def __init__(self, request, folder):
        self._request, self.folder = request, folder

    def __call__(self, *arguments):
        """Returns exit code, standard output and standard error of a command."""
        capsys = self._request.getfixturevalue("capsys")
        capsys.readouterr()
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return (code, *capsys.readouterr())

    def refused(self, *arguments, code=2):
        """Returns the one line of standard error with which a command fails."""
        ended, out, err = self(*arguments)
        assert (ended, out) == (code, ""), err
        assert err.startswith("lmdiag: error: ")
        assert err.count("\n") == 1
        return err

    @property
    def data(self):
        return self._request.getfixturevalue("demo_dir")

    @property
    def models(self):
        return self._request.getfixturevalue("tiny_models")

    @property
    def runs(self):
        return self._request.getfixturevalue("finished_runs")


@pytest.fixture
def command(request, tmp_path):
    return Commands(request, tmp_path)


# ---- a Hub on the loopback interface -------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty Hub, and this process set to speak plain HTTP to it, with its owner's token."""
    from hub import LoopbackHub

    with LoopbackHub() as server:
        settings = {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_CACHE": str(tmp_path / "hub-cache"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, value in settings.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        if loaded := sys.modules.get("transformers.utils.hub"):
            monkeypatch.setattr(loaded, "_hf_api", None)  # its client of the Hub of another test
        monkeypatch.setenv("HF_TOKEN", "hf_test")
        yield server


@pytest.fixture
def api(hub):
    """The client of an owner of `org`."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.url, token="hf_test")
