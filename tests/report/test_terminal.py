"""What stands on the terminal, at 100 columns and at 80."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lmdiag.report.formats.terminal import print_measures, print_results

from .conftest import SIGNATURE, Json, measure, results, setting


def printed(content: Json, width: int) -> list[str]:
    stream = io.StringIO()
    print_results(content, Console(file=stream, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def words(lines: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def test_a_run_at_a_hundred_columns(cprag102: Json) -> None:
    lines = words(printed(results({"cprag102": cprag102}), 100))
    assert "org/model" in lines
    assert "masked · 110M parameters · float32 · uncased · commit 86b5e0934494" in lines
    assert "CPRAG-102: commonsense and pragmatic inference" in lines
    assert "accuracy@1 34 23.5 [13.5, 33.5] 11.8 ± 3.1" in lines
    assert "high constraint 17 29.4 [19.4, 39.4]" in lines
    assert "unscorable: 1 row (mascara)" in lines
    assert SIGNATURE in lines


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_wider_than_the_terminal_or_cut_off(
    width: int, cprag102: Json, role88: Json, neg136: Json
) -> None:
    cprag102["trunc"] = cprag102["shuf_trunc"] = cprag102["none"]
    tasks = {"cprag102": cprag102, "role88": role88, "neg136": neg136}
    lines = [line for line in printed(results(tasks), width) if line != SIGNATURE]
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]


def test_intervals_go_below_where_they_do_not_fit_beside(cprag102: Json) -> None:
    cprag102["trunc"] = cprag102["shuf_trunc"] = cprag102["none"]
    lines = words(printed(results({"cprag102": cprag102}), 80))
    at = lines.index("accuracy@1 34 23.5 11.8 ± 3.1 23.5 23.5")
    assert lines[at + 1] == "[13.5, 33.5] [13.5, 33.5] [13.5, 33.5]"


def test_columns_that_do_not_fit_at_all_follow_below(role88: Json) -> None:
    figure = {"value": 0.1, "n": 88, "ci_low": -0.091, "ci_high": 0.291, "by": {}}
    for name in ("none", "obj", "sub", "both"):
        role88[name] = setting({"spearman": figure})
    lines = words(printed(results({"role88": role88}), 60))
    assert [line for line in lines if line in ("n Orig -Obj", "n -Sub -Both")] == [
        "n Orig -Obj",
        "n -Sub -Both",
    ]
    assert len([line for line in lines if line.startswith("Spearman, log p")]) == 2


def test_names_of_strangers_are_no_markup(cprag102: Json) -> None:
    cprag102["none"]["unscorable"] = [{"id": "x", "word": "[bold red]w[/nonsense]"}]
    lines = printed(results({"cprag102": cprag102}, model="[link=x]evil[/]"), 100)
    assert "[link=x]evil[/]" in lines
    assert "unscorable: 1 row ([bold red]w[/nonsense])" in lines


def test_scored_predictions_print_without_a_model() -> None:
    stream = io.StringIO()
    print_measures(
        "tense",
        {"sensitivity": measure(3, 4)},
        Console(file=stream, width=80),
        signature=SIGNATURE,
        unscorable=[{"id": "tense-1", "word": "zzz"}],
    )
    lines = words(stream.getvalue().splitlines())
    assert "sensitivity 4 75.0 [65.0, 85.0]" in lines
    assert lines[-2:] == ["unscorable: 1 row (zzz)", SIGNATURE]


def test_a_folder_is_known_by_twelve_digits_of_its_checksum(cprag102: Json) -> None:
    document = results({"cprag102": cprag102})
    document["model"]["commit"] = "sha256:0123456789abcdef"
    assert any("commit 0123456789ab" in line for line in printed(document, 120))
