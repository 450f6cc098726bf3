"""Whole sentences as data: tables, regions, minimal pairs in many languages, test suites."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Commands
from suites import CONDITIONS, FORMULAS, suite

from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.diagnostics import SENTENCES
from lmdiag.protocol import Protocol
from lmdiag.questions import Setting, row_keys
from lmdiag.runs.inputs import load_inputs
from lmdiag.types import BadInput, Sentence

if TYPE_CHECKING:
    from playwright.sync_api import Page

TABLE = "id;sentence;good;contrast;tense\na;She sings.;true;1;now\nb;She sing.;false;1;now\n"
PAIRS = [
    {"sentence_good": f"The key to the {noun} is here.", "sentence_bad": f"The key {noun} are ",
     "UID": f"uid{i % 3}", "pairID": str(i), "field": "syntax", "linguistics_term": f"t{i % 2}",
     "simple_LM_method": bool(i % 2)}
    for i, noun in enumerate(("doors", "cars", "cases", "huts", "boxes", "rooms"))
]  # fmt: skip
LANGUAGES = {
    "eng": (("The dog barks.", "The dog bark."), ("The dogs bark.", "The dogs barks.")),
    "heb": (("הכלב נובח.", "הכלב נובחים."), ("הכלבים נובחים.", "הכלבים נובח.")),
    "tur": (("Ben geldim.", "Ben geldin."), ("Sen geldin.", "Sen geldim.")),
}
"""Language -> pairs of a good and a bad sentence."""


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def saved(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value), "utf-8")
    return str(path)


def refused(data: Any, message: str) -> None:
    """Checks that data are refused in one line with this message."""
    with pytest.raises(BadInput) as error:
        stimuli.load(data)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# ---- tables --------------------------------------------------------------------------------------


def test_a_table_of_sentences(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(TABLE)
    rows = stimuli.load(str(tmp_path / "own.csv"))
    assert (rows.task, rows.form, rows.compared) == ("own", "sentences", True)
    columns = rows.columns()
    assert tuple(columns) == (*(column.name for column in SENTENCES), "tense")
    assert columns["sentence"] == ["She sings.", "She sing."]
    assert (rows.diagnostic.name, rows.diagnostic.asks) == ("own", "sentence")
    assert rows.diagnostic.levels(columns) == {}  # one level is no break-down
    rows = stimuli.load([{"context": "A", "target": "b", "sentence": None, "sentence_good": 2}])
    assert (rows.form, rows.columns()["sentence"]) == ("", [None])  # blanks may have these columns


def test_all_origins_of_sentences_give_the_same_rows(tmp_path: Path) -> None:
    texts = (("a", "One.", 1), ("b", " Two. ", 2))
    rows = [{"id": name, "sentence": text, "word": n} for name, text, n in texts]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    (tmp_path / "own.tsv").write_text("sentence\tid\tword\nOne.\ta\t1\nTwo. \tb\t2\n")
    given = [rows, pd.DataFrame(rows), lines(tmp_path / "j.jsonl", rows), f"{tmp_path}/p.parquet"]
    loaded = [stimuli.load(data) for data in given]
    assert len({data.fingerprint for data in loaded}) == 1
    for data in (*loaded, stimuli.load(str(tmp_path / "own.tsv"))):
        assert data.form == "sentences"
        assert data.columns()["sentence"] == ["One.", "Two."]  # without blanks at the edges
    assert stimuli.load([{"sentence": "One."}], "mine").columns()["id"] == ["mine-1"]


DIVIDED = {"item": ["1", "1"], "region_1": ["The cook", "A"], "region_2": ["", None],
           "region_10": [", slowly.", "cat"]}  # fmt: skip


def test_regions_in_columns_and_between_bars_are_the_same_sentences() -> None:
    columns = stimuli.load(DIVIDED)
    assert columns.columns()["sentence"] == ["The cook, slowly.", "A cat"]
    spans = [[tuple(region.values()) for region in row] for row in columns.regions or ()]
    assert spans == [
        [(1, "", 0, 8), (2, "", 8, 8), (10, "", 8, 17)],
        [(1, "", 0, 1), (2, "", 1, 1), (10, "", 2, 5)],
    ]  # fmt: skip
    barred = stimuli.load({"sentence": ["The cook |stirred| the soup.", "no bar"]})
    assert barred.columns()["sentence"] == ["The cook stirred the soup.", "no bar"]
    assert [len(regions) for regions in barred.regions or ()] == [3, 1]
    assert stimuli.load({"sentence": ["no bar"], "regions": ["text"]}).regions is None
    # a region within a word cuts it
    for text, key in {
        "un|happy": Sentence("un happy", ()), "well |, yes": Sentence("well, yes", (4,)),
    }.items():  # fmt: skip
        setting = Setting(stimuli.load({"sentence": [text]}))
        assert [*row_keys(setting, kind="masked", cased=True)] == [key]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"sentence": "A."}, {"sentence": " "}], "rows, row 2: the column sentence is empty"),
        ([{"sentence": "A."}, {}], "rows, row 2: the column sentence is empty"),
        ([{"sentence": 1.5}], "row 1: the column sentence: expected text, not 1.5"),
        ([{"sentence": "A ___ b."}], "the column sentence has a blank in it, '___': write whole"),
        ([{"text": "A."}], "every row needs context and target, or a sentence, or sentence_good"),
        ([{"sentence": "A.", "context": "A"}], "every row needs context and target"),
        ({"region_1": ["A"], "sentence": ["A"]}, "columns sentence and region_1 are both there"),
        ({"region_1": [""]}, "regions do not join to a sentence"),
        ({"region_1": [3]}, "a region must be text, not 3"),
        ({"region_1": ["A"], "regions": ["A"]}, "the column regions is made of the regions"),
        ([PAIRS[0], PAIRS[1] | {"sentence_bad": ""}], "row 2: the column sentence_bad is empty"),
        ([PAIRS[0] | {"sentence_good": "A [BLANK]."}], "the column sentence_good has a blank"),
        ([PAIRS[0] | {"sentence_good": None}], "the column sentence_good is missing or not"),
        ([PAIRS[0] | {"sentence": "A."}], "sentence is made of sentence_good and sentence_bad"),
        ([{"sentence_good": "A."}], "; every pair needs both"),
        ([{"sen": "A.", "wrong_sen": " "}], "rows, row 1: the column wrong_sen is empty: write a"),
        ([{"sen": "A.", "wrong_sen": "B."}, {"sen": "A."}], "row 2: the column wrong_sen is miss"),
        ([{"sen": "A."}], "every row needs context and target"),  # alone, it may be anything
    ],
)
def test_mistakes_in_sentences_and_pairs_name_row_and_column(rows: Any, message: str) -> None:
    refused(rows, message)


def test_sentences_are_no_built_in_diagnostic(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="which the diagnostic role88 has: give rows of your own"):
        stimuli.load([{"sentence": "A."}], "role88")
    for name in ("role88.jsonl", "verbs.jsonl"):
        assert stimuli.tasks(lines(tmp_path / name, PAIRS)) == [name]


# ---- minimal pairs -------------------------------------------------------------------------------


def test_minimal_pairs_are_two_rows_each(tmp_path: Path) -> None:
    rows = stimuli.load(lines(tmp_path / "pairs.jsonl", PAIRS))
    assert (rows.task, rows.form) == ("pairs", "minimal_pairs")
    columns = rows.columns()
    assert columns["id"][:3] == ["uid0-0-good", "uid0-0-bad", "uid1-1-good"]
    assert columns["contrast"][:3] == ["uid0-0", "uid0-0", "uid1-1"]
    assert columns["good"] == [True, False] * 6
    assert columns["sentence"][:2] == ["The key to the doors is here.", "The key doors are"]
    levels = rows.diagnostic.levels(columns)
    assert set(levels) == {"UID", "linguistics_term"}  # one field; how to score is no break-down
    assert columns["simple_LM_method"][2:4] == [True, True]


def test_pairs_without_names_are_named_after_their_file_and_line(tmp_path: Path) -> None:
    plain = [{name: pair[name] for name in ("sentence_good", "sentence_bad")} for pair in PAIRS]
    rows = stimuli.load(lines(tmp_path / "own.jsonl", plain))
    assert rows.columns()["contrast"][:3] == ["own-1", "own-1", "own-2"]
    named = [pair | {"id": f"p{i}"} for i, pair in enumerate(plain)]
    assert stimuli.load(named).columns()["id"][:2] == ["p0-good", "p0-bad"]
    doubled = [pair | {"UID": "u", "pairID": "0"} for pair in plain]  # no names after all
    assert stimuli.load(doubled, "mine").columns()["contrast"][0] == "mine-1"


def test_a_folder_of_minimal_pairs_is_one_task(tmp_path: Path) -> None:
    folder = tmp_path / "blimp"
    folder.mkdir()
    lines(folder / "a.jsonl", [pair | {"UID": "a"} for pair in PAIRS])
    further = {"one_prefix_prefix": "The key"}  # columns of BLiMP's files differ
    lines(folder / "b.jsonl", [pair | {"UID": "b"} | further for pair in PAIRS])
    plain = [{"sentence_good": "A.", "sentence_bad": "B."}]
    pq.write_table(pa.Table.from_pylist(plain), folder / "c.parquet")
    (folder / "LICENSE").write_text("of the data")
    assert stimuli.tasks(str(folder)) == ["blimp"]
    rows = stimuli.load(f"{folder}/")
    assert (rows.task, rows.form, len(rows)) == ("blimp", "minimal_pairs", 26)
    assert rows.columns()["UID"][::12] == ["a", "b", "c"]
    assert rows.columns()["id"][-2:] == ["c-1-good", "c-1-bad"]
    assert rows.columns()["one_prefix_prefix"][::12] == [None, "The key", None]


def test_every_paradigm_is_a_level_and_in_a_sample() -> None:
    pairs = [
        {"sentence_good": f"A {i}.", "sentence_bad": f"B {i}.", "UID": f"u{i % 67}", "pairID": i}
        for i in range(670)
    ]
    rows = stimuli.load(pairs)
    assert len(set(rows.diagnostic.levels(rows.columns())["UID"])) == 67
    few = stimuli.load(pairs, limit=134).columns()
    assert set(Counter(few["UID"]).values()) == {2}  # a pair of each
    assert set(Counter(few["contrast"]).values()) == {2}


# ---- minimal pairs in many languages -------------------------------------------------------------


def write_tsv(path: Path, language: str) -> None:
    """Writes a file as MultiBLiMP's: the index of pandas, `sen`, `wrong_sen`, a phenomenon."""
    pairs = enumerate(LANGUAGES[language])
    rows = [f"{n}\tSV-{'#P'[n]}\t{good}\t{bad}\n" for n, (good, bad) in pairs]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\tphenomenon\tsen\twrong_sen\n" + "".join(rows), "utf-8")


def test_columns_of_published_sets(tmp_path: Path) -> None:
    """MultiBLiMP, TurBLiMP and BLiMP name the two sentences differently; the rows are the same."""
    pairs = (
        ("sen", "wrong_sen"), ("good_sentence", "bad_sentence"), ("sentence_good", "sentence_bad"),
    )  # fmt: skip
    for (good, bad), suffix in product(pairs, ("csv", "tsv", "jsonl")):
        names = [good, bad, "phenomenon", "lang"]
        frame = pd.DataFrame([[*p, "agreement", "heb"] for p in LANGUAGES["heb"]], columns=names)
        path = tmp_path / f"mine.{suffix}"
        if suffix == "jsonl":
            frame.to_json(path, orient="records", lines=True, force_ascii=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
        rows = stimuli.load(str(path))
        columns = rows.columns()
        assert rows.form == "minimal_pairs"
        assert columns["sentence"] == [text for pair in LANGUAGES["heb"] for text in pair]
        assert columns["contrast"] == ["mine-1", "mine-1", "mine-2", "mine-2"]
        assert columns["language"] == ["heb"] * 4
        assert not {good, bad, "lang"} & set(columns)


@pytest.mark.parametrize("layout", ["{}.tsv", "{}/data.tsv"])
def test_a_folder_of_languages_is_one_task(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "multiblimp"
    for language in LANGUAGES:
        write_tsv(folder / layout.format(language), language)
    rows = stimuli.load(str(folder))
    columns = rows.columns()
    assert (rows.task, rows.form, len(rows)) == ("multiblimp", "minimal_pairs", 12)
    assert columns["language"] == [language for language in LANGUAGES for _ in range(4)]
    assert columns["sentence"] == [t for pairs in LANGUAGES.values() for p in pairs for t in p]
    assert set(rows.diagnostic.levels(columns)) == {"language", "phenomenon"}
    name = layout.format("tur").removesuffix(".tsv")
    assert columns["id"][-1] == f"{name}-2-bad"
    # files that are no languages are paradigms
    write_tsv(folder / "binding_a.tsv", "tur")
    columns = stimuli.load(str(folder)).columns()
    assert "binding_a" in columns["UID"]
    assert "language" not in columns


def test_languages_may_repeat_the_names_of_pairs(tmp_path: Path) -> None:
    """As translations of one set do."""
    for language, pairs in LANGUAGES.items():
        named = [{"UID": "number", "pairID": n} for n in range(len(pairs))]
        texts = [dict(zip(("sentence_good", "sentence_bad"), pair, strict=True)) for pair in pairs]
        lines(tmp_path / f"{language}.jsonl", [a | b for a, b in zip(texts, named, strict=True)])
    columns = stimuli.load(str(tmp_path)).columns()
    assert columns["contrast"][::4] == ["eng-number-0", "heb-number-0", "tur-number-0"]


@pytest.fixture(scope="module")
def run_of_languages(
    tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run on a folder of three languages, with its report."""
    root = tmp_path_factory.mktemp("languages")
    for language in LANGUAGES:
        write_tsv(root / "multiblimp" / f"{language}.tsv", language)
    arguments = ["--model", tiny_models["gpt2"], "--data", root / "multiblimp"]
    assert main(["run", *map(str, arguments), "--output", str(root / "runs"), "--quiet"]) == 0
    return next((root / "runs").rglob("predictions.parquet")).parent


@pytest.mark.slow
def test_a_table_by_language_of_the_sum_and_the_mean(
    run_of_languages: Path, command: Commands
) -> None:
    code, text, _ = command("report", run_of_languages, "--format", "markdown")
    assert code == 0
    heading = next(line for line in text.splitlines() if "per token" in line)
    assert "sensitivity" in heading.replace("sensitivity, mean", "")
    for language in LANGUAGES:
        assert any(line.startswith(f"| {language} | 2 |") for line in text.splitlines())


@pytest.mark.slow
def test_words_run_in_the_direction_of_their_language(run_of_languages: Path, page: Page) -> None:
    page.goto((run_of_languages / "report.html").as_uri())
    page.locator("details.items summary").first.click()
    places = {
        language: page.locator(f"#{language}-1 table.words tbody tr").evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect().x)"
        )
        for language in LANGUAGES
    }
    assert places["eng"] == sorted(places["eng"])
    assert places["heb"] == sorted(places["heb"], reverse=True)
    assert len(set(places["heb"])) == 3  # two words and the sum


# ---- test suites ---------------------------------------------------------------------------------


def test_the_rows_of_a_suite(tmp_path: Path) -> None:
    rows = stimuli.load(saved(tmp_path / "file.json", suite()))
    assert (rows.task, rows.form, rows.compared) == ("file", "suites", False)
    columns = rows.columns()
    assert columns["id"][:2] == ["doors/1/match", "doors/1/mismatch"]
    assert (columns["item"][0], columns["condition"][0]) == ("doors/1", "match")
    assert columns["sentence"][:3] == [
        "The doors open, slowly", "The doors opens, slowly", "A key really fits.",
    ]  # fmt: skip
    assert columns["regions"][0] == [
        {"number": 1, "name": "subject", "start": 0, "end": 9},
        {"number": 2, "name": "adverb", "start": 9, "end": 9},
        {"number": 3, "name": "verb", "start": 10, "end": 14},
        {"number": 4, "name": "end", "start": 14, "end": 22},
    ]
    assert columns["formulas"][0] == list(FORMULAS)
    assert set(columns["suite"]) == {"doors"}
    assert stimuli.load(suite()).columns() == columns


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (("She said", "(quietly)", "that"), "She said (quietly) that"),
        (("She said", "“no”", "."), "She said “no”."),
        (("It is Kim", "'s", "book", "…"), "It is Kim's book…"),
        (("", "", "Go", " ", "!"), "Go!"),
        ((", then", "go"), ", then go"),
        (("two  blanks", "here "), "two  blanks here"),
    ],
)
def test_how_regions_are_joined(contents: tuple[str, ...], sentence: str) -> None:
    given = suite(predictions=[{"type": "formula", "formula": "(*;%a%) > 0"}])
    regions = [{"region_number": i, "content": text} for i, text in enumerate(contents, start=1)]
    conditions = [{"condition_name": "a", "regions": regions}]
    rows = stimuli.load(given | {"items": [{"item_number": 1, "conditions": conditions}]})
    assert rows.columns()["sentence"] == [sentence]
    parts = [sentence[span["start"] : span["end"]] for span in rows.columns()["regions"][0]]
    assert parts == [text.strip() for text in contents]


def test_a_folder_of_suites_is_one_task(tmp_path: Path) -> None:
    saved(tmp_path / "a.json", suite())
    saved(tmp_path / "windows.json", suite(meta={"metric": "sum"}))  # its name is the file's
    (tmp_path / "README.md").write_text("Suites, and no YAML.")
    rows = stimuli.load(str(tmp_path))
    assert (rows.task, rows.form) == (tmp_path.name, "suites")
    assert list(Counter(rows.columns()["suite"]).items()) == [("doors", 6), ("windows", 6)]
    saved(tmp_path / "windows.json", suite())
    with pytest.raises(BadInput, match=r"windows.json, item 1, condition match: .* again, "):
        stimuli.load(str(tmp_path))


def test_a_sample_of_suites_has_whole_items(tmp_path: Path) -> None:
    names = [f"s{i}" for i in range(30)]
    for name in names:
        saved(tmp_path / f"{name}.json", suite(meta={"name": name}))
    few = stimuli.load(str(tmp_path), limit=65).columns()
    assert len(few["id"]) == 64  # 32 items of two conditions
    assert set(Counter(few["item"]).values()) == {len(CONDITIONS)}
    assert set(Counter(few["suite"])) == set(names)  # one of each suite, then a second of two


def test_the_public_suites(public_suites: Path) -> None:
    columns = stimuli.load(str(public_suites)).columns()
    assert len(set(columns["suite"])) == 34
    assert len(set(columns["item"])) == 842
    formulas = zip(columns["suite"], columns["formulas"], strict=True)
    assert len({(name, text) for name, texts in formulas for text in texts}) == 36
    assert not any("  " in text or " ," in text for text in columns["sentence"])
    only = stimuli.load(str(public_suites / "center_embed.json"))
    assert (only.task, len(only)) == ("center_embed", 56)


Edit = Callable[[dict[str, Any]], object]


def _condition(given: dict[str, Any], item: int = 0, condition: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = given["items"][item]["conditions"][condition]
    return found


def _formula(text: Any) -> Edit:
    return lambda given: given.update(predictions=[{"type": "formula", "formula": text}])


BAD_SUITES: dict[str, Edit] = {
    # fields
    "my.json is not a test suite: one has `items`": lambda s: s.pop("items"),
    "my.json: predictions is empty": lambda s: s.update(predictions=[]),
    "my.json, prediction 1: formula must be a valid string, not 3": _formula(3),
    "my.json, prediction 1: type must be 'formula', not 'mean'":
        lambda s: s["predictions"][0].update(type="mean"),
    "my.json, item 2: item_number must be a valid integer, not '2'":
        lambda s: s["items"][1].update(item_number="2"),
    "my.json, item 1, condition 1: condition_name must be a valid string, not 1":
        lambda s: _condition(s).update(condition_name=1),
    "my.json, item 1, condition 1, region 2: region_number must be a valid integer, not True":
        lambda s: _condition(s)["regions"][1].update(region_number=True),
    "my.json, item 1, condition 1, region 1: region_number is missing":
        lambda s: _condition(s)["regions"][0].pop("region_number"),
    "my.json: meta.metric must be 'sum'": lambda s: s["meta"].update(metric="mean"),
    "my.json: meta must be an object": lambda s: s.update(meta="x"),
    "my.json: region_meta.1 must be a valid string, not 2":
        lambda s: s["region_meta"].update({"1": 2}),
    # what spans several fields
    "my.json, prediction 1: formula '(3;%match%) <': expected": _formula("(3;%match%) <"),
    "item 1: prediction 1 reads (3;%other%), but there is no such condition: choose from match, "
    "mismatch": _formula("(3;%other%) < 1"),
    "item 1: prediction 1 reads (9;%match%), but there is no such region: choose from [1, 2, 3, 4]":
        _formula("(9;%match%) < 1"),
    "my.json, item 3: prediction 1 reads (4;%match%), but there is no such region":
        lambda s: (_formula("(4;%match%) < 1")(s), _condition(s, 2)["regions"].pop()),
    "my.json, item 1: item_number is there twice": lambda s: s["items"][1].update(item_number=1),
    "my.json, item 2: conditions: mismatch is not in this item and in item 1, but in one of the":
        lambda s: s["items"][1]["conditions"].pop(),
    "my.json, item 1: conditions: match is there twice":
        lambda s: _condition(s, 0, 1).update(condition_name="match"),
    "item 1, condition match: region_number: give each region a number of its own, in ascending "
    "order, not [1, 1, 3, 4]": lambda s: _condition(s)["regions"][1].update(region_number=1),
    "item 1, condition match: regions do not join to a sentence: all are empty":
        lambda s: [region.update(content=" ") for region in _condition(s)["regions"]],
    "item 1, condition match: content has a blank in it, '___'":
        lambda s: _condition(s)["regions"][2].update(content="___"),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD_SUITES)
def test_bad_suites_name_file_item_and_field(tmp_path: Path, message: str) -> None:
    given = suite()
    BAD_SUITES[message](given)
    refused(saved(tmp_path / "my.json", given), message)


@pytest.mark.parametrize("value", [[], 3, None, {"a": 1}, "text"])
def test_json_of_another_kind_is_no_suite(tmp_path: Path, value: Any) -> None:
    refused(saved(tmp_path / "x.json", value), "x.json is not a test suite: one has `items`")


# ---- folders and data sets -----------------------------------------------------------------------


def test_a_folder_of_anything_else_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "own.jsonl", [{"sentence": "A."}])
    refused(str(tmp_path), "own.jsonl is not a file of minimal pairs")
    saved(tmp_path / "s.json", suite())
    refused(str(tmp_path), "is not a data set, it has no README.md: build one by")


def test_configs_of_several_forms_are_loaded_by_task(tmp_path: Path) -> None:
    lines(tmp_path / "pairs.jsonl", PAIRS)
    saved(tmp_path / "doors.json", suite())
    lines(tmp_path / "blanks.jsonl", [{"context": "A", "target": "b"}])
    entries = "".join(
        f"- {{config_name: {Path(name).stem}, data_files: {name}}}\n"
        for name in ("pairs.jsonl", "doors.json", "blanks.jsonl")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{entries}---\n")
    data = str(tmp_path)
    assert stimuli.tasks(data) == ["pairs", "doors", "blanks"]
    forms = [stimuli.load(data, task).form for task in stimuli.tasks(data)]
    assert forms == ["minimal_pairs", "suites", ""]
    both = load_inputs(data, Protocol(tasks=("pairs", "doors")))
    assert [setting.stimuli.task for setting in both.settings] == ["pairs", "doors"]
    with pytest.raises(BadInput, match="pairs has whole sentences and blanks has blanks"):
        load_inputs(data, Protocol(tasks=("pairs", "blanks")))
