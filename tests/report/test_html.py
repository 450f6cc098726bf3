"""`report.html`: what is in it, and what never gets out of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from hub.boards import HOSTILE

from lmdiag.hub.text import visible
from lmdiag.report.html import render
from lmdiag.report.items import items, sample
from lmdiag.report.page import digest
from lmdiag.report.tables import names
from lmdiag.resources import resource_path
from lmdiag.results import Run, load_run
from lmdiag.schema import BadInput

from .runs import ONE_TASK, write_run

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """A page as its elements: checks that they nest, and collects ids, links and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.size = len(html.encode())
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.inline = {"style": "", "script": ""}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._note(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inline:
            self.inline[self.open[-1]] += data
        else:
            self.texts.append(data)

    @property
    def links(self) -> set[str]:
        """Where the page's links lead."""
        return {value for _, name, value in self.attributes if name.endswith("href")}

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def one(runs: dict[str, Run]) -> Page:
    return Page(render(runs["strong"]))


@pytest.fixture(scope="module")
def two(runs: dict[str, Run]) -> Page:
    return Page(render([runs["strong"], runs["weak"]]))


def test_the_page_is_whole(one: Page, two: Page) -> None:
    for page in (one, two):
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))


def test_nothing_comes_from_elsewhere(one: Page) -> None:
    assert not [link for link in one.links if not link.startswith(("#", "data:,"))]
    assert not {name for _, name, _ in one.attributes if name in ("src", "srcset", "action")}
    assert not re.search(r"@import|url\((?!#)", one.inline["style"])


def test_the_policy_allows_the_pages_own_style_and_script_alone(one: Page) -> None:
    (content,) = [
        value for tag, name, value in one.attributes
        if tag == "meta" and name == "content" and "default-src" in value
    ]  # fmt: skip
    assert f"style-src '{digest(one.inline['style'])}'" in content
    assert f"script-src '{digest(one.inline['script'])}'" in content
    assert "default-src 'none'" in content
    assert "unsafe" not in content
    assert not [name for _, name, _ in one.attributes if name == "style" or name.startswith("on")]


def test_it_says_what_was_asked_and_how(one: Page, runs: dict[str, Run]) -> None:
    results = runs["strong"].results
    for fact in (results["signature"], results["model"]["commit"], results["data"]["fingerprint"]):
        assert fact in one.text
    assert "3 shuffles, seed 0" in one.text


def test_every_figure_of_the_tables_is_there(one: Page, runs: dict[str, Run]) -> None:
    for task, settings in runs["strong"].results["tasks"].items():
        for name, measure in settings["none"]["measures"].items():
            if name.startswith(("accuracy", "sensitivity")):
                assert f"{100 * measure['value']:.1f}" in one.text, (task, name)


def test_every_item_has_an_anchor_and_every_link_an_item(one: Page, runs: dict[str, Run]) -> None:
    for task in ("cprag102", "role88", "neg136"):
        assert {item.id for item in items(runs["strong"], task)} <= set(one.ids)
    contrast = runs["strong"].stimuli["role88"].columns()["contrast"][0]
    assert f"obj:{contrast}" in one.ids
    assert {unquote(link[1:]) for link in one.links if link.startswith("#")} <= set(one.ids)


def test_right_and_wrong_are_said_in_words_and_signs(two: Page) -> None:
    for sign, words in (("✓", "good preferred by"), ("✗", "bad preferred by")):
        assert sign in two.text
        assert words in two.text


def test_unscorable_words_are_named(one: Page, runs: dict[str, Run]) -> None:
    word = runs["strong"].stimuli["cprag102"].columns()["target"][0]
    assert f"unscorable: 1 row ({word})" in one.text
    assert "cannot be compared" in one.text


def test_pictures_follow_the_pages_colours(one: Page) -> None:
    colours = {value for _, name, value in one.attributes if name in ("fill", "stroke")}
    assert {"var(--c1)", "var(--c2)", "var(--ink)"} <= colours
    assert not {colour for colour in colours if colour.startswith("#0")}
    marks = {value for tag, name, value in one.attributes if tag == "a" and name == "xlink:href"}
    assert marks <= {f"#{name}" for name in one.ids}
    assert len(marks) > 30


def test_it_is_small(one: Page) -> None:
    assert one.size < 2e6


def test_several_runs_are_compared_item_by_item(two: Page, runs: dict[str, Run]) -> None:
    assert "org/weak against org/strong" in two.text
    assert "CPRAG-102: commonsense and pragmatic inference, Shuf + Trunc" in two.text
    contrast = runs["weak"].stimuli["neg136"].columns()["contrast"][0]
    assert contrast in two.ids
    assert "org/strong: good preferred" in two.text


def test_runs_that_cannot_be_compared_are_refused(runs: dict[str, Run]) -> None:
    with pytest.raises(
        BadInput, match=r"cannot be compared: their signatures differ in data .*perturb"
    ):
        render([runs["strong"], runs["all"]])


def test_checkpoints_become_curves_in_the_order_of_training(runs: dict[str, Run]) -> None:
    page = Page(render([runs["step64000"], runs["step0"], runs["step1000"]]))
    assert "org/trained: 3 checkpoints" in page.text
    assert "Over training" in page.text
    assert "step 64000 against step 0" in page.text
    assert (
        page.text.index("step 0 ·")
        < page.text.index("step 1000 ·")
        < page.text.index("step 64000 ·")
    )


def test_agreement_has_curves_and_its_pairs(runs: dict[str, Run]) -> None:
    page = Page(render(runs["all"]))
    labels = [value for _, name, value in page.attributes if name == "aria-label"]
    assert "MW and EW by cut-off of the distribution" in labels
    assert "Scores by cut-off for each construction" in labels
    assert "Agreement: subject and verb" in page.text


def test_of_too_many_items_a_sample_is_shown_and_said_to_be_one(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmdiag.report.items.MOST", 40)
    found = items(runs["all"], "agreement")
    shown = {item.id for item in sample(found)}
    left_out = next(item.id for item in found if item.id not in shown)
    page = Page(render(runs["all"], chosen=[left_out]))
    assert f"{len(found)} contrasts are too many for a page" in page.text
    assert {item.id for item in found} & set(page.ids) == shown | {left_out}


def test_names_and_words_of_strangers_stay_text(demo_dir: Path, tmp_path: Path) -> None:
    fields = ("id", "commit", "dtype", "architecture", "tokenizer")
    tried = list(HOSTILE.values())
    loaded = [
        load_run(
            write_run(
                tmp_path / str(start), demo_dir, protocol=ONE_TASK, cased=True, fillers=tried,
                **dict(zip(fields, tried[start:], strict=False)),
            )
        )
        for start in range(0, len(tried), len(fields))
    ]  # fmt: skip
    for page in (Page(render(loaded[0])), Page(render(loaded))):
        assert page.open == []
        assert page.inline["script"] == resource_path("cards", "report.js").read_text()
        assert not {name for _, name, _ in page.attributes if name.startswith("on")}
        assert not [link for link in page.links if not link.startswith(("#", "data:,"))]
        assert not {"\u202e", "\x1b", "\x00"} & set(page.text)
        assert [word for word in tried if visible(word) not in page.text] == []


def test_runs_of_one_model_have_names_that_tell_them_apart(runs: dict[str, Run]) -> None:
    results = runs["strong"].results
    half = results | {"model": results["model"] | {"dtype": "bfloat16"}}
    assert names([results, half]) == ["org/strong (float32)", "org/strong (bfloat16)"]
    assert names([results, results])[1].endswith("#2")
