"""What the options of several commands share: types, records, and checks of files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

import lmdiag
from lmdiag import options
from lmdiag.asking.protocol import (
    Protocol,
    QueryOptions,
    ScoringOptions,
    checked_ranks,
    checked_threshold,
)
from lmdiag.asking.training_steps import training_step
from lmdiag.cli import SECTIONS, say
from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import (
    exists,
    has_file,
    is_file,
    is_folder,
    near_path,
    read_text,
    user_path,
)
from lmdiag.models.loading.load_options import Loading, Serving
from lmdiag.report.formats import ENDINGS, FORMATS, Printed, format_of
from lmdiag.text import first_few, visible
from lmdiag.types import BadInput, TableOptions

if TYPE_CHECKING:
    from lmdiag.api import LanguageModel
    from lmdiag.results import Run

_Options = TypeVar("_Options")

RECORD = Parameter(name="*")
"""Marks a record whose fields are options of a command."""

_LONGEST_NAME = 100
"""Characters of a name of a model, of which folders and files are made."""


def group(title: str) -> Group:
    """Returns the group of options below a title in the help."""
    return Group(title, sort_key=[*SECTIONS].index(title))


def section(title: str) -> Parameter:
    """Returns the mark of a record whose options stand below a title in the help."""
    return Parameter(name="*", group=group(title))


TABLE = section("Reading a table of your own")
DESIGN = section("Design of own data")
OUTPUT = section("Output")


def _whole(kind: Any, tokens: Sequence[Token], least: int | None = 1) -> Any:
    """Reads whole numbers from `least` up; cyclopts alone would take 1.5 for 2."""
    texts = [token.value for token in tokens]
    for text in texts:
        if not re.fullmatch(r"-?\d+", text) or (least is not None and int(text) < least):
            bound = "" if least is None else f" of at least {least}"
            raise ValueError(f"must be a whole number{bound}, not {text!r}")
    return tuple(map(int, texts)) if get_origin(kind) is tuple else int(texts[0])


def _batch_size(kind: Any, tokens: Sequence[Token]) -> int | None:
    """Reads a whole number from 1 up; None for "auto"."""
    return None if tokens[0].value == "auto" else _whole(kind, tokens)


WHOLE = Parameter(converter=_whole)
Count = Annotated[int, WHOLE]
Ranks = Annotated[tuple[int, ...], Parameter(converter=_whole)]
Numbers = Annotated[tuple[int, ...], Parameter(converter=partial(_whole, least=0))]
Names = Annotated[
    tuple[str, ...],
    Parameter(converter=lambda _, tokens: tuple(",".join(t.value for t in tokens).split(","))),
]
DataOfRuns = Annotated[
    str | None,
    Parameter(
        help="data set of the runs, if it has been moved since, or its id on the Hub (default: the "
        "one they were made on)"
    ),
]
Overwrite = Annotated[bool, Parameter(help="replace existing files")]
Json = Annotated[bool, Parameter(name="--json", help="print one JSON document, nothing else")]


DATA = "lmdiag"
"""The data set unless another is named."""
DataSet = Annotated[
    str,
    Parameter(
        help="file of your own rows; or another data set: a built directory, a Hub id (ID@REVISION "
        "for a branch, tag or commit), an extended set (ROLE-1500.txt), demo (default: the "
        "directory lmdiag, or the published items, which are built on first use)",
        group=group("Data"),
        show_default=False,
    ),
]
Width = Annotated[float, Parameter(validator=Number(gte=4, lte=60))]


_FRAMES = {name for name, format in FORMATS.items() if format.has == "frame"}
"""Formats that have figures alone."""


@dataclass(frozen=True, kw_only=True)
class Showing:
    """How a result is shown: printed, and written into files."""

    out: Annotated[
        tuple[Path, ...],
        Parameter(
            help=f"files to write; the ending is the format: {ENDINGS}; "
            "a name without an ending: a folder for every chart"
        ),
    ] = ()
    format: Printed | None = None
    """what is printed (default: text)"""
    json: Json = False
    width: Width = 8.0
    """width of LaTeX tables and charts in cm: 8 fits one column, 17 two"""
    overwrite: Overwrite = False

    @property
    def printed(self) -> Printed | None:
        """The format that is asked for by either option."""
        return "json" if self.json else self.format

    def check(self) -> None:
        """Refuses files that cannot be written, before anything is computed."""
        if self.json and self.format not in (None, "json"):
            raise BadInput("--json is --format json: leave one of them out")
        for file in self.out:
            if format_of(file):
                check_new_file(file, (file.suffix,), overwrite=self.overwrite)

    @property
    def formats(self) -> set[str]:
        """The formats that are written or printed, "" for a folder of charts."""
        return {*map(format_of, self.out), *([self.printed] if self.printed else ())}

    def show(self, result: object, *, prints: bool = True) -> None:
        """Writes a result into the files, and prints it if `prints`.

        What was read of a user's own table stands at the head, on standard error.
        """
        from lmdiag.report import formats
        from lmdiag.report.display import output_of
        from lmdiag.report.formats.terminal import print_output
        from lmdiag.report.output import Output

        for line in getattr(result, "reads", ()):
            say(f"lmdiag: {line}")

        output = result if isinstance(result, Output) else output_of(result)
        if self.formats & _FRAMES and output.frame().empty:  # what says why, they do not have
            for line in output.findings:
                say(f"lmdiag: {line}")
        tell = say if prints else print
        for file in self.out:
            paths = formats.write_files(output, [file], self.width)
            if format_of(file):
                for path in paths:
                    tell(f"Saved in {visible(str(path))}")
            else:
                n_charts = len({path.stem for path in paths})
                tell(f"Saved {n_charts} charts in {visible(str(file))}")
        if not prints:
            return
        if self.printed in (None, "text"):
            print_output(output)
        else:
            sys.stdout.write(formats.printed(output, self.printed, self.width))


def with_parameters(**parameters: Parameter) -> Callable[[type[_Options]], type[_Options]]:
    """Decorates a record with what commands need for fields, also for those that it extends."""

    def decorate(record: type[_Options]) -> type[_Options]:
        types = get_type_hints(record, include_extras=True)
        record.__annotations__ |= {
            name: Annotated[types[name], parameter] for name, parameter in parameters.items()
        }
        return record

    return decorate


def with_inherited_types(record: type[_Options]) -> type[_Options]:
    """Decorates a record that extends others, whose types cyclopts would look up in this module."""
    record.__annotations__ |= get_type_hints(record, include_extras=True)
    return record


def hides(*names: str) -> Callable[[type[_Options]], type[_Options]]:
    """Decorates a record of which a command does not offer some fields of the record it extends.

    The command has no use for them, or has them in its own form.
    """
    return with_parameters(**dict.fromkeys(names, Parameter(parse=False)))


@dataclass(frozen=True, kw_only=True)
class ShowingWide(Showing):
    """The same for tables with long rows."""

    width: Width = 17.0


@dataclass(frozen=True, kw_only=True)
@hides("overwrite")
class ShowingAnew(Showing):
    """The same where earlier files are replaced."""

    overwrite: bool = True


@dataclass(frozen=True, kw_only=True)
@hides("gap", "separator", "critical", "keep_case", "language")
class TablesOfItems(TableOptions):
    """How tables with a row per item and condition are read."""


@dataclass(frozen=True, kw_only=True)
@hides("good", "contrast", "separator", "critical", "language")
class TablesOfResponses(TableOptions):
    """How tables of people's responses at a gap are read."""


@dataclass(frozen=True, kw_only=True)
@hides("columns", "good", "contrast", "gap", "critical", "keep_case", "language")
class TablesOfTexts(TableOptions):
    """How tables of texts are read."""


@dataclass(frozen=True, kw_only=True)
@hides("filter", "good", "contrast", "gap", "separator", "critical", "keep_case", "language")
class TablesOfWords(TableOptions):
    """How tables with a row per word are read."""


@dataclass(frozen=True, kw_only=True)
@hides("layer")
@with_inherited_types
class QueryOfLayers(options.LayerOptions, QueryOptions):
    """How models are asked, after several layers."""


@dataclass(frozen=True, kw_only=True)
@hides("layer")
@with_inherited_types
class SentenceScoring(options.LayerOptions, ScoringOptions):
    """What a probability of whole sentences is about, after several layers."""


class RequestedModel(NamedTuple):
    """A model that a command runs: its id, its revision, and what it is called."""

    id: str
    revision: str | None
    name: str | None


@dataclass(frozen=True, kw_only=True)
class Models:
    """The options that name models."""

    model: tuple[str, ...] = ()
    """one or several models: Hub ids, local folders, demo:masked, demo:causal; frequency:en, word
    frequency in a language; ngram:FILE, an n-gram model; @FILE: those of a file with one per line,
    and optionally its revision after a space; # begins a comment"""
    revision: tuple[str, ...] = ()
    """branches, tags or commits of each model; a pattern, e.g. `'step*'`, stands for all that match
    it, in the order of their steps"""
    name: tuple[str, ...] = ()
    """name of each model in folders and tables (default: its id or folder)"""

    def requested(self, output: Path, data: str) -> list[RequestedModel]:
        """Returns the model of every run.

        `BadInput` if two of them would have one folder, or none is named.

        Args:
            output: the folder of all runs.
            data: the data set, which may be meant as a model.
        """
        from lmdiag.results import model_slug

        if not self.model:
            raise BadInput(_without_model(data))
        models = [
            (model, revisions_of(model, self.revision) if revision is None else (revision,))
            for model, revision in named_models(self.model, self.revision)
        ]
        names = self.name or (None,) * len(models)
        if len(names) != len(models) or "" in names:
            counts = f"{len(names)} for {len(models)} models"
            raise BadInput(f"--name: expected one name per model, none of them empty, got {counts}")
        if (longest := max((len(name or "") for name in names), default=0)) > _LONGEST_NAME:
            problem = f"a name has {longest:,} characters; give at most {_LONGEST_NAME}"
            raise BadInput(f"--name: {problem}, since folders are called so")
        requested = []
        owners = dict[str, str]()
        for (model, revisions), name in zip(models, names, strict=True):
            for revision in revisions:
                slug = model_slug(model, revision, name)
                other = owners.setdefault(slug, model)
                if other != model:
                    raise BadInput(
                        f"the results of {other} and {model} would share the folder "
                        f"{output / slug}: give each model a name of its own with --name"
                    )
                requested.append(RequestedModel(model, revision, name))
        return requested


def _without_model(data: str) -> str:
    """Returns the message for a command without --model, whose data set may be meant as one."""
    if data == DATA or exists(user_path(data)):
        return "name a model: --model MODEL, or --model @FILE"
    near = near_path(user_path(data))
    remedy = f"if it is the model, write --model {data}, else add a --model"
    return f"there is no file {data}{near}: {remedy}"


def read_models(file: str) -> list[tuple[str, str | None]]:
    """Returns the models and revisions of a file, none of them twice; errors name the line.

    A line has a model and optionally a revision; `#` at the beginning of a word begins a comment.
    """
    lines: dict[tuple[str, str | None], int] = {}
    for number, line in enumerate(read_text(user_path(file)).split("\n"), start=1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if len(words) > 2:
            raise BadInput(
                f"{file}:{number}: expected a model and optionally a revision, got {len(words)} "
                "words (a folder with a space in its name: give it with --model)"
            )
        if words:
            entry = words[0], words[1] if len(words) == 2 else None
            earlier = lines.setdefault(entry, number)
            if earlier != number:
                raise BadInput(f"{file}:{number}: repeats line {earlier}: remove one of them")
    if not lines:
        raise BadInput(f"{file} names no model: write one model per line")
    return [*lines]


def named_models(
    models: Sequence[str], revisions: Sequence[str] = ()
) -> list[tuple[str, str | None]]:
    """Returns the models that are named, each `@FILE` as those of the file, with its revisions.

    `BadInput` if a model of a file has a revision and further `revisions` are given.
    """
    entries = list[tuple[str, str | None]]()
    for name in models:
        if has_file(user_path(name)) or name == "demo":
            where = "write it before the options, as in `lmdiag run items.csv --model gpt2`"
            raise BadInput(f"--model: {name} is data, not a model: {where}")
        listed = read_models(name[1:]) if name.startswith("@") else [(name, None)]
        if revisions and any(revision for _, revision in listed):
            raise BadInput(f"{name} has revisions of its own: leave --revision out")
        entries += listed
    return entries


def revisions_of(model: str, revisions: Sequence[str]) -> list[str | None]:
    """Returns the revisions that are named, of patterns those that match; None without any."""
    names = list[str | None]()
    for revision in revisions:
        is_pattern = re.search(r"[*?\[]", revision)
        names += matching_revisions(model, revision) if is_pattern else [revision]
    return names or [None]


def matching_revisions(model: str, pattern: str) -> list[str]:
    """Returns the branches and tags of a model that match a pattern, in order of their steps."""
    if is_folder(user_path(model)) or model.startswith("demo:"):
        raise BadInput(f"--revision: {model} is not a model on the Hub, so it has no branches")
    from huggingface_hub import HfApi

    with plain_errors(f"cannot list the revisions of model {model}"):
        refs = HfApi().list_repo_refs(model)
    names = sorted(
        {ref.name for ref in (*refs.branches, *refs.tags)},
        key=lambda name: (training_step(name) or 0, name),
    )
    if matches := [name for name in names if fnmatchcase(name, pattern)]:
        return matches
    raise BadInput(
        f"--revision: model {model} has no branch or tag that matches {pattern!r}; it has "
        f"{first_few(names, 8)}"
    )


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The options of the measures."""

    k: Ranks = ()
    """ranks k of accuracy@k (default: 1 5)"""
    threshold: float | None = None
    """probability difference P of sensitivity@P (default: 0.01)"""

    def of(self, protocol: Protocol) -> Protocol:
        """Returns the protocol with the ranks and the threshold that were given."""
        k = checked_ranks(self.k) if self.k else protocol.k
        threshold = protocol.threshold if self.threshold is None else self.threshold
        return replace(protocol, k=k, threshold=checked_threshold(threshold))


@dataclass(frozen=True, kw_only=True)
@with_parameters(batch_size=Parameter(converter=_batch_size))
class CommandBatching(options.Batching):
    """How answers are computed."""

    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class CommandRecording(CommandBatching, options.Recording):
    """How answers are computed, and where they are kept."""


@dataclass(frozen=True, kw_only=True)
@with_parameters(seed=Parameter(converter=partial(_whole, least=None)))
class CommandSeed(options.Seeded):
    """What is drawn at random."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How models read whole sentences."""

    revision: str | None = None
    """branch, tag or commit of the model"""
    scoring: Annotated[SentenceScoring, section("Scoring")] = SentenceScoring()
    loading: Annotated[Loading, section("Loading the model")] = Loading()
    serving: Annotated[Serving, section("A model behind a server")] = Serving()

    def loaded(self, models: Sequence[str], **options: Any) -> Iterator[LanguageModel]:
        """Yields models, each loaded when its turn comes, with further options of `load_model`."""
        records = vars(self.scoring) | vars(self.loading) | vars(self.serving)
        del records["layers"]
        return loaded_models(models, self.revision, **records, **options)


def loaded_models(
    models: Sequence[str], revision: str | None, **options: Any
) -> Iterator[LanguageModel]:
    """Yields the models that are named, each loaded when its turn comes; see `named_models`."""
    for model, own_revision in named_models(models, [revision] if revision else []):
        yield lmdiag.load_model(model, revision=own_revision or revision, **options)


def runs_in(paths: Sequence[Path], data: str | None) -> list[Run]:
    """Returns the runs in run directories and in folders of them."""
    from lmdiag.results import load_runs

    return load_runs(finished_runs(paths), data)


def finished_runs(paths: Sequence[Path]) -> list[Path]:
    """Returns the run directories in paths, see `run_folders`, and prints what is left out.

    Runs that failed have a line each. Those that are not finished have one line together, if a
    finished one was found inside a folder; else their folder is among what is returned.
    """
    from lmdiag.results import HOW_TO_CONTINUE, failures, run_folders, unfinished_runs

    folders = run_folders(paths)
    unfinished = [path for path in unfinished_runs(paths) if path not in folders]
    found_inside = {*folders} - {*paths}
    if unfinished and found_inside:
        names = first_few([*map(str, unfinished)])
        say(f"lmdiag: left out, not finished: {names}; {HOW_TO_CONTINUE}")
    for line in failures(paths):
        say(f"lmdiag: left out, failed: {line}")
    return folders


def text_or_file(text: str) -> str:
    """Returns a text, or the content of the file of that name, without its last end of line."""
    path = user_path(text)
    return read_text(path).removesuffix("\n") if is_file(path) else text


def check_new_file(file: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Refuses a file that a command cannot write or must not replace, or of another suffix."""
    if file.suffix not in suffixes:
        raise BadInput(f"{file}: the file name must end in {', '.join(suffixes)}")
    if file.exists() and not overwrite:
        raise BadInput(f"{file} exists already: choose another name, or add --overwrite")
    if not file.parent.is_dir():
        raise BadInput(f"no directory {file.parent}: make it first")
