"""What a run may meet in its directory: missing, damaged and foreign files; disks without room."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launched import outcome

from lmdiag import cli
from lmdiag.files.writing import replacing

FILES = {"results.json", "predictions.parquet", "report.html"}


@pytest.fixture(scope="module")
def arguments(tiny_models, demo_dir):
    """A run of seconds: the first contrasts of one diagnostic."""
    options = ["--tasks", "neg136", "--limit", "8", "--batch-size", "2", "--quiet", "--output"]
    return ["run", "--model", tiny_models["bert"], "--data", demo_dir, *options]


@pytest.fixture(scope="module")
def finished(arguments, tmp_path_factory):
    """The output of a finished run. Read only."""
    output = tmp_path_factory.mktemp("finished") / "results"
    assert cli.main([*map(str, arguments), str(output)]) == 0
    return output


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the directory of the finished run."""
    (folder,) = Path(shutil.copytree(finished, tmp_path / "results")).glob("*/*")
    return folder


def draft_of_a_killed_process(path):
    """The name of a temporary file of a process that has ended; 4194305 is never a process."""
    with replacing(path.with_name("other")):
        (draft,) = path.parent.glob(".other.draft-*")
    path.with_name("other").unlink()
    name = draft.name.replace(f"{os.getpid():08x}", f"{4194305:08x}")
    return draft.with_name(name.replace("other", path.name))


@pytest.mark.parametrize("lost", ["predictions.parquet", "report.html", "results.json"])
def test_what_is_missing_is_made_again_and_what_is_left_over_is_removed(
    command, arguments, finished, folder, lost
):
    identity = json.loads((folder / "results.json").read_text())["identity"]
    (folder / lost).unlink()
    if lost == "results.json":  # as a killed run leaves it
        (folder / "run.json").write_text(json.dumps(identity))
        draft_of_a_killed_process(folder / "results.json").write_text("{")
        (folder / "journal").mkdir()
        (folder / "journal/00000-1-1.jsonl").write_text("torn")
    code, out, _ = command(*arguments, folder.parents[1])
    assert code == 0
    assert outcome(folder.parents[1]) == outcome(finished)
    assert set(out.rstrip().rpartition(": ")[2].split(", ")) == FILES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("results.json", None, "it has no results.json"),
        ("results.json", b'{"signature": "lm', "not valid JSON"),
        ("predictions.parquet", b"PAR1 of another model", "is not the file that this run wrote"),
        ("run.json", b'{"mod', "run.json: not valid JSON"),
    ],
)
def test_a_damaged_directory_is_one_line_and_keeps_its_files(
    command, arguments, folder, name, content, message
):
    """Damage is other content, or none; run.json is that of a run that has begun."""
    for other in FILES if name == "run.json" else [name]:
        (folder / other).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    if name == "predictions.parquet":
        assert message in command.refused("report", folder)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    error = command.refused(*arguments, folder.parents[1])
    assert message in error
    assert "--overwrite" in error
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    "reads",
    [
        ["report", "--format", "csv"], ["report"], ["compare"], ["analyse", "--by", "negated"],
        ["items", "--out", "items.csv"], ["submit", "--dry-run"],
    ],
    ids=lambda reads: "-".join(reads[:3]).strip("-"),
)  # fmt: skip
def test_every_command_refuses_changed_files(reads, finished, tmp_path, command):
    run = shutil.copytree(finished, tmp_path / "run")
    (folder,) = (path.parent for path in run.rglob("results.json"))
    other = [folder] if reads[0] == "compare" else []
    for name in ("results.json", "predictions.parquet"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept.replace(b'"n": 8', b'"n": 7').replace(b"PAR1", b"PAR2"))
        error = command.refused(reads[0], folder, *other, *reads[1:])
        assert f"{name} is not " in error
        (folder / name).write_bytes(kept)


def test_files_of_others_are_never_taken(command, arguments, folder):
    """Nor the temporary files of a living process; those of a killed one are removed."""
    for path in folder.iterdir():
        path.unlink()
    thesis = folder / ".draft-of-my-thesis"
    dead = draft_of_a_killed_process(folder / "report.html")
    thesis.write_text("years of work")
    dead.write_text("torn")
    with replacing(folder / "results.json"):
        (written,) = folder.glob(".results.json.draft-*")
        error = command.refused(*arguments, folder.parents[1], "--overwrite")
        assert "is not empty and is not a run directory" in error
        assert {*folder.iterdir()} == {thesis, written, folder / ".lock"}
    assert thesis.read_text() == "years of work"


@pytest.mark.pages
@pytest.mark.slow
def test_a_full_disk_at_any_step_is_one_line_and_the_run_goes_on(command, arguments, finished):
    resource = pytest.importorskip("resource")
    output = command.folder / "results"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for kilobytes in (0, 1, 8, 32):
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, limits[1]))
        try:
            error = command.refused(*arguments, output)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "file too large; what was saved is kept" in error
    signal.signal(signal.SIGXFSZ, handler)
    assert command(*arguments, output)[0] == 0
    assert outcome(output) == outcome(finished)


def test_an_output_that_cannot_be_written_is_one_line(command, arguments, tmp_path):
    (tmp_path / "file").write_text("mine")
    for output in ("/sys/lmdiag", tmp_path / "file"):
        assert "error: cannot write (" in command.refused(*arguments, output)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_output_that_nobody_takes_ends_a_command_without_a_traceback(folder):
    program = [Path(sys.executable).with_name("lmdiag"), "report", folder, "--format", "csv"]
    read, closed = os.pipe()
    os.close(read)
    full = os.open("/dev/full", os.O_WRONLY)
    full_disk = "no space left on device; what was saved is kept"
    for out, message, code in (closed, "", 141), (full, full_disk, 2):
        done = subprocess.run(program, stdout=out, stderr=-1, text=True, check=False)
        os.close(out)
        assert (done.returncode, done.stderr.count("\n")) == (code, bool(message))
        assert message in done.stderr
