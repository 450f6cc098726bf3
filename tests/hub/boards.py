"""Leaderboards of invented models for tests: requests in a folder, and runs that were not made."""

import json

from invented_runs import make_run

from lmdiag.cli import main
from lmdiag.hub.requests import RunRequest
from lmdiag.results import REPORT


def edit(run, change):
    """Changes the `results.json` of a run, and returns the run."""
    results = json.loads((run / "results.json").read_text())
    change(results)
    (run / "results.json").write_text(json.dumps(results))
    return run


def request(model, **fields):
    """A request in float32, at a commit that no other test uses."""
    return RunRequest(**{"model": model, "commit": "a" * 40, "dtype": "float32"} | fields)


def write_request(folder, wanted, text=None):
    """Writes a request into a folder of requests; `text` takes the place of its content."""
    file = folder / wanted.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(wanted.to_yaml() if text is None else text)
    return file


def run_of(board, wanted, **invented):
    """Writes the run of an invented model where the board keeps the run of this request."""
    names = ("commit", "dtype", "quantization")
    facts = {"id": wanted.model} | {name: getattr(wanted, name) for name in names}
    run = make_run(board.folder(wanted), board.data, **facts | invented)
    (run / REPORT).write_text(f"<!doctype html><title>{wanted.precision}</title>")
    return run


def build(root, data, *more):
    """Builds the site of `root/requests` and `root/board-runs` as the command does; its record."""
    command = ["leaderboard", str(root), "--out", str(root / "board"), "--data", str(data), *more]
    assert main(command) == 0
    record = json.loads((root / "board/leaderboard.json").read_text())
    return record
