"""The argument parser of all commands: errors of one line, with a suggestion for misspelt names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from lmdiag.cli.exits import fail
from lmdiag.suggestions import suggest


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with short errors; subparsers are of this class, too.

    An error is one line, which names `--help`; the exit code is 2. Options cannot be
    abbreviated: an abbreviation in a script would change its meaning when an option is added.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False} | options)

    def error(self, message: str) -> NoReturn:
        """Prints one line, without the usage, and exits with code 2."""
        self.exit(fail(f"{message}; see `{self.prog} --help`", code=2, shared=True))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown options first: argparse would rather report what they leave missing."""
        if args is not None:
            for option in self._options_in(args):
                if option not in self._option_string_actions:
                    close = suggest(option, self._option_string_actions)
                    self.error(f"there is no option {option}{close}")
        return super().parse_known_args(args, namespace)

    def _options_in(self, args: Sequence[str]) -> Iterator[str]:
        """Yields the options of this parser; those of a subcommand come after its name."""
        for arg in args:
            if arg == "--" or (self._subparsers is not None and not arg.startswith("-")):
                return
            if arg.startswith("--") or (arg.startswith("-") and arg[1:2].isalpha()):
                yield arg.partition("=")[0]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is not among the choices, and names the closest one."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}{suggest(str(value), choices)}; "
                f"choose from {', '.join(choices)}",
            )
