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
from lmdiag.app.calls import Call, default_function
from lmdiag.files.reading import resource_path
from lmdiag.text import listing, options_as_typed
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.api.table_check import CheckedColumn, TableCheck
    from lmdiag.presentable import Presentable

MAX_UNPACKED_BYTES = 200 * 2**20
"""Most bytes of an Excel file after decompression, all its parts together."""

RUN_SLOTS = BoundedSemaphore(2)
"""Held by each run while it works: at most two runs of all windows at once, further ones wait."""

_LONGEST_FILE_NAME = 80
"""Characters of the name of an uploaded file that are kept, without its ending."""


@dataclass
class Visit:
    """What one window of the page has: its table, how it is read, and its run.

    Attributes:
        folder: the folder of its files, which is removed when the window is closed.
        table_check: how its table is read; None without a table.
        response: column of the response of a table of responses or words; "" for none.
        function: what is to be done with its table, one of `lmdiag.app.menus.FUNCTION_TEXTS`; ""
            for the function that fits the table.
        version: number that grows with each reading, so that the page knows when to draw again.
        job: its latest run; None before the first.
        lock: held while a table is read: a run that is started meanwhile uses the new reading.
    """

    folder: Path
    table_check: TableCheck | None = None
    response: str = ""
    function: str = ""
    version: int = 0
    job: Job | None = None
    lock: RLock = field(default_factory=RLock)

    # ---- reading ---------------------------------------------------------------------------------

    def replace_table(self, file: Path | None) -> None:
        """Reads the table in another file; None forgets the table that was read.

        A file that is too large is not read; its size is the error of `table_check`.
        """
        with self.lock:
            self.function = ""
            problem = _size_problem(file) if file else ""
            if file and not problem:
                self.read(file)
                return
            self.stop()
            no_rows = lmdiag.check({})  # a record without a table, for the problem of the file
            self.table_check = replace(no_rows, error=problem) if file else None
            self.version += 1

    def read(self, file: Path, **options: Any) -> None:
        """Reads a table, and stops a run that uses the reading before.

        The function is kept, unless another command reads the table now.

        Args:
            options: how the table is read, keywords of `lmdiag.check`.
        """
        with self.lock, options_as_typed():
            self.stop()
            command_before = self.table_check.command if self.table_check else ""
            self.table_check = lmdiag.check(file, **options)
            if not self.function or self.table_check.command != command_before:
                self.function = default_function(self.table_check)
            self.response = self.table_check.response
            self.version += 1

    def read_again(self, options: Mapping[str, Any]) -> None:
        """Reads the same table with other keywords of `lmdiag.check`; keeps the chosen response."""
        with self.lock:
            if self.table_check:
                chosen_response = self.response  # `read` sets the response that lmdiag finds
                self.read(Path(self.table_check.file), **options)
                self.response = chosen_response or self.response

    def change_use(self, names: list[str], use: str) -> bool:
        """Reads the table with another use of some columns, for example "item".

        A column that is set to "not used" may still be recognised by its values, as the only column
        that can have its use. Then the table stays as it was read before, and the column gets a
        problem that says so.

        Args:
            names: the columns whose use is changed: one column, or neighbouring regions.
            use: the new use, one of `lmdiag.app.menus.USES`, or "not used".

        Returns:
            whether the table was read again: False if the columns have this use already, or are not
            in the table.
        """
        with self.lock:
            before = self.table_check
            if before is None or names[0] not in {column.name for column in before.columns}:
                return False  # the menu was drawn for the table before
            if {column.use for column in self.columns() if column.name in names} == {use}:
                return False  # nothing is changed
            # the page has one response, which is not an option of how the table is read
            if use == "response":
                self.response = names[0]
            elif self.response in names:
                self.response = ""
            self.read_again(before.with_uses(dict.fromkeys(names, use)))
            # A column that is set to "not used" may have the same use as before in the new reading.
            # Then the reading before comes back, with a problem at the column.
            uses_before = [(x.name, x.use) for x in before.columns if x.name in names]
            uses_now = {(x.name, x.use) for x in self.columns()}
            has_use_of_before = any(name_and_use in uses_now for name_and_use in uses_before)
            name, use_before = uses_before[0]
            if use == "not used" and use_before in menus.USES and has_use_of_before:
                line = f"there is no other {use_before}: choose another column for it first"
                self.table_check = _with_problem(before, name, line)
            return True

    def columns(self) -> list[CheckedColumn]:
        """Returns the columns of the file, as the page shows them.

        The column that was chosen as the response is the only one with the use "response", also if
        lmdiag recognised another one.
        """
        if self.table_check is None:
            return []
        columns = [column for column in self.table_check.columns if not column.is_made]
        if self.table_check.command == "cloze" or not self.response:
            return columns
        return [_with_response(column, self.response) for column in columns]

    def column_groups(self) -> list[list[CheckedColumn]]:
        """Returns the columns, each in a list of its own; neighbouring regions share a list."""
        groups: list[list[CheckedColumn]] = []
        for column in self.columns():
            if groups and column.use == groups[-1][0].use == "region":
                groups[-1].append(column)
            else:
                groups.append([column])
        return groups

    def without_folder(self, message: str) -> str:
        """Returns a message in which files have no path, as the user knows them by their names."""
        return message.replace(f"{self.folder}/", "")

    # ---- running ---------------------------------------------------------------------------------

    def start(self, call: Call) -> Job:
        """Returns the run that is under way; if there is none, starts one that makes the call."""
        with self.lock:
            if self.job is None or not self.job.is_alive():
                self.job = Job(call, self.folder)
            return self.job

    def stop(self) -> None:
        """Stops the run after the batch that the model answers now.

        The answers so far are saved: the next run of the same call continues after them.
        """
        if self.job:
            self.job.stopped.set()

    def close(self) -> None:
        """Stops the run, waits for its end, and removes the files of the window."""
        self.stop()
        if self.job:
            self.job.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add_problem(self, line: str) -> None:
        """Adds an error of a run to the warnings of the table, if it names an option that helps.

        The page then shows a button for this option.
        """
        before = self.table_check
        if before and before.remedies(line) and line not in before.warnings:
            self.table_check = replace(before, warnings=(*before.warnings, line))
            self.version += 1


def _size_problem(file: Path) -> str:
    """Returns a message if an Excel file would take too much memory, else ""."""
    if not zipfile.is_zipfile(file):
        return ""
    with zipfile.ZipFile(file) as archive:
        size = sum(part.file_size for part in archive.infolist())  # bytes after decompression
    if size <= MAX_UNPACKED_BYTES:
        return ""
    n_megabytes = size >> 20  # division by 2**20
    most = f"at most {MAX_UNPACKED_BYTES >> 20} MB are read here"
    return f"{file.name} has {n_megabytes:,} MB when it is unpacked, {most}: give fewer rows"


def _with_problem(table_check: TableCheck, name: str, line: str) -> TableCheck:
    """Returns the record with `line` as a further problem of the column `name`."""
    columns = []
    for column in table_check.columns:
        if column.name == name:
            column = replace(column, problems=(*column.problems, line))
        columns.append(column)
    return replace(table_check, columns=tuple(columns))


def _with_response(column: CheckedColumn, response: str) -> CheckedColumn:
    """Returns the column with the use "response" if it is the response, and otherwise without.

    `response` is the name of the column of the response.
    """
    if column.name == response:
        return replace(column, use="response")
    return replace(column, use="not used") if column.use == "response" else column


# ---- runs ----------------------------------------------------------------------------------------


class Stopped(Exception):
    """The person stopped the run."""


class Job(Thread):
    """A call of a public function in a thread, which begins at once.

    Attributes:
        call: the function with its arguments.
        status: what is being done, or that the run was stopped, for the progress bar.
        share_done: how much of it is done, from 0 to 1; None if that is not known.
        problem: why there is no result; "" if nothing is wrong.
        files: download of `lmdiag.app.menus.DOWNLOADS` -> its file, as soon as it is written; the
            page is the first.
        is_page_sent: whether the window has the page of the result.
        stopped: set to end the run.
    """

    def __init__(self, call: Call, folder: Path) -> None:
        """Starts the call; its table, answers and results are in the folder of the window."""
        super().__init__(daemon=True)  # the end of the program does not wait for it
        self.call = call
        self.status = f"Loading {listing(call.models)}" if call.models else "Reading the table"
        self.share_done: float | None = None
        self.problem = ""
        self.files: dict[str, Path] = {}
        self.is_page_sent = False
        self.stopped = Event()
        self._folder = folder
        self.start()

    def run(self) -> None:
        """Makes the call and writes its result into `files`; an error becomes `problem`."""
        with options_as_typed():
            try:
                with self._run_slot():
                    result = self.call.make(self._folder, self._show_progress)
                self.status = "Writing the page"
                self.share_done = None
                for name, file in saved_files(result, self.call.data, self._folder):
                    self.files[name] = file
                    self.status = "Writing the files to download"
            except Stopped:
                self.status = "Stopped. Run goes on where it was."
            except BadInput as problem:
                self.problem = str(problem)
            except Exception as error:  # a fault of lmdiag, which the page survives
                traceback.print_exc()
                name = type(error).__name__
                self.problem = f"lmdiag failed ({name}); the log of the program has more"

    @contextmanager
    def _run_slot(self) -> Iterator[None]:
        """Waits for one of `RUN_SLOTS`, and holds it within the `with` block.

        Raises `Stopped` if the run is stopped while it waits.
        """
        status = self.status
        while not RUN_SLOTS.acquire(timeout=0.3):
            self.status = "Waiting for other runs to end"
            if self.stopped.is_set():
                raise Stopped
        try:
            self.status = status
            yield
        finally:
            RUN_SLOTS.release()

    def _show_progress(self, n_done: float, n_total: int) -> None:
        """Updates the progress bar, or raises `Stopped` if the user has stopped the run.

        The function of `call`, for example `lmdiag.run`, calls this method again and again while a
        model answers. An exception that is raised here leaves that function, and `Job.run` catches
        it.

        Args:
            n_done: contexts or sentences that the model has answered. It is a fraction within a
                batch: a half of a batch of 32 counts as 16.
            n_total: contexts or sentences that the model is asked; each model begins at 0 again.
        """
        if self.stopped.is_set():
            raise Stopped
        self.share_done = n_done / n_total if n_total else 1.0
        self.status = f"Asking {listing(self.call.models)}: {n_done:,.0f} of {n_total:,}"


# ---- files ---------------------------------------------------------------------------------------


def example_file(name: str, folder: Path) -> Path:
    """Copies an example of `lmdiag.app.menus.EXAMPLE_TABLES` into a folder; returns the copy."""
    source_name, name_on_page = menus.EXAMPLE_TABLES[name]
    return Path(shutil.copyfile(resource_path("cards", source_name), folder / name_on_page))


def uploaded_file(path: str, folder: Path) -> Path:
    """Moves an uploaded file into a folder, and returns its new path.

    In its name, characters other than letters, digits, spaces and "()+-_" become "_", and its
    ending has small letters: "a&b.CSV" becomes "a_b.csv".
    """
    source = Path(path)
    plain_name = re.sub(r"[^\w ()+-]", "_", source.stem).strip(" -")
    name = plain_name[:_LONGEST_FILE_NAME] or "table"
    return Path(shutil.move(source, folder / f"{name}{source.suffix.lower()}"))


def saved_files(result: Presentable, data: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Writes a result in each format of `lmdiag.app.menus.DOWNLOADS` that it can have.

    Args:
        data: name of the table, after which the files are named, as `items-result.csv`.
        folder: a new folder in it has the files.

    Yields:
        a download and its file, as soon as it is written; charts are one zip archive.
    """
    target = Path(tempfile.mkdtemp(prefix="result-", dir=folder))
    name = Path(data).stem
    for download, suffix in menus.DOWNLOADS.items():
        # `save` makes a folder of charts of a name without an ending
        file_name = f"{name}-result{suffix}" if suffix else "charts"
        try:
            saved_paths = result.save(target / file_name)
        except BadInput:  # there are no charts, or Word needs python-docx
            continue
        if suffix:
            yield download, saved_paths[0]
        elif saved_paths:
            archive = shutil.make_archive(f"{target / name}-charts", "zip", target / "charts")
            yield download, Path(archive)
