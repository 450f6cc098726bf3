"""Random changes of files: of their bytes, or of the structure of JSON, csv and Parquet."""

from __future__ import annotations

import copy
import json
import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hostile import HOSTILE

NUMBERS = [
    0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, -(10**4000), 0.1, -0.0, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
TEXTS = [
    "", " ", "\ud800", "a\udfffb", "\x00", "\ufeff", "é" * 1000, "x" * 100_000, "NaN", "null",
    "9" * 5000, "2001-13-45", "0000-00-00T99:99:99+99:99", "../../etc/passwd", "a" * 300,
    *HOSTILE.values(),
]  # fmt: skip
OTHERS = [None, True, False, [], {}, [[]], [None], {"": None}]
PIECES = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\n", b"\r", b'"', b",", b"\t", b"{", b"}",
    b"[" * 1000, b"[" * 100_000, b'{"a":' * 5000, b"9" * 5000, b"1e999999", b"NaN", b"\\ud800",
    b"- " * 3000, b"&a [*a, *a]", b"!!python/object:os.system", b"2001-99-99", b"? ", b"!!int x",
    b"<<: [1]", b"1:2:3", b"0o9", b"0x", b"---\n", b"%YAML 9.9\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
]  # fmt: skip
SPAN = {"start": 0, "end": 3, "log_prob": -1.0, "n_tokens": None}
ODD: list[tuple[Any, pa.DataType | None]] = [
    (b"\xff", pa.binary()), (2**62, pa.timestamp("s", tz="Moon/Crater")),
    (0, pa.timestamp("ms", tz="+99:99")), (2**62, pa.timestamp("us")), (1, pa.timestamp("ns")),
    (2**62, pa.duration("s")), (86_399, pa.time32("s")), (Decimal("9" * 70), pa.decimal256(76, 0)),
    (2**64 - 1, pa.uint64()), (1.5, pa.float16()), ([("k", 1)], pa.map_(pa.string(), pa.int64())),
    ("x", pa.dictionary(pa.int32(), pa.string())), ("x", pa.large_string()),
    ("x", pa.string_view()), (["x"], pa.list_(pa.string(), 1)), (date(1, 1, 1), None),
    (float("nan"), None), (800.0, None), (-1e308, None), ([800.0], None), (None, None),
    (True, None), (["a", None], None), ([["a"]], None), ({"a": 1}, None), ("x" * 100_000, None),
    ("a\x00b", None), ([SPAN], None), ([None], None),
    ([SPAN | {"start": 9, "end": -9, "log_prob": float("nan")}], None),
    ([SPAN | {"start": 90, "end": 7, "log_prob": 1e308, "n_tokens": -1}] * 99, None),
]  # fmt: skip
"""A value of a column of Parquet, and its type where it is not the usual one."""


def nasty(rng: random.Random) -> Any:
    """A value of any JSON type that some reader may not expect."""
    text, number, deep = rng.choice(TEXTS), rng.choice(NUMBERS), 0
    for i in range(rng.choice([1, 5, 70, 400])):
        deep = [deep] if i % 2 else {"a": deep}
    return rng.choice([number, text, text, copy.deepcopy(rng.choice(OTHERS)), deep, [text, number]])


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flips bits, cuts, repeats, inserts or removes pieces, one to four times."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(changed) + 1), rng.randrange(6)
        if kind <= 1 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            changed[at:at] = rng.choice(PIECES)
        elif kind == 3:
            del changed[at : at + rng.randint(1, 40)]
        elif kind == 4:
            del changed[at:]
        else:
            changed[at:at] = changed[at : at + rng.randint(1, 200)]
    return bytes(changed)


def change_json(content: bytes, rng: random.Random) -> bytes:
    """Replaces, removes, renames or adds values anywhere in a JSON value, one to three times."""
    value = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        places, containers = [], [value]
        while containers:
            container = containers.pop()
            if isinstance(container, dict | list):
                keys = [*container] if isinstance(container, dict) else [*range(len(container))]
                places += [(container, key) for key in keys]
                containers += [container[key] for key in keys]
        if not places or rng.random() < 0.02:
            return json.dumps(nasty(rng)).encode()
        container, key = rng.choice(places)
        kind = rng.randrange(5) if isinstance(container, dict) else rng.choice([0, 3])
        if kind == 0:
            del container[key]
        elif kind == 1:
            container[rng.choice(TEXTS)] = container.pop(key)
        else:
            container[rng.choice(TEXTS) if kind == 2 else key] = nasty(rng)
    return json.dumps(value).encode()


def change_lines(content: bytes, rng: random.Random) -> bytes:
    """Changes the JSON value in one line of a file, or gives all lines one more column."""
    lines = content.splitlines()
    if rng.random() < 0.2:
        name = rng.choice([*json.loads(lines[0]), *TEXTS])
        lines = [json.dumps(json.loads(line) | {name: nasty(rng)}).encode() for line in lines]
    else:
        at = rng.randrange(len(lines))
        lines[at] = change_json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def change_parquet(content: bytes, rng: random.Random) -> bytes:
    """Gives columns odd types or values, removes some, repeats or renames them."""
    table = pq.read_table(pa.BufferReader(content))
    for _ in range(rng.randint(1, 2)):
        at, kind, n = rng.randrange(table.num_columns), rng.randrange(8), table.num_rows
        name = table.column_names[at]
        if kind == 0 and table.num_columns > 1:
            table = table.remove_column(at)
        elif kind == 1:
            table = table.append_column(rng.choice(table.column_names), table.column(at))
        elif kind == 2:
            table = table.take([rng.randrange(n) for _ in range(rng.randrange(9))])
        elif kind == 3:
            other = rng.choice([text for text in TEXTS if text.isprintable()])
            table = table.set_column(at, other, table.column(at))
        elif kind == 4:
            values = table.column(at).to_pylist()
            values[rng.randrange(n)] = None
            table = table.set_column(at, name, pa.array(values, table.column(at).type))
        else:
            value, odd = rng.choice(ODD)
            table = table.set_column(at, name, pa.array([value] * n, odd))
        if not table.num_rows:
            break
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression=rng.choice(["snappy", "zstd", "none"]))
    return bytes(sink.getvalue())


def change(file: str, content: bytes, rng: random.Random) -> bytes:
    """Changes the content of a file, by its bytes or by its structure."""
    structured = {".json": change_json, ".jsonl": change_lines, ".parquet": change_parquet}
    suffix = "" if file.startswith("journal") else Path(file).suffix
    if suffix in structured and rng.random() >= 0.4:
        try:
            return structured[suffix](content, rng)
        except (pa.ArrowException, OverflowError, TypeError, UnicodeDecodeError):
            pass  # Parquet itself cannot hold it
    return change_bytes(content, rng)
