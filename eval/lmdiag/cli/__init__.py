"""The `lmdiag` command: arguments and wiring; errors become one line and an exit code (`exits`).

Only the module of the command that was typed is imported, and no command module imports anything
heavy before its `main` runs, so help is instant.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from lmdiag import __version__
from lmdiag.cli import exits
from lmdiag.cli.parser import Parser
from lmdiag.processes import SharedError
from lmdiag.schema import BadInput

COMMANDS = {
    "build": "write the data set directory",
    "run": "query models and score their answers",
    "score": "compute the measures from predictions of any program",
    "compare": "compare two or more runs on the same rows, with paired statistics",
    "report": "write tables and charts of one or several runs",
    "template": "write a starter file for your own diagnostic",
    "publish": "push the data set, the metric or the leaderboard to the Hub",
    "submit": "submit a run to the model's repository and to a leaderboard",
    "leaderboard": "build a static leaderboard from runs",
}
"""Command name -> one line of help; each command is the module `lmdiag.cli.<name>`."""

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def program(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs one command as this process and ends the process."""
    exits.terminate_like_interrupt()
    exits.leave(main(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; argument errors raise SystemExit(2)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    args = argparse.Namespace(stopped=nothing_written)
    try:
        args = build_parser(argv[0] if argv and argv[0] in COMMANDS else None).parse_args(argv)
        return int(args.main(args))
    except BadInput as error:
        return exits.fail(str(error), code=2, shared=isinstance(error, SharedError))
    except OSError as error:
        if error.errno not in FULL | UNWRITABLE:
            raise
        return exits.fail(explain_write_failure(error), code=1 if error.errno in FULL else 2)
    except KeyboardInterrupt as reason:
        return exits.stop(reason, args.stopped(args))


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Returns the parser; only the named command gets its arguments (and its import)."""
    parser = Parser(
        prog="lmdiag",
        description="Psycholinguistic diagnostics for masked, causal and encoder-decoder language "
        "models.",
        epilog="`lmdiag COMMAND --help` lists the arguments of a command.",
    )
    parser.add_argument("--version", action="version", version=f"lmdiag {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == command:
            module = importlib.import_module(f"lmdiag.cli.{name}")
            module.add_arguments(subparser)
            stopped = getattr(module, "stopped", nothing_written)
            subparser.set_defaults(main=module.main, stopped=stopped)
    return parser


def nothing_written(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted command that writes its output at the very end."""
    return "nothing was written"


def explain_write_failure(error: OSError) -> str:
    """Returns one line for a full disk or a place that cannot be written."""
    where = f" ({error.filename})" if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    return (
        f"cannot write{where}: {reason}; what was saved is kept: "
        "make room or choose another place, and run again"
    )
