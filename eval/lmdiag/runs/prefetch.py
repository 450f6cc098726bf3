"""Loads the models of a command in a thread, some of them before their turn.

While the first model is loaded, the main thread reads the data. While a model is asked, the next
ones are loaded. Everything that processes exchange, and all work on accelerators, stays in the main
thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import TracebackType

from lmdiag import models
from lmdiag.collector import uncollected
from lmdiag.models import LoadOptions, Model
from lmdiag.models.loading.errors import NotEnoughMemory
from lmdiag.runs.progress import show_waiting


class Prefetcher:
    """Gives one model after the other; a thread loads them in this order.

    At most `ahead` + 1 models are in memory: the one that is asked and the next ones. The thread
    goes on when a model is asked for, so the caller must have dropped the one before. A model that
    does not fit into memory beside another one is loaded when its turn comes.

    As a context manager, it has the thread begin. At an error it does not wait for the thread,
    which may be downloading; `cli.exits.leave` ends the process then.

    Args:
        wanted: id and options of each model.
        ahead: how many models are loaded before their turn; 0 for none.
    """

    def __init__(self, wanted: Sequence[tuple[str, LoadOptions]], ahead: int) -> None:
        self._wanted = wanted
        self._ahead = ahead
        self._turn = 0
        self._next = 0
        self._is_stopped = False
        self._loaded: dict[int, Callable[[], Model] | BaseException] = {}
        self._changed = threading.Condition()
        # `cli.exits.leave` knows the thread by its name.
        self._thread = threading.Thread(target=self._load_all, name="lmdiag-loading", daemon=True)

    def take(self, label: str | None = None) -> Model:
        """Returns the next model, waiting for it if necessary.

        Args:
            label: its name, shown on a terminal while it is waited for; None to show nothing.

        Raises:
            BadInput: it cannot be loaded; see `models.load`. The next call gives the next model.
        """
        number, self._next = self._next, self._next + 1
        with self._changed:
            is_begun = number <= self._turn + self._ahead and number > 0
            self._turn = number
            self._changed.notify_all()
        with show_waiting(label if is_begun else None), self._changed:
            self._changed.wait_for(lambda: number in self._loaded)
            outcome = self._loaded.pop(number)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome()

    def __enter__(self) -> Prefetcher:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        if kind is None:
            self._thread.join()

    def _load_all(self) -> None:
        """Loads one model after the other, until the end or until it is stopped."""
        for number in range(len(self._wanted)):
            if not self._may_load(number):
                return
            self._keep(number, self._load(number))

    def _may_load(self, number: int, ahead: int | None = None) -> bool:
        """Waits until a model may be loaded; returns False if that is no longer wanted."""
        earliest = number - (self._ahead if ahead is None else ahead)
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._turn >= earliest)
            return not self._is_stopped

    def _keep(self, number: int, outcome: Callable[[], Model] | BaseException) -> None:
        with self._changed:
            self._loaded[number] = outcome
            self._changed.notify_all()

    def _load(self, number: int) -> Callable[[], Model] | BaseException:
        """Returns a loaded model, or the error that `take` raises."""
        model_id, options = self._wanted[number]
        is_beside = number > self._turn
        try:
            with nullcontext() if is_beside else uncollected():
                return models.load_ahead(model_id, options, beside=is_beside)
        except NotEnoughMemory as error:
            lack = error
        except BaseException as error:  # the main thread raises it
            return error
        return self._load(number) if is_beside and self._may_load(number, ahead=0) else lack
