"""`report.html`: what is in it, and what never gets out of it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hostile import HOSTILE
from parsed import ParsedPage
from runs import ONE_TASK, make_run

from lmdiag.comparison import compare_runs
from lmdiag.report import numbers
from lmdiag.report.comparing import compared, notes, p_text
from lmdiag.report.html import render
from lmdiag.report.items import items
from lmdiag.report.listing import representative
from lmdiag.report.page import digest
from lmdiag.report.tables import sources_of
from lmdiag.results import Run, load_run
from lmdiag.text import visible
from lmdiag.types import BadInput


@pytest.fixture(scope="module")
def one(runs: dict[str, Run]) -> ParsedPage:
    return ParsedPage(render(runs["strong"]))


@pytest.fixture(scope="module")
def two(runs: dict[str, Run]) -> ParsedPage:
    return ParsedPage(render([runs["strong"], runs["weak"]]))


def test_the_page_is_complete_and_small(
    one: ParsedPage, two: ParsedPage, runs: dict[str, Run]
) -> None:
    for page in (one, two):
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
    assert len(render(runs["strong"]).encode()) < 1.5e6


def test_the_policy_allows_only_the_style_and_the_scripts_of_the_page(one: ParsedPage) -> None:
    (content,) = [
        value for tag, name, value in one.attributes
        if tag == "meta" and name == "content" and "default-src" in value
    ]  # fmt: skip
    (library,) = one.blocks["application/gzip"]
    scripts = [one.code["script"].encode(), gzip.decompress(base64.b64decode(library))]
    assert f"style-src '{digest(one.code['style'].encode())}'" in content
    assert "script-src {};".format(" ".join(f"'{digest(each)}'" for each in scripts)) in content
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    assert not [name for _, name, _ in one.attributes if name == "style" or name.startswith("on")]
    assert not [link for link in one.links if not link.startswith(("#", "data:,"))]
    assert not {name for _, name, _ in one.attributes if name in ("src", "srcset", "action")}
    assert not re.search(r"@import|url\((?!#)", one.code["style"])


def test_it_gives_the_method_and_every_figure(one: ParsedPage, runs: dict[str, Run]) -> None:
    results = runs["strong"].results
    facts = [results.signature, results.model.commit, results.data.fingerprint]
    for fact in [*facts, "3 shuffles, seed 0", "Shuf + Trunc"]:
        assert fact in one.text
    for place, figure in results.figures():
        if figure.value is not None and not place.by and figure.is_percent:
            assert f"{100 * figure.value:.1f}" in one.text, place


def test_every_item_has_an_anchor_and_every_link_an_item(
    one: ParsedPage, runs: dict[str, Run]
) -> None:
    for task in ("cprag102", "role88", "neg136"):
        assert {item.id for item in items(runs["strong"], task)} <= set(one.ids)
    contrast = runs["strong"].stimuli["role88"].columns()["contrast"][0]
    assert f"obj:{contrast}" in one.ids
    assert {unquote(link[1:]) for link in one.links if link.startswith("#")} <= set(one.ids)
    marked = {
        row["item"] for chart in one.charts.values() for row in chart["data"]["values"]
        if "item" in row
    }  # fmt: skip
    assert len(marked) > 30
    assert marked <= set(one.ids)


def test_outcomes_are_given_in_words_and_signs(
    one: ParsedPage, two: ParsedPage, runs: dict[str, Run]
) -> None:
    for sign, words in (("✓", "good preferred by"), ("✗", "bad preferred by")):
        assert sign in two.text
        assert words in two.text
    word = runs["strong"].stimuli["cprag102"].columns()["target"][0]
    assert f"unscorable: 1 row ({word})" in one.text
    assert "cannot be compared" in one.text


def test_nothing_is_shown_twice(one: ParsedPage, two: ParsedPage) -> None:
    """The headline table has all figures unless there are perturbed settings."""
    assert "cprag102-measures" in one.charts
    assert "cprag102-measures" not in two.charts
    assert {"role88-pairs-1", "role88-pairs-2"} <= set(two.charts)


def test_several_runs_are_compared_item_by_item(two: ParsedPage, runs: dict[str, Run]) -> None:
    assert "org/strong − org/weak" in two.text
    assert "CPRAG-102: commonsense and pragmatic inference, Shuf + Trunc" in two.text
    strong, weak = runs["strong"], runs["weak"]
    printed = compare_runs(strong, weak)  # as `lmdiag compare` prints it
    (pair,) = compared([strong, weak], sources_of([strong.results, weak.results]))
    assert (pair.a, pair.b) == ("org/strong", "org/weak")
    assert str(pair.comparisons) == str(printed)  # undefined is not equal to itself
    for one in printed:  # blue for the first model, orange for the second, 0 without a colour
        assert pair.color(one) == {1: 1, -1: 2, 0: 0}[(one.a > one.b) - (one.a < one.b)]
        assert numbers.signed(one.difference, one.statistic) in two.text
        assert p_text(one) in two.text
    for line in notes(printed, 10_000):
        assert line in two.text
    # colour means the model and nothing else: charts of one run have its colour alone
    for name, spec in two.charts.items():
        if (number := name[-2:]) in ("-1", "-2") and name.startswith("role88-"):
            drawn = json.dumps({key: part for key, part in spec.items() if key != "data"})
            assert {*re.findall(r"var\(--c\d\)", drawn)} == {f"var(--c{number[1]})"}, name
    assert runs["weak"].stimuli["neg136"].columns()["contrast"][0] in two.ids
    assert "org/strong: good preferred" in two.text
    with pytest.raises(
        BadInput, match=r"cannot be compared: their signatures differ in data .*perturb"
    ):
        render([runs["strong"], runs["all"]])


def test_checkpoints_become_curves_in_the_order_of_training(runs: dict[str, Run]) -> None:
    page = ParsedPage(render([runs["step64000"], runs["step0"], runs["step1000"]]))
    for text in ("org/trained: 3 checkpoints", "Over training", "step 0 − step 64000"):
        assert text in page.text
    places = [page.text.index(f"step {step} ·") for step in (0, 1000, 64000)]
    assert places == sorted(places)
    rows = page.charts["role88-steps"]["data"]["values"]
    assert {row["x"] for row in rows} == {0, 1000, 64000}
    assert {row["panel"] for row in rows} >= {"accuracy@5", "sensitivity"}


def test_of_too_many_items_a_sample_is_listed(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmdiag.report.listing.MAX_LISTED", 40)
    every = items(runs["all"], "agreement")
    listed = {item.id for item in representative(every)}
    left_out = next(item.id for item in every if item.id not in listed)
    page = ParsedPage(render(runs["all"], chosen=[left_out]))
    assert f"The list is a sample of {len(every)} contrasts" in page.text
    assert {item.id for item in every} & set(page.ids) == listed | {left_out}


def test_names_and_words_from_outside_stay_text(demo_dir: Path, tmp_path: Path) -> None:
    fields = ("id", "commit", "dtype", "architecture", "tokenizer")
    tried = list(HOSTILE.values())
    loaded = []
    for start in range(0, len(tried), len(fields)):
        facts: dict[str, Any] = dict(zip(fields, tried[start:], strict=False))
        folder = tmp_path / str(start)
        loaded.append(
            load_run(make_run(folder, demo_dir, ONE_TASK, cased=True, fillers=tried, **facts))
        )
    page = ParsedPage(render(loaded))
    assert page.open == []
    assert not {name for _, name, _ in page.attributes if name.startswith("on")}
    assert not [link for link in page.links if not link.startswith(("#", "data:,"))]
    assert not {"\u202e", "\x1b", "\x00"} & set(page.text)
    shown = [" ".join(visible(word).split()) for word in tried]
    assert [word for word in shown if word not in page.text] == []
