"""Tables of users in all their forms: read alike, or refused with file, line and remedy."""

import csv
import re
import zipfile

import openpyxl
import pandas as pd
import pytest
from datasets import Dataset, DatasetDict
from invented_runs import make_run
from sentence_files import suite

import lmdiag
from lmdiag import stimuli
from lmdiag.analysis.human import read_human
from lmdiag.analysis.procedures import Procedure
from lmdiag.report.analyses import designs_of
from lmdiag.stimuli.dataset import read_file
from lmdiag.stimuli.designs.design import design_of
from lmdiag.tables.table_files import WRITTEN_SUFFIXES, as_frame, read_table, write_table
from lmdiag.types import BadInput, DesignOptions

FRAME = pd.DataFrame({
    "item": [*"112"], "a": [*"xyx"], "sentence": ["A man slept.", "He sat.", "So."],
    "dose": ["0.5", "1.25", "2"],
})  # fmt: skip
PLAIN = FRAME.to_csv(index=False)


def human_of(path):
    return read_human(path, chosen=Procedure(response="dose"))


def written(folder, suffix, content):
    path = folder / f"own{suffix}"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("separator", "values"), [(";", ["1.5", "2"]), ("\t", ["1,5", "2"]), (",", ["1,5", "2"])]
)
def test_commas_are_decimal_where_semicolons_separate_the_fields(tmp_path, separator, values):
    text = '"a";"n"\n"x";"1,5"\n"y";"2"\n'.replace(";", separator)
    assert read_table(written(tmp_path, ".csv", text)).columns["n"] == values


@pytest.mark.parametrize("suffix", WRITTEN_SUFFIXES)
def test_tables_that_lmdiag_wrote_are_read_with_the_texts_that_were_written(tmp_path, suffix):
    """Those of other programs are read as they are, where NA is a missing value."""
    texts = ["=a", "'=a", "NA", "''-x", "-0.5", "+b", "'s", "nan", "1.10", "a\nb", "a\u00adb"]
    answers = {"model": "m", "surprisal": 1.5, "state": "scored"}
    frame = pd.DataFrame({"item": texts, "=n": texts[::-1], "list": None, **answers})
    path = tmp_path / f"own{suffix}"
    write_table(frame, path)
    columns = as_frame(read_table(path)).to_dict("list")
    assert (columns["item"], columns["=n"], columns["state"][0]) == (texts, texts[::-1], "scored")
    assert [*map(float, columns["surprisal"])] == [1.5] * len(texts)
    write_table(frame.drop(columns="state"), path)
    if suffix != ".parquet":
        assert read_table(path).columns["item"][:3] == ["'=a", "''=a", None]


def two_sheets(path):
    with pd.ExcelWriter(path) as book:
        for name in ("one", "two"):
            FRAME.to_excel(book, sheet_name=name, index=False)


def test_one_sheet_is_read_and_a_merged_cell_in_all_its_rows(tmp_path):
    path = tmp_path / "own.xlsx"
    two_sheets(path)
    book = openpyxl.load_workbook(path)
    book["two"].merge_cells("A2:A4")
    book.save(path)
    first = read_table(path)
    assert first.notes == ("sheet: one of 2 (one, two); --sheet chooses one",)
    assert [*first.columns["item"]] == ["1", "1", "2"]
    for sheet in ("two", "2"):
        assert [*read_table(path, sheet=sheet).columns["item"]] == ["1", "1", "1"]
    with pytest.raises(BadInput, match=r"--sheet three: no such sheet.*there are one, two"):
        read_table(path, sheet="three")


def test_hidden_sheets_and_texts_about_a_table_are_not_read(tmp_path):
    path = tmp_path / "own.xlsx"
    two_sheets(path)
    book = openpyxl.load_workbook(path)
    book["one"].sheet_state = "hidden"
    book.create_sheet("about", 0).append(["These are my items."])
    book.save(path)
    assert read_table(path).notes == ("sheet: two of 3 (about, one, two); --sheet chooses one",)


@pytest.mark.parametrize("n_notes", [3, 20])
def test_notes_in_two_columns_before_a_table_are_not_read(tmp_path, n_notes):
    """Nor is a longer table passed over for another one, also without known names."""
    path = tmp_path / "own.xlsx"
    with pd.ExcelWriter(path) as book:
        notes = {"Author": ["A. B."] * n_notes, "Year": range(n_notes)}
        pd.DataFrame(notes).to_excel(book, sheet_name="notes", index=False)
        rows = {"Satz": [f"Satz {n} ist da." for n in range(40)], "Art": [*"ab"] * 20}
        pd.DataFrame(rows).to_excel(book, sheet_name="rows", index=False)
    name = "rows" if n_notes == 3 else "notes"
    assert read_table(path).notes == (f"sheet: {name} of 2 (notes, rows); --sheet chooses one",)


def changed_book(path, *changes, **columns):
    """Writes a workbook and replaces patterns in the XML of its parts."""
    pd.DataFrame({"item": [1]} | columns).to_excel(path, index=False)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            for pattern, text in changes:
                part = re.sub(pattern, text, part)
            archive.writestr(name, part)


COMPUTED = (' fullCalcOnLoad="1"', "")
PREFIXED = (
    (r"<(/?)(worksheet|sheetData|row|c|v|f|is|t)(?=[ >/])", r"<\1x:\2"),
    ("xmlns=", "xmlns:x="),
)


@pytest.mark.parametrize("xml", [(), PREFIXED], ids=["plain", "prefixed"])
@pytest.mark.parametrize("value", ['t="str"><f>A2</f><v></v>', '><f>A2</f><v></v>', '><f>A2</f>',
                                   't="str"><f>A2</f>', '><f ca="1"/><v/>'])  # fmt: skip
def test_only_a_text_may_be_the_empty_value_of_a_formula(tmp_path, value, xml):
    path = tmp_path / "own.xlsx"
    cell = ('<c r="B2".*?</c>', f'<c s="0" r="B2" {value}</c>')
    of_sheet = [(f"(?s){pattern}(?=.*</(?:x:)?worksheet>|>\\s*\\Z)", text) for pattern, text in xml]
    changed_book(path, COMPUTED, cell, *of_sheet, note="=A2")
    if value.startswith("t") and "<v>" in value:
        assert [*read_table(path).columns["note"]] == [""]
    else:
        with pytest.raises(BadInput, match="cell B2: a formula without a stored value"):
            read_table(path)


def test_values_of_formulas_that_no_program_computed_are_refused(tmp_path):
    """XlsxWriter stores 0 for each, and asks Excel to compute all when it opens the file."""
    path = tmp_path / "own.xlsx"
    cell = ('<c r="B2".*?</c>', '<c r="B2"><f>A2</f><v>0</v></c>')
    changed_book(path, cell, note="=A2")
    with pytest.raises(BadInput, match="cell B2: a formula without a stored value: open the file"):
        read_table(path)
    changed_book(path, COMPUTED, cell, note="=A2")
    assert [*read_table(path).columns["note"]] == ["0"]


def test_codes_of_characters_are_decoded(tmp_path):
    path = tmp_path / "own.xlsx"
    pd.DataFrame({"item": ["a_x0009_b", "_xyz_"]}).to_excel(path, index=False)
    assert [*read_table(path).columns["item"]] == ["a\tb", "_xyz_"]


def test_sheets_that_are_charts_are_no_tables(tmp_path):
    path = tmp_path / "own.xlsx"
    two_sheets(path)
    book = openpyxl.load_workbook(path)
    chart = openpyxl.chart.LineChart()
    chart.add_data(openpyxl.chart.Reference(book["two"], min_col=1, min_row=1, max_row=3))
    book.create_chartsheet("chart", 0).add_chart(chart)
    book.save(path)
    assert read_table(path).notes == ("sheet: one of 2 (one, two); --sheet chooses one",)
    assert [*read_table(path, sheet="2").columns["item"]] == ["1", "1", "2"]


TEXTS = ['A man, who "slept".', "Er sagt: ja; so.", "'t is - so."]
KNOWN = pd.DataFrame({
    "item": ["01", "1.1", "1.10"], "bed": [*"xyx"], "sentence": TEXTS, "rt": ["0.5", "1.25", "20"],
})  # fmt: skip
LINES = KNOWN.to_csv(index=False)
TABS = KNOWN.to_csv(index=False, sep="\t")
UNKNOWN = LINES.replace("item,", "Nr,", 1).replace("sentence", "Satz", 1)
QUOTED = KNOWN.to_csv(sep=" ", quoting=csv.QUOTE_ALL).removeprefix('"" ')
LITERAL = KNOWN.to_csv(index=False, sep="\t", quoting=csv.QUOTE_NONE, quotechar="")
R_NAMES = "".join(
    f"{i}\t{line}\n" if i else f"{line}\n" for i, line in enumerate(LITERAL.splitlines())
)
COLUMNS = "".join(f"# {i}. {name}.\n" for i, name in enumerate(KNOWN, start=2))
PCIBEX = "# Results on Friday\n# 1. Time.\n# 2. Comments.\n17,NULL\n" + COLUMNS + "".join(
    "17," + ",".join(cell.replace(",", "%2C") for cell in row) + "\n" for row in KNOWN.to_numpy()
)  # fmt: skip
QUALTRICS = LINES.replace("rt\n", 'rt\nNo.,Bed.,"Read\n\nthis",ms\n' + ",".join(
    f'"{{""ImportId"":""{name}""}}"' for name in KNOWN) + "\n", 1)  # fmt: skip

LAYOUTS = {
    "comma": (".csv", LINES, ()),
    "semicolon": (".csv", KNOWN.assign(rt=["0,5", "1,25", "20"]).to_csv(index=False, sep=";"), ()),
    "blanks after commas": (".csv", LINES.replace(", who", "_who").replace(",", ", ")
                            .replace("_who", ", who"), ()),
    "bar": (".txt", KNOWN.to_csv(index=False, sep="|"), ()),
    "byte-order marks": (".csv", f"\ufeff\ufeff{LINES}", ()),
    "line ends of old Macs": (".txt", TABS.replace("\n", "\r"), ()),
    "sep=": (".csv", "sep=|\n" + KNOWN.to_csv(index=False, sep="|"), ("separator: line 1 is p",)),
    "comments": (".csv", f"# made by X\n\n{LINES}", ("comments: lines above line 3 are",)),
    "header in a comment": (".csv", f"# made by X\n# {UNKNOWN}", ("comments: lines above line 2",)),
    "header again": (".csv", LINES.replace("1.1,", "item,bed,sentence,rt\n1.1,", 1),
                     ("header: it is there again in line 3, passed over",)),
    "title": (".csv", f"My items, new\n{UNKNOWN}", ("title: line 1 is passed over, 'My items",)),
    "lines about the file": (".csv", f"By:,X,,\n,,,\nOn:,Monday,,\n{UNKNOWN}",
                             ("title: lines 1, 3 are passed over, 'By:, X, On:, Monday'",)),
    "two headers": (".csv", f"Design,,Text,\n{UNKNOWN}", ("title: line 1 is passed over",)),
    "Qualtrics": (".csv", QUALTRICS, ("header: lines 4, 5 are passed over, 'No., Bed.",)),
    "notes": (".csv", f"{LINES}\nSource: X\n", ("below: line 6 is passed over, 'Source: X'",)),
    "end of Gorilla": (".csv", f"{LINES}END OF FILE,,,\n", ("below: line 5 is passed over",)),
    "no name": (".csv", LINES.replace("\n", ",\n").replace("20,", "20,odd"),
                ("columns: column 5, with 'odd', has no name and is not read",)),
    "blanks at ends": (".csv", LINES.replace("\n", ", ,\n"), ()),
    "write.csv": (".csv", KNOWN.to_csv(quoting=csv.QUOTE_ALL), ()),
    "write.table": (".txt", QUOTED.replace('""', '\\"'), ("row names: the first cell of each",)),
    "write.table in tabs": (".txt", QUOTED.replace('" "', '"\t"').replace('""', '\\"'),
                            ("row names: the first cell of each",)),
    "write.table without quotes": (".txt", R_NAMES, ("row names: the first cell of each",)),
    "tabs, names that are not known": (".txt", LITERAL.replace("sentence", "Satz"), ()),
    "line of E-Prime": (".txt", f"C:\\a.edat2\n{TABS}", ("title: line 1 is passed over, 'C:",)),
    "PCIbex": (".csv", PCIBEX, ("comments: they name the columns",)),
    "PCIbex in Excel": (".csv", re.sub("(#.*)", r"\1,,,,", PCIBEX), ("comments: they name the",)),
    "JSON lines": (".json", KNOWN.to_json(orient="records", lines=True), ()),
    "JSON": (".json", KNOWN.assign(keys=[[1]] * 3).to_json(orient="records"),
             ("columns: not read, since keys has a list",)),
}  # fmt: skip
"""How the same table is written -> ending and content of the file, starts of the notes."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_of_a_table_have_its_values(tmp_path, layout):
    suffix, content, notes = LAYOUTS[layout]
    table = read_file(written(tmp_path, suffix, content))
    columns = {name: values for name, values in table.columns.items() if "".join(values).strip()}
    n_above = len(table) - len(KNOWN)  # a row of another kind of PCIbex
    values = [column[n_above:] for column in columns.values()][-len(KNOWN.columns) :]
    if "Comments" in columns:
        values = [columns[name][n_above:] for name in KNOWN]
    assert values == KNOWN.T.to_numpy().tolist()
    for note, start in zip(table.notes, notes, strict=True):
        assert note.startswith(start)


def test_texts_at_the_end_of_a_column_of_texts_are_rows(tmp_path):
    path = written(tmp_path, ".csv", "sentence,a,item\n" + "He sat.,x,1\n" * 3 + "A filler.,,\n")
    table = read_table(path)
    assert (len(table), table.notes) == (4, ())


def test_quotes_in_tab_separated_words_are_characters(tmp_path):
    """Corpora of reading times have one word in a row, with its quotes."""
    path = written(tmp_path, ".tsv", 'word\trt\n"Hello,"\t1\n"No\t2\nNA\t3\nsaid"\tNA\n')
    words = as_frame(read_table(path, raw=True), raw=True)["word"]
    assert words.tolist() == ['"Hello,"', '"No', "NA", 'said"']
    assert read_table(path).columns["word"][2] is None
    human = human_of(path)
    assert human.missing("rt").tolist() == [False, False, False, True]
    assert human.where(3).endswith("own.tsv:5")
    numbered = read_table(written(tmp_path, ".csv", FRAME.to_csv()), raw=True)
    assert "" in as_frame(numbered, raw=True)  # names of rows


CELLS = [(g, a) for g in ("yes", "no") for a in ("match", "mismatch")]
DESIGN = pd.DataFrame(
    {
        "item": f"{item}", "grammatical": g, "attractor": a, "frequency": f"{item % 7}",
        "region_1": f"The key {item}", "region_2": f"to the {a}", "region_3": f"is {g}",
    }
    for item in range(1, 25)
    for g, a in CELLS
)  # fmt: skip
FILE = DESIGN.to_csv(index=False)


def put(column, value, row=5):
    changed = DESIGN.copy()
    changed.loc[row, column] = value
    return changed.to_csv(index=False)


def named(old, new):
    return FILE.replace(old, new, 1)


BAD = {
    "NA in a region": (put("region_3", "NA"), "own.csv:7: the column region_3 is NA or NaN: write"),
    "NaN in a region": (put("region_2", "NaN"), "own.csv:7: the column region_2 is NA or NaN"),
    "case of a level": (put("grammatical", "No"), "1 row as 'No', 48 as 'no', which differ in let"),
    "itm": (named("item", "itm"), "the column 'itm' is nearly 'item'"),
    "items": (named("item", "items"), "the column 'items' is nearly 'item'"),
    "swapped letters": (named("frequency", "contrsat"), "'contrsat' is nearly 'contrast': give"),
    "identical rows": (FILE + FILE.split("\n", 1)[1], "own.csv:98: the row is identical to line 2 "
                       "(96 repeated: lines 98, 99, 100, 101, 102 and 91 more): remove them, "),
    "no header": ("1,1,The key\n1,2,The keys\n", "own.csv:1: the first line seems to be a row, "
                  "with '1', '1', 'The key', and must name the columns: write a line of names"),
    "no header, a row twice": ("The,0\nkey,9\nThe,0\n", "own.csv:1: the first line seems to be a"),
    "no header, without numbers": ("A hen sat.,sg,i1\nA hen ran.,sg,i1\nIt ran.,pl,i2\n",
                                   "own.csv:1: the first line seems to be a row"),
    "NaN as context": ("context,target\nNaN,a\n", "own.csv:2: the column context is empty"),
    "NA beside bars": ("item,sentence\n1,NA\n2,B|c\n", "own.csv:2: the column sentence is NA"),
    "NA in a pair": ("sen,wrong_sen\nA,NA\n", "own.csv:2: the column wrong_sen is empty"),
}  # fmt: skip
"""What is wrong for certain -> the file, the error."""

FULL = "(match, mismatch); covariate: frequency"
OTHER = DESIGN.assign(list=[str(1 + (i // 4 + i) % 4) for i in range(96)])
ODD = {
    "nothing": (FILE, FULL, []),
    "misspelt level": (put("attractor", "mismtach"), FULL, [
        "attractor: level 'mismtach' has 1 row (line 7) and is left out; did you",
        "left out, since they have no row in some cells of grammatical x attractor: 1 of 24"]),
    "missing level": (put("attractor", ""), FULL, [
        "attractor is missing in 1 of 96 rows (line 7)",
        "left out, since they have no row in some cells of grammatical x attractor: 1 of 24"]),
    "missing item": (put("item", ""), FULL, ["item is missing in 1 of 96", "left out"]),
    "list": (OTHER.to_csv(index=False), f"{FULL}; not a condition (list: has each condition once "
             "per item): list", []),
    "nested": (
        "item,block,cond,sentence\n" + "".join(f"{i},{b},{c},{i} {c}.\n" for i in range(1, 7)
        for b in ["xy"[i % 2]] for c in (b + "1", b + "2")),
        "conditions: none; covariate: block; not a condition: cond", [
            "cond has other levels at each level of block (x: x1, x2; y: y1, y2): choose one by "
            "--filter block=x"]),
    "sets of levels": (
        "item,kind,sentence\n" + "".join(f"{i},{k},{i} {k}.\n" for i in range(1, 7)
        for k in (("x1", "x2"), ("y1", "y2"))[i % 2]), "conditions: none; not a condition: kind", [
            "kind has other levels in other items (x1, x2; y1, y2): choose some by --filter "
            "kind=x1,x2"]),
    "words called as participants": (
        DESIGN.assign(vp=[f"eat {i // 4}" for i in range(96)]).to_csv(index=False),
        "covariate: frequency, vp", []),
    "words of items": (
        DESIGN.assign(noun=[f"key {1 + i // 4}" for i in range(96)])
        .rename(columns={"item": "story"}).to_csv(index=False), "24 items; conditions: gram", []),
    "verb": (DESIGN.assign(verb=[f"v{i % 7}" for i in range(96)]).to_csv(index=False),
             f"{FULL}; not used (7 levels, more than 6: give --conditions or --split): verb", []),
    "number of the attractor": (DESIGN.assign(n=[1, 2] * 48).to_csv(index=False),
                                f"{FULL}; follows from the conditions: n", []),
    "one value": (DESIGN.assign(n=1).to_csv(index=False), f"{FULL}; not used (one value): n", []),
    "empty region": (put("region_3", ""), FULL, [
        "region_3 is empty in 1 of 96 rows (line 7) but not in all of their condition"]),
    "empty in a condition": (
        DESIGN.assign(region_3=DESIGN.region_3.where(DESIGN.grammatical == "yes", ""))
        .to_csv(index=False), FULL, []),
    "no cell": (FILE.rsplit("\n", 2)[0], FULL, ["left out, since they have no row in some cells of "
                "grammatical x attractor: 1 of 24 items (24)"]),
    "kinds of items": (DESIGN.assign(Items=["Critical", "Control"] * 48, ItemNum=DESIGN.item)
                       .drop(columns="item").to_csv(index=False),
                       "covariate: frequency; follows from the conditions: Items", []),
    "item number used again": (put("item", "11"), "(match, mismatch); numbers: freq", [
        "left out", "item 11, yes, mismatch has 2 texts (lines 7, 43): their mean is analysed"]),
    "item of another name": (
        named("item", "item_nr"), "24 items; conditions: grammatical (no, yes) x attractor (match, "
        "mismatch); covariate: frequency; item: item_nr", []),
    "same texts": (DESIGN.assign(region_1="The key").rename(columns={"item": "item_nr"})
                   .to_csv(index=False), "; not used: item_nr",
                   ["no column item: if item_nr names the items, give --item item_nr"]),
    "between items": (DESIGN[(DESIGN.index // 4 % 2 == 0) == (DESIGN.grammatical == "yes")]
                      .to_csv(index=False),
                      "conditions: attractor (match, mismatch); covariate: grammatical, freq", []),
    "one level": (DESIGN.iloc[::4].to_csv(index=False), "24 items; conditions: none; not used (one "
                  "value): grammatical, attractor; covariate: frequency", []),
    "name with a space": (named("attractor", "the attractor"), "x the attractor (match, mism", []),
    "good rows": ("item,context,target,good,contrast\n1,A,b,true,1\n1,A,c,false,1\n1,A,d,false,1\n",
                  "1 items; conditions: good (false, true)", []),
    "case of a name": (named("attractor", "ATTRACTOR"), "x ATTRACTOR (match, mismatch)", []),
    "pairs": ("sentence_good,sentence_bad,UID,pairID,field\nA.,B.,x,0,s\n", "2 sentences", []),
    "MultiBLiMP": (",phenomenon,sen,wrong_sen\n0,SV-#,A b.,A c.\n1,SV-P,D.,E.\n", "4 sent", []),
}  # fmt: skip
"""What may be wrong -> the file, a part of the summary, the warnings."""


@pytest.mark.parametrize("case", BAD)
def test_certain_mistakes_are_errors_with_the_remedy(tmp_path, case, command):
    path = written(tmp_path, ".csv", BAD[case][0])
    assert BAD[case][1] in command.refused("check", path)


@pytest.mark.parametrize("case", ODD)
def test_what_may_be_wrong_is_a_warning(tmp_path, case, command):
    text, summary, warnings = ODD[case]
    path = written(tmp_path, ".csv", text)
    design = design_of(stimuli.load(str(path)))
    assert summary in design.summary()
    for warning, start in zip(design.warnings, warnings, strict=True):
        assert warning.startswith(start)
    code, out, _ = command("check", path)
    assert code == 0
    assert [f"warning: {line}" for line in design.warnings] == [
        line for line in out.splitlines() if line.startswith("warning: ")
    ]


def test_check_cuts_what_a_name_makes_long(tmp_path, command):
    path = written(tmp_path, ".csv", f"sentence,{'x' * 20_000}\nA dog sat.,1\nA cat sat.,2\n")
    lines = command("check", path)[1].splitlines()
    assert max(map(len, lines)) == 4_000
    assert lines[-1].startswith("column      xxx")
    assert lines[-1].endswith("…")


def test_check_says_which_scripts_a_tokenizer_splits_into_bytes(tmp_path, command):
    rows = "language,context,target\nrus,Это дом,и\neng,This is a,house\n"
    path = written(tmp_path, ".csv", rows)
    _, out, _ = command("check", path, "--model", "demo:causal")
    assert out.splitlines()[-2:] == [
        "bytes       demo:causal splits CYRILLIC characters into bytes in 1 of 2 rows",
        "bytes       languages with such rows: rus",
    ]


def test_an_empty_region_is_left_out_and_counted(tmp_path):
    data = written(tmp_path, ".csv", put("region_3", ""))
    run = lmdiag.load_run(make_run(tmp_path / "run", data))
    analysis = lmdiag.analyse(run, region="3")
    assert (set(analysis.effects["n"]), [*analysis.left_out.values()]) == ({23}, [1])
    (design,) = designs_of([run], DesignOptions(region="3"))
    assert "left out: 1 item without a value in every condition" in design.remarks
    assert any(x.startswith("warning: region_3 is empty in 1 of 96") for x in design.remarks)


def test_one_of_identical_rows_is_kept_where_they_are_allowed(tmp_path):
    data = written(tmp_path, ".csv", FILE + FILE.split("\n", 1)[1])
    rows = stimuli.load(str(data), allow_duplicates=True)
    assert len(rows) == 96
    data.write_text(FILE)
    assert rows.fingerprint == stimuli.load(str(data)).fingerprint
    pairs = [{"sentence_good": f"A {i}.", "sentence_bad": f"B {i}.", "UID": "x"} for i in range(4)]
    with pytest.raises(BadInput, match=r"identical to row 1 \(16 repeated: rows 5, 6"):
        stimuli.load(pairs * 5)


def test_built_in_sets_and_suites_have_no_design(demo_dir):
    for rows in (stimuli.load(suite()), stimuli.load(str(demo_dir), "role88")):
        assert design_of(rows) is None


def test_a_dataset_dict_names_its_splits():
    rows = Dataset.from_list([{"sentence": "A dog barks."}])
    with pytest.raises(BadInput, match=r"a DatasetDict has splits \(train, test\): give one, as"):
        stimuli.load(DatasetDict({"train": rows, "test": rows}))
