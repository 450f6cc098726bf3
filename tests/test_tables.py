"""Tables of users in all their forms: read alike, or refused with file, line and remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from lmdiag import stimuli
from lmdiag.analysis.human import HumanTable, read_human
from lmdiag.analysis.items import items_of
from lmdiag.analysis.procedures import Procedure
from lmdiag.table_files import read_frame, read_table
from lmdiag.types import BadInput

ROWS = [
    {"item": "1", "a": "x", "sentence": "Der Koch, müde, schlief.", "dose": "0.5"},
    {"item": "1", "a": "y", "sentence": 'Er sagte "nein".', "dose": "1.25"},
    {"item": "2", "a": "x", "sentence": "So.", "dose": "2"},
]
FRAME = pd.DataFrame(ROWS)
PLAIN = FRAME.to_csv(index=False)
SEMICOLON = FRAME.assign(dose=FRAME["dose"].str.replace(".", ",")).to_csv(index=False, sep=";")
R_TABS = (
    '"item"\t"a"\t"sentence"\t"dose"\n"1"\t1\t"x"\t"Der Koch, müde, schlief."\t0.5\n'
    '"2"\t1\t"y"\t"Er sagte ""nein""."\t1.25\n"3"\t2\t"x"\t"So."\t2\n'
)


def excel(frame: pd.DataFrame) -> Callable[[Path], object]:
    return lambda path: frame.to_excel(path, index=False)


LAYOUTS: dict[str, tuple[str, str | bytes | Callable[[Path], object]]] = {
    "comma": (".csv", PLAIN),
    "semicolon, decimal comma": (".csv", SEMICOLON),
    "tab, quoted where needed": (".tsv", FRAME.to_csv(index=False, sep="\t")),
    "tab in .csv": (".csv", FRAME.to_csv(index=False, sep="\t")),
    "all quoted": (".csv", FRAME.to_csv(index=False, quoting=1)),
    "R's write.table: names of rows without a header": (".tsv", R_TABS),
    "pandas' index": (".csv", FRAME.to_csv()),
    "mark, Windows' line ends": (".csv", PLAIN.replace("\n", "\r\n").encode("utf-8-sig")),
    "UTF-16": (".csv", PLAIN.encode("utf-16")),
    "UTF-16, tab, as Excel's Unicode text": (".tsv", R_TABS.encode("utf-16")),
    "upper-case ending": (".CSV", PLAIN),
    "empty lines and rows": (".csv", "\n" + PLAIN.replace("\n1,y", "\n\n,,,\n1,y") + "\n,,,\n"),
    "separators at the ends": (".csv", PLAIN.replace("\n", ",,\n")),
    "separators at the ends of rows": (".csv", PLAIN.replace("\n", ",\n").replace(",\n", "\n", 1)),
    "Excel": (".xlsx", excel(FRAME)),
    "Excel, numbers": (".xlsx", excel(FRAME.astype({"item": int, "dose": float}))),
    "JSON lines": (".jsonl", FRAME.to_json(orient="records", lines=True, force_ascii=False)),
    "Parquet": (".parquet", lambda path: FRAME.to_parquet(path, index=False)),
}


def human_of(path: Path) -> HumanTable:
    return read_human(path, chosen=Procedure(response="dose"))


def written(folder: Path, suffix: str, content: str | bytes | Callable[[Path], object]) -> Path:
    path = folder / f"own{suffix}"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_give_the_same_rows_to_every_command(tmp_path: Path, layout: str) -> None:
    path = written(tmp_path, *LAYOUTS[layout])
    assert stimuli.load(str(path)).fingerprint == stimuli.load(ROWS, "own").fingerprint
    human = human_of(path)
    assert human.numbers("dose").tolist() == [0.5, 1.25, 2.0]
    assert human.texts("sentence").tolist() == FRAME["sentence"].tolist()
    items = items_of(path)
    assert [*items] == [*FRAME]
    assert items["dose"].astype(float).tolist() == [0.5, 1.25, 2.0]


WRONG: dict[str, tuple[str, str | bytes | Callable[[Path], object], str]] = {
    "latin-1": (".csv", PLAIN.encode("latin-1"), r"own.csv:2: not UTF-8 .*in Excel: CSV UTF-8"),
    "UTF-16 without a mark": (".csv", R_TABS[:9].encode("utf-16-le"), "own.csv:1: a NUL character"),
    "header twice": (".csv", PLAIN + PLAIN, "own.csv:5: the header is there again: remove this li"),
    "column twice": (".csv", PLAIN.replace("dose", "a"), "the column a is there twice: rename one"),
    "no name": (".csv", PLAIN.replace("dose", ""), "a column has no name: name it in the header"),
    "comma in all rows": (".csv", "item,sentence\n1,If so, no.\n2,So, yes.\n",
                          "own.csv:2: 3 fields, expected 2; put text with a comma in double quo"),
    "quote": (".csv", PLAIN.replace('"Der', '"D"er'), "own.csv:2: ',' expected after '\"'"),
    "short row": (".csv", PLAIN + "3,x\n", "own.csv:5: 2 fields, expected 4"),
    "empty": (".csv", "\n\n", "own.csv:1: the file is empty; its first line must name the columns"),
    "not Excel": (".xlsx", "item\n1\n", "own.xlsx cannot be read: not valid Excel"),
    "two sheets": (".xlsx", lambda path: two_sheets(path), r"2 sheets \(one, two\): save one of"),
}  # fmt: skip


def two_sheets(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        for name in ("one", "two"):
            FRAME.to_excel(book, sheet_name=name, index=False)


@pytest.mark.parametrize("case", WRONG)
def test_files_that_cannot_be_read_say_line_and_remedy(tmp_path: Path, case: str) -> None:
    suffix, content, message = WRONG[case]
    path = written(tmp_path, suffix, content)
    for read in (lambda path: stimuli.load(str(path)), human_of, items_of):
        with pytest.raises(BadInput, match=message):
            read(path)


def test_quotes_in_tab_separated_words_are_characters(tmp_path: Path) -> None:
    """Corpora of reading times have one word in a row, with its quotes."""
    path = written(tmp_path, ".tsv", 'word\trt\n"Hello,"\t1\n"No\t2\nNA\t3\nsaid"\tNA\n')
    assert read_frame(path, raw=True)["word"].tolist() == ['"Hello,"', '"No', "NA", 'said"']
    assert read_table(path).columns["word"][2] is None
    human = human_of(path)
    assert human.missing("rt").tolist() == [False, False, False, True]
    assert human.where(3).endswith("own.tsv:5")
