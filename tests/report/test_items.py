"""Items of a run: what was asked, what was said, and how it came out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from runs import make_run

from lmdiag import diagnostics
from lmdiag.protocol import Protocol
from lmdiag.report.items import MAX_LISTED, Item, items, run_scores
from lmdiag.report.listing import choose, listed, representative
from lmdiag.results import Run, load_run
from lmdiag.types import BadInput

from .handmade import choice


def item(name: str, good: float | None, *bad: float | None, **levels: str) -> Item:
    rows = [choice(f"{name}-good", True, good)]
    rows += [choice(f"{name}-bad{i}", False, p) for i, p in enumerate(bad)]
    if good is None or None in bad:
        return Item(name, rows, levels)
    ahead = [good - (p or 0) for p in bad]
    return Item(name, rows, levels, min(ahead) > 0, min(ahead) > 0.01)


@pytest.mark.parametrize(
    ("good", "bad", "difference", "said"),
    [
        (0.5, (0.1, 0.25), 0.25, ("right", "good preferred by .250")),
        (0.5, (0.495,), 0.005, ("narrow", "good preferred by only .0050")),
        (0.25, (0.5,), -0.25, ("wrong", "bad preferred by .250")),
        (0.5, (0.5,), 0.0, ("wrong", "neither preferred")),
        (0.5, (0.1, None), None, ("unknown", "cannot be compared")),
        (None, (0.1,), None, ("unknown", "cannot be compared")),
    ],
)
def test_the_difference_is_to_the_most_probable_bad_completion(
    good: float | None,
    bad: tuple[float | None, ...],
    difference: float | None,
    said: tuple[str, str],
) -> None:
    one = item("x", good, *bad)
    assert one.difference == (None if difference is None else pytest.approx(difference))
    assert one.verdict == said


def test_a_contrast_without_its_good_row_has_no_difference() -> None:
    """As in a sample of the rows, `--limit`."""
    alone = Item("x", [choice("x-bad", False, 0.5), choice("x-worse", False, 0.1)], {})
    assert alone.bad == pytest.approx(0.5)
    assert alone.good is alone.difference is None


def test_expected_words_are_compared_as_the_tokenizer_asks() -> None:
    words = {"words": ("Tree", "bird"), "word_log_probs": (-1.0, -2.0), "expected": ("tree",)}
    blind, exact = choice("x", True, 0.1, **words, cased=False), choice("x", True, 0.1, **words)
    assert [is_expected for _, _, is_expected in blind.top] == [True, False]
    assert (blind.place, exact.place) == (1, None)
    assert blind.top[1][1] == pytest.approx(math.exp(-2))
    unknown = choice("x", True, None, words=("a", "b"))
    assert [entry[:2] for entry in unknown.top] == [("a", None), ("b", None)]


def test_every_contrast_is_an_item_and_agrees_with_the_measures(runs: dict[str, Run]) -> None:
    run = runs["weak"]
    for task in ("cprag102", "role88", "neg136"):
        found = items(run, task)
        assert {each.prefers_good for each in found} >= {True, False}
        assert all(each.prefers_good in (None, (each.difference or 0) > 0) for each in found)
        rows = run.stimuli[task].columns()
        assert [each.id for each in found] == list(dict.fromkeys(rows["contrast"]))
        assert sorted(c.id for each in found for c in each.choices) == sorted(rows["id"])
        assert all(each.choices[0].good for each in found)
        measures = run.results.tasks[task]["none"].measures
        for name, known in (
            ("sensitivity", [each.prefers_good for each in found]),
            ("sensitivity@0.01", [each.by_threshold for each in found]),
        ):
            told = [value for value in known if value is not None]
            assert measures[name].n == len(told)
            assert measures[name].value == pytest.approx(sum(told) / len(told))
        first = [c.place == 1 for each in found for c in each.choices if c.expected]
        assert measures["accuracy@1"].value == pytest.approx(sum(first) / len(first))


def test_a_threshold_of_many_digits_has_its_verdicts(tmp_path: Path, demo_dir: Path) -> None:
    protocol = Protocol(tasks=("role88",), threshold=0.0123456789)
    run = load_run(make_run(tmp_path / "run", demo_dir, protocol))
    assert {each.by_threshold for each in items(run, "role88")} >= {True, False}


def test_perturbed_items_have_perturbed_contexts_and_their_own_anchors(
    runs: dict[str, Run],
) -> None:
    diagnostic = diagnostics.get("role88")
    plain, changed = items(runs["weak"], "role88"), items(runs["weak"], "role88", "obj")
    assert [each.id for each in plain] == [each.id for each in changed]
    assert all(" which one the " in c.context for each in changed for c in each.choices)
    assert not any(" which one the " in c.context for each in plain for c in each.choices)
    anchors = [each["anchor"] for each in listed([changed], diagnostic, "obj")]
    assert anchors == [f"obj:{each['anchor']}" for each in listed([plain], diagnostic)]


def test_scores_of_a_shuffle_are_its_own(runs: dict[str, Run]) -> None:
    reported = runs["strong"].results.measure("cprag102", "shuf", "accuracy@1")
    scores = [run_scores(runs["strong"], "cprag102", "shuf", run) for run in (0, 1, 2)]
    means = [float(each["accuracy@1"].values.mean()) for each in scores]
    assert reported is not None
    assert reported.value == pytest.approx(sum(means) / 3)


def test_of_too_many_the_worst_and_the_best_of_each_template_are_listed() -> None:
    few = [item(str(i), 0.5, 0.1) for i in range(MAX_LISTED)]
    assert representative(few) == few
    many = [
        item(f"{template}-{i}", 0.5, i / 1000, template=template)
        for template in ("first", "second")
        for i in range(MAX_LISTED)
    ]
    names = {each.id for each in representative(many)}
    assert len(names) == 2 * 12
    assert {"first-0", f"first-{MAX_LISTED - 1}", "second-0", f"second-{MAX_LISTED - 1}"} <= names


def test_an_item_lists_contexts_once_with_their_words(runs: dict[str, Run]) -> None:
    several = [items(runs[name], "cprag102") for name in ("strong", "weak")]
    (first, *_) = listed(several, diagnostics.get("cprag102"))
    (rows,) = first["contexts"]  # the three completions share a context
    assert [row[0].good for row in rows] == [True, False, False]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert list(rows[0][0].expected) == [rows[0][0].target]
    assert len(first["verdicts"]) == 2
    assert first["place"] is not None
    (pair, *_) = listed([items(runs["weak"], "role88")], diagnostics.get("role88"))
    assert len(pair["contexts"]) == 2  # one verb in two contexts


def test_chosen_items_may_be_rows_or_contrasts(runs: dict[str, Run]) -> None:
    rows = runs["strong"].stimuli["role88"].columns()
    contrast, row = rows["contrast"][0], rows["id"][2]
    chosen = choose([runs["strong"], runs["weak"]], [row, contrast])
    pair = sorted(range(2), key=lambda i: rows["condition"][i])  # appropriate first: table 10
    assert [choice.context for choice, _ in chosen] == [rows["context"][i] for i in (2, *pair)]
    assert [*chosen[0][1]] == ["org/strong", "org/weak"]
    assert all(len(row.top) == 5 for _, answers in chosen for row in answers.values() if row)


def test_unknown_items_are_refused_with_near_ones(runs: dict[str, Run]) -> None:
    name = runs["strong"].stimuli["role88"].columns()["contrast"][0]
    with pytest.raises(BadInput, match=f"no item '{name}x' .did you mean '{name}"):
        choose([runs["strong"]], [f"{name}x"])
    with pytest.raises(BadInput, match="its ids are in"):
        choose([runs["strong"]], ["zzz"])
