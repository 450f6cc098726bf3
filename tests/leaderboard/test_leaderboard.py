"""The leaderboard: requests, the board's own runs, its site; and what strangers try."""

import json
import re
import shutil
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import httpx2
import pandas as pd
import pytest
import yaml
from filelock import FileLock
from hostile import HOSTILE
from hub import client_env
from hub.boards import build, edit, request, run_of, write_request
from huggingface_hub import HfApi, constants
from launched import HANG
from parsed import ParsedPage

from lmdiag.hub.benchmark import leaderboard_figures
from lmdiag.hub.publish import plan_leaderboard
from lmdiag.hub.requests import RunRequest, parse_request
from lmdiag.leaderboard import board as board_module
from lmdiag.leaderboard import site
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.child import check_model, child_environment
from lmdiag.leaderboard.entries import RankedEntry, ranked, read_requests
from lmdiag.results import Figure, read_results
from lmdiag.types import BadInput

FIRST = "cprag102_accuracy_at_5"
GOOD = {"model": "org/model", "commit": "a" * 40, "dtype": "float32"}


@pytest.fixture
def board(tmp_path, demo_dir):
    """A board whose requests are in `tmp_path` and whose runs are in `tmp_path/board-runs`."""
    return Board(tmp_path / "board-runs", str(demo_dir))


def add(board, model, skill=1.0, **fields):
    """Writes a request and its run; returns the file of the request."""
    wanted = request(model, **fields)
    run_of(board, wanted, skill=skill)
    return write_request(board.runs.parent, wanted)


# ---- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"quantization": "8bit", "note": "x" * 200}, None),
        ({"model": "People"}, "model: 'People' is not a repository id: write namespace/name"),
        ({"model": "../../x"}, "is not a repository id"),
        ({"model": "org/m\u043edel"}, "is not a repository id"),  # a Cyrillic o
        ({"model": ["org/model"]}, "model: input should be a valid string"),
        ({"commit": "A" * 40}, "commit: string should match pattern '^[0-9a-f]{40}$'"),
        ({"dtype": "int1"}, "dtype: input should be 'float64', 'float32', 'float16' or 'bfloat16'"),
        ({"quantization": "2bit"}, "quantization: input should be '8bit' or '4bit'"),
        ({"note": "x" * 201}, "note: string should have at most 200 characters"),
        ({"kind": "causal"}, "kind: extra inputs are not permitted"),
    ],
)
def test_a_request_is_read_or_refused_by_its_field(fields, said):
    if said is None:
        wanted = RunRequest(**GOOD | fields)
        assert parse_request(wanted.to_yaml(), wanted.path) == wanted
        return
    with pytest.raises(BadInput, match=re.escape(said)):
        parse_request(yaml.safe_dump(GOOD | fields), "")


@pytest.mark.slow
def test_every_file_is_a_request_in_its_place_or_is_refused(tmp_path):
    good = write_request(tmp_path, request("org/model"))
    good.with_suffix(".json").write_text('{"schema_version": 1, "model": NaN}')
    texts = ["", "[" * 3000, "- a", "a: &a [*a]", "\x00", "!!python/name:os", "#" * 5000]
    for number, text in enumerate([good.read_text(), *texts]):
        (tmp_path / f"requests/{number}.yaml").write_text(text)
    entries = [*read_requests([str(tmp_path)])]
    (wanted,) = [entry for entry in entries if entry.request]
    assert (wanted.request, wanted.claimed) == (request("org/model"), {})
    told = {Path(entry.name).name: entry.reason for entry in entries if not entry.request}
    assert len(told) == len(entries) - 1 == 9
    assert told["0.yaml"] == f"a request with this content belongs in {wanted.key}"
    assert "has 5,000 bytes; at most 4,000 are read" in told["7.yaml"]
    good.with_suffix(".json").write_text(" " * 1_000_001)
    assert "at most 1,000,000 are read" in str([*read_requests([str(tmp_path)])])
    with pytest.raises(BadInput, match="has no requests/: name a results repository"):
        [*read_requests([str(tmp_path / "requests")])]


def test_links_and_data_in_a_checkout_are_not_followed(tmp_path, monkeypatch, command):
    linked = write_request(tmp_path, request("org/linked"))
    claims = write_request(tmp_path, request("org/model")).with_suffix(".json")
    linked.rename(tmp_path / "outside")
    for link in (linked, claims):
        link.symlink_to(tmp_path / "outside")
    entries = [*read_requests([str(tmp_path)])]
    assert [(bool(x.request), x.reason[:12]) for x in entries] == [
        (False, "it is a link"), (False, "it is a link"), (True, ""),
    ]  # fmt: skip
    (tmp_path / "lmdiag").mkdir()
    monkeypatch.chdir(tmp_path)
    for data in ("lmdiag", "lmdiag@main"):
        error = command.refused("leaderboard", ".", "--out", tmp_path / "site", "--data", data)
        assert f"--data {data} is a folder of .: write ./{data}" in error


def test_no_chat_template_of_a_stranger_is_used(board):
    protocol = board.protocol  # the runs of another protocol are not shown
    assert (protocol.chat, protocol.instruction, protocol.prompt) == (False, "", "")


def test_waiting_requests_of_a_model_are_capped_and_copies_share_a_row(board, demo_dir):
    root = board.runs.parent
    for model in ("org/original", "a/copy"):
        add(board, model, commit="b" * 40)
    for number in range(6):
        write_request(root, request("org/many", commit=f"{number:040}"))
    write_request(root, request("Org/Many", commit="0" * 40, quantization="8bit"))
    write_request(root, request("org/many", commit="0" * 40, dtype="float16"))
    edit(board.folder(request("a/copy", commit="b" * 40)),
         lambda run: run.update(finished="2026-01-01T00:00:00+00:00"))  # fmt: skip
    record = build(root, demo_dir, "--no-run")
    (row,) = record["rows"]
    assert (row["model"]["id"], row["also"]) == ("org/original", ["a/copy · bbbbbbb · float32"])
    reasons = [entry["reason"] for entry in record["not_run"]]
    assert reasons.count("not run yet") == 6  # five commits, the first one in two dtypes
    assert reasons.count("at most 5 commits of a model wait, in each dtype once") == 2


# ---- rows, ranks, claims, comparisons ------------------------------------------------------------


def test_rows_are_ranked_by_the_mean_above_chance_and_equal_ones_share_a_rank():
    """(.8 - .5) / .5 = .6 and (.6 - 1/3) / (2/3) = .4: mean .5; below chance it is negative."""
    third = 1 / 3
    rows = []
    for name, pair in {
        "d": (0.5, third), "c": (0.6, 0.8), "b": (0.6, 0.8), "a": (0.8, 0.6), "f": (None, 1.0),
        "e": (0.0, third),
    }.items():  # fmt: skip
        figures = (Figure(pair[0], 8, chance=0.5), Figure(pair[1], 34, chance=third))
        tasks = {
            str(number): {"none": SimpleNamespace(measures={"sensitivity": figure})}
            for number, figure in enumerate(figures)
        }
        run = SimpleNamespace(results=SimpleNamespace(tasks=tasks))
        rows.append(RankedEntry(name, run=run))
    means = [("a", 1, 0.5), ("b", 2, 0.45), ("c", 2, 0.45), ("d", 4, 0.0), ("e", 5, -0.5)]
    *best, last = ranked(rows)
    assert [(x.name, x.rank, pytest.approx(x.corrected_sensitivity)) for x in best] == means
    assert (last.name, last.rank, last.corrected_sensitivity) == ("f", None, None)


def test_a_board_of_local_models_is_not_published(tmp_path):
    (tmp_path / "leaderboard.json").write_text("{}")
    with pytest.raises(BadInput, match=r"leaderboard\.json is damaged: build the lead"):
        plan_leaderboard(tmp_path, "org/board")
    for model, is_local in (
        ({"id": "/home/x/model", "commit": None}, True),
        ({"id": "models/mine", "commit": None}, True),
        ({"id": "demo:causal", "commit": None}, False),
        ({"id": "org/model", "commit": "a" * 40}, False),
    ):
        (tmp_path / "leaderboard.json").write_text(json.dumps({"rows": [{"model": model}]}))
        if is_local:
            with pytest.raises(BadInput, match=f"shows the local path {model['id']} as the name"):
                plan_leaderboard(tmp_path, "org/board")
        else:
            assert plan_leaderboard(tmp_path, "org/board").files.keys() == {"leaderboard.json"}


@pytest.mark.slow
def test_no_attack_changes_the_honest_row(board, demo_dir):
    root = board.runs.parent
    honest = request("org/honest")
    file = add(board, "org/honest", skill=3.0)
    before = build(root, demo_dir, "--no-run")

    def forge(results):
        for settings in results["tasks"].values():
            for figure in settings["none"]["measures"].values():
                figure["value"] = 1.0

    # A forged results.json, of a model that was run and of one that was not.
    forged = [add(board, model, skill=0.0) for model in ("org/forged", "org/not-there")]
    for claim in forged:
        shutil.copy(board.folder(request("org/forged")) / "results.json", root)
        edit(root, forge)
        (root / "results.json").rename(claim.with_suffix(".json"))
    shutil.rmtree(board.folder(request("org/not-there")))
    # A run of the honest model in another dtype; edited predictions and a second request that sort
    # earlier; a name as in the page.
    add(board, "org/honest", skill=2.0, dtype="float16")
    for folder in ("requests/a/run", "requests/org/honest/run"):
        shutil.copytree(board.folder(honest), root / folder)
    (root / "requests/a.yaml").write_text(file.read_text())
    write_request(root, request("org/people"), yaml.safe_dump(GOOD | {"model": "People"}))
    record = build(root, demo_dir, "--no-run")

    assert record["rows"][0] == before["rows"][0]
    models = [("org/honest", "float32"), ("org/honest", "float16"), ("org/forged", "float32")]
    assert [(row["model"]["id"], row["model"]["dtype"]) for row in record["rows"]] == models
    assert [row["rank"] for row in record["rows"]] == [1, 2, 3]
    row = record["rows"][-1]
    computed = leaderboard_figures(read_results(board.folder(request("org/forged"))))
    assert row["figures"] == {key: figure.to_json() for key, figure in computed.items()}
    assert row["figures"][FIRST]["value"] < row["claimed_otherwise"][FIRST] == 1.0
    assert (root / "board" / row["page"]).read_text() == "<!doctype html><title>float32</title>"
    # What was not run has a reason and no rank.
    by_name = {entry["name"].rpartition("requests/")[2]: entry for entry in record["not_run"]}
    assert {name: entry["reason"] for name, entry in by_name.items()} == {
        "org/not-there": "not run yet",
        "a.yaml": f"a request with this content belongs in {honest.path}",
        request("org/people").path[9:]:
            "model: 'People' is not a repository id: write namespace/name",
    }  # fmt: skip
    assert by_name["org/not-there"]["detail"] == "aaaaaaa · float32"
    assert by_name["org/not-there"]["claimed"][FIRST] == 1.0
    page = ParsedPage((root / "board/index.html").read_text()).text
    assert page.count("claimed figures differ") == 2  # on the row and in the legend
    assert re.search(r"Of 3 models, org/\s?honest\s+has\s+the highest mean above chance, \d", page)
    assert page.index("Requests without a run") < page.index("not-there")
    # A run that is not that of its request is not used.
    folder = board.folder(honest)
    kept = (folder / "results.json").read_text()
    for change in (lambda r: r["model"].update(id="org/other"), lambda r: r.update(signature="x"),
                   lambda r: r.update(files={"predictions.parquet": "0" * 64})):  # fmt: skip
        assert board.run(honest)
        edit(folder, change)
        assert board.run(honest) is None
        (folder / "results.json").write_text(kept)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1), ("bfloat16", 4)])
def test_rounding_of_the_dtype_is_not_marked(dtype, most, board):
    """Of 18 items, one may differ in float32 and four in bfloat16."""
    add(board, "org/model", dtype=dtype)
    ((row,), _) = board.rows(read_requests([str(board.runs.parent)]))
    assert row.figures[FIRST].n == 18
    for items in (most, most + 1):
        claimed = {FIRST: (row.figures[FIRST].value or 0.0) - items / 18}
        assert replace(row, claimed=claimed).differing_claims == (claimed if items > most else {})


# ---- running -------------------------------------------------------------------------------------

LOCAL = [request(f"org/{name}").model_copy(update={"commit": ""}) for name in "ab"]


@pytest.mark.parametrize(
    ("script", "seconds", "reason"),
    [
        ("sleep 600", 0.5, "it took longer than 0.5 seconds"),
        ("echo first >&2; echo 'lmdiag: error: bad model' >&2; exit 2", HANG, "bad model"),
        ("kill -SEGV $$", HANG, "the run was ended by SIGSEGV"),
        ("echo token hf_abcdefghijkl in $HOME >&2; exit 1", HANG, "token hf_*** in ~"),
        (f"{sys.executable} -c 'x = bytearray(10**9)'", HANG, "MemoryError"),
        ('echo "keys: $OPENAI_API_KEY$HF_TOKEN $PYTHONPATH $1" >&2', HANG, "keys: reader -P"),
        ("exit 0", HANG, "exit code 0"),
    ],
)
def test_a_run_that_fails_has_a_reason_and_the_others_are_run(
    script, seconds, reason, board, monkeypatch
):
    """A shell script runs in place of `python -m lmdiag run`."""
    pytest.importorskip("resource")
    program = board.runs.with_name("program")
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(board_module, "free_memory", lambda device: 300_000_000)
    secrets = {"OPENAI_API_KEY": "secret-key-1234", "HF_TOKEN": "writer", "PYTHONPATH": "/tmp"}
    for name, value in (secrets | {"LMDIAG_BOARD_TOKEN": "reader"}).items():
        monkeypatch.setenv(name, value)
    board = replace(board, seconds=seconds)
    said = []
    board.run_missing(LOCAL, said.append)
    assert [board.failure(x)[0] for x in LOCAL] == [reason, reason]
    assert said[1::2] == [f"failed: {reason}"] * 2
    said.clear()
    board.run_missing(LOCAL, said.append)
    assert len(said) == (0 if seconds < 1 else 4), "a limit on time is not exceeded twice"


@pytest.mark.parametrize(
    "content", ["", '["cut', "null", '["no time"]', '{"reason": 1}', "[1, 2.0]"]
)
def test_a_damaged_reason_of_a_failed_run_stops_no_board(content, board):
    file = board.folder(LOCAL[0]).with_name("failure.json")
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert board.failure(LOCAL[0]) == ("not run yet", 0.0)


def test_a_limit_in_whole_seconds_is_not_exceeded_twice(board):
    """The command line gives whole seconds, which are not a float in the file."""
    reason = "it took longer than 60 seconds"
    file = board.folder(LOCAL[0]).with_name("failure.json")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps([reason, 60]))
    assert board.failure(LOCAL[0]) == (reason, 60.0)
    said = []
    replace(board, seconds=60).run_missing(LOCAL[:1], said.append)
    assert not said


INDEX = "model.safetensors.index.json"
HEADER = b'{"w": {"dtype": "F32", "shape": [70000, 100000], "data_offsets": [0, 28000000000]}}'
LARGE = len(HEADER).to_bytes(8, "little") + HEADER
UPLOADS = {
    "index": ({INDEX: b"[" + b"[]," * 3_000_000 + b"[]]"}, "an index of 9,000,004 bytes, more"),
    "shards": (
        {INDEX: json.dumps({"weight_map": {str(i): f"{i}.safetensors" for i in range(20_000)}})},
        "20,000 files of weights, more than 500",
    ),
    "header": ({"model.safetensors": (9_000_000).to_bytes(8, "little")}, "damaged safetensors"),
    "large": ({"model.safetensors": LARGE}, "has 7,000,000,000 parameters, more than 100"),
    "long": ({"model.safetensors": bytes(801)}, "801 bytes of weights, too many for 100 param"),
    "none": ({"pytorch_model.bin": b""}, "has no safetensors weights"),
}
"""Case -> files of a model on the Hub, and why it is not run."""


def test_uploads_and_files_of_strangers_are_not_used(board, hub, api, monkeypatch):
    """In a checkout with modules and a folder that have the names of a library and of the model."""
    pytest.importorskip("resource")
    monkeypatch.setattr(constants, "SAFETENSORS_MAX_HEADER_LENGTH", None)  # a child sets it
    for case, (files, reason) in UPLOADS.items():
        name = f"org/{case}"
        api.create_repo(name)
        content = {key: x.encode() if isinstance(x, str) else x for key, x in files.items()}
        commit = hub.repositories["models", name].add("main", content)
        with pytest.raises(BadInput, match=re.escape(reason)):
            check_model(name, commit, 100)
    checkout = board.runs.with_name("checkout")
    (checkout / name).mkdir(parents=True)
    (checkout / name / "config.json").write_text("{}")
    for module in ("torch", "huggingface_hub", "pydantic"):
        (checkout / f"{module}.py").write_text("open('ran', 'w').close(); raise SystemExit(1)")
    for variable, value in client_env(hub.url, checkout).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(checkout)
    board = replace(board, most_parameters=100)
    board.run_missing([last := request(name, commit=commit)], lambda line: None)
    assert reason in board.failure(last)[0]
    assert not (checkout / "ran").exists()
    assert not [line for line in hub.log if line.startswith("GET") and line.endswith(".bin")]


def test_a_connection_that_breaks_is_no_damage_of_a_model(hub, api, monkeypatch):
    monkeypatch.setattr(constants, "SAFETENSORS_MAX_HEADER_LENGTH", None)
    api.create_repo("org/model")
    commit = hub.repositories["models", "org/model"].add("main", {"model.safetensors": bytes(60)})
    broken = Mock(side_effect=httpx2.ReadError("connection reset"))
    monkeypatch.setattr(HfApi, "parse_safetensors_file_metadata", broken)
    with pytest.raises(BadInput, match="the Hub cannot be reached; check the network"):
        check_model("org/model", commit, 100)


@pytest.mark.slow
def test_a_header_that_comes_byte_by_byte_takes_no_longer_than_the_limit(
    board, hub, api, monkeypatch, tmp_path
):
    api.create_repo("org/slow")
    commit = hub.repositories["models", "org/slow"].add("main", {"model.safetensors": bytes(60)})
    hub.slow = "model.safetensors"
    for variable, value in client_env(hub.url, tmp_path).items():
        monkeypatch.setenv(variable, value)
    replace(board, seconds=10.0).run_missing([wanted := request("org/slow", commit=commit)], print)
    assert board.failure(wanted) == ("it took longer than 10 seconds", 10.0)


def test_no_module_is_imported_from_the_current_directory(tmp_path):
    (tmp_path / "cyclopts.py").write_text("raise SystemExit(9)")
    command = [sys.executable, "-m", "lmdiag", "--version"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def test_a_child_gets_another_hub_only_from_its_owner(monkeypatch):
    """No file of a request or of a model sets it; see docs/security.md."""
    for endpoint in ("", "https://mirror.example"):
        monkeypatch.setattr("os.environ", {"HF_ENDPOINT": endpoint} if endpoint else {})
        assert child_environment().get("HF_ENDPOINT", "") == endpoint


def test_memory_is_not_limited_where_an_accelerator_may_be_used(tmp_path, monkeypatch):
    limited = {}
    for devices in ((), (str(tmp_path),)):
        monkeypatch.setattr(board_module, "_ACCELERATORS", devices)
        limited[len(devices)] = [bool(board_module.free_memory(x)) for x in ("cpu", None, "cuda:0")]
    assert limited == {0: [True, True, False], 1: [True, False, False]}


def test_a_limit_of_the_board_itself_is_not_raised(monkeypatch):
    """No process may do that: `ulimit -d` in the board's shell."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10**9, 2 * 10**9))
    for free, limit in ((10**10, 2 * 10**9), (10**9, 10**9)):
        monkeypatch.setattr(board_module, "free_memory", lambda device, free=free: free)
        assert board_module._memory_limit("cpu").args[1] == (limit, limit)


# ---- the site ------------------------------------------------------------------------------------


def test_other_directories_and_another_leaderboard_are_left_alone(
    board, demo_dir, tmp_path, command
):
    file = add(board, "org/model")
    (tmp_path / "link").symlink_to("board")
    for out, message in (
        (tmp_path, "is not a leaderboard directory: choose an empty one"),
        (file, "is a file: name a directory"),
        (tmp_path / "board", f"another lmdiag leaderboard is at work in {board.runs}"),
        (tmp_path / "link", f"another lmdiag leaderboard is at work in {board.runs}"),
    ):
        options = ["--data", demo_dir, "--out", out, "--no-run"]
        with FileLock(board.runs / ".lock"):
            assert message in command.refused("leaderboard", tmp_path, *options)


@pytest.mark.slow
def test_hostile_text_stays_text(board, demo_dir, tmp_path):
    """Texts of a model, in requests, in names of files and in reasons."""
    texts = list(HOSTILE.values())
    for number, text in enumerate(texts):
        fields = {"model": text, "commit": text, "note": text, text: text}
        write_request(tmp_path, request(f"org/bad-{number}"), yaml.safe_dump(fields))
        failed = request(f"org/failed-{number}")
        write_request(tmp_path, failed)
        board.folder(failed).mkdir(parents=True)
        (board.folder(failed).parent / "failure.json").write_text(json.dumps([text, 0]))
        if number % 3 == 0:
            wanted = request(f"org/model-{number}")
            facts = zip(("revision", "architecture", "tokenizer"), texts[number:], strict=False)
            write_request(tmp_path, wanted)
            run_of(board, wanted, seed=number, **dict(facts))
    (tmp_path / "requests/<img src=x onerror=alert(1)>.yaml").write_text("{}")
    assert len(build(tmp_path, demo_dir, "--no-run")["rows"]) == len(texts[::3])
    page = ParsedPage((tmp_path / "board/index.html").read_text())
    assert "<img src=x onerror=alert(1)>.yaml" in page.text
    assert not {"img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"style", "src"} & set(attributes)
        address = attributes.get("href") or "#"
        assert re.fullmatch(r"#.*|https://huggingface\.co/[\w/-]+|models/[\w-]+\.html|data:,"
                            r"|leaderboard\.json", address)  # fmt: skip
    for path in tmp_path.glob("board/*.*"):
        categories = {unicodedata.category(c) for c in path.read_text() if c != "\n"}
        assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}, path


def test_names_in_a_chart_overlap_no_higher_name_and_no_point():
    names = ["weak", "strong", "medium-medium-medium-", "large-large-large-large-"]
    values = [0.40, 1.0, 0.99, 0.97]
    data = pd.DataFrame({"name": names, "value": values, "is_large": False})
    data.loc[3, "is_large"] = True  # whose name stands left of its point
    sizes = pd.Series([8.0, 8.0, 8.5, 10.0])  # a decade has 150 pixels
    assert site._names_without_overlap(data, sizes) == [
        "weak",
        "strong",
        "medium-medium-medium-",
        "",
    ]
    data.loc[0, "name"] = "weak-weak-weak-"  # 90 pixels, and the point of another one is at 75
    data.loc[2, "value"] = 0.42
    assert site._names_without_overlap(data, sizes) == ["", "strong", *names[2:]]
