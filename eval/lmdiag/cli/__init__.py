"""The `lmdiag` command: arguments and wiring; errors become one line and an exit code.

Exit codes: 0 done, 2 bad input, 1 anything else. Only the module of the command that was typed is
imported, and no command module imports anything heavy before its `main` runs, so help is instant.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from collections.abc import Sequence

from lmdiag import __version__
from lmdiag.schema import BadInput

COMMANDS = {
    "build": "write the data set directory",
    "run": "ask models and score their answers",
    "score": "measures from predictions made elsewhere",
    "compare": "two runs on the same rows, with paired statistics",
    "report": "tables and pictures of one or several runs",
    "template": "write a starter file for a diagnostic of your own",
    "publish": "push the data set, the metric or the leaderboard to the Hub",
    "submit": "offer a run to the model's repository and the leaderboard",
    "leaderboard": "build the static leaderboard from runs",
}
"""Command name -> one line of help; each command is the module `lmdiag.cli.<name>`."""

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; argument errors exit with 2 by argparse."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser(argv[0] if argv and argv[0] in COMMANDS else None)
    args = parser.parse_args(argv)
    try:
        return int(args.main(args))
    except BadInput as error:
        return fail(str(error), code=2)
    except OSError as error:
        if error.errno not in FULL | UNWRITABLE:
            raise
        return fail(explain_write_failure(error), code=1 if error.errno in FULL else 2)
    except KeyboardInterrupt:
        return fail("interrupted; what was saved is kept, the same command resumes", code=1)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Returns the parser; only the named command gets its arguments (and its import)."""
    parser = argparse.ArgumentParser(
        prog="lmdiag",
        description="Psycholinguistic diagnostics for masked and causal language models.",
        epilog="`lmdiag COMMAND --help` tells what a command takes.",
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
            subparser.set_defaults(main=module.main)
    return parser


def fail(message: str, code: int) -> int:
    """Prints one line on standard error and returns the exit code."""
    line = " ".join(message.split())
    print(f"lmdiag: error: {line}", file=sys.stderr)
    return code


def explain_write_failure(error: OSError) -> str:
    """Returns one line for a full disk or a place that cannot be written."""
    where = f" ({error.filename})" if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    return (
        f"cannot write{where}: {reason}; what was saved is kept: "
        "make room or choose another place, and run again"
    )
