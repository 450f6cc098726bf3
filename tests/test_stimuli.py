"""Stimuli from directories, files, memory and the Hub; fingerprints; errors by row and column."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from lmdiag import diagnostics, stimuli
from lmdiag.diagnostics import CORE
from lmdiag.stimuli.rows import fingerprint
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi


HEADER = "id,item,condition,context,right_context,target,good,contrast,expected\n"
GOOD = 'a,1,x,"One, two and",.,three,true,c1,three|four\n'
BAD = "b,1,y,One and,,two,0,c1,\n"
TABLE = HEADER + GOOD + BAD


def own(folder: Path, text: str = TABLE, name: str = "own.csv") -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def own_csv(folder: Path, rows: list[list[str]], mark: str = ",", name: str = "own.csv") -> str:
    with (folder / name).open("w", newline="") as out:
        csv.writer(out, delimiter=mark).writerows(rows)
    return str(folder / name)


# ---- the data set --------------------------------------------------------------------------------


def test_a_built_data_set(data_dir: Path, demo_dir: Path) -> None:
    assert stimuli.tasks(str(data_dir)) == ["cprag102", "role88", "neg136"]
    assert stimuli.tasks(str(demo_dir)) == ["cprag102", "role88", "neg136", "agreement"]
    rows = stimuli.load(str(data_dir), "role88")
    assert tuple(rows.columns())[:9] == tuple(column.name for column in CORE)
    assert rows.source == str(data_dir)
    assert rows.revision == "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
    assert stimuli.load(str(demo_dir), "neg136").revision is None
    types = {name: rows.table.schema.field(name).type for name in ("good", "expected", "item")}
    assert types == {"good": pa.bool_(), "expected": pa.list_(pa.string()), "item": pa.string()}


def test_loading_is_light(demo_dir: Path) -> None:
    """A local directory needs neither torch nor `datasets` nor the client of the Hub."""
    code = (
        "import sys; from lmdiag import perturb, stimuli\n"
        "light = not {'pyarrow', 'yaml', 'numpy'} & set(sys.modules)\n"
        f"stimuli.load({str(demo_dir)!r}, 'neg136')\n"
        "print(light, {'torch', 'datasets', 'huggingface_hub', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"


# ---- samples -------------------------------------------------------------------------------------


def test_a_sample_has_whole_contrasts_evenly_over_the_break_downs(demo_dir: Path) -> None:
    few = stimuli.load(str(demo_dir), "neg136", limit=25).columns()
    # contrasts have two rows, so there are twelve of them, three of each polarity in each subset;
    # those of nat are natural or less natural, as evenly as three can be
    assert Counter(few["subset"]) == {"simp": 12, "nat": 12}
    counts = Counter(zip(few["subset"], few["polarity"], few["natural"], strict=True))
    assert sorted(counts.values()) == [2, 2, 4, 4, 6, 6]
    assert Counter(few["good"]) == {True: 12, False: 12}
    assert set(Counter(few["contrast"]).values()) == {2}
    few = stimuli.load(str(demo_dir), "neg136", limit=6).columns()  # fewer than combinations
    assert [len(set(few[name])) for name in ("polarity", "subset", "natural")] == [2, 2, 3]
    rows = [{"context": "A", "target": f"w{i}", "voice": "ab"[i > 5]} for i in range(20)]
    assert Counter(stimuli.load(rows, limit=6).columns()["voice"]) == {"a": 3, "b": 3}


def test_the_same_sample_everywhere(demo_dir: Path) -> None:
    """It is a function of the contrasts and the seed: this is the list on any machine."""
    few = stimuli.load(str(demo_dir), "cprag102", limit=6)
    assert sorted(set(few.columns()["contrast"])) == ["cprag102-14", "cprag102-9"]
    other = stimuli.load(str(demo_dir), "cprag102", limit=6, seed=1)
    assert few.fingerprint != other.fingerprint
    columns = stimuli.load(str(demo_dir), "cprag102").columns()
    backwards = {name: values[::-1] for name, values in columns.items()}
    assert stimuli.load(backwards, "cprag102", limit=6).fingerprint == few.fingerprint
    assert len(stimuli.load(str(demo_dir), "neg136", limit=104)) == 104
    assert len(stimuli.load(str(demo_dir), "neg136", limit=1)) == 2  # a contrast at least
    with pytest.raises(BadInput, match="--limit must be at least 1"):
        stimuli.load(str(demo_dir), "neg136", limit=0)


# ---- fingerprints --------------------------------------------------------------------------------


def test_the_fingerprint_depends_on_every_value_but_not_on_their_order() -> None:
    tables = [
        {"id": ["a", "b"], "x": [1.5, None]},
        {"id": ["a", "c"], "x": [1.5, None]},
        {"id": ["a", "b"], "x": [1.5, 0.0]},
        {"id": ["a", "b"], "x": [None, 1.5]},
        {"id": ["a", "b"], "y": [1.5, None]},
        {"id": ["a", "b", "b"], "x": [1.5, None, None]},
    ]
    assert len(set(map(fingerprint, tables))) == len(tables)
    same = {"x": [None, 1.5], "id": ["b", "a"]}  # other orders of rows and columns
    assert fingerprint(same) == fingerprint(tables[0])


def test_the_fingerprint_never_changes() -> None:
    """Saved results are compared by it. The definition, worked by hand for one row [[],"a"] of the
    columns ["expected","id"]: SHA-256 of the names' JSON followed by the SHA-256 of the row's JSON.
    """
    row = hashlib.sha256(b'[[],"a"]').digest()
    expected = hashlib.sha256(b'["expected","id"]' + row).hexdigest()[:8]
    assert fingerprint({"id": ["a"], "expected": [[]]}) == expected


# ---- files of your own ---------------------------------------------------------------------------


def test_all_formats_give_the_same_rows(tmp_path: Path) -> None:
    assert stimuli.tasks(own(tmp_path)) == ["own"]
    whole = stimuli.load(own(tmp_path))
    assert whole.compared
    columns = whole.columns()
    assert columns["context"] == ["One, two and", "One and"]
    assert (columns["right_context"], columns["good"]) == ([".", ""], [True, False])
    assert columns["expected"] == [["three", "four"], []]
    pq.write_table(whole.table, tmp_path / "own.parquet")
    plain = whole.table.to_pylist()
    numbered = [row | {"item": 1} for row in plain]  # numbers are texts, too
    lines = "".join(json.dumps(row) + "\n" for row in plain)
    rows = [*csv.reader((HEADER, GOOD, BAD))]
    files = [
        str(tmp_path / "own.parquet"),
        own(tmp_path, lines, "own.jsonl"),
        own_csv(tmp_path, rows, "\t", "own.tsv"),
        own_csv(tmp_path, rows, ";", "semicolon.csv"),
        own_csv(tmp_path, rows, "\t", "tab.csv"),
    ]
    marked = tmp_path / "marked.csv"  # as spreadsheets write it
    marked.write_text(TABLE.replace("\n", "\r\n"), "utf-8-sig", newline="")
    memory = (
        plain, iter(plain), numbered, whole.columns(), whole.table, Dataset.from_list(plain),
        pd.DataFrame(plain, index=[7, 8]),
    )  # fmt: skip
    for data in (*files, str(marked), *memory):
        assert stimuli.load(data).fingerprint == whole.fingerprint
    frame = pd.DataFrame({"context": ["A", "B"], "target": ["x", "y"], "n": [1.5, float("nan")]})
    assert stimuli.load(frame).columns()["n"] == [1.5, None]


def test_context_and_target_are_enough(tmp_path: Path) -> None:
    rows = stimuli.load(own(tmp_path, "context,target\nOne,two\nTen,ten\n"))
    assert rows.columns() == {
        "id": ["own-1", "own-2"], "item": ["", ""], "condition": ["", ""],
        "context": ["One", "Ten"], "right_context": ["", ""], "target": ["two", "ten"],
        "expected": [[], []],
    }  # fmt: skip
    assert not rows.compared
    name = {"context": ["In Python, __init__ and a_b are"], "target": ["names"]}
    assert len(stimuli.load(name)) == 1  # two underscores are not a blank
    empty = stimuli.load(own(tmp_path, f"{HEADER},,,One,,two,,,\n,,,Ten,,ten,,,\n"))
    assert empty.columns() == rows.columns()  # core columns without any value count as absent


def test_every_further_column_of_your_own_is_a_break_down() -> None:
    """No name has a special meaning, also those of columns of the built-in diagnostics."""
    names = {c.name for d in diagnostics.built_in().values() for c in d.columns}
    for kind in (["one", "two"], [1, 2], [0.5, 1.5], [True, False]):
        rows = stimuli.load(
            {"context": ["A", "B"], "target": ["x", "y"]} | dict.fromkeys(names, kind)
        )
        assert all(rows.columns()[name] == kind for name in names)
        levels = [str(value).lower() for value in kind]
        found = diagnostics.get(rows.task).levels(rows.columns())
        assert found == dict.fromkeys(names, levels)


def test_a_file_named_after_a_diagnostic_is_one_if_it_has_its_columns(
    demo_dir: Path, tmp_path: Path
) -> None:
    for name in (*diagnostics.built_in(), "verbs"):
        file = own(tmp_path, name=f"{name}.csv")
        assert stimuli.tasks(file) == [f"{name}.csv"]
        assert stimuli.load(file).task == f"{name}.csv"
    (parquet,) = (demo_dir / "neg136").glob("*.parquet")
    shutil.copy(parquet, tmp_path / "neg136.parquet")
    rows = stimuli.load(str(tmp_path / "neg136.parquet"))
    assert rows.task == "neg136"
    assert rows.fingerprint == stimuli.load(str(demo_dir), "neg136").fingerprint


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("bird|tree", ["bird", "tree"]), ("bird | tree", ["bird", "tree"]),
        ('["bird", "tree"]', ["bird", "tree"]), ("['bird', 'tree']", ["bird", "tree"]),
        (["1,000"], ["1,000"]), (",", [","]), (None, []), ([], []),
    ],
)  # fmt: skip
def test_expected_words(tmp_path: Path, expected: Any, words: list[str]) -> None:
    rows = [{"context": "A", "target": "b", "expected": expected}]
    assert stimuli.load(rows).columns()["expected"] == [words]
    if isinstance(expected, str):
        file = own_csv(tmp_path, [["context", "target", "expected"], ["A", "b", expected]])
        assert stimuli.load(file).columns()["expected"] == [words]


def test_a_csv_of_r_has_row_names_and_missing_values(tmp_path: Path) -> None:
    """As `write.csv` writes a data frame."""
    text = (
        '"","context","right_context","target","expected","condition","voice"\n'
        '"1","The cat sat on the",NA,"mat","mat","x","active"\n'
        '"2","The cat sat on a","again","mat",NA,NA,NA\n'
    )
    columns = stimuli.load(own(tmp_path, text)).columns()
    assert columns["right_context"] == ["", "again"]
    assert columns["expected"] == [["mat"], []]
    assert columns["condition"] == ["x", ""]
    assert columns["voice"] == ["active", None]
    assert "" not in columns
    line = json.dumps({"context": "Sodium is written", "target": "NA", "expected": ["NA"]})
    columns = stimuli.load(own(tmp_path, line, "own.jsonl")).columns()
    assert (columns["target"], columns["expected"]) == (["NA"], [["NA"]])


# ---- errors --------------------------------------------------------------------------------------


IN_MEMORY: list[dict[str, Any]] = [
    {"id": name, "context": "One and", "target": "two", "good": name == "a", "contrast": "c"}
    for name in "ab"
]
MISTAKES_IN_MEMORY: list[tuple[Any, str | None, str]] = [
    ([IN_MEMORY[0], IN_MEMORY[1] | {"target": ""}], None, "row 2: the column target is empty"),
    ([IN_MEMORY[0], {"context": "A"}], None, "rows, row 2: the column id is empty: fill"),
    ({"context": ["A"], "target": []}, None, "the columns differ in length: context 1, target 0"),
    (IN_MEMORY, "neg136", "rows: the column natural is missing, which the diagnostic neg136 has"),
    ([], None, "rows has no rows"),
    ({"context": ["A"] * 2, "target": ["x"] * 2, "dose": [1, "a"]}, None, "dose cannot be stored"),
    ({"context": ["A\ud800"], "target": ["x"]}, None, "the column context cannot be stored: "),
    (3, None, "cannot read stimuli from int: give the name of a data set, a file, a DataFrame"),
    *(
        ({"context": ["A"], "target": ["b"], "expected": [value]}, None, "row 1: the column expec")
        for value in (
            "bird, tree", "bird;tree", ["bird, tree"], [" bird"], '["bird", 3]', "['a' 'b']", 3,
            "a|",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "task", "message"), MISTAKES_IN_MEMORY)
def test_mistakes_in_memory_name_row_and_column(data: Any, task: str | None, message: str) -> None:
    with pytest.raises(BadInput) as error:
        stimuli.load(data, task)
    assert message in str(error.value)


MISTAKES: list[tuple[Mapping[str, str], str]] = [
    ({",target": "", ",three,": ",", ",two,": ","}, "the column target is missing; found: "),
    ({",context": ",Context", ",target": ",targets"},
     "the column context is missing (did you mean 'Context'?); found: "),
    ({",target": ",targets"}, "the column target is missing (did you mean 'targets'?); found: "),
    ({GOOD: "", BAD: ""}, "own.csv has no rows"),
    ({"item": "id"}, "own.csv:1: the header must name each column once"),
    ({'"': ""}, "own.csv:2: 10 fields, expected 9; put text with a comma in double quotes"),
    ({'and"': 'and"s'}, "own.csv:2: ',' expected after '\"'"),
    ({",0,": ",no,"}, "own.csv:3: the column good: expected true or false, not 'no'"),
    ({",0,": ",,"}, "own.csv:3: the column good is empty"),
    ({"\nb,": "\n,"}, "own.csv:3: the column id is empty"),
    ({"\nb,": "\na,"}, "own.csv:3: the column id has 'a' again"),
    ({'and"': 'and "'}, "own.csv:2: the column context ends in a space"),
    ({"two,0": ",0"}, "own.csv:3: the column target is empty"),
    ({"two,0": " two,0"}, "own.csv:3: the column target has a space"),
    ({"|four": "|"}, "own.csv:2: the column expected has an empty word"),
    ({"0,c1": "0,"}, "own.csv:3: the column contrast is empty"),
    ({",0,": ",1,"}, "own.csv:2: the column contrast: 'c1' has 2 good and 0 bad rows"),
    ({"0,c1": "0,c2"}, "'c1' has 1 good and 0 bad rows, it needs exactly one good and"),
    ({"contrast": "pair"}, "own.csv: there is a column good but no contrast: give both, or leave"),
    ({"good": "fits"}, "own.csv: there is a column contrast but no good"),
    ({"three|four": '"three, four"'}, "expected: 'three, four': separate words by |, or write a"),
    ({"three|": "three;"}, "separate words by |"),
    ({"three|four": "[three]"}, "'[three]' is not a list of words"),
    ({"two,0": "NA,0"}, "own.csv:3: the column target is empty: fill it in (NA is R's mi"),
    ({"0,c1": "0,NA"}, "own.csv:3: the column contrast is empty"),
    ({"y,One and": "y,One ____ and"}, "own.csv:3: the column context has a blank in it, '____'"),
    ({",.,": ",[blank] it,"}, "own.csv:2: the column right_context has a blank in it, '[blank]'"),
    ({"\n": ",z\n", "expected,z": "expected,"}, "own.csv: a column has no name"),
]  # fmt: skip
"""What is replaced in `TABLE` -> part of the message."""


@pytest.mark.parametrize(("changes", "message"), MISTAKES, ids=[case[1] for case in MISTAKES])
def test_mistakes_in_a_csv_name_row_and_column(
    tmp_path: Path, changes: Mapping[str, str], message: str
) -> None:
    text = TABLE
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(BadInput) as error:
        stimuli.load(own(tmp_path, text), "own")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


ROW = dict.fromkeys((column.name for column in CORE), "x") | {"good": True, "expected": []}


def test_mistakes_in_json_lines_and_parquet(tmp_path: Path) -> None:
    without = {name: value for name, value in ROW.items() if name != "target"}
    for text, message in {
        "{": "own.jsonl:1: not valid JSON",
        "3": "own.jsonl:1: expected one JSON object per line",
        json.dumps(ROW | {"target": 2.5}): "own.jsonl:1: the column target: expected text",
        f"{json.dumps(ROW)}\n{json.dumps(without)}": "own.jsonl:2: the column target is empty",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.load(own(tmp_path, text, "own.jsonl"))
    pq.write_table(pa.table({"context": ["A"], "target": [1.5]}), tmp_path / "p.parquet")
    with pytest.raises(BadInput, match=r"p.parquet, row 1: the column target: expected text"):
        stimuli.load(str(tmp_path / "p.parquet"), "p")


# ---- where data are found ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "task", "message"),
    [
        ("{tmp}/lmdiag", None, "no data at .*/lmdiag: build the data set by `lmdiag build`"),
        ("{demo}/READM.md", None, r"there is no file .*did you mean 'README.md'\?\): name a"),
        ("{tmp}/own.csv", None, r"^there is no file .*/own.csv: name a file that exists$"),
        ("{tmp}", None, "is not a data set, it has no README.md: build one by"),
        (__file__, None, "cannot be read as data: give a directory or a file ending in .csv, .tsv"),
        ("{demo}", "negg", r"no task 'negg' \(did you mean 'neg136'\?\): choose from cprag102, "),
        ("{demo}", None, "has several tasks: choose from cprag102, role88"),
        ("{demo}", "verbs", "has no task 'verbs'"),
        ("../x", None, r"no data set \.\./x here or on the Hub"),
    ],
)
def test_unknown_data_sets_and_tasks_are_named(
    demo_dir: Path, tmp_path: Path, data: str, task: str | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        stimuli.load(data.format(tmp=tmp_path, demo=demo_dir), task)


@pytest.mark.parametrize(
    ("front", "message"),
    [
        ("configs: [", "README.md: not valid YAML in line 1"),
        ("configs: []", "names no `configs:`"),
        ("configs: [{config_name: x, data_files: gone.csv}]", "no file gone.csv for x: build it"),
        (f"configs: [{{config_name: x, data_files: '{'[' * 100_000}'}}]", "is not a path inside"),
        ("configs: [{config_name: x, data_files: ../secret.csv}]", "is not a path inside the data"),
        ("configs: [{config_name: x, data_files: /etc/passwd}]", "is not a path inside the data"),
        ("configs: [{config_name: x, data_files: [{split: a, path: a}, {split: b, path: b}]}]",
         "no split 'test' among a, b"),
    ],
)  # fmt: skip
def test_broken_directories_are_named(tmp_path: Path, front: str, message: str) -> None:
    (tmp_path / "README.md").write_text(f"---\n{front}\n---\n")
    with pytest.raises(BadInput, match=message):
        stimuli.load(str(tmp_path), "x")


def test_a_directory_of_your_own_with_configs(tmp_path: Path) -> None:
    """A card and csv files in parts, split `train`, as some people push them to the Hub."""
    own(tmp_path, name="part-1.csv")
    second = HEADER + (GOOD + BAD).replace("a,1", "d,2").replace("b,1", "e,2")
    own(tmp_path, second.replace("c1", "c2"), "part-2.csv")
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: mine\n"
        "  data_files:\n  - {split: train, path: part-*.csv}\n"
        "- {config_name: agreement, data_files: part-1.csv}\n---\n"
    )
    assert stimuli.load(str(tmp_path), "mine").columns()["id"] == ["a", "b", "d", "e"]
    with pytest.raises(BadInput, match=r"part-1.csv: the column number is missing, which the diag"):
        stimuli.load(str(tmp_path), "agreement")
    own(tmp_path, second, "part-2.csv")
    with pytest.raises(BadInput, match=r"part-1.csv:2: the column contrast: 'c1' has 2 good and 2"):
        stimuli.load(str(tmp_path), "mine")


# ---- verbs ---------------------------------------------------------------------------------------


def test_verbs_of_a_csv(tmp_path: Path) -> None:
    for text in (
        "singular,plural\ngoes,go\nhas,have\n",
        "goes,go\nhas,have\n",
        "idx,sing,plur,freq\n_,goes,go,_\n_,has,have,_\n",
        "plural,singular\ngo,goes\n\nhave , has\nhave,has\n",
    ):
        assert stimuli.load_verbs(own(tmp_path, text)) == [("goes", "go"), ("has", "have")]
    for text, message in {
        "singular,plural\ngoes,\n": "own.csv:2: expected a singular and a plural form",
        "goes,go\nhas\n": "own.csv:2: 1 fields, expected 2",
        "a,b,c\n": "own.csv:1: name the columns singular,plural",
        "a,A,b\n": "own.csv:1: name the columns singular,plural",
        "singular,plural\n": "own.csv has no verbs",
        "": "own.csv:1: the header must name each column once",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.load_verbs(own(tmp_path, text))


def test_verbs_of_a_data_set(data_dir: Path, demo_dir: Path) -> None:
    pairs = stimuli.load_verbs(str(demo_dir))
    assert len(pairs) == len(set(pairs)) == 461
    assert pairs[:2] == [("is", "are"), ("has", "have")]
    with pytest.raises(BadInput, match="has no config verbs: name a csv of singular,plural by"):
        stimuli.load_verbs(str(data_dir))


# ---- the Hub: its real client, and a server on the loopback --------------------------------------


def test_data_sets_of_the_hub_are_their_directories_and_are_kept(
    api: HfApi, demo_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.create_repo("org/lmdiag", repo_type="dataset")
    push = {"repo_id": "org/lmdiag", "repo_type": "dataset"}
    published = api.upload_folder(folder_path=demo_dir, **push).oid
    assert stimuli.tasks("org/lmdiag") == stimuli.tasks(str(demo_dir))
    for task in ("role88", "agreement"):
        remote, local = stimuli.load("org/lmdiag", task), stimuli.load(str(demo_dir), task)
        assert remote.fingerprint == local.fingerprint
        assert (remote.source, remote.revision) == ("org/lmdiag", published)
    assert stimuli.load_verbs("org/lmdiag") == stimuli.load_verbs(str(demo_dir))
    # revisions are resolved to commits
    later = api.upload_file(path_or_fileobj=b"later", path_in_repo="note.txt", **push).oid
    for revision, commit in {None: later, "main": later, published: published}.items():
        assert stimuli.load("org/lmdiag", "neg136", revision=revision).revision == commit
    with pytest.raises(BadInput, match="the data set org/lmdiag has no revision v9"):
        stimuli.load("org/lmdiag", "neg136", revision="v9")
    with pytest.raises(BadInput, match="no data set org/nothing here or on the Hub, or no access"):
        stimuli.tasks("org/nothing")
    # what was loaded needs no network; cprag102 was not
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert stimuli.load("org/lmdiag", "neg136").revision == later
    for data, task in (("org/lmdiag", "cprag102"), ("some-org/lmdiag", None)):
        with pytest.raises(BadInput, match=f"no network, and {data} is neither here nor in the"):
            stimuli.load(data, task)


def test_a_data_set_without_a_card_is_its_files(api: HfApi, tmp_path: Path) -> None:
    """Those of the split `test` if they are named so."""
    own(tmp_path, TABLE, "test.csv")
    own(tmp_path, TABLE.replace("a,1", "d,1"), "train.csv")
    api.create_repo("org/starter", repo_type="dataset")
    api.upload_folder(repo_id="org/starter", repo_type="dataset", folder_path=tmp_path)
    assert stimuli.tasks("org/starter") == ["default"]
    local = stimuli.load(str(tmp_path / "test.csv")).columns()
    assert stimuli.load("org/starter").columns() == local
