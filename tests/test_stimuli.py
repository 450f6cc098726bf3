"""Stimuli from directories, files and caches of the Hub; their fingerprint; every mistake named."""

from __future__ import annotations

import csv
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag import stimuli
from lmdiag.schema import CORE_COLUMNS, BadInput
from lmdiag.stimuli.records import fingerprint

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


def test_limit_keeps_the_first_rows(demo_dir: Path) -> None:
    whole = stimuli.load(str(demo_dir), "neg136")
    few = stimuli.load(str(demo_dir), "neg136", limit=8)
    assert few.columns()["id"] == whole.columns()["id"][:8]
    assert few.fingerprint != whole.fingerprint
    assert stimuli.load(str(demo_dir), "neg136", limit=104).fingerprint == whole.fingerprint
    with pytest.raises(BadInput, match="--limit must be at least 1"):
        stimuli.load(str(demo_dir), "neg136", limit=0)


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


def test_further_columns_are_typed_where_they_are_known(tmp_path: Path) -> None:
    header = HEADER.strip() + ",target_cloze,natural,author\n"
    file = own(
        tmp_path, GOOD.strip() + ",0.25,true,A\n", BAD.strip() + ",,,B\n", header=header
    )  # fmt: skip
    columns = stimuli.load(file, "own").columns()
    assert columns["target_cloze"] == [0.25, None]
    assert columns["natural"] == [True, None]
    assert columns["author"] == ["A", "B"]


MISTAKES = {
    "no column": (
        HEADER.replace(",target", ""),
        [GOOD.replace(",three,true", ",true"), BAD.replace(",two,0", ",0")],
        "own.csv: the column target is missing; the core columns are id, item",
    ),
    "no rows": (HEADER, [], "own.csv has no rows"),
    "column twice": (HEADER.replace("item", "id"), [GOOD], "own.csv:1: the header must name each"),
    "fields": (HEADER, [GOOD.replace('"', ""), BAD], "own.csv:2: 10 fields, 9 are due"),
    "quote": (HEADER, [GOOD.replace('and"', 'and"s'), BAD], "own.csv:2: ',' expected after '\"'"),
    "good": (HEADER, [GOOD, BAD.replace(",0,", ",no,")], "own.csv:3: the column good: true or fal"),
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
    "cloze": (
        HEADER.strip() + ",target_cloze\n",
        [GOOD.strip() + ",often\n", BAD.strip() + ",0\n"],
        "own.csv:2: the column target_cloze: a number is due, not 'often'",
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
        "3": "own.jsonl:1: a JSON object is due",
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
    with pytest.raises(BadInput, match=r"own.jsonl:1: the column target: text is due, not 2\.5"):
        stimuli.load(own(tmp_path, wrong, header="", name="own.jsonl"), "own")


def test_mistakes_in_parquet(tmp_path: Path) -> None:
    table = stimuli.load(own(tmp_path, GOOD, BAD), "own").table
    place = table.column_names.index("target")
    pq.write_table(table.set_column(place, "target", pa.array([1.5, 2.5])), tmp_path / "p.parquet")
    with pytest.raises(BadInput, match=r"p.parquet, row 1: the column target: text is due"):
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
        str(tmp_path / "lmdiag"): "no data at .*/lmdiag: build the data set by `python datasets/",
        str(tmp_path): "is no data set, it has no README.md: build one by",
        str(Path(__file__)): "is no data: a directory or a file ending in .csv, .tsv, .jsonl",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.tasks(data)
    with pytest.raises(BadInput, match="has no task 'negg': choose from cprag102, role88, neg136"):
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
