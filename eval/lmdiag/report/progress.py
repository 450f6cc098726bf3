"""One bar for a run: contexts asked, contexts per second and time left, on standard error."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from lmdiag.hub.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

WINDOW = 30.0
"""Seconds over which the rate is taken: batches are sorted by length, so an older rate misleads."""


class Pace:
    """How fast contexts are being asked now.

    Contexts that an earlier run had saved count as done, but never towards the rate.

    Attributes:
        total: contexts of the whole run.
        done: contexts whose answers are saved, by this run or an earlier one.
    """

    def __init__(self, total: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = done
        self._clock = clock
        self._first = (clock(), done)
        self._recent = deque([self._first])

    def update(self, done: int) -> None:
        """Records that `done` contexts of all are saved now."""
        now = self._clock()
        self.done = done
        self._recent.append((now, done))
        while len(self._recent) > 2 and now - self._recent[1][0] >= WINDOW:
            self._recent.popleft()

    @property
    def asked(self) -> int:
        """Contexts that this run asked itself."""
        return self.done - self._first[1]

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._first[0]

    @property
    def rate(self) -> float | None:
        """Contexts per second over the last `WINDOW` seconds; None before anything was asked."""
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return (after - before) / (end - start) if end > start and after > before else None

    @property
    def left(self) -> float | None:
        """Seconds that the remaining contexts take at the present rate; None where unknown."""
        rate = self.rate
        return None if rate is None else (self.total - self.done) / rate


class Progress:
    """The progress of a run, as a context manager.

    On a terminal it is a bar. Elsewhere (a log file, a batch job) it is one line at the start and
    one at the end. With `quiet`, or on any process but the first, it is nothing.

    Args:
        total: contexts of the whole run, over all processes.
        done: those whose answers an earlier, interrupted run had saved.
        label: what stands before the bar, e.g. the model's name.
        quiet: print nothing at all.
        console: where to print; standard error by default.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        total: int,
        done: int = 0,
        label: str = "",
        quiet: bool = False,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = visible(label)
        self.quiet = quiet
        self.pace = Pace(total, done, clock)
        self._clock = clock
        self._console = console
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        self.pace = Pace(self.pace.total, self.pace.done, self._clock)
        if self.quiet:
            self._console = None
            return self
        self._console = self._console or _standard_error()
        if self._console.is_terminal:
            self._bar = _bar(self._console)
            self._bar.add_task(
                self.label, total=self.pace.total, completed=self.pace.done, pace=_shown(self.pace)
            )
            self._bar.start()
        else:
            self._line(_opening(self.pace))
        return self

    def update(self, done_total: int) -> None:
        """Says that `done_total` contexts are saved, by earlier runs and all processes."""
        self.pace.update(done_total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done_total, pace=_shown(self.pace))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        else:
            self._line(_closing(self.pace))

    def _line(self, text: str) -> None:
        """Prints one line, without wrapping or markup: it goes into logs."""
        if self._console is not None:
            prefix = f"{self.label}: " if self.label else ""
            self._console.print(prefix + text, markup=False, highlight=False, soft_wrap=True)


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _bar(console: Console) -> Bar:
    """An empty bar: label, bar, count, rate and time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    return Bar(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[pace]}", markup=False, table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
    )


def _shown(pace: Pace) -> str:
    """E.g. `41.2 contexts/s, 1:05 left`, and at the end what the whole took."""
    if pace.done >= pace.total:
        return f"in {clock_time(pace.seconds)}" if pace.asked else "all saved before"
    if pace.rate is None or pace.left is None:
        return "contexts, starting"
    return f"{pace.rate:.1f} contexts/s, {clock_time(pace.left)} left"


def _opening(pace: Pace) -> str:
    saved = f", {pace.done} of them saved before" if pace.done else ""
    return f"{pace.total} contexts{saved}"


def _closing(pace: Pace) -> str:
    speed = f", {pace.asked / pace.seconds:.1f} contexts/s" if pace.asked and pace.seconds else ""
    stopped = "" if pace.done >= pace.total else f", stopped at {pace.done} of {pace.total}"
    return f"asked {pace.asked} contexts in {clock_time(pace.seconds)}{speed}{stopped}"


def clock_time(seconds: float) -> str:
    """Minutes and seconds as `m:ss`, from one hour on `h:mm:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
