"""The progress of a run: what is printed where."""

from __future__ import annotations

import io
import re
from contextlib import suppress

import pytest
from rich.console import Console

from lmdiag.runs.asking import show_progress


def test_a_log_gets_one_line_at_the_start_and_one_at_the_end() -> None:
    stream = io.StringIO()
    log = Console(file=stream, force_terminal=False, width=20)
    with show_progress(198, 60, "org/[model]", console=log) as show:
        show(198)
    with suppress(KeyboardInterrupt), show_progress(10, console=log) as show:
        show(4)
        raise KeyboardInterrupt
    assert re.fullmatch(
        r"org/\[model\]: 198 contexts, 60 of them saved before\n"
        r"org/\[model\]: asked 138 contexts in \d:\d\d:\d\d, \S+ contexts/s\n"
        r"10 contexts\n"
        r"asked 4 contexts in \d:\d\d:\d\d, \S+ contexts/s, stopped at 4 of 10\n",
        stream.getvalue(),
    )


def test_a_terminal_gets_a_bar() -> None:
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=80)
    with show_progress(20, 2, "demo:[masked]", unit="sentences", console=terminal) as show:
        show(5)
        show(8)
    for words in ("demo:[masked]", "8/20", "sentences/s"):
        assert words in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_without_a_label_nothing_is_printed(terminal: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal)
    with show_progress(3, label=None, console=console) as show:
        show(3)
    assert stream.getvalue() == ""
