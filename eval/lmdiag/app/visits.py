"""What one window of the page has: its folder, its table, and its run in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import lmdiag
from lmdiag.app.jobs import Job, chosen_options, saved_file
from lmdiag.text import names_options
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.api.checking import CheckedColumn, TableCheck

_WAIT = 0.3  # seconds between two looks at a run


class Stopped(Exception):
    """The person stopped the run; the same run goes on where it was."""


@contextmanager
def options_as_typed() -> Iterator[None]:
    """Lets messages name options as they are typed, as those of commands do."""
    outside = names_options.set(True)
    try:
        yield
    finally:
        names_options.reset(outside)


@dataclass
class Visit:
    """What one window of the page has.

    Attributes:
        folder: of its files, which is removed when the window is closed.
        found: how its table is read; None without a table.
        response: column of the response of a table of responses or words.
        stopped: set to end the run.
        running: taken by the run, of which there is one at a time.
    """

    folder: Path
    found: TableCheck | None = None
    response: str = ""
    stopped: Event = field(default_factory=Event)
    running: Lock = field(default_factory=Lock)

    def check(self, file: Path, **options: Any) -> None:
        """Reads a table."""
        with options_as_typed():
            self.found = lmdiag.check(file, **options)
        self.response = self.found.response

    def check_again(self, options: Mapping[str, Any]) -> None:
        """Reads the table with other options."""
        if self.found:
            response = self.response
            self.check(Path(self.found.file), **options)
            self.response = response or self.response

    def choose(self, names: list[str], use: str) -> None:
        """Reads the table with another use of some columns.

        Where lmdiag would find a column to be what it was, nothing changes, and a line says so.
        """
        if self.found is None:
            return
        before = self.found
        options = chosen_options(before, dict.fromkeys(names, use))
        if use == "response":
            self.response = names[0]
        elif self.response in names:
            self.response = ""
        self.check_again(options)
        uses = {column.name: column.use for column in before.columns}
        again = {column.name for column in self.found.columns if column.use == uses[column.name]}
        if use == "not used" and uses[names[0]] != use and again & {*names}:
            line = f"there is no other {uses[names[0]]}: choose another column for it first"
            columns = [
                replace(column, problems=(*column.problems, line))
                if column.name == names[0]
                else column
                for column in before.columns
            ]
            self.found = replace(before, columns=tuple(columns))

    def columns(self) -> list[CheckedColumn]:
        """Returns the columns of the table, with the response that is chosen."""
        if self.found is None:
            return []
        columns = [column for column in self.found.columns if not column.is_made]
        if self.found.command == "cloze" or not self.response:
            return columns
        return [
            replace(column, use="response")
            if column.name == self.response
            else replace(column, use="not used")
            if column.use == "response"
            else column
            for column in columns
        ]

    def message(self, problem: BadInput) -> str:
        """Returns the message of an error, and adds it to what is wrong with the table."""
        with options_as_typed():
            line = self.plain(str(problem))
        if self.found and line not in self.found.warnings:
            self.found = replace(self.found, warnings=(*self.found.warnings, line))
        return line

    def plain(self, message: str) -> str:
        """Returns a message without the path of the folder."""
        return message.replace(f"{self.folder}/", "")


class JobThread:
    """A job in a thread of its own.

    Attributes:
        result, page: what it returned, and its page, after the end of `steps`.
    """

    def __init__(self, job: Job, visit: Visit) -> None:
        self.result: Any = None
        self.page = visit.folder / "result.html"
        self._job = job
        self._visit = visit
        self._steps: SimpleQueue[tuple[str, float | None]] = SimpleQueue()
        self._error: BaseException | None = None
        self._model = 0
        self._done = 0.0

    def steps(self) -> Iterator[tuple[str, float | None]]:
        """Yields what is done, and the share of it, until the job ends.

        Raises what the job raised, and `Stopped`. The job is stopped where the steps are not read
        to their end.
        """
        thread = Thread(target=self._work, daemon=True)
        thread.start()
        names = ", ".join(self._job.models)
        step: tuple[str, float | None] = (
            f"Loading {names}" if names else "Reading the table",
            None,
        )
        try:
            yield step
            while thread.is_alive():
                thread.join(_WAIT)
                latest = self._latest(step)
                if latest != step:
                    step = latest
                    yield step
        finally:
            if thread.is_alive():
                self._visit.stopped.set()
                thread.join()
        if self._error:
            raise self._error

    def _latest(self, step: tuple[str, float | None]) -> tuple[str, float | None]:
        try:
            while True:
                step = self._steps.get_nowait()
        except Empty:
            return step

    def _work(self) -> None:
        try:
            with options_as_typed():
                self.result = self._job.call(self._visit.folder, self._tell)
                self._steps.put(("Writing the page", None))
                saved_file(self.result, "page", self._visit.folder)
        except BaseException as error:
            self._error = error

    def _tell(self, done: float, total: int) -> None:
        """Is told of progress, of one model after the other."""
        if self._visit.stopped.is_set():
            raise Stopped
        if done < self._done:
            self._model += 1
        self._done = done
        name = self._job.models[min(self._model, len(self._job.models) - 1)]
        share = done / total if total else 1.0
        self._steps.put((f"{name}: {done:,.0f} of {total:,}", share))
