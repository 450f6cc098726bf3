"""Every reader of a user's table against every check, as scikit-learn tests all estimators.

A reader takes a file and options, and returns its rows as it read them, an identifier first.
"""

import random
import re

import pandas as pd
import pytest

from lmdiag import analyse as analyse_rows
from lmdiag import check, stimuli
from lmdiag.analysis.human import read_human
from lmdiag.analysis.procedures import Procedure, procedure_for
from lmdiag.runs.surprisals import read_texts
from lmdiag.stimuli.designs.column_warnings import warnings_of
from lmdiag.stimuli.designs.conditions import uses_of
from lmdiag.stimuli.designs.design import check_columns, design_of
from lmdiag.stimuli.designs.shown import first_rows
from lmdiag.stimuli.reading.columns import ANALYSED_COLUMNS
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.names import NAMES, NAMES_OF_WORDS
from lmdiag.tables.table_files import as_texts
from lmdiag.types import BadInput, DesignOptions, TableOptions

KINDS = ["exp"] * 5 + ["filler"]


def rows_of(columns, *names):
    return [*zip(*(columns[name] for name in names), strict=True)]


def load_stimuli(data, **options):
    return rows_of(stimuli.load(data, **options).columns(), "item", "sentence")


def load_words(data, **options):
    return rows_of(stimuli.load(data, **options).columns(), "item", "context", "target")


def cloze(data, **options):
    rows = stimuli.load(data, responses=True, **options)
    return rows_of(rows.columns(), "item", "context", "target")


def fit(data, **options):
    table = read_human(data, chosen=Procedure(response="rt"), options=TableOptions.of(options))
    table.running_texts()
    how = table.procedure
    return [*zip(table.texts(how.text), table.texts(how.word), table.numbers("rt"), strict=True)]


def analyse(data, **options):
    table, _ = read_frame_rows(data, TableOptions.of(options), ANALYSED_COLUMNS)
    columns = {"item": as_texts(table["item"]), "surprisal": table["surprisal"].astype(float)}
    return rows_of({**table, **columns}, "item", "condition", "surprisal")


def surprisal(path, **options):
    read = read_texts(path, TableOptions.of(options))
    return [*zip(read.names, read.texts, strict=True)]


IDENTIFIERS = ("1.1", "1.10", "01", "1", "1e1", "10")
"""Names that are equal as numbers."""

VERBS = ("sat", "ran", "ate", "lay", "hid", "sang")
SENTENCES = [f'The "dog", müde, {verb} here.' for verb in VERBS]
NUMBERS = (3.5, 4.25, 5.0, 6.0, 7.0, 8.0)
WORDS = {"position": ["1"] * 6, "word": VERBS}
READERS = {
    load_stimuli: {"item": IDENTIFIERS, "sentence": SENTENCES},
    load_words: {"item": IDENTIFIERS, "context": SENTENCES, "target": VERBS},
    cloze: {"item": IDENTIFIERS, "context": SENTENCES, "response": VERBS},
    fit: {"text": IDENTIFIERS, **WORDS, "rt": [*map(str, NUMBERS)]},
    analyse: {"item": IDENTIFIERS, "condition": [*"xyxyxy"], "surprisal": [*map(str, NUMBERS)]},
    surprisal: {"text": IDENTIFIERS, **WORDS},
}
"""Reader -> the columns of a table that it reads."""

ROWS = {
    load_stimuli: rows_of(READERS[load_stimuli], "item", "sentence"),
    load_words: rows_of(READERS[load_words], "item", "context", "target"),
    cloze: rows_of(READERS[cloze], "item", "context", "response"),
    fit: [*zip(IDENTIFIERS, VERBS, NUMBERS, strict=True)],
    analyse: [*zip(IDENTIFIERS, "xyxyxy", NUMBERS, strict=True)],
    surprisal: [*zip(IDENTIFIERS, VERBS, strict=True)],
}
"""Reader -> the rows of this table."""


def csv(**options):
    return lambda frame, path: frame.to_csv(path, **{"index": False, **options})


def changed_csv(change):
    def write(frame, path):
        path.write_text(change(frame.to_csv(index=False)))

    return write


def decimal_commas(frame, path):
    numbers = frame[frame.columns.intersection(["item", "text", "rt", "surprisal"])]
    numbers = numbers.apply(lambda column: column.str.replace(".", ",", regex=False))
    frame.assign(**numbers).to_csv(path, index=False, sep=";")


WRITERS = {
    "comma.csv": csv(),
    "upper.CSV": csv(),
    "semicolon.csv": csv(sep=";"),
    "decimal commas.csv": decimal_commas,
    "quoted.csv": csv(quoting=1),
    "tab.tsv": csv(sep="\t"),
    "tab.csv": csv(sep="\t"),
    "R, names of rows.csv": csv(index=True, quoting=1),
    "R, names of rows without a header.tsv": csv(
        index=True, index_label=False, quoting=1, sep="\t"
    ),
    "mark, line ends of Windows.csv": csv(encoding="utf-8-sig", lineterminator="\r\n"),
    "UTF-16.csv": csv(encoding="utf-16"),
    "Unicode text of Excel.tsv": csv(encoding="utf-16", sep="\t"),
    "empty lines.csv": changed_csv(lambda text: "\n" + text.replace("\n", "\n\n,,,\n", 3)),
    "separators at the ends.csv": changed_csv(lambda text: text.replace("\n", ",,\n")),
    "separators at the ends of rows.csv": changed_csv(
        lambda text: text.replace("\n", ",\n").replace(",\n", "\n", 1)
    ),
    "book.xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "lines.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "lines.json": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "list.json": lambda frame, path: frame.to_json(path, orient="records"),
    "table.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "text.txt": csv(sep="\t"),
    "title.txt": changed_csv(lambda text: f"My table\n\n{text}"),
}
"""Name of a file -> what writes a table into it."""


def written(reader, folder, name="comma.csv", **more):
    path = folder / name
    WRITERS[name](pd.DataFrame({**READERS[reader], "kind": KINDS, **more}), path)
    return path


readers = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
FRAGMENTS = [f"The cook {n} went to the" for n in range(16)]


@readers
@pytest.mark.parametrize("name", WRITERS)
def test_all_layouts_give_the_same_rows_with_identifiers_as_written(reader, name, tmp_path):
    assert sorted(reader(written(reader, tmp_path, name))) == sorted(ROWS[reader])


@pytest.mark.parametrize("reader", [x for x in READERS if x is not surprisal])
def test_a_table_in_memory_gives_the_rows_of_its_file(reader):
    assert sorted(reader(pd.DataFrame(READERS[reader]))) == sorted(ROWS[reader])


@readers
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("name", ["book.xlsx", "lines.jsonl", "table.parquet"])
def test_whole_numbers_that_identify_have_no_fraction(reader, kind, name, tmp_path):
    numbers = {next(iter(READERS[reader])): [*map(kind, range(1, 7))]}
    names = [row[0] for row in reader(written(reader, tmp_path, name, **numbers))]
    assert sorted(names) == [*"123456"]


def test_items_and_groups_are_told_apart_as_they_are_written():
    """In the design, in tests over items, and in mixed models."""
    names = [*IDENTIFIERS, "1.0", "TRUE", "True", "true"]
    cells = [(n, subject, level) for n in names for subject in ("01", "1") for level in "ab"]
    table = pd.DataFrame(cells, columns=["item", "subject", "cond"])
    table["rt"] = [n * 7 % 13 + len(name) for n, (name, *_) in enumerate(cells)]
    analysis = analyse_rows(table, formula="rt ~ cond + (1 | item) + (1 | subject)")
    assert analysis.effects["n"].tolist() == [len(names)]
    assert analysis.mixed[""].groups == {"item": len(names), "subject": 2}
    table["sentence"] = [f"Dog {n // 4} {n} {cell[2]} sat." for n, cell in enumerate(cells)]
    assert design_of(stimuli.load(table[["item", "cond", "sentence"]])).n_items == len(names)


@readers
@pytest.mark.parametrize("name", ["comma.csv", "book.xlsx", "table.parquet"])
def test_dates_that_identify_are_written_alike_in_all_formats(reader, name, tmp_path):
    dates = pd.date_range("2026-01-02", periods=6)
    path = written(reader, tmp_path, name, **{next(iter(READERS[reader])): dates})
    assert sorted(row[0] for row in reader(path)) == [f"2026-01-0{n}" for n in range(2, 8)]


@readers
def test_a_filter_keeps_rows_as_they_are(reader, tmp_path):
    for condition in ("kind=exp", "KIND!=filler", "kind=exp,other"):
        if condition.endswith("other"):
            with pytest.raises(BadInput, match="no row has 'other' in kind"):
                reader(written(reader, tmp_path), filter=condition)
        else:
            kept = reader(written(reader, tmp_path), filter=condition)
            assert sorted(kept) == sorted(ROWS[reader][:5])


@readers
def test_a_filter_tells_identifiers_apart_as_they_are_written(reader, tmp_path):
    path = written(reader, tmp_path)
    identifier = next(iter(READERS[reader]))
    for name, row in zip(IDENTIFIERS, ROWS[reader], strict=True):
        assert reader(path, filter=f"{identifier}={name}") == [row]
    for name in ("001", "1.100"):
        with pytest.raises(
            BadInput, match=rf"no row has '{name}' in {identifier}, which has 1\.1, "
        ):
            reader(path, filter=f"{identifier}={name}")


@pytest.mark.parametrize(
    ("reader", "name"),
    [(reader, "comma.csv") for reader in READERS]
    + [(load_stimuli, name) for name in ("book.xlsx", "lines.jsonl", "table.parquet")],
)
def test_a_filter_takes_other_spellings_of_a_value_that_only_one_has(reader, name, tmp_path):
    """Truth values and whole numbers differ between formats; a value may have commas."""
    columns = {
        "kept": [True] * 5 + [False],
        "block": [1.0] * 5 + [None],
        "kind": ["Köln, Ulm"] * 3 + ["Bonn "] * 2 + ["köln"],
    }
    path = written(reader, tmp_path, name, **columns)
    for condition in ("kept=TRUE", "kept=true", "kept!=0", "block=1", "block!=", "block!=NA",
                      "kind=Köln, Ulm,bonn", "Kind!=Ko\u0308ln"):  # fmt: skip
        assert sorted(reader(path, filter=condition)) == sorted(ROWS[reader][:5]), condition
    with pytest.raises(BadInput, match=r"no row has '2' in block, .*, empty cells"):
        reader(path, filter="block=2")


@readers
def test_all_problems_are_in_one_message(reader, tmp_path):
    with pytest.raises(BadInput) as caught:
        reader(written(reader, tmp_path), filter=("kind=none", "absent=1"))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "comma.csv"))
    assert "no row has 'none' in kind" in message
    assert "no column 'absent'" in message


PLAIN = "item,a,note\n1,x,Koch\n2,y,Köchin\n"
BROKEN = {
    "Latin-1": (".csv", PLAIN.encode("latin-1"), r"own.csv:3: not UTF-8 .*in Excel: CSV UTF-8"),
    "UTF-16 without a mark": (".csv", PLAIN[:9].encode("utf-16-le"), "own.csv:1: a NUL character"),
    "row as header": (".csv", "1,x,a\n1,y,b\n2,x,a\n", "own.csv:1: the first line seems to b"),
    "all in one": (".csv", "".join(f'"{line}"\n' for line in PLAIN.split()),
                   "own.csv:1: all columns are in one, 'item,a,note': divide it"),
    "column twice": (".csv", PLAIN.replace("note", "a"), "the column a is there twice: rename one"),
    "no name": (".csv", PLAIN.replace("note", ""), "own.csv:1: column 3, with 'Koch', has "
                "no name: name it in the header"),
    "comma in all rows": (".csv", "item,sentence\n1,If so, no.\n2,So, yes.\n",
                          "own.csv:2: 3 fields, expected 2; put text with a comma in double quo"),
    "quote": (".csv", PLAIN.replace("Koch", '"K"och'), "own.csv:2: ',' expected after '\"'"),
    "quote without end": (".csv", PLAIN.replace("Koch", '"K'), "own.csv:2: a quote begins here"),
    "short row": (".csv", PLAIN + "3,x\n", "own.csv:4: 2 fields, expected 3; write a comma for"),
    "empty": (".csv", "\n\n", "own.csv:1: the file is empty; its first line must name the columns"),
    "no rows": (".csv", "item,sentence\n", "own.csv has no rows"),
    "not Excel": (".xlsx", "item\n1\n", "own.xlsx cannot be read: not valid Excel"),
    "formula": (".xlsx", pd.DataFrame({"item": ["1"], "n": ["=A2"]}),
                "own.xlsx, cell B2: a formula without a stored value"),
    "key twice": (".jsonl", '{"item": 1}\n{"item": 1, "item": 2}\n', "own.jsonl:2: the key 'item'"),
}  # fmt: skip
"""What is wrong -> ending and content of a file, the error."""


@readers
@pytest.mark.parametrize("case", BROKEN)
def test_files_that_cannot_be_read_say_place_and_remedy(reader, case, tmp_path):
    suffix, content, message = BROKEN[case]
    path = tmp_path / f"own{suffix}"
    if isinstance(content, pd.DataFrame):
        content.to_excel(path, index=False)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=message):
        reader(path)


@readers
def test_a_repeated_row_is_refused_or_makes_no_other_row(reader, tmp_path):
    """Responses are counted, and rows of a word are of one word."""
    path = written(reader, tmp_path)
    first = path.read_text().splitlines()[1]
    path.write_text(f"{path.read_text()}{first}\n")
    if reader in (load_stimuli, load_words):
        with pytest.raises(BadInput, match=r"comma\.csv:8: the row is identical to line 2"):
            reader(path)
        assert reader(path, allow_duplicates=True) == ROWS[reader]
    else:
        assert {*reader(path)} == {*ROWS[reader]}


MISSING = [
    (load_stimuli, "sentence", "the column sentence is empty"),
    (load_words, "context", "the column context is empty"),
    (load_words, "target", "the column target is empty"),
    (cloze, "context", "the column context is empty"),
    (cloze, "item", "the column item is empty"),
    (fit, "position", "column position is missing"),
    (surprisal, "word", "column word is empty"),
    (surprisal, "position", "column position is missing"),
]
"""Reader, a column that it needs, and what it says of a row without a value there."""


@pytest.mark.parametrize(("reader", "column", "problem"), MISSING)
def test_a_missing_value_is_an_error_with_its_row(reader, column, problem, tmp_path):
    values = [*READERS[reader][column]]
    for text in ("", "NA") if column != "word" else ("",):  # NA may be a word
        values[1] = text
        with pytest.raises(BadInput, match=rf"comma\.csv:3: .*{problem}"):
            reader(written(reader, tmp_path, **{column: values}))


@pytest.mark.parametrize(("reader", "column"), [(fit, "rt"), (analyse, "surprisal")])
@pytest.mark.parametrize("text", ["", "NA", "NaN"])
def test_a_row_without_a_response_is_read(reader, column, text, tmp_path):
    values = [*READERS[reader][column]]
    values[1] = text
    rows = reader(written(reader, tmp_path, **{column: values}))
    missing = [*{*rows} - {*ROWS[reader]}]
    assert len(rows) == 6
    assert [(row[0], row[-1] == row[-1]) for row in missing] == [(IDENTIFIERS[1], False)]


@pytest.mark.parametrize(("reader", "column"), [(fit, "rt"), (cloze, "count")])
def test_a_number_that_is_none_is_an_error_with_its_row(reader, column, tmp_path):
    path = written(reader, tmp_path, **{column: [*"34", "fast", *"678"]})
    with pytest.raises(BadInput, match=rf"comma\.csv:4: the column {column}: 'fast' is not a nu"):
        reader(path)


@pytest.mark.parametrize("name", NAMES["reader"])
def test_readers_are_known_by_the_same_names_everywhere(name):
    n = range(16)
    table = pd.DataFrame({"item": [str(x // 4) for x in n], "rt": [str(x) for x in n]})
    table[name.title()] = [f"s{x % 2}" for x in n]
    assert uses_of(table, response="rt").other_uses[name.title()] == "reader"
    procedure = procedure_for(table.columns, None, Procedure(response="rt"))
    assert procedure.reader == name.title()


@pytest.mark.parametrize("reader", [fit, surprisal], ids=["fit", "surprisal"])
@pytest.mark.parametrize("role", ["position", "word"])
def test_words_and_positions_are_known_by_the_same_names_everywhere(reader, role, tmp_path):
    """And by `check`, which names the commands that read them."""
    assert {*NAMES_OF_WORDS[role]} <= {*NAMES[role]}
    for name in NAMES[role]:
        columns = {name if x == role else x: v for x, v in READERS[reader].items()}
        path = tmp_path / "own.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        assert sorted(reader(path)) == sorted(ROWS[reader]), name
        if reader is surprisal and name != "target":  # also a word at a blank
            with pytest.raises(BadInput, match="a row per word: for `lmdiag surprisal` and"):
                stimuli.load(path)


def test_numbers_are_no_texts_of_surprisal(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,sound\n1,The\n2,A\n")
    with pytest.raises(BadInput, match="column text has numbers, and no text: name the columns of"):
        read_texts(path)


@pytest.mark.parametrize(
    "markup", [r"A \textbf{dog} sat.", "A <b>dog</b> sat.", "A&nbsp;dog.", "A dog sat. <eos>"]
)
@pytest.mark.parametrize("other", ["A plain one.", "A <i>cat</i> sat."])
def test_markup_is_named_in_all_sentences_and_in_some(markup, other):
    with pytest.raises(BadInput, match=r"row 2: .* has markup in it, .*would be read as text"):
        stimuli.load({"context": ["The <unk> dog", markup, other], "target": ["sat", "a", "b"]})
    with pytest.raises(BadInput, match="the column sentence has markup in it"):
        stimuli.load({"sentence": [markup, other]})


def test_a_file_with_a_text_in_each_line_is_for_surprisal(tmp_path, command):
    path = tmp_path / "texts.txt"
    path.write_text("The dog sat.\nA cat ran.<eos>\n")
    assert f"`lmdiag surprisal {path} --model M` reads a text in" in command.refused("check", path)
    has = "texts.txt:2: the text has markup in it, '<eos>'"
    assert has in command.refused("surprisal", path, "--model", "demo:causal")


@pytest.mark.parametrize("named", ["sentence", "text"])
@pytest.mark.parametrize("other", [[*map(str, range(1, 7))], [*"aabbcc"]])
def test_of_text_and_sentence_the_one_with_texts_is_read(named, other, tmp_path):
    """The other one names texts; where both have some, the user says which is read."""
    path = tmp_path / "own.csv"
    name = "text" if named == "sentence" else "sentence"
    pd.DataFrame({name: other, named: SENTENCES}).to_csv(path, index=False)
    assert read_texts(path).texts == SENTENCES
    pd.DataFrame({name: FRAGMENTS[:6], named: SENTENCES}).to_csv(path, index=False)
    with pytest.raises(BadInput, match=f"--columns sentence={name} or sentence={named}"):
        read_texts(path)
    for column, texts in ((name, FRAGMENTS[:6]), (named, SENTENCES)):
        assert read_texts(path, TableOptions(columns=(f"sentence={column}",))).texts == texts


def test_texts_of_another_name_are_proposed(tmp_path):
    path = tmp_path / "own.csv"
    pd.DataFrame({"Nr": range(6), "Der Satz": SENTENCES}).to_csv(path, index=False)
    with pytest.raises(BadInput, match="name the texts, --columns 'sentence=Der Satz'"):
        read_texts(path)


def test_columns_that_are_named_keep_the_name_of_the_file_in_options():
    """A filter may use both names, and a proposal has that of the file."""
    rows = {"Nr": [*"1122"], "Satz": SENTENCES[:4], "text": [*"abab"]}
    options = {"columns": ("item=Nr", "sentence=Satz")}
    for condition in ("Nr=2", "nr=2", "item=2"):
        assert load_stimuli(rows, **options, filter=condition) == rows_of(rows, "Nr", "Satz")[2:]
    with pytest.raises(BadInput, match="no column 'x'; there are Nr, Satz, text"):
        load_stimuli(rows, **options, filter="x=2")
    with pytest.raises(BadInput, match="perhaps --columns sentence=Satz"):
        load_stimuli(rows, columns="item=Satz")


def test_the_column_of_items_is_proposed_where_there_is_none():
    table = pd.DataFrame({"ItemNo.": [*"1122"], "cond": [*"abab"], "rt": [1, 2, 3, 5]})
    for item in ((), "ItemNo."):
        reads = analyse_rows(table, response="rt", item=item).reads
        assert "item: ItemNo.; condition" in reads[1]
    contexts = [fragment for fragment in FRAGMENTS for _ in "12"]
    answers = {"Item-Nr": [n // 2 for n in range(32)], "Frame": contexts, "answer": ANSWERS * 2}
    with pytest.raises(BadInput, match="for `lmdiag cloze`, with --columns item=Item-Nr context=F"):
        stimuli.load(answers)


@pytest.mark.parametrize("reader", [load_stimuli, load_words, cloze, fit, analyse_rows])
def test_numbers_that_are_not_whole_name_nothing(reader):
    """A program that read them as numbers has one name for 1.1 and 1.10."""
    columns = READERS.get(reader, READERS[analyse])
    names = {next(iter(columns)): [1.1, 1.1, 1.2, 1.2, 1.3, 1.3], "position": [*range(6)]}
    with pytest.raises(BadInput, match=r": 1\.1 is a number, as which 1\.1 and 1\.10 are one: "):
        reader(pd.DataFrame({**columns, **names}))


@pytest.mark.parametrize("name", NAMES["reader"])
def test_readers_are_named_as_the_option_of_fit_or_by_any_name(name):
    options = {"columns": f"{name}=Vp", "keep_case": True}
    answers = {"context": ["A"] * 2, "response": ["b", "B"], "Vp": ["1", "2"]}
    assert "Vp as participant" in stimuli.load(answers, responses=True, **options).notes[0]


@pytest.mark.parametrize("column", ["item", "cond"])
def test_names_that_look_alike_are_named(column):
    """Of conditions and items, in texts and responses; names of columns are found in both forms."""
    rows = {"item": [n // 2 for n in range(16)], "cond": ["Köln", "Bonn"] * 8}
    rows |= {column: ["Köln", "Bonn"] * 8, "rt": range(16), "u\u0308": ["x"] * 16}
    rows["cond" if column == "item" else "item"] = [str(n // 2) for n in range(16)]
    other = "Ko\u0308ln"
    rows[column] = [other if n == 2 else name for n, name in enumerate(rows[column])]
    texts = [f"Dog {n} {name.strip()} sat in hut {n // 2}." for n, name in enumerate(rows["cond"])]
    for read in (lambda: analyse_rows(pd.DataFrame(rows), response="rt", conditions="cond"),
                 lambda: stimuli.load({**rows, "sentence": texts})):  # fmt: skip
        with pytest.raises(BadInput, match=f"{column} has 1 row as .*Unicode normalization alone"):
            read()
    assert len(stimuli.load({"ü": ["x", "y"], "sentence": texts[:2]}, filter="u\u0308=x")) == 1


@pytest.mark.parametrize("notes", [["same note"] * 8, ["one note", "other note"] * 4])
def test_notes_are_no_contexts_of_responses(notes):
    pairs = {"UID": [*"aaaabbbb"], "sent_good": [f"Dog {n} sits." for n in range(8)]}
    pairs |= {"sent_bad": [f"Dog {n} sit." for n in range(8)], "note": notes}
    with pytest.raises(BadInput, match="sent_good and sent_bad are two texts in a row"):
        stimuli.load(pairs)


def test_columns_without_values_are_listed_as_not_used():
    rows = {"item": [*"1122"], "cond": [*"abab"], "note": [""] * 4, "list": [None] * 4}
    rows["sentence"] = [
        f"Dog {n} {x} sat." for n, x in zip(rows["item"], rows["cond"], strict=True)
    ]
    others = design_of(stimuli.load(rows)).other_uses
    assert (others["note"], others["list"]) == ("not used (empty)", "not used (empty)")


def test_joined_names_of_items_are_not_those_of_others():
    table = pd.DataFrame({"a": ["x 1", "x 1", "x", "x"], "b": ["2", "2", "1 2", "1 2"]})
    table = table.assign(cond=[*"uvuv"], rt=range(4))
    assert len(analyse_rows(table, response="rt", item=["a", "b"]).items) == 4
    pairs = {"a": [*["x-1"] * 2, *["x"] * 2], "b": [*["2"] * 2, *["1-2"] * 2], "ok": [*"ynyn"]}
    pairs["sentence"] = ["He sits.", "He sit.", "She sits.", "She sit."]
    read = stimuli.load(pairs, good="ok=y", contrast=("a", "b"))
    assert [*read.columns()["contrast"]] == ["x-1--2"] * 2 + ["x--1-2"] * 2


def test_a_name_that_is_given_twice_is_refused():
    with pytest.raises(BadInput, match="names a and b as sentence: give one of them"):
        stimuli.load({"a": ["A dog."], "b": ["A cat."]}, columns=["sentence=a", "sentence=b"])


LABELS = ["Context", "Target", "Position", "Contrast", "Good", "Expected", "Word", "Text", "Region"]


@pytest.mark.parametrize("name", [*LABELS, "condicion"])
def test_a_factor_of_any_name_is_a_condition(name):
    """Two labels that repeat across items are levels, also under the name of something else."""
    rows = {"item": [str(n // 2) for n in range(16)], name: ["early", "late"] * 8}
    rows["sentence"] = [f"The {x} dog {n} sat." for n, x in zip(*rows.values(), strict=True)]
    design = design_of(stimuli.load(rows))
    assert [*design.levels.values()] == [{"early": 8, "late": 8}]


def test_a_column_is_a_condition_only_where_texts_differ_with_it():
    """The same texts at each level are a list, whatever the column is called."""
    rows = {
        "item": [str(n) for n in range(8) for _ in range(4)],
        "tense": ["past", "now"] * 16,
        "half": ["a", "a", "b", "b"] * 8,
        "row": [str(n) for n in range(32)],
    }
    rows["sentence"] = [
        f"Dog {item} {'slept' if tense == 'past' else 'sleeps'} here."
        for item, tense in zip(rows["item"], rows["tense"], strict=True)
    ]
    design = design_of(stimuli.load(rows))
    assert [*design.levels] == ["tense"]
    assert design.other_uses["half"] == "not a condition (same texts at several levels)"


@pytest.mark.parametrize(
    ("form", "split"), [("{0}_{1}", "_:item,factor_2"), ("{0}{1}", ":item,factor_2"),
                        ("{1}.{0}", ".:factor_1,item")],
)  # fmt: skip
def test_a_condition_in_names_of_items_is_named_with_its_split(form, split):
    pairs = [(n, level) for n in range(8, 12) for level in ("sg", "pl")]
    names = [form.format(*pair) for pair in pairs]
    texts = [f"The {level} dog{n} sat in hut{n} at hill{n}." for n, level in pairs]
    rows = {"item": names, "number": [level for _, level in pairs], "sentence": texts}
    warning = f"as {names[0]} and {names[1]}: --split item={split} divides them"
    assert warning in str(design_of(stimuli.load(rows)).warnings)
    responses = pd.DataFrame({**rows, "rt": range(8)}).drop(columns="sentence")
    with pytest.raises(BadInput, match=f"--split item={split}"):
        analyse_rows(responses, response="rt")
    assert len(analyse_rows(responses, response="rt", split=f"item={split}").items) == 8


def test_items_that_two_columns_name_are_not_divided_again():
    cells = [(data, n, tense) for data in ("exp1", "exp2") for n in "1234" for tense in "ab"]
    texts = [f"The dog{n} {data} sat {tense} in hut{n} {data}." for data, n, tense in cells]
    data, items, tenses = zip(*cells, strict=True)
    rows = {"dataset": data, "item": items, "tense": tenses, "sentence": texts}
    design = design_of(stimuli.load(rows), DesignOptions(item=("dataset", "item")))
    assert (design.n_items, [*design.levels], design.warnings) == (8, ["tense"], [])
    responses = pd.DataFrame({**rows, "rt": range(16)}).drop(columns="sentence")
    analysed = analyse_rows(responses, response="rt", item=["dataset", "item"])
    assert not [note for note in analysed.notes if "--split" in note]


def test_how_often_a_word_was_given_is_no_condition():
    words = {"item": [*"1122"], "context": [*"aabb"], "word": [*"cded"], "count": [2, 1, 2, 1]}
    design = design_of(stimuli.load(words, responses=True))
    assert (design.n_items, design.levels) == (2, {})
    assert design.rows == ["item 1: a [c]"]


def test_what_lmdiag_measured_is_no_condition_of_its_tables():
    """How often a word was given, and its tokens; a row of a region is no text."""
    columns = ("item", "context", "target", "count", "cloze", "surprisal", "n_tokens")
    words = [(n, f"Dog {n} saw a", x, k, k / 3, n + k / 2, k) for n in range(8)
             for x, k in (("cat", 2), ("hut", 1))]  # fmt: skip
    table = pd.DataFrame(words, columns=columns)
    design = design_of(stimuli.load(table))
    assert design.levels == {}
    assert design.other_uses["count"] == design.other_uses["n_tokens"] == "measure, not a condition"
    parts = table[["item", "surprisal"]].assign(sentence="A b.", number=1, start=0, state="scored")
    with pytest.raises(BadInput, match="a row is a region or a word of `lmdiag items --per`"):
        stimuli.load(parts, allow_duplicates=True)


def test_words_that_continue_most_sentences_are_not_left_out():
    """One fragment may have the word in it, and contexts may stand before the fragments."""
    rows = {"sentence": ["He gave the boy", "A dog", "She saw", "They sold"]}
    rows["word"] = ["the", "ran", "it", "us"]
    with pytest.raises(BadInput, match="give --columns context=sentence target=word"):
        stimuli.load(rows)
    rows = {"context": ["It rained."] * 4, "sentence": rows["sentence"], "target": rows["word"]}
    with pytest.raises(BadInput, match="give --columns context=sentence target=target"):
        stimuli.load(rows)
    assert stimuli.load(rows, columns="context=context").columns()["context"][0] == "It rained."


def test_a_column_whose_levels_most_items_lack_is_named():
    rows = {
        "item": [str(n // 2) for n in range(16)],
        "kind": ["base", "near", "base", "far"] * 4,
        "sentence": [f"The dog {n} sat in hut{n // 2} now." for n in range(16)],
    }
    warning = "kind is not taken for a condition: 0 of 8 items have all of its levels"
    (said,) = [x for x in design_of(stimuli.load(rows)).warnings if x.startswith(warning)]
    assert "--conditions" not in said  # by which no effect would be tested


def test_critical_words_and_their_lengths_are_no_missing_conditions():
    verbs = ["is", "are", "was", "were"]
    rows = {
        "item": [str(n // 2) for n in range(8)],
        "number": ["one", "two"] * 4,
        "verb": [*verbs, *verbs],
        "length": [len(verb) for verb in (*verbs, *verbs)],
        "sentence": [f"The dog {n // 2} {verb} here." for n, verb in enumerate((*verbs, *verbs))],
    }
    found = design_of(stimuli.load(rows))
    assert [*found.levels] == ["number"]
    (said,) = found.warnings
    assert (
        said == "verb has the critical word of each sentence: --critical verb gives its surprisal"
    )


def test_what_is_read_stands_at_the_head_of_results(tmp_path):
    """A row, and what each column is used for; of runs, their own head says so."""
    rows = pd.DataFrame({
        "item": [*"112233"], "cond": [*"ababab"], "rt": [*"356478"], "list": [*"111111"],
    })  # fmt: skip
    assert analyse_rows(rows, response="rt").reads == (
        "reads item 1, a: rt 3",
        "columns: item: item; condition: cond (a, b); response: rt; not used (one value): list",
    )
    table = read_human(written(fit, tmp_path), chosen=Procedure(response="rt"))
    assert table.reads() == (
        "reads text 1.1, position 1, rt 3.5: [sat]",
        "columns: text: text; position: position; word: word; response: rt; not used: kind",
    )
    norms = stimuli.load(written(cloze, tmp_path), responses=True)
    assert first_rows(norms) == ['item 1.1: The "dog", müde, sat here. [sat]']


ANSWERS = ["shop", "bed", "park", "hut", "sea", "inn", "lab", "zoo"] * 2


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"Stem": FRAGMENTS, "High": ANSWERS, "Low": ANSWERS[::-1]},
         "--columns context=Stem --wide High Low"),
        ({"QuestionText": [f"{x} ____." for x in FRAGMENTS], "Answer": ANSWERS},
         "responses of people: for `lmdiag cloze`, with --columns sentence=QuestionText res"),
        ({"Frame": [f"{x} ___." for x in FRAGMENTS], "p1": ANSWERS, "p2": ANSWERS[::-1],
          "p3": ANSWERS},
         "for `lmdiag cloze`, with --columns sentence=Frame --wide p1 p2 p3"),
        ({"pre": [f"{x} shop" for x in FRAGMENTS], "verb": ANSWERS, "adverb": ["now"] * 16,
          "post": [f"in {x} {n}." for n, x in enumerate(ANSWERS)], "cond": [*"ab"] * 8},
         "perhaps --columns region=pre..post"),
        ({"prime": ANSWERS[::-1], "target": ANSWERS, "rt": range(16), "kind": [*"ab"] * 8},
         "responses in numbers: for `lmdiag analyse`, with --response rt --item target"),
        ({"word": [f"{x}{n}" for n, x in enumerate(ANSWERS)], "frequency": [*range(16)]},
         "a list of words and their norms, which no command reads"),
        ({"sent": [1, 2] * 8, "cond": [*"aabb"] * 4, "version": [*"xxxxyyyy"] * 2,
          "position": [1] * 8 + [2] * 8, "word": [*"pqrstuvw"] * 2},
         "`lmdiag fit`, with --columns text=sent text=cond text=version"),
        ({"item": range(16), "region": [1, 2] * 8, "cond": [*"aabb"] * 4, "tt": [*"3456"] * 4},
         "responses in numbers: for `lmdiag analyse`, with --response tt"),
        ({"participant": [*"aaaabbbbcccc"], "idiom_id": [1, 2, 3, 4] * 3, "cued": [1, 1, 0, 0] * 3,
          "idiom": ["kick the bucket", "break the ice", "spill the beans", "bite the dust"] * 3,
          "rt_ms": [400.5 + 31 * n % 50 for n in range(12)]},
         "responses in numbers: for `lmdiag analyse`, with --response rt_ms --item idiom_id"),
        ({"ID": [n // 8 for n in range(32)], "age": [4 + n // 16 for n in range(32)],
          "act": [f"{x} a hat" for x in ANSWERS[:8]] * 4, "rating": [n * n % 7 for n in range(32)]},
         "responses in numbers: for `lmdiag analyse`, with --response rating --item act"),
    ],
)  # fmt: skip
def test_what_a_table_without_sentences_may_have(columns, expected):
    with pytest.raises(BadInput, match=re.escape(expected)):
        stimuli.load(columns)


def test_sentences_beside_questions_and_with_joined_words_are_not_passed_over():
    texts = [f"The_dog{n}_sat." for n in range(16)]
    with pytest.raises(BadInput, match="--columns sentence=sentence reads them as they are"):
        stimuli.load({"sentence": texts})
    with pytest.raises(BadInput, match="_ stands between words in every sentence"):
        stimuli.load({"sentence": texts}, columns={"sentence": "sentence"})
    questions = [f"Did dog {n} sit here?" for n in range(16)]
    rows = {"sentence": [text.replace("_", " ") for text in texts], "context": questions}
    assert design_of(stimuli.load(rows)).texts == ["sentence"]
    rows["context"] = [f"It rained on day {n}." for n in range(16)]
    with pytest.raises(BadInput, match="target=sentence, or --columns sentence=sentence"):
        stimuli.load(rows)


def test_amounts_are_no_conditions_and_labels_stand_before_their_codes():
    rows = pd.DataFrame(
        {"item": n, "code": code, "chance": chance, "kind": kind, "sentence": f"Dog {n} is {kind}."}
        for n in range(8)
        for code, chance, kind in ((-0.5, 0.85, "here"), (0.5, 0.05, "there"))
    )
    design = design_of(stimuli.load(rows))
    assert [*design.levels] == ["kind"]
    assert design.other_uses["chance"] == "numbers that are not whole, not a condition"
    assert [*design_of(stimuli.load(rows.drop(columns="kind"))).levels] == ["code"]


@pytest.mark.parametrize(("group", "name"), [("set", "Item"), ("set", "item"), ("id", "kind")])
def test_a_column_that_groups_related_texts_is_the_item(group, name):
    """Not a factor with its name; an id of several rows is none."""
    rows = pd.DataFrame(
        {group: n, name: noun, "sentence": f"The {noun} was a{n} b{n} c{n}."}
        for n in range(8)
        for noun in ("man", "stone")
    )
    rows = stimuli.load(rows)
    design = design_of(rows)
    assert rows.columns()["item"][:4] == ["0", "0", "1", "1"]
    assert [*design.levels.values()] == [{"man": 8, "stone": 8}]


def test_numbers_of_items_that_begin_anew_are_found_though_texts_share_articles():
    nouns = ["baker", "sailor", "teacher", "doctor", "painter", "driver", "farmer", "nurse", "cook"]
    rows = pd.DataFrame(
        {"study": n // 3, "item": n % 3, "when": when, "sentence": f"{when} the {noun} slept here."}
        for n, noun in enumerate(nouns)
        for when in ("Today", "Yesterday")
    )
    design = design_of(stimuli.load(rows))
    assert [*design.levels] == ["when"]
    assert any("give --item study item" in warning for warning in design.warnings)
    joined = design_of(stimuli.load(rows), DesignOptions(item=("study", "item")))
    assert (joined.n_items, joined.rows) == (9, ["item 0 0, Today: Today the baker slept here."])
    factor = rows.rename(columns={"study": "fit"})  # the word may be that of a condition
    assert [*design_of(stimuli.load(factor)).levels] == ["fit", "when"]


def test_a_factor_that_is_called_context_is_named_as_in_the_file():
    rows = {
        "item": [n // 2 for n in range(16)],
        "context": ["short", "long"] * 8,
        "sentence": [f"The {x} dog {n} sat." for n in range(8) for x in ("", "old")],
    }
    read = stimuli.load(rows, filter="context=short,long")
    options = DesignOptions(conditions=("context",))
    check_columns({"rows": read}, options)
    assert design_of(read, options).levels == {"context_data": {"long": 8, "short": 8}}


def test_both_readings_of_positions_are_shown():
    """Positions that may count from 0 or from 1 are read from 1, which is said."""
    rows = {"sentence": ["The hen that ran sat.", "A cook sang here."], "critpos": ["3", "2"]}
    rows["item"] = ["1", "2"]
    warning = design_of(stimuli.load(rows)).warnings[-1]
    assert "--critical critpos:0 reads The hen that [ran] sat." in warning
    assert "--critical critpos:1 reads The hen [that] ran sat." in warning
    (note,) = stimuli.load(rows, critical="critpos").notes
    assert note.endswith("positions count from 1, and from 0 with --critical critpos:0")
    rows["critpos"] = ["5", "2"]  # the last word, from 1 alone
    assert "count" not in stimuli.load(rows, critical="critpos").notes[0]


def latin_responses(**columns):
    """A row per reader and item of two lists, with further columns made from (reader, item)."""
    rows = [(reader, item, "ab"[(reader + item) % 2]) for reader in range(8) for item in range(12)]
    table = pd.DataFrame(rows, columns=["subject", "item", "cond"])
    made = {name: [of(reader, item) for reader, item, _ in rows] for name, of in columns.items()}
    return table.assign(rt=[300 + 7 * reader % 5 + item for reader, item, _ in rows], **made)


NO_CONDITIONS = {
    "gender": (lambda reader, _: "mf"[reader // 2 % 2], "follows from the reader"),
    "x1": (lambda reader, _: "AB"[reader % 2], "follows from the reader"),
    "age": (lambda reader, _: 20 + reader // 2, "follows from the reader"),
    "ok": (lambda reader, item: random.Random(f"{reader} {item}").choice("01"),
           "levels are not balanced within items"),
    "kind": (lambda reader, item: "filler" if (reader + item) % 3 else "exp", "fillers"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CONDITIONS)
def test_what_readers_are_and_do_is_no_condition(name):
    """A column of readers or of responses is none, whatever its name; a list needs no name."""
    of, reason = NO_CONDITIONS[name]
    table = latin_responses(**{name: of})
    uses = uses_of(table, response="rt")
    assert [*uses.conditions] == ["cond"]
    assert uses.other_uses[name] == f"not a condition ({reason})"
    alone = table.drop(columns="cond")
    with pytest.raises(BadInput, match=f"{name} .*--conditions {name}"):
        analyse_rows(alone, response="rt")
    assert [*analyse_rows(table, response="rt", conditions=[name]).conditions] == [name]


def test_averaged_rows_and_missing_responses_are_said():
    table = latin_responses(accuracy=NO_CONDITIONS["ok"][0])
    table.loc[table.index[:3], "rt"] = None
    missing, mean = analyse_rows(table, response="rt").notes
    assert missing == "rt is missing in 3 of 96 rows"
    assert mean.endswith(
        "the rows of a cell differ in accuracy: --filter accuracy=VALUE chooses some"
    )


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_without_items_or_readers_are_named_as_missing():
    table = pd.DataFrame({"item": [None] * 4, "reader": [*"1122"], "kind": [*"abab"]})
    assert warnings_of(uses_of(table, ["kind"])) == ["item is missing in 4 of 4 rows"]
    table = table.assign(item=["1", None, "2", None], reader=[None, "1", None, "2"])
    assert warnings_of(uses_of(table, ["kind"])) == ["item is missing in 2 of 4 rows"]


def test_a_table_of_responses_has_the_warnings_of_a_run():
    """Fillers are set aside beside items of the same numbers; a misspelt level is left out."""
    table = latin_responses()
    fillers = table.assign(cond="filler")
    table.loc[5, "cond"] = "bb"
    table["cond"] = table["cond"].replace(
        {"a": "ambig_short", "b": "clear_short", "bb": "clearshort"}
    )
    found = analyse_rows(pd.concat([table, fillers]), response="rt")
    assert found.conditions == {"cond": ("ambig_short", "clear_short")}
    assert found.warnings == (
        "cond: level 'clearshort' has 1 row and is left out; did you mean 'clear_short'?",
        "cond has 96 rows 'filler': --filter 'cond!=filler' leaves them out",
    )
    gaps = table.assign(cond=table["cond"].replace({"ambig_short": "filled", "clear_short": "gap"}))
    assert not [line for line in analyse_rows(gaps, response="rt").warnings if "--filter" in line]


def test_measures_of_one_trial_are_named():
    """A condition of which a reader and item have all levels is one, with a line."""
    table = latin_responses()
    both = pd.concat([table.assign(what=name) for name in ("N400", "P600")])
    found = analyse_rows(both, response="rt")
    assert [*found.conditions] == ["cond", "what"]
    assert found.warnings[0].startswith("rows of one reader and item differ in what, and not in c")


def test_a_wrong_level_and_a_cell_that_no_item_has_are_named():
    cells = [(n, a, b) for n in range(12) for a in "xy" for b in "pq"]
    rows = pd.DataFrame(cells, columns=["item", "a", "b"])
    rows["sentence"] = [f"The dog{n} ate a{n} {a} by b{n} {b}." for n, a, b in cells]
    part = rows[(rows["a"] != "y") | (rows["b"] != "q")]
    (warning,) = design_of(stimuli.load(part)).warnings
    assert warning.endswith("so no effects are tested: give --filter a=x (12 items)")
    assert design_of(stimuli.load(part, filter="a=x")).n_complete == 12
    rows.loc[2, "a"] = "x"  # item 0 has x, p twice
    _, several = design_of(stimuli.load(rows)).warnings
    assert several.startswith("item 0, x, p has 2 texts (rows 1, 3) and no row in another cell")


LEVELS = latin_responses().replace({"cond": {"a": "SRC", "b": "ORC"}})
WRONG = {
    "timeout": (LEVELS.assign(rt=["late", *["3"] * 95]), "--filter 'rt!=late' leaves out 1 row"),
    "units": (LEVELS.assign(rt="392 ms"), "'392 ms' is not a number; write"),
    "percent": (LEVELS.assign(rt="85%"), "write 0.5 for 0,5 or 50%"),
    "comma": (LEVELS.assign(rt="0,85"), "write 0.5 for 0,5 or 50%"),
    "words": (LEVELS.assign(rt="slow"), "choose --response from subject"),
    "case": (LEVELS.assign(cond=["src", *LEVELS["cond"][1:]]), "which differ in letter case alone"),
    "empty cell": (LEVELS.assign(rt=[None if x == "SRC" else 1.0 for x in LEVELS["cond"]]),
                   "none has one in SRC: leave levels out by --filter"),
}  # fmt: skip
"""Tables of responses that cannot be analysed -> what is said."""


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_in_a_table_of_responses_has_a_remedy(case):
    table, remedy = WRONG[case]
    with pytest.raises(BadInput, match=re.escape(remedy)):
        analyse_rows(table, response="rt")


@pytest.mark.parametrize("unit", ["392 ms", "85 %", "5 (all)"])
def test_numbers_with_units_are_responses_and_no_sentences(unit):
    table = LEVELS.assign(rt=[f"{n}{unit[1:]}" for n in range(96)])
    with pytest.raises(BadInput, match="responses in numbers: for `lmdiag analyse`, with --resp"):
        stimuli.load(table)
    assert values_of([*table["rt"], "2只狗在公园里睡觉。"]).kind() == "word"
    assert values_of(["2只狗在公园里睡觉。"]).kind() == "text"


def test_a_column_that_groups_related_texts_is_named_where_each_row_is_an_item():
    cells = [(n, tense) for n in range(12) for tense in ("sat", "sits")]
    rows = pd.DataFrame(cells, columns=["set", "tense"])
    rows["sentence"] = [f"The dog{n} {tense} in hut{n} at hill{n} by sea{n}." for n, tense in cells]
    rows["item"] = range(24)
    (warning,) = design_of(stimuli.load(rows)).warnings
    assert warning.endswith("rows of one set have related texts: give --item set")
    read = design_of(stimuli.load(rows), DesignOptions(item=("set",)))
    assert (read.n_items, [*read.levels]) == (12, ["tense"])


def test_a_column_that_names_cells_is_the_condition_where_factors_leave_cells_empty():
    cells = [("know", "ind"), ("know", "sub"), ("think", "ind"), ("think", "sub"), ("wish", "sub")]
    rows = pd.DataFrame(
        {"item": str(item), "verb": verb, "mood": mood, "cell": f"{verb}+{mood}",
         "sentence": f"The cook of {item} {verb} {mood}."}
        for item in range(3)
        for verb, mood in cells
    )  # fmt: skip
    design = design_of(stimuli.load(rows))
    assert ([*design.levels], design.n_complete) == (["cell"], 3)
    crossed = design_of(stimuli.load(rows[rows["verb"] != "wish"]))
    assert [*crossed.levels] == ["verb", "mood"]
    without_names = design_of(stimuli.load(rows.drop(columns="cell")))
    assert [*without_names.levels] == ["verb", "mood"]


def test_texts_that_stand_in_several_rows_are_read_once_beside_responses():
    """Answers of models to sentences, and ratings, of which identical ones are data."""
    texts = ["The dog near us ran.", "A cat sat down at home.", "My hens never sing at all."]
    answers = pd.DataFrame(
        {"model": model, "sentence": text, "try": n, "correct": (n + len(text)) % 2}
        for model in "xy"
        for text in texts
        for n in range(4)
    )
    found = check(answers)
    assert (found.n_rows, found.reads) == (3, ("The dog near us ran.",))
    assert found.notes == (
        "rows: 24 have 3 sentences, each of which is read once, without model, try, correct, which "
        "differ between its rows",
    )
    assert found.other.endswith("--response correct --item sentence --conditions model")
    ratings = pd.DataFrame(
        {"item": n % 2, "kind": kind, "sentence": f"A dog {n % 2} {kind}.", "liked": n * n % 5}
        for n in range(12)
        for kind in ("ran", "sat")
    )
    found = check(ratings)
    assert (found.n_rows, found.n_complete, found.error) == (4, 2, "")
    assert found.other.endswith("`lmdiag analyse`, with --response liked")
    twice = ratings.drop(columns="liked")
    assert "remove them, or keep one" in check(twice).error
    assert (
        "1 of 4 rows have the text"
        in check({"sentence": [*texts, texts[0]], "n": [*"abcd"]}).warnings[0]
    )


def test_the_fewest_columns_that_name_items_are_given_where_numbers_begin_anew():
    """Numbers of sentences in two constructions of two patterns; a column that has them all."""
    texts = [
        "The old man near us", "A dog with teeth", "My friends from Spain", "Those logs in water",
        "Her child at home", "Nobody on this boat", "Some king of France", "Our best new cook",
    ]  # fmt: skip
    rows = pd.DataFrame(
        {"pattern": "xy"[n // 4], "construction": str(n // 2 % 2),
         "item": str(n % 2), "code": f"k{n}", "number": ["sg", "pl"][n % 3 > 0], "kind": kind,
         "sentence": f"{text} {verb}."}
        for n, text in enumerate(texts)
        for kind, verb in (("good", "sings"), ("bad", "sing"))
    )  # fmt: skip
    begin = "item numbers begin anew"
    (line,) = [x for x in design_of(stimuli.load(rows)).warnings if x.startswith(begin)]
    assert line.endswith("and code names the items: give --item code (8 items)")
    without = rows.drop(columns="code")
    (line,) = [x for x in design_of(stimuli.load(without)).warnings if x.startswith(begin)]
    assert line.endswith("give --item pattern construction item (8 items)")
    options = DesignOptions(item=("pattern", "construction", "item"))
    found = design_of(stimuli.load(without), options)
    assert (found.n_complete, [*found.levels]) == (8, ["kind"])
    renamed = without.rename(columns={"item": "sent_id"})
    (line,) = design_of(stimuli.load(renamed)).warnings
    assert line.endswith("give --item pattern construction sent_id (8 items)")


def test_a_column_that_divides_the_texts_of_a_cell_is_named_with_its_filter():
    """Nothing is averaged over in silence: eight versions of a sentence, in a column of eight."""
    rows = [
        {"item": noun, "condition": kind, "version": f"v{adjective}",
         "sentence": f"The {noun} {verb} near the {adjective} gate by the road."}
        for noun in ("hen", "dog", "cat", "cow")
        for kind, verb in (("a", "sat"), ("b", "slept"))
        for adjective in ("old", "new", "red", "big", "wet", "dry", "hot", "shy")
    ]  # fmt: skip
    (warning,) = design_of(stimuli.load(rows)).warnings
    assert warning.endswith("(32 items), or choose rows by --filter version=VALUE")


def test_what_columns_are_is_judged_on_all_rows_of_a_sample():
    rows = [
        {"item": str(n), "cond": cond, "half": "xy"[(n + (cond == "b")) % 2], "n": str(n % 3),
         "sentence": f"The dog {n} was {cond} in room {n}."}
        for n in range(20)
        for cond in "ab"
    ]  # fmt: skip
    rows += [{**rows[0], "half": "y"}, {**rows[1], "half": "x"}, {**rows[2], "half": "x"}]
    rows += [{**row, "half": "z"} for row in rows[:6]]
    whole = design_of(stimuli.load(rows))
    found = design_of(stimuli.load(rows, limit=2))
    assert ([*whole.levels], whole.n_items) == (["cond"], 20)
    assert ([*found.levels], found.n_items) == (["cond"], 1)
    assert (found.other_uses, found.warnings) == (whole.other_uses, whole.warnings)
