"""How commands end: errors in one line, interruptions, several processes; `lmdiag template`."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launched import HANG, SCRIPT, environment, torchrun
from runs.forked import run_and_leave, started

from lmdiag import cli, stimuli
from lmdiag.report.formats import FORMATS
from lmdiag.runs.processes import SharedError
from lmdiag.types import BadInput

BAD = [
    # a misspelt name, and the closest one
    ("rnu", 'Unknown command "rnu". Did you mean "run"?'),
    ("run --model demo:masked --perturbe all", "Unknown option: --perturbe. Did you mean --pertur"),
    ("run --model demo:masked --overwr", "Did you mean --overwrite?"),  # never an abbreviation
    # an option that a command no longer has, and what takes its place
    ("run --models-from x", "there is no option --models-from: write --model @FILE. See `lmdiag"),
    ("run --data-revision=x", "there is no option --data-revision: write --data ID@REVISION."),
    ("run --model x --by a", "there is no option --by: give it to `lmdiag analyse` or `lmdiag"),
    ("fit --human x --gap _", "there is no option --gap: nothing is read by it here"),
    ("publish data --repo-id a/b", "publish data: give the directory"),
    # something is missing, doubled or of the wrong type
    ("", "choose from build, check, run, "),
    ("run", "name a model: --model MODEL, or --model @FILE"),
    ("fit", "HUMAN is missing: write it before the options, lmdiag fit HUMAN. See `lmdiag fit"),
    # a file and a model in each other's place
    ("compare {run}x {second}", "there is no folder {run}x (did you mean '{run}'?): name the di"),
    ("report {data}x", "there is no folder {data}x (did you mean '{data}'?): name the directory"),
    ("fit {data}.csv --model x", "there is no file or folder {data}.csv"),
    ("run gpt2", "there is no file gpt2: if it is the model, write --model gpt2, else add a"),
    ("run {data}", "name a model: --model MODEL, or --model @FILE"),
    ("run --model gpt2 {run}/results.json", "results.json is data, not a model: write it before"),
    ("run --model gpt2 demo", "--model: demo is data, not a model: write it before the options"),
    ("run a.csv b.csv --model x", "one argument too many: 'b.csv'; give one file, before the"),
    ("score a.csv --predictions p.jsonl", "'a.csv'; give the table of items by --data"),
    ("run a.csv --data b.csv --model x", "one argument too many: 'a.csv'; give one file, before"),
    (
        "run neg136 --model x",
        "neg136 is a task of the data set lmdiag, not a data set: choose",
    ),
    ("run --model x --limit 0", "--limit: must be a whole number of at least 1, not '0'"),
    ("run --model ./x --seed -1 --data nowhere", "nowhere"),  # -1 is a value, not an option
    # which models
    ("run --model demo:masked --revision *", "has no branches"),
    ("run --model x --name a b", "got 2 for 1 models"),
    # what they are asked
    ("run --model x --data {data} --tasks role88 --perturb shuf", "shuf is made for cprag102"),
    # files, and what a run does not have
    ("surprisal --model x none.txt --output x.xlsx", "must end in .csv, .tsv, .parquet"),
    ("template my.csv --items 2", "--items is for --design or --regions"),
    ("compare {run} {second} --across promt", "across 'promt' (did you mean 'prompt'?): choose"),
    ("compare {run} {second} --tasks role8", "no task role8 (did you mean 'role88'?): choose"),
    ("score --task role88 --setting obj --predictions {run}", "no role88 in setting obj: choose"),
    ("score --task role88 --k 7 --predictions {run}", "keeps the first 5 words only"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_line_without_the_usage(command, monkeypatch, line, message):
    monkeypatch.chdir(command.folder)
    places = dict(zip(("run", "second"), command.runs, strict=True))
    places |= {"data": command.data}
    arguments = [word.format(**places) for word in shlex.split(line)]
    assert message.format(**places) in command.refused(*arguments)
    assert list(command.folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "number", "code", "word"),
    [
        (1, signal.SIGINT, 130, "interrupted"),
        (1, signal.SIGTERM, 143, "terminated"),
        (2, signal.SIGINT, None, "interrupted"),
    ],
)
def test_a_run_that_is_stopped_keeps_its_answers_and_the_same_command_continues(
    command, count, number, code, word, monkeypatch
):
    arguments = ["--model", str(command.models["bert"]), "--data", str(command.data)]
    arguments += ["--tasks", "cprag102", "--perturb", "shuf", "--shuffles", "6"]
    arguments += ["--batch-size", "1", "--output", str(command.folder)]
    log = command.folder / "log"
    if count == 1:
        child = started(run_and_leave, ["run", *arguments, "--quiet"], log=log)
    else:
        child = started(
            os.execv, sys.executable, [*torchrun(count), *arguments, "--quiet"], log=log
        )
    end = time.monotonic() + HANG
    while not any(path.stat().st_size for path in command.folder.rglob("journal/*.jsonl")):
        assert child.is_alive()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(child.pid, number)
    child.join(HANG)
    err = log.with_suffix(".err").read_text()
    again = "run the same command again, without --overwrite, to continue"
    line = f"lmdiag: {word}; answers saved so far are kept; {again}\n"
    assert err.count(line) == 1
    if count == 1:
        assert (child.exitcode, err) == (code, line)
    assert f'{SCRIPT}"' not in err  # no traceback of ours; torchrun prints its own
    assert not [*command.folder.rglob("results.json")]
    if word == "terminated":  # as by a scheduler
        monkeypatch.setenv("FORCE_COLOR", "1")  # the bar of a terminal: its first count is not 0
        code, _, err = command("run", *arguments)
        assert code == 0, err
        assert "contexts/s" in err
        assert " 0/" not in err


LATE = {
    "in a destructor, which ignores it": (
        "class Ends:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGTERM)\n"
        "cli.parse = lambda _: [Ends() and None, time.sleep(60)]",
        "lmdiag: terminated; nothing was written\n",
    ),
    "where a library replaces its exception, as pydantic does that of a type": (
        "def main(_):\n"
        "    try: signal.raise_signal(signal.SIGTERM)\n"
        "    except KeyboardInterrupt: raise ValueError from None\n"
        "cli.main = main",
        "",
    ),
    "after the command": ("cli.main = lambda _: signal.raise_signal(signal.SIGTERM)", ""),
}
"""When a signal comes -> code that sends it, and what is printed."""


@pytest.mark.parametrize("case", LATE)
def test_a_signal_at_any_moment_ends_without_a_traceback(case):
    code, printed = LATE[case]
    script = f"import signal, time\nfrom lmdiag import cli\n{code}\ncli.program(['report'])"
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "", printed)


def test_help_shows_ten_options_a_group_or_all(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def shown(*words):
        assert cli.main(["run", "--help", *words]) == 0
        return capsys.readouterr().out

    boxed = r"^│ (?:\*  )?(?:[A-Z]+ )?(--[a-z-]+)"
    usual = shown()
    names = {f"--{name}" for name in cli.MOST_USED["run"].split()}
    assert {*re.findall(boxed, usual, re.MULTILINE)} == names
    assert re.search(r"^ . asking: --bos, --pll, ", usual, re.MULTILINE)
    asking = re.findall(boxed, shown("asking"), re.MULTILINE)
    assert {"--bos", "--pll"} <= {*asking}
    everything = {*re.findall(boxed, shown("all"), re.MULTILINE)}
    assert {*asking, "--data", "--tp"} < everything
    assert {*re.findall(r"--[a-z][a-z-]*", usual)} - {"--help"} >= everything
    assert cli.main(["run", "--help", "askin"]) == 2
    assert "(did you mean 'asking'?): choose from models, data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ValueError('x')", 70),
        ("ImportError('x')", 70),
        ("OSError('x')", 2),
        ("BadInput('x')", 2),
        ("MemoryError", 2),
        ("ImportError('x.so: failed to map segment from shared object')", 2),
        ("BrokenPipeError", 141),
    ],
)
def test_a_fault_of_lmdiag_has_its_own_exit_code(error, code):
    """1 is a loss, and nothing else; only a fault has a traceback."""
    script = (
        "from lmdiag import cli\nfrom lmdiag.types import BadInput\n"
        f"def parse(_): raise {error}\ncli.parse = parse\ncli.program(['report'])"
    )
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, code == 70)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_closed_standard_streams_are_nothing():
    """Python has None in their place."""
    words = ["sh", "-c", 'exec "$0" -m lmdiag --version <&- >&-', sys.executable]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_other_commands_have_written_nothing(command, monkeypatch):
    """This process gets SIGINT while a run is read."""
    out = command.folder / "new.html"
    with monkeypatch.context() as patches:
        patches.setattr(
            "lmdiag.results.load_runs", lambda *_, **__: signal.raise_signal(signal.SIGINT)
        )
        ended = command("report", command.runs[0], "--out", out)
    assert ended == (130, "", "lmdiag: interrupted; nothing was written\n")
    assert not out.exists()


def test_files_are_written_before_a_reader_of_the_output_can_close_it(command, monkeypatch):
    """As in `lmdiag compare ... --out FILE | head`."""

    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr("lmdiag.report.formats.terminal.print_section", closed)
    page = FORMATS["html"]._replace(render=lambda *_: "the page")
    monkeypatch.setitem(FORMATS, "html", page)
    words = [f"1,{n},w{n},{300 + n % 7},{1 + n % 5}\n" for n in range(1, 60)]
    table = command.folder / "words.csv"
    table.write_text("text,position,word,rt,surprisal\n" + "".join(words))
    fit = ["fit", "--human", table, "--response", "rt", "--surprisal", "surprisal"]
    for arguments in (["compare", *command.runs], fit):
        page = command.folder / f"{arguments[0]}.html"
        command(*arguments, "--out", page)
        assert page.read_text() == "the page"


def test_only_the_first_of_several_processes_speaks(monkeypatch, command, capsys):
    command.refused("run", "--modle", "x")
    monkeypatch.setenv("RANK", "1")
    assert command("run", "--modle", "x") == (0, "", "")
    assert cli.report_error(KeyboardInterrupt(), "run", "nothing was written") == 130
    assert cli.report_error(SharedError("of all processes"), "run", "") == 0
    assert capsys.readouterr().err == ""
    assert cli.report_error(BadInput("of this process alone"), "run", "") == 2
    assert capsys.readouterr().err == "lmdiag: error: of this process alone\n"


def test_a_process_neither_collects_while_it_imports_nor_takes_modules_down():
    """Collections among the objects of torch and transformers take a fifth of a short run."""
    program = (
        "import atexit, gc; from lmdiag import cli;"
        "cli.main = lambda _: print(gc.get_threshold()[0]) or atexit.register(print, 'done') and 3;"
        "cli.kept = type('Kept', (), {'__del__': lambda _: print('taken down')})();"
        "cli.program()"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (3, "200000\ndone\n"), run.stderr


def test_starter_files_load_and_agree(command, monkeypatch):
    monkeypatch.chdir(command.folder)
    assert command("template")[0] == 0
    loaded = [stimuli.load("my_diagnostic.csv")]
    for name in ("my.csv", "my.tsv", "my.jsonl"):
        code, out, _ = command("template", command.folder / name)
        assert code == 0
        assert f"lmdiag run {command.folder / name} --model MODEL" in out
        loaded.append(stimuli.load(name))
    assert {(rows.fingerprint, len(rows)) for rows in loaded} == {(loaded[0].fingerprint, 5)}
    written = Path("my.csv").read_text()
    assert "my.csv exists already" in command.refused("template", "my.csv")
    assert Path("my.csv").read_text() == written


@pytest.mark.parametrize(
    "options", [["--design", "2"], ["--design", "2x2", "--items", "24"], ["--regions"]]
)
def test_a_design_is_written_and_found(command, options):
    file = command.folder / "my.tsv"
    assert command("template", file, *options)[0] == 0
    rows = stimuli.load(str(file))
    factors = ["attractor"] if "2" in options else ["grammatical", "attractor"]
    assert len(rows) == (24 if "24" in options else 3) * 2 ** len(factors)
    if "24" in options:  # the conditions cross within the item: a verb has both attractors
        verbs = rows.table.to_pandas().groupby(["item", "grammatical"])["target"]
        assert set(verbs.nunique()) == {1}
    text = rows.columns()["sentence" if rows.regions else "context"]
    assert text[1].startswith("The baker near the sailors")


def test_columns_of_two_words_functions_and_responses_are_named_in_remedies(command):
    """And columns as the user spells them, without the copies that have the known names."""
    rows = "".join(f"1,{n},w{n},{300 + n % 7},{n % 5},s1\n" for n in range(1, 40))
    file = command.folder / "times.csv"
    file.write_text(f"Text,position,word,Reading time,bits,Subject\n{rows}")
    fit = ["fit", file, "--surprisal", "bits"]
    assert "e.g. one of Reading time, bits" in command.refused(*fit)
    refused = command.refused(*fit, "--formula", "Reading time ~ surprisal")
    assert "write `Reading time` between backticks" in refused
    assert "columns: Text, position, word, Reading time, bits, Subject" in refused
    refused = command.refused(*fit, "--response", "log(bits)")
    assert "give a function of a column by --formula 'log(bits) ~ surprisal'" in refused


def test_report_and_analyse_keep_existing_files_alike(command):
    file = command.folder / "kept.csv"
    file.write_text("kept")
    for name in ("report", "analyse"):
        assert "exists already" in command.refused(name, command.runs[0], "--out", file)
    assert command("report", command.runs[0], "--out", file, "--overwrite")[0] == 0
    assert file.read_text() != "kept"
