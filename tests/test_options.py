"""The keywords of the Python API, for type checkers, are the fields of the records."""

import inspect
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import pytest
from cyclopts import App

import lmdiag
from lmdiag import options
from lmdiag.analysis.procedures import Procedure, ProcedureKeywords
from lmdiag.api.model import PredictKeywords, PredictOptions
from lmdiag.api.runs import LayeredRunKeywords
from lmdiag.cli import command_options
from lmdiag.cli.cloze_command import cloze_command
from lmdiag.cli.run_command import run_command
from lmdiag.cli.run_outputs import analyse_command, compare_command
from lmdiag.cli.texts import fit_command
from lmdiag.models.loading.load_options import LoadKeywords, LoadOptions
from lmdiag.stimuli import perturbations
from lmdiag.types import FactorKeywords, FactorOptions, TableKeywords, TableOptions

RECORDS = [
    (TableOptions, TableKeywords), (LoadOptions, LoadKeywords), (Procedure, ProcedureKeywords),
    (FactorOptions, FactorKeywords), (PredictOptions, PredictKeywords),
    (options.Batching, options.BatchingKeywords), (options.Asking, options.AskingKeywords),
    (options.Recording, options.RecordingKeywords), (options.Running, options.RunningKeywords),
    (options.RowOptions, options.RowKeywords), (options.DataOptions, options.DataKeywords),
    (options.LayerOptions, options.LayerKeywords),
]  # fmt: skip

FURTHER = {str, int, Mapping[str, str], Mapping[str, Sequence[object]]}
"""Types that Python takes beside those of a field: one text for several, a number for a text, names
with what they stand for."""


def choices(hint):
    """The types that a keyword may have, a tuple of texts as a sequence of them."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    texts = tuple[str, ...], Sequence[int | str]
    return {Sequence[str] if part in texts else part for part in parts}


@pytest.mark.parametrize(("record", "keywords"), RECORDS)
def test_keywords_are_the_fields_of_the_record(record, keywords):
    fields = get_type_hints(record)
    hints = get_type_hints(keywords)
    assert hints.keys() == fields.keys()
    for name, hint in hints.items():
        further = choices(hint) - choices(fields[name])
        assert choices(fields[name]) <= choices(hint)
        assert further <= FURTHER, name


def test_run_and_its_keywords_for_several_models_are_declared_alike():
    shown = {*inspect.signature(lmdiag.run).parameters} - {"model", "data"}
    assert {*get_type_hints(LayeredRunKeywords)} == shown


@pytest.mark.parametrize("record", [record for record, _ in RECORDS[4:]])
def test_every_field_has_a_text(record):
    assert options.field_texts(record).keys() == record.__dataclass_fields__.keys()


def test_texts_name_every_perturbation():
    text = options.field_texts(options.DataOptions)["perturb"]
    assert all(name in text for name in perturbations.names())


SHOWN = {*command_options.Showing.__dataclass_fields__}
"""Options of commands for which results have methods in Python."""
LOADED = {*LoadOptions.__dataclass_fields__} - {"layer"}
"""Options of `load_model`, where functions take models that are loaded."""
EACH = {"model", "models", "revision", "name"}
"""Options of commands that have a value for each model."""
CALLED = {"on_progress"}
"""Functions that functions take, for which commands have a bar."""


@pytest.mark.parametrize(
    ("command", "function", "of_command", "of_function"),
    [
        (run_command, lmdiag.run, {"as_json"}, {"device", "layer"} | CALLED),
        (fit_command, lmdiag.fit, SHOWN | LOADED | {"residuals"}, CALLED),
        (cloze_command, lmdiag.cloze, SHOWN | LOADED, CALLED),
        (compare_command, lmdiag.compare, SHOWN | {"data", "fail_on_loss"}, set()),
        (analyse_command, lmdiag.analyse, SHOWN | {"data"}, set()),
    ],
)
def test_commands_and_functions_have_the_same_options(command, function, of_command, of_function):
    arguments = App(default_command=command).assemble_argument_collection()
    options_of_command = {
        x.field_info.name for x in arguments if x.index is None and x.parse and not x.children
    }
    parameters = inspect.signature(function).parameters.values()
    keywords_of_function = {x.name for x in parameters if x.kind == x.KEYWORD_ONLY}
    unused = {x.field_info.name for x in arguments if not x.parse}  # by tables of this kind
    of_function = of_function | (
        (unused - options_of_command) & {*TableOptions.__dataclass_fields__}
    )
    assert options_of_command - of_command - EACH == keywords_of_function - of_function - EACH


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_prompt_file_is_read_without_its_last_end_of_line(tmp_path, end):
    file = tmp_path / "prompt.txt"
    file.write_bytes(f"Complete:\n{{context}}{end}".encode())
    assert command_options.text_or_file(str(file)) == "Complete:\n{context}"
