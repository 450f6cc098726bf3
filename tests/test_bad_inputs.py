"""Texts that are no paths and files beyond the bounds: `BadInput` or an answer, no traceback."""

import json
import os
import zipfile
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import lmdiag
from lmdiag import stimuli
from lmdiag.analysis.human import read_human
from lmdiag.cli.command_options import read_models
from lmdiag.files import reading
from lmdiag.hub import publish
from lmdiag.hub.publish import is_on_hub
from lmdiag.leaderboard.entries import read_requests
from lmdiag.models.loading.checkpoint import Checkpoint, resolve
from lmdiag.options import Recording
from lmdiag.report.display import output_of
from lmdiag.report.formats import write_files
from lmdiag.report.formats.terminal import print_output
from lmdiag.results import load_run, model_slug
from lmdiag.results.predictions import read_external
from lmdiag.stimuli.dataset import script
from lmdiag.studies.multiverse import Multiverse
from lmdiag.tables.table_files import TABLE_SUFFIXES, as_frame, read_table, write_table
from lmdiag.types import BadInput

# ---- content -------------------------------------------------------------------------------------

JSON = {
    "": "not valid JSON",
    "{": "not valid JSON",
    "1" * 5000: "number out of range",
    f"[{2**63}]": "does not fit into 64 bits",
    f"[{-(2**63) - 1}]": "does not fit into 64 bits",
    '"\\ud800"': "unexpected end of hex escape",
    '{"\\udfff": 1}': "lone leading surrogate",
    "[" * 202 + "]" * 202: "recursion limit exceeded",
    "[" * 100_000: "recursion limit exceeded",
    b'"\xff"': "invalid unicode",
    "[NaN]": "expected value",
    "[1e999]": "is too large",
}
YAML = [
    "a: [", "a: 2001-13-45", f"a: !!int {'9' * 5000}", "a: !!int x", "[" * 2000, "? [1]\n: 2",
    "a: !!python/object:os.system x", "a: \x00", "x" * 300_000,
]  # fmt: skip


def parquet(column, name="x"):
    """Writes a column after a column x."""
    columns = [pa.array(["a"]), column]
    return lambda path: pq.write_table(pa.Table.from_arrays(columns, ["x", name]), path)


def far_apart(path):
    """An Excel file of two cells, whose rectangle has 820 million."""
    sheet = openpyxl.Workbook()
    sheet.active["XFD1"] = "a"
    sheet.active["A50000"] = "b"
    sheet.save(path)


def wrong_schema(path):
    """Writes a file whose schema says that a column has no missing values, and then counts them."""
    parquet(pa.array(["b"]), "text")(path)
    optional = b"\x25\x02\x18\x04text"
    assert path.read_bytes().count(optional) == 1
    path.write_bytes(path.read_bytes().replace(optional, b"\x25\x00\x18\x04text"))


def archive(name, size):
    """Writes an Excel file with a part of so many bytes."""

    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(name, bytes(size))

    return write


LONG = "x" * (2**20 + 1)
MANY_TEXTS = pa.DictionaryArray.from_arrays([0] * 2050, [LONG[1:]])


def as_table(suffix):
    """Reads a file as a table whose name ends so."""
    return lambda path: read_table(path.rename(path.with_suffix(suffix)))


MANY = [str(i) for i in range(1001)]
NOT_VALID = "cannot be read: not valid Parquet"
FILES = {
    "not UTF-8": (lambda path: path.write_bytes(b"one\ncaf\xe9\n"), reading.read_text,
                  "file:2: not UTF-8"),
    "long text": (lambda path: (path.touch(), os.truncate(path, 2**31 + 1)), reading.read_text,
                  "has 2,147,483,649 bytes; at most 2,147,483,648 are read"),
    "too long": (lambda path: path.write_text("x" * 9), lambda path: reading.read_text(path, 8),
                 "has 9 bytes; at most 8 are read"),
    "loop": (lambda path: path.symlink_to(path), reading.read_text,
             "file cannot be read: Too many levels"),
    "gone": (lambda path: None, reading.read_text, "there is no file or folder "),
    "folder": (Path.mkdir, reading.read_text, "is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), reading.read_text,
               "is not a regular file"),
    **{
        f"pipe {suffix}": (os.mkfifo, as_table(suffix), r"file\S* is not a regular file")
        for suffix in TABLE_SUFFIXES
        if hasattr(os, "mkfifo")  # which Windows does not have
    },
    "NaN": (lambda path: path.write_text('{"a": NaN}'), reading.read_json,
            r"file: not valid JSON \(expected value"),
    "column twice": (parquet(pa.array([1]), "x"), reading.read_parquet, "has the column x twice"),
    "columns": (lambda path: path.write_text("a," * 1000 + "a\n"), as_table(".csv"),
                r"file\S* has 1,001 columns; at most 1,000 are read"),
    "columns of objects": (lambda path: path.write_text('{"' + '":0,"'.join(MANY) + '":0}'),
                           as_table(".jsonl"), r"file\S* has 1,001 columns"),
    "rows": (lambda path: pq.write_table(pa.table({"a": pa.nulls(5_000_001)}), path),
             reading.read_parquet, "file has 5,000,001 rows; at most 5,000,000 are read"),
    "lines": (lambda path: path.write_bytes(b"a" + b"\n" * 5_000_002), as_table(".csv"),
              r"file\S* has 5,000,001 rows"),
    "cell": (lambda path: path.write_text(f'{{"a": "{LONG}"}}'), as_table(".jsonl"),
             r"file\S*:1: a has 1,048,577 characters; at most 1,048,576 are read"),
    "cell of csv": (lambda path: path.write_text(f'a,b\n"\n{LONG}",b\n'), as_table(".csv"),
                    r"file\S*:2: a cell has more than 1,048,576 characters; split the text"),
    "line of csv": (lambda path: path.write_text(f"a\n{LONG * 16}"), as_table(".csv"),
                    r"file\S*:2: the line has more than 16,777,216 characters; split the text"),
    "row of Excel": (archive("xl/worksheets/sheet1.xml", 5 * 2**20), as_table(".xlsx"),
                     r"file\S* has a row of more than 4,194,304 bytes"),
    "cells of Excel far apart": (far_apart, as_table(".xlsx"),
                                 r"file\S* has 16,384 columns; at most 1,000 are read"),
    "styles of Excel": (archive("xl/styles.xml", 9 * 2**20), as_table(".xlsx"),
                        r"file\S* has 9,437,184 bytes in a part without cells; at most 8,388,608"),
    "cell of Parquet": (parquet(pa.array([[LONG]]), "y"), reading.read_parquet,
                        "a text in the column y.list.element has 1,048,577 bytes; at most"),
    "texts": (parquet(pa.ListArray.from_arrays([0, 2050], MANY_TEXTS), "y"), reading.read_parquet,
              "file has values of more than 2 GiB: split the table"),
    "line": (lambda path: path.write_bytes(b" " * 64_000_001), as_table(".jsonl"),
             r"file\S*:1: the line has more than 64,000,000 bytes"),
    "schema of Parquet": (
        wrong_schema, reading.read_parquet, "size mismatch, size: 2, expected: 1",
    ),
    "cut off": (lambda path: path.write_bytes(b"PAR1 and no more"), reading.read_parquet,
                NOT_VALID),
    **{
        str(column.type): (parquet(column, "y"), reading.read_parquet, NOT_VALID)
        for column in (
            pa.array([b"\xff"], pa.binary()).view(pa.string()),
            pa.array([0], pa.timestamp("s", tz="Moon/Crater")),
            pa.array([2**31 - 1], pa.int32()).view(pa.date32()),  # after the year 9999
            pa.array([2**62], pa.timestamp("us")),
            pa.array([2**62], pa.duration("ms")),
        )
    },
}  # fmt: skip
"""What is wrong with a file -> what makes it, what reads it, part of the message."""


LARGE = ("lines", "rows", "line", "texts")
"""Cases of files that take a second to write and to read."""


@pytest.mark.parametrize("case", [
    pytest.param(case, marks=pytest.mark.slow if case in LARGE else (), id=repr(case[:20]))
    for case in (*JSON, *YAML, *FILES)
])  # fmt: skip
def test_files_beyond_the_bounds_are_refused(tmp_path, case):
    if case in FILES:
        make, read, message = FILES[str(case)]
        make(tmp_path / "file")
        with pytest.raises(BadInput, match=message):
            read(tmp_path / "file")
        return
    parse = partial(reading.parse_json, finite=True) if case in JSON else reading.parse_yaml
    message = rf"(not valid JSON .*)?{JSON[case]}" if case in JSON else ""
    with pytest.raises(BadInput, match=f"^here: {message}"):
        parse(case, "here")


def test_files_within_the_bounds_are_read(tmp_path):
    """A mark of the order of bytes is no text; a column that is not asked for is not read."""
    for text, value in {
        str(2**63 - 1): 2**63 - 1, '"\\ud83d\\ude00"': "😀", b'\xef\xbb\xbf{"a": 1}': {"a": 1},
        "[" + "[]," * 1000 + "1]": [*([[]] * 1000), 1],
    }.items():  # fmt: skip
        assert reading.parse_json(text, "here") == value
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbfword")
    assert reading.read_text(tmp_path / "mark") == "word"
    parquet(pa.array([2**62], pa.duration("ms")), "y")(tmp_path / "p")
    assert reading.read_parquet(tmp_path / "p", ["x"]).to_pydict() == {"x": ["a"]}


# ---- values --------------------------------------------------------------------------------------

TABLE = [
    {"item": i // 2, "condition": "ab"[i % 2], "sentence": f"Dog {i} ran.", "surprisal": i * i % 7}
    for i in range(8)
]
NO_VALUES = [([1], "a list"), ({"a": 1}, "an object"), (b"x", "binary data"), (1j, "complex")]
PLAIN = {
    date(2026, 1, 2): "2026-01-02", pd.Timestamp("2026-01-02 03:04"): "2026-01-02T03:04:00",
    np.float16(1.5): 1.5, Decimal("1.5"): 1.5, np.int8(1): 1, np.str_("x"): "x", pd.NaT: None,
}  # fmt: skip
READ = {
    "rows": stimuli.load,
    "frame": lambda rows: stimuli.load(pd.DataFrame(rows)),
    "analysis": lambda rows: lmdiag.analyse(pd.DataFrame(rows)),
    "fit": lambda rows: read_human(pd.DataFrame(rows)),
    "Parquet": lambda rows: lmdiag.analyse(written(rows, ".parquet")),
    "Parquet of rows": lambda rows: read_table(written(rows, ".parquet")),
    "JSON lines": lambda rows: lmdiag.analyse(written(rows, ".jsonl")),
}


def written(rows, suffix):
    """Writes rows to a file in the current directory."""
    path = Path("table").with_suffix(suffix)
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("reader", READ)
@pytest.mark.parametrize("column", ["note", "sentence", "surprisal"])
def test_values_other_than_texts_and_numbers_are_refused(tmp_path, monkeypatch, reader, column):
    """Also in a column that nothing uses; the message names table, row and column.

    There, a column of nothing but lists is left out.
    """
    monkeypatch.chdir(tmp_path)
    n_kinds = {"JSON": 2, "Parq": 3}.get(reader[:4], 4)
    if column == "note":  # of which pandas makes complex numbers
        n_kinds = min(n_kinds, 3)
    for value, kind in NO_VALUES[:n_kinds]:
        if reader.startswith("Parquet"):  # whose columns have one type
            rows = [row | {column: value} for row in TABLE]
            if column == "note":
                table = read_table(written(rows, ".parquet"))
                assert table.notes == (f"columns: not read, since note has {kind}",)
                assert "note" not in table.columns
                continue
        else:
            rows = [row | {column: value if n == 2 else 0} for n, row in enumerate(TABLE)]
        message = rf"^\S+(, row |:)[13]: the column {column} has .*{kind}, "
        with pytest.raises(BadInput, match=message):
            READ[reader](rows)


def test_dates_and_numbers_of_any_library_are_read(tmp_path, monkeypatch):
    """Dates as texts, as from Excel: a timestamp is no response. Pandas' metadata are not used."""
    monkeypatch.chdir(tmp_path)
    for value, plain in PLAIN.items():
        rows = [row | {"note": value} for row in TABLE]
        for data in (rows, pd.DataFrame(rows), written(rows, ".parquet")):
            assert stimuli.load(data).columns()["note"] == [plain] * 8
    with pytest.raises(BadInput, match="rows:1: the column surprisal: '2026-01-02' is"):
        lmdiag.analyse(pd.DataFrame(TABLE).assign(surprisal=pd.Timestamp("2026-01-02")))
    table = pa.Table.from_pandas(pd.DataFrame(TABLE).astype({"surprisal": "category"}))
    expected = [row["surprisal"] for row in TABLE]
    table = table.set_column(3, "surprisal", pa.array(expected))
    pq.write_table(table, "table.parquet")
    assert as_frame(read_table(Path("table.parquet")))["surprisal"].tolist() == expected


def test_infinite_responses_are_counted():
    """As of words of probability 0 in a run: their items are left out."""
    table = pd.DataFrame(TABLE).astype({"surprisal": float})
    table.loc[2, "surprisal"] = np.inf
    analysis = lmdiag.analyse(table)
    assert analysis.notes == ("surprisal is infinite in 1 row, which counts as a missing value",)
    assert [*analysis.left_out.values()] == [1]


def test_many_conditions_are_printed_in_part():
    rows = [
        {"item": item, "condition": f"c{cell:02}", "surprisal": (item * 7 + cell * cell) % 13}
        for item in range(3)
        for cell in range(40)
    ]
    analysis = lmdiag.analyse(pd.DataFrame(rows), conditions=["condition"])
    print_output(output_of(analysis), Console(file=(file := StringIO()), width=200))
    assert "the first 500 of 780 rows; --format csv" in file.getvalue()
    assert file.getvalue().count(" - c") == 500


def test_lists_of_our_own_formats_are_read(tmp_path):
    """Expected words, which an analysis sees as in csv files, and regions."""
    rows = [row | {"expected": ["bread", "it"], "expected_responses": []} for row in TABLE]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").columns["expected"] == [["bread", "it"]] * 8
    assert [*as_frame(read_table(tmp_path / "x.parquet"))["expected"]] == ["bread|it"] * 8
    lmdiag.analyse(pd.DataFrame(rows))
    regions = stimuli.load({"sentence": ["The | dog"]}).columns()
    assert stimuli.load(regions).regions == regions["regions"]


# ---- paths ---------------------------------------------------------------------------------------

ODD = {
    "long name": "x" * 300, "long path": "x/" * 3000, "long id": f"org/{'x' * 300}",
    "NUL": "a\0b", "surrogate": "\ud800.csv", "loop": "loop", "below a loop": "loop/x.csv",
}  # fmt: skip
ROW = {"id": "a", "context": "A robin is a", "target": "bird"}
ROWS = stimuli.Stimuli("own", {name: [value] for name, value in ROW.items()}, "own", None)


def source(text):
    with suppress(BadInput):
        script("sources").open_source(text)


ANSWERED = {
    "exists": lambda text: reading.exists(Path(text)),
    "is_file": lambda text: reading.is_file(Path(text)),
    "is_folder": lambda text: reading.is_folder(Path(text)),
    "real_path": lambda text: reading.real_path(Path(text)),
    "model_slug": lambda text: model_slug(text, None),
    "repository": is_on_hub,
    "checkpoint": lambda text: Checkpoint("m", "folder", None, None).file(text),
    "source": source,
}
"""What answers whatever the text is."""
REFUSED = {
    "text": lambda text: reading.read_text(Path(text)),
    "data": lambda text: stimuli.load(text, "own"),
    "verbs": stimuli.load_verbs,
    "run": load_run,
    "comparison": lambda text: lmdiag.compare(text, text),
    "multiverse": lambda text: Multiverse.read(Path(text)),
    "predictions": lambda text: read_external(Path(text), ROWS),
    "model": resolve,
    "models": read_models,
    "requests": lambda text: [*read_requests([text])],
    "data to publish": lambda text: publish.plan_data(Path(text), "org/name", benchmark=False),
    "board to publish": lambda text: publish.plan_leaderboard(Path(text), "org/name"),
}
"""What refuses all of them."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a link to itself."""
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_test")  # else it is looked for in a file
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


@pytest.mark.parametrize("name", [*ANSWERED, *REFUSED])
def test_what_is_no_path_is_answered_or_refused(folder, name):
    for text in ODD.values():
        if name in ANSWERED:
            ANSWERED[name](text)
        else:
            with pytest.raises(BadInput):
                REFUSED[name](text)


def test_no_name_of_an_output_has_a_nul(folder):
    """What the operating system would refuse after the models were asked."""
    for write in (lambda name: write_files(None, [Path(name)], 8.0), lambda x: Recording(output=x)):
        with pytest.raises(BadInput, match=r"'a\\x00b' is not a file name: it has a NUL"):
            write("a\0b")


def test_a_file_that_is_a_symbolic_link_is_written_to_its_target(folder):
    (folder / "data").mkdir()
    (folder / "link.csv").symlink_to("data/table.csv")
    write_table(pd.DataFrame({"a": [1]}), Path("link.csv"))
    assert (folder / "link.csv").is_symlink()
    assert (folder / "data/table.csv").read_text() == "a\n1\n"
    assert [*(folder / "data").iterdir()] == [folder / "data/table.csv"]
