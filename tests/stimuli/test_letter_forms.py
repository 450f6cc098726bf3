"""Composed and decomposed letters: compared as one word, read as they are typed, and said."""

from lmdiag.measures import fold_word
from lmdiag.stimuli import response_rows
from lmdiag.stimuli.reading.steps import read_rows
from lmdiag.tables.table_files import read_table
from lmdiag.types import AS_IT_IS

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
