"""The items of runs as one table, and its files."""

import csv
import math

import pandas as pd
import pytest
from invented_runs import make_run

import lmdiag
from lmdiag.analysis.items import items_of
from lmdiag.asking.protocol import Protocol
from lmdiag.results import load_run
from lmdiag.tables.table_files import write_table
from lmdiag.types import BadInput

ROWS = """\
item,voice,frequency,context,target,surprisal
01,active,3.5,A robin is a,bird,fast
01,passive,3.5,A bird is a,robin,slow
02,active,1e3,"=cmd, a café",bird,fast
02,passive,1e3,A trout is a,fish,slow
"""


def made(folder, text):
    """The run on the text of a csv file, whose first row is unscorable."""
    data = folder / "mine.csv"
    data.write_text(text, "utf-8")
    return make_run(folder / "run", data, unscorable=1)


@pytest.fixture
def run(tmp_path):
    return made(tmp_path, ROWS)


def test_a_row_per_blank_with_the_columns_of_the_user(run):
    table = lmdiag.load_run(run).items()
    assert list(table) == [
        "model", "signature", "weights", "task", "id", "item", "context", "target", "voice",
        "frequency", "surprisal_data", "surprisal", "probability", "rank", "n_tokens", "state",
        "top_word",
    ]  # fmt: skip
    assert list(table["item"]) == ["01", "01", "02", "02"]
    assert list(table["frequency"]) == ["3.5", "3.5", "1e3", "1e3"]
    assert list(table["surprisal_data"]) == ["fast", "slow"] * 2
    predictions = load_run(run).predictions["mine"]["none", 0]
    bits = [math.nan if p is None else -p / math.log(2) for p in predictions.log_prob]
    assert list(table["surprisal"]) == pytest.approx(bits, nan_ok=True)
    assert list(table["probability"])[1:] == pytest.approx([2**-b for b in bits[1:]])
    assert list(table["state"]) == ["unscorable", "scored", "scored", "scored"]
    assert table["rank"].isna().tolist() == [True, False, False, False]
    assert list(table["top_word"]) == [words[0] for words in predictions.top_words if words]


def test_files_have_the_table_of_several_runs(run, tmp_path):
    table = items_of([run, run])
    for file in (tmp_path / "items.tsv", tmp_path / "items.parquet", tmp_path / "items.csv"):
        write_table(table, file)
        back = items_of(file)
        assert (len(back), list(back)) == (8, list(table))
        bits = back["surprisal"].astype(float)  # those of text files are texts
        assert list(bits) == pytest.approx([*table["surprisal"]], nan_ok=True, rel=0)
    write_table(items_of(run).assign(coded="-0.5", good=[True, False] * 2), file)
    content = file.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")  # for Excel, since there is a letter beyond ASCII
    first, *_, third, _ = csv.DictReader(content.decode("utf-8-sig").splitlines())
    assert third["context"] == "'=cmd, a café"
    assert first["coded"] == "-0.5"  # a number is no formula
    assert (first["surprisal"], first["rank"], first["good"]) == ("", "", "TRUE")
    file.write_text('"";"item";"voice";"surprisal"\n"1";"a";"null";1.5\n"2";"a";"none";NA\n')
    table = items_of(file)  # as R's write.csv2 has it
    assert list(table) == ["item", "voice", "surprisal"]
    assert (table["voice"][0], math.isnan(table["surprisal"][1])) == ("null", True)


def test_a_row_per_region_or_word(tmp_path):
    text = "item,a,region_1,region_2,region_3\n1,x,The dogs,,bark loudly.\n1,y,Cats,,; purr.\n"
    run = load_run(made(tmp_path, text))
    table = items_of(run, per="region")
    assert table[["number", "text"]].to_numpy().tolist() == [
        [1, "The dogs"], [2, ""], [3, "bark loudly."], [1, "Cats"], [2, ""], [3, "; purr."]
    ]  # fmt: skip
    words = run.predictions["mine"]["none", 0].words[1]
    bits = -sum(word.log_prob or 0 for word in words[1:]) / math.log(2)
    assert table["surprisal"][5] == pytest.approx(bits)
    assert math.isnan(table["surprisal"][4])  # an empty region
    assert table["state"][4] == "empty"
    assert (math.isnan(table["surprisal"][2]), table["state"][2]) == (True, "unscorable")
    assert list(table["n_tokens"]) == [2, 0, 1, 1, 0, 2]  # none of the unscorable word
    assert table["probability"][5] == pytest.approx(2**-bits)
    table = items_of(run, per="word")
    assert list(table["text"]) == ["The", "dogs", "bark", "loudly.", "Cats;", "purr."]
    assert list(table["number"]) == [1, 2, 3, 4, 1, 2]
    assert list(table["start"]) == [0, 4, 9, 14, 0, 6]
    assert table["surprisal"][4:].sum() == pytest.approx(items_of(run)["surprisal"][1])
    with pytest.raises(BadInput, match="has no regions: give columns region_1"):
        items_of(made(tmp_path, "sentence\nCats purr.\n"), per="region")


def test_the_settings_of_a_run_with_perturbations(demo_dir, tmp_path):
    protocol = Protocol(tasks=("cprag102", "role88"), perturb=("shuf", "obj"), shuffles=2)
    run = make_run(tmp_path / "run", demo_dir, protocol)
    table = items_of(run)
    groups = table.groupby(["task", "perturbation"], sort=False)
    assert [*groups.groups] == [
        ("cprag102", "none"), ("cprag102", "shuf"), ("role88", "none"), ("role88", "obj")
    ]  # fmt: skip
    shuffled = groups.get_group(("cprag102", "shuf"))
    assert set(shuffled["shuffle"]) == {0, 1}
    unperturbed = groups.get_group(("cprag102", "none"))
    assert shuffled["context"].iloc[0] != unperturbed["context"].iloc[0]
    effects = [lmdiag.analyse(rows, task="cprag102").effects for rows in (run, unperturbed)]
    pd.testing.assert_frame_equal(*effects)  # without the perturbed rows
    with pytest.raises(BadInput, match="no task 'neg136': choose from cprag102, role88"):
        items_of(run, task="neg136")


def test_the_designs_of_built_in_sets(demo_dir, tmp_path):
    run = make_run(tmp_path / "run", demo_dir, Protocol(tasks=("role88", "neg136")))
    role88, neg136 = (lmdiag.analyse(run, task=task).effects for task in ("role88", "neg136"))
    with pytest.raises(BadInput, match="--per word needs whole sentences"):
        items_of(run, per="word")
    assert (list(role88["effect"]), set(role88["n"])) == (["condition"], {16})
    assert list(neg136["effect"]) == ["good", "polarity", "good:polarity"]
    assert set(neg136["n"]) == {18 + 8}  # both subsets count from 1
