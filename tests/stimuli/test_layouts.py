"""Tables as researchers have them: read with options or by themselves, or refused with a remedy."""

import io
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from invented_runs import make_run

import lmdiag
from lmdiag import stimuli
from lmdiag.analysis.human import read_human
from lmdiag.analysis.procedures import Procedure
from lmdiag.asking.questions import Setting, row_keys
from lmdiag.report.selections import ReportFigures
from lmdiag.runs.surprisals import read_texts
from lmdiag.stimuli.designs.design import design_of
from lmdiag.stimuli.proposing.word_rows import word_rows
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.types import BadInput, TableOptions

WIDE = (
    "Nr,Good_Near,Good_Far,Bad_Near,Bad_Far,Crit,Kind\n"
    "1,The bell is new.,The bells are new.,The bell are new.,The bells is new.,3,exp\n"
    "2,A wall is red.,Some walls are red.,A wall are red.,Some walls is red.,3,exp\n"
    "3,It rains.,,,,2,filler\n"
)
WIDE_OPTIONS = {
    "filter": "Kind=exp", "wide": ["Good_Near", "Good_Far", "Bad_Near", "Bad_Far"],
    "split": "condition=_:grammatical,distance", "critical": "crit",
}  # fmt: skip


def table(text):
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def written(folder, content, name="own.csv"):
    path = folder / name
    path.write_text(content)
    return path


def test_a_wide_table_has_the_effects_of_its_conditions_at_the_critical_word(tmp_path):
    """The options are stored with the run, which is read back and analysed with them."""
    path = written(tmp_path, WIDE)
    rows = stimuli.load(str(path), **WIDE_OPTIONS)
    columns = rows.columns()
    assert columns["item"] == ["1"] * 4 + ["2"] * 4
    assert columns["grammatical"][:4] == ["Good", "Good", "Bad", "Bad"]
    assert columns["id"][:2] == ["own-1-Good_Near", "own-1-Good_Far"]
    text = columns["sentence"][1]
    spans = {x["name"]: text[x["start"] : x["end"]] for x in columns["regions"][1]}
    assert spans == {"critical": "are", "spill_1": "new."}
    steps = [note.partition(":")[0] for note in rows.notes]
    assert steps == ["filter", "wide", "split", "critical"]
    assert stimuli.load(table(WIDE), "own", **WIDE_OPTIONS).fingerprint == rows.fingerprint
    run = lmdiag.load_run(make_run(tmp_path / "run", path, table=TableOptions.of(WIDE_OPTIONS)))
    effects = lmdiag.analyse(run, region="critical").effects
    assert [*effects["effect"]] == ["grammatical", "distance", "grammatical:distance"]
    assert set(effects["n"]) == {2}
    assert set(lmdiag.analyse(run, filter="distance=Far").conditions) == {"grammatical"}


PAIR = {"sentence_good": ["A a."], "sentence_bad": ["B b."]}
READ = {
    "other names": ({"left": ["It is"], "form": ["so"]},
                    {"columns": ["context=left", "target=form"]},
                    {"context": ["It is"], "target": ["so"]}),
    "mapping": ({"left": ["It is"], "form": ["so"]},
                {"columns": {"context": "left", "target": "form"}},
                {"context": ["It is"], "target": ["so"]}),
    "range": ({"R01": ["A"], "t1": [5], "R02": ["b."], "t2": [6]}, {"columns": "region=R01..R02"},
              {"sentence": ["A b."], "t2": [6]}),
    "pair": ({"a": ["A a."], "b": ["B b."]}, {"columns": ["sentence_good=a", "sentence_bad=b"]},
             {"sentence": ["A a.", "B b."], "good": [True, False]}),
    "zeros, blanks": ({"item ": [1], "Region01": ["A"], "region 2": ["b."]}, {},
                      {"item": ["1"], "sentence": ["A b."]}),
    "capitals": ({"Item": [1], "Sentence": ["A a."], "Target": ["a"]}, {}, {"item": ["1"]}),
    "not equal": ({"sentence": ["A.", "B.", "C."], "k": ["x", "y", "z"]}, {"filter": "k!=x,z"},
                  {"id": ["rows-2"]}),
    "value with a comma": ({"sentence": ["A.", "B."], "k": ["x,y", "z"]}, {"filter": "K=x,y"},
                           {"sentence": ["A."]}),
    "gap": ({"sentence": ["The [MASK] ran.", "A ___, too"], "target": ["x", "y"]}, {},
            {"context": ["The", "A"], "right_context": ["ran.", ", too"], "target": ["x", "y"]}),
    "gap at the start": ({"sentence": ["___ can fly."], "target": ["Birds"]}, {},
                         {"context": [""], "right_context": ["can fly."]}),
    "named gap": ({"sentence": ["The @ ran."], "target": ["x"]}, {"gap": "@"},
                  {"context": ["The"]}),
    "wide targets": ({"context": ["It is"], "near": ["so"], "far": ["no"]},
                     {"wide": ["near", "far"]},
                     {"target": ["so", "no"], "condition": ["near", "far"], "item": ["1", "1"]}),
    "wide pair": ({"S1": ["A a."], "s2": ["B b."]}, {"wide": ["s1", "S2"]},
                  {"sentence": ["A a.", "B b."], "condition": ["S1", "s2"]}),
    "outer blanks": ({"context": ["It is ", "So"], "target": ["x", " y"], "k": ["a", "a\t"]}, {},
                     {"context": ["It is", "So"], "target": ["x", "y"], "k": ["a", "a"]}),
    "wide beside a condition": ({"item": [1], "condition": ["x"], "a": ["It is."], "b": ["So be."]},
                                {"wide": ["a", "b"]},
                                {"condition": ["x", "x"], "wide_condition": ["a", "b"]}),
    "a target that is wide": ({"id": ["1"], "target": ["A hen sat."], "other": ["Hens sat."]},
                              {"wide": ["target", "other"]},
                              {"sentence": ["A hen sat.", "Hens sat."]}),
    "separator": ({"sentence": ["The*dog*ran."] * 2, "k": "ab"}, {"separator": "*"},
                  {"sentence": ["The dog ran."] * 2}),
    "grammaticality": (
        {"sentence": ["A.", "B.", "C.", "D."], "ok": "yynn", "i": [1, 2, 1, 2]},
        {"good": "ok=y", "contrast": "i"}, {"contrast": ["1", "2", "1", "2"]}),
    "Chinese": ({"region_1": ["那个"], "region_2": ["农夫"], "region_3": ["。"]}, {},
                {"sentence": ["那个农夫。"]}),
    "Thai, Japanese, Latin": (
        {"region_1": ["แมว", "彼は"], "region_2": ["กิน", "「本」"], "region_3": ["NP", "を"]}, {},
        {"sentence": ["แมวกิน NP", "彼は「本」を"]}),
    "critical word": ({"sentence": ["The hen, old, ate."], "c": ["old"]}, {"critical": "c"},
                      {"regions": [[{"number": 1, "name": "critical", "start": 9, "end": 13},
                                    {"number": 2, "name": "spill_1", "start": 14, "end": 18}]]}),
    "ellipsis": ({"context": ["It is...", "A…"], "target": ["x", "y"]}, {},
                 {"context": ["It is", "A"]}),
    "ellipsis before words": ({"sentence": ["It is ..."], "x": ["so"], "y": ["no"]},
                              {"wide": ["x", "y"]}, {"context": ["It is", "It is"]}),
    "critical word after a context": (
        {"a": ["It is late."], "b": ["A hen sat."], "c": ["hen"]},
        {"columns": ["context=a", "sentence=b"], "critical": "c"},
        {"sentence": ["It is late. A hen sat."],
         "regions": [[{"number": 1, "name": "critical", "start": 14, "end": 17},
                      {"number": 2, "name": "spill_1", "start": 18, "end": 22}]]}),
    "joined contexts": ({"p1": ["It is late."], "p2": ["He is"], "target": ["old"]},
                        {"columns": "context=p1..p2"}, {"context": ["It is late. He is"]}),
    "sentences beside words": ({"sentence": ["The hen"], "word": ["ate"]},
                               {"columns": "sentence=sentence"}, {"sentence": ["The hen"]}),
}  # fmt: skip
"""Layout -> columns of a table, options, columns of the stimuli."""


@pytest.mark.parametrize("case", READ)
def test_layouts_are_read_as_they_lie(case):
    columns, options, expected = READ[case]
    rows = stimuli.load({name: [*x] for name, x in columns.items()}, **options).columns()
    assert {name: rows[name] for name in expected} == expected


TEXT = {"sentence": ["A b.", "C d."], "item": ["1", "2"]}
REFUSED = {
    "marker in a context": ({"context": ["The [MASK] of"], "target": ["x"]}, {},
                            r"'\[MASK\]': write what is left .* --columns sentence=context"),
    "template": ({"context": ["The $PRONOUN is"], "target": ["x"]}, {}, r"'\$PRONOUN'"),
    "two gaps": ({"sentence": ["The {} ran {}."], "target": ["x"]}, {}, "row 1: .* 2 gaps"),
    "gap in a context": ({"Context": ["A {} b."], "target": ["x"]}, {}, "sentence=Context if the"),
    "gap in some": ({"sentence": ["A XXXX.", "B."], "target": ["x", "y"]}, {}, "row 2: .* no gap"),
    "gap, no target": ({"sentence": ["A <mask>."]}, {}, "give the word .* in a column target"),
    "stars": ({"sentence": ["The*dog*ran.", "A*cat*ran."]}, {}, r"give --separator '\*'"),
    "two sentences": ({"sentence_a": ["A a."], "sentence_b": ["B b."]}, {},
                      "sentence_a and sentence_b are two texts in a row: say which is good: --col"
                      "umns sentence_good=sentence_a sentence_bad=sentence_b, .* perhaps --wide "),
    "fragment": ({"sentence": ["The hen"], "word": ["ate"]}, {},
                 "give --columns context=sentence target=word"),
    "no row": (TEXT, {"filter": "item!=1,2"}, "leaves no row"),
    "no name": (TEXT, {"columns": "contxt=item"}, "no name 'contxt': choose from"),
    "parts": (TEXT, {"split": "sentence= :a"}, "row 1: --split .*'A b.' has 2 parts, not 1"),
    "position": (TEXT | {"c": ["3", "4"]}, {"critical": "c"},
                 r"position 3 is not between 1 and 2, the last word \(1 more row: row 2\)"),
    "word twice": ({"sentence": ["To be or to be."], "c": ["be"]}, {"critical": "c"}, "is 2 times"),
    "part of a word": ({"sentence": ["The hen's egg."], "c": ["'s"]}, {"critical": "c"},
                       "is only a part of \"hen's\": give the whole word"),
    "twice without blanks": ({"sentence": ["猫喜欢猫。"], "c": ["猫"]}, {"critical": "c"},
                             r"is 2 times .*: divide the sentences by \| around it"),
    "position without blanks": ({"sentence": ["我喜欢猫。"], "c": [1]}, {"critical": "c"},
                                r"which no blanks separate: name the critical word itself"),
    "position of one condition": (
        {"amb": ["A hen sat."], "unamb": ["The old hen sat."], "crit_amb": [2], "crit_unamb": [3]},
        {"wide": ("amb", "unamb"), "critical": "crit_amb"},
        "is called like amb, and would be read for all of --wide: name one column for each"),
    "critical words of two of three": (
        {"a": ["A hen sat."], "b": ["Hens sat."], "c": ["Cows sat."], "p": [2], "q": [1]},
        {"wide": ("a", "b", "c"), "critical": ("p", "q")},
        "--critical names 2 columns, --wide 3: name one for all, or one for each"),
    "two critical words": (TEXT | {"p": [1, 1], "q": [2, 2]}, {"critical": ("p", "q")},
                           "--critical names 2 columns for one column of sentences: name one"),
    "positions from 0 and 1": (
        {"a": ["A hen sat."], "b": ["Hens sat."], "p": [2], "q": [1]},
        {"wide": ("a", "b"), "critical": ("p", "q:0")}, "give all columns :0, or :1, or none"),
    "a half of a pair": (
        {"ok": ["A a.", ""], "not_ok": ["B b.", "C c."], "pair": ["1", "2"]},
        {"columns": ["sentence_good=ok", "sentence_bad=not_ok"]},
        r"row 2: the column ok is empty in 1 of 2 rows: .* give --filter 'ok!='"),
    "both halves": ({"sentence_good": ["A a.", "", "C c."], "sentence_bad": ["B b.", "D d.", None]},
                    {}, "--filter 'sentence_good!=' 'sentence_bad!='"),
    "not one's own": (PAIR | {"UID": ["x"]}, {"columns": "nothing"}, "write NAME=COLUMN"),
    "both are item": ({"Item": [1], "ITEM": [1], "sentence": ["A."]}, {}, "--columns item=Item or"),
    "brackets": ({"sentence": ["A [b].", "C [d]."]}, {}, "brackets or other marks stand"),
    "mark of a bad sentence": (TEXT | {"sentence": ["A b.", "*C d."]}, {},
                               r"row 2: .* begins with '\*', as bad sentences often do"),
    "name of a variable": ({"sentence": ["The $NOM_PRONOUN ran.", "A $NOM_PRONOUN sat."]}, {},
                           r"has a blank in it, '\$NOM_PRONOUN'"),
    "no contrast": (TEXT | {"good": [1, 0]}, {}, "no contrast: say which rows are good by --good"),
    "two good rows": (TEXT | {"good": [1, 1], "contrast": ["a", "a"]}, {},
                      "at least one bad: name further columns by --contrast"),
    "alternatives at two places": (
        {"start": ["The cook", "The maid"], "np_sg": ["near a hut", "by a hut"],
         "np_pl": ["near huts", "by huts"], "v_sg": ["was", "was"], "v_pl": ["were", "were"],
         "end": ["here.", "there."]}, {}, "np_sg, np_pl, v_sg, v_pl are parts of sentences"),
    "words in a column context": ({"context": ["bread", "cloud"] * 8, "target": ["a", "b"] * 8,
                                   "item": [n // 2 for n in range(16)]},
                                  {}, "as 'bread'; --columns context=context reads them as"),
    "carets": ({"sentence": ["A ^ b.", "C ^ d."]}, {}, r"give --separator '\^' if it div"),
    "underscore": ({"context": ["It is _", "A _"], "target": ["x", "y"]}, {}, "context ends in _"),
    "unknown gap": ({"sentence": ["The ... ran.", "A hen saw the ...!"], "target": ["x", "y"]}, {},
                    r"\.\.\. stands once in every sentence, .*: give --gap=\.\.\. if"),
    "double slashes": ({"sentence": ["The // dog ran.", "A cat // ran."]}, {},
                       "give --separator '//'"),
    "slashes, and two between sentences": (
        {"sentence": ["A/dog/ran.//It/sat.", "A/cat/sat.//It/ran."]}, {}, "give --separator '/'"),
    "semicolons": ({"sentence": ["The hen;ran;here.", "A cat;sat."]}, {}, "give --separator ';'"),
    "ellipsis of sentences": ({"sentence": ["It is...", "A dog…"]}, {}, "texts that end in an el"),
    "context and sentence, no word": (
        {"a": ["It is."], "b": ["It was."]}, {"columns": ["context=a", "sentence=b"]},
        "--critical COLUMN gives .* of a word of b after it, target=b instead of sentence=b that"),
    "misspelt region": ({"Region01": ["A"], "Regon02": ["b."], "Region03": ["c."]}, {},
                        "'Regon02' is nearly 'region_2'"),
    "more behind a region": ({"Region1": ["A"], "Region02/verb": ["b"], "Region3": ["c."]}, {},
                             "'Region02/verb' is nearly 'region_2': give --columns region_2="),
    "separator and regions": ({"region_1": ["A"], "region_2": ["b."]}, {"separator": "*"},
                              r"--separator \*: the regions have columns of their own: leave"),
    "separator and critical": (TEXT, {"separator": " ", "critical": "item"}, "have regions: name"),
    "gap and critical": ({"sentence": ["A {}."], "target": ["b"]}, {"critical": "target"},
                         "--critical is for sentences, and a row is a word at a blank: leave it"),
    "separator of pairs": (PAIR, {"separator": "*"}, "a row is two sentences: leave it out"),
    "gap, no word": (TEXT, {"gap": "b"}, "--gap b: give the word that is scored there in a column"),
    "contexts and targets": (
        {"item": ["1"], "context_1": ["A hen is a kind of"], "context_2": ["No hen is a kind of"],
         "target_1": ["bird"], "target_2": ["fish"]}, {},
        "several contexts and targets in a row: write a row for each context"),
    "parts of two conditions": (
        {"s_sg": ["The key"], "s_pl": ["The keys"], "v_sg": ["was"], "v_pl": ["were"],
         "mid": ["very much"], "end": ["new."]}, {},
        "s_sg, s_pl, v_sg, v_pl are parts of sentences of several conditions: write the sent"),
    "another target": ({"context": ["It is"], "continuation": ["so"]}, {},
                       "no column target; found: context, continuation; .* perhaps --columns targ"),
}  # fmt: skip
"""Mistake -> columns of a table, options, the error."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_remedy(case):
    columns, options, message = REFUSED[case]
    with pytest.raises(BadInput, match=message):
        stimuli.load(columns, **options)


TOGETHER = {
    "names and filters": (
        {"itm": [1], "contxt": ["A"], "targt": ["b"], "kind": ["x"]},
        {"columns": ["good=rigt", "wort=kind"], "filter": ["kind=y", "typ=x"], "wide": ["a"]},
        ["no column 'rigt'", "no name 'wort'", "'itm' is nearly 'item'", "'contxt' is nearly",
         "'targt' is nearly 'target'", "no row has 'y' in kind", "no column 'typ'", "--wide: no "]),
    "layout": (
        {"sentence": ["A b."] * 2, "cond": ["x"] * 2}, {"split": ["cond=_:a,b"]},
        ["row 2: the row is identical", "row 1: --split cond=_:a,b: the column cond: 'x' has 1 p"]),
    "values": (
        {"context": ["A", None], "target": [1.5, "x"], "expected": ["a,b", ""], "good": [1, 0]}, {},
        ["no contrast", "row 2: the column context is empty", "row 1: the column target: expected",
         "row 1: the column expected: 'a,b'"]),
    "texts and levels": (
        {"context": ["A ___", "B"], "target": ["x", "<i>y"], "cond": ["a", "A"], "k": ["b", "B"]},
        {},
        ["context has a blank in it", "row 2: the column target has markup", "cond has 1 row",
         "column k has 1 row"]),
}  # fmt: skip
"""Step -> columns of a table, options, a part of each problem that one message names."""


@pytest.mark.parametrize("case", TOGETHER)
def test_all_problems_of_a_step_are_in_one_message(case):
    columns, options, parts = TOGETHER[case]
    with pytest.raises(BadInput) as error:
        stimuli.load(columns, **options)
    problems = str(error.value).split("; ")
    assert [part for part in parts if not any(part in x for x in problems)] == []


FILES = {
    "tab": ("own.tab", "item\tsentence\n1\tA b.\n\n2\tC d.\n"),
    "txt": ("own.txt", "item\tsentence\n1\tA b.\n\n2\tC d.\n"),
    "write.table": ("own.txt", '"item" "sentence"\n"1" 1 "A b."\n\n"2" 2 "C d."\n'),
    "one column": ("own.txt", "sentence\nA b.\n\nC d.\n"),
    "several lines in a cell": ("own.csv", 'sentence,note\nA b.,"x\ny"\n\nC d.,\n'),
}


@pytest.mark.parametrize("name", FILES)
def test_texts_have_the_numbers_of_their_rows(tmp_path, name):
    path = written(tmp_path, FILES[name][1], FILES[name][0])
    assert read_texts(path)[:2] == (["A b.", "C d."], [1, 3])
    assert stimuli.load(str(path)).columns()["sentence"] == ["A b.", "C d."]


WORDS = "text,position,word,rt,full\n" + "".join(
    f"{text},{position},{word},{300 + position},{' '.join(words)}\n"
    for text, words in enumerate((["The", "hen", "eats."], ["A", "cook", "sat", "down."]), start=1)
    for position, word in enumerate(words, start=1)
)
LATE = "\n".join(line for line in WORDS.splitlines() if ",1," not in line[1:5])


def test_a_table_of_words_is_read_as_texts(tmp_path, command):
    path = written(tmp_path, WORDS)
    asked = ("surprisal", path, "--model", "demo:causal", "--bos", "never")
    lines = [line.split(",")[:3] for line in command(*asked)[1].splitlines()]
    assert lines == [line.split(",")[:3] for line in WORDS.splitlines()]
    rows = "position,rt,word,story\n1,300,A,x\n2,310,hen,x\n"
    named = read_texts(written(tmp_path, rows), TableOptions(columns=("text=story",)))
    assert (named.texts, named.names) == (["A hen"], ["x"])


def test_words_that_a_table_lacks_are_counted_and_read_from_full_texts(tmp_path, command):
    late = written(tmp_path, LATE, "late.csv")
    how = {"response": "rt", "controls": ()}
    human = read_human(late, chosen=Procedure(**how))
    (note,) = human.gap_notes()
    assert note.startswith("warning: 2 of 2 texts begin after position 1, and models read the")
    assert note.endswith("give the full texts by --sentence full")
    asked = ("surprisal", late, "--sentence", "full", "--model", "demo:causal", "--bos", "never")
    words = [line.split(",")[:4] for line in command(*asked)[1].splitlines()[1:3]]
    assert words == [["1", "2", "hen", "4"], ["1", "3", "eats.", "8"]]
    assert [*human.running_texts().texts.values()] == ["hen eats.", "cook sat down."]
    human = read_human(late, chosen=Procedure(sentence="full", **how))
    assert [*human.running_texts().texts.values()] == ["The hen eats.", "A cook sat down."]
    assert human.running_texts().places.tolist() == [1, 2, 4, 5, 6]
    assert human.gap_notes() == []
    wrong = written(tmp_path, LATE.replace("2,3,sat", "2,3,lay"), "wrong.csv")
    with pytest.raises(BadInput, match=r"wrong.csv:5: 'lay' is not the word at position 3 of full"):
        read_human(wrong, chosen=Procedure(sentence="full", **how)).running_texts()
    gap = written(tmp_path, WORDS.replace("2,2,cook", "2,5,cook").replace("2,3", "2,6"), "gap.csv")
    assert "2 positions are missing" in read_human(gap, chosen=Procedure(**how)).gap_notes()[0]


CHINESE = {"text": ["a"] * 4 + ["b"] * 3, "position": [1, 2, 3, 4, 1, 2, 3]}
CHINESE["word"] = ["他", "喜欢", "猫", "。", "我", "有", "3"]


def test_sentences_with_braces_are_quoted_and_tried_as_full_texts(tmp_path):
    rows = "text,position,word,rt,full\n1,1,The,3,The {x} eats.\n1,3,hen,4,The {x} eats.\n"
    braces = written(tmp_path, rows, "braces.csv")
    human = read_human(braces, chosen=Procedure(response="rt", controls=(), sentence="full"))
    expected = r"braces.csv:3: 'hen' is not the word at position 3 of full, 'The {x} eats.'"
    with pytest.raises(BadInput, match=re.escape(expected)):
        human.running_texts()
    human = read_human(braces, chosen=Procedure(response="rt", controls=()))
    assert human.gap_notes()[0].endswith("give the full texts by --sentence COLUMN")


def test_words_of_scripts_without_spaces_are_joined_without_them(tmp_path):
    path = tmp_path / "zh.csv"
    pd.DataFrame(CHINESE).to_csv(path, index=False)
    read = read_texts(path)
    assert (read.texts, read.cuts, read.notes) == (["他喜欢猫。", "我有3"], [(1, 3, 4), (1, 2)], ())
    model = lmdiag.load_model("demo:causal")
    words = read.of_table(model.surprisals(read.texts, cuts=read.cuts))
    assert words["word"].tolist() == CHINESE["word"]
    whole = model.surprisals(read.texts)
    sums = words.groupby("text")["surprisal"].sum()
    assert np.allclose(sums, whole["surprisal"])


def test_markup_among_words_is_refused_with_its_filter():
    words = pd.DataFrame({"text": "a", "position": [1, 2, 3], "word": ["It", "ran.", "<eos>"]})
    human = read_human(words.assign(rt=1.0), chosen=Procedure(response="rt", controls=()))
    with pytest.raises(BadInput, match=r"rows:3: column word has markup.* --filter 'word!=<eos>'"):
        human.running_texts()


APART = {"text": ["a"] * 5, "position": [*range(1, 6)], "word": ["She", "did", "n't", "run", "."]}


def test_words_apart_from_their_punctuation_are_read_as_typed_from_full_texts():
    how = {"response": "rt", "controls": ()}
    table = pd.DataFrame(APART | {"rt": 1.0, "typed": "She didn't run."})
    human = read_human(table, chosen=Procedure(**how))
    assert human.running_texts().texts == {"a": "She did n't run ."}
    named = read_human(table.drop(columns="typed").assign(part="main"), chosen=Procedure(**how))
    named.frame.loc[1, "part"] = "the main clause"
    assert named.gap_notes()[0].endswith("--sentence COLUMN")
    assert human.gap_notes() == [
        'warning: words typed without a blank before them: 2, as "n\'t", and models read one '
        "there: give the full texts by --sentence typed"
    ]
    human = read_human(table, chosen=Procedure(sentence="typed", **how))
    assert human.running_texts().cuts == {"a": (7, 14)}
    assert human.running_texts().places.tolist() == [0, 1, 2, 3, 4]
    assert human.gap_notes() == []


def test_analyse_reads_tables_with_the_same_options(tmp_path, command):
    rows = "Item,block,cond,surprisal\n" + "".join(
        f"{item},{'ab'[item % 2]},{'ab'[item % 2]}{n},{item + n * n}\n"
        for item in range(1, 7)
        for n in (1, 2)
    )
    path = written(tmp_path, rows)
    assert "choose one by --filter block=a" in command.refused("analyse", path)
    code, out, _ = command("analyse", path, "--filter", "Block=a", "--json")
    (effect,) = json.loads(out)["effects"]
    assert (code, effect["effect"], effect["n"], effect["estimate"]) == (0, "cond", 3, 3)
    wide = table(rows).pivot(index=["Item", "block"], columns="cond", values="surprisal")
    wide = wide[["a1", "a2"]].dropna().astype(float).reset_index()
    found = lmdiag.analyse(wide, wide=["a1", "a2"], conditions=["condition"])
    assert np.allclose(found.effects["estimate"], 3)
    assert found.notes[1].startswith("wide: 3 rows make 6, one for each surprisal")


PROPOSED = {
    "wide": (WIDE, "--wide Good_Near Good_Far Bad_Near Bad_Far --split condition=_:factor_1,"
             "factor_2 --critical Crit --filter Kind=exp"),
    "words of a context": ("context,Expected,Unexpected\nHe sang a long,song,roof\nShe saw the "
                           "old,barn,sea\n", "--wide Expected Unexpected"),
    "another name of a target": ("context,continuation\nIt is,so\nIt is,no\n",
                                 "--columns target=continuation"),
    "words that words bring to mind": (
        "Participant,age,trial,stimulus,response\n" + "".join(
            f"{i},{20 + i},{k + 1},cue{k},word{(i * k) % 9}\n" for i in range(8) for k in range(6)),
        "for `lmdiag analyse`, with --response COLUMN --item stimulus"),
    "trials and values": (
        "Participant,trial_number,item,Value\n" + "".join(
            f"{i},{k + 1},{(i + k) % 6},{1 + (i * k) % 7}\n" for i in range(8) for k in range(6)),
        "for `lmdiag analyse`, with --response Value"),
    "trials and amounts": (
        "Participant,trial_number,item,amount\n" + "".join(
            f"{i},{k + 1},{(i + k) % 6},{400 + (i * k) % 97}\n"
            for i in range(8) for k in range(6)),
        "for `lmdiag analyse`, with --response amount"),
    "one of the words of a text": (
        "kind,form,prefix,verdict\n" + "".join(
            f"x{i % 5},{form}{i},The dog {i} and the cat,{form == 'runs'}\n"
            for i in range(20) for form in ("runs", "run")),
        "--columns context=prefix target=form"),
    "produced texts": (
        "Participant,town,prompt,cont\n" + "".join(
            f"{i},{'New York' if i % 2 else 'Old Town'},Anna {k} saw Bob because,she {i} was {k}\n"
            for i in range(8) for k in range(4)),
        "for `lmdiag cloze`, with --columns context=prompt response=cont"),
    "parts of other texts": (
        "id,hit,miss,start\n" + "".join(
            f"{i},Ann {i} has a dog but no cat. It barks.,Ann {i} has a dog but no cat. It "
            f"meows.,Ann {i} has a dog but no cat.\n" for i in range(20)),
        "--wide hit miss"),
    "choices after a premise": (
        "premise,choice1,choice2\nThe man ate it.,He was very hungry now.,He was quite full now.\n"
        "The girl ran.,She was late for school.,She was early for school.\n",
        "--columns context=premise --wide choice1 choice2"),
    "words between numbered columns": (
        "item,NP1,that,NP2,end\n1,The hen,that,a cook,ran.\n2,The cow,that,a maid,sat.\n"
        "3,The dog,that,a boy,fell.\n", "--columns region=NP1..end"),
    "texts without an end": ("nr,stem,last\n1,He sang a very long,song\n2,She saw the old,barn\n",
                             "--columns context=stem target=last"),
    "fragments beside numbered responses": (
        "Satz,P1,P2,P3\nHe sang a very long,song,song,tune\nShe saw the old,barn,cow,barn\n",
        "with --columns context=Satz --wide P1 P2 P3"),
    "numbered columns and words between": (
        "N1,that,N2,w,N3\nThe old cars,that,the men,who,the cook.\nThe wide doors,that,the "
        "girls,whom,the boy.\n",
        "--columns region_1=N1 region_2=that region_3=N2 region_4=w region_5=N3"),
    "a word after two contexts": (
        "item,P1,P2,target\n1,The hen was here now.,It saw a big,dog\n2,A cook had come by.,She "
        "was not,late\n", "--columns context=P1..P2"),
    "right and wrong": (
        "length,kind,hit\n2,new,1\n3,old,0\n2,new,1\n1,old,1\n4,new,0\n",
        "responses in numbers: for `lmdiag analyse`, with --response hit --item COLUMN"),
    "numbers of trials": (
        "trialNr,itemNr,a\n1,4,x\n2,5,y\n3,6,x\n4,4,y\n5,5,x\n6,6,y\n",
        "responses in numbers: for `lmdiag analyse`, with --response COLUMN --item itemNr"),
    "codes of participants": (
        "ID,Ort,ms\n" + "".join(f"S{i},{k},{300 + i * k}\n" for i in range(8) for k in range(8)),
        "responses in numbers: for `lmdiag analyse`, with --response ms --item Ort"),
    "numbered columns": ("item,r1,r2,r3\n1,The,old,hen.\n", "--columns region=r1..r3"),
    "another name": ("ID,Stimulus\n1,The hen ran.\n2,A cook sang.\n",
                     "--columns sentence=Stimulus"),
    "words": (WORDS, "a row per word: for `lmdiag surprisal` and `lmdiag fit`"),
    "words of other names": (
        "Text_ID,Word_Number,Word\n1,2,dog\n1,3,ran\n", "a row per word: for `lmdiag surprisal` "
        "and `lmdiag fit`, with --columns text=Text_ID position=Word_Number word=Word"),
    "responses of other names": (
        "Subject,Preamble,Answer\n1,The old,hen\n2,The old,man\n",
        "responses of people: for `lmdiag cloze`, with --columns context=Preamble response=Answer"),
    "responses at a gap": (
        "Subj,Stem,Completion\n1,The ___ ran.,hen\n2,The ___ ran.,dog\n", "for `lmdiag cloze`, "
        "with --columns sentence=Stem response=Completion"),
    "other names of words": ("Preamble,Ending\nThe old,hen\nThe new,hen\n",
                             "--columns context=Preamble target=Ending"),
    "both sides": ("Left,Target,Right\nThe old,hen,ran.\nThe new,hen,ran.\n",
                   "--columns context=Left right_context=Right"),
    "pair of any names": ("item,ungrammatical,grammatical\n1,The dog bark.,The dog barks.\n",
                          "--columns sentence_good=grammatical sentence_bad=ungrammatical"),
    "words in a frame": ("item,start,good_word,bad_word,end\n1,The key here,was,were,old.\n",
                         "--columns context=start right_context=end --wide good_word bad_word "
                         "--good condition=good_word --contrast item"),
    "forms in a frame": ("item,start,x,y,end\n1,The key here,opens,open,a door.\n",
                         "--columns context=start right_context=end --wide x y"),
    "sentence of a few rows": (
        "item,stimulus,note\n1,The dog ran off.,\n2,The hen ran off.,\n3,The cat sat.,It has no "
        "other verb here.\n", "--columns sentence=stimulus"),
    "sparse conditions": (
        "item,x,y\n1,The dog ran off.,The dogs ran off.\n2,The hen sat.,\n3,The cat sat.,\n",
        "--wide x y"),
    "pair after a context": ("item,context,good,bad\n1,It was late.,The dog barks.,The dog bark.\n",
                             "--wide good bad --good condition=good --contrast item"),
    "pair and its labels": ("sentence_a,sentence_b,label\nThe dog barks.,The dog bark.,0\nThe dog "
                            "bark.,The dog barks.,1\n", "--wide sentence_a sentence_b"),
    "words at a gap": ("item,sentence,near,far\n1,The ___ ran off.,dog,sea\n",
                       "--wide near far"),
    "words at a gap without blanks": (
        "id,sentence,x,y\n1,他在市场_了。,跑,飞\n2,她在学校_了。,哭,走\n", "--wide x y --gap _"),
    "words at a gap in a context": ("id,context,near,far\n1,The ___ ran off.,dog,sea\n",
                                    "--columns sentence=context --wide near far"),
    "targets of one context": ("context,target_a,target_b\nIt is,so,no\n",
                               "--wide target_a target_b"),
    "contexts of one target": ("item,context_a,context_b,target\n1,The hen is a kind of,"
                               "No hen is a kind of,bird\n", "--wide context_a context_b"),
    "sentences and their word": ("item,sg,pl,target\n1,The dog barks now,The dogs barks now,barks"
                                 "\n", "--wide sg pl --critical target"),
    "numbered sentences": ("item,c1,c2,c3\n1,The dog ran.,The dogs ran.,The hens ran.\n",
                           "--wide c1 c2 c3"),
    "numbers": ("item,cond,surprisal\n1,a,2\n", "responses in numbers: for `lmdiag analyse`"),
}  # fmt: skip
"""Layout -> the file, what `check` proposes."""


NOT_STIMULI = {
    "inferences": (
        "premise,hypothesis,label\nA man sings.,A man hums.,neutral\nA dog ran.,It ran.,entailment",
        "two texts that are compared (premise and hypothesis)"),
    "similarity": (
        "sentence1,sentence2,score\nA man plays it.,A man is playing it.,4.8\nDogs ran off.,It "
        "rained today.,0.2\n", "two texts that are compared (sentence1 and sentence2)"),
    "labels of each": (
        "sentence1,label1,sentence2,label2\nA hen sat.,1,A hen sit.,0\nIt ran.,1,It runned.,0\n",
        "each with a label (label1, label2): write a row for each text"),
    "translation": (
        "English,Deutsch\nThe hen sat here.,Die Henne sass hier.\nA dog ran.,Ein Hund lief fort.\n",
        "a text and its translation (English and Deutsch): --columns sentence=English"),
    "means": ("cond,mean,sd,n\na,3.1,.5,20\nb,2.2,.4,20\nc,1.7,.1,20\n", "results, as means"),
    "models": ("formula,AIC,BIC\nrt ~ a + b,12.3,14.1\nrt ~ a + c,11.8,13.0\n", "results, as"),
    "tests of models": ("random.AIC,random.logLik,x\n3.2,1.5,a b\n2.2,1.1,a c\n", "results, as"),
    "tokens and their numbers": (
        "token,token_id\nrole,2535\nwhich,2029\nstory,39\ndogs,2000\nran,3030\nhere,17\n",
        "a list of words and their norms"),
    "words as names of parts": (
        "d1sg,d1pl,and,or,d2sg,d2pl,vsg,vpl\nThe,The,and,or,the,the,is,are\nA,Some,and,or,a,some,"
        "was,were\nMy,My,and,or,my,my,is,are\n", "are parts of sentences of several conditions"),
    "parts of several conditions": (
        "boss_pl,boss_sg,noun,verb_sg,verb_pl\ncooks',cook's,hen,sat,sit\nmaids',maid's,dog,ran,run",
        "boss_pl, boss_sg, verb_sg, verb_pl are parts of sentences of several conditions"),
    "one text for all": (
        "item,cond,context,answer\n1,a,Rate this now.,yes\n1,b,Rate this now.,no\n2,a,Rate this "
        "now.,no\n", "one text in all rows (context)"),
    "notes of any kind": (
        "Satz,Notiz\nDie Henne sass hier.,We made this one up.\nEin Hund lief fort.,It is old.\n",
        "--columns sentence=Satz reads one of them; where the second follows the first"),
    "texts in one language": (
        "Intro_English,Text_English\nIt was late now.,The hen sat here.\nIt had rained all "
        "day.,A dog ran off fast.\n",
        "--columns context=Intro_English target=Text_English"),
    "parts of two texts": (
        "rc,nprc,ending\nthat he likes it,that no man likes,ran\nthat she saw it,that no cook "
        "saw,sat\n",
        "rc, nprc are parts of sentences"),
    "one column of numbers": (
        "vp,wort,Lesezeit\n1,hen,310\n1,dog,415\n2,hen,290\n2,dog,377\n",
        "with --response Lesezeit --item COLUMN"),
}  # fmt: skip
"""What rows are of which no options make stimuli -> the file, what is said of it."""


@pytest.mark.parametrize("case", NOT_STIMULI)
def test_nothing_is_proposed_for_rows_that_are_no_stimuli(tmp_path, case):
    text, said = NOT_STIMULI[case]
    path = written(tmp_path, text)
    found = lmdiag.check(path)
    assert said in found.other
    assert (found.proposals, found.error) == ((), "")
    with pytest.raises(BadInput, match=r"no column (of texts|target)"):
        stimuli.load(str(path))


SCRIPTS = {
    "Korean": [
        "아이가 우유를 마신다",
        "소가 풀을 먹는다.",
        "어머니가 밥을 짓는다",
        "말이 물을 마신다.",
    ],
    "Hindi": ["लड़का बाज़ार जाता है।", "माँ खाना बनाती है", "कुत्ता दूध पीता है।", "बहन किताब पढ़ती है"],
    "Arabic": ["قرأ الولد الكتاب.", "هل شربت البنت الحليب؟", "كتب المعلم الدرس", "نام القط هنا"],
    "Thai": ["แมวกินปลาในบ้าน", "เด็กอ่านหนังสือ", "ครูเขียนจดหมาย", "หมาวิ่งในสวน"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_sentences_of_scripts_without_capitals_are_proposed(script):
    texts = SCRIPTS[script]
    others = [text[::-1] if " " not in text else " ".join(text.split()[::-1]) for text in texts]
    wide = {"item": ["1", "2", "3", "4"], "x": texts, "y": others}
    assert [x.options.wide for x in lmdiag.check(wide).proposals] == [("x", "y")]
    long = {"item": [*"11223344"], "cond": [*"abab"] * 2}
    long["satz"] = [text for pair in zip(texts, others, strict=True) for text in pair]
    assert [x.typed for x in lmdiag.check(long).proposals] == ["--columns sentence=satz"]


def test_two_readings_that_work_are_both_proposed():
    frame = {"item": ["1", "2"], "start": ["The key here", "The cat there"], "x": ["opens", "eats"]}
    frame |= {"y": ["closes", "drops"], "end": ["a door.", "the fish."]}
    found = lmdiag.check(frame)
    assert [x.rows[0] for x in found.proposals] == [
        "item 1: The key here | opens | closes | a door.",
        "item 1, x: The key here [opens] a door.",
    ]


def test_contexts_and_words_beside_sentences_that_are_read_are_named():
    table = {"item": [*"1122"], "cond": [*"abab"], "CW": ["bed", "bed", "bone", "bone"]}
    table["Discourse"] = ["It was late now.", "It was early.", "The dog ate.", "The dog slept."]
    table["sentence"] = ["He went to bed early."] * 2 + ["She had a bone here."] * 2
    found = lmdiag.check(table)
    command, row = found.others
    assert command.endswith("--columns context=Discourse --critical CW")
    assert row == "reads: item 1, a: It was late now. He went to [bed] early."
    read = stimuli.load(table, columns="context=Discourse", critical="CW")
    assert read.columns()["sentence"][0] == "It was late now. He went to bed early."


def test_a_proposal_for_a_workbook_names_the_sheet_that_is_read(tmp_path):
    path = tmp_path / "own.xlsx"
    rows = pd.DataFrame(
        {"item": [1, 2], "x": ["A hen sat.", "It ran off."], "y": ["A hen sit.", "It run off."]}
    )
    with pd.ExcelWriter(path) as book:
        rows.to_excel(book, sheet_name="stimuli", index=False)
        rows.to_excel(book, sheet_name="fillers", index=False)
    found = lmdiag.check(path)
    assert found.proposals
    assert "sheet       stimuli" in str(found)


def of_items(texts, *names):
    """A table with two rows per item, as "昨日" and "今日", and its texts."""
    rows = ([f"{n}", when, *text] for n, text in enumerate(texts) for when in ("昨日", "今日"))
    return pd.DataFrame(rows, columns=["编号", "时间", *names])


HINDI = ["बेकर ने बगीचे में दोस्त को देखा।", "नाविक ने नदी पर भाई को देखा।", "शिक्षक ने घर में बहन को देखा।"]


@pytest.mark.parametrize("texts", [["面包师在花园里", "水手在河边", "老师在车站"], HINDI])
def test_items_are_found_by_texts_that_share_what_others_lack(texts):
    rows = of_items(zip(texts, ["甲", "乙", "丙"], strict=True), "sentence", "名词")
    rows["sentence"] = rows["时间"] + " " + rows["sentence"]
    read = stimuli.load(rows)
    assert read.columns()["item"] == ["0", "0", "1", "1", "2", "2"]
    assert [*design_of(read).levels] == ["时间"]


@pytest.mark.parametrize("case", PROPOSED)
def test_check_proposes_what_may_read_another_layout(tmp_path, command, case):
    text, advice = PROPOSED[case]
    path = written(tmp_path, text)
    code, out, _ = command("check", path)
    (line,) = [x for x in out.splitlines() if x.startswith(("perhaps", "proposed"))]
    assert (code, line.endswith(advice)) == (0, True), line
    with pytest.raises(BadInput, match=r"no (column|sentence).*; .*; (perhaps|it may have) "):
        stimuli.load(str(path))


@pytest.mark.parametrize("name", ["sentence", "Satz"])
def test_responses_beside_sentences_are_named_with_their_command(tmp_path, command, name):
    rows = pd.DataFrame(
        {"subj": n % 4, "item": n % 8, name: f"The cook {n % 8} ran off.", "rating": n % 5}
        for n in range(32)
    )
    path = written(tmp_path, rows.to_csv(index=False))
    (line,) = [x for x in command("check", path)[1].splitlines() if x.startswith("perhaps")]
    assert line.endswith("responses in numbers: for `lmdiag analyse`, with --response rating")
    path = written(tmp_path, rows.rename(columns={"item": "Satznummer"}).to_csv(index=False))
    (line,) = [x for x in command("check", path)[1].splitlines() if x.startswith("perhaps")]
    assert line.endswith("--response rating --item Satznummer")


def test_options_that_read_all_but_comments_are_named_and_not_proposed(tmp_path, command):
    """The rule is that what is proposed leaves no column of texts unread."""
    hens = ("hen by the lake", "dog on a hill", "cook in town", "girl at school")
    notes = ("Ask Anna again.", "Odd as it stands.", "New in May.", "From the old list.")
    rows = (
        f"{number},The {noun} barks.,The {noun} bark.,{note}\n"
        for number, (noun, note) in enumerate(zip(hens, notes, strict=True))
    )
    path = written(tmp_path, "".join(["No,match,mismatch,remarks\n", *rows]))
    out = command("check", path)[1]
    assert "proposed" not in out
    assert "(match, mismatch, remarks): --wide match mismatch reads all but remarks\n" in out
    assert "8 sentences\n" in command("check", path, "--wide", "match", "mismatch")[1]


def test_a_proposal_has_the_options_that_are_given_and_is_tried(tmp_path, command):
    rows = "No,x,y\n1,A*hen ran off.,A*dog ran off.\n2,Do*not ever go.,So*be it now.\n"
    path = written(tmp_path, rows)
    out = command("check", path, "--filter", "No=1,2")[1]
    assert "perhaps     2 texts in a row (x, y): --wide x y is not enough: the" in out
    assert "--separator '*'" in out.splitlines()[-1]
    clean = written(tmp_path, rows.replace("*", " "))
    out = command("check", clean, "--filter", "No=1,2")[1]
    assert "own.csv --model M --wide x y --filter No=1,2" in out


def test_levels_of_several_parts_and_fillers_are_named(tmp_path):
    rows = pd.DataFrame(
        {"item": item, "cond": f"{a}-{b}", "kind": "exp", "sentence": f"{a} {b} {item}."}
        for item in range(1, 4) for a in ("sg", "pl") for b in ("near", "far")
    )  # fmt: skip
    filler = pd.DataFrame({"item": [9], "cond": [""], "kind": ["filler"], "sentence": ["It is."]})
    found = design_of(stimuli.load(pd.concat([rows, filler])))
    warnings = " ".join(found.warnings)
    assert "--split cond=-:number,factor_2 gives their effects and interaction" in warnings
    assert (
        "kind has 1 row 'filler', in items of their own: --filter 'kind!=filler' leaves them out"
        in warnings
    )


JUDGED = {
    "--good acceptability=1 --contrast item": ("item", "acceptability", ["1", "0", "0"]),
    "--good judgment= --contrast item": ("item", "judgment", ["", "*", "??"]),
    "--good status=ok --contrast item": ("pair", "status", ["ok", "*"]),
    "--good grammatical=TRUE --contrast item": ("item", "grammatical", ["TRUE", "FALSE"]),
    "--good 'is it ok=yes' --contrast item kind": ("item", "is it ok", ["yes", "no"]),
    "": ("item", "negated", ["yes", "no"]),
}
"""Options that compare rows -> columns of the items and of their judgments, and the judgments."""


@pytest.mark.parametrize("options", JUDGED)
def test_judgments_of_sentences_are_named_with_what_compares_them(tmp_path, command, options):
    item, judgment, levels = JUDGED[options]
    kinds = ("sg", "pl") if options.endswith("kind") else ("sg",)
    rows = [
        {item: f"i{n}", judgment: level, "kind": kind, "sentence": f"The {noun} {kind} {n} is {m}."}
        for n, noun in enumerate(("baker", "pilot", "singer"))
        for kind in kinds
        for m, level in enumerate(levels)
    ]
    path = tmp_path / "own.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    out = command("check", path)[1]
    assert ("compares good and bad rows" in out) == bool(options)
    if options:
        assert f"or          {options} compares good and bad rows" in out
        read = command("check", path, *shlex.split(options))[1]
        assert f"compared    {3 * len(kinds)} contrasts of good and bad rows" in read
        assert "items       3" in read


def test_options_that_compare_rows_do_not_count_rows_without_an_item():
    rows = [
        {"item": noun, "ok": level, "kind": kind, "sentence": f"The {noun} {kind} is {level}."}
        for noun in ("baker", "pilot", "singer")
        for kind in ("sg", "pl")
        for level in ("yes", "no")
    ]
    filler = {"item": None, "ok": "yes", "kind": "sg", "sentence": "It rains."}
    options = "--good ok=yes --contrast item kind"
    for table in (rows, [*rows, filler], [filler, *rows]):
        assert design_of(stimuli.load(pd.DataFrame(table))).comparing_options == options


def test_further_texts_that_are_numbered_after_one_that_is_read_are_named(tmp_path):
    texts = {"item": ["1", "2"], "sentence": ["A hen ran.", "A hen sat."]}
    further = texts | {"sentence.1": ["Hens ran.", "Hens sat."], "Sentence2": [1, 2]}
    (warning, *_) = design_of(stimuli.load(further)).warnings
    assert warning == "sentence.1 not read: --wide sentence sentence.1 reads a row for each"
    assert len(stimuli.load(further, wide=["sentence", "sentence.1"])) == 4
    words = {"context": ["It is", "He is"], "target": ["so", "old"], "target2": ["no", "new"]}
    (warning,) = design_of(stimuli.load(words)).warnings
    assert "--wide target target2" in warning
    assert stimuli.load(words, wide=["target", "target2"]).columns()["target"][1] == "no"


def test_a_target_and_a_critical_word_that_are_not_read_are_named():
    texts = {"sentence": ["A hen ran.", "The hen sang."], "item": ["1", "2"]}
    rows = stimuli.load(texts | {"target": ["x", "y"]})
    why = "not read, since no sentence has a gap; ___ or --gap TEXT marks its place"
    assert rows.notes == (f"target: {why}",)
    (warning,) = design_of(stimuli.load(texts | {"Crit Word": ["ran", "sang"]})).warnings
    assert "Crit Word has the critical word of each sentence: --critical 'Crit W" in warning
    (warning,) = design_of(stimuli.load(texts | {"Crit Word": ["ran", "sat"]})).warnings
    assert not design_of(stimuli.load(texts | {"Crit Word": ["run", "sing"]})).warnings
    missing = "not in 1 of 2 sentences (row 2): 'sat' is not in the sentence"
    assert warning.startswith(f"Crit Word seems to have critical words, but {missing}")
    assert stimuli.load(rows.columns() | {"target": ["ran", "sang"]}, critical="target").notes == (
        "critical: target is the region critical",
    )


def test_a_critical_word_without_blanks_is_scored_without_what_follows_it():
    rows = stimuli.load({"sentence": ["太郎がりんごを買った。"], "c": ["りんご"]}, critical="c")
    (sentence,) = row_keys(Setting(rows), kind="causal", cased=True)
    assert sentence.cuts == (3, 6)


def test_a_right_context_is_read_after_a_context_that_the_user_names():
    table = {"stem": ["A hen", "The cow"], "target": ["sat", "ran"], "Right context": [".", "."]}
    columns = stimuli.load(pd.DataFrame(table), columns="context=stem").columns()
    assert columns["right_context"] == [".", "."]


def test_each_wide_column_may_have_a_critical_word_of_its_own():
    rows = {
        "item": ["1", "2"],
        "Gram": ["The key is old.", "We sit."],
        "Ungram": ["The key are old.", ""],
        "Verb gram": ["is", "sit"],
        "Verb ungram": ["are", ""],
    }
    options = {"wide": ["Gram", "Ungram"], "critical": ["Verb gram", "Verb ungram"]}
    read = stimuli.load(rows, **options)
    texts = read.columns()["sentence"]
    regions = [row[0] for row in read.regions]
    words = [x[slice(y["start"], y["end"])] for x, y in zip(texts, regions, strict=True)]
    assert words == ["is", "are", "sit."]
    places = rows | {"p1": ["1", "1"], "p2": ["1", ""], "Ungram": ["Old it is.", "They sit."]}
    options["critical"] = ["p1", "p2"]
    with pytest.raises(BadInput, match="row 2: --critical: the columns p1 and p2: it is empty"):
        stimuli.load(places, **options)
    places["p2"] = ["1", "1"]
    assert "from 0 with --critical p1:0 p2:0" in stimuli.load(places, **options).notes[2]


def test_a_critical_word_in_an_elision_is_said_to_be_read_with_it():
    rows = {"sentence": ["C'est l'homme, dit-il.", "C'est Marie."], "c": ["homme", "Marie"]}
    assert stimuli.load(rows, critical="c").notes[1] == (
        "critical: 'homme' stands in \"l'homme\" without a blank (row 1): the response is the "
        'surprisal of "l\'homme"'
    )
    rows = {"sentence": ["C'est l'homme.", "Vois l'école."], "c": ["homme", "école"]}
    note = stimuli.load(rows, critical="c").notes[1]
    assert "without a blank, and 1 other word likewise (rows 1, 2)" in note


def test_regions_are_shown_as_they_are_joined():
    rows = {"sentence": ["|The hen|'s egg||fell.", "A well|-known hen|sang."], "item": ["1", "1"]}
    rows["cond"] = ["a", "b"]
    design = design_of(stimuli.load(rows))
    assert design.rows == ["item 1, a: | The hen|'s egg | | fell."]
    assert "sentences of one item have 3 to 5 regions in 1 of 1 items" in " ".join(design.warnings)


def test_words_of_any_name_that_stand_in_all_sentences_are_named():
    verbs = ("ran", "sat", "ate", "hid", "won", "lay", "sang", "fell")
    rows = {"sentence": [f"The hen {x} here." for x in verbs], "v": verbs, "item": [*range(8)]}
    assert design_of(stimuli.load(rows)).warnings[0] == (
        "v has a word of each sentence: --critical v gives its surprisal"
    )


def test_a_column_of_words_says_where_positions_count_from():
    texts = ["The hen that ran sat.", "A cook who sang left here."]
    rows = {"sentence": texts, "item": ["1", "2"], "critpos": [3, 3], "verb": ["ran", "sang"]}
    warnings = " ".join(design_of(stimuli.load(rows)).warnings)
    assert "--critical critpos:0 gives its surprisal" in warnings
    assert "may count from 0 or from 1" not in warnings
    with pytest.raises(BadInput, match=r"count from 0, since verb has these words: .*give one"):
        stimuli.load(rows, critical="critpos")
    read = stimuli.load(rows, critical="critpos:0")
    uses = design_of(read).other_uses
    assert uses["critpos"] == "position of the critical word"
    assert uses["verb"] == "critical word"
    rows["critpos"] = [4, 4]
    assert "count" not in stimuli.load(rows, critical="critpos").notes[0]
    rows["verb"] = ["hen", "cook"]
    uses = design_of(stimuli.load(rows, critical="critpos")).other_uses
    assert uses["verb"] == "another word of the sentence"


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The cat’s toy.", "cat's", "cat’s"), ("El café negro.", "cafe\u0301", "café"),
        ("Un cafe\u0301 naïf va.", "naïf", "naïf"), ("ở Viê\u0323t Nam", "Việt", "Viê\u0323t"),
        ("The well-known hen.", "known", "well-known"), ("Das HUHN lief.", "Huhn", "HUHN"),
        ("हिन्दी हिन्द", "हिन्द", "हिन्द"), ("แม่ซื้อข้าวเมื่อวาน", "ข้าว", "ข้าว"),
    ],
)  # fmt: skip
def test_a_critical_word_is_found_as_people_write_it(text, word, expected):
    rows = stimuli.load(
        {"sentence": [text], "c": [word]}, critical="c", columns="sentence=sentence"
    )
    critical = rows.regions[0][0]
    assert text[critical["start"] : critical["end"]] == expected


def test_cloze_takes_the_options_of_tables(tmp_path):
    rows = "item,Preamble,a,b\n1,Stop @ now.,it,him\n1,Stop @ now.,it,her\n2,@ flew.,,x\n"
    path = written(tmp_path, rows)
    with pytest.raises(BadInput, match="--critical is for sentences"):
        stimuli.load(path, responses=True, critical="a")
    with pytest.raises(BadInput, match="--contrast is for pairs of items: leave it out"):
        stimuli.load(path, responses=True, contrast=["item"])
    answers = written(tmp_path, "Preamble,Answer\nThe old,hen\n", "answers.csv")
    with pytest.raises(BadInput, match="perhaps --columns context=Preamble response=Answer"):
        stimuli.load(answers, responses=True)
    options = {"wide": ["a", "b"], "gap": "@", "filter": "item!=2", "columns": "sentence=Preamble"}
    columns = stimuli.load(path, responses=True, **options).columns()
    shares = dict(zip(columns["target"], columns["cloze"], strict=True))
    assert shares == {"it": 0.5, "him": 0.25, "her": 0.25}
    assert {*columns["context"], *columns["right_context"]} == {"Stop", "now."}


def test_a_column_with_many_levels_is_named_with_the_remedy():
    rows = {"item": ["1"] * 7, "condition": [*"abcdefg"], "sentence": [f"{x}." for x in "abcdefg"]}
    others = design_of(stimuli.load(rows)).other_uses
    assert others["condition"] == "not used (7 levels, more than 6: give --conditions or --split)"
    texts = [f"Dog {i}." for i in range(14)]
    rows = {"item": ["1"] * 14, "note": [*"abcdefghijklmn"], "sentence": texts}
    uses = design_of(stimuli.load(rows)).other_uses
    assert uses["note"] == "not used (14 values that hardly repeat)"


def test_a_level_of_two_columns_is_named_with_its_column(tmp_path):
    rows = "item,wh,island,sentence\n" + "".join(
        f"{item},{a},{b},{a} {b} {item}.\n"
        for item in (1, 2) for a in ("that", "what") for b in ("that", "wh")
    )  # fmt: skip
    run = lmdiag.load_run(make_run(tmp_path / "run", written(tmp_path, rows)))
    labels = {*ReportFigures.of([run.results]).table["level_label"]}
    assert labels >= {"wh that", "island that", "what", "wh"}


RESTARTING = "sent,word_index,word,half,kind\n" + "".join(
    f"{sent},{place},{word},{'ab'[place > 1]},{kind}\n"
    for kind, noun in (("sg", "baker"), ("pl", "bakers"))
    for sent in (0, 1)
    for place, word in enumerate(["The", noun, "slept", ("late.", "well.")[sent]], start=1)
)


def test_texts_whose_numbers_begin_anew_are_told_apart_by_two_columns(tmp_path):
    """The refusal names the column, and what it proposes reads each sentence by itself."""
    path = written(tmp_path, RESTARTING)
    names = ("text=sent", "position=word_index")
    with pytest.raises(BadInput) as refusal:
        read_texts(path, TableOptions(columns=names))
    assert "kind tells them apart: give --columns text=sent text=kind" in str(refusal.value)
    both = read_texts(path, TableOptions(columns=(*names, "text=kind")))
    assert dict(zip(both.names, both.texts, strict=True)) == {
        "0/sg": "The baker slept late.", "1/sg": "The baker slept well.",
        "0/pl": "The bakers slept late.", "1/pl": "The bakers slept well.",
    }  # fmt: skip


def test_joined_names_of_texts_never_make_one_text_of_two(tmp_path):
    path = written(tmp_path, "a,b,position,word\n1/2,3,1,The\n1,2/3,1,A\n")
    with pytest.raises(BadInput, match="values of a, b are the same when they are joined by /"):
        read_texts(path, TableOptions(columns=("text=a", "text=b")))


def test_a_row_per_word_without_a_column_of_texts_is_one_text(tmp_path):
    path = written(tmp_path, "aoi,start,word\n1,0,The\n2,4,baker\n3,10,slept\n")
    options = TableOptions(columns=("position=aoi",))
    assert read_texts(path, options).texts == ["The baker slept"]
    table = read_human(path, chosen=Procedure(response="start"), options=options)
    assert table.running_texts().texts == {"1": "The baker slept"}
    assert table.notes[-1] == "text: all rows are of one text, since no column tells texts apart"


def test_cells_and_names_of_any_length_are_cut_in_messages(tmp_path):
    """The name of a column is compared with known names in time in proportion to its length."""
    long = "x" * 200_000
    word = written(tmp_path, f"text,position,word\n1,1,{long}\n1,1,b\n", "word.csv")
    with pytest.raises(BadInput) as refusal:
        read_texts(word)
    assert len(str(refusal.value)) < 400
    critical = written(tmp_path, f"item,sentence,crit\n1,It rains now.,{long}\n", "crit.csv")
    with pytest.raises(BadInput) as refusal:
        stimuli.load(str(critical), critical="crit")
    assert len(str(refusal.value)) < 400
    head = written(tmp_path, f"item,{long},sentence\n1,a,It rains.\n2,b,It snows.\n", "head.csv")
    assert len(stimuli.load(str(head))) == 2


def test_a_run_whose_item_is_saved_as_a_text_is_refused_with_the_remedy(tmp_path):
    data = written(tmp_path, "item,kind,sentence\n1,a,It rains.\n1,b,It snows.\n")
    folder = tmp_path / "run"
    make_run(folder, data)
    file = folder / "results.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"design": {"item": "item"}}))
    with pytest.raises(BadInput) as refusal:
        lmdiag.load_run(folder)
    assert "design.item: input should be a valid array: run again with" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_backslash_in_a_list_of_words_stays_without_a_warning(tmp_path, recwarn):
    data = written(tmp_path, 'context,target,expected\nIt is,a,"[""a\\d"", ""b""]"\n')
    assert stimuli.load(str(data)).columns()["expected"] == [["a\\d", "b"]]
    assert not [x for x in recwarn.list if "escape" in str(x.message)]


TEXT = ["The", "baker", "saw", "it.", "A", "sailor", "often", "slept", "here."]
COUNTS = [*range(1, 10)] * 2


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"WORD": TEXT * 2, "nr": COUNTS, "story": ["a"] * 9 + ["b"] * 9},
         ("WORD", "nr", ("story",))),  # a position of any name
        ({"Teil": ["a"] * 9 + ["b"] * 9, "Wort": [*TEXT, "x", *TEXT[1:]], "nr": COUNTS},
         ("Wort", "nr", ("Teil",))),  # nothing of a known name
        ({"target": TEXT * 2, "wordnr": COUNTS, "list": ["x"] * 9 + ["y"] * 9},
         ("target", "wordnr", ())),  # one text in two lists
        ({"word": TEXT[::-1], "position": [*range(9, 0, -1)]}, ("word", "position", ())),
        ({"word": ["A", "cat", "A", "dog", "ran", "off"], "position": [1, 2, 1, 2, 3, 4],
          "item": [1] * 6, "list": [*"xxyyyy"], "cond": [*"ppqqqq"]},
         ("word", "position", ("cond",))),  # lists come after others
        ({"word": ["laughed", "here.", "it", "sang", "here."], "position": [4, 5, 5, 6, 7],
          "item": [1] * 5, "cond": [*"aabbb"]}, ("word", "position", ("cond",))),  # parts of texts
        ({"word": ["A", "cat", "A", "dog"] * 2, "position": [1, 2] * 4, "item": [1] * 8,
          "cond": [*"ppqq"] * 2, "trialid": [1, 1, 2, 2, 2, 2, 1, 1], "x": [*"aabbccdd"]},
         ("word", "position", ("cond",))),  # the fewest texts
        ({"word": TEXT * 2, "position": [*range(1, 19)], "sent": [*"111122222"] * 2,
          "para": ["a"] * 9 + ["b"] * 9}, ("word", "position", ("para",))),  # without gaps
        ({"word": ["A", "hen", "A", "dog", "My", "hen", "My", "dog", "A", "cat", "A", "cow", "My",
                   "cat", "My", "cow"], "position": [1, 2] * 8, "sent": [1] * 16,
          "x": [*"aaaabbbb"] * 2, "y": [*"ccdd"] * 4, "z": [*"e" * 8 + "f" * 8]},
         ("word", "position", ("sent", "x", "y", "z"))),  # conditions of 2 x 2 x 2
        ({"word": TEXT[:8], "item": [*range(8)], "position": [5, 6] * 4}, None),  # critical words
        ({"word": [f"w{n}" for n in range(9)], "rank": [*range(9)]}, None),  # a list of words
    ],
)  # fmt: skip
def test_words_their_positions_and_texts_are_found_by_what_they_are(columns, found):
    layout = TableLayout({name: [*map(str, values)] for name, values in columns.items()})
    assert word_rows(layout) == found


SENTENCES = ["The baker saw it.", "A sailor slept here."]
WORDS_OF = [word for text in SENTENCES for word in text.split()]
SHUFFLED = [7, 2, 13, 5, 9, 0, 15, 3, 10, 6, 1, 11, 8, 14, 4, 12]


def test_check_shows_a_text_of_words_and_the_commands_for_their_times(tmp_path, command):
    table = pd.DataFrame({"item": [1] * 8, "cond": [*"aaaabbbb"], "word_nr": [1, 2, 3, 4] * 2})
    table = table.assign(word=WORDS_OF, length=[*map(len, WORDS_OF)], RT=range(300, 308))
    table = pd.concat([table, table.assign(item=2, word=table["word"].str.upper())])
    path = tmp_path / "own.csv"
    table.iloc[SHUFFLED].to_csv(path, index=False)
    lines = command("check", path)[1].splitlines()
    options = "--columns text=item text=cond position=word_nr"
    assert lines[2].endswith(
        f"a row per word: for `lmdiag surprisal` and `lmdiag fit`, with {options}"
    )
    assert lines[3] == "columns     item/cond as text, word_nr as position"
    assert lines[4] == "reads       text 1/b, position 4, RT 307: [here.]"
    assert lines[5] == "texts       4, of 16 words"
    uses = ["item: text", "cond: text", "word_nr: position", "word: word", "RT: response"]
    assert [f"column      {use}" for use in uses if use not in str(lines)] == []
    assert lines[12] == f"response    lmdiag fit {path} --model M {options} --response RT"
    assert lines[13] == f"conditions  cond: lmdiag analyse {path} --response RT"


def test_a_column_of_sentences_is_read_and_words_beside_it_are_named(tmp_path, command):
    table = pd.DataFrame({"sentence": np.repeat(SENTENCES, 4), "position": [1, 2, 3, 4] * 2})
    path = tmp_path / "own.csv"
    table.assign(word=WORDS_OF, rt=range(8)).to_csv(path, index=False)
    assert len(stimuli.load(path)) == 8
    out = command("check", path)[1]
    assert "perhaps     a row per word: for `lmdiag surprisal` and `lmdiag fit`" in out
    assert read_texts(path).texts == [*reversed(SENTENCES)]
    said = "sentence,P1,P2,P3\nHe sang a very long,song,song,tune\nShe saw the old,barn,cow,barn\n"
    out = command("check", written(tmp_path, said))[1]
    assert out.startswith("own: 2 sentences")
    assert "for `lmdiag cloze`, with --columns context=sentence --wide P1 P2 P3" in out


def test_sentences_that_templates_make_for_several_items_are_all_read():
    """So that the column of items may be named: --item group."""
    nouns = [
        f"{noun} {kind}"
        for noun in ("hen", "dog", "cow")
        for kind in ("one", "two", "red", "old", "wet")
    ]
    rows = [
        {"group": f"g{n}", "clef": clef, "sentence": f"It is {what} that it ate the hen."}
        for n, noun in enumerate(nouns)
        for clef, what in (("yes", noun.split()[0]), ("no", "clear"))
    ]
    found = lmdiag.check(pd.DataFrame(rows), item="group")
    assert (found.error, found.n_rows, found.n_items) == ("", 30, 15)


def test_parts_of_sentences_are_named(tmp_path):
    parts = ["The baker", "saw the dog", "in the garden."] * 2
    rows = {"item": [1, 1, 1, 2, 2, 2], "region": [1, 2, 3] * 2, "content": parts}
    with pytest.raises(BadInput, match="a row per region of a sentence, which no command reads"):
        stimuli.load(rows)
    with pytest.raises(BadInput, match="responses in numbers: for `lmdiag analyse`, with --resp"):
        stimuli.load(rows | {"rt": [*range(6)]})
