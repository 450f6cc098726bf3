"""Python values as Arrow arrays.

`pyarrow.array` imports pandas at its first call, whatever it converts: a third of a second, which a
run of the three diagnostics has no other use for. Columns of one plain type, which is what runs and
data sets have, are therefore handed to Arrow as buffers; all others are left to `pyarrow.array`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 100_000
"""Values above which the conversion by pyarrow, which is faster, outweighs the import of pandas."""


def arrow_array(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Returns what `pyarrow.array(values, kind)` returns.

    Args:
        values: Python values of one type, None for missing ones.
        kind: type of the array; None for the one that fits.

    Raises:
        pyarrow.ArrowException, OverflowError, UnicodeEncodeError: see `pyarrow.array`.
    """
    import pyarrow as pa

    if len(values) <= _MOST:
        types = set(map(type, values)) - {NoneType}
        if not types:
            return pa.nulls(len(values), kind)
        try:
            if len(types) == 1 and (made := _converted(values, types.pop(), kind)) is not None:
                return made
        except (OverflowError, UnicodeEncodeError):  # pyarrow's messages say more
            pass
    return pa.array(values, kind)


def _converted(values: Sequence[Any], of: type, kind: pa.DataType | None) -> pa.Array | None:
    """The array of values of one type; None if it takes more than to copy them."""
    import pyarrow as pa

    if of is str and kind in (None, pa.string()):
        texts = [b"" if value is None else value.encode() for value in values]
        return _array(pa.string(), values, _offsets(texts), b"".join(texts))
    if of is bool and kind in (None, pa.bool_()):
        return _array(pa.bool_(), values, _bits(values))
    if of is int and kind in (None, pa.int64(), pa.int32()):
        width = "i" if kind == pa.int32() else "q"
        integers = array(width, [0 if x is None else x for x in values])
        return _array(kind or pa.int64(), values, integers)
    if of is float and kind in (None, pa.float64()):
        numbers = array("d", [0.0 if x is None else x for x in values])
        return _array(pa.float64(), values, numbers)
    if of is list and (kind is None or pa.types.is_list(kind)):
        parts = [() if value is None else value for value in values]
        content = arrow_array([x for part in parts for x in part], kind and kind.value_type)
        return _array(kind or pa.list_(content.type), values, _offsets(parts), children=[content])
    return None


def _array(
    kind: pa.DataType, values: Sequence[Any], *buffers: bytes | array[Any], children: Any = None
) -> pa.Array:
    """The array of these buffers, in which the values that are None are missing."""
    import pyarrow as pa

    valid = None if None not in values else pa.py_buffer(_bits([x is not None for x in values]))
    own = [valid, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(kind, len(values), own, children=children)


def _offsets(parts: Sequence[Any]) -> array[int]:
    """Where each part begins in the concatenation, and where the last one ends."""
    return array("i", accumulate(map(len, parts), initial=0))


def _bits(values: Sequence[Any]) -> bytes:
    """One bit per truth value, the first one lowest; None is false."""
    digits = "".join("1" if value else "0" for value in reversed(values))
    return int(digits or "0", 2).to_bytes((len(values) + 7) // 8, "little")
