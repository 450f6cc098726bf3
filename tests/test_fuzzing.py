"""No reader raises anything but `BadInput`, whatever was done to a valid file (see `fuzzing`)."""

from __future__ import annotations

import pytest
from fuzzing import Fuzzer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("fuzzing"))


CASES = st.integers(0, 2**64 - 1)
AT_EASE = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@settings(AT_EASE, max_examples=300)
@given(CASES)
def test_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)


@pytest.mark.slow
@settings(AT_EASE, max_examples=20_000, derandomize=False)
@given(CASES)
def test_twenty_thousand_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)
