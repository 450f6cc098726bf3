"""Random changes of files: of their bytes, or of the structure of JSON, csv and Parquet."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
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


def nested(depth: int) -> Any:
    value: Any = 0
    for i in range(depth):
        value = [value] if i % 2 else {"a": value}
    return value


def nasty(rng: random.Random) -> Any:
    """A value of any JSON type that some reader may not expect."""
    text, number = rng.choice(TEXTS), rng.choice(NUMBERS)
    deep = nested(rng.choice([1, 5, 70, 400]))
    return rng.choice([number, text, text, copy.deepcopy(rng.choice(OTHERS)), deep, [text, number]])


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flips bits, cuts, repeats, inserts or removes pieces, one to four times."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(6)
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


def positions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from positions(inner)


def change_json(content: bytes, rng: random.Random) -> bytes:
    """Replaces, removes, renames or adds values anywhere in a JSON value, one to three times."""
    value = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        known = list(positions(value)) if isinstance(value, dict | list) else []
        if not known or rng.random() < 0.02:
            return json.dumps(nasty(rng)).encode()
        container, key = rng.choice(known)
        kind = rng.randrange(5)
        if kind == 0:
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container[rng.choice(TEXTS)] = container.pop(key)
        else:
            new = kind == 2 and isinstance(container, dict)
            container[rng.choice(TEXTS) if new else key] = nasty(rng)
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


ODD_COLUMNS: list[Callable[[int], pa.Array]] = [
    lambda n: pa.array([b"\xff\xed\xa0\x80"] * n, pa.binary()).view(pa.string()),
    lambda n: pa.array([b"\xff"] * n, pa.binary()),
    lambda n: pa.array([2**62] * n, pa.timestamp("s", tz="Moon/Crater")),
    lambda n: pa.array([0] * n, pa.timestamp("ms", tz="+99:99")),
    lambda n: pa.array([2**62] * n, pa.timestamp("us")),
    lambda n: pa.array([1] * n, pa.timestamp("ns")),
    lambda n: pa.array([2**31 - 1] * n, pa.int32()).view(pa.date32()),
    lambda n: pa.array([2**62] * n, pa.duration("s")),
    lambda n: pa.array([86_399] * n, pa.time32("s")),
    lambda n: pa.array([Decimal("9" * 70)] * n, pa.decimal256(76, 0)),
    lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    lambda n: pa.array([1.5] * n, pa.float16()),
    lambda n: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
    lambda n: pa.array(["x"] * n).dictionary_encode(),
    lambda n: pa.array(["x"] * n, pa.large_string()),
    lambda n: pa.array(["x"] * n, pa.string_view()),
    lambda n: pa.array([["x"]] * n, pa.list_(pa.string(), 1)),
    lambda n: pa.array(range(n)),
    *(
        lambda n, value=value: pa.array([value] * n)
        for value in (
            date(1, 1, 1), float("nan"), 800.0, -1e308, [800.0], None, True, ["a", None], [["a"]],
            {"a": 1}, "x" * 100_000, "a\x00b",
            [{"start": 0, "end": 3, "log_prob": -1.0, "n_tokens": None}], [None],
            [{"start": 9, "end": -9, "log_prob": float("nan"), "n_tokens": 1}],
            [{"start": 90, "end": 7, "log_prob": 1e308, "n_tokens": -1}] * 99,
        )
    ),
]  # fmt: skip


def change_parquet(content: bytes, rng: random.Random) -> bytes:
    """Gives columns odd types or values, removes some, repeats or renames them."""
    table = pq.read_table(pa.BufferReader(content))
    for _ in range(rng.randint(1, 2)):
        at, kind = rng.randrange(len(table.column_names)), rng.randrange(8)
        name = table.column_names[at]
        if kind == 0 and len(table.column_names) > 1:
            table = table.remove_column(at)
        elif kind == 1:
            table = table.append_column(rng.choice(table.column_names), table.column(at))
        elif kind == 2:
            table = table.take([rng.randrange(table.num_rows) for _ in range(rng.randrange(9))])
        elif kind == 3:
            names = list(table.column_names)
            names[at] = rng.choice([text for text in TEXTS if text.isprintable()])
            table = table.rename_columns(names)
        elif kind == 4:
            values = table.column(at).to_pylist()
            values[rng.randrange(len(values))] = None
            table = table.set_column(at, name, pa.array(values, table.column(at).type))
        else:
            table = table.set_column(at, name, rng.choice(ODD_COLUMNS)(table.num_rows))
        if not table.num_rows:
            break
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression=rng.choice(["snappy", "zstd", "none"]))
    return bytes(sink.getvalue())


def change(file: str, content: bytes, rng: random.Random) -> bytes:
    """Changes the content of a file, by its bytes or by its structure."""
    suffix = "" if file.startswith("journal") else Path(file).suffix
    if content and rng.random() >= 0.4:
        if suffix == ".json":
            return change_json(content, rng)
        if suffix == ".jsonl":
            return change_lines(content, rng)
        if suffix == ".parquet":
            try:
                return change_parquet(content, rng)
            except (pa.ArrowException, OverflowError, TypeError, UnicodeDecodeError):
                pass  # Parquet itself cannot hold it
    return change_bytes(content, rng)
