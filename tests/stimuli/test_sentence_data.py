"""Whole sentences as data: tables, regions, minimal pairs in many languages, test suites."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from invented_runs import json_lines, make_run
from sentence_files import FORMULAS, suite
from shown import page_of

from lmdiag import stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.asking.questions import Setting, row_keys
from lmdiag.diagnostics import SENTENCES
from lmdiag.results import load_run
from lmdiag.runs.inputs import load_inputs
from lmdiag.types import BadInput, Sentence

PAIRS = [
    {"sentence_good": f"The key to the {noun} is here.", "sentence_bad": f"The key {noun} are ",
     "UID": f"uid{i % 3}", "pairID": str(i), "field": "syntax", "linguistics_term": f"t{i % 2}",
     "simple_LM_method": bool(i % 2)}
    for i, noun in enumerate(("doors", "cars", "cases", "huts", "boxes", "rooms"))
]  # fmt: skip
LANGUAGES = {
    "eng": (("The dog barks.", "The dog bark."), ("The dogs bark.", "The dogs barks.")),
    "heb": (("הכלב נובח.", "הכלב נובחים."), ("הכלבים נובחים.", "הכלבים נובח.")),
}
"""Language -> pairs of a good and a bad sentence."""


def test_rows_of_sentences(tmp_path):
    """From all origins alike: test_tables.py."""
    shared = {"contrast": "1", "tense": "now"}
    rows = [
        {"id": "a", "sentence": "One.", "good": True} | shared,
        {"id": "b", "sentence": " Two. ", "good": False} | shared,
    ]
    loaded = stimuli.load(str(json_lines(tmp_path / "own.jsonl", *rows)))
    assert (loaded.form, loaded.compared) == ("sentences", True)
    columns = loaded.columns()
    assert tuple(columns)[:6] == tuple(column.name for column in SENTENCES)
    assert columns["sentence"] == ["One.", "Two."]  # without blanks at the edges
    diagnostic = loaded.diagnostic
    assert (loaded.task, diagnostic.name, diagnostic.asks) == ("own", "own", "sentence")
    assert diagnostic.levels(columns) == {}  # one level is no break-down
    assert stimuli.load([{"sentence": "One."}], "mine").columns()["id"] == ["mine-1"]
    blanks = stimuli.load([{"context": "A", "target": "b", "sentence": None, "sentence_good": 2}])
    assert blanks.form == ""  # they may have these columns


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (("She said", "(quietly)", "that"), "She said (quietly) that"),
        (("She said", "“no”", "."), "She said “no”."),
        (("It is Kim", "'s", "book", "…"), "It is Kim's book…"),
        (("", "", "Go", " ", "!"), "Go!"),
        ((", then", "two  blanks", "here "), ", then two  blanks here"),
    ],
)
def test_how_regions_are_joined(contents, sentence):
    """The same in columns and between bars; those of suites are in the test of suites."""
    columns = {f"region_{i}": [text] for i, text in enumerate(contents, start=1)}
    for data in (columns, {"sentence": ["|".join(contents)]}):
        rows = stimuli.load(data)
        assert rows.columns()["sentence"] == [sentence]
        (spans,) = rows.regions or ()
        assert [sentence[x["start"] : x["end"]] for x in spans] == [x.strip() for x in contents]


def test_a_sentence_beside_its_regions_is_left_out():
    columns = {"region_1": ["The dog"], "region_2": ["barks"], "sentence": ["The dog barks."]}
    rows = stimuli.load(columns)
    assert rows.texts("sentence") == ["The dog barks"]
    assert rows.notes == ("sentence: not read, since it is made of region_1 to region_2",)
    with pytest.raises(BadInput, match="sentence and region_1 are both there: leave --columns"):
        stimuli.load(columns, columns="sentence=sentence")


def test_regions_of_several_rows():
    texts = {"region_1": ["The cook", "A"], "region_10": [", slowly.", "cat"], "region_2": ["", ""]}
    rows = stimuli.load(texts)
    assert rows.columns()["sentence"] == ["The cook, slowly.", "A cat"]
    assert [[tuple(region.values()) for region in row] for row in rows.regions or ()] == [
        [(1, "", 0, 8), (2, "", 8, 8), (10, "", 8, 17)],
        [(1, "", 0, 1), (2, "", 1, 1), (10, "", 2, 5)],
    ]
    barred = stimuli.load({"sentence": ["The cook |stirred| the soup.", "one |bar"]})
    assert [len(regions) for regions in barred.regions or ()] == [3, 2]
    few = stimuli.load({"sentence": ["The cook |stirred| it.", "no bar", "no bar here"]})
    assert (few.regions, few.columns()["sentence"][0]) == (None, "The cook |stirred| it.")
    assert few.notes == ("regions: | is text, since 1 of 3 sentences have it",)
    with pytest.raises(BadInput, match=r"1 of 3 sentences have no \|: divide them"):
        stimuli.load({"sentence": ["The cook |stirred| it.", "a|b", "no bar here"]})
    assert stimuli.load({"sentence": ["no bar"], "regions": ["text"]}).regions is None
    # a region within a word cuts it
    cut = Setting(stimuli.load({"sentence": ["un|happy", "well |, yes"]}))
    keys = [Sentence("un happy", ()), Sentence("well, yes", (4,))]
    assert [*row_keys(cut, kind="masked", cased=True)] == keys


def test_minimal_pairs_are_two_rows_each(tmp_path):
    rows = stimuli.load(str(json_lines(tmp_path / "pairs.jsonl", *PAIRS)))
    assert (rows.task, rows.form) == ("pairs", "minimal_pairs")
    columns = rows.columns()
    assert columns["id"][:3] == ["uid0-0-good", "uid0-0-bad", "uid1-1-good"]
    assert columns["contrast"][:3] == ["uid0-0", "uid0-0", "uid1-1"]
    assert columns["good"] == [True, False] * 6
    assert columns["sentence"][:2] == ["The key to the doors is here.", "The key doors are"]
    levels = rows.diagnostic.levels(columns)
    assert set(levels) == {"UID", "linguistics_term"}  # one field; how to score is no break-down
    assert columns["simple_LM_method"][2:4] == [True, True]
    # without names, they have those of their file and line
    plain = [{name: pair[name] for name in ("sentence_good", "sentence_bad")} for pair in PAIRS]
    rows = stimuli.load(str(json_lines(tmp_path / "role88.jsonl", *plain)))
    assert rows.task == "role88.jsonl"  # sentences are not the diagnostic
    assert rows.columns()["contrast"][:3:2] == ["role88.jsonl-1", "role88.jsonl-2"]
    named = [pair | {"id": f"p{i}"} for i, pair in enumerate(plain)]
    assert stimuli.load(named).columns()["id"][:2] == ["p0-good", "p0-bad"]
    doubled = [pair | {"UID": "u", "pairID": "0"} for pair in plain]  # no names after all
    assert stimuli.load(doubled, "mine").columns()["contrast"][0] == "mine-1"
    # each of many paradigms is a level, and in a sample
    many = [PAIRS[0] | {"UID": f"u{i % 30}", "pairID": str(i)} for i in range(90)]
    rows = stimuli.load(many, limit=60)
    assert set(Counter(rows.diagnostic.levels(rows.columns())["UID"]).values()) == {2}
    assert len(set(rows.columns()["UID"])) == 30


def test_a_folder_of_minimal_pairs_is_one_task(tmp_path):
    folder = tmp_path / "blimp"
    folder.mkdir()
    json_lines(folder / "a.jsonl", *(pair | {"UID": "a"} for pair in PAIRS))
    plain = [{"sentence_good": "A.", "sentence_bad": "B.", "one_prefix_prefix": "The key"}]
    pq.write_table(pa.Table.from_pylist(plain), folder / "b.parquet")  # other columns, as BLiMP
    (folder / "LICENSE").write_text("of the data")
    rows = stimuli.load(f"{folder}/")
    assert (rows.task, rows.form, len(rows)) == ("blimp", "minimal_pairs", 14)
    columns = rows.columns()
    assert (columns["UID"][::12], columns["id"][-1]) == (["a", "b"], "b-1-bad")
    assert columns["one_prefix_prefix"][::12] == [None, "The key"]


def write_tsv(path, language):
    """Writes a file as MultiBLiMP's: the index of pandas, `sen`, `wrong_sen`, a phenomenon."""
    pairs = enumerate(LANGUAGES[language])
    rows = [f"{n}\tSV-{'#P'[n]}\t{good}\t{bad}\n" for n, (good, bad) in pairs]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\tphenomenon\tsen\twrong_sen\n" + "".join(rows), "utf-8")


@pytest.mark.parametrize("layout", ["{}.tsv", "{}/data.tsv"])
def test_a_folder_of_languages_is_one_task(tmp_path, layout):
    folder = tmp_path / "multiblimp"
    for language in LANGUAGES:
        write_tsv(folder / layout.format(language), language)
    rows = stimuli.load(str(folder))
    columns = rows.columns()
    assert (rows.task, rows.form, len(rows)) == ("multiblimp", "minimal_pairs", 8)
    assert columns["language"] == [language for language in LANGUAGES for _ in range(4)]
    assert columns["sentence"] == [t for pairs in LANGUAGES.values() for p in pairs for t in p]
    assert set(rows.diagnostic.levels(columns)) == {"language", "phenomenon"}
    name = layout.format("heb").removesuffix(".tsv")
    assert columns["id"][-1] == f"{name}-2-bad"
    # files that are no languages are paradigms
    write_tsv(folder / "binding_a.tsv", "heb")
    columns = stimuli.load(str(folder)).columns()
    assert "binding_a" in columns["UID"]
    assert "language" not in columns


def test_languages_may_be_a_column_and_repeat_the_names_of_pairs(tmp_path):
    """As TurBLiMP names its sentences, and as translations of one set do."""
    pairs = [{"good_sentence": a, "bad_sentence": b, "lang": "heb"} for a, b in LANGUAGES["heb"]]
    columns = stimuli.load(pairs, "mine").columns()
    assert columns["sentence"] == [text for pair in LANGUAGES["heb"] for text in pair]
    assert columns["contrast"] == ["mine-1", "mine-1", "mine-2", "mine-2"]
    assert columns["language"] == ["heb"] * 4
    assert not {"good_sentence", "bad_sentence", "lang"} & set(columns)
    for language in LANGUAGES:
        json_lines(tmp_path / f"{language}.jsonl", *PAIRS[:2])
    columns = stimuli.load(str(tmp_path)).columns()
    assert columns["contrast"][::4] == ["eng-uid0-0", "heb-uid0-0"]


@pytest.mark.slow
def test_words_run_in_the_direction_of_their_language(tmp_path, page):
    for language in LANGUAGES:
        write_tsv(tmp_path / "data" / f"{language}.tsv", language)
    run = make_run(tmp_path / "run", tmp_path / "data")
    (tmp_path / "page.html").write_text(page_of([load_run(run)]), "utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    page.locator("details.items summary").first.click()
    for language, backwards in (("eng", False), ("heb", True)):
        places = page.locator(f"#{language}-1 table.words tbody tr").evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect().x)"
        )
        assert len(set(places)) > 2
        assert places == sorted(places, reverse=backwards)


def test_the_rows_of_a_suite_and_of_a_folder_of_suites(tmp_path):
    rows = stimuli.load(str(json_lines(tmp_path / "a.json", suite())))
    assert (rows.task, rows.form, rows.compared) == ("a", "suites", False)
    columns = rows.columns()
    assert columns["id"][:2] == ["doors/1/match", "doors/1/mismatch"]
    assert (columns["item"][0], columns["condition"][0]) == ("doors/1", "match")
    assert columns["sentence"][:2] == ["The doors open, slowly", "The doors opens, slowly"]
    assert columns["regions"][0] == [
        {"number": 1, "name": "subject", "start": 0, "end": 9},
        {"number": 2, "name": "adverb", "start": 9, "end": 9},
        {"number": 3, "name": "verb", "start": 10, "end": 14},
        {"number": 4, "name": "end", "start": 14, "end": 22},
    ]
    assert columns["formulas"][0] == list(FORMULAS)
    assert set(columns["suite"]) == {"doors"}
    assert stimuli.load(suite()).columns() == columns
    json_lines(tmp_path / "windows.json", suite(meta={"metric": "sum"}))  # its name is the file's
    (tmp_path / "README.md").write_text("Suites, and no YAML.")
    rows = stimuli.load(str(tmp_path))
    assert (rows.task, rows.form) == (tmp_path.name, "suites")
    assert list(Counter(rows.columns()["suite"]).items()) == [("doors", 6), ("windows", 6)]
    few = stimuli.load(str(tmp_path), limit=9).columns()  # four whole items, two of each suite
    assert set(Counter(few["item"]).values()) == {2}
    assert Counter(few["suite"]) == {"doors": 4, "windows": 4}
    for content, message in (
        (suite(), r"windows.json, item 1, condition match: the column id has .* again, first in"),
        ([], "windows.json is not a test suite: one has `items`"),
    ):
        json_lines(tmp_path / "windows.json", content)
        with pytest.raises(BadInput, match=message):
            stimuli.load(str(tmp_path))


def test_the_public_suites(public_suites):
    columns = stimuli.load(str(public_suites)).columns()
    assert len(set(columns["suite"])) == 34
    assert len(set(columns["item"])) == 842
    formulas = zip(columns["suite"], columns["formulas"], strict=True)
    assert len({(name, text) for name, texts in formulas for text in texts}) == 36
    assert not any("  " in text or " ," in text for text in columns["sentence"])


def test_a_folder_with_a_script_alone_has_no_rows(tmp_path):
    (tmp_path / "items.py").write_text("import datasets\n")
    with pytest.raises(BadInput, match=r"has items.py and no rows: scripts are not read; name a"):
        stimuli.load(str(tmp_path))


def test_configs_of_several_forms_are_loaded_by_task(tmp_path):
    for name, content, message in (
        ("blanks.jsonl", [{"context": "A", "target": "b"}], "blanks.jsonl is not a file of minim"),
        ("pairs.jsonl", PAIRS, "blanks.jsonl is not a file of minimal pairs"),
        ("doors.json", [suite()], "is not a data set, it has no README.md: build one by"),
        ("README.md", [], "README.md names no `configs:`: build the data set by"),
    ):
        json_lines(tmp_path / name, *content)
        with pytest.raises(BadInput, match=message):
            stimuli.load(str(tmp_path))
    forms = {"pairs.jsonl": "minimal_pairs", "doors.json": "suites", "blanks.jsonl": ""}
    configs = [{"config_name": Path(name).stem, "data_files": name} for name in forms]
    (tmp_path / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    data = str(tmp_path)
    assert {task: stimuli.load(data, task).form for task in stimuli.tasks(data)} == {
        Path(name).stem: form for name, form in forms.items()
    }
    both = load_inputs(data, Protocol(tasks=("pairs", "doors")))
    assert [setting.stimuli.task for setting in both.settings] == ["pairs", "doors"]
    with pytest.raises(BadInput, match="pairs has whole sentences and blanks has blanks"):
        load_inputs(data, Protocol(tasks=("pairs", "blanks")))
