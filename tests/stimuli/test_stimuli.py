"""Stimuli from directories, files, memory and the Hub; fingerprints; errors by row and column."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from sentence_files import suite, write_set

from lmdiag import diagnostics, stimuli
from lmdiag.stimuli.stimulus_rows import fingerprint
from lmdiag.types import BadInput

HEADER = "id,item,condition,context,right_context,target,good,contrast,expected\n"
GOOD = 'a,1,x,"One, two and",.,three,true,c1,three|four\n'
BAD = "b,1,y,One and,,two,0,c1,\n"
TABLE = HEADER + GOOD + BAD


def saved(folder, text=TABLE, name="own.csv"):
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def refused(data, message):
    """Checks that data are refused in one line with this message."""
    with pytest.raises(BadInput) as error:
        stimuli.load(data)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def columns_of(*given, **options):
    return stimuli.load(*given, **options).columns()


# ---- the data set --------------------------------------------------------------------------------


def test_a_built_data_set(data_dir, demo_dir):
    rows = stimuli.load(str(data_dir), "role88")
    commit = "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
    assert (rows.source, rows.revision) == (str(data_dir), commit)
    assert stimuli.load(str(demo_dir), "neg136").revision is None


def test_a_sample_has_whole_contrasts_evenly_over_the_break_downs(demo_dir):
    few = columns_of(str(demo_dir), "neg136", limit=25)
    # contrasts have two rows, so there are twelve of them, three of each polarity in each subset;
    # those of nat are natural or less natural, as evenly as three can be
    assert Counter(few["subset"]) == {"simp": 12, "nat": 12}
    counts = Counter(zip(few["subset"], few["polarity"], few["natural"], strict=True))
    assert sorted(counts.values()) == [2, 2, 4, 4, 6, 6]
    assert Counter(few["good"]) == {True: 12, False: 12}
    assert set(Counter(few["contrast"]).values()) == {2}
    few = columns_of(str(demo_dir), "neg136", limit=6)  # fewer than combinations
    assert [len(set(few[name])) for name in ("polarity", "subset", "natural")] == [2, 2, 3]
    rows = [{"context": "A man", "target": f"w{i}", "voice": "ab"[i > 5]} for i in range(20)]
    assert Counter(columns_of(rows, limit=6)["voice"]) == {"a": 3, "b": 3}
    for limit, n_rows in ((104, 104), (103, 102), (1, 2)):  # a contrast at least
        assert len(stimuli.load(str(demo_dir), "neg136", limit=limit)) == n_rows
    with pytest.raises(BadInput, match="limit must be a whole number from 1 up, not 0"):
        stimuli.load(str(demo_dir), "neg136", limit=0)
    # a function of the contrasts and the seed: this is the list on any machine
    columns = columns_of(str(demo_dir), "cprag102")
    backwards = {name: values[::-1] for name, values in columns.items()}
    for data in (columns, backwards):
        few = columns_of(data, "cprag102", limit=6)
        assert {*few["contrast"]} == {"cprag102-14", "cprag102-9"}
        assert {*columns_of(data, "cprag102", limit=6, seed=1)["contrast"]} != {*few["contrast"]}


def test_the_fingerprint_depends_on_every_value_but_not_on_their_order():
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
    # Saved results are compared by it. The definition, worked by hand for one row [[],"a"] of the
    # columns ["expected","id"]: SHA-256 of the names' JSON followed by that of the row's JSON.
    row = hashlib.sha256(b'[[],"a"]').digest()
    expected = hashlib.sha256(b'["expected","id"]' + row).hexdigest()[:8]
    assert fingerprint({"id": ["a"], "expected": [[]]}) == expected


# ---- files of your own ---------------------------------------------------------------------------


def test_all_origins_give_the_same_rows(tmp_path):
    """Files in other layouts: test_tables.py."""
    whole = stimuli.load(saved(tmp_path))
    assert whole.compared
    columns = whole.columns()
    assert columns["context"] == ["One, two and", "One and"]
    assert (columns["right_context"], columns["good"]) == ([".", ""], [True, False])
    assert columns["expected"] == [["three", "four"], []]
    plain = whole.table.to_pylist()
    pq.write_table(whole.table, tmp_path / "own.parquet")
    lines = saved(tmp_path, "".join(json.dumps(row) + "\n" for row in plain), "own.jsonl")
    numbered = [row | {"item": 1} for row in plain]  # numbers are texts, too
    for data in (
        lines, str(tmp_path / "own.parquet"), plain, iter(plain), numbered, columns, whole.table,
        Dataset.from_list(plain), pd.DataFrame(plain, index=[7, 8]),
    ):  # fmt: skip
        assert stimuli.load(data).fingerprint == whole.fingerprint
    frame = pd.DataFrame({"context": ["A", "B"], "target": ["x", "y"], "n": [1.5, float("nan")]})
    assert columns_of(frame)["n"] == [1.5, None]


def test_context_and_target_are_enough(tmp_path):
    rows = stimuli.load(saved(tmp_path, "context,target\nOne,two\nTen,ten\n"))
    assert rows.columns() == {
        "id": ["own-1", "own-2"], "item": ["", ""], "condition": ["", ""],
        "context": ["One", "Ten"], "right_context": ["", ""], "target": ["two", "ten"],
        "expected": [[], []],
    }  # fmt: skip
    assert not rows.compared
    empty = f"{HEADER},,,One,,two,,,\n,,,Ten,,ten,,,\n"
    assert columns_of(saved(tmp_path, empty)) == rows.columns()  # as if these were not there
    name = [{"context": "In Python, __init__ and a_b are", "target": "names"}]
    assert len(stimuli.load(name)) == 1  # two underscores are not a blank


def test_every_further_column_of_your_own_is_a_break_down():
    """No name has a special meaning, also those of columns of the built-in diagnostics."""
    names = {c.name for d in diagnostics.built_in().values() for c in d.columns}
    for kind in (["one", "two"], [1, 2], [0.5, 1.5], [True, False]):
        rows = {"context": ["A", "B"], "target": ["x", "y"]} | dict.fromkeys(names, kind)
        levels = diagnostics.get("rows").levels(columns_of(rows))
        assert levels == {name: [str(value).lower() for value in kind] for name in names}
    for n, expected in ((12, ["condition"]), (13, [])):  # with more values, it is text
        values = [{"context": f"A man {i}", "target": "b", "condition": f"c{i}"} for i in range(n)]
        assert [*diagnostics.get("").levels(columns_of(values))] == expected


def test_a_file_named_after_a_diagnostic_is_one_if_it_has_its_columns(demo_dir, tmp_path):
    for name in (*diagnostics.built_in(), "verbs"):
        file = saved(tmp_path, name=f"{name}.csv")
        assert stimuli.tasks(file) == [stimuli.load(file).task] == [f"{name}.csv"]
    with pytest.raises(BadInput, match="the column natural is missing, which the diagnostic neg"):
        stimuli.load([{"context": "A", "target": "b"}], "neg136")
    (parquet,) = (demo_dir / "neg136").glob("*.parquet")
    rows = stimuli.load(str(shutil.copy(parquet, tmp_path / "neg136.parquet")))
    assert rows.task == "neg136"
    assert rows.fingerprint == stimuli.load(str(demo_dir), "neg136").fingerprint


def test_expected_words_and_missing_values(tmp_path):
    for expected, words in (
        ("bird|tree", ["bird", "tree"]), ("bird | tree", ["bird", "tree"]),
        ('["bird", "tree"]', ["bird", "tree"]), ("['bird', 'tree']", ["bird", "tree"]),
        (["1,000"], ["1,000"]), (",", [","]), (None, []), ([], []),
    ):  # fmt: skip
        rows = [{"context": "A", "target": "b", "expected": expected}]
        assert columns_of(rows)["expected"] == [words]
    # as R's `write.csv` writes a data frame: names of rows, and NA
    text = (
        '"","context","right_context","target","expected","condition","voice"\n'
        '"1","The cat sat on the",NA,"mat","mat","x","active"\n'
        '"2","The cat sat on a","again","mat",NA,NA,NA\n'
    )
    columns = columns_of(saved(tmp_path, text))
    assert (columns["right_context"], columns["condition"]) == (["", "again"], ["x", ""])
    assert (columns["expected"], columns["voice"]) == ([["mat"], []], ["active", None])
    assert "" not in columns
    line = json.dumps({"context": "Sodium is written", "target": "NA", "expected": ["NA"]})
    columns = columns_of(saved(tmp_path, line, "own.jsonl"))
    assert (columns["target"], columns["expected"]) == (["NA"], [["NA"]])


# ---- errors --------------------------------------------------------------------------------------


PAIR = {"sentence_good": "A.", "sentence_bad": "B."}
MISTAKES_IN_MEMORY = [
    # any rows
    ([], "rows has no rows"),
    (3, "cannot read stimuli from int: give the name of a data set, a file, a DataFrame"),
    ([{"text": "A."}], "every row needs context and target, or a sentence, or sentence_good"),
    ({"context": ["A"], "target": []}, "the columns differ in length: context 1, target 0"),
    ({"context": ["A"] * 2, "target": ["x"] * 2, "dose": [1, "a"]}, "dose cannot be stored"),
    ({"context": ["A\ud800"], "target": ["x"]}, "the column context cannot be stored: "),
    # a word at a blank
    ([{"id": "a", "context": "A", "target": "b"}, {"context": "A"}],
     "rows, row 2: the column id is empty: fill"),
    ({"context": ["A"], "target": [2.5]}, "row 1: the column target: expected text, not 2.5"),
    *(
        ({"context": ["A"], "target": ["b"], "expected": [value]}, "row 1: the column expec")
        for value in ("bird, tree", ["bird, tree"], [" bird"], '["bird", 3]', "['a' 'b']", 3, "a|")
    ),
    # sentences
    ([{"sentence": "A."}, {"sentence": " "}], "rows, row 2: the column sentence is empty"),
    ([{"sentence": "A ___ b."}], "the column sentence has a blank in it, '___': write whole"),
    ({"region_1": [""]}, "regions do not join to a sentence"),
    ({"region_1": ["A"], "region_2": [None]}, "row 1: the column region_2 is NA or NaN: writ"),
    ({"region_1": [3]}, "a region must be text, not 3"),
    ({"region_1": ["A"], "regions": ["A"]}, "the column regions is made of the regions"),
    # pairs
    ([PAIR, PAIR | {"sentence_bad": ""}], "row 2: the column sentence_bad is empty"),
    ([PAIR | {"sentence_good": None}], "the column sentence_good is empty in 1 of"),
    ([PAIR | {"sentence": "A."}], "sentence is made of sentence_good and sentence_bad"),
    ([PAIR | {"id": "x", "n": n} for n in (1, 2)], "row 2: the column id has 'x-good' again, firs"),
    ([{"sentence_good": "A."}], "; every pair needs both"),
    ([{"sen": "A.", "wrong_sen": "B."}, {"sen": "A."}], "row 2: the column wrong_sen is empty"),
    ([{"sen": "A."}], "every row needs context and target"),  # alone, it may be anything
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), MISTAKES_IN_MEMORY)
def test_mistakes_in_memory_name_row_and_column(data, message):
    refused(data, message)


MISTAKES = [
    (",0,", ",no,", "own.csv:3: the column good: expected true or false, not 'no'"),
    (",0,", ",,", "own.csv:3: the column good is empty"),
    ("\nb,", "\n,", "own.csv:3: the column id is empty"),
    ("\nb,", "\na,", "own.csv:3: the column id has 'a' again"),
    (",0,", ",1,", "own.csv:2: the column contrast: 'c1' has 2 good and 0 bad rows"),
    ("0,c1", "0,c2", "'c1' has 1 good and 0 bad rows, it needs exactly one good and"),
    (
        "contrast",
        "pair",
        "own.csv: there is a column good but no contrast: say which rows are",
    ),
    ("y,One and", "y,One ____ and", "own.csv:3: the column context has a blank in it, '____'"),
    (",.,", ",[blank] it,", "own.csv:2: the column right_context has a blank in it, '[blank]'"),
]
SUITE_MISTAKES = [
    ('"predictions"', '"predictions": [], "others"', "own.json: predictions is empty"),
    ('"region_number": 2', '"region_number": true',
     "own.json, item 1, condition 1, region 2: region_number must be a valid integer, not True"),
    ('"region_number": 1, ', "", "item 1, condition 1, region 1: region_number is missing"),
    ('"metric": "sum"', '"metric": "mean"', "own.json: meta.metric must be 'sum'"),
    ('"meta"', '"meta": "x", "others"', "own.json: meta must be an object"),
    ("(2;%match%) = 0", "(3;%match%) <", "prediction 5: formula '(3;%match%) <': expected"),
    ("(2;%match%) = 0", "(2;%other%) = 0",
     "item 1: prediction 5 reads (2;%other%), but there is no such condition: choose from match, "),
    ("(2;%match%) = 0", "(9;%match%) = 0",
     "prediction 5 reads (9;%match%), but there is no such region: choose from [1, 2, 3, 4]"),
    ('"item_number": 2', '"item_number": 1', "own.json, item 1: item_number is there twice"),
    ('"condition_name": "mismatch"', '"condition_name": "match"', "match is there twice"),
    ('2, "conditions": [{"condition_name": "match"', '2, "conditions": [{"condition_name": "x"',
     "own.json, item 2: conditions: match is not in this item and in item 1, but in one of the"),
    ('"region_number": 2', '"region_number": 1', "item 1, condition match: region_number: give "),
    ("really", "___", "item 2, condition match: content has a blank in it, '___'"),
]  # fmt: skip
ORIGINALS = {"own.csv": TABLE, "own.json": json.dumps(suite())}
"""File -> text, in which the mistakes above are made by replacing parts of it."""


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [("own.csv", *case) for case in MISTAKES] + [("own.json", *case) for case in SUITE_MISTAKES],
)
def test_mistakes_in_a_file_name_row_and_column(tmp_path, name, old, new, message):
    assert old in ORIGINALS[name]
    refused(saved(tmp_path, ORIGINALS[name].replace(old, new), name), message)


# ---- where data are found ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "task", "message"),
    [
        ("{tmp}/lmdiag", None, "no data at .*/lmdiag: build the data set by `lmdiag build`"),
        ("{demo}/READM.md", None, r"there is no file .*did you mean '.*README.md'\?\): na"),
        ("{tmp}/own.csv", None, r"^there is no file .*/own.csv: name a file that exists$"),
        (__file__, None, "cannot be read as data: give a directory or a file ending in .csv, .tsv"),
        ("{demo}", "negg", r"no task 'negg' \(did you mean 'neg136'\?\): choose from cprag102, "),
        ("{demo}", None, "has several tasks: choose from cprag102, role88"),
        ("../no-such", None, r"data set \.\./no-such is not a folder here .* Repo id must"),
    ],
)
def test_unknown_data_sets_and_tasks_are_named(demo_dir, tmp_path, data, task, message):
    with pytest.raises(BadInput, match=message):
        stimuli.load(data.format(tmp=tmp_path, demo=demo_dir), task)


def test_a_directory_of_your_own_with_configs(tmp_path):
    """A card and csv files in parts, split `train`, as some people push them to the Hub."""
    saved(tmp_path, name="part-1.csv")
    second = HEADER + (GOOD + BAD).replace("a,1", "d,2").replace("b,1", "e,2")
    saved(tmp_path, second.replace("c1", "c2"), "part-2.csv")
    splits = "{config_name: x, data_files: [{split: train, path: part-*.csv}]}"
    saved(tmp_path, f"---\nconfigs: [{splits}]\n---\n", "README.md")
    assert columns_of(str(tmp_path), "x")["id"] == ["a", "b", "d", "e"]
    assert columns_of(str(tmp_path), "x", filter="item=2")["id"] == ["d", "e"]
    (tmp_path / "part-3.csv").write_bytes((tmp_path / "part-1.csv").read_bytes())
    with pytest.raises(
        BadInput, match=r"part-3.csv:2: the row is identical to \S*part-1.csv:2 \(2"
    ):
        stimuli.load(str(tmp_path), "x")
    assert len(stimuli.load(str(tmp_path), "x", allow_duplicates=True)) == 4
    (tmp_path / "part-3.csv").unlink()
    saved(tmp_path, second, "part-2.csv")
    outside = "is not a path inside the data"
    for front, message in {
        f"configs: [{splits}]": r"part-1.csv:2: the column contrast: 'c1' has 2 good and 2",
        "configs: [": "README.md: not valid YAML in line 1",
        "configs: [{config_name: x, data_files: gone.csv}]": "no file gone.csv for x: build it",
        f"configs: [{{config_name: x, data_files: '{'[' * 100_000}'}}]": outside,
        "configs: [{config_name: x, data_files: ../secret.csv}]": outside,
        "configs: [{config_name: x, data_files: /etc/passwd}]": outside,
        "configs: [{config_name: x, data_files: [{split: a, path: a}, {split: b, path: b}]}]":
            "no split 'test' among a, b",
    }.items():  # fmt: skip
        saved(tmp_path, f"---\n{front}\n---\n", "README.md")
        with pytest.raises(BadInput, match=message):
            stimuli.load(str(tmp_path), "x")


def test_verbs(data_dir, demo_dir, tmp_path):
    for text in (
        "singular,plural\ngoes,go\nhas,have\n",
        "goes,go\nhas,have\n",
        "idx,sing,plur,freq\n_,goes,go,_\n_,has,have,_\n",
        "plural,singular\ngo,goes\n\nhave , has\nhave,has\n",
    ):
        assert stimuli.load_verbs(saved(tmp_path, text)) == [("goes", "go"), ("has", "have")]
    for text, message in {
        "singular,plural\ngoes,\n": "own.csv:2: expected a singular and a plural form",
        "a,b,c\n": "own.csv:1: name the columns singular,plural",
        "singular,plural\n": "own.csv has no verbs",
    }.items():
        with pytest.raises(BadInput, match=message):
            stimuli.load_verbs(saved(tmp_path, text))
    pairs = stimuli.load_verbs(str(demo_dir))
    assert len(pairs) == len(set(pairs)) == 461
    assert pairs[:2] == [("is", "are"), ("has", "have")]
    with pytest.raises(BadInput, match="has no config verbs: name a csv of singular,plural by"):
        stimuli.load_verbs(str(data_dir))


# ---- the Hub: its real client, and a server on the loopback --------------------------------------


def test_data_sets_of_the_hub_are_their_directories_and_are_kept(api, demo_dir, monkeypatch):
    api.create_repo("org/lmdiag", repo_type="dataset")
    push = {"repo_id": "org/lmdiag", "repo_type": "dataset"}
    published = api.upload_folder(folder_path=demo_dir, **push).oid
    assert stimuli.tasks("org/lmdiag") == stimuli.tasks(str(demo_dir))
    remote, local = (stimuli.load(data, "role88") for data in ("org/lmdiag", str(demo_dir)))
    assert remote.fingerprint == local.fingerprint
    assert (remote.source, remote.revision) == ("org/lmdiag", published)
    assert stimuli.load_verbs("org/lmdiag") == stimuli.load_verbs(str(demo_dir))
    # revisions are resolved to commits
    later = api.upload_file(path_or_fileobj=b"later", path_in_repo="note.txt", **push).oid
    for revision, commit in {"": later, "@main": later, f"@{published}": published}.items():
        rows = stimuli.load(f"org/lmdiag{revision}", "neg136")
        assert (rows.source, rows.revision) == ("org/lmdiag", commit)
    with pytest.raises(BadInput, match="from the Hub at revision v9: it has no such revision"):
        stimuli.load("org/lmdiag@v9", "neg136")
    with pytest.raises(BadInput, match=r"org/nothing is not a folder here .*: not found, or not"):
        stimuli.tasks("org/nothing")
    # what was loaded needs no network; cprag102 was not
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert stimuli.load("org/lmdiag", "neg136").revision == later
    for data, task in (("org/lmdiag", "cprag102"), ("some-org/lmdiag", None)):
        with pytest.raises(BadInput, match=f"{data} .* not in the cache, and the Hub cannot be"):
            stimuli.load(data, task)


def test_a_data_set_without_configs_is_its_files(api, tmp_path):
    """Those of the split `test` if they are named so; text files are known by their names."""
    saved(tmp_path, TABLE.replace("a,1", "d,1"), "train.csv")
    texts = write_set(tmp_path / "texts", "ROLE-1500", 4)
    saved(texts.parent, "---\nlicense: mit\n---\nA description.\n", "README.md")
    for repo, task, file in (
        ("org/starter", "default", Path(saved(tmp_path, TABLE, "test.csv"))),
        ("org/ROLE-1500", "role1500", texts),
    ):
        api.create_repo(repo, repo_type="dataset")
        api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=file.parent)
        assert stimuli.tasks(repo) == [task]
        assert columns_of(repo) == columns_of(str(file))


@pytest.mark.parametrize(
    ("row", "options", "texts"),
    [
        (
            {"Context1": "A dog barks.", "Context2": "A cat barks.", "Target1": "It is a dog.",
             "Target2": "It is a cat."},
            {"columns": ["context=Context1"], "wide": ["Target1", "Target2"],
             "good": "condition=Target1"},
            [("A dog barks.", "It is a dog."), ("A dog barks.", "It is a cat.")],
        ),
        (
            {"prefix_acceptable": "A robin", "prefix_unacceptable": "A dog",
             "property_phrase": "can fly."},
            {"columns": ["target=property_phrase"],
             "wide": ["prefix_acceptable", "prefix_unacceptable"],
             "good": "condition=prefix_acceptable"},
            [("A robin", "can fly."), ("A dog", "can fly.")],
        ),
    ],
)  # fmt: skip
def test_pairs_of_babylm_are_read_from_wide_columns(row, options, texts):
    """EWoK: one context and two targets; COMPS: two contexts and one target."""
    columns = stimuli.load([row], "own", **options, contrast=["item"]).columns()
    assert [*zip(columns["context"], columns["target"], strict=True)] == texts
    assert (columns["good"], columns["contrast"]) == ([True, False], ["1", "1"])
