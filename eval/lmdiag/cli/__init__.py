"""The `lmdiag` command: options from the parameters of functions, errors as one line.

A command is a function, whose parameters are its arguments and whose docstring is its help. Only
the module of the command that was typed is imported, and what is heavy only when the command runs,
so help is instant.

Exit codes: 0 done; 1 a loss that `compare --fail-on-loss` found, and nothing else; 2 bad input, and
whatever else ends in one line (a model of several that failed, a full disk); 70 a fault of lmdiag
itself, with a traceback; 130 interrupted (Ctrl-C), 141 the reader of the output closed it (as in
`lmdiag report RUN | head`), 143 terminated (SIGTERM). Where `accelerate launch` or `torchrun`
started several processes, the first one speaks for all.
"""

from __future__ import annotations

import _thread
import atexit
import errno
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import BoundArguments
from typing import Any, NoReturn

from cyclopts import (
    App,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument, ArgumentCollection

from lmdiag import __version__
from lmdiag.cli.removed import remedy_for_removed
from lmdiag.runs.processes import SharedError
from lmdiag.text import options_as_typed, suggest
from lmdiag.types import BadInput

COMMANDS = {
    "build": ("data", "write the data set directory"),
    "check": ("check", "say what a file of own rows is, and what looks wrong in it"),
    "run": ("run_command", "query models and score their answers"),
    "surprisal": ("texts", "write the surprisal of every word of a text as a table"),
    "score": ("run_outputs", "compute the measures from predictions of any program"),
    "fit": ("texts", "fit human measures such as reading times with and without surprisals"),
    "cloze": ("cloze_command", "compare what people say at a blank with what models expect"),
    "compare": ("run_outputs", "compare two or more runs on the same rows, with paired statistics"),
    "items": ("run_outputs", "write the items of runs as one table for R, Excel or pandas"),
    "analyse": ("run_outputs", "test the conditions of items: effects, cell means, mixed models"),
    "multiverse": (
        "run_command",
        "run every combination of options and show how far the figures depend on them",
    ),
    "report": ("run_outputs", "write tables and charts of one or several runs"),
    "app": ("app", "open a page in the browser that leads from a table to its result"),
    "template": ("data", "write a starter file for your own diagnostic"),
    "publish": ("data", "push the data set, the metric, the leaderboard or the page to the Hub"),
    "submit": ("data", "request a model on a leaderboard, or offer the figures of a run"),
    "leaderboard": ("data", "run what is requested and build a static leaderboard"),
}
"""Command -> the module that has its function NAME_command, and one line of help."""

MOST_USED = {
    "run": "model data tasks columns filter critical limit unit output json",
    "multiverse": "model data tasks limit columns knobs name output out json",
    "fit": "human model surprisal profile response control exclude out output json",
    "cloze": "source model response columns filter unit out format output json",
    "analyse": "runs response conditions formula region by levels out format json",
    "surprisal": "file model output columns filter language unit revision batch-size overwrite",
}
"""Command of many options -> the ten that its help shows; see `TypedCommand`."""

SECTIONS = {
    "Most used": "", "Parameters": "others", "Models": "models", "Data": "data",
    "Reading a table of your own": "table", "Design of own data": "design",
    "Procedure": "procedure", "Scoring": "scoring", "What varies": "knobs",
    "How models are asked": "asking", "Loading the model": "loading",
    "A model behind a server": "server", "Output": "output", "Running": "running",
}  # fmt: skip
"""Groups of options in the help, in their order -> what is typed after `--help` to see one."""

_ANSWERS_KEPT = "the answers of models are kept in --output; run the same command again to continue"
_AFTER_INTERRUPTION = {
    "fit": _ANSWERS_KEPT,
    "cloze": _ANSWERS_KEPT,
    "publish": "files sent so far stay on the Hub; run the same command again to send the rest",
    "submit": "pull requests opened so far stay on the Hub; run the command again for the rest",
    "leaderboard": "finished runs and answers saved so far are kept; run the same command again to "
    "continue",
} | dict.fromkeys(
    ("run", "multiverse"),
    "answers saved so far are kept; run the same command again, without --overwrite, to continue",
)
"""Command -> what is kept after an interruption; the other commands have written nothing."""

LOSS = 1
ERROR = 2
FAULT = 70
INTERRUPTED = 128 + signal.SIGINT
CLOSED = 128 + 13  # SIGPIPE, which Windows does not have
TERMINATED = 128 + signal.SIGTERM
"""Exit codes, see above."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_SECONDS_UNTIL_RESENT = 0.2
"""Time until a signal is sent again whose exception was lost."""

_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PROTECTED_PATH = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
"""Numbers of errors of the system whose remedy is another place for the output."""

_MIN_OBJECTS_TO_COLLECT = 200_000
"""New objects after which Python looks for unused ones.

By default, it does so hundreds of times while torch is imported.
"""


class Terminated(KeyboardInterrupt):
    """SIGTERM, for example from a scheduler at the end of a job's time."""


def program(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs one command as this process and ends the process with the exit code of the command.

    After an interruption by Ctrl-C or SIGTERM, the process ends at once.

    Args:
        argv: the arguments after `lmdiag`; None for those of the process.
    """

    terminations = []

    def terminate(number: int, _: Any) -> NoReturn:
        """Handles SIGTERM: raises an exception, as Python does by itself for Ctrl-C."""
        terminations.append(number)
        raise Terminated

    def leave_at_once() -> None:
        """Ends the process with the exit code `code`, without destroying modules."""
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    code = FAULT  # if an exception with a traceback leaves this function
    _open_closed_streams()
    # Exit functions run in the reverse order, so this one is the last. To destroy the modules of
    # torch would take 0.2 s.
    atexit.register(leave_at_once)
    signal.signal(signal.SIGTERM, terminate)
    sys.unraisablehook = _resend_lost_signal
    gc.set_threshold(_MIN_OBJECTS_TO_COLLECT)
    try:
        code = main(argv)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # the command is done: a signal ends the process
    except KeyboardInterrupt as error:  # before or after the command, or while it was ending
        code = _exit_code(error)
    except Exception:
        # pydantic turns the exception of SIGTERM into an error of its own
        if not terminations:
            raise
        code = TERMINATED
    if code in (INTERRUPTED, TERMINATED):  # threads at work would abort the interpreter's shutdown
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # the exit code must not change
        leave_at_once()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Opens the null device for standard streams that the shell closed, as by `>&-`.

    Python has None in their place. Without this, the next file that is opened would get the number
    of the stream, and libraries in C would print into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 (stays open)
            setattr(sys, name, stream)


def _resend_lost_signal(lost: sys.UnraisableHookArgs) -> None:
    """Sends a signal again whose exception was lost.

    Ctrl-C and SIGTERM raise an exception wherever Python is. In a destructor or a callback of C,
    Python ignores exceptions: it calls this hook for each of them, and goes on. Exceptions that are
    not of signals are printed as usual.
    """
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    signal_number = _exit_code(lost.exc_value) - 128  # the exit code is 128 + the number
    # on Windows, os.kill would end the process without its exception
    is_windows = sys.platform == "win32"
    send = signal.raise_signal if is_windows else partial(os.kill, os.getpid())
    timer = threading.Timer(_SECONDS_UNTIL_RESENT, send, (signal_number,))
    # timer.start would wait here for the thread: on a busy machine until the signal comes
    _thread.start_new_thread(timer.run, ())


def _exit_code(error: KeyboardInterrupt) -> int:
    """Returns the exit code of an interruption: by Ctrl-C, or by SIGTERM."""
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED


_TAKE_ONE_FILE = ("check", "run", "multiverse", "surprisal", "fit", "score")
"""Commands that take one file as an argument; everything else is an option."""


def _missing_position(error: MissingArgumentError) -> str:
    """Returns the name of a missing positional argument, e.g. "FILE"; "" for an option."""
    argument = error.argument
    if argument is None or argument.index is None:  # an option has no index
        return ""
    return argument.names[0].lstrip("-").upper()


@options_as_typed()
def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; an expected error is printed as one line.

    Args:
        argv: the arguments after `lmdiag`; None for those of the process.
    """
    from lmdiag.files.secrets import redact_output

    argv = list(sys.argv[1:] if argv is None else argv)
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    try:
        command, arguments = parse(argv)
        for text in argv:
            # Python has surrogates in place of bytes that are not UTF-8
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadInput(f"the argument {text!r} is not valid UTF-8: rename the file")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        redact_output()
        code = int(command(*arguments.args, **arguments.kwargs) or 0)
        sys.stdout.flush()
        return code
    except (CycloptsError, BadInput, OSError, KeyboardInterrupt) as error:
        state = _AFTER_INTERRUPTION.get(name, "nothing was written")
        return report_error(error, name, state)
    except (MemoryError, ImportError) as error:
        if not lacks_memory(error):
            raise
        return report_error(MemoryError(), name, "")


def lacks_memory(error: BaseException) -> bool:
    """Returns whether an error says that there is not enough memory.

    An import of a library in C has an `ImportError` then, with a message of the system.
    """
    messages = ("failed to map segment", "cannot map zero-fill", "cannot allocate memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in messages)


class TypedCommand(App):
    """The command that was typed; its help shows the most used options, if it has many.

    Attributes:
        help_group: what was typed after `--help`: the name of a group of options, or "all"; "" for
            the most used options and the names of the others by group.
    """

    help_group = "all"

    def assemble_argument_collection(self, **options: Any) -> ArgumentCollection:
        """Returns the arguments of the command, each with the group in which the help shows it.

        cyclopts calls this method to parse the command line and to print the help. Of a command in
        `MOST_USED`, the positional arguments and the most used options move into the group "Most
        used", and the help hides the arguments of all groups but `help_group`.
        """
        arguments = super().assemble_argument_collection(**options)
        most_used_names = {f"--{name}" for name in MOST_USED.get(self.name[0], "").split()}
        if not most_used_names:  # a command with few options: the help shows them all
            return arguments
        most_used = Parameter(group=Group("Most used", sort_key=0))
        hidden = Parameter(show=False)
        for argument in arguments:
            is_positional = argument.index is not None
            if is_positional or most_used_names & {*argument.names}:
                argument.parameter = Parameter.combine(argument.parameter, most_used)
            # `_group_of` reads the group that was set above
            if self.help_group != "all" and self.help_group != _group_of(argument):
                argument.parameter = Parameter.combine(argument.parameter, hidden)
        return arguments

    def show_group(self, typed: str) -> None:
        """Makes the help show one group of options; `BadInput` if there is no such group.

        Args:
            typed: what was typed after `--help`: the name of a group, "all" for all options, or ""
                for the most used ones, below which the help lists the others by group.
        """
        groups = dict[str, list[str]]()
        for argument in self.assemble_argument_collection():
            if argument.names and argument.show:
                groups.setdefault(_group_of(argument), []).append(argument.names[0])
        groups.pop("", None)  # the most used ones, which need no name after `--help`
        name = self.name[0]
        if name not in MOST_USED or typed == "all":
            return  # `help_group` stays "all"
        if typed and typed not in groups:
            choices = ", ".join((*groups, "all"))
            raise BadInput(
                f"lmdiag {name} has no group of options {typed}{suggest(typed, groups)}: choose "
                f"from {choices}"
            )
        self.help_group = typed
        if not typed:
            lines = [f"- {group}: {', '.join(options)}" for group, options in groups.items()]
            help_command = f"lmdiag {name} --help"
            heading = (
                f"Further options (`{help_command} GROUP` shows a group, `{help_command} all` "
                "everything):"
            )
            self.help_epilogue = "\n".join([heading, "", *lines])


def _group_of(argument: Argument) -> str:
    """Returns what is typed after `--help` to see the group of an option, e.g. "table".

    It is "" for the group "Most used".
    """
    # one group or several, of which the last one set counts
    groups = argument.parameter.group
    groups = groups if isinstance(groups, tuple) else (groups,)
    last_group = groups[-1]
    title = last_group.name if isinstance(last_group, Group) else ""
    return SECTIONS.get(title, "others")


def _without_help_group(argv: Sequence[str]) -> tuple[Sequence[str], str]:
    """Returns the arguments up to `--help`, and the name of a group that is typed after it.

    ["run", "--help", "table"] gives ["run", "--help"] and "table". Without a command or `--help`,
    the arguments are all returned, with the group "all".
    """
    help_positions = [i for i, word in enumerate(argv) if word in ("--help", "-h")]
    if not help_positions or not argv or argv[0] not in COMMANDS:
        return argv, "all"
    end = help_positions[0] + 1
    return argv[:end], " ".join(argv[end:]).lower()


def parse(argv: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Returns the function to call and its arguments: that of a command, or one that prints help.

    Only the module of the command that was typed is imported; the other commands have their name
    and their line of help. Raises the errors of cyclopts, and `BadInput` without a command.
    """
    if not argv:
        raise BadInput(f"which command? choose from {', '.join(COMMANDS)}; see `lmdiag --help`")
    is_help = not {"--help", "-h"}.isdisjoint(argv)
    argv, help_group = _without_help_group(argv)
    app = App(
        name="lmdiag",
        version=__version__,
        help="Psycholinguistic diagnostics for masked, causal and encoder-decoder language models.",
        help_format="markdown",
        # Lists take all values that follow; flags have no --no-FLAG.
        default_parameter=Parameter(
            consume_multiple=(1, None), negative=(), show_default=_default_text
        ),
    )
    for name, (module, summary) in COMMANDS.items():
        help_line = f"{summary[0].upper()}{summary[1:]}."
        if name != argv[0]:
            app.command(f"lmdiag.cli.{module}:{name}_command", name=name, help=help_line)
            continue
        command = getattr(import_module(f"lmdiag.cli.{module}"), f"{name}_command")
        typed_command = TypedCommand(name=name, help=help_line, default_command=command)
        app.command(typed_command)
        if is_help:
            typed_command.show_group(help_group)
    function, arguments, _ = app.parse_args(argv, exit_on_error=False, print_error=False)
    return function, arguments


def _default_text(default: Any) -> str | None:
    """Returns the text of a default value in the help; None if the help shows no default.

    >>> _default_text((1, 5)), _default_text(False)
    ('1 5', None)
    """
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    return None if default is None or default is False or default == "" else str(default)


def say(message: str) -> None:
    """Prints a message as one line on standard error, without secrets.

    Invisible characters are spelled out.
    """
    from lmdiag.files.secrets import without_secrets
    from lmdiag.text import visible

    line = visible(" ".join(without_secrets(message).split()))
    print(line, file=sys.stderr, flush=True)


def report_error(error: BaseException, command: str, state: str) -> int:
    """Prints one line for what ended a command, and returns the exit code.

    If a launcher started several processes and all have the same error, only the first one prints
    it, and the others return 0. Otherwise the launcher would terminate all processes as soon as one
    fails, maybe before the first one has printed.

    Args:
        error: what ended the command.
        command: the command that was typed; "" for none.
        state: what an interrupted command leaves, and how to continue.
    """
    is_first_process = os.environ.get("RANK", "0") == "0"
    if isinstance(error, KeyboardInterrupt):
        code = _exit_code(error)
        if is_first_process:
            below = "\n" if sys.stderr.isatty() else ""  # the terminal shows ^C on the line before
            what = "terminated" if code == TERMINATED else "interrupted"
            print(f"{below}lmdiag: {what}; {state}", file=sys.stderr, flush=True)
        return code
    if isinstance(error, OSError):
        _flush_or_drop_output()
        if isinstance(error, BrokenPipeError):
            return CLOSED
    if isinstance(error, CycloptsError | SharedError) and not is_first_process:
        return 0
    say(f"lmdiag: error: {_error_message(error, command)}")
    return ERROR


def _flush_or_drop_output() -> None:
    """Writes what was printed, or drops it if it cannot be written.

    It cannot be written if the reader has closed the pipe, as in `lmdiag report RUN | head -1`, or
    the disk is full. Python would try again when it exits, and print a second error.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _error_message(error: BaseException, command: str) -> str:
    """Returns what is wrong and what to do, for an error that ended a command."""
    if isinstance(error, MemoryError):
        remedy = "close other programs or raise the limit (ulimit -v, ulimit -d), and run again"
        return f"not enough memory; what was saved is kept: {remedy}"
    if isinstance(error, OSError) and error.errno is not None:
        file = f" ({error.filename})" if error.filename else ""
        problem = f"{file}: {(error.strerror or str(error)).lower()}"
        if error.errno in _FULL_DISK | _PROTECTED_PATH:
            remedy = "make room or choose another place, and run again"
            return f"cannot write{problem}; what was saved is kept: {remedy}"
        return f"cannot read or write{problem}"
    if isinstance(error, CycloptsError):
        every = " all" if command in MOST_USED else ""  # `--help` alone shows ten options
        typed = f"lmdiag {command}".strip()
        return f"{_usage_message(error, command)} See `{typed} --help{every}`."
    return str(error)


def _usage_message(error: CycloptsError, command: str) -> str:
    """Returns what is wrong with the arguments that were typed, and what to type."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        problem = f"one argument too many: {error.unused_tokens[0]!r}"
        if command == "score":
            return f"{problem}; give the table of items by --data."
        if command in _TAKE_ONE_FILE:
            return f"{problem}; give one file, before the options."
        return f"{problem}; repeat the option or command for several."
    if isinstance(error, MissingArgumentError):
        name = _missing_position(error)
        if name:
            return f"{name} is missing: write it before the options, lmdiag {command} {name}."
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        remedy = remedy_for_removed(option, command)
        if remedy:
            return f"there is no option {option}: {remedy}."
    return str(error)
