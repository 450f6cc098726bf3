"""The structure of the package: which room never imports which, read from the source and tried.

A module's *room* is the first name below `lmdiag`: `lmdiag/models/causal.py` is in `models`.
Rules on siblings count every import, also those for type checkers: a type is a dependency. Rules on
libraries follow the imports at run time through the siblings: a function that calls another one
that needs torch needs torch.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from lmdiag.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "eval/lmdiag"

ASKING = {"models", "runs"}
SHOWING = {"report", "display", "hub", "leaderboard", "api"}
MEASURING = {"measures", "stats", "evaluation", "comparison", "results"}

NEVER: Mapping[str, set[str]] = {
    "diagnostics": ASKING | SHOWING | MEASURING - {"measures"} | {"stimuli"},
    "stimuli": ASKING | SHOWING | MEASURING,
    "perturb": ASKING | SHOWING | MEASURING,
    "questions": ASKING | SHOWING | MEASURING,
    "models": SHOWING | MEASURING | {"runs", "stimuli", "diagnostics"},
    "runs": SHOWING,
    "evaluation": ASKING | SHOWING,
    "comparison": ASKING | SHOWING,
    "multiverse": ASKING | SHOWING,
    "results": ASKING | SHOWING | {"evaluation", "comparison"},
    "analysis": ASKING | SHOWING | {"evaluation", "comparison"},
    "report": ASKING | {"hub", "leaderboard", "display", "api"},
    "hub": ASKING | {"leaderboard", "display", "api"},
    "leaderboard": ASKING | {"display", "api"},
}
"""Room -> siblings that it never imports: data flows one way."""

ALONE: Mapping[str, set[str]] = {
    "types": set(), "protocol": {"types"}, "formulas": set(), "measures": {"formulas"},
    "stats": set(), "text": set(),
}  # fmt: skip
"""Room -> the only siblings that it imports."""

WITHOUT_TORCH = sorted({*NEVER, *ALONE} - ASKING)
"""Rooms that run where no deep-learning library is installed."""

HEAVY = {"torch", "transformers", "tokenizers", "accelerate", "evaluate", "datasets"} | {
    *("pyarrow", "pandas", "numpy", "scipy", "altair"),
    *("huggingface_hub", "jinja2"),
}
"""Libraries that no `--help` waits for."""

SAME_ROLE = {"main", "Options", "STOPPED", "DIAGNOSTIC", "render", "load"}
"""Names that several modules define in the same role: commands, diagnostics, formats, and `load`,
which is always used with its room, as `models.load` and `stimuli.load`."""


@cache
def rooms(*, types: bool) -> grimp.ImportGraph:
    """The imports between rooms and of libraries, with or without those for type checkers."""
    graph = grimp.build_graph(
        "lmdiag",
        include_external_packages=True,
        exclude_type_checking_imports=not types,
        cache_dir=None,
    )
    for module in graph.find_modules_directly_imported_by("lmdiag"):
        graph.remove_import(importer="lmdiag", imported=module)
    for module in graph.find_children("lmdiag"):
        graph.squash_module(module)
        graph.remove_import(importer=module, imported=module)
    return graph


def imported(room: str) -> set[str]:
    """The siblings that a room imports, those for type checkers as well."""
    modules = rooms(types=True).find_modules_directly_imported_by(f"lmdiag.{room}")
    return {module.removeprefix("lmdiag.") for module in modules if module.startswith("lmdiag.")}


def test_every_room_of_the_rules_exists() -> None:
    named = {*NEVER, *ALONE, *(name for names in NEVER.values() for name in names)}
    assert {f"lmdiag.{name}" for name in named} <= {*rooms(types=True).find_children("lmdiag")}
    assert "torch" in rooms(types=False).find_upstream_modules("lmdiag.models")


@pytest.mark.parametrize("importer", sorted(NEVER))
def test_a_room_never_imports(importer: str) -> None:
    assert not imported(importer) & NEVER[importer]


@pytest.mark.parametrize("importer", ALONE)
def test_a_room_that_imports_hardly_a_sibling(importer: str) -> None:
    assert imported(importer) == ALONE[importer]


def test_no_circle_between_rooms() -> None:
    names = {name.removeprefix("lmdiag.") for name in rooms(types=True).find_children("lmdiag")}
    assert {*TopologicalSorter({name: imported(name) for name in names}).static_order()} == names


@pytest.mark.parametrize("importer", WITHOUT_TORCH)
def test_a_room_needs_no_torch(importer: str) -> None:
    libraries = rooms(types=False).find_upstream_modules(f"lmdiag.{importer}")
    assert not libraries & {"torch", "transformers", "accelerate"}


def public_names(path: Path) -> Iterator[str]:
    """The public classes, functions and constants that a module defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            targets = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            given = node.targets if isinstance(node, ast.Assign) else [node.target]
            targets = [t.id for each in given for t in ast.walk(each) if isinstance(t, ast.Name)]
        else:
            continue
        yield from (name for name in targets if not name.startswith("_"))


def test_no_public_name_has_two_meanings() -> None:
    modules: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in dict.fromkeys(public_names(path)):
            modules.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    doubled = {name: defining for name, defining in modules.items() if len(defining) > 1}
    assert {n: d for n, d in doubled.items() if n not in SAME_ROLE} == {}


def test_nothing_imports_the_command_line_or_evaluate() -> None:
    """`evaluate` imports transformers' pipelines: several seconds."""
    graph = rooms(types=False)
    assert graph.find_modules_that_directly_import("lmdiag.cli") <= {"lmdiag.__main__"}
    assert "evaluate" not in graph.modules


def test_the_accelerate_entry_holds_nothing_but_the_call() -> None:
    tree = ast.parse((ROOT / "eval/run.py").read_text(encoding="utf-8"))
    kinds = {type(node) for node in tree.body}
    assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.If}


def test_the_folders_do_not_shadow_the_libraries() -> None:
    """`datasets/__init__.py` would hide Hugging Face's `datasets` from what runs in the root."""
    assert not (ROOT / "datasets/__init__.py").exists()
    assert not (ROOT / "metrics/__init__.py").exists()
    assert not (ROOT / "datasets/lmdiag/lmdiag.py").exists(), (
        "load_dataset would take it for a script"
    )


HELP = """
import sys
from lmdiag.cli import main
try:
    main(sys.argv[1:])
except SystemExit as done:
    assert done.code == 0, done
print("|", *sorted({name.split(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_imports_nothing_heavy(command: str | None) -> None:
    arguments = [*([command] if command else []), "--help"]
    done = subprocess.run(
        [sys.executable, "-c", HELP, *arguments], capture_output=True, text=True, check=True
    )
    said, _, modules = done.stdout.rpartition("|")
    assert said.startswith(f"Usage: lmdiag{f' {command}' if command else ''}")
    assert not HEAVY & set(modules.split())
