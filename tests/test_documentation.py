"""README and docs/: links and commands are valid, blocks run, and figures are what they give.

The blocks `{code-cell}` run when the site is built, at the end.

The blocks of a page run in order, in one folder. A block after a paragraph that ends with a colon
and says "the file `NAME`" is the content of that file. Nothing is downloaded, so some things are
replaced: the published items in the directory `lmdiag` by the demo data, the models of the Hub by
the demo models, a hundred shuffles by two, and `make run` uses the environment of the tests.
"""

import ast
import contextlib
import csv
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from launched import finished, printed
from runs.forked import forked, run_on
from yaml import safe_load

import lmdiag
from lmdiag import diagnostics
from lmdiag.cli import COMMANDS, main, parse
from lmdiag.cli.removed import REMOVED
from lmdiag.results import FigureKey, Results
from lmdiag.results.published_figures import published_figures
from lmdiag.results.results import read_record

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": (ROOT / "README.md").read_text("utf-8")} | {
    str(path.relative_to(ROOT / "docs")): path.read_text("utf-8")
    for path in sorted(ROOT.glob("docs/**/*.md"))
}
"""Page, from the folder docs -> its text."""
PROGRAMS = Path(sys.executable).parent
WORDS = re.findall(r"\w+", 20 * "the robin is a bird and the hammer is a tool ")
READING = [f"1,{n},{word},{250 + 9 * len(word) + n % 7}" for n, word in enumerate(WORDS)]
"""Rows of a table as for `lmdiag fit`."""
GARDEN_PATHS = "\n".join([
    "item,condition,ambiguity,disambPosition_0idx,word,word_pos,sum_surprisal_base2",
    *(
        f"{item},{name}_X,{kind},{3 - number},{word},{place},{place * item % (number + 3)}.5"
        for name in ("MVRR", "NPS", "NPZ")
        for item in (1, 2, 3)
        for number, kind in enumerate(("unambiguous", "ambiguous"))
        for place, word in enumerate(WORDS[number : item + 8])
    ),
])  # fmt: skip
PRIMES = "\n".join([
    "constraint,category,target,related_context,unrelated_context,related_probability,"
    "unrelated_probability",
    *(
        f"{constraint},{category},bird,[CLS] {word}. the {word} is a [MASK] . [SEP],"
        f"[CLS] tool. the {word} is a [MASK] . [SEP],0.{number + 1},0.1"
        for constraint in ("high", "low", "neutral")
        for category in ("open", "closed")
        for number, word in enumerate(("robin", "bird", "hammer"))
    ),
])  # fmt: skip
"""Rows of tables as Huang et al. (2024) and Misra et al. (2020) have them."""
STANDS_FOR = {
    "bert-base-uncased": "demo:masked",
    "gpt2": "demo:causal",
    "HuggingFaceTB/SmolLM2-135M-Instruct": "demo:causal",
}
"""Model of the Hub -> demo model that is run in its place."""
MODULE = ["lmdiag", "run"]
"""What a launcher runs, by `-m` or as `eval/run.py`."""
SCRIPTS = ("#!", "hf jobs")
"""Beginnings of bash blocks that have tests below."""
NOT_RUN = ("pip", "lm_eval", "lighteval", "inspect", "syntaxgym", "make ", "hf")
"""Beginnings of commands that the tests of a page do not run, except `make run`."""
OF_THE_HUB = re.compile("EleutherAI|Qwen|openai-community")
"""Commands with a model of these owners are parsed and not run."""
BUILD = "datasets/lmdiag/build.py"
"""The script of `lmdiag build`."""


def blocks(page, *kinds):
    """Kind and text of the code blocks of a page, of some kinds or of all."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
    return [(kind, text) for kind, text in found if not kinds or kind in kinds]


def files_of(page):
    """Name -> content of the files that a page shows."""
    shown = r"[Tt]he\s+file\s+`([\w.-]+)`[^`]*:\n\n```\w+\n(.*?)^```"
    return dict(re.findall(shown, PAGES[page], re.MULTILINE | re.DOTALL))


def commands(text):
    """The commands of a bash block, or of a console block, where they begin with `$ `."""
    lines = text.replace("\\\n", " ").splitlines()
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return prompted or lines


def tables(page):
    """The cells of each table of a page, its head first."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGES[page], re.MULTILINE)
    rows = [[line.strip("|\n").split("|") for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in (table[0], *table[2:])] for table in rows]


# ---- all pages -----------------------------------------------------------------------------------


def test_every_link_leads_to_a_file_and_a_heading():
    for page, text in PAGES.items():
        place = ROOT / page if page == "README.md" else ROOT / "docs" / page
        for link in re.findall(r"\]\((?!http)([^)]+)\)", text):
            name, _, anchor = link.partition("#")
            target = place.parent / name if name else place
            assert target.exists(), link
            if anchor:
                content = re.sub(r"^```.*?^```", "", target.read_text("utf-8"), flags=re.M | re.S)
                heads = re.findall(r"^#+ (.*)$", content.lower(), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}
                assert anchor in anchors, link


def test_guides_fit_on_few_screens_and_pages_for_developers_are_not_among_them():
    guides = {page: text for page, text in PAGES.items() if page != "specification.md"}
    assert {page for page, text in guides.items() if text.count("\n") > 260} == set()
    named = re.findall(r"(?:<|^)([\w/-]+)>?$", PAGES["index.md"], re.MULTILINE)
    assert {"running", "recipes", "citing"} <= {*named}
    assert not {"contributing", "releasing", "security"} & {*named}


def test_every_command_is_accepted_by_its_program():
    """Those that the test of a page runs are left out, but for the options of launchers."""
    from accelerate.commands.launch import launch_command_parser
    from torch.distributed.run import get_args_parser

    launchers = {"accelerate": launch_command_parser(), "torchrun": get_args_parser()}
    scripts = {
        page: [commands(text) for _, text in blocks(page, "bash", "console")
               if not text.startswith(SCRIPTS)]
        for page in PAGES
    }  # fmt: skip
    run = {x for page in RUN for x in chain(*scripts[page]) if is_run(page, x)}
    for command in {*chain(*chain(*scripts.values()))}:
        words = shlex.split(command)
        if command in run and words[0] not in launchers:
            continue
        if words[0] in launchers:  # before the options of `lmdiag run`
            index = words.index("--model")
            start = 2 if words[1] == "launch" else 1
            known = launchers[words[0]].parse_args(words[start:index])
            is_script = known.training_script == "eval/run.py"
            assert is_script or [known.training_script, *known.training_script_args] == MODULE
            words = ["lmdiag", "run", *words[index:]]
        if words[1:2] == [BUILD]:
            words = ["lmdiag", "build", *words[2:]]
        if not command.startswith(NOT_RUN):
            assert words[0] == "lmdiag", command
            parse(words[1:])


def test_every_public_function_has_an_example():
    named = {name: getattr(lmdiag, name) for name in lmdiag.__all__ if name != "__version__"}
    assert [name for name, x in named.items() if ">>> import lmdiag" not in x.__doc__] == []
    assert {x.__module__ for x in named.values()} <= {*WITH_EXAMPLES}


def test_messages_name_options_and_pages_name_tests_that_exist(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    known = {"--help", "--version", *REMOVED}
    known |= {"--num_processes", "--force-reinstall", "--no-cache-dir"}  # of accelerate and pip
    option = r"(?<![\w(-])--[a-z][\w-]*"
    for command in COMMANDS:
        with contextlib.suppress(SystemExit):
            main([command, "--help", "all"])
        known |= {*re.findall(option, capsys.readouterr().out)}
    named = {
        (path.name, name)
        for path in ROOT.glob("eval/lmdiag/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in re.findall(option, node.value)
    }
    assert sorted((path, name) for path, name in named if name not in known) == []
    cited = {path for text in PAGES.values() for path in re.findall(r"\btests/[\w/]+[\w.-]*", text)}
    assert sorted(path for path in cited if not (ROOT / path).exists()) == []
    sections = r'^## lmdiag (\w+)\n\n.*\n.*\n\nusage\("\1"\)$'
    assert re.findall(sections, PAGES["commands.md"], re.MULTILINE) == [*COMMANDS]


MADE_BEFORE = {
    "lmdiag.studies.multiverse": [
        "multiverse demo --model demo:causal --tasks neg136 --knobs unit --output knobs --quiet"
    ]
}
"""Module -> commands that its examples assume."""
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT / "eval").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.glob("eval/lmdiag/**/*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.usefixtures("outside_of_commands")
@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_in_docstrings_give_what_they_show(module, tmp_path, monkeypatch):
    """In a folder of their own, where some have a run made."""
    monkeypatch.chdir(tmp_path)
    examples = import_module(module)
    for command in MADE_BEFORE.get(module, ()):
        printed(main, shlex.split(command))
    tried = doctest.testmod(examples)
    assert tried.attempted > tried.failed == 0


# ---- pages that are run --------------------------------------------------------------------------


def run_page(page):
    """Runs the blocks of a page as a reader would, here; returns what each command printed."""
    names = {}
    outputs = {}
    for kind, text in blocks(page, "console", "bash", "python"):
        if kind == "python":
            code = compile(here(text), page, "exec")
            outputs[text] = printed(exec, code, names)
        for command in commands(text) if kind != "python" else ():
            if is_run(page, command):
                outputs[command] = run_command(command)
    return outputs


def is_run(page, command):
    """Whether the test of a page runs a command: human.md has people's data, which are not here."""
    skipped = command.startswith(NOT_RUN) and command != "make run"
    return not (skipped or OF_THE_HUB.search(command) or page == "human.md")


def here(text):
    """A command or a block with the demo models and two shuffles."""
    for model, demo in STANDS_FOR.items():
        text = re.sub(rf"(?<![\w/.-]){model}(?![\w/-])", demo, text)
        folder, of_demo = model.replace("/", "--"), demo.replace(":", "--")
        text = text.replace(f"/{folder}/", f"/{of_demo}/")
    return re.sub(r"--shuffles \d+", "--shuffles 2", text)


def run_command(command):
    words = shlex.split(here(command))
    if command == "make run":
        words = ["make", "-o", ".venv/package-done", "run", f"BIN={PROGRAMS}"]
    elif words[:2] in (["lmdiag", "build"], ["python", BUILD]) and "--source" not in words:
        words += ["--source", "demo"]
    if words[0] == "accelerate":  # itself is started by the tests of an installation
        count = words[words.index("--num_processes") + 1] if "--num_processes" in words else "1"
        words = ["lmdiag", "run", *words[words.index("--model") :]]
        if count != "1":
            return forked(run_on, int(count), *words[1:])
    if words[0] == "lmdiag":
        return printed(main, words[1:])
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return finished(*words, PATH=path, COLUMNS="100", MAKEFLAGS="")


NUMBER = re.compile(r"-?\d*\.?\d+")


def same(shown, line):
    """Whether two lines are equal, apart from white space and what processors differ in.

    Sums in float32 differ by some 1e-5 between processors: numbers may differ by one unit of the
    last digit shown, or by 1e-4 (of their size, for numbers above 1).
    """
    shown, line = (" ".join(text.replace("−", "-").split()) for text in (shown, line))
    return NUMBER.sub("#", shown) == NUMBER.sub("#", line) and all(
        abs(float(a) - float(b))
        <= max(1.01 * 10.0 ** -len(a.partition(".")[2]), 1e-4 * max(1.0, abs(float(a))))
        for a, b in zip(NUMBER.findall(shown), NUMBER.findall(line), strict=True)
    )


def percent(file, place):
    """A figure of a `results.json`, as pages show it."""
    figure = read_record(Results, file).figure(place)
    return f"{100 * figure.value:.1f}"


def check_shown(page, outputs):
    """What a page shows below a command, or in the text block after it, was printed."""
    command = ""
    for kind, text in blocks(page):
        shown = []
        if kind in ("console", "bash"):
            command = next((c for c in reversed(commands(text)) if c in outputs), "")
            if text.startswith("$ "):
                lines = text.replace("\\\n", " ").splitlines()
                shown = [line for line in lines if not line.startswith("$ ")]
        elif kind == "text" and command and text not in files_of(page).values():
            shown = text.splitlines()
        printed_lines = iter(outputs[command].splitlines() if shown else ())
        for line in filter(str.strip, shown):
            assert any(same(line, other) for other in printed_lines), line
        if kind not in ("console", "bash"):
            command = ""


CHOICES = [("", "sensitivity")] + [
    ("-elicitationchoice", measure) for measure in ("sensitivity", "position_bias", "labels_mass")
]
"""Columns of the table of choices: what the folder ends in, and the measure."""


def check_readme(outputs):
    """It shows what `make run` printed, and effects of analysis.md; its commands by task run."""
    (shown,) = (text for _, text in blocks("README.md", "text"))
    lines = outputs["make run"].splitlines()
    assert [x for x in shown.splitlines() if not any(same(x, line) for line in lines)] == []
    (effects,) = (table for table in tables("README.md") if table[0][0].startswith("effect"))
    (same_effects,) = (table for table in tables("analysis.md") if "SmolLM2" in table[0][0])
    assert effects[1:] == [[label, *values] for label, _, *values in same_effects[1:]]
    (by_task,) = (table for table in tables("README.md") if table[0][0] == "task")
    by_task = [row[1].strip("`") for row in by_task[1:]]
    for command in ("lmdiag template my_items.csv --design 2x2", *by_task):
        if not OF_THE_HUB.search(command):
            run_command(command)


def check_protocol(outputs):
    """Every figure in the tables of the page is that of its runs, which are in their order."""
    (head, *rows), *_ = tables("protocol.md")
    folders = ["token", "word", "token-bosalways", "token-prompt*", "token-letterlower", "token",
               "word", "token-periodnever"]  # fmt: skip
    for (run, *cells), folder in zip(rows, folders, strict=True):
        model = run.partition(" ")[0].replace(":", "--")
        (file,) = Path("results").glob(f"{model}/diagnostics-{folder}/results.json")
        for column, cell in zip(head[1:], cells, strict=True):
            task, measure = column.split()
            assert same(cell, percent(file, FigureKey(task, "none", measure))), run


def check_choice(outputs):
    """Every figure in the table of both ways of asking."""
    (_, *choices), _ = tables("choice.md")
    for task, _, *cells in choices:
        for cell, (way, measure) in zip(cells, CHOICES, strict=False):
            file = Path(f"results/demo--causal/diagnostics-token{way}/results.json")
            assert same(cell, percent(file, FigureKey(task, "none", measure))), task


def check_sentences(outputs):
    """Every surprisal of the first text in the table of settings."""
    ((text, *bits),) = (table for table in tables("sentences.md") if "surprisal" in table[0][0])
    for run, *cells in bits:
        command = f"lmdiag surprisal --model {run} sentences.txt"
        table = csv.DictReader(outputs[command].splitlines())
        for word, cell, row in zip(text[1:], cells, table, strict=False):
            assert row["word"] == word
            assert cell == row["surprisal"] or same(cell, row["surprisal"])


def check_analysis(outputs):
    """The mixed model that the page prints is that of lmerTest, which the page has from R."""
    (r,) = (text for _, text in blocks("analysis.md", "text") if "Pr(>|t|)" in text)
    found = (out.partition("Mixed model: surprisal")[2] for out in outputs.values())
    lines = next(filter(None, found)).splitlines()
    for name, *numbers in (line.split()[:5] for line in r.strip().splitlines()[1:]):
        (line,) = (line.replace("−", "-") for line in lines if line.startswith(f"{name} "))
        for shown, value in zip(NUMBER.findall(line[len(name) :]), numbers, strict=False):
            digits = 10.0 ** -len(shown.partition(".")[2])
            assert float(shown) == pytest.approx(float(value), abs=0.51 * digits), line


def check_migration(outputs):
    """The settings of the original code are declared."""
    (settings,) = re.findall(r"`--perturb ([\w ]+)`", PAGES["migration.md"])
    declared = [p.name for d in diagnostics.built_in().values() for p in d.perturbations]
    assert {*settings.split()} <= {*declared}


def check_harnesses(outputs):
    """Figures: the column of lmdiag, and other programs' wherever both score the same items."""
    (table,) = (table for table in tables("harnesses.md") if "lighteval" in table[0])
    run_command("lmdiag run --model gpt2 --output all --tasks cprag102 role88 neg136 agreement")
    (file,) = Path("all").glob("*/*/results.json")
    levels = {
        "neg136 simp, affirmative": ("subset/polarity", "simp/affirmative"),
        "neg136 simp, negative": ("subset/polarity", "simp/negative"),
        "neg136 simp": ("subset", "simp"),
        "neg136 nat": ("subset", "nat"),
    }
    assert len(table) == 18
    for row, shown, *others in table[1:]:
        name, _, measure = row.rpartition(", ")
        place = FigureKey(name.split()[0], "none", measure, *levels.get(name, ()))
        assert same(shown, percent(file, place)), row
        assert {*filter(None, others)} <= {shown}


CHECKED = {"README.md": check_readme, "protocol.md": check_protocol, "choice.md": check_choice,
           "sentences.md": check_sentences, "analysis.md": check_analysis,
           "migration.md": check_migration, "harnesses.md": check_harnesses}  # fmt: skip
"""Page -> what is checked besides the outputs that it shows."""
RUN = [
    "README.md",
    "running.md",
    "python.md",
    "excel.md",
    "own-data.md",
    "sentences.md",
    "analysis.md",
    "migration.md",
    "harnesses.md",
]
RUN += ["diagnostics/extended-sets.md", "human.md", "studies.md", "cloze.md", "babylm.md"]
LONG = ["protocol.md", "choice.md", "multiverse.md"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("page", RUN + [pytest.param(x, marks=pytest.mark.nightly) for x in LONG])
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, demo_dir, tmp_path, monkeypatch):
    """In a folder like a clone, with files that readers of the page have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    for room in ("cards", "datasets", "docs", "eval", "metrics", "Makefile"):
        Path(room).symlink_to(ROOT / room)
    if page != "protocol.md":  # which builds it
        shutil.copytree(demo_dir, "lmdiag")
    files = {"reading.csv": "\n".join(["text,position,word,rt", *READING]),
             "bert-base-uncased_polysemy_free.csv": PRIMES,
             "items_ClassicGP.gpt2.csv": GARDEN_PATHS, "models.txt": "demo:causal\n"}  # fmt: skip
    for name, content in (files | files_of("sentences.md") | files_of(page)).items():
        Path(name).write_text(content, "utf-8")
    Path("multiblimp").mkdir()
    shutil.copy("pairs.jsonl", "multiblimp/eng.jsonl")
    shutil.copytree("datasets/lmdiag/demo/refining-tse/data/blimp", "blimp")
    if page in ("migration.md", "harnesses.md"):
        outputs = Path("outputs/bert-base-uncased")  # of the original code, for the demo items
        outputs.mkdir(parents=True)
        (outputs / "modelpreds-cprag-x").write_text(54 * "chess it math that this\n")
        (outputs / "modeltgtprobs-cprag-x").write_text(54 * "0.5\n")
        printed(main, ["template"])
    if page == "README.md":
        printed(main, ["template", "--cloze", "responses.csv"])
    outputs = run_page(page)
    check_shown(page, outputs)
    assert all(out for text, out in outputs.items() if "print(" in text)
    if page in CHECKED:
        CHECKED[page](outputs)


# ---- figures and blocks of single pages ----------------------------------------------------------


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_published_figures_of_a_diagnostics_page(task):
    (head, *rows) = next(t for t in tables(f"diagnostics/{task}.md") if t[0][0] == "measure")
    kept = {}
    for figure in published_figures():
        place = figure.key
        where = place.setting if place.setting != "none" else place.level or "original"
        kept.setdefault((figure.model, place.task, place.measure, where), figure.value)
    for measure, where, *cells in rows:
        for model, cell in zip(head[2:], cells, strict=True):
            assert float(cell) == kept[model, task, measure, where], (model, measure, where)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_the_blocks_in_r_run(tmp_path):
    (text,) = (text for _, text in blocks("migration.md", "r"))
    (tmp_path / "words.R").write_text(here(text), "utf-8")
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    out = finished("Rscript", "words.R", cwd=tmp_path, PATH=path)
    rows = list(csv.DictReader((tmp_path / "words.csv").open(encoding="utf-8")))
    bits = sum(float(row["surprisal"]) for row in rows if row["text"] == "1")
    gains = [float(x["surprisal"]) + float(x["log_frequency"]) for x in rows if x["text"] == "1"]
    shown = re.findall(r"^1 +1 +(\S+)", out, re.MULTILINE)
    expected = [bits, -sum(gains) / len(gains)]
    assert [float(value) for value in shown] == pytest.approx(expected, rel=1e-4)


SLURM, JOB = (text for _, text in blocks("jobs.md", "bash") if text.startswith(SCRIPTS))


def test_a_task_of_the_slurm_array_runs_its_line(tmp_path):
    (tmp_path / "models.txt").write_text("org/one\norg/two step1000\n")
    (tmp_path / "job.sh").write_text(SLURM)
    for name in ("lmdiag", "scontrol"):  # programs that log their arguments
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $* $HF_HUB_OFFLINE" >> log\n')
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "7"}
    env = os.environ | slurm | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=env, check=True)
    run = "lmdiag run --model org/two --revision step1000 --data lmdiag --output results --quiet 1"
    assert (tmp_path / "log").read_text() == f"{run}\n"


def test_the_job_of_the_hub_runs_and_submits():
    parts = [shlex.split(part) for part in shlex.split(JOB.replace("\\\n", " "))[-1].split("&&")]
    inside = [words[1:] for words in parts if words[0] == "lmdiag"]
    assert [parse(words)[0].__module__ for words in inside] == [
        "lmdiag.cli.run_command",
        "lmdiag.cli.data",
    ]


METRIC = re.compile(r"[\w\-. :/]+").fullmatch
"""Names of metrics that MLflow accepts, by its documentation."""


class Tracked(contextlib.nullcontext):
    """Stands for a run of Weights & Biases: keeps what is logged."""

    def __init__(self):
        super().__init__(self)
        self.logged = []

    def log(self, metrics, step):
        self.logged.append((step, metrics))


@pytest.mark.slow
def test_the_recipes_run(tmp_path, monkeypatch):
    """The job on models that are equal, and both logs, with stand-ins for their packages."""
    monkeypatch.chdir(tmp_path)
    for place in ("out/checkpoint-100", "out/checkpoint-200", "models/base", "models/new"):
        shutil.copytree(ROOT / "eval/lmdiag/models/demo/causal", place)
    tracked, metrics = Tracked(), Tracked()
    functions = {
        "wandb": {"init": lambda project: tracked},
        "mlflow": {"start_run": contextlib.nullcontext, "log_metrics": metrics.log},
    }
    for name, of_package in functions.items():  # transformers looks at the specs of both
        package = SimpleNamespace(**of_package, __spec__=ModuleSpec(name, None))
        monkeypatch.setitem(sys.modules, name, package)
    run_page("recipes.md")
    (header, *rows) = csv.reader(Path("curves.csv").read_text("utf-8").splitlines())
    assert {row[header.index("step")] for row in rows} == {"100", "200"}
    assert {path.suffix for path in Path("charts").iterdir()} >= {".svg"}
    for logged in (tracked.logged, metrics.logged):
        assert [step for step, _ in logged] == [100, 200]
        assert all(0 <= value <= 1 for value in logged[0][1].values())
    assert "neg136/accuracy@1" in tracked.logged[0][1]
    assert all(METRIC(name) for _, logged in metrics.logged for name in logged)
    ((_, job),) = blocks("recipes.md", "yaml")
    steps = safe_load(job)["jobs"]["compare"]["steps"]
    lines = [step["run"] for step in steps if "run" in step]
    assert [line.split()[1] for line in lines] == ["install", "run", "compare"]
    for line in lines[1:]:
        assert main(shlex.split(line)[1:]) == 0


# ---- the site, as `make docs` builds it ----------------------------------------------------------

ALIKE = [f"diagnostics/{task}.md" for task in ("cprag102", "neg136", "agreement")]


def notebook(task):
    """The blocks of the page of a diagnostic that are executed when the site is built."""
    text = PAGES[f"diagnostics/{task}.md"]
    return re.findall(r"^```\{code-cell\}.*?\n(.*?)^```$", text, re.M | re.S)


@pytest.mark.slow
@pytest.mark.long(seconds=60)
def test_the_site_is_built_without_a_warning_and_its_pages_fit_a_phone(root, tmp_path, new_page):
    """Sphinx warns of dead links; `new_page` fails if a page requests what is not its own file."""
    pytest.importorskip("sphinx", reason="`make docs` installs Sphinx")
    site = tmp_path / "html"
    options = ["-q", "-W", "--keep-going", "-d", tmp_path / "doctrees"]
    options += ["-D", "suppress_warnings=myst-nb.lexer"]  # of blocks not executed
    sphinx = [sys.executable, "-m", "sphinx", *options]
    finished(*sphinx, root / "docs", site, NOT_EXECUTED_PAGES=" ".join(ALIKE))
    page = new_page(viewport={"width": 420, "height": 1000})
    pages = [path for path in site.rglob("*.html") if "_modules" not in path.parts]
    assert len(pages) > 30
    for path in pages:
        page.goto(path.as_uri())
        excess = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert excess <= 0, f"{path.name} is wider than the screen"


def test_pages_of_diagnostics_have_the_same_blocks():
    """So that the test above executes those of one page."""
    executed = notebook("role88")
    assert len(executed) == 2
    for path in ALIKE:
        task = Path(path).stem
        assert [text.replace(task, "role88") for text in notebook(task)] == executed
