"""The `lmdiag` command: options become a record, errors become one line and an exit code (`exits`).

A command is a module with a dataclass `Options`, whose fields are its arguments, and a function
`main(options) -> int`. Only the module of the command that was typed is imported, and no command
module imports anything heavy before its `main` runs, so help is instant.
"""

from __future__ import annotations

import gc
import io
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter

from lmdiag import __version__
from lmdiag.cli import exits
from lmdiag.runs.processes import SharedError
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
"""Command name -> one line of help; each command is the module `lmdiag.cli.<name>`."""


def program(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs one command as this process and ends the process."""
    signal.signal(signal.SIGTERM, exits.terminate)
    gc.set_threshold(200_000)  # a quarter of the time to import torch and transformers otherwise
    exits.leave(main(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    left = "nothing was written"
    try:
        command, options = parse(argv)
        left = getattr(sys.modules[command.__module__], "STOPPED", left)
        _prepare_output(argv)
        code = int(command(*options) or 0)
        sys.stdout.flush()
        return code
    except CycloptsError as error:
        shown = " ".join(["lmdiag", *argv[:1]]) if argv[:1] and argv[0] in COMMANDS else "lmdiag"
        return exits.fail(f"{error} See `{shown} --help`.", code=2, shared=True)
    except BadInput as error:
        return exits.fail(str(error), code=2, shared=isinstance(error, SharedError))
    except BrokenPipeError:
        exits.drop_output()
        return 1
    except OSError as error:
        return exits.fail_of_system(error)
    except KeyboardInterrupt as reason:
        return exits.stop(reason, left)


def parse(argv: Sequence[str]) -> tuple[Callable[..., int | None], tuple[Any, ...]]:
    """Returns the function to call and its arguments: `main` of a command, or one for `--help`.

    Raises:
        CycloptsError: an argument is unknown or missing, or has a value that is not allowed.
        BadInput: no command is named.
    """
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
    for name, summary in COMMANDS.items():
        text = f"{summary[0].upper()}{summary[1:]}."
        app.command(f"lmdiag.cli.{name}:main", name=name, help=text)
    function, bound, _ = app.parse_args(argv, exit_on_error=False, print_error=False)
    return function, bound.args


def _shown(default: Any) -> str | None:
    """Returns the text of a default value in the help; None to show none."""
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    return None if default in ("", None, False) else str(default)


def _prepare_output(argv: Sequence[str]) -> None:
    """Makes output safe: any character can be printed, no log or traceback has a secret.

    Raises:
        BadInput: an argument is not valid text in the encoding of the system.
    """
    from lmdiag.files import redact_output

    for argument in argv:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise BadInput(f"the argument {argument!r} is not valid UTF-8: rename the file")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    redact_output()
