"""The argument parser of all commands, and what several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

from lmdiag.cli.exits import fail
from lmdiag.models.loading.options import CHOICES, IN_FLIGHT, INSTRUCTION
from lmdiag.reading import is_file, read_text, user_path
from lmdiag.schema import BadInput, Protocol, checked_ranks, checked_threshold
from lmdiag.suggestions import suggest


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with short errors; subparsers are of this class, too.

    An error is one line, which names `--help` and the closest name; the exit code is 2. Options
    cannot be abbreviated: an abbreviation in a script would change its meaning when an option is
    added.
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
        for option in self._options_in(args or ()):
            if option not in self._option_string_actions:
                close = suggest(option, self._option_string_actions)
                self.error(f"there is no option {option}{close}")
        return super().parse_known_args(args, namespace)

    def _options_in(self, args: Sequence[str]) -> Iterator[str]:
        """Yields the options of this parser; the options of a subcommand follow its name."""
        for arg in args:
            if arg == "--" or (self._subparsers is not None and not arg.startswith("-")):
                return
            if arg.startswith("--") or (arg.startswith("-") and arg[1:2].isalpha()):
                yield arg.partition("=")[0]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is not among the choices."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}{suggest(str(value), choices)}; "
                f"choose from {', '.join(choices)}",
            )


def whole_number(text: str, least: int = 1) -> int:
    """Returns a whole number that is not below the least one."""
    if not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least {least}, not {text!r}"
        )
    return int(text)


def add_finished_run(parser: argparse.ArgumentParser) -> None:
    """Declares `RUN`."""
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of a finished run")


def add_data_of_runs(parser: argparse.ArgumentParser) -> None:
    """Declares `--data` of commands that read finished runs; `load_run` takes it."""
    parser.add_argument(
        "--data",
        help="data set of the runs, if it has been moved since, or its id on the Hub (default: the "
        "one they were made on)",
    )


def add_data_revision(parser: argparse._ActionsContainer) -> None:
    """Declares `--data-revision`."""
    parser.add_argument(
        "--data-revision", metavar="R", help="branch, tag or commit of the Hub data set"
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Declares `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document, nothing else")


def add_overwrite(parser: argparse._ActionsContainer) -> None:
    """Declares `--overwrite`."""
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")


def add_resamples(parser: argparse._ActionsContainer) -> None:
    """Declares `--resamples`."""
    parser.add_argument(
        "--resamples", type=whole_number, default=10_000, metavar="N",
        help="number of bootstrap resamples, where models are compared (default: %(default)s)",
    )  # fmt: skip


def add_dry_run(parser: argparse._ActionsContainer) -> None:
    """Declares `--dry-run`."""
    parser.add_argument(
        "--dry-run", action="store_true", help="list what would be sent, send nothing"
    )


def text_or_file(text: str) -> str:
    """Returns a text, or the content of the file of that name, without its last end of line."""
    path = user_path(text)
    return read_text(path).removesuffix("\n") if is_file(path) else text


def add_conventions(group: argparse._ActionsContainer) -> None:
    """Declares what a probability is about, in options named as the fields of `Protocol`."""
    group.add_argument(
        "--unit", choices=CHOICES["unit"], default="token",
        help="unit of the top-k list and of probabilities (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--bos", choices=CHOICES["bos"], default="auto",
        help="whether a causal model's context starts with the beginning-of-sequence token "
        "(default: auto, as the tokenizer does; for whole sentences, where it has one)",
    )  # fmt: skip
    group.add_argument(
        "--pll", choices=CHOICES["pll"], default="within-word",
        help="what a masked model does not see where it scores a token of a whole sentence: the "
        "token and the later ones of its word, or the token alone (default: %(default)s)",
    )  # fmt: skip


def add_framing(group: argparse._ActionsContainer) -> None:
    """Declares what stands around contexts, in options named as the fields of `Protocol`."""
    group.add_argument(
        "--prompt", type=text_or_file, default="", metavar="TEXT|FILE",
        help="text around every context, with {context} in it, or a file with such a text (causal "
        "models)",
    )  # fmt: skip
    group.add_argument(
        "--chat", action="store_true",
        help="make the context the beginning of the assistant's turn in the model's chat template",
    )  # fmt: skip
    group.add_argument(
        "--instruction", metavar="TEXT",
        help=f"with --chat, the user's turn before it (default: {INSTRUCTION!r})",
    )  # fmt: skip
    group.add_argument(
        "--final-period", choices=CHOICES["final_period"], default="always",
        help="whether a period ends a sentence whose blank is its last word (models that see both "
        "sides; default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--first-letter", choices=CHOICES["first_letter"], default="as-is",
        help="case of the first letter of every context (default: %(default)s)",
    )  # fmt: skip


def add_loading(group: argparse._ActionsContainer) -> None:
    """Declares how a model is loaded, in options named as the fields of `LoadOptions`."""
    group.add_argument(
        "--kind", choices=CHOICES["kind"], default="auto",
        help="kind of model (default: auto, from its configuration)",
    )  # fmt: skip
    group.add_argument(
        "--dtype", choices=CHOICES["dtype"], default="auto",
        help="data type of the weights (default: auto; float32 on CPUs)",
    )  # fmt: skip
    group.add_argument("--device-map", metavar="auto", help="spread a large model over all devices")
    group.add_argument(
        "--quantization", choices=CHOICES["quantization"],
        help="quantize the weights with bitsandbytes",
    )  # fmt: skip
    group.add_argument(
        "--attn-implementation", dest="attention", metavar="A",
        help="attention implementation, e.g. sdpa, eager, flash_attention_2",
    )  # fmt: skip
    group.add_argument(
        "--trust-remote-code", action="store_true",
        help="allow code from the model's repository to run",
    )  # fmt: skip
    group.add_argument(
        "--allow-pickle", action="store_true",
        help="allow weights in other formats than safetensors",
    )  # fmt: skip


def add_server(group: argparse._ActionsContainer) -> None:
    """Declares a model behind a server, in options named as the fields of `LoadOptions`."""
    group.add_argument(
        "--server", metavar="URL",
        help="ask the model with the name --model at an OpenAI-compatible completions endpoint, "
        "e.g. http://localhost:8000/v1; the key is read from LMDIAG_SERVER_KEY or OPENAI_API_KEY",
    )  # fmt: skip
    group.add_argument(
        "--tokenizer", metavar="ID",
        help="Hub id or folder of the tokenizer of the server's model (needed with --server)",
    )  # fmt: skip
    group.add_argument(
        "--in-flight", type=whole_number, metavar="N",
        help=f"requests to the server at the same time (default: {IN_FLIGHT})",
    )  # fmt: skip


def add_asking(group: argparse._ActionsContainer) -> None:
    """Declares `--batch-size` and `--quiet`."""
    group.add_argument(
        "--batch-size", type=lambda text: None if text == "auto" else whole_number(text),
        metavar="auto|N", help="contexts or sentences per batch (default: auto)",
    )  # fmt: skip
    group.add_argument("--quiet", action="store_true", help="do not show progress")


def add_scoring(parser: argparse._ActionsContainer) -> None:
    """Declares the options of the measures; `scored` reads them."""
    parser.add_argument(
        "--k", type=whole_number, nargs="+", help="ranks k of accuracy@k (default: 1 5)"
    )
    parser.add_argument(
        "--threshold", type=float, metavar="P",
        help="probability difference P of sensitivity@P (default: 0.01)",
    )  # fmt: skip


def check_new_file(file: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Refuses a file that a command cannot write or must not replace.

    Raises:
        BadInput: its name ends in none of the suffixes, it exists, or its directory does not.
    """
    if file.suffix not in suffixes:
        raise BadInput(f"{file}: the file name must end in {', '.join(suffixes)}")
    if file.exists() and not overwrite:
        raise BadInput(f"{file} exists already: choose another name, or add --overwrite")
    if not file.parent.is_dir():
        raise BadInput(f"no directory {file.parent}: make it first")


def scored(args: argparse.Namespace, protocol: Protocol) -> Protocol:
    """Returns the protocol with the ranks and the threshold that were given."""
    k = protocol.k if args.k is None else checked_ranks(args.k)
    threshold = protocol.threshold if args.threshold is None else args.threshold
    return replace(protocol, k=k, threshold=checked_threshold(threshold))


def fields_of(record: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments that were given and are named as fields of a dataclass."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    return {field.name: given[field.name] for field in fields(record) if field.name in given}
