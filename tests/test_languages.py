"""Minimal pairs in many languages: the columns and folders of published sets, and the report."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import Commands

from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAIRS = {
    "eng": (("The dog barks.", "The dog bark."), ("The dogs bark.", "The dogs barks.")),
    "heb": (("הכלב נובח.", "הכלב נובחים."), ("הכלבים נובחים.", "הכלבים נובח.")),
    "tur": (("Ben geldim.", "Ben geldin."), ("Sen geldin.", "Sen geldim.")),
}
"""Language -> pairs of a good and a bad sentence."""


def write_tsv(path: Path, language: str) -> None:
    """Writes a file as MultiBLiMP's: the index of pandas, `sen`, `wrong_sen`, a phenomenon."""
    rows = [f"{n}\tSV-{'#P'[n]}\t{good}\t{bad}\n" for n, (good, bad) in enumerate(PAIRS[language])]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\tphenomenon\tsen\twrong_sen\n" + "".join(rows), "utf-8")


def test_columns_of_published_sets(tmp_path: Path) -> None:
    """MultiBLiMP, TurBLiMP and BLiMP name the two sentences differently; the rows are the same."""
    pairs = (
        ("sen", "wrong_sen"), ("good_sentence", "bad_sentence"), ("sentence_good", "sentence_bad"),
    )  # fmt: skip
    for (good, bad), suffix in product(pairs, (".csv", ".tsv", ".jsonl")):
        names = [good, bad, "phenomenon", "lang"]
        values = [[*pair, "agreement", "heb"] for pair in PAIRS["heb"]]
        path = tmp_path / f"mine{suffix}"
        mark = "\t" if suffix == ".tsv" else ","
        lines = [mark.join(row) for row in (names, *values)]
        if suffix == ".jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in values]
        path.write_text("\n".join(lines), "utf-8")
        rows = stimuli.load(str(path))
        columns = rows.columns()
        assert rows.form == "minimal_pairs"
        assert columns["sentence"] == [text for pair in PAIRS["heb"] for text in pair]
        assert columns["contrast"] == ["mine-1", "mine-1", "mine-2", "mine-2"]
        assert columns["language"] == ["heb"] * 4
        assert not {good, bad, "lang"} & set(columns)


def test_mistakes_are_named_by_the_columns_of_the_file() -> None:
    with pytest.raises(BadInput, match="rows, row 1: the column wrong_sen is empty: write a"):
        stimuli.load([{"sen": "A.", "wrong_sen": " "}])
    with pytest.raises(BadInput, match="rows, row 2: the column wrong_sen is missing or not"):
        stimuli.load([{"sen": "A.", "wrong_sen": "B."}, {"sen": "A."}])
    with pytest.raises(BadInput, match="every row needs context and target"):
        stimuli.load([{"sen": "A."}])  # alone, it may be anything


@pytest.mark.parametrize("layout", ["{}.tsv", "{}/data.tsv"])
def test_a_folder_of_languages_is_one_task(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "multiblimp"
    for language in PAIRS:
        write_tsv(folder / layout.format(language), language)
    rows = stimuli.load(str(folder))
    columns = rows.columns()
    assert (rows.task, rows.form, len(rows)) == ("multiblimp", "minimal_pairs", 12)
    assert columns["language"] == [language for language in PAIRS for _ in range(4)]
    assert columns["sentence"] == [text for pairs in PAIRS.values() for p in pairs for text in p]
    assert set(rows.diagnostic.levels(columns)) == {"language", "phenomenon"}
    name = layout.format("tur").removesuffix(".tsv")
    assert columns["id"][-1] == f"{name}-2-bad"


def test_files_that_are_no_languages_are_paradigms(tmp_path: Path) -> None:
    for paradigm, language in (("agreement", "eng"), ("binding_a", "tur")):
        write_tsv(tmp_path / f"{paradigm}.tsv", language)
    columns = stimuli.load(str(tmp_path)).columns()
    assert columns["UID"][::4] == ["agreement", "binding_a"]
    assert "language" not in columns


def test_languages_may_repeat_the_names_of_pairs(tmp_path: Path) -> None:
    """As translations of one set do."""
    for language, pairs in PAIRS.items():
        rows: list[dict[str, Any]] = [
            {"sentence_good": good, "sentence_bad": bad, "UID": "number", "pairID": n}
            for n, (good, bad) in enumerate(pairs)
        ]
        (tmp_path / f"{language}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    columns = stimuli.load(str(tmp_path)).columns()
    assert columns["contrast"][::4] == ["eng-number-0", "heb-number-0", "tur-number-0"]


# ---- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_of_languages(
    tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run on a folder of three languages, with its report."""
    root = tmp_path_factory.mktemp("languages")
    for language in PAIRS:
        write_tsv(root / "multiblimp" / f"{language}.tsv", language)
    arguments = ["--model", tiny_models["gpt2"], "--data", root / "multiblimp"]
    assert main(["run", *map(str, arguments), "--output", str(root / "runs"), "--quiet"]) == 0
    return next((root / "runs").rglob("predictions.parquet")).parent


def test_a_table_by_language_of_the_sum_and_the_mean(
    run_of_languages: Path, command: Commands
) -> None:
    code, text, _ = command("report", run_of_languages, "--format", "markdown")
    assert code == 0
    heading = next(line for line in text.splitlines() if "per token" in line)
    assert "sensitivity" in heading.replace("sensitivity, mean", "")
    for language in PAIRS:
        assert any(line.startswith(f"| {language} | 2 |") for line in text.splitlines())


@pytest.mark.slow
def test_words_run_in_the_direction_of_their_language(run_of_languages: Path, page: Page) -> None:
    page.goto((run_of_languages / "report.html").as_uri())
    page.locator("details.items summary").first.click()
    places = {
        language: page.locator(f"#{language}-1 table.words tbody tr").evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect().x)"
        )
        for language in PAIRS
    }
    assert places["eng"] == sorted(places["eng"])
    assert places["heb"] == sorted(places["heb"], reverse=True)
    assert len(set(places["heb"])) == 3  # two words and the sum
