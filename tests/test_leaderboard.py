"""The leaderboard: requests, the board's own runs, its site; and what strangers try."""

from __future__ import annotations

import json
import math
import re
import shutil
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from itertools import permutations
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
from runs import WITH_AGREEMENT, make_run

from lmdiag.cli import main
from lmdiag.comparison import compare_runs
from lmdiag.hub.benchmark import columns, leaderboard_figures
from lmdiag.hub.publish import plan_leaderboard
from lmdiag.hub.requests import Entry, RunRequest, parse_request, read_requests
from lmdiag.leaderboard import running
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.comparisons import comparisons
from lmdiag.leaderboard.rows import Row, ranked
from lmdiag.leaderboard.running import Limits, free_memory, run_missing
from lmdiag.report.page import digest
from lmdiag.results import Figure, load_run, read_results
from lmdiag.types import BadInput

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
FIRST = "cprag102_accuracy_at_5"
Attacked = tuple[Path, Board, dict[str, Any], dict[str, Any]]
"""Folder, board, and the record of the site before and after the attacks."""
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


def entry(model: str, **fields: Any) -> Entry:
    return Entry(model, request(model, **fields))


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
        ({"model": "gpt2"}, "model: 'gpt2' is not a repository id: write namespace/name"),
        ({"model": "People"}, "is not a repository id"),
        ({"model": "../../x"}, "is not a repository id"),
        ({"model": "org/m\u043edel"}, "is not a repository id"),  # a Cyrillic o
        ({"model": "org/mo\u200bdel"}, "is not a repository id"),  # a space of no width
        ({"commit": "v1 (reproduced)"}, "commit: string should match pattern '^[0-9a-f]{40}$'"),
        ({"commit": "A" * 40}, "commit: string should match pattern"),
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
        wanted = RunRequest(**GOOD | fields)
        assert parse_request(text, wanted.path) == wanted
        assert parse_request(wanted.to_yaml(), wanted.path) == wanted
        return
    with pytest.raises(BadInput, match=re.escape(said)):
        parse_request(text, "")


@pytest.mark.parametrize("text", ["", "[" * 3000, "- a", "a: &a [*a]", "\x00", "!!python/name:os"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_request(text, "")


def test_every_file_is_a_request_in_its_place_or_is_refused(tmp_path: Path) -> None:
    good = write_request(tmp_path, request("org/model"))
    copy = tmp_path / "requests/a-copy.yaml"
    copy.write_text(good.read_text())
    write_request(tmp_path, request("org/large"), "#" * 5000)
    claimed = good.with_suffix(".json")
    claimed.write_text('{"schema_version": 1, "model": NaN}')
    entries = [*read_requests([str(tmp_path)])]
    (wanted,) = [entry for entry in entries if entry.request]
    assert (wanted.request, wanted.claimed) == (request("org/model"), {})
    told = {entry.name.rpartition("/")[2]: entry.reason for entry in entries if not entry.request}
    assert told["a-copy.yaml"] == f"a request with this content belongs in {wanted.key}"
    assert "has 5,000 bytes; at most 4,000 are read" in told[f"{'a' * 40}-float32.yaml"]
    assert told[claimed.name]
    claimed.write_text(" " * 1_000_001)
    assert "at most 1,000,000 are read" in str([*read_requests([str(tmp_path)])])
    with pytest.raises(BadInput, match="has no requests/: name a results repository"):
        [*read_requests([str(tmp_path / "requests")])]


# ---- rows, ranks, claims -------------------------------------------------------------------------


def test_equal_figures_share_a_rank_and_a_row_without_one_has_none() -> None:
    values = {"a": 0.9, "b": 0.7, "c": 0.7, "d": 0.5, "e": None}
    run: Any = None
    rows = [
        Row(entry(f"org/{name}"), run, {} if value is None else {FIRST: Figure(value, 34)})
        for name, value in values.items()
    ]
    assert [(row.entry.name, row.rank) for row in ranked(rows[::-1])] == [
        ("org/a", 1), ("org/b", 2), ("org/c", 2), ("org/d", 4), ("org/e", None),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, demo_dir: Path) -> Attacked:
    """A leaderboard of an honest model, before and after strangers have tried what they can."""
    root = tmp_path_factory.mktemp("attacked")
    board = Board(root / "board-runs", str(demo_dir))
    file = add(board, root, "org/honest", skill=3.0)
    before = build(root, demo_dir, "--no-run")

    def forge(results: dict[str, Any]) -> None:
        for settings in results["tasks"].values():
            for figure in settings["none"]["measures"].values():
                figure["value"] = 1.0

    # A forged results.json, of a model that was run and of one that was not.
    for model in ("org/forged", "org/not-there"):
        forged = add(board, root, model, skill=0.0)
        shutil.copy(next(board.folder(request(model)).glob("*/results.json")), root)
        edit(root, forge)
        (root / "results.json").rename(forged.with_suffix(".json"))
    shutil.rmtree(board.folder(request("org/not-there")))
    # Runs of the honest model that only claim another dtype, quantization or commit.
    add(board, root, "org/honest", skill=2.0, dtype="float16")
    add(board, root, "org/honest", skill=1.0, commit="b" * 40)
    write_request(root, request("org/honest", quantization="4bit"))
    # Edited predictions that sort earlier; a second request; names as in the page.
    run = next(board.folder(request("org/honest")).iterdir())
    shutil.copytree(run, root / "requests/a/run")
    shutil.copytree(run, root / "requests/org/honest/run")
    (root / "requests/a.yaml").write_text(file.read_text())
    write_request(root, request("org/people"), yaml.safe_dump(GOOD | {"model": "People"}))
    write_request(root, request("org/x"), yaml.safe_dump(GOOD | {"commit": "v1 (reproduced)"}))
    return root, board, before, build(root, demo_dir, "--no-run")


def test_no_attack_changes_the_honest_row(attacked: Attacked) -> None:
    root, board, before, after = attacked
    assert after["rows"][0] == before["rows"][0]
    ranks = [(row["rank"], row["model"]["id"], row["model"]["dtype"]) for row in after["rows"]]
    assert ranks == [
        (1, "org/honest", "float32"), (2, "org/honest", "float16"),
        (3, "org/honest", "float32"), (4, "org/forged", "float32"),
    ]  # fmt: skip
    forged = after["rows"][-1]
    results = read_results(next(board.folder(request("org/forged")).glob("*/")))
    values = {key: figure["value"] for key, figure in forged["figures"].items()}
    assert values == {
        column.task_id: figure.value
        for place, column in columns().items()
        if (figure := results.figure(place)) is not None
    }
    assert len(values) == 13
    assert values[FIRST] < forged["claimed_otherwise"][FIRST] == 1.0
    report = (root / "board" / forged["page"]).read_text()
    assert report == "<!doctype html><title>float32</title>"


def test_what_was_not_run_is_listed_with_its_reason_and_without_rank(attacked: Attacked) -> None:
    root, _, _, record = attacked
    by_name = {entry["name"].rpartition("requests/")[2]: entry for entry in record["not_run"]}
    assert {name: entry["reason"] for name, entry in by_name.items()} == {
        "org/honest": "not run yet",
        "org/not-there": "not run yet",
        "a.yaml": f"a request with this content belongs in {request('org/honest').path}",
        request("org/people").path[9:]:
            "model: 'People' is not a repository id: write namespace/name",
        request("org/x").path[9:]: "commit: string should match pattern '^[0-9a-f]{40}$'",
    }  # fmt: skip
    assert by_name["org/honest"]["detail"] == "aaaaaaa · float32-4bit"
    assert by_name["org/not-there"]["claimed"][FIRST] == 1.0
    page = ParsedPage((root / "board/index.html").read_text()).text
    assert page.count("claimed figures differ") == 2  # on the row and in the legend
    assert page.index("Requests without a run") < page.index("not-there")


def test_a_run_that_is_not_that_of_the_request_is_not_used(board: Board, tmp_path: Path) -> None:
    add(board, tmp_path, "org/model")
    run = next(board.folder(request("org/model")).iterdir())
    kept = (run / "results.json").read_text()
    for change in (lambda r: r["model"].update(id="org/other"), lambda r: r.update(signature="x"),
                   lambda r: r.update(files={"predictions.parquet": "0" * 64})):  # fmt: skip
        assert board.run(request("org/model"))
        edit(run, change)
        assert board.run(request("org/model")) is None
        (run / "results.json").write_text(kept)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1), ("bfloat16", 4)])
def test_rounding_of_the_dtype_is_not_marked(
    dtype: str, most: int, board: Board, tmp_path: Path
) -> None:
    """Of 18 items, one may differ in float32 and four in bfloat16."""
    add(board, tmp_path, "org/model", dtype=dtype)
    wanted = request("org/model", dtype=dtype)
    run = board.run(wanted)
    assert run is not None
    figures = leaderboard_figures(run.results)
    assert figures[FIRST].n == 18
    for items in (most, most + 1):
        claimed = {FIRST: (figures[FIRST].value or 0.0) - items / 18}
        row = Row(Entry("org/model", wanted, claimed), run, figures)
        assert row.differing == (claimed if items > most else {})


def test_two_rows_are_compared_as_by_the_command(demo_dir: Path, tmp_path: Path) -> None:
    """In both orders, every figure that the command has: difference, interval and p."""
    kinds = {"strong": ("masked", 3.0), "weak": ("masked", 0.5), "other": ("causal", 1.0)}
    runs = [
        load_run(
            make_run(tmp_path / name, demo_dir, WITH_AGREEMENT, kind=kind, skill=skill, seed=i)
        )
        for i, (name, (kind, skill)) in enumerate(kinds.items())
    ]
    found = comparisons(runs)
    seen = set()
    for i, j in permutations(range(3), 2):
        expected = {(x.task, x.measure, x.by, x.level): x for x in compare_runs(runs[i], runs[j])}
        for place, column in columns().items():
            number = found["columns"][column.task_id][i][j]
            x = expected.get((place.task, place.measure, place.by, place.level))
            if x is not None:
                numbers = [None if math.isnan(v) else pytest.approx(v, abs=1e-6)
                           for v in (x.difference, x.ci_low, x.ci_high, x.p)]  # fmt: skip
                assert list(found["results"][number]) == numbers
                seen.add((column.task_id, x.test))
            elif place.measure in ("ew", "mw"):
                assert 2 in (i, j)
                assert number is None  # other contexts
    assert {("agreement_ew", "sign-flip"), ("agreement_mw", "sign-flip"),
            ("role88_sensitivity", "mcnemar")} <= seen  # fmt: skip


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
    wanted = [request(f"org/{name}").model_copy(update={"commit": ""}) for name in "ab"]
    entries = [Entry(x.model, x) for x in wanted]
    said: list[str] = []
    run_missing(board, entries, limits, said.append)
    assert [board.failure(x).reason for x in wanted] == [reason, reason]
    assert said[1::2] == [f"failed: {reason}"] * 2
    said.clear()
    run_missing(board, entries, limits, said.append)
    assert len(said) == (0 if limits.seconds < 1 else 4), "a limit on time is not exceeded twice"


def test_memory_is_not_limited_where_an_accelerator_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = {}
    for has_device in (False, True):
        monkeypatch.setattr(running, "_ACCELERATORS", (str(tmp_path),) if has_device else ())
        limited[has_device] = [bool(free_memory(x)) for x in ("cpu", None, "cuda:0")]
    assert limited == {False: [True, True, False], True: [True, False, False]}


def test_a_child_gets_the_options_of_the_request_and_no_key(
    board: Board, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-1234")
    program('echo "$@" key=$OPENAI_API_KEY >&2; exit 2')
    wanted = request("org/model", dtype="float16", quantization="8bit").model_copy(
        update={"commit": ""}
    )
    run_missing(board, [Entry(wanted.model, wanted)], Limits(device="cpu"), lambda line: None)
    said = board.failure(wanted).reason
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
from lmdiag.leaderboard.running import Limits, free_memory, run_missing
from pathlib import Path
sys.executable = {sys.executable!r}
wanted = RunRequest.model_construct(**{wanted.model_dump()!r})
board = Board(Path({str(board.runs)!r}), {board.data!r})
run_missing(board, [Entry(wanted.model, wanted)], Limits(), print)
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
    run_missing(board, [Entry(wanted.model, wanted)], Limits(), lambda line: None)
    assert board.failure(wanted).reason == "again"


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
        run_missing(
            board, [Entry(wanted.model, wanted)], Limits(parameters=most), lambda line: None
        )
        assert board.failure(wanted).reason == said
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
        plan_leaderboard(tmp_path / "board", "org/board").publish(api, private=True)
        files = api.list_repo_files("org/board", repo_type="space")
        assert {"index.html", "leaderboard.json", "README.md"} < set(files)
        assert sum(path.startswith("models/") for path in files) == n
        file.unlink(missing_ok=True)
    assert api.space_info("org/board").sdk == "static"


def test_hostile_text_stays_text(
    attacked: Attacked, board: Board, site: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    """Texts of a model, in requests, in names of files and in reasons."""
    allowed = {tag for tag, _ in ParsedPage((attacked[0] / "board/index.html").read_text()).tags}
    for number, text in enumerate(HOSTILE.values()):
        wanted = request(f"org/model-{number}")
        write_request(tmp_path, wanted)
        run_of(board, wanted, revision=text, architecture=text, tokenizer=text)
        fields = {"model": text, "commit": text, "note": text, text: text}
        write_request(tmp_path, request(f"org/bad-{number}"), yaml.safe_dump(fields))
        failed = request(f"org/failed-{number}")
        write_request(tmp_path, failed)
        board.folder(failed).mkdir(parents=True)
        (board.folder(failed) / "failure.json").write_text(json.dumps([text, 0]))
    named = tmp_path / "requests/<img src=x onerror=alert(1)>.yaml"
    named.write_text("{}")
    record = site()
    assert len(record["rows"]) == len(HOSTILE)
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
