"""The processes of a run: which batches each of them asks, and how they exchange the answers.

accelerate or torchrun starts the processes, and accelerate's state connects them. Process r of n
asks the batches r, r + n, r + 2n, ... of a plan whose largest batches come first. Processes wait
for each other only to share and to gather.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from lmdiag.files.processes import end_with_parent
from lmdiag.text import shortened
from lmdiag.types import BadInput

_WAIT = timedelta(hours=12)
"""The longest that a process waits for a slower one. One that has ended is noticed at once."""


class SharedError(BadInput):
    """Bad input that all processes of a run know of, so that one of them can report it for all."""


class Processes:
    """The processes that share a run; a single one does not need accelerate.

    As a context manager, it leaves the group at the end of the block, and ends this process in one
    line where another one has ended.

    Attributes:
        rank: number of this process, from 0.
        count: how many there are.
        device: name of the torch device that accelerate assigned to this process; None to choose
            freely.
        together: all processes ask each batch at once, because each holds a part of the model
            (tensor parallel), instead of dividing the batches.

    Args:
        alone: share with no others, whatever the environment announces.
        together: see above.
    """

    def __init__(self, *, alone: bool = False, together: bool = False) -> None:
        self.together = together
        self.rank = 0
        self.count = 1
        self.device: str | None = None
        n_announced = int(os.environ.get("WORLD_SIZE", "1"))  # by accelerate or torchrun
        if alone or n_announced == 1:
            return
        end_with_parent(os.getppid())  # a launcher that is killed cannot end its processes
        import torch
        from accelerate import PartialState

        # Without an accelerator, accelerate joins processes only if it is told to use the CPU;
        # otherwise it silently runs each of them alone.
        uses_cpu = not torch.accelerator.is_available()
        try:
            state = PartialState(cpu=uses_cpu, timeout=_WAIT)
        except torch.distributed.DistError as error:
            address = ":".join(os.environ.get(f"MASTER_{part}", "") for part in ("ADDR", "PORT"))
            remedy = "another program uses the port: choose another MASTER_PORT"
            reason = f"processes cannot meet at {address} ({shortened(error)})"
            raise BadInput(f"{reason}; {remedy}") from None
        self.rank = state.process_index
        self.count = state.num_processes
        self.device = str(state.device)
        if self.count != n_announced:
            raise BadInput(
                f"{n_announced} processes were announced but {self.count} joined: "
                "start them by `accelerate launch` or `torchrun`"
            )

    @property
    def is_first(self) -> bool:
        """Whether this process writes the results and shows the progress."""
        return self.rank == 0

    def share(self, value: Any) -> Any:
        """Returns the value of the first process on every process.

        All processes must call it; each waits until the first one has its value.
        """
        if self.count == 1:
            return value
        from accelerate.utils import broadcast_object_list

        with _as_connection_error():
            return broadcast_object_list([value], from_process=0)[0]

    def gather(self, value: Any) -> list[Any]:
        """Returns a list with the value of each process, by rank, on every process.

        All processes must call it, and each waits for all others.
        """
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        with _as_connection_error():
            return list(gather_object([value]))

    @contextmanager
    def shared_errors(self) -> Iterator[None]:
        """Raises `SharedError` on every process if the block of one of them raised `BadInput`.

        All processes wait for each other at the end of the block. Without this, a process that has
        no error would wait for one that has ended.
        """
        own_message = None
        try:
            yield
        except BadInput as error:
            own_message = str(error)
        for message in self.gather(own_message):
            if message is not None:
                raise SharedError(message)

    def __enter__(self) -> Processes:
        """Returns the processes, whose group this process leaves at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        """Leaves the group of processes at the end of the block.

        If the block ended without an error, or with a `SharedError`, this process first waits for
        the others. With another error it does not wait. A lost connection becomes a
        `ConnectionError`.
        """
        if self.count == 1:
            return
        if kind is None or issubclass(kind, SharedError):
            self.gather(None)  # the first process, which serves the others, does not leave early
            time.sleep(0.05)  # gloo's threads abort an interpreter that ends during an exchange
        elif isinstance(error, RuntimeError) and "connection" in str(error).lower():
            # gloo raises this within a model that is split over the processes
            with _as_connection_error():
                raise error
        if kind is None or issubclass(kind, BadInput):
            from torch.distributed import destroy_process_group

            destroy_process_group()


@contextmanager
def _as_connection_error() -> Iterator[None]:
    """Turns what torch raises when another process has ended into `ConnectionError`, one line."""
    try:
        yield
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:100]
        raise ConnectionError(
            "another process of this run has ended; what was saved is kept, and the same command "
            f"resumes ({reason})"
        ) from None
