"""No reader raises anything but `BadInput`, whatever was changed in a valid file."""

from __future__ import annotations

import pytest
from fuzzing import Fuzzer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

UNTIMED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
CASES = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("fuzzing"))


@settings(UNTIMED, max_examples=300, derandomize=True)
@given(CASES)
def test_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)


@pytest.mark.slow
@settings(UNTIMED, max_examples=20_000)
@given(CASES)
def test_twenty_thousand_changed_files_are_read_or_refused(fuzzer: Fuzzer, number: int) -> None:
    fuzzer.case(number)
