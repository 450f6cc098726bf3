"""Fixtures for all tests: the data sets, built once a session, and caches of the tests' own."""

import os
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from browser import chromium, new_page, page  # noqa: F401 (fixtures)
from filelock import FileLock
from hypothesis import HealthCheck, settings

from lmdiag.cli import main
from lmdiag.files import write_atomically
from lmdiag.text import names_options

ROOT = Path(__file__).resolve().parent.parent
UPSTREAM = Path(os.environ.get("LMDIAG_UPSTREAM") or ROOT.parent / "shared" / "upstream")
# Hypothesis's limits on time (200 ms an example) fail tests because the machine is busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
names_options.set(True)  # messages are tested as commands print them


def pytest_configure(config):
    """Gives the session its own caches, before anything reads where they are, and Ctrl-C."""
    caches = tempfile.TemporaryDirectory(prefix="lmdiag-tests-")
    config.add_cleanup(caches.cleanup)
    os.environ["HF_HOME"] = str(Path(caches.name) / "huggingface")
    os.environ["XDG_CACHE_HOME"] = str(Path(caches.name) / "cache")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # as many processes as cores: more threads than one each would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in ("HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        os.environ.pop(name, None)
    os.environ["LMDIAG_CACHE"] = str(Path(caches.name) / "lmdiag")
    # A shell has its background jobs, and all that they start, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def built(factory, name, source, *configs):
    """Builds a data set directory, once for all processes of the session, and returns it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    out = base / name / "lmdiag"
    with FileLock(base / f"{name}.lock"):
        if not out.is_dir():
            command = ["build", str(out), "--source", source]
            assert main([*command, "--configs", *configs] if configs else command) == 0
    return out


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
def data_dir(upstream, tmp_path_factory):
    """The three upstream diagnostics, built. Read only: copy it to change it."""
    return built(tmp_path_factory, "diagnostics", str(upstream), "cprag102", "role88", "neg136")


@pytest.fixture(scope="session")
def agreement_dir(upstream, tmp_path_factory):
    """The upstream minimal pairs and verbs, built: 250,440 rows. Read only, as the others."""
    return built(tmp_path_factory, "agreement", str(upstream), "agreement", "verbs")


@pytest.fixture(scope="session")
def demo_dir(tmp_path_factory):
    """The demo data set, built: all five configs. Read only: copy it to change it."""
    return built(tmp_path_factory, "demo", "demo")


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Folders of a tiny masked and a tiny causal model with random weights. Read only.

    The causal one has a chat template.
    """
    from families import CHAT, FAMILIES

    folder = tmp_path_factory.mktemp("models")
    made = {name: FAMILIES[name].make(folder / name) for name in ("bert", "gpt2")}
    (made["gpt2"] / "chat_template.jinja").write_text(CHAT)
    return made


@pytest.fixture(scope="session")
def finished_runs(demo_dir, tmp_path_factory):
    """Run directories of two invented models on the demo data, the better one first. Read only."""
    from invented_runs import make_run

    folder = tmp_path_factory.mktemp("runs")
    return [
        make_run(folder / "a", demo_dir, id="org/[b]first", skill=3.0, seed=1),
        make_run(folder / "b", demo_dir, id="org/second", skill=0.0, seed=2),
    ]


@pytest.fixture
def outside_of_commands():
    """Messages name parameters, as in Python."""
    token = names_options.set(False)
    yield
    names_options.reset(token)


@pytest.fixture(autouse=True)
def short_pages(request, monkeypatch):
    """`run` and `multiverse` write short pages of runs; tests that read them are marked `pages`.

    To make a page takes longer than to ask a tiny model.
    """
    if not request.node.get_closest_marker("pages"):
        written = partial(write_atomically, data=b"<!doctype html>")
        monkeypatch.setattr("lmdiag.cli.run._write_page", lambda path, _: written(path))


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
