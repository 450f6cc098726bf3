"""`report.html`: what is in it, and what never gets out of it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from urllib.parse import unquote

import pytest
from parsed import ParsedPage

from lmdiag.comparison import compare_runs
from lmdiag.report import numbers
from lmdiag.report.html import compared, render
from lmdiag.report.items import items, representative
from lmdiag.report.labels import notes, p_text
from lmdiag.report.page import digest
from lmdiag.report.tables import sources_of
from lmdiag.results import Run
from lmdiag.types import BadInput

from .conftest import Pages
from .forms import SUM

FORMS = ("pairs", "suites", "sentences")
SENTENCES = (*FORMS, *(f"two on {form}" for form in FORMS))


@pytest.mark.parametrize("name", ["one", "two", "checkpoints", *SENTENCES])
def test_pages_are_complete(pages: Pages, name: str) -> None:
    page = pages[name]
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    if name in SENTENCES:
        assert "−log₂ of a probability" in page.text
        for word in ("p(good)", "contexts", "threshold", "top words", "object at"):
            assert word not in page.text
    else:
        assert pages.sizes[name] < 1.5e6


def test_the_policy_allows_only_the_style_and_the_scripts_of_the_page(pages: Pages) -> None:
    one = pages["one"]
    (content,) = [
        value for tag, name, value in one.attributes
        if tag == "meta" and name == "content" and "default-src" in value
    ]  # fmt: skip
    (library,) = one.blocks["application/gzip"]
    scripts = [one.code["script"].encode(), gzip.decompress(base64.b64decode(library))]
    assert f"style-src '{digest(one.code['style'].encode())}'" in content
    assert f"script-src {' '.join(repr(digest(script)) for script in scripts)};" in content
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    names = {name for _, name, _ in one.attributes}
    assert not names & {"style", "src", "srcset", "action"}
    assert not [name for name in names if name.startswith("on")]
    assert not [link for link in one.links if not link.startswith(("#", "data:,"))]
    assert not re.search(r"@import|url\((?!#)", one.code["style"])


def test_a_page_gives_the_method_and_every_figure(
    pages: Pages, runs: dict[str, Run], forms: dict[str, Run]
) -> None:
    results = runs["strong"].results
    word = runs["strong"].stimuli["cprag102"].columns()["target"][0]
    item = items(forms["pairs"], "blimp")[1]
    bits = [(row.bits or 0, (row.bits or 0) / (row.n_tokens or 1)) for row in item.choices]
    for name, *texts in (
        ("one", results.signature, results.model.commit, results.data.fingerprint),
        ("one", "Shuf + Trunc", "3 shuffles, seed 0", f"unscorable: 1 row ({word})"),
        ("one", "✓", "good preferred by", "✗", "bad preferred by", "cannot be compared"),
        ("pairs", *(f"{total:.1f} · {mean:.1f} per token" for total, mean in bits)),
        ("pairs", f"good preferred by {abs(item.difference or 0):.1f} bits"),
        ("pairs", "unscorable: 1 row (adjunct_island?)"),
        ("sentences", "first word of 6 sentences"),
        ("two on suites", "1 of 2 predictions hold", SUM, "3 verb1", "✗", "does not hold"),
        ("two on suites", "org/strong − org/weak", "The scale shows differences of percentages"),
        ("two on pairs", "org/strong: good preferred by"),
    ):
        for text in texts:
            assert text in pages[name].text
    for place, figure in results.figures():
        if figure.value is not None and not place.by and figure.is_percent:
            assert f"{100 * figure.value:.1f}" in pages["one"].text, place
    # the headline table of two runs has all figures unless there are perturbed settings
    assert "cprag102-measures" in pages["one"].charts
    assert "cprag102-measures" not in pages["two"].charts
    assert {"role88-pairs-1", "role88-pairs-2"} <= set(pages["two"].charts)
    # surprisals alone have no scale of percentages
    assert not re.search("The scale shows|[−+]100", pages["two on sentences"].text)


def test_every_item_has_an_anchor_and_every_link_an_item(
    pages: Pages, runs: dict[str, Run], forms: dict[str, Run]
) -> None:
    one = pages["one"]
    for task in ("cprag102", "role88", "neg136"):
        assert {item.id for item in items(runs["strong"], task)} <= set(one.ids)
    contrast = runs["strong"].stimuli["role88"].columns()["contrast"][0]
    assert f"obj:{contrast}" in one.ids
    assert {unquote(link[1:]) for link in one.links if link.startswith("#")} <= set(one.ids)
    rows = [row for chart in one.charts.values() for row in chart["data"]["values"]]
    marked = {row["item"] for row in rows if "item" in row}
    assert len(marked) > 30
    assert marked <= set(one.ids)
    for form, task in zip(FORMS, ("blimp", "gym", "texts"), strict=True):
        page, found = pages[form], items(forms[form], task)
        assert {item.id for item in found} <= set(page.ids)
        assert page.attributes.count(("table", "class", "words")) == len(found)
        assert all(row.sentence in page.text for item in found for row in item.choices)


def test_several_runs_are_compared_item_by_item(pages: Pages, runs: dict[str, Run]) -> None:
    two, strong, weak = pages["two"], runs["strong"], runs["weak"]
    assert "org/strong − org/weak" in two.text
    assert "CPRAG-102: commonsense and pragmatic inference, Shuf + Trunc" in two.text
    printed = compare_runs(strong, weak)  # as `lmdiag compare` prints it
    (pair,) = compared([strong, weak], sources_of([strong.results, weak.results]))
    assert (pair.a, pair.b) == ("org/strong", "org/weak")
    assert str(pair.comparisons) == str(printed)  # undefined is not equal to itself
    for one in printed:  # blue for the first model, orange for the second, 0 without a colour
        assert pair.color(one) == {1: 1, -1: 2, 0: 0}[(one.a > one.b) - (one.a < one.b)]
        assert numbers.signed(one.difference, one.statistic) in two.text
        assert p_text(one) in two.text
    assert all(line in two.text for line in notes(printed, 10_000))
    # colour means the model and nothing else: charts of one run have its colour alone
    for name, spec in two.charts.items():
        if (number := name[-2:]) in ("-1", "-2") and name.startswith("role88-"):
            drawn = json.dumps({key: part for key, part in spec.items() if key != "data"})
            assert {*re.findall(r"var\(--c\d\)", drawn)} == {f"var(--c{number[1]})"}, name
    assert weak.stimuli["neg136"].columns()["contrast"][0] in two.ids
    message = r"cannot be compared: their signatures differ in data .*perturb"
    with pytest.raises(BadInput, match=message):
        render([strong, runs["all"]])


def test_checkpoints_become_curves_in_the_order_of_training(pages: Pages) -> None:
    page = pages["checkpoints"]
    for text in ("org/trained: 3 checkpoints", "Over training", "step 0 − step 64000"):
        assert text in page.text
    places = [page.text.index(f"step {step} ·") for step in (0, 1000, 64000)]
    assert places == sorted(places)
    rows = page.charts["role88-steps"]["data"]["values"]
    assert {row["at"] for row in rows} == {0, 1000, 64000}
    assert {row["figure"] for row in rows} >= {"accuracy@5", "sensitivity"}


def test_of_too_many_items_a_sample_is_listed(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmdiag.report.items.MAX_LISTED", 40)
    every = items(runs["all"], "agreement")
    listed = {item.id for item in representative(every)}
    left_out = next(item.id for item in every if item.id not in listed)
    page = ParsedPage(render(runs["all"], chosen=[left_out]))
    assert f"The list is a sample of {len(every)} contrasts" in page.text
    assert {item.id for item in every} & set(page.ids) == listed | {left_out}
