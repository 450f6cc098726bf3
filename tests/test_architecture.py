"""The structure of the package: which room never imports which, and which needs no torch.

A module's *room* is the first name below `lmdiag`: `lmdiag/models/causal.py` is in `models`.
Rules on siblings count every import, also those for type checkers: a type is a dependency. Rules on
libraries follow the imports at run time through the siblings: a function that calls another one
that needs torch needs torch.
"""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from symtable import symtable

import grimp
from launched import finished

from lmdiag.cli import COMMANDS
from lmdiag.stimuli.values.names import NAMES
from lmdiag.text import folded

ROOT = Path(__file__).resolve().parents[1]
ASKING = {"models", "runs"}
SHOWING = {"report", "hub", "leaderboard", "api", "app", "cli"}
MEASURING = {"measures", "stats", "studies", "results"}
NEVER = {
    "diagnostics": ASKING | SHOWING | MEASURING - {"measures"} | {"stimuli"},
    "stimuli": ASKING | SHOWING | MEASURING - {"measures"},
    "tables": ASKING | SHOWING | MEASURING | {"stimuli", "asking"},
    "files": ASKING | SHOWING | MEASURING | {"stimuli", "asking", "tables"},
    "asking": ASKING | SHOWING | MEASURING,
    "models": SHOWING | MEASURING | {"runs", "stimuli", "diagnostics"},
    "runs": SHOWING,
    "studies": ASKING | SHOWING,
    "results": ASKING | SHOWING | {"studies"},
    "analysis": ASKING | SHOWING | {"studies"},
    "measures": ASKING | SHOWING | MEASURING - {"measures", "stats"},
    "report": ASKING | SHOWING - {"report"},
    "app": ASKING | SHOWING - {"app", "api"} | MEASURING - {"results"} | {"stimuli", "analysis"},
    "hub": ASKING | SHOWING - {"hub", "report"},
    "leaderboard": ASKING | {"api", "cli"},
}
"""Room -> siblings that it never imports, also within functions: data flows one way.

Results are data, which know nothing of what shows them; see `lmdiag.presentable`.
"""
ALONE = {
    "types": {"spacing", "text"}, "stats": set(), "text": set(), "presentable": set(),
    "measures": {"frequencies", "stats", "text", "types"},
}  # fmt: skip
"""Room -> the only siblings that it imports."""
STIMULI = {
    "values": set(), "designs": {"values", "stimulus_rows"}, "reading": {"values", "designs"},
    "proposing": {"values", "reading", "stimulus_rows"},
}  # fmt: skip
"""Room of `lmdiag.stimuli` -> the others that it imports: the reader does not know the guesser."""
HEAVY = {"torch", "transformers", "tokenizers", "accelerate", "evaluate", "datasets", "pyarrow"}
HEAVY |= {"pandas", "numpy", "scipy", "altair", "huggingface_hub", "jinja2"}
"""Libraries that no `--help` waits for."""
SAME_ROLE = {"main", "Options", "render", "load"}
"""Names that several modules define in the same role: commands, formats, and `load`,
which is always used with its room, as `models.load` and `stimuli.load`."""


def modules(*, types):
    """The imports between modules and of libraries, with or without those for type checkers."""
    graph = grimp.build_graph(
        "lmdiag", include_external_packages=True, cache_dir=None,
        exclude_type_checking_imports=not types,
    )  # fmt: skip
    for module in graph.find_modules_directly_imported_by("lmdiag"):
        graph.remove_import(importer="lmdiag", imported=module)
    return graph


@cache
def rooms(*, types):
    """The imports between rooms and of libraries, with or without those for type checkers."""
    graph = modules(types=types)
    for module in graph.find_children("lmdiag"):
        graph.squash_module(module)
        graph.remove_import(importer=module, imported=module)
    return graph


def test_rooms_import_as_the_rules_say_and_in_no_circle():
    graph = rooms(types=True)
    imported = {
        room[7:]: {x[7:] for x in graph.find_modules_directly_imported_by(room) if "lmdiag." in x}
        for room in graph.find_children("lmdiag")
    }
    for room, never in NEVER.items():
        assert not imported[room] & never, room
        assert never <= {*imported}
    assert {room: imported[room] for room in ALONE} == ALONE
    assert {*TopologicalSorter(imported).static_order()} == {*imported}


def test_the_reader_of_tables_does_not_import_what_proposes_how_to_read_them():
    graph = modules(types=True)
    prefix = "lmdiag.stimuli."
    for module in graph.find_children("lmdiag.stimuli"):
        graph.squash_module(module)
        graph.remove_import(importer=module, imported="lmdiag.stimuli")
    for room, allowed in STIMULI.items():
        found = graph.find_modules_directly_imported_by(prefix + room)
        names = {name.removeprefix(prefix) for name in found if name.startswith(prefix)}
        assert names <= allowed, room


def test_no_modules_import_each_other_in_a_circle():
    """A module can be read, and changed, without those that import it."""
    graph = modules(types=True)
    imported = {x: graph.find_modules_directly_imported_by(x) for x in graph.modules}
    assert {*TopologicalSorter(imported).static_order()} == {*imported}


def test_only_models_and_runs_need_torch_and_nothing_imports_the_commands_or_evaluate():
    """`evaluate` imports transformers' pipelines: several seconds."""
    graph = rooms(types=False)
    needs = {room: graph.find_upstream_modules(f"lmdiag.{room}") for room in {*NEVER, *ALONE}}
    libraries = {"torch", "transformers", "accelerate"}
    assert {room for room, modules in needs.items() if modules & libraries} == ASKING
    assert graph.find_modules_that_directly_import("lmdiag.cli") <= {"lmdiag.__main__"}
    assert "evaluate" not in graph.modules
    assert graph.find_modules_that_directly_import("subprocess") == {"lmdiag.leaderboard"}
    assert not {"multiprocessing", "concurrent"} & graph.modules


def test_no_public_name_has_two_meanings():
    modules = {}
    for path in (ROOT / "eval/lmdiag").rglob("*.py"):
        for symbol in symtable(path.read_text("utf-8"), path.name, "exec").get_symbols():
            if symbol.is_assigned() and not symbol.is_imported() and symbol.get_name()[0] != "_":
                modules.setdefault(symbol.get_name(), set()).add(path)
    doubled = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert {name: paths for name, paths in doubled.items() if name not in SAME_ROLE} == {}


def names_in(node):
    """The texts of a collection or a dictionary, and the alternatives of a regular expression."""
    nodes = getattr(node, "elts", []) or getattr(node, "keys", [])
    texts = [x.value for x in nodes if isinstance(x, ast.Constant)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "|" in node.value:
        texts = re.split(r"[|()]", node.value)
    return {folded(text) for text in texts if isinstance(text, str)}


def test_names_of_columns_of_users_stand_in_one_table():
    """No other module that reads tables has two names of a role, but for those of our own."""
    own = {*NAMES, "id", "sentence", "condition"}
    rooms = [ROOT / "eval/lmdiag/studies/cloze_norms.py"]
    for room in ("tables", "stimuli", "analysis", "runs"):
        rooms += (ROOT / "eval/lmdiag" / room).rglob("*.py")
    paths = [path for path in rooms if path.name not in ("names.py", "extended_sets.py")]
    assert len(paths) > 30
    doubled = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = names_in(node)
            if len(names) < 2:
                continue
            for names_of_role in NAMES.values():
                of_one_role = names & {*names_of_role}
                if len(of_one_role) > 1 and of_one_role - own:
                    doubled[f"{path.name}:{node.lineno}"] = of_one_role
    assert doubled == {}


def test_the_folders_do_not_shadow_the_libraries_and_the_entry_holds_nothing_but_the_call():
    """`datasets/__init__.py` would hide Hugging Face's `datasets` from what runs in the root."""
    for path in ("datasets/__init__.py", "metrics/__init__.py", "datasets/lmdiag/lmdiag.py"):
        assert not (ROOT / path).exists(), path
    tree = ast.parse((ROOT / "eval/run.py").read_text("utf-8"))
    assert {type(node) for node in tree.body} <= {ast.Expr, ast.Import, ast.ImportFrom, ast.If}


def test_help_imports_nothing_heavy():
    code = f"""
import sys
from lmdiag.cli import main
for words in ([], *([name] for name in {COMMANDS!r})):
    try:
        main([*words, "--help"])
    except SystemExit as done:
        assert done.code == 0, done
    found = {HEAVY!r} & {{name.split(".")[0] for name in sys.modules}}
    assert not found, (words, found)
"""
    assert finished(sys.executable, "-c", code).count("Usage: lmdiag") == 1 + len(COMMANDS)
