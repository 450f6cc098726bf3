"""`report.html`: what is in it, and what never gets out of it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hostile import HOSTILE
from runs import ONE_TASK, make_run

from lmdiag.report.html import render
from lmdiag.report.items import items, representative
from lmdiag.report.page import digest
from lmdiag.results import Run, load_run
from lmdiag.schema import BadInput
from lmdiag.text import visible

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """A page as its elements: checks that they nest, and collects ids, links and texts.

    `inline` has the style and the script that runs, `blocks` the data blocks by their type.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.size = len(html.encode())
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.inline = {"style": "", "script": ""}
        self.blocks: dict[str, list[str]] = {}
        self._type = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._type = dict(attrs).get("type") or "" if tag == "script" else ""
        self._note(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script" and self._type:
            self.blocks.setdefault(self._type, []).append(data)
        elif inside in self.inline:
            self.inline[inside] += data
        else:
            self.texts.append(data)

    @property
    def links(self) -> set[str]:
        """Where the page's links lead."""
        return {value for _, name, value in self.attributes if name.endswith("href")}

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def charts(self) -> dict[str, Any]:
        """Name of each chart -> its specification."""
        names = [value for _, name, value in self.attributes if name == "data-name"]
        return dict(zip(names, map(json.loads, self.blocks["application/json"]), strict=False))


@pytest.fixture(scope="module")
def one(runs: dict[str, Run]) -> Page:
    return Page(render(runs["strong"]))


@pytest.fixture(scope="module")
def two(runs: dict[str, Run]) -> Page:
    return Page(render([runs["strong"], runs["weak"]]))


def test_the_page_is_complete_and_small(one: Page, two: Page) -> None:
    for page in (one, two):
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
    assert one.size < 1.5e6


def test_the_policy_allows_only_the_style_and_the_scripts_of_the_page(one: Page) -> None:
    (content,) = [
        value for tag, name, value in one.attributes
        if tag == "meta" and name == "content" and "default-src" in value
    ]  # fmt: skip
    (library,) = one.blocks["application/gzip"]
    scripts = [one.inline["script"].encode(), gzip.decompress(base64.b64decode(library))]
    assert f"style-src '{digest(one.inline['style'].encode())}'" in content
    assert "script-src {};".format(" ".join(f"'{digest(each)}'" for each in scripts)) in content
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    assert not [name for _, name, _ in one.attributes if name == "style" or name.startswith("on")]
    assert not [link for link in one.links if not link.startswith(("#", "data:,"))]
    assert not {name for _, name, _ in one.attributes if name in ("src", "srcset", "action")}
    assert not re.search(r"@import|url\((?!#)", one.inline["style"])


def test_it_gives_the_method_and_every_figure(one: Page, runs: dict[str, Run]) -> None:
    results = runs["strong"].results
    facts = [results.signature, results.model.commit, results.data.fingerprint]
    for fact in [*facts, "3 shuffles, seed 0", "Shuf + Trunc"]:
        assert fact in one.text
    for place, figure in results.figures():
        if figure.value is not None and not place.by and figure.is_percent:
            assert f"{100 * figure.value:.1f}" in one.text, place


def test_every_item_has_an_anchor_and_every_link_an_item(one: Page, runs: dict[str, Run]) -> None:
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


def test_outcomes_are_given_in_words_and_signs(one: Page, two: Page, runs: dict[str, Run]) -> None:
    for sign, words in (("✓", "good preferred by"), ("✗", "bad preferred by")):
        assert sign in two.text
        assert words in two.text
    word = runs["strong"].stimuli["cprag102"].columns()["target"][0]
    assert f"unscorable: 1 row ({word})" in one.text
    assert "cannot be compared" in one.text


def test_nothing_is_shown_twice(one: Page, two: Page) -> None:
    """The headline table has all figures unless there are perturbed settings."""
    assert "cprag102-measures" in one.charts
    assert "cprag102-measures" not in two.charts
    assert {"role88-pairs-1", "role88-pairs-2"} <= set(two.charts)


def test_several_runs_are_compared_item_by_item(two: Page, runs: dict[str, Run]) -> None:
    assert "org/weak against org/strong" in two.text
    assert "CPRAG-102: commonsense and pragmatic inference, Shuf + Trunc" in two.text
    assert runs["weak"].stimuli["neg136"].columns()["contrast"][0] in two.ids
    assert "org/strong: good preferred" in two.text
    with pytest.raises(
        BadInput, match=r"cannot be compared: their signatures differ in data .*perturb"
    ):
        render([runs["strong"], runs["all"]])


def test_checkpoints_become_curves_in_the_order_of_training(runs: dict[str, Run]) -> None:
    page = Page(render([runs["step64000"], runs["step0"], runs["step1000"]]))
    for text in ("org/trained: 3 checkpoints", "Over training", "step 64000 against step 0"):
        assert text in page.text
    places = [page.text.index(f"step {step} ·") for step in (0, 1000, 64000)]
    assert places == sorted(places)
    steps = [row["step"] for row in page.charts["role88-steps"]["data"]["values"]]
    assert set(steps) == {0, 1000, 64000}


def test_of_too_many_items_a_sample_is_listed(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmdiag.report.items.MAX_LISTED", 40)
    every = items(runs["all"], "agreement")
    listed = {item.id for item in representative(every)}
    left_out = next(item.id for item in every if item.id not in listed)
    page = Page(render(runs["all"], chosen=[left_out]))
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
    page = Page(render(loaded))
    assert page.open == []
    assert not {name for _, name, _ in page.attributes if name.startswith("on")}
    assert not [link for link in page.links if not link.startswith(("#", "data:,"))]
    assert not {"\u202e", "\x1b", "\x00"} & set(page.text)
    shown = [" ".join(visible(word).split()) for word in tried]
    assert [word for word in shown if word not in page.text] == []
