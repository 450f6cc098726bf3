"""`lmdiag surprisal`: one row per word, in files that R and pandas read, and what is refused."""

import io
import math
import sys

import numpy as np
import pandas as pd
import pytest
from invented_runs import FakeModel
from reference import CLOSE
from wordfreq import word_frequency

import lmdiag
from lmdiag import models
from lmdiag.tables.table_files import as_frame, read_table
from lmdiag.types import ModelInfo, SentenceAnswer, WordSpan

COLUMNS = ["text", "position", "word", "start", "surprisal", "n_tokens"]


class Halves(FakeModel):
    """A model without torch: each letter of a word is a token of probability 1/2.

    The first word of a text has no probability, and the tokenizer cannot represent `☃`.
    """

    info = ModelInfo("halves:", None, "v1", "causal", "Halves", "float32", "none", True, 9, 0, None)

    def __init__(self):
        self.asked = []

    def control_names(self, texts):
        return [["<|end|>"] if "<|end|>" in text else [] for text in texts]

    def reply(self, question, top):
        self.asked.append(question.text)
        spans = []
        for word in question.text.split():
            start = question.text.index(word, spans[-1].end if spans else 0)
            letters = 0 if "☃" in word else len(word)
            nats = None if not spans or not letters else letters * float(np.log(0.5))
            spans.append(WordSpan(start, start + len(word), nats, letters))
        return SentenceAnswer(tuple(spans))


@pytest.fixture
def halves(monkeypatch):
    """The model `halves:`, as the command loads it."""
    model = Halves()
    monkeypatch.setattr(models, "load", lambda model_id, options: model)
    return model


@pytest.fixture
def written(command, halves):
    """Returns what the command prints for the lines of a file."""

    def run(text, *options):
        file = command.folder / "texts.txt"
        file.write_bytes(text.encode())
        code, out, err = command("surprisal", "--model", "halves:", file, "--quiet", *options)
        assert (code, err) == (0, "")
        return out

    return run


@pytest.mark.parametrize(
    ("text", "asked", "lines"),
    [
        # bits by hand: one for each letter, none for the first word; numbers are those of lines
        ("A dog barks.\n\n  \n  A  cat ☃ meows\n", ["A dog barks.", "A  cat ☃ meows"],
         ["1,1,A,0,,1", "1,2,dog,2,3.000000,3", "1,3,barks.,6,6.000000,6", "4,1,A,2,,1",
          "4,2,cat,5,3.000000,3", "4,3,☃,9,,0", "4,4,meows,11,5.000000,5"]),
        # a mark at the beginning, Windows's ends of lines, characters that only look like one
        ("\ufeffA b\r\nc d\u2028e\x0cf\r\n", ["A b", "c d\u2028e\x0cf"],
         ["1,1,A,0,,1", "1,2,b,2,1.000000,1", "2,1,c,0,,1", "2,2,d,2,1.000000,1",
          "2,3,e,4,1.000000,1", "2,4,f,6,1.000000,1"]),
        # equal texts are asked once
        ("A b\n A b \nc d\n", ["A b", "c d"],
         ["1,1,A,0,,1", "1,2,b,2,1.000000,1", "2,1,A,1,,1", "2,2,b,3,1.000000,1", "3,1,c,0,,1",
          "3,2,d,2,1.000000,1"]),
    ],
)  # fmt: skip
def test_a_row_per_word(written, halves, text, asked, lines):
    assert written(text).splitlines() == [",".join(COLUMNS), *lines]
    assert halves.asked == asked


def test_length_and_frequency_on_demand(written):
    out = written("A dog ☃\n", "--columns", "length", "log_frequency")
    frame = pd.read_csv(io.StringIO(out))
    assert frame["length"].tolist() == [1, 3, 1]
    expected = [math.log2(word_frequency(word, "en")) for word in ("A", "dog")]
    assert frame["log_frequency"][:2].tolist() == pytest.approx(expected, abs=1e-6)
    assert frame["log_frequency"].isna().tolist() == [False, False, word_frequency("☃", "en") == 0]


WORDS = ['"Quotes"', "a,b", 'ö,"“é”', "=1+1", "漢字", "NA", "-", "l'été", ";"]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_files_are_read_back_as_they_are(written, command, ending):
    file = command.folder / f"out{ending}"
    assert written(" ".join(["A", *WORDS]), "--output", file) == ""
    frame = as_frame(read_table(file)).replace("", np.nan)
    for name in ("text", "start", "surprisal", "n_tokens"):
        frame[name] = pd.to_numeric(frame[name])
    assert frame.columns.tolist() == COLUMNS
    assert frame["word"].tolist() == ["A", *WORDS]
    assert np.isnan(frame["surprisal"].iloc[0])
    assert frame["surprisal"].tolist()[1:] == pytest.approx([*map(len, WORDS)])
    assert {kind.kind for kind in frame.dtypes[["text", "start", "n_tokens"]]} == {"i"}


@pytest.mark.usefixtures("halves")
def test_standard_input_is_read(command, monkeypatch):
    for content, expected in [
        ("ä b\n".encode(), "1,1,ä,0,,1\n1,2,b,2,1.000000,1\n"),
        (b"\xff\n", "standard input:1: not UTF-8 (byte 0)"),
        (b" \n\n", "standard input has no text: give one sentence or text per line"),
    ]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        _, out, err = command("surprisal", "--model", "halves:", "-", "--quiet")
        assert expected in out + err


@pytest.mark.usefixtures("halves")
def test_what_else_the_terminal_gets(command, monkeypatch):
    """Progress and warnings on standard error; on a terminal, no control characters."""
    file = command.folder / "texts.txt"
    file.write_text("A \x1b[31mred\nthe <|end|> is near\n")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a bar, as on a terminal
    _, out, err = command("surprisal", "--model", "halves:", file)
    assert "1,2,\x1b[31mred,2," in out
    assert "model halves: reads the name of a control token as the token itself" in err
    assert "(<|end|> in text 2)" in err
    assert "sentences/s" in err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "1,2,⟨U+001B⟩[31mred,2," in command("surprisal", "--model", "halves:", file)[1]


@pytest.mark.usefixtures("halves")
def test_tables_are_read_by_their_column(command, halves):
    frame = pd.DataFrame({"item": [1, 2], "sentence": ["A dog, barks.", "The cat"]})
    frame.to_csv(command.folder / "t.csv", index=False, sep=";")
    frame.to_excel(command.folder / "t.xlsx", index=False)
    frame.to_json(command.folder / "t.jsonl", orient="records", lines=True)
    for name in ("t.csv", "t.xlsx", "t.jsonl"):
        path = command.folder / name
        assert "2,2,cat,4,3.000000,3" in command("surprisal", "--model", "halves:", path)[1]
        assert halves.asked[-2:] == ["A dog, barks.", "The cat"]
    path.with_name("t.csv").write_text("item,line\n1,A dog\n")
    refused = command.refused("surprisal", "--model", "halves:", path.with_name("t.csv"))
    assert "has the columns item, line: name the texts, --columns sentence=line" in refused
    path.with_name("t.csv").write_text("item,text\n1,NA\n")
    refused = command.refused("surprisal", "--model", "halves:", path.with_name("t.csv"))
    assert "t.csv:2: the column text is empty" in refused


@pytest.mark.usefixtures("halves")
def test_several_models_texts_without_a_surprisal_and_missing_packages(command):
    file = command.folder / "texts.txt"
    file.write_text("A b\nc\n\n")
    _, out, err = command("surprisal", "--model", "halves:", "--model", "second:", "--quiet", file)
    assert out.startswith("model,text,position")
    assert "\nhalves:,1,2,b" in out
    assert "\nsecond:,2,1,c" in out
    assert err == "lmdiag: warning: no word with a surprisal: text 2\n" * 2
    assert "too many: 'b.txt'" in command.refused("surprisal", file, "b.txt", "--model", "halves:")
    given = ("surprisal", file, "--model", "nowhere", "--columns", "log_frequency", "--language")
    assert "wordfreq needs jieba for language zh: `pip install" in command.refused(*given, "zh")
    assert "wordfreq needs MeCab for language ja" in command.refused(*given, "ja")


def test_entropies_in_runs_tables_and_fits(command):
    """Equal figures and signature; the entropies of words and regions, also as a predictor.

    Their values: models/test_families.py and models/test_word_by_word.py.
    """
    folder, model = command.folder, command.models["gpt2"]
    (folder / "rows.csv").write_text("id,sentence\n1,A robin |is a bird.\n2,The dog |sleeps.\n")
    (folder / "texts.txt").write_text("A robin is a bird.\nThe dog sleeps.\n")
    start = ["run", "--model", model, "--quiet", "--data", folder / "rows.csv", "--output"]
    with_entropy = [*start, folder / "with", "--entropy"]
    assert command(*start, folder / "without")[0] == command(*with_entropy)[0] == 0
    refused = command.refused(*start, folder / "without", "--entropy")
    assert "holds a run without entropy: add --overwrite" in refused
    assert command(*start, folder / "with")[0] == 0  # has more than is asked for
    plain, run = (lmdiag.load_run(folder / name) for name in ("without", "with"))
    assert plain.results.signature == run.results.signature
    assert plain.results.tasks == run.results.tasks
    words, regions = run.items("word"), run.items("region")
    assert words["entropy"].notna().sum() == len(words) == 8
    assert regions["entropy"].tolist() == words["entropy"][[0, 2, 5, 7]].tolist()
    assert "entropy" not in {*run.items(), *plain.items("word")}

    made = str(folder / "made.csv")
    texts = [folder / "texts.txt", "--quiet", "--entropy", "--output", made]
    assert command("surprisal", "--model", model, *texts)[0] == 0
    frame = pd.read_csv(made)
    assert frame["entropy"].tolist() == pytest.approx(words["entropy"].tolist(), abs=CLOSE)

    table = frame[["text", "position", "word"]].assign(rt=[1.0, 2, 4, 3, 5, 2, 1, 3])
    chosen = {"predictors": ("surprisal", "entropy"), "controls": (), "lags": 0}
    of_model = {"models": str(model), "output": folder}
    asked, again, read = (  # again: from the answers that are kept
        lmdiag.fit(table, **source, response="rt", **chosen).to_frame()["delta_log_likelihood"]
        for source in (of_model, of_model, {"surprisal": made})
    )
    assert asked.tolist() == again.tolist() == pytest.approx(read.tolist(), rel=1e-3)
