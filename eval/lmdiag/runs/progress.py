"""The progress of a run on standard error: contexts asked, contexts per second, time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lmdiag.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_WINDOW = 30.0
"""Seconds over which the rate is taken. Batches are sorted by length, so older rates mislead."""


class Pace:
    """How fast contexts are being asked now.

    Contexts that an earlier run had saved count as done, but not towards the rate.

    Attributes:
        total: contexts of the whole run.
        done: contexts with saved answers, of this run or an earlier one.
    """

    def __init__(self, total: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = self._saved_before = done
        self._clock = clock
        self._started = clock()
        self._recent = deque([(self._started, done)])

    def update(self, done: int) -> None:
        """Records that `done` contexts in all are saved now."""
        now = self._clock()
        self.done = done
        self._recent.append((now, done))
        while len(self._recent) > 2 and now - self._recent[1][0] >= _WINDOW:
            self._recent.popleft()

    @property
    def asked(self) -> int:
        """Contexts that this run asked itself."""
        return self.done - self._saved_before

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started

    @property
    def rate(self) -> float | None:
        """Contexts per second over the last 30 s; None before anything was asked."""
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return (after - before) / (end - start) if end > start and after > before else None

    @property
    def left(self) -> float | None:
        """Seconds that the remaining contexts take at the present rate; None where unknown."""
        return (self.total - self.done) / self.rate if self.rate else None


@contextmanager
def show_progress(
    total: int,
    done: int = 0,
    label: str | None = "",
    *,
    unit: str = "contexts",
    console: Console | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int], None]]:
    """Shows a bar on a terminal; elsewhere (a log, a batch job) one line at the start and the end.

    Args:
        total: contexts of the whole run, over all processes.
        done: contexts that an earlier, interrupted run had saved.
        label: printed in front, e.g. the name of the model; None to print nothing at all.
        unit: what is counted, "contexts" or "sentences".
        console: where to print; standard error by default.
        clock: seconds, for tests.

    Yields:
        a function that takes the number of contexts that are saved now.
    """
    pace = Pace(total, done, clock)
    if label is None:
        yield pace.update
        return
    from rich.console import Console

    console = console or Console(stderr=True)
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(
                visible(label), total=total, completed=done, pace=_shown(pace, unit)
            )

            def update(done: int) -> None:
                pace.update(done)
                bar.update(task, completed=done, pace=_shown(pace, unit))

            yield update
    else:
        log = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        prefix = f"{visible(label)}: " if label else ""
        log(f"{prefix}{total} {unit}" + (f", {done} of them saved before" if done else ""))
        try:
            yield pace.update
        finally:
            log(prefix + _closing(pace, unit))


def _bar(console: Console) -> Progress:
    """Returns an empty bar: label, bar, count, rate and time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[pace]}", markup=False, table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
    )


def _shown(pace: Pace, unit: str) -> str:
    """E.g. `41.2 contexts/s, 1:05 left`; at the end the time of the whole run."""
    if pace.done >= pace.total:
        return f"in {clock_time(pace.seconds)}" if pace.asked else "all saved before"
    if pace.rate is None or pace.left is None:
        return f"{unit}, starting"
    return f"{pace.rate:.1f} {unit}/s, {clock_time(pace.left)} left"


def _closing(pace: Pace, unit: str) -> str:
    speed = f", {pace.asked / pace.seconds:.1f} {unit}/s" if pace.asked and pace.seconds else ""
    stopped = "" if pace.done >= pace.total else f", stopped at {pace.done} of {pace.total}"
    return f"asked {pace.asked} {unit} in {clock_time(pace.seconds)}{speed}{stopped}"


def clock_time(seconds: float) -> str:
    """Returns minutes and seconds as `m:ss`, from one hour on `h:mm:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
