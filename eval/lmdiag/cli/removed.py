"""Options that commands had once, and what takes their place."""

from __future__ import annotations

from typing import NamedTuple


class RemovedOption(NamedTuple):
    """An option that commands had once: what the message for an unknown option adds.

    Attributes:
        remedy: what to do instead.
        commands: the commands that had it; () for all that do not have it now.
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
"""Option, as it is typed -> what to do instead."""


def remedy_for_removed(option: str, command: str) -> str:
    """Returns what to do instead of an option that a command had once; "" if it never had it.

    >>> remedy_for_removed("--models-from", "run")
    'write --model @FILE'
    """
    removed = REMOVED.get(option)
    if removed is None:
        return ""
    had_option = not removed.commands or command in removed.commands
    return removed.remedy if had_option else ""
