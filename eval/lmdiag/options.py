"""Options that functions of the Python API and commands share, and signatures that show them.

A record declares each option once: its type, its default and its text. Commands have the fields of
records as options, and functions take them as keywords: `with_fields` writes them into the
signature and the docstring. Type checkers need the names once more, in a `TypedDict`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast, get_type_hints

from lmdiag.text import suggest
from lmdiag.types import BadInput, Options, field_types

Function = TypeVar("Function", bound=Callable[..., Any])
_Record = TypeVar("_Record", bound=Options)


# ---- records of options --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Batching(Options):
    """How answers are computed.

    Attributes:
        batch_size: contexts or sentences per batch (default: auto, as many as suit the device)
        quiet: do not show progress
    """

    batch_size: int | None = None
    quiet: bool = True

    def __post_init__(self) -> None:
        """Refuses a batch size below 1."""
        check_whole(1, batch_size=self.batch_size)


@dataclass(frozen=True, kw_only=True)
class Asking(Batching):
    """How answers are computed and where they are kept.

    Attributes:
        output: directory that keeps results and models' answers: what was interrupted resumes
    """

    output: Path | None = None

    def __post_init__(self) -> None:
        """Turns a text into a path, and refuses one that is not a file name."""
        super().__post_init__()
        if self.output is None:
            return
        if "\0" in str(self.output):
            raise BadInput(
                f"output: {str(self.output)!r} is not a file name: it has a NUL character"
            )
        object.__setattr__(self, "output", Path(self.output))  # the record is frozen


@dataclass(frozen=True, kw_only=True)
class Recording(Asking):
    """The same for runs, which are always kept."""

    output: Path = Path("results")


@dataclass(frozen=True, kw_only=True)
class Running(Recording):
    """How runs proceed, and where their results go.

    Attributes:
        overwrite: discard an earlier run of the same model and protocol
    """

    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class Seeded(Options):
    """What is drawn at random.

    Attributes:
        seed: random seed of shuffles and samples, or of the signs and permutations of tests
    """

    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RowOptions(Seeded):
    """Which rows of a task are read.

    Attributes:
        limit: a sample of N rows of each task, even over its break-downs
        allow_duplicates: keep one of identical rows of own data, instead of an error
    """

    limit: int | None = None
    allow_duplicates: bool = False

    def __post_init__(self) -> None:
        """Refuses a limit below 1."""
        check_whole(1, limit=self.limit)


@dataclass(frozen=True, kw_only=True)
class DataOptions(RowOptions):
    """What of a data set is asked of every model.

    Attributes:
        tasks: configs of the data set to run (default: the three diagnostics)
        perturb: settings beside the unperturbed one: shuf, trunc, shuf_trunc, obj, sub, both, or
            all (default: none)
        shuffles: number of shuffles of shuf and shuf_trunc
        verbs: csv file of singular,plural verb forms for EW and MW (default: the data set's)
    """

    tasks: tuple[str, ...] = ()
    perturb: tuple[str, ...] = ()
    shuffles: int = 100
    verbs: str | None = None

    def __post_init__(self) -> None:
        """Refuses a limit or a number of shuffles below 1."""
        super().__post_init__()
        check_whole(1, shuffles=self.shuffles)


@dataclass(frozen=True, kw_only=True)
class LayerOptions(Options):
    """After which layers models answer.

    Attributes:
        layers: layers after which the models answer: all, or numbers, 0 for the input of the first
            layer, which are read in one pass (default: the last layer)
    """

    layers: tuple[str, ...] = ()


# ---- the same as keywords, for type checkers -----------------------------------------------------


class BatchingKeywords(TypedDict, total=False):
    """The fields of `Batching`, as keywords of Python."""

    batch_size: int | None
    quiet: bool


class AskingKeywords(BatchingKeywords, total=False):
    """The fields of `Asking`, as keywords of Python."""

    output: str | Path | None


class RecordingKeywords(BatchingKeywords, total=False):
    """The fields of `Recording`, as keywords of Python."""

    output: str | Path


class RunningKeywords(RecordingKeywords, total=False):
    """The fields of `Running`, as keywords of Python."""

    overwrite: bool


class SeedKeywords(TypedDict, total=False):
    """The fields of `Seeded`, as keywords of Python."""

    seed: int


class RowKeywords(SeedKeywords, total=False):
    """The fields of `RowOptions`, as keywords of Python."""

    limit: int | None
    allow_duplicates: bool


class DataKeywords(RowKeywords, total=False):
    """The fields of `DataOptions`, as keywords of Python."""

    tasks: str | Sequence[str]
    perturb: str | Sequence[str]
    shuffles: int
    verbs: str | None


class LayerKeywords(TypedDict, total=False):
    """The fields of `LayerOptions`, as keywords of Python."""

    layers: str | Sequence[int | str]


# ---- functions that take them --------------------------------------------------------------------


def check_whole(least: int, **values: object) -> None:
    """Raises `BadInput` for a value that is not a whole number from `least` up; None is allowed.

    Args:
        least: the smallest number that is allowed.
        values: name in the message -> value, as `check_whole(1, limit=5)`.
    """
    for name, value in values.items():
        if value is None:
            continue
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_whole or cast("int", value) < least:
            raise BadInput(f"{name} must be a whole number from {least} up, not {value!r:.60}")


def check_names(function: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
    """Raises `BadInput` for a keyword that a function does not have; it names a similar one."""
    names = inspect.signature(function).parameters
    for name in keywords:
        if name not in names:
            choices = ", ".join(names)
            raise BadInput(f"unknown option {name!r}{suggest(name, names)}: choose from {choices}")


def pop_options(record: type[_Record], keywords: dict[str, Any]) -> _Record:
    """Removes the fields of a record from `keywords` and returns the record that they fill.

    >>> keywords = {"seed": 1, "name": "mine"}
    >>> pop_options(Seeded, keywords), keywords
    (Seeded(seed=1), {'name': 'mine'})
    """
    names = keywords.keys() & record.__dataclass_fields__.keys()
    return record.of({name: keywords.pop(name) for name in names})


def with_fields(*records: type, keywords: type | None = None) -> Callable[[Function], Function]:
    """Names the fields of records in the signature of a function that takes them as `**options`.

    `help` and the completion of notebooks then show them with types and defaults, and the texts of
    the `Attributes` of the records at the end of the arguments. A keyword that the function
    declares itself is not repeated.

    Args:
        records: whose fields are keywords.
        keywords: a `TypedDict` with the types that the function takes, where they are more than
            those of the fields.

    >>> from lmdiag.types import DesignOptions
    >>> @with_fields(DesignOptions)
    ... def analyse(table, *, by="item", **design):
    ...     return by
    >>> list(inspect.signature(analyse).parameters)
    ['table', 'by', 'conditions', 'item', 'region', 'levels', 'coding']
    """

    wider_types = get_type_hints(keywords) if keywords else {}

    def decorate(function: Function) -> Function:
        """Adds the fields to the signature and the docstring of a function."""
        signature = inspect.signature(function)
        parameters = {
            parameter.name: parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        entries = []
        for record in records:
            for name, entry in field_texts(record).items():
                if name not in parameters:
                    entries.append(entry)
            for parameter in _field_parameters(record, wider_types):
                parameters.setdefault(parameter.name, parameter)
        full_signature = signature.replace(parameters=[*parameters.values()])
        function.__signature__ = full_signature  # type: ignore[attr-defined]
        if function.__doc__ and entries:
            function.__doc__ = _with_arguments(function.__doc__, entries)
        return function

    return decorate


def _field_parameters(record: type, wider_types: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Returns each field of a record as a keyword parameter, with its default and type.

    `wider_types` (field -> type) take the place of the types of the record.
    """
    types = {**field_types(record), **wider_types}
    parameters = []
    for field in fields(record):
        # a path as text, since help would show it as PosixPath('results')
        default = str(field.default) if isinstance(field.default, Path) else field.default
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=types[field.name],
            )
        )
    return parameters


def _with_arguments(docstring: str, entries: Iterable[str]) -> str:
    """Returns a docstring with further entries at the end of its `Args`.

    Args:
        docstring: has a section `Args`, and maybe sections after it.
        entries: for example "seed: of the shuffles.".
    """
    # the sections after `Args` begin after an empty line
    description, heading, after_heading = inspect.cleandoc(docstring).partition("\nArgs:\n")
    arguments, empty_line, sections = after_heading.partition("\n\n")
    further_lines = "".join(f"\n    {entry}" for entry in entries)
    return f"{description}{heading}{arguments}{further_lines}{empty_line}{sections}"


def field_texts(record: type) -> dict[str, str]:
    """Returns field -> its entry in the `Attributes` of a record, or of one that it extends.

    >>> field_texts(Running)["overwrite"]
    'overwrite: discard an earlier run of the same model and protocol.'
    """
    texts = {}
    for part in reversed(record.__mro__):  # the record itself, whose entries count, comes last
        docstring = inspect.cleandoc(vars(part).get("__doc__") or "")
        _, _, attributes = docstring.partition("Attributes:\n")
        entries, _, _ = attributes.partition("\n\n")
        for entry in re.split(r"\n(?=    \w)", f"\n{entries}"):  # further lines are indented more
            name = re.match(r"\s*(\w+):", entry)
            if name:
                texts[name[1]] = f"{entry.strip().removesuffix('.')}."
    return texts
