"""What a run may find in its directory: files that are missing, cut off or foreign; a full disk."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from families import FAMILIES

from lmdiag import cli
from lmdiag.runs.journal import Journal
from lmdiag.schema import Answer, WordScore
from lmdiag.writing import clear_drafts

FILES = {"results.json", "predictions.parquet", "report.html"}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory, demo_dir: Path) -> list[str]:
    """A run of seconds: the first contrasts of one diagnostic."""
    model = FAMILIES["bert"].make(tmp_path_factory.mktemp("model") / "bert")
    return ["--model", str(model), "--data", str(demo_dir), "--tasks", "neg136",
            "--limit", "8", "--batch-size", "2", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def finished(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a finished run. Read only: copy it to change it."""
    output = tmp_path_factory.mktemp("finished") / "results"
    assert cli.main(["run", *arguments, "--output", str(output)]) == 0
    return output


@pytest.fixture
def again(
    arguments: list[str], finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[Path], object]], tuple[int, str, str]]:
    """Changes a copy of the finished run and runs again; returns exit code, output and errors."""

    def run(change: Callable[[Path], object]) -> tuple[int, str, str]:
        output = tmp_path / "results"
        if not output.exists():
            shutil.copytree(finished, output)
        change(folder_of(output))
        capsys.readouterr()
        code = cli.main(["run", *arguments, "--output", str(output)])
        return code, *capsys.readouterr()

    return run


def folder_of(output: Path) -> Path:
    (folder,) = [path for path in output.glob("*/*") if path.is_dir()]
    return folder


def is_whole(folder: Path, finished: Path) -> bool:
    """Whether a run's files are all there, nothing else, and the predictions are the right ones."""
    there = {path.name for path in folder.iterdir()} - {".lock"}
    right = folder_of(finished) / "predictions.parquet"
    return there == FILES and (folder / right.name).read_bytes() == right.read_bytes()


# ---- what is missing is made again --------------------------------------------------------------


@pytest.mark.parametrize("name", ["predictions.parquet", "report.html"])
def test_a_file_that_is_missing_is_made_again(
    name: str, again: Callable, finished: Path, tmp_path: Path
) -> None:
    code, out, _ = again(lambda folder: (folder / name).unlink())
    assert code == 0
    folder = folder_of(tmp_path / "results")
    assert is_whole(folder, finished)
    named = out.rstrip().rpartition(": ")[2].split(", ")
    assert [name for name in named if not (folder / name).exists()] == []


def test_what_killed_processes_left_is_cleared(
    again: Callable, finished: Path, tmp_path: Path
) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()

    def leave(folder: Path) -> None:
        host = os.uname().nodename
        (folder / f".results.json.draft-{host}-{dead.pid}").write_text("{")
        (folder / "journal").mkdir()
        (folder / "journal/00000-1-1.jsonl").write_text("torn")
        (folder / "run.json").write_text("{}")

    assert again(leave)[0] == 0
    assert is_whole(folder_of(tmp_path / "results"), finished)


def test_temporary_files_of_living_processes_stay(tmp_path: Path) -> None:
    mine = tmp_path / f".results.json.draft-{os.uname().nodename}-{os.getpid()}"
    theirs = tmp_path / ".results.json.draft-another-machine-1"
    old = tmp_path / ".report.html.draft-another-machine-2"
    other = tmp_path / ".draft-of-my-thesis"
    for path in (mine, theirs, old, other):
        path.write_text("")
    os.utime(old, (0, 0))
    clear_drafts(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {mine.name, theirs.name, other.name}


# ---- files that are not what they should be ------------------------------------------------------


def cut(name: str) -> Callable[[Path], object]:
    """Cuts a file in the middle."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def foreign_predictions(folder: Path) -> None:
    """Predictions for the same rows, but of another model."""
    table = pq.read_table(folder / "predictions.parquet")
    column = table.schema.get_field_index("log_prob")
    other = table.set_column(column, "log_prob", pa.array([-1.0] * table.num_rows))
    pq.write_table(other, folder / "predictions.parquet")


def change_results(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        file = folder / "results.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def unfinished(content: bytes) -> Callable[[Path], object]:
    """Leaves the directory of a run that has only begun, with this run.json."""

    def change(folder: Path) -> None:
        for name in FILES:
            (folder / name).unlink()
        (folder / "run.json").write_bytes(content)

    return change


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "results missing": (lambda f: (f / "results.json").unlink(), "it has no results.json"),
    "results cut": (cut("results.json"), "not valid JSON"),
    "results empty": (lambda f: (f / "results.json").write_bytes(b""), "not valid JSON"),
    "results a list": (lambda f: (f / "results.json").write_text("[]"), "schema version"),
    "results not text": (lambda f: (f / "results.json").write_bytes(b"\xff"), "not UTF-8"),
    "results foreign": (change_results(identity={"model": "x"}), "another model"),
    "results without identity": (change_results(identity=None), "identity must be an object"),
    "results without model": (change_results(model=None), "model must be an object"),
    "predictions cut": (cut("predictions.parquet"), "is not the file that this run wrote"),
    "predictions foreign": (foreign_predictions, "is not the file that this run wrote"),
    "run.json cut": (unfinished(b'{"mod'), "run.json: not valid JSON"),
    "run.json a list": (unfinished(b"[]"), "run.json: expected an object"),
    "run.json foreign": (unfinished(b'{"model": "x"}'), "another model"),
    "run.json nested": (unfinished(b"[" * 100_000), "nested too deeply"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_directory_is_one_line_and_keeps_its_files(
    case: str, again: Callable, tmp_path: Path
) -> None:
    damage, message = DAMAGE[case]
    code, out, error = again(damage)
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    assert message in error
    assert "--overwrite" in error


def test_a_report_of_damaged_predictions_is_one_line(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(shutil.copytree(finished, tmp_path / "results"))
    foreign_predictions(folder)
    capsys.readouterr()
    assert cli.main(["report", str(folder)]) == 2
    assert "is not the file that this run wrote" in capsys.readouterr().err


# ---- journals -----------------------------------------------------------------------------------

ANSWER = Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))


def test_records_of_another_run_count_as_never_written(tmp_path: Path) -> None:
    with Journal(tmp_path, owner="model a") as journal:
        journal.append({0: ANSWER})
    assert Journal(tmp_path, owner="model a").read() == {0: ANSWER}
    assert Journal(tmp_path, owner="model b").read() == {}


def test_no_flipped_bit_of_a_journal_is_believed(tmp_path: Path) -> None:
    with Journal(tmp_path, owner="model") as journal:
        journal.append({0: ANSWER})
    (path,) = tmp_path.glob("*.jsonl")
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert Journal(tmp_path, owner="model").read() == {}, bit


def test_a_run_passes_over_the_journal_of_another(
    again: Callable, finished: Path, tmp_path: Path
) -> None:
    def leave(folder: Path) -> None:
        identity = json.loads((folder / "results.json").read_text())["identity"]
        unfinished(json.dumps(identity).encode())(folder)
        with Journal(folder / "journal", owner="another") as journal:
            journal.append(dict.fromkeys(range(5), ANSWER))

    assert again(leave)[0] == 0
    assert is_whole(folder_of(tmp_path / "results"), finished)


# ---- a full disk --------------------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_at_any_step_is_one_line_and_the_run_goes_on(
    arguments: list[str], finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", *arguments, "--output", str(tmp_path / "results")]
    capsys.readouterr()
    for kilobytes in (0, 1, 8, 32):
        with largest_file(kilobytes * 1024):
            code = cli.main(command)
        out, error = capsys.readouterr()
        assert (code, out) == (1, "")
        assert error.count("\n") == 1
        assert "file too large; what was saved is kept" in error
    assert cli.main(command) == 0
    assert is_whole(folder_of(tmp_path / "results"), finished)


# ---- paths and pipes ----------------------------------------------------------------------------


def test_paths_that_are_no_files_are_one_line(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    run = str(folder_of(finished))
    capsys.readouterr()
    for path in (
        *(tmp_path, loop, tmp_path / ("x" * 5000), tmp_path / "gone", Path("/dev/null")),
        "~nobody-of-this-name/x",
    ):
        for command in (
            ["score", "--task", "neg136", "--predictions", str(path), "--data", str(path)],
            ["report", str(path)],
            ["compare", run, str(path)],
            ["run", "--model", "demo:masked", "--data", str(path)],
        ):
            assert cli.main(command) == 2, command
            out, error = capsys.readouterr()
            assert out == ""
            assert error.startswith("lmdiag: error: ")
            assert error.count("\n") == 1
    assert cli.main(["report", run, "--out", str(tmp_path / ("x" * 300))]) == 2
    assert "file name too long" in capsys.readouterr().err


def test_output_that_nobody_takes_ends_a_command_without_a_traceback(finished: Path) -> None:
    code = "import sys; from lmdiag.cli import main; sys.exit(main(sys.argv[1:]))"
    program = [sys.executable, "-c", code, "report", str(folder_of(finished))]
    read, closed = os.pipe()
    os.close(read)
    full = os.open("/dev/full", os.O_WRONLY)
    for out, message in ((closed, ""), (full, "no space left on device; what was saved is kept")):
        done = subprocess.run(
            [*program, "--format", "csv"], stdout=out, stderr=-1, text=True, check=False
        )
        os.close(out)
        assert done.returncode == 1
        assert message in done.stderr
        assert done.stderr.count("\n") == bool(message)
