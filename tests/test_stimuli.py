"""Stimuli from directories, files and caches of the Hub; their fingerprint; every mistake named."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag import stimuli
from lmdiag.diagnostics import CORE_COLUMNS
from lmdiag.schema import BadInput
from lmdiag.stimuli.rows import fingerprint

HEADER = "id,item,condition,context,right_context,target,good,contrast,expected\n"
GOOD = 'a,1,x,"One, two and",.,three,true,c1,three|four\n'
BAD = "b,1,y,One and,,two,0,c1,\n"


def own(folder: Path, *lines: str, header: str = HEADER, name: str = "own.csv") -> str:
    (folder / name).write_text(header + "".join(lines), "utf-8")
    return str(folder / name)


def test_published_counts(data_dir: Path) -> None:
    """Rows, contrasts and rows with `expected`, as SPEC 1 has them."""
    assert stimuli.tasks(str(data_dir)) == ["cprag102", "role88", "neg136"]
    for task, due in {
        "cprag102": (102, 34, 34),
        "role88": (88, 44, 88),
        "neg136": (136, 68, 34),
    }.items():
        rows = stimuli.load(str(data_dir), task)
        columns = rows.columns()
        found = (len(rows), len(set(columns["contrast"])), sum(map(bool, columns["expected"])))
        assert found == due
        assert tuple(columns)[:9] == CORE_COLUMNS
        assert rows.revision == "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
        assert rows.source == str(data_dir)


def test_columns_have_their_types(data_dir: Path) -> None:
    schema = stimuli.load(str(data_dir), "role88").table.schema
    assert schema.field("good").type == pa.bool_()
    assert schema.field("expected").type == pa.list_(pa.string())
    assert schema.field("target_cloze").type == pa.float64()


def test_the_demo_has_no_revision(demo_dir: Path) -> None:
    assert stimuli.tasks(str(demo_dir)) == ["cprag102", "role88", "neg136", "agreement"]
    assert stimuli.load(str(demo_dir), "agreement").revision is None


# A sample of the rows.


def test_limit_shares_whole_contrasts_evenly_over_the_break_downs(demo_dir: Path) -> None:
    few = stimuli.load(str(demo_dir), "neg136", limit=25).columns()
    # contrasts have two rows, so there are twelve of them, two of each of the six combinations
    counts = Counter(zip(few["subset"], few["polarity"], few["natural"], strict=True))
    assert set(counts.values()) == {4}
    assert len(counts) == 6
    assert Counter(few["good"]) == {True: 12, False: 12}
    assert set(Counter(few["contrast"]).values()) == {2}


def test_a_sample_smaller_than_the_combinations_has_every_level(demo_dir: Path) -> None:
    few = stimuli.load(str(demo_dir), "neg136", limit=6).columns()
    assert set(few["polarity"]) == {"affirmative", "negative"}
    assert set(few["subset"]) == {"simp", "nat"}
    assert set(few["natural"]) == {True, False, None}


def test_the_same_sample_everywhere(demo_dir: Path) -> None:
    """It is a function of the contrasts and the seed: this is the list on any machine."""
    few = stimuli.load(str(demo_dir), "cprag102", limit=6)
    assert sorted(set(few.columns()["contrast"])) == ["cprag102-14", "cprag102-9"]
    other = stimuli.load(str(demo_dir), "cprag102", limit=6, seed=1)
    assert few.fingerprint != other.fingerprint
    columns = stimuli.load(str(demo_dir), "cprag102").columns()
    backwards = {name: values[::-1] for name, values in columns.items()}
    assert stimuli.load(backwards, "cprag102", limit=6).fingerprint == few.fingerprint


def test_limits_of_a_limit(demo_dir: Path) -> None:
    whole = stimuli.load(str(demo_dir), "neg136")
    assert stimuli.load(str(demo_dir), "neg136", limit=104).fingerprint == whole.fingerprint
    assert len(stimuli.load(str(demo_dir), "neg136", limit=1)) == 2  # a contrast at least
    with pytest.raises(BadInput, match="--limit must be at least 1"):
        stimuli.load(str(demo_dir), "neg136", limit=0)
    rows = [{"context": "A", "target": f"w{i}", "voice": "ab"[i > 5]} for i in range(20)]
    assert Counter(stimuli.load(rows, limit=6).columns()["voice"]) == {"a": 3, "b": 3}


def test_loading_is_light(demo_dir: Path) -> None:
    """A local directory needs neither torch nor `datasets` nor the Hub's client."""
    code = (
        "import sys; from lmdiag import perturb, stimuli\n"
        "light = not {'pyarrow', 'yaml', 'numpy'} & set(sys.modules)\n"
        f"stimuli.load({str(demo_dir)!r}, 'neg136')\n"
        "print(light, {'torch', 'datasets', 'huggingface_hub', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"


# Fingerprints.


def test_fingerprint_of_a_copy_is_the_same(demo_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(demo_dir, tmp_path / "copy")
    for task in stimuli.tasks(str(demo_dir)):
        ours = stimuli.load(str(demo_dir), task).fingerprint
        assert stimuli.load(str(copy), task).fingerprint == ours
        assert len(ours) == 8
        int(ours, 16)


@given(
    st.lists(st.tuples(st.text(), st.none() | st.booleans(), st.lists(st.text())), max_size=8),
    st.randoms(),
)
def test_fingerprint_ignores_the_order(rows: list[tuple], rng: random.Random) -> None:
    shuffled = rng.sample(rows, len(rows))

    def columns(rows: list[tuple], order: str) -> dict[str, list]:
        return {name: [row["abc".index(name)] for row in rows] for name in order}

    assert fingerprint(columns(rows, "abc")) == fingerprint(columns(shuffled, "cab"))


def test_fingerprint_sees_every_value() -> None:
    base = {"id": ["a", "b"], "x": [1.5, None]}
    changed = [
        {"id": ["a", "c"], "x": [1.5, None]},
        {"id": ["a", "b"], "x": [1.5, 0.0]},
        {"id": ["a", "b"], "x": [None, 1.5]},
        {"id": ["a", "b"], "y": [1.5, None]},
        {"id": ["a", "b", "b"], "x": [1.5, None, None]},
    ]
    assert len({fingerprint(columns) for columns in (base, *changed)}) == 6


def test_fingerprint_never_changes() -> None:
    """Saved results are compared by it. Worked by hand from the definition:

    one row [null,"a"] of the columns ["expected","id"]: sha256 of the names' JSON followed by the
    sha256 of the row's JSON.
    """
    import hashlib

    row = hashlib.sha256(b'[[],"a"]').digest()
    due = hashlib.sha256(b'["expected","id"]' + row).hexdigest()[:8]
    assert fingerprint({"id": ["a"], "expected": [[]]}) == due


# A diagnostic of one's own.


def test_own_csv(tmp_path: Path) -> None:
    file = own(tmp_path, GOOD, BAD)
    assert stimuli.tasks(file) == ["own"]
    columns = stimuli.load(file).columns()
    assert columns == stimuli.load(file, "own").columns()
    assert columns["context"] == ["One, two and", "One and"]
    assert columns["right_context"] == [".", ""]
    assert columns["good"] == [True, False]
    assert columns["expected"] == [["three", "four"], []]


def test_own_formats_agree(tmp_path: Path) -> None:
    by_csv = stimuli.load(own(tmp_path, GOOD, BAD), "own")
    rows = by_csv.table.to_pylist()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    by_json = stimuli.load(own(tmp_path, lines, header="", name="own.jsonl"), "own")
    pq.write_table(by_csv.table, tmp_path / "own.parquet")
    by_parquet = stimuli.load(str(tmp_path / "own.parquet"), "own")
    with (tmp_path / "own.tsv").open("w", newline="") as out:
        csv.writer(out, delimiter="\t").writerows(csv.reader((HEADER, GOOD, BAD)))
    by_tsv = stimuli.load(str(tmp_path / "own.tsv"), "own")
    fingerprints = {each.fingerprint for each in (by_csv, by_json, by_parquet, by_tsv)}
    assert len(fingerprints) == 1


def test_right_context_may_be_missing_and_items_may_be_numbers(tmp_path: Path) -> None:
    row = {"id": "a", "item": 1, "condition": "x", "context": "One and", "contrast": 7}
    lines = [
        row | {"target": "two", "good": True, "expected": ["two"]},
        row | {"target": "ten", "good": False, "expected": [], "id": "b"},
    ]
    file = own(tmp_path, *(json.dumps(line) + "\n" for line in lines), header="", name="n.jsonl")
    columns = stimuli.load(file, "n").columns()
    assert columns["right_context"] == ["", ""]
    assert (columns["item"], columns["contrast"]) == (["1", "1"], ["7", "7"])


SPECIAL = (
    "sentence_1,sentence_2,constraint,explanation,expected_cloze,target_cloze,target_cloze_strict,"
    "expected_responses,object,subject,subset,polarity,natural,source,template,number"
)
"""Names of columns that mean something in one of the project's diagnostics."""


def test_no_further_column_means_anything_in_rows_of_ones_own(tmp_path: Path) -> None:
    names = SPECIAL.split(",")
    header = f"{HEADER.strip()},{SPECIAL}\n"
    more = [",".join(f"{name}-{i}" for name in names) for i in (1, 2)]
    file = own(tmp_path, f"{GOOD.strip()},{more[0]}\n", f"{BAD.strip()},{more[1]}\n", header=header)
    rows = stimuli.load(file)
    assert rows.task == "own"
    assert {name: rows.columns()[name] for name in names} == {
        name: [f"{name}-1", f"{name}-2"] for name in names
    }


@pytest.mark.parametrize("name", ["cprag102", "role88", "neg136", "agreement", "verbs"])
def test_a_file_named_after_a_diagnostic_is_ones_own_without_its_columns(
    tmp_path: Path, name: str
) -> None:
    file = own(tmp_path, GOOD, BAD, name=f"{name}.csv")
    assert stimuli.tasks(file) == [f"{name}.csv"]
    assert stimuli.load(file).task == f"{name}.csv"


def test_a_file_with_the_columns_of_a_diagnostic_is_the_diagnostic(
    demo_dir: Path, tmp_path: Path
) -> None:
    (parquet,) = (demo_dir / "neg136").glob("*.parquet")
    shutil.copy(parquet, tmp_path / "neg136.parquet")
    rows = stimuli.load(str(tmp_path / "neg136.parquet"))
    assert rows.task == "neg136"
    assert rows.fingerprint == stimuli.load(str(demo_dir), "neg136").fingerprint


def test_a_config_named_after_a_diagnostic_needs_its_columns(tmp_path: Path) -> None:
    own(tmp_path, GOOD, BAD)
    card = "---\nconfigs: [{config_name: agreement, data_files: own.csv}]\n---\n"
    (tmp_path / "README.md").write_text(card)
    with pytest.raises(BadInput, match=r"own.csv: the column number is missing, which the diag"):
        stimuli.load(str(tmp_path), "agreement")


@pytest.mark.parametrize(
    "expected", ["bird|tree", "bird | tree", '["bird", "tree"]', "['bird', 'tree']"]
)
def test_expected_words_of_a_csv(tmp_path: Path, expected: str) -> None:
    with (tmp_path / "own.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["context", "target", "expected"], ["A", "b", expected]])
    assert stimuli.load(str(tmp_path / "own.csv")).columns()["expected"] == [["bird", "tree"]]


@pytest.mark.parametrize(
    ("expected", "words"),
    [("bird|tree", ["bird", "tree"]), (["1,000"], ["1,000"]), (",", [","]), (None, []), ([], [])],
)
def test_expected_words_in_memory(expected: object, words: list[str]) -> None:
    rows = [{"context": "A", "target": "b", "expected": expected}]
    assert stimuli.load(rows).columns()["expected"] == [words]


@pytest.mark.parametrize(
    "expected",
    ["bird, tree", "bird;tree", ["bird, tree"], [" bird"], '["bird", 3]', "['a' 'b']", 3, "a|"],
)
def test_expected_words_that_could_never_be_found(expected: object) -> None:
    with pytest.raises(BadInput, match=r"rows, row 1: the column expected"):
        stimuli.load([{"context": "A", "target": "b", "expected": expected}])


def test_a_csv_of_a_spreadsheet_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("context;target\r\nOne, two and;three\r\n", "utf-8-sig")
    columns = stimuli.load(str(tmp_path / "own.csv")).columns()
    assert (columns["context"], columns["target"]) == (["One, two and"], ["three"])


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_csv_with_another_separator_is_read(tmp_path: Path, separator: str) -> None:
    with (tmp_path / "own.csv").open("w", newline="") as out:
        writer = csv.writer(out, delimiter=separator)
        writer.writerows([*csv.reader((HEADER, GOOD, BAD))])
    file = str(tmp_path / "own.csv")
    other = stimuli.load(own(tmp_path, GOOD, BAD, name="comma.csv"))
    assert stimuli.load(file).fingerprint == other.fingerprint
    with (tmp_path / "own.csv").open("a") as out:
        out.write(separator)
    with pytest.raises(
        BadInput, match=r"own\.csv:4: 2 fields, expected 9; put text with a (semi|tab)"
    ):
        stimuli.load(file)


def test_a_csv_of_r_has_row_names_and_missing_values(tmp_path: Path) -> None:
    """What `write.csv` makes of a data frame."""
    header = '"","context","right_context","target","expected","condition","voice"\n'
    lines = [
        '"1","The cat sat on the",NA,"mat","mat","x","active"\n',
        '"2","The cat sat on a","again","mat",NA,NA,NA\n',
    ]
    columns = stimuli.load(own(tmp_path, *lines, header=header)).columns()
    assert columns["right_context"] == ["", "again"]
    assert columns["expected"] == [["mat"], []]
    assert columns["condition"] == ["x", ""]
    assert columns["voice"] == ["active", None]
    assert "" not in columns


def test_the_word_na_can_be_given(tmp_path: Path) -> None:
    line = json.dumps({"context": "Sodium is written", "target": "NA", "expected": ["NA"]})
    columns = stimuli.load(own(tmp_path, line, header="", name="own.jsonl")).columns()
    assert (columns["target"], columns["expected"]) == (["NA"], [["NA"]])


def test_two_underscores_are_part_of_a_name() -> None:
    rows = [{"context": "In Python, __init__ and a_b are", "target": "names"}]
    assert len(stimuli.load(rows)) == 1


# Rows that are not compared.


def test_context_and_target_are_enough(tmp_path: Path) -> None:
    columns = stimuli.load(own(tmp_path, "One,two\n", "Ten,ten\n", header="context,target\n"))
    assert columns.columns() == {
        "id": ["own-1", "own-2"], "item": ["", ""], "condition": ["", ""],
        "context": ["One", "Ten"], "right_context": ["", ""], "target": ["two", "ten"],
        "expected": [[], []],
    }  # fmt: skip
    assert not columns.compared
    assert stimuli.load(own(tmp_path, GOOD, BAD)).compared


def test_a_core_column_without_any_value_counts_as_absent(tmp_path: Path) -> None:
    rows = stimuli.load(own(tmp_path, ",,,One,,two,,,\n", ",,,Ten,,ten,,,\n"))
    assert (rows.compared, rows.columns()["id"]) == (False, ["own-1", "own-2"])


# Rows in memory.


def in_memory() -> list[dict[str, object]]:
    base = {"item": "1", "context": "One and", "right_context": "", "contrast": "c"}
    return [
        base | {"id": "a", "condition": "x", "target": "two", "good": True, "expected": ["two"],
                "dose": 1, "note": None},
        base | {"id": "b", "condition": "y", "target": "ten", "good": False, "expected": [],
                "dose": 2, "note": "n"},
    ]  # fmt: skip


def test_rows_in_memory_are_the_same_as_in_a_file(tmp_path: Path) -> None:
    import datasets
    import pandas as pd

    rows = in_memory()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    file = stimuli.load(own(tmp_path, lines, header="", name="own.jsonl"))
    for data in (
        rows, iter(rows), columns, pa.Table.from_pylist(rows), pd.DataFrame(rows, index=[7, 8]),
        datasets.Dataset.from_list(rows),
    ):  # fmt: skip
        found = stimuli.load(data, "own")
        assert found.columns() == file.columns()
        assert (found.fingerprint, found.task) == (file.fingerprint, "own")


def test_missing_values_of_pandas_are_missing() -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "context": ["A", "B"], "target": ["x", "y"], "right_context": [None, "z"],
            "dose": [1.5, float("nan")], "when": pd.array([1, None], dtype="Int64"),
        }
    )  # fmt: skip
    columns = stimuli.load(frame).columns()
    assert columns["right_context"] == ["", "z"]
    assert (columns["dose"], columns["when"]) == ([1.5, None], [1, None])


def test_mistakes_in_memory_name_row_and_column() -> None:
    rows = in_memory()
    for data, task, message in (
        ([rows[0], rows[1] | {"target": ""}], None, "rows, row 2: the column target is empty"),
        ([rows[0], {"context": "A"}], None, "rows, row 2: the column item is missing"),
        (
            {"context": ["A"], "target": []},
            None,
            "rows: the columns differ in length: context 1, ta",
        ),
        (rows, "neg136", "rows: the column natural is missing, which the diagnostic neg136 has"),
        ([], None, "rows has no rows"),
        (
            {"context": ["A", "B"], "target": ["x", "y"], "dose": [1, "high"]},
            None,
            "rows: the column dose cannot be stored: ",
        ),
        ({"context": ["A\ud800"], "target": ["x"]}, None, "the column context cannot be stored: "),
        (3, None, "cannot read stimuli from int: give the name of a data set, a file, a DataFrame"),
    ):
        with pytest.raises(BadInput) as error:
            stimuli.load(data, task)
        assert message in str(error.value)


MISTAKES = {
    "no column": (
        HEADER.replace(",target", ""),
        [GOOD.replace(",three,true", ",true"), BAD.replace(",two,0", ",0")],
        "own.csv: the column target is missing; every row needs context and target",
    ),
    "no rows": (HEADER, [], "own.csv has no rows"),
    "column twice": (HEADER.replace("item", "id"), [GOOD], "own.csv:1: the header must name each"),
    "fields": (
        HEADER,
        [GOOD.replace('"', ""), BAD],
        "own.csv:2: 10 fields, expected 9; put text with a comma in double quotes",
    ),
    "quote": (HEADER, [GOOD.replace('and"', 'and"s'), BAD], "own.csv:2: ',' expected after '\"'"),
    "good": (
        HEADER,
        [GOOD, BAD.replace(",0,", ",no,")],
        "own.csv:3: the column good: expected true or false, not 'no'",
    ),
    "no good": (HEADER, [GOOD, BAD.replace(",0,", ",,")], "own.csv:3: the column good is empty"),
    "id": (HEADER, [GOOD, BAD.replace("b", "", 1)], "own.csv:3: the column id is empty"),
    "id twice": (
        HEADER,
        [GOOD, BAD.replace("b", "a", 1)],
        "own.csv:3: the column id has 'a' again",
    ),
    "blank": (
        HEADER,
        [GOOD.replace('and"', 'and "'), BAD],
        "own.csv:2: the column context ends in",
    ),
    "target": (HEADER, [GOOD, BAD.replace("two", "")], "own.csv:3: the column target is empty"),
    "padded": (HEADER, [GOOD, BAD.replace("two", " two")], "own.csv:3: the column target has a bl"),
    "expected": (
        HEADER,
        [GOOD.replace("|four", "|"), BAD],
        "own.csv:2: the column expected has an",
    ),
    "contrast": (HEADER, [GOOD, BAD.replace("c1", "")], "own.csv:3: the column contrast is empty"),
    "two good": (
        HEADER,
        [GOOD, BAD.replace(",0,", ",1,")],
        "own.csv:2: the column contrast: 'c1' has 2 good and 0 bad rows",
    ),
    "none good": (HEADER, [GOOD, BAD.replace("c1", "c2")], "'c1' has 1 good and 0 bad rows, it ne"),
    "good alone": (
        HEADER.replace("contrast", "pair"),
        [GOOD, BAD],
        "own.csv: there is a column good but no contrast: give both, or leave both out if no rows",
    ),
    "contrast alone": (
        HEADER.replace("good", "fits"),
        [GOOD, BAD],
        "there is a column contrast but",
    ),
    "comma in expected": (
        HEADER,
        [GOOD.replace("three|four", '"three, four"'), BAD],
        "own.csv:2: the column expected: 'three, four': separate words by |, or write a list: [",
    ),
    "semicolon in expected": (
        HEADER,
        [GOOD.replace("three|", "three;"), BAD],
        "separate words by |",
    ),
    "no list": (HEADER, [GOOD.replace("three|four", "[three]"), BAD], "'[three]' is not a list of"),
    "NA as target": (
        HEADER,
        [GOOD, BAD.replace("two", "NA")],
        "own.csv:3: the column target is NA, a missing value in R: fill it in; if the word NA is",
    ),
    "NA as contrast": (
        HEADER,
        [GOOD, BAD.replace("c1", "NA")],
        "own.csv:3: the column contrast is",
    ),
    "blank in context": (
        HEADER,
        [GOOD, BAD.replace("One and", "One ____ and")],
        "own.csv:3: the column context has a blank in it, '____': write what is left of the blank",
    ),
    "BLANK in right_context": (
        HEADER,
        [GOOD.replace(",.,", ",[blank] it,"), BAD],
        "own.csv:2: the column right_context has a blank in it, '[blank]'",
    ),
    "no name": (
        HEADER.strip() + ",\n",
        [GOOD.strip() + ",x\n", BAD.strip() + ",y\n"],
        "own.csv: a column has no name: name it in the header",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_name_row_and_column(tmp_path: Path, case: str) -> None:
    header, lines, message = MISTAKES[case]
    with pytest.raises(BadInput) as error:
        stimuli.load(own(tmp_path, *lines, header=header), "own")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_mistakes_in_json_lines(tmp_path: Path) -> None:
    for line, message in {
        "{": "own.jsonl:1: not valid JSON",
        "3": "own.jsonl:1: expected one JSON object per line",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.load(own(tmp_path, line, header="", name="own.jsonl"), "own")
    row = dict.fromkeys(CORE_COLUMNS, "x") | {"good": True, "expected": []}
    for change, message in {
        "target": "own.jsonl:2: the column target is missing",
        "context": "own.jsonl:2: the column context is missing",
    }.items():
        lines = [json.dumps(row), json.dumps({k: v for k, v in row.items() if k != change})]
        with pytest.raises(BadInput, match=message):
            stimuli.load(own(tmp_path, "\n".join(lines), header="", name="own.jsonl"), "own")
    wrong = json.dumps(row | {"target": 2.5})
    with pytest.raises(BadInput, match=r"own.jsonl:1: the column target: expected text, not 2\.5"):
        stimuli.load(own(tmp_path, wrong, header="", name="own.jsonl"), "own")


def test_mistakes_in_parquet(tmp_path: Path) -> None:
    table = stimuli.load(own(tmp_path, GOOD, BAD), "own").table
    place = table.column_names.index("target")
    pq.write_table(table.set_column(place, "target", pa.array([1.5, 2.5])), tmp_path / "p.parquet")
    with pytest.raises(BadInput, match=r"p.parquet, row 1: the column target: expected text"):
        stimuli.load(str(tmp_path / "p.parquet"), "p")
    pq.write_table(table.set_column(place, "target", pa.array(["a", None])), tmp_path / "p.parquet")
    with pytest.raises(BadInput, match=r"p.parquet, row 2: the column target is empty"):
        stimuli.load(str(tmp_path / "p.parquet"), "p")
    (tmp_path / "p.parquet").write_text("no Parquet")
    with pytest.raises(BadInput, match=r"p.parquet cannot be read: not valid Parquet"):
        stimuli.load(str(tmp_path / "p.parquet"), "p")


# Places.


def test_unknown_places_are_named(demo_dir: Path, tmp_path: Path) -> None:
    for data, message in {
        str(tmp_path / "lmdiag"): "no data at .*/lmdiag: build the data set by `lmdiag build`",
        str(tmp_path): "is no data set, it has no README.md: build one by",
        str(Path(__file__)): "is no data: a directory or a file ending in .csv, .tsv, .jsonl",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.tasks(data)
    with pytest.raises(
        BadInput,
        match=r"no task 'negg' \(did you mean 'neg136'\?\): choose from cprag102, role88, neg136",
    ):
        stimuli.load(str(demo_dir), "negg")
    with pytest.raises(BadInput, match="has several tasks: choose from cprag102, role88"):
        stimuli.load(str(demo_dir))
    with pytest.raises(BadInput, match="has no task 'verbs'"):
        stimuli.load(str(demo_dir), "verbs")


def test_broken_directories_are_named(demo_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(demo_dir, tmp_path / "copy")
    shutil.rmtree(copy / "neg136")
    with pytest.raises(BadInput, match=r"no file neg136/test-00000-of-00001\.parquet for neg136"):
        stimuli.load(str(copy), "neg136")
    for front, message in {
        "configs: [": "README.md: not valid YAML in line 1",
        "configs: []": "names no `configs:`",
        f"configs: [{{config_name: x, data_files: '{'[' * 100_000}'}}]": "is too long or has too",
        "configs: [{config_name: x, data_files: ../secret.csv}]": "is no path inside the data set",
        "configs: [{config_name: x, data_files: /etc/passwd}]": "is no path inside the data set",
        "configs: [{config_name: x, data_files: [{split: a, path: a}, {split: b, path: b}]}]":
            "no split 'test' among a, b",
    }.items():  # fmt: skip
        (copy / "README.md").write_text(f"---\n{front}\n---\n")
        with pytest.raises(BadInput, match=message):
            stimuli.load(str(copy), "x")


def test_own_directory_with_configs(tmp_path: Path) -> None:
    """What someone pushes to the Hub by hand: a card and csv files, in parts, split `train`."""
    own(tmp_path, GOOD, BAD, name="part-1.csv")
    own(tmp_path, *(line.replace("c1", "c2").replace(",1,", ",2,", 1) for line in (
        GOOD.replace("a", "d", 1), BAD.replace("b", "e", 1))), name="part-2.csv")  # fmt: skip
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: mine\n"
        "  data_files:\n  - {split: train, path: part-*.csv}\n---\n"
    )
    rows = stimuli.load(str(tmp_path), "mine")
    assert rows.columns()["id"] == ["a", "b", "d", "e"]
    own(tmp_path, GOOD.replace("a", "d", 1), BAD.replace("b", "e", 1), name="part-2.csv")
    with pytest.raises(
        BadInput, match=r"part-1.csv:2: the column contrast: 'c1' has 2 good and 2 bad"
    ):
        stimuli.load(str(tmp_path), "mine")


def test_hub_data_set_without_a_network(tmp_path: Path) -> None:
    code = "from lmdiag import stimuli; stimuli.tasks('some-org/lmdiag')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert (
        "BadInput: no network, and some-org/lmdiag is neither here nor in the cache" in done.stderr
    )


# Verbs.


def test_verbs_of_a_data_set(demo_dir: Path) -> None:
    pairs = stimuli.load_verbs(str(demo_dir))
    assert len(pairs) == len(set(pairs)) == 461
    assert pairs[:2] == [("is", "are"), ("has", "have")]


@pytest.mark.parametrize(
    "text",
    [
        "singular,plural\ngoes,go\nhas,have\n",
        "goes,go\nhas,have\n",
        "idx,sing,plur,freq\n_,goes,go,_\n_,has,have,_\n",
        "plural,singular\ngo,goes\n\nhave , has\nhave,has\n",
    ],
)
def test_verbs_of_a_csv(tmp_path: Path, text: str) -> None:
    (tmp_path / "v.csv").write_text(text)
    assert stimuli.load_verbs(str(tmp_path / "v.csv")) == [("goes", "go"), ("has", "have")]


def test_mistakes_in_verbs_are_named(data_dir: Path, tmp_path: Path) -> None:
    for text, message in {
        "singular,plural\ngoes,\n": "v.csv:2: a singular and a plural form are due",
        "goes,go\nhas\n": "v.csv:2: a singular and a plural form are due",
        "a,b,c\n": "v.csv:1: name the columns singular,plural",
        "singular,plural\n": "v.csv has no verbs",
        "": "v.csv has no verbs",
    }.items():
        (tmp_path / "v.csv").write_text(text)
        with pytest.raises(BadInput, match=message):
            stimuli.load_verbs(str(tmp_path / "v.csv"))
    with pytest.raises(BadInput, match="cannot be read"):
        stimuli.load_verbs(str(tmp_path / "nowhere.csv"))
    with pytest.raises(BadInput, match="has no config verbs: name a csv of singular,plural by"):
        stimuli.load_verbs(str(data_dir))
