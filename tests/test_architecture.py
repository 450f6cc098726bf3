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
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

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
    "multiverse": ASKING | {"hub", "leaderboard", "display", "api"},
    "results": ASKING | SHOWING | {"evaluation", "comparison"},
    "analysis": ASKING | SHOWING | {"evaluation", "comparison"},
    "report": ASKING | {"hub", "leaderboard", "display", "api", "multiverse"},
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

SAME_ROLE = {"main", "Options", "stopped", "DIAGNOSTIC", "render", "load"}
"""Names that several modules define in the same role: commands, diagnostics, formats, and `load`,
which is always used with its room, as `models.load` and `stimuli.load`."""


@dataclass(frozen=True)
class Import:
    """One imported module, as an absolute dotted name, and whether it is there only for types."""

    name: str
    for_types: bool


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Yields all imports of a module, those inside functions too, relative ones made absolute."""
    tree = ast.parse(source)
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    parents = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, id(node) in typed)
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:  # `from lmdiag import stats` names a module, too
                yield Import(f"{base}.{alias.name}", id(node) in typed)


@cache
def package() -> dict[str, tuple[Import, ...]]:
    """Returns module -> its imports, for the whole package."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        modules[module] = tuple(imports_of(path.read_text(encoding="utf-8"), module, is_package))
    return modules


def room(name: str) -> str | None:
    """Returns the room of a dotted name; None for the package itself and for other libraries."""
    parts = name.split(".")
    return (
        parts[1] if parts[0] == "lmdiag" and f"lmdiag.{'.'.join(parts[1:2])}" in package() else None
    )


def rooms_imported(importer: str, *, types: bool) -> set[str]:
    """Returns the siblings that a room imports, with or without imports for type checkers."""
    return {
        imported
        for module, imports in package().items()
        if room(module) == importer
        for found in imports
        if (types or not found.for_types) and (imported := room(found.name)) not in (None, importer)
    }


def libraries(importer: str) -> set[str]:
    """Returns the libraries that a room needs at run time, through its siblings too."""
    reached, todo = {importer}, [importer]
    while todo:
        new = rooms_imported(todo.pop(), types=False) - reached
        reached |= new
        todo += new
    return {
        found.name.split(".")[0]
        for module, imports in package().items()
        if room(module) in reached
        for found in imports
        if not found.for_types
    }


def test_the_reader_of_imports_sees_every_form() -> None:
    source = (
        "import torch.nn as nn\nfrom . import stats\nfrom .. import types\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lmdiag import hub\n"
        "def late():\n    from lmdiag.measures import score\n"
    )
    assert set(imports_of(source, "lmdiag.models.causal", is_package=False)) == {
        Import("torch.nn", False), Import("lmdiag.models.stats", False),
        Import("lmdiag.types", False), Import("typing.TYPE_CHECKING", False),
        Import("lmdiag.hub", True), Import("lmdiag.measures.score", False),
    }  # fmt: skip


def test_every_room_of_the_rules_exists() -> None:
    named = {*NEVER, *ALONE, *(name for names in NEVER.values() for name in names)}
    assert named <= {room(module) for module in package()}


@pytest.mark.parametrize("importer", sorted(NEVER))
def test_a_room_never_imports(importer: str) -> None:
    assert not rooms_imported(importer, types=True) & NEVER[importer]


@pytest.mark.parametrize("importer", ALONE)
def test_a_room_that_imports_hardly_a_sibling(importer: str) -> None:
    assert rooms_imported(importer, types=True) == ALONE[importer]


def test_no_circle_between_rooms() -> None:
    rooms = {name for module in package() if (name := room(module))}
    order = TopologicalSorter({name: rooms_imported(name, types=True) for name in rooms})
    assert {*order.static_order()} == rooms


@pytest.mark.parametrize("importer", WITHOUT_TORCH)
def test_a_room_needs_no_torch(importer: str) -> None:
    assert not libraries(importer) & {"torch", "transformers", "accelerate"}


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


def test_only_the_metric_script_imports_evaluate() -> None:
    """`evaluate` imports transformers' pipelines: several seconds."""
    users = {
        module
        for module, imports in package().items()
        for i in imports
        if i.name.split(".")[0] == "evaluate"
    }
    assert not users


def test_nothing_imports_the_command_line() -> None:
    users = {
        module
        for module, imports in package().items()
        if room(module) not in ("cli", "__main__")
        and any(room(found.name) == "cli" for found in imports)
    }
    assert not users


def test_the_accelerate_entry_holds_nothing_but_the_call() -> None:
    tree = ast.parse((ROOT / "eval/run.py").read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert {i.name.split(".")[0] for i in imports_of(ast.unparse(tree), "run", False)} <= {
        "sys",
        "lmdiag",
        "__future__",
    }


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
