"""Options that commands had once, and what takes their place."""

from __future__ import annotations

from typing import NamedTuple


class RemovedOption(NamedTuple):
    """What the message for an unknown option adds.

    Attributes:
        remedy: what to do instead.
        commands: that had it; none for every one that has it no longer.
    """

    remedy: str
    commands: tuple[str, ...] = ()


_ON_ANALYSE = RemovedOption("give it to `lmdiag analyse` or `lmdiag report`", ("run", "check"))
_OF_TEXTS = ("fit", "cloze", "surprisal", "analyse")
_OF_PAIRS = RemovedOption("nothing is read by it here: it says which rows are compared", _OF_TEXTS)
_OF_SENTENCES = RemovedOption("nothing is read by it here: it is for sentences of items", _OF_TEXTS)

_FILE = RemovedOption("write --out FILE, whose ending is the format")

REMOVED = {
    "--report": _FILE,
    "--chart": _FILE,
    "--figures": RemovedOption("write --out FOLDER for all charts, or --out FILE.pdf"),
    "--attention": RemovedOption("transformers chooses the implementation of attention"),
    "--in-flight": RemovedOption("eight requests go to a server at the same time"),
    "--models-from": RemovedOption("write --model @FILE"),
    "--revisions": RemovedOption("give the pattern to --revision"),
    "--data-revision": RemovedOption("write --data ID@REVISION"),
    "--coding": _ON_ANALYSE,
    "--by": _ON_ANALYSE,
    "--good": _OF_PAIRS,
    "--contrast": _OF_PAIRS,
    "--critical": _OF_SENTENCES,
    "--gap": _OF_SENTENCES,
    "--separator": _OF_SENTENCES,
}
"""Option -> what its message adds."""


def instead_of(option: str, command: str) -> str:
    """Returns the remedy for a removed option of a command; "" for one that it never had."""
    removed = REMOVED.get(option)
    if removed is None or (removed.commands and command not in removed.commands):
        return ""
    return removed.remedy
