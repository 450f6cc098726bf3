"""What `results.json` says, whom a run directory belongs to, and what a signature says."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown import sections_as, shown_as

from lmdiag import stats, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import sections
from lmdiag.results import (
    Figure,
    FigureKey,
    Results,
    RunDirectory,
    SettingResults,
    combined_fingerprint,
    model_slug,
    protocol_slug,
    results_of_setting,
    signature,
)
from lmdiag.results.results import read_record
from lmdiag.types import BadInput

SAVED = Path(__file__).parents[1] / "data" / "results.json"
FIGURE = {"value": 0.5, "n": 4, "ci_low": 0.1, "ci_high": 0.9, "statistic": "proportion"}
IDENTITY = {"model": "demo:masked", "commit": "0123", "signature": "lmdiag:0.2|data:1a2b3c4d"}


def test_what_is_read_is_written(tmp_path):
    results = read_record(Results, SAVED)
    level = results.figure(FigureKey("role88", "none", "accuracy@1", "cloze_quartile", "4"))
    assert level == Figure(0.29, 17, level["ci_low"], level["ci_high"], statistic="proportion")
    undefined = results.figure(FigureKey("role88", "both", "sensitivity"))
    assert (undefined.value, undefined.not_defined) == (None, "there is nothing to compare")
    assert results.figure(FigureKey("role88", "none", "accuracy@7")) is None
    assert results.figure(FigureKey("cprag102", "none", "accuracy@1")) is None
    document = results.to_json()
    file = tmp_path / "results.json"
    file.write_text(json.dumps(document))
    assert read_record(Results, file) == results
    file.write_text(json.dumps(document | {"table": {"critical": "word"}}))  # before it was a list
    assert read_record(Results, file).table.critical == ("word",)
    for task, settings in json.loads(SAVED.read_text())["tasks"].items():
        for setting, content in settings.items():
            for name, measure in content["measures"].items():
                assert measure.items() <= document["tasks"][task][setting]["measures"][name].items()


def test_the_test_against_chance_has_one_word_in_json_and_one_sign_in_tables(demo_dir):
    """7 of 8 (p = .070) and 8 of 8 (.008) against 1/2; Wilson's interval of 7 of 8 excludes it."""
    seven = Figure(7 / 8, 8, *stats.wilson(7, 8), chance=0.5, statistic="proportion")
    by = {"kind": {"a": replace(seven, value=1.0), "b": replace(seven, value=0.0)}}
    content = SettingResults({"sensitivity": replace(seven, by=by)})
    document = content.to_json()["measures"]["sensitivity"]
    figures = document, document["by"]["kind"]["a"], document["by"]["kind"]["b"]
    words = ["not distinguishable", "above", "below"]
    assert [figure["versus_chance"] for figure in figures] == words
    p = [2 * 9 / 2**8, 2 / 2**8, 2 / 2**8]
    assert [figure["p_chance"] for figure in figures] == pytest.approx(p)
    results = results_of_setting(stimuli.load(str(demo_dir), "role88"), "none", content)
    markdown = sections_as("markdown", sections(ReportFigures.of([results])))
    for shown in ("87.5≈ [", "100.0↑ [", "0.0↓ [", "- ↑ above chance", "sensitivity p = .070"):
        assert shown in markdown
    rows = [*csv.DictReader(io.StringIO(shown_as("csv", [results])))]
    assert [row["versus_chance"] for row in rows] == words
    share = Figure(0.6, 40, 0.51, 0.69, chance=0.5, statistic="share")
    assert (share.to_json()["versus_chance"], share.p_chance) == ("above", None)  # a t test
    assert not {"versus_chance", "p_chance"} & Figure(0.6, 40, 0.51, 0.69).to_json().keys()


def test_tied_contrasts_are_not_in_the_test_against_chance(demo_dir):
    """Of 16, 8 are tied: 7 of the other 8 have p = .070, where 7 of 16 would have p = .80."""
    half = Figure(7 / 16, 16, *stats.wilson(7, 16), 0.5, n_tied=8, statistic="proportion")
    assert (half.versus_chance, half.p_chance) == ("not distinguishable", pytest.approx(18 / 2**8))
    assert replace(half, value=8 / 16).versus_chance == "above"
    all_tied = replace(half, value=0.0, n_tied=16)
    assert (all_tied.versus_chance, all_tied.p_chance, all_tied.chance_sign) == (None, None, "")
    content = SettingResults({"sensitivity": all_tied})
    document = content.to_json()["measures"]["sensitivity"]
    assert document["n_tied"] == 16
    assert not {"versus_chance", "p_chance"} & document.keys()
    results = results_of_setting(stimuli.load(str(demo_dir), "role88"), "none", content)
    markdown = sections_as("markdown", sections(ReportFigures.of([results])))
    assert "16 of 16 tied" in markdown
    assert "- tied: two rows share the highest probability" in markdown
    assert "chance (exact" not in markdown
    (row,) = csv.DictReader(io.StringIO(shown_as("csv", [results])))
    assert (row["n"], row["n_tied"], row["versus_chance"], row["p_chance"]) == ("16", "16", "", "")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema_version",), 99, r"schema_version: input should be 1"),
        (("tasks", "role88", "none", "measures", "sensitivity", "value"), "high",
         r"tasks\.role88\.none\.measures\.sensitivity\.value: input should be a valid number"),
        *((("tasks", "role88", "none", "measures", "sensitivity", name), value,
           r"tasks\.role88\.none\.measures\.sensitivity: not a proportion in \[0, 1\] of at most")
          for name, value in (("value", 1.5), ("chance", -0.1), ("n", 2**31), ("n", -1))),
        (("tasks", "neg136", "none", "measures", "determiner_match@5", "statistic"), None,
         r"tasks\.neg136\.none\.measures\.determiner_match@5\.statistic: field required"),
        (("tasks", "role88", "none", "unscorable", 0), {"id": "x"},
         r"tasks\.role88\.none\.unscorable\[0\]\.word: .*required"),
        *((("tasks", "role88", "none", "measures", "sensitivity", "by"), {by: {level: FIGURE}},
           r"tasks\.role88\.none\.measures\.sensitivity\.by: a break-down or one of its levels has")
          for by, level in (("pair", ""), ("", "first"), ("", ""))),
        (("tasks",), {}, "tasks: there are none"),
        (("data", "tasks"), {}, r"data\.tasks\.(role88|neg136): field required"),
        (("protocol", "k"), [], r"protocol\.k: the list is empty"),
        (("data", "tasks", "role88", "form"), "poems",
         r"data\.tasks\.role88\.form: 'poems' is not a form of data"),
    ],
)  # fmt: skip
def test_a_damaged_results_json_is_refused_with_file_and_field(tmp_path, path, value, message):
    document = {"": json.loads(SAVED.read_text())}
    changed = document
    for key in ("", *path)[:-1]:
        changed = changed[key]
    changed[("", *path)[-1]] = value
    file = tmp_path / "results.json"
    file.write_text(json.dumps(document[""]))
    with pytest.raises(BadInput, match=rf"/results\.json.? {message}") as error:
        read_record(Results, file)
    assert "\n" not in str(error.value)


def test_every_option_changes_the_signature_and_the_directory():
    plain = Protocol(perturb=("trunc",))
    for change in (
        {"unit": "word"}, {"k": (1, 10)}, {"threshold": 0.05}, {"shuffles": 10}, {"seed": 1},
        {"perturb": ("shuf",)}, {"bos": "never"}, {"limit": 3}, {"verbs": 1951},
    ):  # fmt: skip
        changed = replace(plain, **change)
        assert signature(changed, "1a2b3c4d") != signature(plain, "1a2b3c4d")
        assert protocol_slug(changed) != protocol_slug(plain)
        line = signature(changed, "1a2b3c4d", asks_words=False)  # whole sentences have no ranks
        assert not any(key in line for key in ("|k:", "|t:", "|shuf:"))


@given(st.text(min_size=1), st.none() | st.text(min_size=1))
def test_a_model_name_never_leaves_its_folder(name, revision):
    slug = model_slug(name, revision)
    assert "/" not in slug
    assert slug not in {"", ".", ".."}


def test_names_stay_readable_and_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/a/final", "runs/a/step1000", "runs/b/step1000"):
        Path(folder).mkdir(parents=True)
    for names, folder in (
        (("EleutherAI/pythia-70m", "step1000"), "EleutherAI--pythia-70m@step1000"),
        (("bert-base-uncased", None, "my BERT"), "my--BERT"),
        (("./runs/a/final/", None), "runs--a--final"),
        (("Con", None), "_Con"),  # a device on Windows, as is nul.txt
        (("me/model", None, "nul.txt"), "_nul.txt"),
        (("con/sole", None), "con--sole"),
        (("frequency:en", None), "frequency--en"),
        ((f"ngram:{tmp_path}/news.arpa", None), "ngram--news.arpa"),
        ((str(tmp_path / "runs/a/step1000"), None), "a--step1000"),
    ):
        assert model_slug(*names) == folder
    monkeypatch.chdir("runs/a")
    for path, name in (("step1000", "step1000"), (".", "a"), ("../b/step1000", "b--step1000")):
        assert model_slug(path, None) == name
    assert protocol_slug(Protocol(perturb=("shuf", "obj"))) == "diagnostics-token-shuf+obj"
    assert combined_fingerprint({"neg136": "aaaaaaaa"}) == "aaaaaaaa"
    two = {"neg136": "aaaaaaaa", "role88": "bbbbbbbb"}
    assert (
        combined_fingerprint(two)
        == combined_fingerprint(dict(reversed(two.items())))
        != combined_fingerprint({"neg136": "aaaaaaaa"})
    )


@pytest.mark.parametrize("finished", [True, False])
def test_the_directory_of_another_run_is_refused_and_kept(tmp_path, finished):
    folder = RunDirectory(tmp_path)
    folder.open(IDENTITY, overwrite=False)
    if finished:
        folder.finish(replace(read_record(Results, SAVED), identity=dict(IDENTITY)))
    folder.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for field in IDENTITY:
        with pytest.raises(BadInput, match=rf"another {field} .*--overwrite"):
            folder.open(IDENTITY | {field: "else"}, overwrite=False)
        folder.close()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert folder.open(IDENTITY | {"model": "else"}, overwrite=True) is False


HOLD = f"""
import sys, pathlib, lmdiag.results
folder = lmdiag.results.RunDirectory(pathlib.Path(sys.argv[1]))
folder.open({IDENTITY!r}, overwrite=False)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_run_is_refused_while_the_first_lives_and_not_after_it_was_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1) as first:
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(BadInput, match="another lmdiag run is at work"):
            RunDirectory(tmp_path).open(IDENTITY, overwrite=False)
        first.kill()
    assert RunDirectory(tmp_path).open(IDENTITY, overwrite=False) is False
