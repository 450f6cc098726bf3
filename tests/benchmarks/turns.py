"""Contenders that take turns, and the table of what they took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, cast

SCRIPT = Path(__file__).with_name("contenders.py")


@dataclass
class Contender:
    """A process that does the whole work once when it is told to.

    Attributes:
        name: see `contenders.prepare`.
        absent: why it does not take part; None where it does.
        seconds: what each round took.
        memory: the most it ever held, MiB.
    """

    name: str
    command: Sequence[str]
    absent: str | None = None
    seconds: list[float] = field(default_factory=list)
    memory: float = 0.0

    def __enter__(self) -> Contender:
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        answer = self._answer()
        self.absent = answer.get("absent") if answer else "it ended before it was ready"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.communicate()

    def work(self, *, counts: bool) -> None:
        """Has it do the whole work once."""
        if self.absent is not None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
            answer = self._answer()
        except BrokenPipeError:
            answer = {}
        if not answer:
            self.absent = f"it ended with exit code {self._process.wait()}"
        elif counts:
            self.seconds.append(answer["seconds"])
            self.memory = answer["memory"]

    def _answer(self) -> dict[str, Any]:
        """Returns the next line of JSON; other lines are a library's chatter."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return cast("dict[str, Any]", json.loads(line))
        return {}


def take_turns(
    names: Sequence[str],
    model: Path,
    rows: Path,
    data: Path,
    *,
    threads: int,
    rounds: int,
    pythons: Mapping[str, str],
) -> list[Contender]:
    """Runs all contenders in turn, first once for warmth, then `rounds` times.

    Args:
        pythons: contender -> the interpreter it runs in, where that is not this one.
    """
    found = []
    for name in names:
        arguments = [str(SCRIPT), name, str(model), str(rows), str(data), str(threads)]
        found.append(Contender(name, [pythons.get(name, sys.executable), *arguments]))
    with ExitStack() as stack:
        for contender in found:
            stack.enter_context(contender)
        for number in range(rounds + 1):
            for contender in found:
                contender.work(counts=number > 0)
    return found


def show(found: Sequence[Contender], n_rows: int, base: str) -> None:
    """Prints rows per second, the ratio to the base, and memory; ratios are within a round."""
    floor = next(contender.seconds for contender in found if contender.name == base)
    print(f"{'':>16} {'rows/s':>7} {'time / ' + base:>16} {'(least-most)':>14} {'MiB':>6}")
    for contender in found:
        if contender.absent is not None or not floor:
            print(f"{contender.name:>16} {contender.absent}")
            continue
        ratios = [mine / its for mine, its in zip(contender.seconds, floor, strict=True)]
        spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
        rate = n_rows / median(contender.seconds)
        print(
            f"{contender.name:>16} {rate:7.1f} {median(ratios):16.2f} {spread:>14} "
            f"{contender.memory:6.0f}",
            flush=True,
        )
