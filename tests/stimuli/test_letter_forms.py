"""Letters in two forms, in a wrong encoding, and characters that no text has: said, or refused."""

import pandas as pd
import pytest

import lmdiag
from lmdiag.cli.texts import _read_texts
from lmdiag.measures import fold_word
from lmdiag.stimuli import response_rows
from lmdiag.stimuli.reading.steps import read_rows
from lmdiag.tables.table_files import read_table
from lmdiag.text import misread_word
from lmdiag.types import AS_IT_IS, BadInput

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def test_a_table_with_both_forms_is_read_as_typed_and_named(tmp_path):
    file = tmp_path / "both.csv"
    file.write_text(f"sentence\nThe {COMPOSED} was full.\nThe {DECOMPOSED} was full.\n", "utf-8")
    table = read_rows(file, AS_IT_IS, {"sentence"})
    assert table.columns["sentence"][1] == f"The {DECOMPOSED} was full."
    [note] = table.notes
    assert "both.csv:3 has letters and marks apart" in note
    assert "both.csv:2 as one character" in note
    file.write_text(f"sentence\nThe {COMPOSED} was full.\nThe bar was full.\n", "utf-8")
    assert not read_rows(file, AS_IT_IS, {"sentence"}).notes


def test_words_are_compared_in_one_form():
    assert fold_word(DECOMPOSED, ()) == COMPOSED
    assert fold_word("\ufb01ne", ()) == "\ufb01ne"  # a compatibility form is another word


def test_responses_in_both_forms_are_one(tmp_path):
    file = tmp_path / "cloze.csv"
    rows = [f"1,She drank in the,{word}" for word in (COMPOSED, DECOMPOSED, COMPOSED, "bar")]
    file.write_text("\n".join(["item,context,response", *rows]), "utf-8")
    columns = response_rows(read_table(file), AS_IT_IS).columns
    shares = dict(zip(columns["target"], columns["cloze"], strict=True))
    assert shares == {COMPOSED: 0.75, "bar": 0.25}


MISREAD = {
    "bÃ¤cker": "bäcker", "b\u00c3\u0084cker": "bÄcker", "itâ€™s": "it’s", "Å¡koda": "škoda",
    "Ð¿Ñ€Ð¸Ð²ÐµÑ‚": "привет", "çŒ«å–œæ¬¢": "猫喜欢", "BÃ„CKER": "BÄCKER",
}  # fmt: skip
"""UTF-8 read as Windows-1252 -> what it was."""


def test_words_in_a_wrong_encoding_are_told_from_words_before_quotes_and_dashes():
    for word, meant in MISREAD.items():
        assert misread_word(f"Der {word} kam.") == (word, meant)
    for text in (
        "Der Spaß“ war",
        "PÅ”",
        "un café »",
        "é”…",
        "AMANHÃ”",
        "naïve",
        "São Ângelo",
        "猫",
    ):
        assert misread_word(text) == ("", "")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl", ".parquet"])
def test_odd_characters_are_said_with_their_rows(tmp_path, suffix):
    texts = ["The bar was full.", "Der bÃ¤cker kam.", "The \ufeffman sat."]
    file = written(
        pd.DataFrame({"item": ["a", "b", "c"], "sentence": texts}), tmp_path / f"a{suffix}"
    )
    table = read_rows(file, AS_IT_IS, {"sentence"})
    assert table.columns["sentence"] == texts
    encoding, mark = table.notes
    place = {".csv": "line 3", ".jsonl": "line 2", ".xlsx": "row 3", ".parquet": "row 2"}[suffix]
    assert f"a{suffix}, {place}: 'bÃ¤cker' seems to be 'bäcker' in a wrong encoding" in encoding
    assert "a byte-order mark (U+FEFF) inside a text" in mark


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_nul_in_a_cell_is_refused(tmp_path, suffix):
    """XML, and with it Excel, has no NUL."""
    rows = pd.DataFrame({"item": ["a", "b"], "sentence": ["The bar was full.", "The man\0 sat."]})
    file = written(rows, tmp_path / f"a{suffix}")
    with pytest.raises(BadInput, match=r"a\..*[23]: the column sentence has a NUL character"):
        read_rows(file, AS_IT_IS, {"sentence"})


def written(rows, path):
    """Writes rows into a file of this ending."""
    if path.suffix == ".xlsx":
        rows.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        rows.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        rows.to_json(path, orient="records", lines=True)
    else:
        rows.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def test_a_file_of_lines_with_both_forms_is_named(tmp_path):
    file = tmp_path / "both.txt"
    file.write_text(f"Tea.\nThe {COMPOSED} was full.\nThe {DECOMPOSED} was full.\n", "utf-8")
    named = _read_texts(str(file), AS_IT_IS, "")
    assert named.texts[2] == f"The {DECOMPOSED} was full."
    [note] = named.notes
    assert "both.txt:3 has letters and marks apart" in note
    assert "both.txt:2 as one character" in note


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_lines_that_windows_ended_have_no_carriage_return(tmp_path, end):
    file = tmp_path / "lines.txt"
    file.write_bytes(f"The dog barks.\r\nIt ran.{end}".encode())
    assert [*_read_texts(str(file), AS_IT_IS, "").texts] == ["The dog barks.", "It ran."]


def test_check_says_both_forms_of_a_table_of_words():
    words = ["The", COMPOSED, "closed", "The", DECOMPOSED, "opened"]
    table = {"text": [1, 1, 1, 2, 2, 2], "position": [1, 2, 3] * 2, "word": words}
    found = lmdiag.check(table | {"rt": [301.5, 320, 280, 290, 333, 270]})
    assert found.notes[0].startswith("letters: rows, row 5 has letters and marks apart")
