"""Arrow arrays made from buffers are those that pyarrow makes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import HANG

from lmdiag.arrow import arrow_array

ELEMENTS = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
}


def columns(element: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists with missing values."""
    return st.lists(st.none() | element, max_size=20)


def same(values: list[Any], kind: pa.DataType | None) -> None:
    ours, theirs = arrow_array(values, kind), pa.array(values, kind)
    ours.validate(full=True)
    assert ours.type == theirs.type
    assert ours.null_count == theirs.null_count
    # by text, which tells -0.0 from 0.0 and in which nan is equal to nan
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())


@given(st.data())
def test_values_of_one_type(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(ELEMENTS)))
    values = data.draw(columns(ELEMENTS[kind]))
    same(values, kind)
    same(values, None)


@given(st.data())
def test_lists(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(ELEMENTS)))
    values = data.draw(columns(columns(ELEMENTS[kind])))
    same(values, pa.list_(kind))
    same(values, None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2.5], None), ([1, 2], pa.float64()), ([{"a": 1}, None], None), ([(1, 2)], None)],
    ids=str,
)
def test_other_values_are_left_to_pyarrow(values: list[Any], kind: pa.DataType | None) -> None:
    same(values, kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, "a"], None), ([2**70], None), (["a", "\ud800"], None), ([2**40], pa.int32()),
        ([Ellipsis], None), ([1], pa.string()), ([["a", 1]], pa.list_(pa.string())),
    ],
    ids=ascii,
)  # fmt: skip
def test_errors_are_those_of_pyarrow(values: list[Any], kind: pa.DataType | None) -> None:
    with pytest.raises((pa.ArrowException, OverflowError, UnicodeEncodeError)) as theirs:
        pa.array(values, kind)
    with pytest.raises(theirs.type) as ours:
        arrow_array(values, kind)
    assert str(ours.value) == str(theirs.value)


def test_pandas_is_not_imported() -> None:
    program = (
        "import sys; from lmdiag.arrow import arrow_array\n"
        "for values in (['a', None], [True], [1], [0.5], [['a'], []], []): arrow_array(values)\n"
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert done.stdout.split() == ["True", "False"]
