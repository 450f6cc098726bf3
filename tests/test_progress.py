"""The bar of a run: what it counts, and what it prints where."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lmdiag.runs.progress import Pace, clock_time


class Clock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def console(terminal: bool, width: int = 100) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=width), stream


def test_saved_contexts_count_as_done_but_not_towards_the_rate() -> None:
    clock = Clock()
    pace = Pace(total=100, done=60, clock=clock)
    clock.now += 2
    pace.update(70)
    # 10 contexts in 2 s are 5 a second, not 70 in 2; the 30 that remain take 6 s
    assert pace.asked == 10
    assert pace.rate == pytest.approx(5)
    assert pace.left == pytest.approx(6)


def test_rate_is_that_of_the_last_half_minute() -> None:
    clock = Clock()
    pace = Pace(total=1000, done=0, clock=clock)
    for _ in range(60):  # one context a second for a minute ...
        clock.now += 1
        pace.update(pace.done + 1)
    for _ in range(60):  # ... then ten a second for another
        clock.now += 1
        pace.update(pace.done + 10)
    assert pace.rate == pytest.approx(10)
    assert pace.left == pytest.approx((1000 - 660) / 10)


def test_one_slow_batch_still_has_a_rate() -> None:
    clock = Clock()
    pace = Pace(total=64, done=0, clock=clock)
    clock.now += 300
    pace.update(32)
    assert pace.rate == pytest.approx(32 / 300)


def test_nothing_asked_yet_has_no_rate() -> None:
    pace = Pace(total=10, done=5, clock=Clock())
    assert pace.rate is None
    assert pace.left is None


def test_log_gets_one_line_at_the_start_and_one_at_the_end() -> None:
    clock, (log, stream) = Clock(), console(terminal=False, width=20)
    with Progress(198, done=60, label="org/[model]", console=log, clock=clock) as progress:
        for done in range(61, 199):
            clock.now += 0.5
            progress.update(done)
    assert stream.getvalue().splitlines() == [
        "org/[model]: 198 contexts, 60 of them saved before",
        "org/[model]: asked 138 contexts in 1:09, 2.0 contexts/s",
    ]


def test_a_run_that_stops_says_where() -> None:
    clock, (log, stream) = Clock(), console(terminal=False)

    def interrupted() -> None:
        with Progress(10, console=log, clock=clock) as progress:
            clock.now += 1
            progress.update(4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().splitlines()[-1].endswith("stopped at 4 of 10")


def test_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    clock, (terminal, stream) = Clock(), console(terminal=True, width=80)
    with Progress(20, label="demo:masked", console=terminal, clock=clock) as progress:
        clock.now += 1
        progress.update(5)
        assert progress._bar is not None
        progress._bar.refresh()
    shown = stream.getvalue()
    assert "demo:masked" in shown
    assert "5/20" in shown
    assert "5.0 contexts/s, 0:03 left" in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_prints_nothing(terminal: bool) -> None:
    where, stream = console(terminal)
    with Progress(3, quiet=True, console=where) as progress:
        progress.update(3)
    assert stream.getvalue() == ""


def test_clock_time() -> None:
    assert [clock_time(s) for s in (0, 59.6, 61, 3600, 36_125)] == [
        "0:00", "1:00", "1:01", "1:00:00", "10:02:05",
    ]  # fmt: skip
