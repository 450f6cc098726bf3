"""Whole sentences in a report: items word by word, tables, charts and the page of each form."""

from __future__ import annotations

import csv
import io
import math
import statistics
from typing import Any

import pytest
from parsed import ParsedPage

from lmdiag.display import Measures
from lmdiag.report.charts.specs import Plot
from lmdiag.report.formats import render_tables
from lmdiag.report.html import charts, render
from lmdiag.report.items import Choice, Item, items
from lmdiag.report.listing import choose, listed, representative
from lmdiag.results import Run
from lmdiag.types import WordSpan

from .forms import ORDER, PARADIGMS, SUM, run_on, write_pairs, write_sentences, write_suites
from .handmade import choice


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs on the three forms; two models on the minimal pairs and suites."""
    root = tmp_path_factory.mktemp("forms")
    pairs = write_pairs(root / "blimp")
    suites, texts = write_suites(root / "gym"), write_sentences(root / "texts.csv")
    strong: dict[str, Any] = {"id": "org/strong", "kind": "causal", "bos": True, "skill": 5}
    weak: dict[str, Any] = {"id": "org/weak", "skill": 0, "seed": 1}
    return {
        "pairs": run_on(pairs, root / "a", **strong, unscorable=1),
        "pairs of weak": run_on(pairs, root / "b", **weak),
        "suites": run_on(suites, root / "c", **strong),
        "suites of weak": run_on(suites, root / "d", **weak),
        "sentences": run_on(texts, root / "e", id="org/none", kind="causal"),
    }


@pytest.fixture(scope="module")
def pages(forms: dict[str, Run]) -> dict[str, ParsedPage]:
    """The page of each run, and of both models on a form."""
    found = {name: ParsedPage(render(run)) for name, run in forms.items()}
    for form in ("pairs", "suites"):
        found[f"two on {form}"] = ParsedPage(render([forms[form], forms[f"{form} of weak"]]))
    return found


# ---- words and regions ---------------------------------------------------------------------------


def spans(text: str, *bits: float | None, n_tokens: int = 1) -> tuple[WordSpan, ...]:
    """The words of a text with these surprisals."""
    words, place = [], 0
    for word, surprisal in zip(text.split(), bits, strict=True):
        place = text.index(word, place)
        log_prob = None if surprisal is None else -surprisal * math.log(2)
        words.append(WordSpan(place, place + len(word), log_prob, n_tokens))
        place += len(word)
    return tuple(words)


def sentence(id: str, good: bool | None, text: str, *bits: float | None, **more: Any) -> Choice:
    """A row that is a sentence with these surprisals of its words."""
    known = [each for each in bits if each is not None]
    facts = {"context": text, "target": "", "spans": spans(text, *bits), "n_tokens": len(known)}
    return choice(id, good, 2 ** -sum(known) if known else None, **facts | more)


def texts(item: dict[str, Any]) -> list[list[str]]:
    """The words of each row as they stand in the columns, "" where there is none."""
    cells = [[cell[0].text if cell else "" for cell in column] for _, column in item["columns"]]
    return [list(row) for row in zip(*cells, strict=True)]


@pytest.mark.parametrize(
    ("good", "bad", "shown"),
    [
        ("a b c", "a x c", [["a", "b", "c"], ["a", "x", "c"]]),
        ("a b d e", "a b c d e", [["a", "b", "", "d", "e"], ["a", "b", "c", "d", "e"]]),
        ("a a a", "a a", [["a", "a", "a"], ["", "a", "a"]]),
        ("a b", "c", [["a", "b"], ["c", ""]]),
    ],
)
def test_words_stand_below_each_other_as_far_as_sentences_share_them(
    good: str, bad: str, shown: list[list[str]], forms: dict[str, Run]
) -> None:
    rows = [sentence("g", True, good, *range(len(good.split())))]
    rows += [sentence("b", False, bad, *range(len(bad.split())))]
    (only,) = listed([[Item("x", rows, {})]], forms["pairs"].stimuli["blimp"].diagnostic)
    assert texts(only) == shown


def test_regions_have_the_sum_of_the_words_that_begin_in_them() -> None:
    text = "Who fed him, then?"
    places = {"1 who": (0, 3), "2 empty": (3, 3), "3 rest": (4, 12), "4": (13, 18)}
    regions = [
        {"number": int(name[0]), "name": name[2:], "start": start, "end": end}
        for name, (start, end) in places.items()
    ]
    row = sentence("x", None, text, None, 2.5, 0.25, 8.0, regions=regions)
    assert [(part.name, part.text, part.bits) for part in row.parts] == [
        ("1 who", "Who", None),  # the first word of a model without a BOS token
        ("2 empty", "", None),
        ("3 rest", "fed him,", pytest.approx(2.75)),
        ("4", "then?", pytest.approx(8)),
    ]
    unknown = row._replace(spans=(*row.spans[:2], row.spans[2]._replace(log_prob=None, n_tokens=0)))
    assert [part.bits for part in unknown.parts] == [None] * 4  # type: ignore[index]


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        (10.0, 13.25, ("right", "good preferred by 3.2 bits")),
        (10.04, 10.0, ("wrong", "bad preferred by 0.04 bits")),
        (10.0, 10.0, ("wrong", "neither preferred")),
        (None, 10.0, ("unknown", "cannot be compared")),
    ],
)
def test_sentences_differ_by_bits(good: float | None, bad: float, said: tuple[str, str]) -> None:
    rows = [sentence("g", True, "a", good), sentence("b", False, "b", bad)]
    prefers = None if good is None else good < bad
    item = Item("x", rows, {}, prefers)
    assert item.verdict == said
    assert item.difference == (None if good is None else pytest.approx(bad - good))
    assert item.order == item.difference


@pytest.mark.parametrize(
    ("holds", "order", "said"),
    [
        ([True], 1, ("right", "prediction holds")),
        ([False], 0, ("wrong", "prediction does not hold")),
        ([True, False], 0.5, ("narrow", "1 of 2 predictions hold")),
        ([True, None], None, ("unknown", "cannot be evaluated")),
    ],
)
def test_an_item_of_a_suite_is_as_good_as_its_predictions(
    holds: list[bool | None], order: float | None, said: tuple[str, str]
) -> None:
    predictions = [(ORDER, each) for each in holds]
    item = Item("x", [sentence("x", None, "a", 2.0)], {}, predictions=predictions)
    assert (item.order, item.verdict) == (order, said)


def test_of_long_texts_fewer_are_listed() -> None:
    long = " ".join(["word"] * 3000)
    many = [Item(str(i), [sentence(str(i), None, long, *[1.0] * 3000)], {}) for i in range(40)]
    assert 2 <= len(representative(many)) < 10


# ---- items of runs -------------------------------------------------------------------------------


def test_pairs_agree_with_sensitivity(forms: dict[str, Run]) -> None:
    run = forms["pairs"]
    found = items(run, "blimp")
    assert len(found) == 4 * len(PARADIGMS)
    assert found[0].prefers_good is found[0].difference is None  # a word cannot be represented
    known = [item for item in found if item.difference is not None]
    assert all(item.prefers_good == ((item.difference or 0) > 0) for item in known)
    measure = run.results.measure("blimp", "none", "sensitivity")
    assert measure is not None
    assert measure.n == len(known) == len(found) - 1
    assert measure.value == statistics.fmean(bool(item.prefers_good) for item in known)
    for row in (each for item in known for each in item.choices):
        assert row.bits == pytest.approx(sum(part.bits or 0 for part in row.parts))
        assert [part.text for part in row.parts] == row.sentence.split()


def test_items_of_suites_agree_with_their_formulas(forms: dict[str, Run]) -> None:
    run = forms["suites"]
    found = items(run, "gym")
    assert [item.id for item in found][:3] == [f"center_embed/{i}" for i in (1, 2, 3)]
    measure = run.results.measure("gym", "none", "suite_accuracy")
    assert measure is not None
    assert measure.value == pytest.approx(statistics.fmean(item.held or 0 for item in found))
    for item in found:
        formulas = [ORDER] if item.levels["suite"] == "center_embed" else [ORDER, SUM]
        assert [formula for formula, _ in item.predictions] == formulas
        plaus, implaus = item.choices
        assert (plaus.condition, implaus.condition) == ("plaus", "implaus")
        bits = [[part.bits or 0 for part in row.parts] for row in (plaus, implaus)]
        assert item.predictions[0][1] == (sum(bits[0][2:4]) < sum(bits[1][2:4]))
        if len(formulas) > 1:
            assert item.predictions[1][1] == ((plaus.bits or 0) < (implaus.bits or 0))
    assert {item.held for item in items(forms["suites of weak"], "gym")} == {0, 0.5, 1}


def test_chosen_sentences_are_written_word_by_word(forms: dict[str, Run]) -> None:
    both = [forms["suites"], forms["suites of weak"]]
    chosen = choose(both, ["two_predictions/2", "center_embed/1/plaus"])
    text = render_tables("csv", [run.results for run in both], chosen)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3 * 2 * 5  # three sentences, two models, five regions
    assert rows[1] | {"bits": ""} == {
        "id": "two_predictions/2/plaus", "model": "org/strong", "place": "2", "region": "2 comma",
        "sentence": "The 2 painting that the artist, painted deteriorated.", "start": "30",
        "text": ",", "bits": "",
    }  # fmt: skip
    (shown,) = choose([forms["sentences"]], ["s3"])
    markdown = render_tables("markdown", [forms["sentences"].results], [shown])
    assert "| The horse raced past barn 3. | The –, horse " in markdown


def test_predictions_and_measures_show_themselves_in_notebooks(forms: dict[str, Run]) -> None:
    run = forms["suites"]
    (said,) = run.predictions["gym"].values()
    frame = said.to_frame()
    assert [*frame.columns] == ["id", "log_prob", "n_tokens", "words", "perturbation", "run"]
    first = frame.words[0]
    assert frame.log_prob[0] == pytest.approx(sum(word.log_prob for word in first))
    shown = Measures(said, run.stimuli["gym"], run.results.protocol, cased=True)
    assert "two_predictions" in str(shown)
    assert "contrast" not in shown._repr_html_()
    assert "not computed" not in str(shown)


# ---- pages ---------------------------------------------------------------------------------------


def test_every_page_is_complete_and_speaks_of_sentences(
    pages: dict[str, ParsedPage], forms: dict[str, Run]
) -> None:
    for name, page in pages.items():
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
        assert "−log₂ of a probability" in page.text
        for word in ("p(good)", "contexts", "threshold", "top words", "object at"):
            assert word not in page.text, name
    for form, task in (("pairs", "blimp"), ("suites", "gym"), ("sentences", "texts")):
        page, found = pages[form], items(forms[form], task)
        assert {item.id for item in found} <= set(page.ids)
        assert page.attributes.count(("table", "class", "words")) == len(found)
        for row in (each for item in found for each in item.choices):
            assert row.sentence in page.text


def test_words_have_their_bits_and_verdicts_stand_beside(
    pages: dict[str, ParsedPage], forms: dict[str, Run]
) -> None:
    item = items(forms["pairs"], "blimp")[1]
    for row in item.choices:
        assert f"{row.bits:.1f} · {(row.bits or 0) / (row.n_tokens or 1):.1f} per token" in (
            pages["pairs"].text
        )
    assert f"good preferred by {abs(item.difference or 0):.1f} bits" in pages["pairs"].text
    assert "unscorable: 1 row (adjunct_island?)" in pages["pairs"].text
    assert "first word of 6 sentences" in pages["sentences"].text
    for text in ("1 of 2 predictions hold", SUM, "3 verb1", "✗", "does not hold"):
        assert text in pages["suites of weak"].text


def test_of_two_runs_each_word_has_both_numbers(
    pages: dict[str, ParsedPage], forms: dict[str, Run]
) -> None:
    runs = [forms["pairs"], forms["pairs of weak"]]
    both = listed([items(run, "blimp") for run in runs], runs[0].stimuli["blimp"].diagnostic)
    for item in both:
        for _, column in item["columns"]:
            for cell, rows in zip(column, item["rows"], strict=True):
                if cell:
                    theirs = [
                        next(p for p in row.parts if p.start == cell[0].start) for row in rows
                    ]
                    assert cell == theirs
    assert "org/strong: good preferred by" in pages["two on pairs"].text
    assert "org/strong − org/weak" in pages["two on suites"].text
    # the second run has no unscorable word
    assert both[0]["verdicts"][0][0] == "unknown" != both[0]["verdicts"][1][0]


# ---- charts --------------------------------------------------------------------------------------


def rows_of(plots: list[Plot], name: str) -> list[dict[str, Any]]:
    (plot,) = (plot for plot in plots if plot.name == name)
    values: list[dict[str, Any]] = plot.spec["data"]["values"]
    return values


def test_pairs_are_drawn_in_bits(forms: dict[str, Run]) -> None:
    marks = rows_of(charts(forms["pairs"]), "blimp-pairs")
    by_id = {item.id: item for item in items(forms["pairs"], "blimp")}
    assert len(marks) == len(by_id) - 1
    for mark in marks:
        item = by_id[mark["item"]]
        assert mark["bad"] - mark["good"] == pytest.approx(item.difference)
        assert mark["verdict"] == ("good" if item.prefers_good else "bad")


def test_each_suite_has_its_regions_with_the_mean_of_each_condition(forms: dict[str, Run]) -> None:
    plots = charts(forms["suites"])
    rows = rows_of(plots, "gym-regions-2-two-predictions")
    own = [item for item in items(forms["suites"], "gym") if "two" in item.levels["suite"]]
    assert [row["region"] for row in rows if row["condition"] == "plaus"] == [
        "1 intro", "2 comma", "3 verb1", "4 verb2", "5 end",
    ]  # fmt: skip
    for row in rows:
        place, condition = int(row["region"][0]) - 1, row["condition"]
        bits = [c.parts[place].bits for i in own for c in i.choices if c.condition == condition]
        assert row["value"] == pytest.approx(statistics.fmean(bits))  # type: ignore[arg-type]
        assert row["low"] <= row["value"] <= row["high"]
        assert row["n"] == 8
    assert ("implaus", "2 comma") not in {(row["condition"], row["region"]) for row in rows}


def test_very_many_levels_are_drawn_by_the_level_they_belong_to(
    monkeypatch: pytest.MonkeyPatch, forms: dict[str, Run]
) -> None:
    whole = {plot.name for plot in charts(forms["pairs"])}
    assert "blimp-uid-sensitivity" in whole
    monkeypatch.setattr("lmdiag.report.charts.charted._MOST_LEVELS", 2)
    plots = [plot for plot in charts(forms["pairs"]) if "-uid-" in plot.name]
    assert [plot.name for plot in plots] == [
        "blimp-uid-sensitivity-island-effects", "blimp-uid-sensitivity-argument-structure",
        "blimp-uid-sensitivity-binding",
    ]  # fmt: skip
    assert all(plot.is_further for plot in plots)
    assert [len(plot.spec["data"]["values"]) for plot in plots] == [2, 1, 1]
