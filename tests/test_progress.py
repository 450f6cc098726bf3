"""The progress of a run: what it counts, and what it prints where."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from rich.console import Console

from lmdiag.runs.progress import Pace, clock_time, show_progress


class Clock:
    """A clock that only moves when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("total", "done", "updates", "rate"),
    [
        # 10 contexts in 2 s are 5 a second, not 70 in 2: saved contexts do not count
        (100, 60, [(2, 70)], 5.0),
        # one context a second for a minute, then ten a second for another: the last 30 s count
        (1000, 0, [(1, n) for n in range(1, 61)] + [(1, 60 + 10 * n) for n in range(1, 61)], 10.0),
        (64, 0, [(300, 32)], 32 / 300),
        (10, 5, [], None),
    ],
    ids=["saved before", "last half minute", "one slow batch", "nothing asked"],
)
def test_rate_and_time_left(
    total: int, done: int, updates: list[tuple[float, int]], rate: float | None
) -> None:
    clock = Clock()
    pace = Pace(total, done, clock)
    for seconds, now_done in updates:
        clock.now += seconds
        pace.update(now_done)
    assert pace.asked == pace.done - done
    assert pace.rate == (None if rate is None else pytest.approx(rate))
    left = None if rate is None else pytest.approx((total - pace.done) / rate)
    assert pace.left == left


def test_a_log_gets_one_line_at_the_start_and_one_at_the_end() -> None:
    clock, stream = Clock(), io.StringIO()
    log = Console(file=stream, force_terminal=False, width=20)
    with show_progress(198, 60, "org/[model]", console=log, clock=clock) as show:
        for done in range(61, 199):
            clock.now += 0.5
            show(done)
    with suppress(KeyboardInterrupt), show_progress(10, console=log, clock=clock) as show:
        clock.now += 1
        show(4)
        raise KeyboardInterrupt
    assert stream.getvalue().splitlines() == [
        "org/[model]: 198 contexts, 60 of them saved before",
        "org/[model]: asked 138 contexts in 1:09, 2.0 contexts/s",
        "10 contexts",
        "asked 4 contexts in 0:01, 4.0 contexts/s, stopped at 4 of 10",
    ]


def test_a_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    clock, stream = Clock(), io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=80)
    with show_progress(20, label="demo:masked", console=terminal, clock=clock) as show:
        clock.now += 1
        show(5)
    for words in ("demo:masked", "5/20", "5.0 contexts/s, 0:03 left"):
        assert words in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_without_a_label_nothing_is_printed(terminal: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal)
    with show_progress(3, label=None, console=console) as show:
        show(3)
    assert stream.getvalue() == ""


def test_clock_time() -> None:
    shown = {0: "0:00", 59.6: "1:00", 61: "1:01", 3600: "1:00:00", 36_125: "10:02:05"}
    assert {seconds: clock_time(seconds) for seconds in shown} == shown
