"""Changed files are read or refused, by each reader of `fuzzing`: nightly.

The cases are the same at every run, so that these tests do not decide by chance.
"""

import time

import pytest
from fuzzing import LONGEST, READERS, SECONDS, campaign, read_case, write_valid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def valid(tmp_path_factory, demo_dir):
    """A folder with one valid file, or folder of files, of each kind."""
    folder = tmp_path_factory.mktemp("valid")
    write_valid(folder, demo_dir)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("reader", READERS, ids=[x[0] for x in READERS])
def test_changed_files_are_read_or_refused(valid, reader):
    """Each file as it is and in changed forms: 25,000 cases of all files."""
    name, read, place, share = reader
    read(valid / (place or name))

    @settings(
        max_examples=450 * share, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**64 - 1))
    def read_changed(number):
        began = time.process_time()
        length = len(read_case(valid, reader, number))
        assert length <= LONGEST, f"a message of {length} characters"
        assert time.process_time() - began <= SECONDS

    read_changed()


def test_a_campaign_counts_what_it_finds(valid, monkeypatch, capsys):
    """A traceback is printed with the number that repeats it."""
    pytest.importorskip("resource")

    def fail(file):
        raise TypeError("unhashable")

    monkeypatch.setattr("fuzzing.READERS", [("own.csv", fail, "", 1)])
    assert campaign(valid, 1, "own.csv", 7) == 1
    out = capsys.readouterr().out
    assert "traceback: python -m fuzzing 1 own.csv 7: TypeError: unhashable (" in out
    assert out.splitlines()[-2].split() == ["all", "1", "0", "0", "1", "0", "0", "0"]
