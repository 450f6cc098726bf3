"""Real commands that are killed, or run on several processes or a server, leave the right files."""

import dataclasses
import json
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from engines import TOKENIZER, Engine, faults
from families import FAMILIES
from hub import client_env
from launched import HANG, finished, free_port, outcome, torchrun
from reference import CLOSE
from runs.forked import forked, run_and_leave, run_on, started
from sentence_texts import write_table

from lmdiag.models.server.client import IN_FLIGHT
from lmdiag.runs.processes import Processes, SharedError

LMDIAG = str(Path(sys.executable).with_name("lmdiag"))
KILLER = [sys.executable, "-m", "runs.killed_runs"]
TESTS = {"PYTHONPATH": str(Path(__file__).parents[1])}
NEGATION = ["--tasks", "neg136", "--limit", "8", "--batch-size"]
KILLS = {
    "blanks": (["run", "--entropy", "--tasks", "agreement", *NEGATION, "8"], "bert", 12),
    "sentences": (["run", "--entropy", "--batch-size", "2"], "gpt2", 16),
    "server": (["run", *NEGATION, "2"], "tiny", 16),
    "layers": (["run", "--layers", "all", *NEGATION, "4"], "gpt2", 48),
    "multiverse": (["multiverse", "--knobs", "unit,first-letter", *NEGATION, "4"], "gpt2", 64),
}
"""Case -> command, model, and which operations it is killed at: every twelfth and so on."""


@pytest.mark.long
@pytest.mark.parametrize("case", KILLS)
@pytest.mark.parametrize(
    "rate", [pytest.param(x, marks=getattr(pytest.mark, x)) for x in ("slow", "nightly")]
)
def test_killed_runs_end_as_undisturbed_ones(tmp_path, tiny_models, demo_dir, case, rate):
    """Also where an engine fails now and then."""
    from runs.killed_runs import every_step, print_facts  # which Windows cannot import

    command, name, stride = KILLS[case]
    data = write_table(tmp_path / "mine.csv") if case == "sentences" else demo_dir
    model = ["--model", tiny_models.get(name, name)]
    with Engine() as engine:
        if case == "server":
            engine.spoil = faults(50)
            model += ["--server", engine.url, "--tokenizer", TOKENIZER]
        stride = stride if rate == "slow" else stride // 12
        words = map(str, [*command, *model, "--data", data, "--quiet"])
        out = forked(print_facts, every_step, tmp_path, stride, *words)
    facts = Counter(json.loads(out))
    assert facts["same"] == facts["kills"] >= 15 / stride
    assert facts["twice"] == 0
    assert facts["midway"]
    assert facts["torn"] or stride > 1


RUNS = ["--data", "{data}", "--model", "{model}", "--output", "{out}", *NEGATION, "2", "--quiet"]
STOPPED = {
    "run": RUNS,
    "multiverse": [*RUNS, "--knobs", "unit,first-letter"],
    "compare": ["{runs}/a", "{runs}/b", "--json"],
    "analyse": ["{table}", "--conditions", "a", "b", "--out", "{out}/a.svg", "--overwrite",
                "--json"],
    "fit": ["--human", "{table}", "--model", "{model}", "--response", "rt", "--json",
            "--output", "{out}", "--out", "{out}/fit.html", "--overwrite"],
    "publish": ["data", "{data}", "--repo-id", "org/{attempt}"],
    "report": ["{runs}/a", "{runs}/b", "--out", "{out}/report.html", "{out}/figures"],
    "leaderboard": ["{models}", "--data", "{data}", "--out", "{out}/board", "--tasks", "neg136"],
}  # fmt: skip
"""Command -> its arguments."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", STOPPED)
def test_a_command_that_is_stopped_at_any_moment_ends_as_an_undisturbed_one(
    name, tmp_path, tiny_models, demo_dir, hub, finished_runs
):
    (tmp_path / "models.txt").write_text("demo:masked\n")
    rows = ["item,text,position,word,a,b,rt,surprisal"]
    for item, a, b, place in product(range(8), "xy", "xy", range(8)):
        noise = random.Random(f"{item}{a}{b}{place}").random()
        word = ("the", "robin", "bird", "tree")[int(4 * noise)]
        rows.append(f"{item},{item}{a}{b},{place},{word},{a},{b},{300 + 90 * noise},{9 * noise}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    (tmp_path / "out").mkdir()
    names = {
        "data": demo_dir, "model": tiny_models["gpt2"], "runs": finished_runs[0].parent,
        "table": tmp_path / "table.csv", "models": tmp_path / "models.txt",
        "out": "{out}", "attempt": "{attempt}",
    }  # fmt: skip
    words = [name, *(word.format(**names) for word in STOPPED[name])]
    program = [*KILLER, str(tmp_path / "out"), "30", *words]
    env = client_env(hub.url, tmp_path) | TESTS
    done = subprocess.run(program, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    facts = Counter(json.loads(done.stdout))
    assert (facts["same"], facts["tracebacks"]) == (30, 0), f"{facts}\n{done.stderr}"
    sent = [repository.files("main") for repository in hub.repositories.values()]
    assert all(files == sent[0] for files in sent)


def write_responses(path):
    """Writes what people said at blanks: eight items with five words, most of them twice."""
    words = ("bird", "tool", "robin", "nest", "merry-go-round")
    said = product(("man", "dog"), ("saw", "left", "found", "took"), words, (1, 2))
    rows = [
        f"The {who} {verb} the,{word},{n}"
        for who, verb, word, n in said
        if (word, n) != ("nest", 2)
    ]
    path.write_text("\n".join(["context,response,participant", *rows]))
    return path


TASKS = ["run", "--tasks", "neg136", "agreement", "cprag102", "--perturb", "all", "--shuffles", "2"]
SEVERAL = {
    "tokens": (2, [*TASKS, "--limit", "24", "--entropy"], "slow"),
    "sentences": (2, ["run", "--entropy", "--batch-size", "4"], "slow"),
    "multiverse": (2, ["multiverse", "--knobs", "unit,bos", *NEGATION, "4"], "slow"),
    "layers": (2, ["run", "--layers", "all", *NEGATION, "4"], "slow"),
    "responses": (2, ["cloze", "--batch-size", "2"], "slow"),
    "three processes": (3, TASKS, "nightly"),
    "whole words": (2, ["run", "--tasks", "neg136", "--unit", "word"], "nightly"),
}
"""Case -> number of processes, command, and when it runs."""


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [pytest.param(x, marks=getattr(pytest.mark, SEVERAL[x][2])) for x in SEVERAL]
)
def test_the_files_are_the_same_to_the_last_byte(tmp_path, tiny_models, demo_dir, case, command):
    count, (name, *words), _ = SEVERAL[case]
    write = {"sentences": write_table, "responses": write_responses}.get(case)
    data = write(tmp_path / "mine.csv") if write else demo_dir
    arguments = [name, data, *words, "--model", *tiny_models.values(), "--output"]
    code, _, error = command(*arguments, tmp_path / "1")
    assert code == 0, error
    arguments.append(tmp_path / "several")
    if case == "tokens":
        finished(*torchrun(count, LMDIAG), *arguments)
    else:
        forked(run_on, count, *arguments)
    assert outcome(tmp_path / "1") == outcome(tmp_path / "several")
    for folder, processes in (("1", 1), ("several", count)):
        files = [*(tmp_path / folder).rglob("results.json")]
        assert len(files) >= len(tiny_models)
        for file in files:
            assert json.loads(file.read_text())["device"]["processes"] == processes


@pytest.mark.slow
@pytest.mark.long
def test_a_model_that_is_split_over_processes_gives_the_numbers_of_a_whole_one(
    tmp_path, demo_dir, command
):
    llama = FAMILIES["llama"]
    two_heads = dataclasses.replace(llama, config=llama.config | {"num_key_value_heads": 2})
    model = two_heads.make(tmp_path / "llama")
    arguments = ["--model", model, "--data", demo_dir, "--tasks", "neg136", "--output"]
    assert command("run", *arguments, tmp_path / "whole")[0] == 0
    finished(*torchrun(2), *arguments, tmp_path / "split", "--tp")
    (whole,), (split,) = (
        [*(tmp_path / x).rglob("predictions.parquet")] for x in ("whole", "split")
    )
    assert json.loads((split.parent / "results.json").read_text())["device"]["processes"] == 2
    tables = [pq.read_table(path).to_pydict() for path in (whole, split)]
    assert tables[0]["id"] == tables[1]["id"]
    assert tables[0]["log_prob"] == pytest.approx(tables[1]["log_prob"], abs=CLOSE)


@pytest.mark.parametrize(
    "killed", [pytest.param(0, marks=pytest.mark.nightly), pytest.param(1, marks=pytest.mark.slow)]
)
def test_a_killed_process_ends_the_others_in_one_line_and_the_run_resumes(
    killed, tmp_path, tiny_models, demo_dir, command
):
    arguments = ["--model", str(tiny_models["bert"]), "--data", str(demo_dir), "--quiet"]
    arguments += ["--batch-size", "1", "--perturb", "all", "--shuffles", "5", "--output"]
    where = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    words = ["run", *arguments, str(tmp_path / "killed")]
    with ExitStack() as running:  # without a launcher, which would end the other one
        processes = []
        for rank in ("0", "1"):
            ranks = where | {"RANK": rank, "LOCAL_RANK": rank}
            process = started(run_and_leave, words, log=tmp_path / rank, **ranks)
            processes.append(process)
            running.callback(process.kill)
        while len([*tmp_path.rglob("journal/*.jsonl")]) < 2:
            assert processes[0].is_alive()
            time.sleep(0.01)
        processes[killed].kill()
        processes[1 - killed].join(HANG)
    error = (tmp_path / f"{1 - killed}.err").read_text()
    assert processes[1 - killed].exitcode == 2
    assert "lmdiag: error: another process of this run has ended" in error
    assert "Traceback" not in error
    for folder in ("killed", "undisturbed"):
        assert command("run", *arguments, tmp_path / folder)[0] == 0
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "undisturbed")


@pytest.mark.parametrize("system", [sys.platform, "another"])
def test_a_worker_ends_with_a_launcher_that_is_killed(system):
    worker = (
        f"import os, psutil, sys, time; sys.platform = {system!r};"
        "from lmdiag.files.processes import end_with_parent; end_with_parent(os.getppid());"
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    launcher = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    with subprocess.Popen([sys.executable, "-c", launcher], stdout=-1, text=True) as started:
        assert int(started.stdout.readline())
        started.kill()
        assert started.stdout.read() == ""  # the worker, which had it too, has ended


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_line(tmp_path):
    """Where Slurm or a script starts the processes; torchrun itself ends before it starts any."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": "0", "WORLD_SIZE": "2"}
        words = ["run", "--model", "demo:causal", "--data", "demo", "--output", str(tmp_path)]
        log = tmp_path / "log"
        child = started(run_and_leave, words, log=log, LOCAL_RANK="0", **meeting)
        child.join(HANG)
    error = log.with_suffix(".err").read_text()
    assert child.exitcode == 2
    *_, line = error.splitlines()
    assert line.startswith(f"lmdiag: error: processes cannot meet at 127.0.0.1:{port} (")
    assert "Traceback" not in error


def test_a_process_that_loses_another_or_shares_its_error_says_so(monkeypatch):
    lost, other = "Connection closed by peer [127.0.0.1]:29500", "mat1 and mat2 have no shapes"
    cases = (2, lost, ConnectionError), (1, lost, RuntimeError), (2, other, RuntimeError)
    for count, message, raised in cases:
        processes = Processes(alone=True)
        processes.count = count
        with pytest.raises(raised), processes:
            raise RuntimeError(message)
    monkeypatch.setattr(Processes, "gather", lambda *_: [None, "NaN in the logits"])
    with pytest.raises(SharedError, match="NaN"), Processes(alone=True).shared_errors():
        pass  # this process has no error, another one has


@pytest.mark.pages
def test_a_run_on_a_server_says_what_is_not_known(command, monkeypatch):
    key = "sk-of-this-test-alone"
    monkeypatch.setenv("LMDIAG_SERVER_KEY", key)
    given = ["--data", command.data, "--tasks", "neg136", "agreement", "--limit", "12", "--quiet"]
    given += ["--k", "1", "50", "--output", command.folder, "--model", "tiny"]
    given += ["--tokenizer", TOKENIZER, "--server"]
    with Engine() as engine, Engine() as another:
        engine.key = another.key = key
        code, out, err = command("run", *given, engine.url)
        assert (code, err, engine.most_at_once <= IN_FLIGHT) == (0, "", True)
        error = command.refused("run", *given, another.url)
        assert "holds a run of another server" in error
    out = " ".join(out.split())
    assert f"asked through {engine.url}/v1 · cased · commit and precision not known" in out
    why = "they need the whole distribution, which only a local run has"
    assert f"not computed: ew and mw: {why}" in out
    assert "not computed: accuracy@50: neg136-" in out
    (run,) = (path.parent for path in command.folder.rglob("results.json"))
    document = json.loads((run / "results.json").read_text("utf-8"))
    assert document["model"]["server"] == document["identity"]["server"] == f"{engine.url}/v1"
    assert document["model"]["commit"] == "unknown"
    assert document["n_verbs"] is None
    measures = {x for task in document["tasks"].values() for x in task["none"]["measures"]}
    assert measures >= {"accuracy@1", "sensitivity", "tse"}
    assert not measures & {"accuracy@50", "ew", "mw"}
    assert key.encode() not in b"".join(x.read_bytes() for x in run.iterdir() if x.is_file())
    assert f"not known: asked through {engine.url}/v1" in (run / "report.html").read_text("utf-8")
    assert "cannot be submitted" in command.refused("submit", run, "--dry-run")
