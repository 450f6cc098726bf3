"""The `lmdiag` command: options from the parameters of functions, errors as one line (`exits`).

A command is a function, whose parameters are its arguments and whose docstring is its help. Only
the module of the command that was typed is imported, and what is heavy only when the command runs,
so help is instant.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Sequence
from inspect import BoundArguments
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter

from lmdiag import __version__
from lmdiag.cli import exits
from lmdiag.types import BadInput

COMMANDS = {
    "build": "write the data set directory",
    "run": "query models and score their answers",
    "surprisal": "write the surprisal of every word of a text as a table",
    "score": "compute the measures from predictions of any program",
    "fit": "fit human measures such as reading times with and without surprisals",
    "compare": "compare two or more runs on the same rows, with paired statistics",
    "items": "write the items of runs as one table for R, Excel or pandas",
    "analyse": "test the conditions of items: effects, cell means, mixed models",
    "multiverse": "run every combination of knobs and show how far the figures depend on them",
    "report": "write tables and charts of one or several runs",
    "template": "write a starter file for your own diagnostic",
    "publish": "push the data set, the metric or the leaderboard to the Hub",
    "submit": "request a model on a leaderboard, or offer the figures of a run",
    "leaderboard": "run what is requested and build a static leaderboard",
}
"""Command name -> one line of help."""

_MODULES = {
    "data": ("build", "template", "publish", "submit", "leaderboard"),
    "run": ("run", "multiverse"), "texts": ("surprisal", "fit"),
    "runs": ("score", "compare", "report", "items", "analyse"),
}  # fmt: skip
"""Module -> its commands, which are functions NAME_command."""

_STOPPED = {
    "fit": "the answers of models are kept in --output; run the same command again to continue",
    "publish": "files sent so far stay on the Hub; run the same command again to send the rest",
    "submit": "pull requests opened so far stay on the Hub; run the command again for the rest",
    "leaderboard": "finished runs and answers saved so far are kept; run the same command again to "
    "continue",
} | dict.fromkeys(
    ("run", "multiverse"),
    "answers saved so far are kept; run the same command again, without --overwrite, to continue",
)
"""Command -> what it leaves where it is interrupted; nothing for the others."""


def program(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs one command as this process and ends the process."""
    signal.signal(signal.SIGTERM, exits.terminate)
    exits.leave(main(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    from lmdiag.files import redact_output

    argv = list(sys.argv[1:] if argv is None else argv)
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    try:
        command, arguments = parse(argv)
        for text in argv:
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadInput(f"the argument {text!r} is not valid UTF-8: rename the file")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        redact_output()
        code = int(command(*arguments.args, **arguments.kwargs) or 0)
        sys.stdout.flush()
        return code
    except (CycloptsError, BadInput, OSError, KeyboardInterrupt) as error:
        return exits.end(error, name, _STOPPED.get(name, "nothing was written"))


def parse(argv: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Returns the function to call and its arguments: that of a command, or one for `--help`."""
    if not argv:
        raise BadInput(f"which command? choose from {', '.join(COMMANDS)}; see `lmdiag --help`")
    app = App(
        name="lmdiag",
        version=__version__,
        help="Psycholinguistic diagnostics for masked, causal and encoder-decoder language models.",
        help_format="markdown",
        # Lists take all values that follow; flags have no --no-FLAG.
        default_parameter=Parameter(consume_multiple=(1, None), negative=(), show_default=_shown),
    )
    module_of = {name: module for module, names in _MODULES.items() for name in names}
    for name, summary in COMMANDS.items():
        target = f"lmdiag.cli.{module_of[name]}:{name}_command"
        app.command(target, name=name, help=f"{summary[0].upper()}{summary[1:]}.")
    function, arguments, _ = app.parse_args(argv, exit_on_error=False, print_error=False)
    return function, arguments


def _shown(default: Any) -> str | None:
    """Returns the text of a default value in the help; None to show none."""
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    return None if default is None or default is False or default == "" else str(default)
