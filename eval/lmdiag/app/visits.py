"""What one window of the page has: its folder, how its table is read, and its run in a thread."""

from __future__ import annotations

import re
import shutil
import tempfile
import traceback
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import BoundedSemaphore, Event, RLock, Thread
from typing import TYPE_CHECKING, Any

import lmdiag
from lmdiag.app import menus
from lmdiag.app.calls import Call, function_of
from lmdiag.files.reading import resource_path
from lmdiag.text import listing, options_as_typed
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.api.table_check import CheckedColumn, TableCheck
    from lmdiag.presentable import Presentable

MOST_UNPACKED = 200 * 2**20
"""Bytes of all parts of an Excel file, which are compressed in it."""

TURNS = BoundedSemaphore(2)
"""Runs of all windows at once; further ones wait."""


@dataclass
class Visit:
    """What one window of the page has.

    Attributes:
        folder: of its files, which is removed when the window is closed.
        found: how its table is read; None without a table.
        response: column of the response of a table of responses or words.
        function: what is to be done with its table, one of `lmdiag.app.menus.PURPOSES`; "" for
            what the table is for.
        version: is another one after each reading.
        job: its run; None before the first.
        lock: held while a table is read: a run that is asked for meanwhile has the new reading.
    """

    folder: Path
    found: TableCheck | None = None
    response: str = ""
    function: str = ""
    version: int = 0
    job: Job | None = None
    lock: RLock = field(default_factory=RLock)

    # ---- reading ---------------------------------------------------------------------------------

    def take(self, file: Path | None) -> None:
        """Reads another table, or forgets the one that was read."""
        with self.lock:
            self.function = ""
            problem = _size_problem(file) if file else ""
            if file and not problem:
                self.check(file)
                return
            self.stop()
            no_rows = lmdiag.check({})
            self.found = replace(no_rows, error=problem) if file else None
            self.version += 1

    def check(self, file: Path, **options: Any) -> None:
        """Reads a table. A run of what was read before is stopped.

        The function is kept, unless another command reads the table now.
        """
        with self.lock, options_as_typed():
            self.stop()
            command = self.found.command if self.found else ""
            self.found = lmdiag.check(file, **options)
            if not self.function or self.found.command != command:
                self.function = function_of(self.found)
            self.response = self.found.response
            self.version += 1

    def check_again(self, options: Mapping[str, Any]) -> None:
        """Reads the table with other options."""
        with self.lock:
            if self.found:
                response = self.response
                self.check(Path(self.found.file), **options)
                self.response = response or self.response

    def choose(self, names: list[str], use: str) -> bool:
        """Reads the table with another use of some columns; False where they have this use.

        Where lmdiag would find a column to be what it was, nothing changes, and a line says so.
        """
        with self.lock:
            before = self.found
            if before is None or names[0] not in {column.name for column in before.columns}:
                return False  # a menu of the table before
            if {column.use for column in self.columns() if column.name in names} == {use}:
                return False
            if use == "response":
                self.response = names[0]
            elif self.response in names:
                self.response = ""
            self.check_again(before.with_uses(dict.fromkeys(names, use)))
            uses = [(x.name, x.use) for x in before.columns if x.name in names]
            name, use_before = uses[0]
            is_kept = {*uses} & {(x.name, x.use) for x in self.columns()}
            if use == "not used" and use_before in menus.USES and is_kept:
                line = f"there is no other {use_before}: choose another column for it first"
                self.found = _with_problem(before, name, line)
            return True

    def columns(self) -> list[CheckedColumn]:
        """Returns the columns of the table, with the response that is chosen."""
        if self.found is None:
            return []
        columns = [column for column in self.found.columns if not column.is_made]
        if self.found.command == "cloze" or not self.response:
            return columns
        return [_with_response(column, self.response) for column in columns]

    def groups(self) -> list[list[CheckedColumn]]:
        """Returns the columns, regions that follow each other together."""
        groups: list[list[CheckedColumn]] = []
        for column in self.columns():
            if groups and column.use == groups[-1][0].use == "region":
                groups[-1].append(column)
            else:
                groups.append([column])
        return groups

    def plain(self, message: str) -> str:
        """Returns a message without the path of the folder."""
        return message.replace(f"{self.folder}/", "")

    # ---- running ---------------------------------------------------------------------------------

    def start(self, call: Call) -> Job:
        """Returns the run that is going on, or a new one."""
        with self.lock:
            if self.job is None or not self.job.is_alive():
                self.job = Job(call, self.folder)
            return self.job

    def stop(self) -> None:
        """Stops the run, as soon as the model has answered a batch; the same run goes on there."""
        if self.job:
            self.job.stopped.set()

    def leave(self) -> None:
        """Stops the run, and removes the files."""
        self.stop()
        if self.job:
            self.job.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add_problem(self, line: str) -> None:
        """Adds what a run says about the table to its warnings, if something can be done."""
        if self.found and self.found.remedies(line) and line not in self.found.warnings:
            self.found = replace(self.found, warnings=(*self.found.warnings, line))
            self.version += 1


def _size_problem(file: Path) -> str:
    """Says that an Excel file would take too much memory; "" for others."""
    if not zipfile.is_zipfile(file):
        return ""
    with zipfile.ZipFile(file) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size <= MOST_UNPACKED:
        return ""
    most = f"at most {MOST_UNPACKED >> 20} MB are read here"
    return f"{file.name} has {size >> 20:,} MB when it is unpacked, {most}: give fewer rows"


def _with_problem(found: TableCheck, name: str, line: str) -> TableCheck:
    """The record, of which one column has a further problem."""
    columns = [
        replace(column, problems=(*column.problems, line)) if column.name == name else column
        for column in found.columns
    ]
    return replace(found, columns=tuple(columns))


def _with_response(column: CheckedColumn, response: str) -> CheckedColumn:
    """A column, which is the response only if it has its name."""
    if column.name == response:
        return replace(column, use="response")
    return replace(column, use="not used") if column.use == "response" else column


# ---- runs ----------------------------------------------------------------------------------------


class Stopped(Exception):
    """The person stopped the run."""


class Job(Thread):
    """A call in a thread, which begins at once.

    Attributes:
        call: what is called.
        text: what is being done, or that the run was stopped.
        share: how much of it is done; None if that is not known.
        problem: why there is no result; "" if nothing is wrong.
        files: download of `lmdiag.app.menus.DOWNLOADS` -> its file, as soon as it is written; the
            page is the first.
        is_shown: whether the window has the page.
        stopped: set to end the run.
    """

    def __init__(self, call: Call, folder: Path) -> None:
        super().__init__(daemon=True)
        self.call = call
        self.text = f"Loading {listing(call.models)}" if call.models else "Reading the table"
        self.share: float | None = None
        self.problem = ""
        self.files: dict[str, Path] = {}
        self.is_shown = False
        self.stopped = Event()
        self._folder = folder
        self.start()

    def run(self) -> None:
        """Makes the call, and writes its result into files."""
        with options_as_typed():
            try:
                with self._turn():
                    result = self.call.make(self._folder, self._tell)
                self.text, self.share = "Writing the page", None
                for name, file in saved_files(result, self.call.data, self._folder):
                    self.files[name] = file
                    self.text = "Writing the files to download"
            except Stopped:
                self.text = "Stopped. Run goes on where it was."
            except BadInput as problem:
                self.problem = str(problem)
            except Exception as error:  # a fault of lmdiag, which the page survives
                traceback.print_exc()
                name = type(error).__name__
                self.problem = f"lmdiag failed ({name}); the log of the program has more"

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Waits until fewer runs than the most are going on."""
        text = self.text
        while not TURNS.acquire(timeout=0.3):
            self.text = "Waiting for other runs to end"
            if self.stopped.is_set():
                raise Stopped
        try:
            self.text = text
            yield
        finally:
            TURNS.release()

    def _tell(self, done: float, total: int) -> None:
        """Is told of progress, of one model after the other."""
        if self.stopped.is_set():
            raise Stopped
        self.share = done / total if total else 1.0
        self.text = f"Asking {listing(self.call.models)}: {done:,.0f} of {total:,}"


# ---- files ---------------------------------------------------------------------------------------


def example_file(name: str, folder: Path) -> Path:
    """Returns a copy of an example in a folder."""
    source, shown = menus.EXAMPLE_TABLES[name]
    return Path(shutil.copyfile(resource_path("cards", source), folder / shown))


def uploaded_file(path: str, folder: Path) -> Path:
    """Moves an uploaded file into a folder, under its own name with plain characters."""
    source = Path(path)
    stem = re.sub(r"[^\w ()+-]", "_", source.stem).strip(" -")[:80] or "table"
    return Path(shutil.move(source, folder / f"{stem}{source.suffix.lower()}"))


def saved_files(result: Presentable, data: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Writes a result in the formats of `lmdiag.app.menus.DOWNLOADS` that it has, one by one."""
    target = Path(tempfile.mkdtemp(prefix="result-", dir=folder))
    name = Path(data).stem
    for download, suffix in menus.DOWNLOADS.items():
        try:
            written = result.save(target / (f"{name}-result{suffix}" if suffix else "charts"))
        except BadInput:  # there are no charts, or Word needs python-docx
            continue
        if suffix:
            yield download, written[0]
        elif written:
            archive = shutil.make_archive(f"{target / name}-charts", "zip", target / "charts")
            yield download, Path(archive)
