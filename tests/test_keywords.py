"""The keywords of the Python API, for type checkers, are the fields of the records."""

import inspect
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import pytest

import lmdiag
from lmdiag.analysis.procedures import Procedure, ProcedureKeywords
from lmdiag.api import RunKeywords
from lmdiag.models.loading.options import LoadKeywords, LoadOptions
from lmdiag.types import TableKeywords, TableOptions

RECORDS = [
    (TableOptions, TableKeywords), (LoadOptions, LoadKeywords), (Procedure, ProcedureKeywords),
]  # fmt: skip


def choices(hint):
    """The types that a keyword may have, a tuple of texts as a sequence of them."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    return {Sequence[str] if part == tuple[str, ...] else part for part in parts}


@pytest.mark.parametrize(("record", "keywords"), RECORDS)
def test_keywords_are_the_fields_of_the_record(record, keywords):
    fields = get_type_hints(record)
    hints = get_type_hints(keywords)
    assert hints.keys() == fields.keys()
    for name, hint in hints.items():
        further = choices(hint) - choices(fields[name])
        assert choices(fields[name]) <= choices(hint)
        assert further <= ({str, Mapping[str, str]} if record is TableOptions else set()), name


def test_run_and_its_keywords_for_several_models_are_declared_alike():
    shown = {*inspect.signature(lmdiag.run).parameters} - {"model", "data"}
    assert {*get_type_hints(RunKeywords)} == shown
