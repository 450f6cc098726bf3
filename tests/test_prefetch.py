"""Models that are loaded in a thread: the same numbers, bounded memory, errors in turn."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from launched import alone, environment, finished, launch, torchrun
from limits import HANG

from lmdiag import models
from lmdiag.models import LoadOptions
from lmdiag.models.loading import memory
from lmdiag.models.loading.load import open_checkpoint
from lmdiag.runs.prefetch import Prefetcher
from lmdiag.schema import BadInput


@pytest.fixture
def sweep(command: Commands) -> Callable[..., tuple[int, str, str]]:
    """Runs models on one diagnostic into a folder of its own."""

    def run(
        folder: str, *models: object, flags: Sequence[str] = (), **options: object
    ) -> tuple[int, str, str]:
        more = [*flags, *(p for name, value in options.items() for p in (f"--{name}", value))]
        arguments = ["--data", command.data, "--tasks", "neg136", "--output"]
        return command("run", *arguments, command.folder / folder, *more, "--model", *models)

    return run


@pytest.fixture
def checkpoints(tiny_models: dict[str, Path], tmp_path: Path) -> list[Path]:
    """Three tiny models, the last with weights of its own."""
    from safetensors.torch import load_file, save_file

    path = Path(shutil.copytree(tiny_models["bert"], tmp_path / "bert-step1"))
    weights = load_file(path / "model.safetensors")
    turned = {key: weight.roll(1, 0) for key, weight in weights.items()}
    save_file(turned, path / "model.safetensors", metadata={"format": "pt"})
    return [tiny_models["bert"], tiny_models["gpt2"], path]


def predictions(folder: Path) -> dict[str, bytes]:
    """Name of the folder of a model -> its predictions."""
    files = folder.rglob("predictions.parquet")
    return {path.relative_to(folder).parts[0]: path.read_bytes() for path in files}


# ---- numbers -------------------------------------------------------------------------------------


def test_predictions_do_not_depend_on_what_is_loaded_ahead(
    sweep: Callable[..., Any], command: Commands, checkpoints: list[Path]
) -> None:
    for model in checkpoints:
        assert sweep("alone", model)[0] == 0
    expected = predictions(command.folder / "alone")
    assert len(set(expected.values())) == len(checkpoints)
    for ahead in (0, 1, 2):
        code, _, err = sweep(f"ahead{ahead}", *checkpoints, prefetch=ahead)
        assert code == 0, err
        assert predictions(command.folder / f"ahead{ahead}") == expected


def test_weights_of_another_dtype_are_left_to_the_main_thread(
    sweep: Callable[..., Any], command: Commands, checkpoints: list[Path]
) -> None:
    """transformers sets torch's default dtype while it makes such a model, for all threads."""
    assert open_checkpoint(str(checkpoints[0]), LoadOptions()).suits_thread
    assert not open_checkpoint(str(checkpoints[0]), LoadOptions(dtype="bfloat16")).suits_thread
    for ahead in (0, 2):
        assert sweep(f"ahead{ahead}", *checkpoints, prefetch=ahead, dtype="bfloat16")[0] == 0
    first, second = (predictions(command.folder / f"ahead{ahead}") for ahead in (0, 2))
    assert first == second
    assert len(first) == len(checkpoints)


@pytest.mark.slow
def test_several_processes_load_ahead_and_give_the_same_files(
    command: Commands, checkpoints: list[Path]
) -> None:
    models = [checkpoints[0], command.folder / "absent", *checkpoints[1:]]
    arguments = ["--data", command.data, "--tasks", "neg136", "--quiet", "--model", *models]
    one, two = (command.folder / str(count) for count in (1, 2))
    code, error = alone("run", *arguments, "--prefetch", 0, "--output", one)
    done = finished(torchrun(2), *arguments, "--prefetch", 2, "--output", two)
    for returned, said in ((code, error), (done.returncode, done.stderr)):
        assert returned != 0
        assert said.count("1 of 4 runs failed") == 1
    assert len(predictions(one)) == len(checkpoints)
    assert predictions(one) == predictions(two)
    launch(torchrun(2), *arguments[:-4], *checkpoints, "--output", two)


# ---- memory --------------------------------------------------------------------------------------


class Watch:
    """Sees every model that is loaded, and which of them are still there when one is begun.

    Attributes:
        alive: how many, at each beginning.
        beside: whether another model was being asked then.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._load_ahead, self._seen = models.load_ahead, list[Any]()
        self.alive: list[int] = []
        self.beside: list[bool] = []
        monkeypatch.setattr(models, "load_ahead", self.load_ahead)

    def load_ahead(self, model_id: str, options: LoadOptions, *, beside: bool) -> Any:
        gc.collect()
        self.alive.append(sum(reference() is not None for reference in self._seen))
        self.beside.append(beside)
        rest = self._load_ahead(model_id, options, beside=beside)
        self._seen.append(weakref.ref(rest()))
        return rest


@pytest.mark.parametrize(
    "ahead", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)]
)
def test_at_most_so_many_models_are_in_memory_beside_the_one_that_is_loaded(
    sweep: Callable[..., Any],
    checkpoints: list[Path],
    tmp_path: Path,
    ahead: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch(monkeypatch)
    failing = [tmp_path / "absent", checkpoints[0]]
    code, _, err = sweep("out", *checkpoints, *failing, checkpoints[1], prefetch=ahead)
    assert (code, "1 of 6 runs failed" in err) == (1, True), err
    assert len(watch.alive) == 6
    assert max(watch.alive) <= ahead
    assert watch.alive[1] == min(ahead, 1)
    assert any(watch.beside) is (ahead > 0)


def test_a_model_that_does_not_fit_beside_another_waits_for_its_turn(
    sweep: Callable[..., Any],
    command: Commands,
    checkpoints: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory is free for one model and a half, as it is said to be when it is asked for."""
    watch = Watch(monkeypatch)
    needed = memory.memory_needed
    largest: list[int] = []

    def recorded(*arguments: Any) -> int:
        largest.append(needed(*arguments))
        return largest[-1]

    monkeypatch.setattr(memory, "memory_needed", recorded)
    monkeypatch.setattr(memory, "memory_available", lambda *_: int(1.5 * largest[-1]))
    code, _, err = sweep("out", *checkpoints, prefetch=1)
    assert code == 0, err
    assert watch.beside.count(False) == len(checkpoints)
    assert watch.beside.count(True) <= len(checkpoints) - 1
    assert len(predictions(command.folder / "out")) == len(checkpoints)


# ---- order ---------------------------------------------------------------------------------------


def test_a_failure_is_told_in_turn_and_again_at_the_end(
    sweep: Callable[..., Any], command: Commands, checkpoints: list[Path]
) -> None:
    absent = [command.folder / "absent", command.folder / "missing"]
    code, out, err = sweep("out", checkpoints[0], *absent, checkpoints[1], prefetch=3)
    assert code == 1
    lines = err.splitlines()
    names = ["bert: ", "bert: asked", "absent failed", "missing failed", "gpt2: ", "gpt2: asked"]
    for line, name in zip(lines, names, strict=False):
        assert name in line
    assert lines[len(names) :][:2] == ["", "2 of 4 runs failed:"]
    assert len(lines) == len(names) + 4
    assert "All 2 models" in out


def together(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Has functions wait for each other, the first time each is called."""
    barrier = threading.Barrier(len(names))

    def wrapped(function: Any) -> Any:
        first = iter([True])

        def call(*arguments: Any, **options: Any) -> Any:
            if next(first, False):
                barrier.wait(HANG)
            return function(*arguments, **options)

        return call

    for name in names:
        module, _, attribute = name.rpartition(".")
        function = getattr(sys.modules[module], attribute)
        monkeypatch.setattr(name, wrapped(function))


def test_data_are_read_while_the_first_model_is_loaded(
    sweep: Callable[..., Any], checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import lmdiag.runs.inputs

    assert lmdiag.runs.inputs
    together(monkeypatch, "lmdiag.models.load_ahead", "lmdiag.runs.inputs.load_inputs")
    assert sweep("out", checkpoints[0], prefetch=0)[0] == 0


def test_the_second_model_is_loaded_while_the_first_is_asked(
    sweep: Callable[..., Any], checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import lmdiag.runs.run

    assert lmdiag.runs.run
    load_ahead, numbers = models.load_ahead, iter(range(9))
    barrier = threading.Barrier(2)

    def second(*arguments: Any, **options: Any) -> Any:
        if next(numbers) == 1:
            barrier.wait(HANG)
        return load_ahead(*arguments, **options)

    predict, first = lmdiag.runs.run.predict, iter([True])

    def asked(*arguments: Any, **options: Any) -> Any:
        if next(first, False):
            barrier.wait(HANG)
        return predict(*arguments, **options)

    monkeypatch.setattr(models, "load_ahead", second)
    monkeypatch.setattr("lmdiag.runs.run.predict", asked)
    assert sweep("out", *checkpoints[:2], prefetch=1)[0] == 0


def test_any_error_of_the_thread_is_raised_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(model_id: str, options: LoadOptions, *, beside: bool) -> Any:
        if model_id == "good":
            return lambda: model_id
        raise {"bad": BadInput("bad"), "broken": ZeroDivisionError()}[model_id]

    monkeypatch.setattr(models, "load_ahead", load)
    wanted = [(name, LoadOptions()) for name in ("bad", "good", "broken", "good")]
    with Prefetcher(wanted, 1) as prefetcher:
        with pytest.raises(BadInput):
            prefetcher.take()
        assert prefetcher.take() == "good"  # type: ignore[comparison-overlap]
        with pytest.raises(ZeroDivisionError):
            prefetcher.take()
        assert prefetcher.take() == "good"  # type: ignore[comparison-overlap]


# ---- interruption --------------------------------------------------------------------------------


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """The second model is not loaded before the test ends; before that it calls what is listed."""
    load_ahead, numbers, end = models.load_ahead, iter(range(9)), threading.Event()
    calls: list[Callable[[], object]] = []

    def load(*arguments: Any, **options: Any) -> Any:
        if next(numbers) == 1:
            for call in calls:
                call()
            end.wait(HANG)
            raise BadInput("the test is over")
        return load_ahead(*arguments, **options)

    monkeypatch.setattr(models, "load_ahead", load)
    yield calls
    end.set()


def test_ctrl_c_does_not_wait_for_the_thread(
    sweep: Callable[..., Any], checkpoints: list[Path], blocked: list[Callable[[], object]]
) -> None:
    blocked.append(lambda: os.kill(os.getpid(), signal.SIGINT))
    code, _, err = sweep("out", *checkpoints, flags=["--quiet"])
    assert code == 130
    assert err == (
        "lmdiag: interrupted; answers saved so far are kept; run the same command again to "
        "continue\n"
    )


@pytest.mark.usefixtures("blocked")
def test_bad_data_do_not_wait_for_the_thread(command: Commands, checkpoints: list[Path]) -> None:
    arguments = ["run", "--data", "no/such/data", "--model", *checkpoints, "--prefetch", "1"]
    assert "no/such/data" in command.refused(*arguments)
    assert not (command.folder / "out").exists()


STOPPED = """
import sys, threading
from lmdiag import models
from lmdiag.cli import program

load_ahead, numbers = models.load_ahead, iter(range(9))

def load(*arguments, **options):
    if next(numbers) == 1:
        print("blocked", flush=True)
        threading.Event().wait()
    return load_ahead(*arguments, **options)

models.load_ahead = load
program(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_process_whose_thread_is_loading_ends_cleanly(
    command: Commands, checkpoints: list[Path], number: signal.Signals, code: int, word: str
) -> None:
    arguments = ["run", "--data", command.data, "--tasks", "neg136", "--quiet", "--json"]
    arguments += ["--output", command.folder / "out", "--model", *checkpoints]
    line = [sys.executable, "-c", STOPPED, *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(line, env=environment(), text=True, **pipes)
    assert child.stdout is not None
    assert child.stdout.readline() == "blocked\n"
    child.send_signal(number)
    _, err = child.communicate(timeout=HANG)
    assert child.returncode == code
    assert err.count("\n") == 1
    assert err.startswith(f"lmdiag: {word}; ")
