"""Changes valid files at random and reads them: the outcome is a result or `BadInput`, soon.

A case is a number that decides which file is changed and how, so that a case that fails can be
repeated. The cases are the same at every run, so that these tests do not decide by chance;
`LMDIAG_FUZZ_CASES` makes the slow test draw so many other ones of each group of files.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from fuzz_changes import change
from fuzz_files import READERS, Reader, make_files
from fuzz_summaries import make_summaries, summary_readers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lmdiag.types import BadInput

SECONDS = 5.0
"""Processor time that a case may take."""
LONGEST = 3000
"""Characters that a message may have; the longest texts put into files have 100,000."""
CASES = os.environ.get("LMDIAG_FUZZ_CASES")


def too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"still reading after {2 * SECONDS} s of processor time")


class Fuzzer:
    """Valid files in a folder of their own, which cases change one at a time.

    Args:
        folder: with the files.
        readers: of the files; to change their number, order or weights is to change what the
            number of a case means.
    """

    def __init__(self, folder: Path, readers: Sequence[Reader]) -> None:
        signal.signal(signal.SIGVTALRM, too_long)
        self.folder, self._readers = folder, readers
        self._valid = {reader.file: (folder / reader.file).read_bytes() for reader in readers}
        for reader in readers:
            reader.read(folder / reader.path)
            self._restore(reader.file)

    def case(self, number: int) -> None:
        """Runs a case; raises whatever the reader raised that is not `BadInput`."""
        rng = random.Random(number)
        (reader,) = rng.choices(self._readers, [each.weight for each in self._readers])
        content = change(reader.file, self._valid[reader.file], rng)
        (self.folder / reader.file).write_bytes(content)
        began = time.process_time()
        length = 0
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)  # ends what would never end
        try:
            reader.read(self.folder / reader.path)
        except BadInput as error:
            length = len(str(error))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._restore(reader.file)
        seconds = time.process_time() - began
        assert length <= LONGEST, f"a message of {length} characters on {reader.file}"
        assert seconds <= SECONDS, f"{reader.file} took {seconds:.1f} s"

    def _restore(self, file: str) -> None:
        (self.folder / file).write_bytes(self._valid[file])
        if file.startswith("begun"):
            (self.folder / "begun/results.json").unlink(missing_ok=True)


def fuzzer_of(group: str, folder: Path, demo: Path) -> Fuzzer:
    """Returns the fuzzer of a group of files, which it makes."""
    if group == "rows":
        make_files(folder)
        return Fuzzer(folder, READERS)
    make_summaries(folder, demo)
    return Fuzzer(folder, summary_readers(folder, demo))


@pytest.fixture(scope="module", params=["rows", "summaries"])
def fuzzer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, demo_dir: Path
) -> Fuzzer:
    return fuzzer_of(request.param, tmp_path_factory.mktemp("fuzzing"), demo_dir)


UNTIMED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.integers(0, 2**64 - 1)


@settings(UNTIMED, max_examples=150, derandomize=True)
@given(NUMBERS)
@example(80_500_549_910_954)  # a run whose data set has a name that is too long for a file
def test_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)


@pytest.mark.slow
@settings(UNTIMED, max_examples=int(CASES or 10_000), derandomize=CASES is None)
@given(NUMBERS)
def test_many_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)
