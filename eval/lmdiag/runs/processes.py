"""The processes of a run: they share out the questions and exchange the answers.

Batches are not dealt out beforehand. Every process takes the next one from a counter in a key-value
store on the first process, so all end at about the same time, and the first process sees the
progress of the whole run. Processes wait for each other only to share and to gather.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lmdiag.types import BadInput

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

_WAIT = timedelta(minutes=10)
"""The longest that a process waits for another one before it ends with an error."""


class SharedError(BadInput):
    """Bad input that all processes of a run know of, so that one of them can report it for all."""


def announced() -> int:
    """Returns the number of processes that accelerate or torchrun announces; 1 without them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


class Queue:
    """The numbers below `length`, each handed to exactly one process, in order.

    As a context manager, it ends on every process where bad input ends the block on one of them.

    Args:
        store: counters that all processes see; None for a single process.
        name: of the queue in the store.
        length: how many numbers there are.
    """

    def __init__(self, store: Store | None, name: str, length: int) -> None:
        self._store, self._name, self._length = store, name, length
        self._own_counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[int]:
        while not self._add("stop", 0):
            number = self._add("next", 1) - 1
            if number >= self._length:
                return
            yield number

    def done(self, amount: int) -> int:
        """Adds to the work done; returns the sum over all processes."""
        return self._add("done", amount)

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, BadInput):
            self._add("stop", 1)

    def _add(self, counter: str, amount: int) -> int:
        if self._store is None:
            self._own_counts[counter] += amount
            return self._own_counts[counter]
        with _process_lost():
            return self._store.add(f"{self._name}/{counter}", amount)


class Processes:
    """The processes that share a run; a single one needs neither accelerate nor a server.

    As a context manager, it leaves the group at the end of the block, and ends this process in one
    line where another one has ended.

    Attributes:
        rank: number of this process, from 0.
        count: how many there are.
        device: name of the torch device that accelerate assigned to this process; None to choose
            freely.

    Args:
        alone: share with no others, whatever the environment announces.
        together: all processes ask each batch at once, because each holds a part of the model
            (tensor parallel), instead of taking turns.
    """

    def __init__(self, *, alone: bool = False, together: bool = False) -> None:
        self.together = together
        self.rank, self.count = 0, 1
        self.device: str | None = None
        self._store: Store | None = None
        self._queues = 0
        if not alone and announced() > 1:
            self._join()

    def _join(self) -> None:
        """Enters the group that accelerate or torchrun announced in the environment.

        On a machine without accelerators, accelerate joins processes only if it is told to use the
        CPU; otherwise it silently runs each of them alone.
        """
        import torch
        from accelerate import PartialState

        state = PartialState(cpu=not torch.accelerator.is_available(), timeout=_WAIT)
        self.rank, self.count = state.process_index, state.num_processes
        self.device = str(state.device)
        if self.count != announced():
            raise BadInput(
                f"{announced()} processes were announced but {self.count} joined: "
                "start them by `accelerate launch` or `torchrun`"
            )
        self._store = self._connect()

    def _connect(self) -> Store:
        """Opens the shared store: a server on the first process, at a free port of its own."""
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        host = os.environ.get("MASTER_ADDR", "127.0.0.1")
        if self.first:
            server = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=_WAIT)
            self.share(server.port)
            return server
        return TCPStore(host, self.share(0), is_master=False, wait_for_workers=False, timeout=_WAIT)

    @property
    def first(self) -> bool:
        """Whether this process writes the results and shows the progress."""
        return self.rank == 0

    def share(self, value: Any) -> Any:
        """Returns the first process's value on every process."""
        if self.count == 1:
            return value
        from accelerate.utils import broadcast_object_list

        with _process_lost():
            return broadcast_object_list([value], from_process=0)[0]

    def gather(self, value: Any) -> list[Any]:
        """Returns every process's value, by rank, on every process."""
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        with _process_lost():
            return list(gather_object([value]))

    @contextmanager
    def shared_errors(self) -> Iterator[None]:
        """Makes bad input in one process's block an error of all processes, at the block's end.

        Raises:
            SharedError: on every process, with the message of the first one that has an error.
        """
        error = None
        try:
            yield
        except BadInput as bad:
            error = str(bad)
        for message in self.gather(error):
            if message is not None:
                raise SharedError(message)

    def queue(self, length: int) -> Queue:
        """Returns the next queue; every process must ask for the same queues in the same order."""
        self._queues += 1
        return Queue(None if self.together else self._store, str(self._queues), length)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if self.count == 1:
            return
        if kind is None or issubclass(kind, BadInput):
            self._leave()
        elif isinstance(error, RuntimeError) and "onnection" in str(error):
            # gloo raises this within a model that is split over the processes
            with _process_lost():
                raise error

    def _leave(self) -> None:
        """Leaves the group; the first process, which serves the store, leaves last.

        A thread of gloo's may still hold a tensor of the last exchange; it would abort a process
        that shuts its interpreter down. Every process therefore waits a moment.
        """
        from torch.distributed import destroy_process_group

        assert self._store is not None
        time.sleep(0.05)
        with _process_lost():
            if self.first:
                self._store.set("finished", "")
                self._store.wait([f"left/{rank}" for rank in range(1, self.count)], _WAIT)
            else:
                self._store.wait(["finished"], _WAIT)
                self._store.set(f"left/{self.rank}", "")
        destroy_process_group()


@contextmanager
def _process_lost() -> Iterator[None]:
    """Turns what torch raises when another process has ended into one line.

    Raises:
        ConnectionError: a process that is waited for has ended.
    """
    try:
        yield
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:100]
        raise ConnectionError(
            "another process of this run has ended; what was saved is kept, and the same command "
            f"resumes ({reason})"
        ) from None
