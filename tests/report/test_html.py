"""`report.html`: what is in it, and what never gets out of it."""

import base64
import gzip
import json
import re
from dataclasses import replace
from functools import cache
from urllib.parse import unquote

import jinja2
import pytest
import shown
from parsed import ParsedPage
from sentence_files import SUM

from lmdiag.report import numbers
from lmdiag.report.comparisons import comparison_notes, comparison_row, run_pairs
from lmdiag.report.formats.page import digest, environment
from lmdiag.report.item_list import sample_items
from lmdiag.report.run_items import items
from lmdiag.report.selections import ReportFigures
from lmdiag.studies.comparison import compare_runs
from lmdiag.types import BadInput

FORMS = {"pairs": "blimp", "suites": "gym", "sentences": "texts"}


@pytest.fixture(scope="module")
def page_of(runs, forms):
    """Names of runs -> their page, which is rendered once."""
    return cache(lambda *names: ParsedPage(shown.page_of([(runs | forms)[name] for name in names])))


def test_the_policy_allows_only_the_style_and_the_scripts_of_the_page(page_of):
    page = page_of("strong")
    (content,) = [tag["content"] for _, tag in page.tags if "default-src" in tag.get("content", "")]
    (library,) = page.blocks["application/gzip"]
    scripts = [page.code["script"].encode(), gzip.decompress(base64.b64decode(library))]
    assert f"style-src '{digest(page.code['style'].encode())}'" in content
    assert f"script-src {' '.join(repr(digest(script)) for script in scripts)};" in content
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    names = {name for _, name, _ in page.attributes}
    assert not names & {"style", "src", "srcset", "action"}
    assert not re.search(r"@import|url\((?!#)", page.code["style"])


@pytest.mark.slow
def test_a_page_gives_the_method_and_every_figure(page_of, runs, forms):
    results = runs["strong"].results
    word = runs["strong"].stimuli["cprag102"].columns()["target"][0]
    pairs = items(forms["pairs"], "blimp")
    name = pairs.outcomes.index[1]
    pair_rows = pairs.rows[pairs.rows["item"] == name]
    bits = [
        *zip(pair_rows["surprisal"], pair_rows["surprisal"] / pair_rows["n_tokens"], strict=True)
    ]
    checkpoints = ["step64000", "step0", "step1000"]
    for names, *texts in (
        (["strong"], results.signature, results.model.commit, results.data.fingerprint),
        (["strong"], "Shuf + Trunc", "3 shuffles, seed 0", f"unscorable: 1 row ({word})"),
        (["strong"], "✓", "good preferred by", "✗", "bad preferred by", "cannot be compared"),
        (["pairs"], *(f"{total:.1f} · {mean:.1f} per token" for total, mean in bits)),
        (["pairs"], f"good preferred by {abs(pairs.outcomes.loc[name, 'difference']):.1f} bits"),
        (["pairs"], "unscorable: 1 row (adjunct_island?)", "−log₂ of a probability"),
        (["sentences"], "first word of 6 sentences"),
        (["suites", "suites of weak"], "1 of 2 predictions hold", SUM, "3 verb1", "✗"),
        (["suites", "suites of weak"], "weak − strong", "minus strong, in the colour"),
        (["pairs", "pairs of weak"], "strong: good preferred by"),
        (checkpoints, "trained: 3 checkpoints", "Training", "step 64000 − step 0"),
    ):
        page = page_of(*names)
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
        assert [text for text in texts if text not in page.text] == []
        if names[0] in FORMS:
            assert not re.search(r"p\(good\)|contexts|threshold|top words|object at", page.text)
    one, two = page_of("strong"), page_of("strong", "weak")
    for place, figure in results.figures():
        if figure.value is not None and not place.by and figure.is_percent:
            assert f"{100 * figure.value:.1f}" in one.text, place
    # the headline table of two runs has all figures unless there are perturbed settings
    assert "cprag102-measures" in one.charts
    assert "cprag102-measures" not in two.charts
    # surprisals alone have no scale of percentages
    sentences = page_of("sentences", "sentences of weak")
    assert not re.search("Charts show|[−+]100", sentences.text)


@pytest.mark.slow
def test_every_item_has_an_anchor_and_every_link_an_item(page_of, runs, forms):
    one = page_of("strong")
    for task in ("cprag102", "role88", "neg136"):
        assert {*items(runs["strong"], task).outcomes.index} <= set(one.ids)
    contrast = runs["strong"].stimuli["role88"].columns()["contrast"][0]
    assert f"obj:{contrast}" in one.ids
    assert {unquote(link[1:]) for link in one.links if link.startswith("#")} <= set(one.ids)
    rows = [row for chart in one.charts.values() for row in chart["data"]["values"]]
    marked = {row["item"] for row in rows if "item" in row}
    assert len(marked) > 30
    assert marked <= set(one.ids)
    for form, task in FORMS.items():
        page, found = page_of(form), items(forms[form], task)
        assert {*found.outcomes.index} <= set(page.ids)
        assert page.attributes.count(("table", "class", "words")) == len(found.outcomes)
        assert all(sentence in page.text for sentence in found.rows["sentence"])


@pytest.mark.slow
def test_several_runs_are_compared_item_by_item(page_of, runs):
    two, strong, weak = page_of("strong", "weak"), runs["strong"], runs["weak"]
    assert "CPRAG-102: commonsense and pragmatic inference" in two.text
    printed = compare_runs(strong, weak)  # as `lmdiag compare` prints it
    (pair,) = run_pairs([strong, weak], ReportFigures.of([strong.results, weak.results]).sources)
    assert (pair.base, pair.new) == ("strong", "weak")
    assert str([*pair.comparisons.values()]) == str(printed)  # undefined is not equal to itself
    assert {*re.findall(r"var\(--c\d\)", json.dumps(two.charts["differences-1-1"]))} == {
        "var(--c1)", "var(--c2)"
    }  # fmt: skip
    for one in printed:
        assert numbers.signed(one.difference, one.statistic) in two.text
        assert comparison_row(one).cells[4].value in two.text
    assert all(line in two.text for line in comparison_notes(printed))
    assert not [name for name in two.charts if "pairs" in name]  # they are in each run's report
    assert weak.stimuli["neg136"].columns()["contrast"][0] in two.ids
    sources = ReportFigures.of([strong.results, weak.results, strong.results]).sources
    for number, pair in enumerate(run_pairs([strong, weak, strong], sources), start=1):
        assert {one.number for one in pair.comparisons.values()} == {number}
    first, other, last = (runs[f"step{step}"] for step in (0, 1000, 64000))
    changed = replace(other.results, signature=other.results.signature.replace("data:", "data:x"))
    rows = dict.fromkeys(other.stimuli, other.stimuli["neg136"])
    with pytest.raises(BadInput, match="differ in data"):  # though the page compares the others
        shown.page_of([first, replace(other, results=changed, stimuli=rows), last])


@pytest.mark.slow
def test_of_too_many_items_a_sample_and_the_chosen_ones_are_listed(runs, monkeypatch):
    monkeypatch.setattr("lmdiag.report.item_list.MAX_LISTED", 8)
    found = items(runs["weak"], "cprag102")
    every = [*found.outcomes.index]
    listed = {*sample_items(found.outcomes, found.levels)}
    left_out = next(name for name in every if name not in listed)
    page = ParsedPage(shown.page_of(runs["weak"], items=[left_out]))
    assert f"The list is a sample of {len(every)} contrasts" in page.text
    assert {*every} & {*page.ids} == listed | {left_out}


def test_templates_are_compiled_once(tmp_path, monkeypatch):
    """Where the cache cannot be written, they are compiled again."""
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    sources = []
    parse = jinja2.Environment._parse
    monkeypatch.setattr(
        jinja2.Environment, "_parse", lambda *of: sources.append(of[1]) or parse(*of)
    )
    for _ in range(2):
        environment.__wrapped__().get_template("page.html.j2")
    assert len(sources) == 1
    (tmp_path / "file").touch()
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "file"))
    environment.__wrapped__().get_template("page.html.j2")
    assert len(sources) == 2
