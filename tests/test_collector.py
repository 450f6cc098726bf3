"""Garbage collection is put off, and comes back as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from lmdiag.collector import uncollected


@pytest.fixture(autouse=True)
def on_again() -> Iterator[None]:
    yield
    gc.enable()


def test_it_is_off_meanwhile_and_on_again_after_an_error() -> None:
    seen = []

    def fail() -> None:
        with uncollected():
            seen.append(gc.isenabled())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [False]
    assert gc.isenabled()


def test_within_another_and_where_it_was_off_before_it_stays_off() -> None:
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()
