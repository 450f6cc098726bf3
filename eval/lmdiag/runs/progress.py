"""The progress of a run on standard error: a bar on a terminal, two lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from lmdiag.text import visible


class _Speed(ProgressColumn):
    """E.g. `41.2 contexts/s`, over the last 30 s: older batches were longer."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} {self._unit}/s" if task.speed else self._unit)


@contextmanager
def show_progress(
    total: int,
    done: int = 0,
    label: str | None = "",
    *,
    unit: str = "contexts",
    console: Console | None = None,
) -> Iterator[Callable[[int], None]]:
    """Shows a bar on a terminal; elsewhere (a log, a batch job) one line at the start and the end.

    Args:
        total: contexts of the whole run, over all processes.
        done: contexts that an earlier, interrupted run had saved.
        label: printed in front, e.g. the name of the model; None to print nothing at all.
        unit: what is counted, "contexts" or "sentences".
        console: where to print; standard error by default.

    Yields:
        a function that takes the number of contexts that are saved now.
    """
    console = console or Console(stderr=True)
    if label is None or console.is_terminal:
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            _Speed(unit), TimeRemainingColumn(),
        )  # fmt: skip
        bar = Progress(*columns, console=console, disable=label is None, speed_estimate_period=30)
        task = bar.add_task(visible(label or ""), total=total, completed=done)
        with bar:
            yield lambda now: bar.update(task, completed=now)
        return
    started, reached = time.monotonic(), done
    prefix = f"{visible(label)}: " if label else ""

    def log(text: str) -> None:
        console.print(prefix + text, markup=False, highlight=False, soft_wrap=True)

    def update(now: int) -> None:
        nonlocal reached
        reached = now

    log(f"{total} {unit}" + (f", {done} of them saved before" if done else ""))
    try:
        yield update
    finally:
        seconds, asked = time.monotonic() - started, reached - done
        speed = f", {asked / seconds:.1f} {unit}/s" if asked and seconds else ""
        stopped = "" if reached >= total else f", stopped at {reached} of {total}"
        log(f"asked {asked} {unit} in {timedelta(seconds=round(seconds))}{speed}{stopped}")
