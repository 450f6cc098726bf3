"""The progress of a run on standard error: a bar on a terminal, two lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lmdiag.text import visible


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
    started, reached, rate = time.monotonic(), done, ""
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    has_bar = label is not None and console.is_terminal
    bar = Progress(*columns, console=console, disable=not has_bar)
    task = bar.add_task(visible(label or ""), total=total, completed=done, rate=unit)

    def update(now: int) -> None:
        nonlocal reached, rate
        reached = now
        rate = f"{(now - done) / max(time.monotonic() - started, 1e-9):.1f} {unit}/s"
        bar.update(task, completed=now, rate=rate)

    def log(text: str) -> None:
        if label is not None and not has_bar:
            text = f"{visible(label)}: {text}" if label else text
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    log(f"{total} {unit}" + (f", {done} of them saved before" if done else ""))
    try:
        with bar:
            yield update
    finally:
        took = timedelta(seconds=round(time.monotonic() - started))
        speed = f", {rate}" if reached > done else ""
        stopped = "" if reached >= total else f", stopped at {reached} of {total}"
        log(f"asked {reached - done} {unit} in {took}{speed}{stopped}")
