"""The leaderboard: requests, the board's own runs, its site; and what strangers try."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from hub import LoopbackHub
from hub.boards import HOSTILE, build, edit, request, run_of, write_request
from huggingface_hub import HfApi
from limits import HANG
from parsed import ParsedPage

from lmdiag.cli import main
from lmdiag.comparison import compare_runs
from lmdiag.hub.benchmark import columns
from lmdiag.hub.publish import plan_leaderboard
from lmdiag.hub.requests import Entry, parse_request, read_requests
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.rows import Row, comparisons, outcomes, ranked
from lmdiag.leaderboard.running import Limits, failure, run_missing
from lmdiag.report.page import digest
from lmdiag.results import Figure, read_results
from lmdiag.types import BadInput

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
FIRST = "cprag102_accuracy_at_5"
GOOD = {"model": "org/model", "commit": "a" * 40, "dtype": "float32"}


@pytest.fixture
def board(tmp_path: Path, demo_dir: Path) -> Board:
    """A board whose requests are in `tmp_path` and whose runs are in `tmp_path/board-runs`."""
    return Board(tmp_path / "board-runs", str(demo_dir))


@pytest.fixture
def site(board: Board, tmp_path: Path, demo_dir: Path) -> Callable[[], dict[str, Any]]:
    """Builds the site of the runs that are there; returns its record."""
    return lambda: build(tmp_path, demo_dir, "--no-run")


def add(board: Board, tmp_path: Path, model: str, skill: float = 1.0, **fields: Any) -> Path:
    """Writes a request and its run; returns the file of the request."""
    wanted = request(model, **fields)
    run_of(board, wanted, skill=skill)
    return write_request(tmp_path, wanted)


def names(record: dict[str, Any]) -> list[str]:
    return [f"{row['rank']} {row['model']['id']} {row['model']['dtype']}" for row in record["rows"]]


def reasons(record: dict[str, Any]) -> dict[str, str]:
    return {
        entry["name"].rpartition("requests/")[2]: entry["reason"] for entry in record["not_run"]
    }


def test_columns_are_the_tasks_of_the_benchmark_and_spell_the_measure() -> None:
    benchmark = yaml.safe_load((ROOT / "datasets/lmdiag/eval.yaml").read_text())
    assert [(task["id"], task["config"]) for task in benchmark["tasks"]] == [
        (column.task_id, place.task) for place, column in columns().items()
    ]
    for place, column in columns().items():
        level = f"_{place.level}" if place.level else ""
        spelled = f"{place.task}_{place.measure}{level}".replace("@", "_at_")
        assert column.task_id == re.sub(r"[./]", "_", spelled)


# ---- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, None),
        ({"quantization": "8bit", "note": "x" * 200}, None),
        ({"model": "gpt2"}, "model: must be an id of a model on the Hub, namespace/name"),
        ({"model": "People"}, "model: must be an id"),
        ({"model": "../../x"}, "model: must be an id"),
        ({"model": "org/m\u043edel"}, "model: must be an id"),  # a Cyrillic o
        ({"model": "org/mo\u200bdel"}, "model: must be an id"),  # a space of no width
        ({"commit": "v1 (reproduced)"}, "commit: must be a commit of 40 hexadecimal digits"),
        ({"commit": "A" * 40}, "commit: must be a commit"),
        ({"dtype": "int1"}, "dtype: input should be 'float64', 'float32', 'float16' or 'bfloat16'"),
        ({"quantization": "2bit"}, "quantization: input should be '8bit' or '4bit'"),
        ({"note": "x" * 201}, "note: string should have at most 200 characters"),
        ({"kind": "causal"}, "kind: extra inputs are not permitted"),
        ({"model": ["org/model"]}, "model: input should be a valid string"),
    ],
)
def test_a_request_is_read_or_refused_by_its_field(
    fields: dict[str, Any], said: str | None
) -> None:
    text = yaml.safe_dump(GOOD | fields)
    if said is None:
        assert parse_request(parse_request(text).to_yaml()) == parse_request(text)
        return
    with pytest.raises(BadInput, match=re.escape(said)):
        parse_request(text)


@pytest.mark.parametrize("text", ["", "[" * 3000, "- a", "a: &a [*a]", "\x00", "!!python/name:os"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_request(text)


def test_every_file_is_a_request_in_its_place_or_is_refused(tmp_path: Path) -> None:
    good = write_request(tmp_path, request("org/model"))
    copy = tmp_path / "requests/a-copy.yaml"
    copy.write_text(good.read_text())
    write_request(tmp_path, request("org/large"), "#" * 5000)
    claimed = good.with_suffix(".json")
    claimed.write_text('{"schema_version": 1, "model": NaN}')
    (entry,), refused = read_requests([str(tmp_path)])
    assert (entry.request, entry.claimed) == (request("org/model"), None)
    told = {refusal.name.rpartition("/")[2]: refusal.reason for refusal in refused}
    assert told["a-copy.yaml"] == f"a request with this content belongs in {entry.request.path}"
    assert "has 5,000 bytes; at most 4,000 are read" in told[f"{'a' * 40}-float32.yaml"]
    assert told[claimed.name]
    claimed.write_text(" " * 1_000_001)
    assert "at most 1,000,000 are read" in str(read_requests([str(tmp_path)])[1])
    with pytest.raises(BadInput, match="has no requests/: name a results repository"):
        read_requests([str(tmp_path / "requests")])


# ---- rows, ranks, claims -------------------------------------------------------------------------


def test_equal_figures_share_a_rank_and_a_row_without_one_has_none() -> None:
    values = {"a": 0.9, "b": 0.7, "c": 0.7, "d": 0.5, "e": None}
    results: Any = type("R", (), {"model": type("M", (), {"commit": ""})})
    run: Any = type("Run", (), {"results": results})
    rows = [
        Row(request(f"org/{name}"), run, {} if value is None else {FIRST: Figure(value, 34)})
        for name, value in values.items()
    ]
    assert [(row.request.model, row.rank) for row in ranked(rows[::-1])] == [
        ("org/a", 1), ("org/b", 2), ("org/c", 2), ("org/d", 4), ("org/e", None),
    ]  # fmt: skip


def test_the_record_has_the_figures_of_the_runs(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    add(board, tmp_path, "org/weak", skill=0.0)
    add(board, tmp_path, "org/strong", skill=4.0)
    record = site()
    assert names(record) == ["1 org/strong float32", "2 org/weak float32"]
    results = read_results(next(board.folder(request("org/weak")).glob("*/")))
    shown = {key: figure["value"] for key, figure in record["rows"][1]["figures"].items()}
    assert shown == {
        column.task_id: figure.value
        for place, column in columns().items()
        if (figure := results.figure(place)) is not None
    }
    assert len(shown) == 13
    for row in record["rows"]:
        assert (
            tmp_path / "board" / row["page"]
        ).read_text() == "<!doctype html><title>float32</title>"


def test_claimed_figures_change_no_rank_and_are_marked_where_they_differ(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Attacks: a forged results.json; answers shifted within a tolerance; a row that differs."""
    add(board, tmp_path, "org/honest", skill=3.0)
    before = site()

    def forge(results: dict[str, Any]) -> None:
        for settings in results["tasks"].values():
            for figure in settings["none"]["measures"].values():
                figure["value"] = 1.0

    for model in ("org/forged", "org/not-there"):
        file = add(board, tmp_path, model, skill=0.0)
        shutil.copy(next(board.folder(request(model)).glob("*/results.json")), tmp_path)
        edit(tmp_path, forge)
        (tmp_path / "results.json").rename(file.with_suffix(".json"))
    shutil.rmtree(board.folder(request("org/not-there")))
    record = site()
    assert names(record) == ["1 org/honest float32", "2 org/forged float32"]
    assert record["rows"][0] == before["rows"][0]
    assert record["rows"][1]["figures"][FIRST]["value"] < 1.0
    assert record["rows"][1]["claimed_otherwise"][FIRST] == 1.0
    (absent,) = record["not_run"]
    assert (absent["name"], absent["reason"]) == ("org/not-there", "not run yet")
    assert absent["claimed"][FIRST] == 1.0
    page = ParsedPage((tmp_path / "board/index.html").read_text()).text
    assert page.count("claimed figures differ") == 2  # on the row and in the legend
    assert page.index("Requests without a run") < page.index("not-there")


def test_rounding_of_the_dtype_is_not_marked(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Of 18 items, one may differ in float32 and four in bfloat16."""
    for dtype, differing in (("float32", 2), ("bfloat16", 5)):
        file = add(board, tmp_path, "org/model", dtype=dtype)
        path = next(board.folder(request("org/model", dtype=dtype)).glob("*/results.json"))
        for more in (differing - 1, differing):
            results = json.loads(path.read_text())
            figure = results["tasks"]["cprag102"]["none"]["measures"]["accuracy@5"]
            assert figure["n"] == 18
            figure["value"] += (more if figure["value"] < 0.5 else -more) / 18
            file.with_suffix(".json").write_text(json.dumps(results))
            (row,) = [row for row in site()["rows"] if row["model"]["dtype"] == dtype]
            assert bool(row["claimed_otherwise"]) == (more == differing)


def test_another_dtype_quantization_or_commit_is_a_row_of_its_own(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Attack: invented runs of an honest model. Without a run of the board they have no rank."""
    add(board, tmp_path, "org/model", skill=2.0)
    add(board, tmp_path, "org/model", skill=0.0, dtype="float16")
    add(board, tmp_path, "org/model", skill=1.0, commit="b" * 40)
    write_request(tmp_path, request("org/model", quantization="4bit"))
    record = site()
    assert [row["rank"] for row in record["rows"]] == [1, 2, 3]
    assert reasons(record) == {"org/model": "not run yet"}


def test_files_of_strangers_replace_no_run(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Attacks: edited predictions that sort earlier; a second request; names as in the page."""
    file = add(board, tmp_path, "org/model", skill=2.0)
    before = site()
    run = next(board.folder(request("org/model")).iterdir())
    shutil.copytree(run, tmp_path / "requests/a/run")
    shutil.copytree(run, tmp_path / "requests/org/model/run")
    (tmp_path / "requests/a.yaml").write_text(file.read_text())
    write_request(tmp_path, request("org/people"), yaml.safe_dump(GOOD | {"model": "People"}))
    write_request(tmp_path, request("org/x"), yaml.safe_dump(GOOD | {"commit": "v1 (reproduced)"}))
    record = site()
    assert record["rows"] == before["rows"]
    assert reasons(record) == {
        "a.yaml": f"a request with this content belongs in {request('org/model').path}",
        request("org/people").path[
            9:
        ]: "model: must be an id of a model on the Hub, namespace/name",
        request("org/x").path[9:]: "commit: must be a commit of 40 hexadecimal digits",
    }
    # In the board's own directory, a run of another model, or with other predictions, is not used.
    for change in (lambda r: r["model"].update(id="org/other"), lambda r: r.update(signature="x"),
                   lambda r: r.update(files={"predictions.parquet": "0" * 64})):  # fmt: skip
        kept = (run / "results.json").read_text()
        edit(run, change)
        assert site()["rows"] == []
        (run / "results.json").write_text(kept)


def test_two_rows_are_compared_as_by_the_command(board: Board, tmp_path: Path) -> None:
    runs = []
    for model, skill in (("org/strong", 3.0), ("org/weak", 0.5)):
        add(board, tmp_path, model, skill=skill)
        runs.append(board.run(request(model)))
    rows = [Row(request("org/x"), run, {}) for run in runs if run]
    first, second = by_row = outcomes(rows)
    tests = comparisons(by_row)
    found = {(x.task, x.measure, x.level.replace("simp/", "")): x for x in compare_runs(*runs)}
    for place, column in columns().items():
        comparison = found.get((place.task, place.measure, place.level.replace("simp/", "")))
        if comparison is None or column.task_id not in first:
            continue
        pairs = [*zip(first[column.task_id], second[column.task_id], strict=True)]
        wins, losses = pairs.count(("1", "0")), pairs.count(("0", "1"))
        assert comparison.difference == pytest.approx((wins - losses) / len(pairs))
        if wins + losses:
            low, high, p = tests[f"{len(pairs)} {max(wins, losses)} {min(wins, losses)}"]
            low, high = (low, high) if wins >= losses else (-high, -low)
            assert p == pytest.approx(comparison.p, abs=1e-4)
            within = 1.5 / len(pairs)  # the ends of a bootstrap interval are multiples of 1/n
            assert (low, high) == pytest.approx((comparison.ci_low, comparison.ci_high), abs=within)
    assert len(found) >= 7


# ---- running -------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has a shell script run in place of `python -m lmdiag run`."""

    def replace(script: str) -> None:
        file = tmp_path / "program"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(file))

    return replace


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("sleep 600", Limits(seconds=0.5), "it took longer than 0.5 seconds"),
        ("echo first >&2; echo 'lmdiag: error: bad model' >&2; exit 2", Limits(), "bad model"),
        ("kill -SEGV $$", Limits(), "the run was ended by SIGSEGV"),
        ("echo token hf_abcdefghijkl in $HOME >&2; exit 1", Limits(), "token hf_*** in ~"),
        (f"{sys.executable} -c 'x = bytearray(10**9)'", Limits(memory=300_000_000), "MemoryError"),
        ("exit 0", Limits(), "exit code 0"),
    ],
)
def test_a_run_that_fails_has_a_reason_and_the_others_are_run(
    script: str, limits: Limits, reason: str, board: Board, program: Callable[[str], None]
) -> None:
    program(script)
    entries = [*(Entry(request(f"org/{name}").model_copy(update={"commit": ""})) for name in "ab")]
    said: list[str] = []
    run_missing(board, entries, limits, said.append)
    assert [failure(board, entry.request) for entry in entries] == [reason, reason]
    assert said[1::2] == [f"failed: {reason}"] * 2
    said.clear()
    run_missing(board, entries, limits, said.append)
    assert len(said) == (0 if limits.seconds < 1 else 4), "a limit on time is not exceeded twice"


def test_a_child_gets_the_options_of_the_request_and_no_key(
    board: Board, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-1234")
    program('echo "$@" key=$OPENAI_API_KEY >&2; exit 2')
    wanted = request("org/model", dtype="float16", quantization="8bit").model_copy(
        update={"commit": ""}
    )
    run_missing(board, [Entry(wanted)], Limits(device="cpu"), lambda line: None)
    said = failure(board, wanted)
    assert said.startswith(
        "-m lmdiag run --quiet --tasks cprag102 role88 neg136 --model org/model "
    )
    assert "--dtype float16 --quantization 8bit" in said
    assert "trust" not in said
    assert "pickle" not in said
    assert said.endswith(f"--device-map cpu --output {board.output(wanted)} key=")


def test_a_killed_leaderboard_leaves_no_child_and_no_lock(
    board: Board, tmp_path: Path, program: Callable[[str], None]
) -> None:
    wanted = request("org/model").model_copy(update={"commit": ""})
    python, pid = sys.executable, tmp_path / "pid"
    program(f"echo $$ > {pid}; exec sleep 600")
    code = f"""
import sys
from lmdiag.hub.requests import Entry, RunRequest
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.running import Limits, run_missing
from pathlib import Path
sys.executable = {sys.executable!r}
wanted = RunRequest.model_construct(**{wanted.model_dump()!r})
board = Board(Path({str(board.runs)!r}), {board.data!r})
run_missing(board, [Entry(wanted)], Limits(), print)
"""
    parent = subprocess.Popen([python, "-c", code])
    deadline = time.monotonic() + HANG
    while not (pid.exists() and pid.read_text().strip()):
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    parent.kill()
    parent.wait(HANG)
    child = int(pid.read_text())
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    program("echo again >&2; exit 2")
    run_missing(board, [Entry(wanted)], Limits(), lambda line: None)
    assert failure(board, wanted) == "again"


def header(content: Any) -> bytes:
    """A file of weights with this header, and nothing else."""
    text = json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text


WEIGHTS = header({"w": {"dtype": "F32", "shape": [10, 30], "data_offsets": [0, 1200]}})


@pytest.mark.parametrize(
    ("path", "content", "most", "reason"),
    [
        ("model.safetensors", WEIGHTS, 300, "exit code 1"),  # the program's: the check is passed
        ("model.safetensors", WEIGHTS, 299, "org/a at {} has 300 parameters, more than 299"),
        ("pytorch_model.bin", b"x", 300, "org/a at {} has no safetensors weights"),
        *(
            ("model.safetensors", content, 300, "org/a at {} has damaged safetensors weights")
            for content in (b"x" * 30, header([1]), header({"w": {"dtype": []}}), b"")
        ),
    ],
)
def test_models_are_checked_before_they_are_downloaded(
    path: str, content: bytes, most: int, reason: str,
    hub: LoopbackHub, api: HfApi, board: Board, program: Callable[[str], None],
) -> None:  # fmt: skip
    program("exit 1")
    api.create_repo("org/a")
    commit = api.upload_file(path_or_fileobj=content, path_in_repo=path, repo_id="org/a").oid
    for wanted, said in (
        (request("org/a", commit=commit), reason.format(commit[:12])),
        (request("org/a", commit="d" * 40), f"org/a at {'d' * 12}: not found, or not visible to "
         "you; check the name and `hf auth whoami`"),
    ):  # fmt: skip
        run_missing(board, [Entry(wanted)], Limits(parameters=most), lambda line: None)
        assert failure(board, wanted) == said
    assert not [x for method, x, _ in hub.log if method == "GET" and x.endswith(".bin")]


# ---- the site ------------------------------------------------------------------------------------


def test_a_site_is_replaced_as_a_whole_and_other_directories_are_left_alone(
    board: Board,
    site: Callable[[], dict[str, Any]],
    tmp_path: Path,
    demo_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add(board, tmp_path, "org/model")
    site()
    files = {path: path.read_bytes() for path in (tmp_path / "board").rglob("*.*")}
    site()
    assert {path: path.read_bytes() for path in (tmp_path / "board").rglob("*.*")} == files
    replace_path = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        if self.name.endswith(".building"):
            raise KeyboardInterrupt
        return replace_path(self, target)

    command = ["leaderboard", str(tmp_path), "--data", str(demo_dir), "--no-run", "--out"]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        assert main([*command, str(tmp_path / "board")]) == 130
    site()
    assert {path: path.read_bytes() for path in (tmp_path / "board").rglob("*.*")} == files
    assert not [*tmp_path.glob(".board*")]
    (tmp_path / "precious").write_text("mine")
    for out, message in ((tmp_path, "is not a leaderboard directory: choose an empty one"),
                         (tmp_path / "precious", "is a file: name a directory")):  # fmt: skip
        assert main([*command, str(out)]) == 2
        assert message in capsys.readouterr().err


def test_a_site_is_published_and_old_pages_are_removed(
    api: HfApi, board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    file = add(board, tmp_path, "org/gone")
    add(board, tmp_path, "org/model")
    for n in (2, 1):
        site()
        plan_leaderboard(tmp_path / "board", "org/board").send(api, private=True)
        files = api.list_repo_files("org/board", repo_type="space")
        assert {"index.html", "leaderboard.json", "README.md"} < set(files)
        assert sum(path.startswith("models/") for path in files) == n
        file.unlink(missing_ok=True)
    assert api.space_info("org/board").sdk == "static"


def test_hostile_text_stays_text(
    board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Texts of a model, in requests, in names of files and in reasons."""
    add(board, tmp_path, "org/plain")
    write_request(tmp_path, request("org/x"), "model: x")
    site()
    allowed = {tag for tag, _ in ParsedPage((tmp_path / "board/index.html").read_text()).tags}
    for number, text in enumerate(HOSTILE.values()):
        wanted = request(f"org/model-{number}")
        write_request(tmp_path, wanted)
        run_of(board, wanted, revision=text, architecture=text, tokenizer=text)
        fields = {"model": text, "commit": text, "note": text, text: text}
        write_request(tmp_path, request(f"org/bad-{number}"), yaml.safe_dump(fields))
        failed = request(f"org/failed-{number}")
        write_request(tmp_path, failed)
        board.folder(failed).mkdir(parents=True)
        (board.folder(failed) / "failure.json").write_text(
            json.dumps({"reason": text, "seconds": 0})
        )
    named = tmp_path / "requests/<img src=x onerror=alert(1)>.yaml"
    named.write_text("{}")
    record = site()
    assert len(record["rows"]) == len(HOSTILE) + 1
    text = (tmp_path / "board/index.html").read_text()
    page = ParsedPage(text)
    assert "<img src=x onerror=alert(1)>.yaml" in page.text
    assert {tag for tag, _ in page.tags} <= allowed | {"bdi", "br", "li", "wbr"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"style", "src"} & set(attributes)
        address = attributes.get("href") or "#"
        assert re.fullmatch(r"#.*|https://huggingface\.co/[\w/-]+|models/[\w-]+\.html|data:,"
                            r"|leaderboard\.json", address)  # fmt: skip
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        assert f"{kind}-src '{digest(page.code[kind].encode())}';" in policy
    for path in tmp_path.glob("board/*.*"):
        categories = {unicodedata.category(c) for c in path.read_text() if c != "\n"}
        assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}, path
