"""The reading layer: every bound, and messages that name the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmdiag.reading import parse_json, parse_yaml, read_json, read_parquet, read_text
from lmdiag.types import BadInput


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("1" * 5000, "does not fit into 64 bits"),
        (f"[{2**63}]", "does not fit into 64 bits"),
        (f"[{-(2**63) - 1}]", "does not fit into 64 bits"),
        ('"\\ud800"', "half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
        ("[" * 65 + "]" * 65, "nested deeper than"),
        ("[" * 100_000, "nested too deeply"),
        (b'"\xff"', "not UTF-8"),
        ("[NaN]", "NaN is not a number"),
        ("[1e999]", "is too large"),
    ],
)
def test_json_beyond_the_bounds_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(BadInput, match=rf"^here: not valid JSON .*{message}|^here: {message}"):
        parse_json(text, "here", finite=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (str(2**63 - 1), 2**63 - 1),
        ("[" * 64 + "]" * 64, None),
        ('"\\ud83d\\ude00"', "😀"),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("[" + "[]," * 1000 + "1]", None),
    ],
)
def test_json_within_the_bounds_is_read(text: str | bytes, value: object) -> None:
    read = parse_json(text, "here")
    assert value is None or read == value


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: 2001-13-45", f"a: !!int {'9' * 5000}", "a: !!int x", "[" * 2000, "? [1]\n: 2",
     "a: !!python/object:os.system x", "a: \x00", "x" * 300_000],
)  # fmt: skip
def test_yaml_beyond_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^here: "):
        parse_yaml(text, "here")


def test_text_must_be_a_regular_file_in_utf_8(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"one\ncaf\xe9\n")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbfword")
    for path, message in {
        tmp_path / "latin": "latin:2: not UTF-8",
        tmp_path / "loop": "loop cannot be read: Too many levels",
        tmp_path / ("x" * 300): "cannot be read: File name too long",
        tmp_path / "gone": "gone cannot be read: No such file",
        tmp_path: "is not a regular file",
        Path("/dev/zero"): "is not a regular file",
        tmp_path / "a\0b": "has a NUL character",
    }.items():
        with pytest.raises(BadInput, match=message):
            read_text(path)
    assert read_text(tmp_path / "mark") == "word"
    with pytest.raises(BadInput, match="has 9 bytes; at most 8 are read"):
        read_text(tmp_path / "latin", 8)
    (tmp_path / "doc.json").write_text('{"a": NaN}')
    with pytest.raises(BadInput, match=r"doc\.json: not valid JSON \(NaN is not a number"):
        read_json(tmp_path / "doc.json")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"\xff"], pa.binary()).view(pa.string()),
        pa.array([0], pa.timestamp("s", tz="Moon/Crater")),
        pa.array([2**31 - 1], pa.int32()).view(pa.date32()),  # after the year 9999
        pa.array([2**62], pa.timestamp("us")),
        pa.array([2**62], pa.duration("ms")),
    ],
    ids=lambda column: str(column.type),
)
def test_parquet_values_that_python_does_not_have_are_refused(
    column: pa.Array, tmp_path: Path
) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"id": ["a"], "x": column}), path)
    with pytest.raises(BadInput, match=r"p\.parquet cannot be read: not valid Parquet"):
        read_parquet(path)
    assert read_parquet(path, ["id"]).to_pydict() == {"id": ["a"]}


def test_parquet_has_each_column_once(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]), path)
    with pytest.raises(BadInput, match="has the column x twice"):
        read_parquet(path)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(BadInput, match="has no column y"):
        read_parquet(path, ["y"])
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(BadInput, match="cannot be read: not valid Parquet"):
        read_parquet(path)


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = str(BadInput(f"file: {'x' * 100_000}: do this"))
    assert len(message) < 2010
    assert message.startswith("file: xxx")
    assert message.endswith("xxx: do this")


def test_a_provenance_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    from lmdiag.hub.publish import plan_data

    (tmp_path / "README.md").write_text("---\nconfigs:\n- 1\n---\n")
    (tmp_path / "provenance.json").write_text("[" * 100_000)
    with pytest.raises(BadInput, match="built data set"):
        plan_data(tmp_path, "org/name", benchmark=False)
