"""What came of asking a submitted model again: plain data, made by `lmdiag.reproduction`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["reproduced", "differs", "not possible"]


@dataclass(frozen=True)
class Outcome:
    """The attempt to reproduce a submission.

    Attributes:
        status: reproduced (every answer agrees), differs, or not possible (the model could not be
            loaded or asked here).
        detail: the first item that differs, or why it was not possible; "" where it is reproduced.
        asked: contexts that were asked.
        of: contexts of the submission.
        seed: that the contexts were drawn with, from the system's random source; kept secret until
            the model had answered.
        tolerance: nats by which a log-probability may differ.
        device: that the model ran on.
        versions: of the packages that asked it.
        seconds: that loading and asking took.
        finished: date and time, ISO 8601.
    """

    status: Status
    detail: str
    asked: int = 0
    of: int = 0
    seed: str = ""
    tolerance: float | None = None
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    finished: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return asdict(self)


def level(outcome: Outcome | None) -> str:
    """Returns what is proved of an entry: "reproduced", "differs" or "recomputed"."""
    if outcome is None or outcome.status == "not possible":
        return "recomputed"
    return outcome.status


def sentence(outcome: Outcome | None) -> str:
    """Returns what was done to an entry, in a sentence for its page."""
    if outcome is None:
        return (
            "Every figure was computed again from the submitted predictions. The model itself was "
            "not asked."
        )
    if outcome.status == "not possible":
        return (
            "Every figure was computed again from the submitted predictions. The model could not "
            f"be asked: {outcome.detail}."
        )
    asked = (
        f"The model was loaded and asked {outcome.asked} of {outcome.of} contexts, drawn at random "
        f"after it was submitted (seed {outcome.seed})"
    )
    if outcome.status == "reproduced":
        return f"{asked}. Every answer agrees within {outcome.tolerance:g} nats."
    return f"{asked}. The answers differ. First difference: {outcome.detail}."
