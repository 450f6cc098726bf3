"""README and docs/: links and commands are valid, blocks run, and figures are what they give.

The blocks `{code-cell}` run when the site is built (tests/test_site.py).

The blocks of a page run in order, in one folder. A block after a paragraph that ends with a colon
and says "the file `NAME`" is the content of that file. Nothing is downloaded, so some things are
replaced: the published items in the directory `lmdiag` by the demo data, the models of the Hub by
the demo models, a hundred shuffles by two, and `make run` uses the environment of the tests.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hub import LoopbackHub, client_env

from lmdiag import diagnostics
from lmdiag.analysis.designs import analyse_table
from lmdiag.cli import COMMANDS as COMMAND_NAMES
from lmdiag.cli import main, parse
from lmdiag.results import Place, Results
from lmdiag.results.published import published_figures

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": (ROOT / "README.md").read_text("utf-8")} | {
    str(path.relative_to(ROOT / "docs")): path.read_text("utf-8")
    for path in sorted(ROOT.glob("docs/**/*.md"))
}
"""Page, from the folder docs -> its text."""
PROGRAMS = Path(sys.executable).parent

READING = "text,position,word,rt\n" + "".join(
    f"1,{n},{word},{250 + 9 * len(word) + n % 7}\n"
    for n, word in enumerate(
        re.findall(r"\w+", 20 * "the robin is a bird and the hammer is a tool ")
    )
)
"""A table as for `lmdiag fit`."""
STANDS_FOR = {"bert-base-uncased": "demo:masked", "gpt2": "demo:causal"}
"""Model of the Hub -> demo model that is run in its place."""
SCRIPTS = ("#!", "hf jobs")
"""Beginnings of bash blocks that have tests of their own."""
NOT_RUN = (
    "pip", "lm_eval", "lighteval", "inspect", "syntaxgym",
    "make test", "make check", "make dist", "hf",
)  # fmt: skip
"""Beginnings of commands that the tests of a page do not run."""
OF_THE_HUB = re.compile("EleutherAI|Qwen")
"""Commands with a model of these owners are parsed and not run."""


def blocks(page: str, *kinds: str) -> list[tuple[str, str]]:
    """Kind and text of the code blocks of a page, of some kinds or of all."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
    return [(kind, text) for kind, text in found if not kinds or kind in kinds]


def files_of(page: str) -> dict[str, str]:
    """Name -> content of the files that a page shows."""
    shown = r"[Tt]he\s+file\s+`([\w.-]+)`[^`]*:\n\n```\w+\n(.*?)^```"
    return dict(re.findall(shown, PAGES[page], re.MULTILINE | re.DOTALL))


def commands(text: str) -> list[str]:
    """The commands of a bash block, or of a console block, where they begin with `$ `."""
    lines = text.replace("\\\n", " ").splitlines()
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return prompted or lines


COMMANDS = [
    pytest.param(command, id=f"{page}: {command[:60]}")
    for page in PAGES
    for _, text in blocks(page, "bash", "console")
    if not text.startswith(SCRIPTS)
    for command in commands(text)
    if not command.startswith(NOT_RUN) and not command.startswith("make")
]


# ---- all pages -----------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors that GitHub, and the site, give to the headings of a page."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    place = ROOT / page if page == "README.md" else ROOT / "docs" / page
    for link in re.findall(r"\]\((?!http)([^)]+)\)", PAGES[page]):
        name, _, anchor = link.partition("#")
        target = place.parent / name if name else place
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


def test_every_page_is_linked_from_the_start_page() -> None:
    for page in PAGES:
        listed = rf"^(?:.*<)?{re.escape(page.removesuffix('.md'))}>?$"
        assert page in ("README.md", "index.md") or re.search(
            listed, PAGES["index.md"], re.MULTILINE
        ), f"add {page} to docs/index.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_accepted_by_its_program(command: str) -> None:
    words = shlex.split(command)
    if "eval/run.py" in words:
        index = words.index("eval/run.py")
        launcher, words = words[:index], ["lmdiag", "run", *words[index + 1 :]]
        if launcher[:2] == ["accelerate", "launch"]:
            from accelerate.commands.launch import launch_command_parser

            launch_command_parser().parse_args([*launcher[2:], "eval/run.py"])
        else:
            from torch.distributed.run import get_args_parser

            assert launcher[0] == "torchrun"
            get_args_parser().parse_args([*launcher[1:], "eval/run.py"])
    assert words[0] == "lmdiag"
    parse(words[1:])


OF_OTHER_PROGRAMS = {"--num_processes"}
"""Options of accelerate that messages name."""


def test_messages_name_options_and_pages_name_tests_that_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    known = {"--help", "--version"} | OF_OTHER_PROGRAMS
    option = r"(?<![\w(-])--[a-z][\w-]*"
    for command in COMMAND_NAMES:
        with contextlib.suppress(SystemExit):
            main([command, "--help"])
        known |= {*re.findall(option, capsys.readouterr().out)}
    texts = [
        (path.relative_to(ROOT), node.value)
        for path in ROOT.glob("eval/lmdiag/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {(str(path), name) for path, text in texts for name in re.findall(option, text)}
    assert sorted((path, name) for path, name in named if name not in known) == []
    cited = {path for text in PAGES.values() for path in re.findall(r"\btests/[\w/]+[\w.-]*", text)}
    assert sorted(path for path in cited if not (ROOT / path).exists()) == []
    sections = r'^## lmdiag (\w+)\n\n.*\n.*\n\nusage\("\1"\)$'
    assert re.findall(sections, PAGES["commands.md"], re.MULTILINE) == [*COMMAND_NAMES]


# ---- pages that are run --------------------------------------------------------------------------


@dataclass
class Reader:
    """Runs the blocks of a page as a reader would, in a folder.

    Attributes:
        folder: in which the blocks run.
        outputs: what each command and each Python block printed.
    """

    folder: Path
    outputs: dict[str, str] = field(default_factory=dict)

    def run(self, page: str) -> None:
        names: dict[str, Any] = {}
        for kind, text in blocks(page, "console", "bash", "python"):
            if kind == "python":
                code = compile(here(text), page, "exec")
                self.outputs[text] = printed(lambda code=code: exec(code, names))
                continue
            for command in commands(text):
                if not command.startswith(NOT_RUN) and not OF_THE_HUB.search(command):
                    self.outputs[command] = self.command(command)

    def command(self, command: str) -> str:
        words = shlex.split(here(command))
        if command == "make run":
            words = ["make", "-o", "setup", "run", f"BIN={PROGRAMS}"]
        elif words[:2] == ["lmdiag", "build"] and "--source" not in words:
            words += ["--source", "demo"]
        if words[0] == "lmdiag":
            return printed(lambda: main(words[1:]))
        path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
        environment.pop("MAKEFLAGS", None)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def here(text: str) -> str:
    """A command or a block with the demo models and two shuffles."""
    for model, demo in STANDS_FOR.items():
        text = re.sub(rf"(?<![\w/-]){model}(?![\w/-])", demo, text)
        text = text.replace(f"/{model}/", f"/{demo.replace(':', '--')}/")
    return re.sub(r"--shuffles \d+", "--shuffles 2", text)


def printed(call: Callable[[], Any]) -> str:
    """Standard output of a call, which must return 0 or None."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert not call(), output.getvalue()
    return output.getvalue()


# ---- what the pages say of the outputs -----------------------------------------------------------

NUMBER = re.compile(r"-?\d*\.?\d+")
ROUNDING = 0.051
"""Percentage points: the pages give one decimal. No other difference is allowed, on any machine."""


def same(shown: str, line: str) -> bool:
    """Whether two lines are equal, apart from blanks and one unit of the last digit shown."""
    shown, line = (" ".join(text.replace("−", "-").split()) for text in (shown, line))
    return NUMBER.sub("#", shown) == NUMBER.sub("#", line) and all(
        abs(float(a) - float(b)) <= 1.01 * 10.0 ** -len(a.partition(".")[2])
        for a, b in zip(NUMBER.findall(shown), NUMBER.findall(line), strict=True)
    )


def check_shown(page: str, outputs: dict[str, str]) -> None:
    """What a page shows below a command, or in the text block after it, was printed."""
    files, command = files_of(page).values(), ""
    for kind, text in blocks(page):
        shown: list[str] = []
        if kind in ("console", "bash"):
            command = next((c for c in reversed(commands(text)) if c in outputs), "")
            if text.startswith("$ "):
                lines = text.replace("\\\n", " ").splitlines()
                shown = [line for line in lines if not line.startswith("$ ")]
        elif kind == "text" and command and text not in files:
            shown = text.splitlines()
        printed_lines = iter(outputs[command].splitlines() if shown else ())
        for line in filter(str.strip, shown):
            assert any(same(line, other) for other in printed_lines), line
        if kind not in ("console", "bash"):
            command = ""


def tables(page: str) -> list[list[list[str]]]:
    """The cells of each table of a page, its head first."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGES[page], re.MULTILINE)
    rows = [[line.strip("|\n").split("|") for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in (table[0], *table[2:])] for table in rows]


FOLDERS = {
    "": "diagnostics-token",
    "--unit word": "diagnostics-word",
    "--bos always": "diagnostics-token-bosalways",
    '--prompt "It is true that {context}"': "diagnostics-token-prompt46ef9ebb",
    "--first-letter lower": "diagnostics-token-letterlower",
    "--final-period never": "diagnostics-token-periodnever",
}


def protocol(reader: Reader) -> None:
    """Every figure in the tables of the page is that of its runs."""

    def results(run: str) -> Results:
        model, _, option = run.partition(" ")
        return Results.read(
            reader.folder / "results" / model.replace(":", "--") / FOLDERS[option] / "results.json"
        )

    (head, *rows), (_, *words), (text, *bits) = tables("protocol.md")
    for run, *cells in rows:
        for column, cell in zip(head[1:], cells, strict=True):
            task, measure = column.split()
            figure = results(run).figure(Place(task, "none", measure))
            assert figure is not None
            assert same(cell, f"{100 * (figure.value or 0):.1f}"), run
    for unit, cell in words:
        command = f"lmdiag report results/demo--causal/diagnostics-{unit} --format markdown"
        listed = output_with(reader, command)
        assert cell in listed.replace("\\", ""), unit
    for run, *cells in bits:
        lines = output_with(reader, f"surprisal --model {run} sentences.txt").splitlines()
        for word, cell, row in zip(text[1:], cells, csv.DictReader(lines), strict=True):
            assert row["word"] == word
            assert cell == row["surprisal"] or same(cell, row["surprisal"])


def output_with(reader: Reader, text: str) -> str:
    """What the one command, or Python block, with a text in it printed."""
    (output,) = (printed for command, printed in reader.outputs.items() if text in command)
    return output


def analysis(reader: Reader) -> None:
    """The mixed model of the page is lme4's, rounded as R does."""
    (printed_by_r,) = (text for _, text in blocks("analysis.md", "text") if "Pr(>|t|)" in text)
    formula = "surprisal ~ grammatical * attractor + (1 + grammatical | item)"
    items = pd.read_csv(reader.folder / "items.csv")
    (fit,) = analyse_table(items, region="3", formula=formula).mixed.values()
    for term, line in zip(fit.terms, printed_by_r.strip().splitlines()[1:], strict=True):
        name, *numbers = line.split()[:6]
        assert term.term == name
        values = (term.estimate, term.se, term.df, term.t, term.p)
        for value, text in zip(values, numbers, strict=True):
            digits, _, exponent = text.partition("e")
            unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
            assert value == pytest.approx(float(text), rel=1e-3, abs=unit)


SINGLE = {"protocol.md": protocol, "analysis.md": analysis}
"""Page -> what is checked besides the outputs that it shows."""
RUN = ["README.md", "running.md", "python.md", "own-data.md", "analysis.md", "migration.md"]
RUN += ["diagnostics/extended-sets.md"]
PARAMETERS = [*RUN, pytest.param("protocol.md", marks=pytest.mark.nightly)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PARAMETERS)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    page: str, demo_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder like a clone, with files that readers of the page have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    for room in ("cards", "datasets", "docs", "eval", "metrics", "Makefile"):
        Path(room).symlink_to(ROOT / room)
    if page != "protocol.md":  # which builds it
        shutil.copytree(demo_dir, "lmdiag")
    for name, content in (files_of("own-data.md") | files_of(page)).items():
        Path(name).write_text(content, "utf-8")
    Path("reading.csv").write_text(READING, "utf-8")
    Path("models.txt").write_text("demo:causal\n", "utf-8")
    Path("multiblimp").mkdir()
    shutil.copy("pairs.jsonl", "multiblimp/eng.jsonl")
    shutil.copytree("datasets/lmdiag/demo/refining-tse/data/blimp", "blimp")
    if page == "migration.md":
        printed(lambda: main(["template"]))
    reader = Reader(tmp_path)
    reader.run(page)
    check_shown(page, reader.outputs)
    assert all(out for text, out in reader.outputs.items() if "print(" in text)
    if page in SINGLE:
        SINGLE[page](reader)


# ---- figures and blocks of single pages ----------------------------------------------------------


def test_the_python_of_the_page_on_human_measures_runs() -> None:
    ((_, text),) = blocks("human.md", "python")
    assert "demo:causal" in printed(lambda: exec(compile(text, "human.md", "exec"), {}))


def test_the_migration_guide_names_settings_and_tasks_that_exist(demo_dir: Path) -> None:
    page = PAGES["migration.md"]
    (settings,) = re.findall(r"`--perturb ([\w ]+)`", page)
    declared = [p.name for d in diagnostics.built_in().values() for p in d.perturbations]
    assert settings.split() == declared
    (line,) = (line for line in page.splitlines() if "--include_path" in line)
    words = shlex.split(line)
    tasks = demo_dir.parent / words[words.index("--include_path") + 1]
    group = yaml.safe_load((tasks / f"{words[words.index('--tasks') + 1]}.yaml").read_text())
    assert group["group"] == "lmdiag"
    assert all((tasks / f"{task}.yaml").is_file() for task in group["task"])


def test_the_figures_beside_those_of_other_programs(demo_dir: Path, tmp_path: Path) -> None:
    """The column of lmdiag, and the other columns wherever both score the same items."""
    (table,) = (each for each in tables("migration.md") if "lighteval" in each[0])
    command = ["run", "--model", "demo:causal", "--data", str(demo_dir), "--output", str(tmp_path)]
    tasks = ["cprag102", "role88", "neg136", "agreement"]
    printed(lambda: main([*command, "--quiet", "--tasks", *tasks]))
    (file,) = tmp_path.glob("*/*/results.json")
    results = Results.read(file)
    levels = {
        "neg136 simp, affirmative": ("subset/polarity", "simp/affirmative"),
        "neg136 simp, negative": ("subset/polarity", "simp/negative"),
        "neg136 nat": ("subset", "nat"),
    }
    assert len(table) == 17
    for row, own, *others in table[1:]:
        name, _, measure = row.rpartition(", ")
        figure = results.figure(Place(name.split()[0], "none", measure, *levels.get(name, ())))
        assert figure is not None
        assert figure.value is not None
        assert float(own) == pytest.approx(100 * figure.value, abs=ROUNDING), row
        assert {cell for cell in others if cell and "of" not in cell} <= {own}


def test_the_framework_of_the_pull_request_is_that_of_the_data_set() -> None:
    benchmark = yaml.safe_load((ROOT / "datasets/lmdiag/eval.yaml").read_text("utf-8"))
    (change,) = (text for _, text in blocks("releasing.md", "text") if "description" in text)
    assert f'name: "{benchmark["evaluation_framework"]}"' in change


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_published_figures_of_a_diagnostics_page(task: str) -> None:
    (head, *rows) = next(t for t in tables(f"diagnostics/{task}.md") if t[0][0] == "measure")
    kept = {}
    for figure in published_figures():
        place = figure.place
        where = place.setting if place.setting != "none" else place.level or "original"
        kept[figure.model, place.task, place.measure, where] = figure.value
    for measure, where, *cells in rows:
        for model, cell in zip(head[2:], cells, strict=True):
            at = (model, task, measure, where)
            assert float(cell) == kept[at], at


# ---- docs/jobs.md --------------------------------------------------------------------------------

SLURM, JOB = (text for _, text in blocks("jobs.md", "bash") if text.startswith(SCRIPTS))


@pytest.mark.parametrize(
    ("task", "arguments"), [(1, "org/one"), (2, "org/two --revision step1000")]
)
def test_a_task_of_the_slurm_array_runs_its_line(tmp_path: Path, task: int, arguments: str) -> None:
    (tmp_path / "models.txt").write_text("org/one\norg/two step1000\n")
    (tmp_path / "job.sh").write_text(SLURM)
    log = shlex.quote(str(tmp_path / "log"))
    for name in ("lmdiag", "scontrol"):  # programs that log their arguments
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $* $HF_HUB_OFFLINE" >> {log}\n')
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_ID": "7"}
    env = os.environ | slurm | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=env, check=True)
    run = f"lmdiag run --model {arguments} --data lmdiag --output results --quiet 1\n"
    assert (tmp_path / "log").read_text() == run


def test_the_job_of_the_hub_is_accepted(hub: LoopbackHub, tmp_path: Path) -> None:
    command = shlex.split(JOB.replace("\\\n", " "))
    # A folder of this machine would be sent to the Hub's storage first.
    command[command.index(".:/src")] = "hf://datasets/org/src:/src"
    program = [str(PROGRAMS / "hf"), *command[1:3], "--dry-run", "--namespace", "org", *command[3:]]
    done = subprocess.run(
        program, env=client_env(hub.url, tmp_path), cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Job not submitted" in done.stdout
    assert "hf_test" not in done.stdout
    parts = [shlex.split(part) for part in command[-1].split("&&")]
    inside = [words[1:] for words in parts if words and words[0] == "lmdiag"]
    assert [words[0] for words in inside] == ["run", "submit"]
    for words in inside:
        parse(words)
