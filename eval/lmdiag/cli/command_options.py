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
"""Marks a parameter that is a record; `name="*"` makes each of its fields an option."""

_LONGEST_NAME = 100
"""Characters of a name of a model, which is part of the names of folders and files."""


def group(title: str) -> Group:
    """Returns the group of options below a title of `SECTIONS` in the help, in their order."""
    return Group(title, sort_key=[*SECTIONS].index(title))


def section(title: str) -> Parameter:
    """Marks a parameter that is a record, whose fields are options below a title in the help.

    For example `running: Annotated[Running, section("Running")]`.
    """
    return Parameter(name="*", group=group(title))


TABLE = section("Reading a table of your own")
DESIGN = section("Design of own data")
OUTPUT = section("Output")


def _whole(kind: Any, tokens: Sequence[Token], least: int | None = 1) -> Any:
    """Returns the whole number, or the tuple of whole numbers, that was typed.

    cyclopts alone would read 1.5 as 2. A `ValueError` becomes a message of cyclopts.

    Args:
        kind: type of the parameter: int, or a tuple of several.
        tokens: what was typed.
        least: the smallest number that is allowed; None for any.
    """
    texts = [token.value for token in tokens]
    for text in texts:
        if not re.fullmatch(r"-?\d+", text) or (least is not None and int(text) < least):
            bound = "" if least is None else f" of at least {least}"
            raise ValueError(f"must be a whole number{bound}, not {text!r}")
    return tuple(map(int, texts)) if get_origin(kind) is tuple else int(texts[0])


def _batch_size(kind: Any, tokens: Sequence[Token]) -> int | None:
    """Returns the whole number from 1 up that was typed, or None for "auto"."""
    return None if tokens[0].value == "auto" else _whole(kind, tokens)


WHOLE = Parameter(converter=_whole)
Count = Annotated[int, WHOLE]
Ranks = Annotated[tuple[int, ...], Parameter(converter=_whole)]
Numbers = Annotated[tuple[int, ...], Parameter(converter=partial(_whole, least=0))]
Names = Annotated[
    tuple[str, ...],
    Parameter(converter=lambda _, tokens: tuple(",".join(t.value for t in tokens).split(","))),
]
"""Names that are separated by commas, spaces or both."""
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
"""Formats that have figures and no sentences."""


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
        """The format that is printed, by either option; None for text."""
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
        """Names of the formats that are written or printed; "" for a folder of charts.

        The text that is printed without an option does not count.
        """
        names = {format_of(file) for file in self.out}
        if self.printed:
            names.add(self.printed)
        return names

    def show(self, result: object, *, prints: bool = True) -> None:
        """Writes a result into the files of `out`, and prints it.

        What was read of a user's own table is printed first, on standard error.

        Args:
            result: a result of lmdiag, such as runs or an analysis, or its `Output`.
            prints: whether the result is printed; if not, the names of the files are.
        """
        from lmdiag.report import formats
        from lmdiag.report.display import output_of
        from lmdiag.report.formats.terminal import print_output
        from lmdiag.report.output import Output

        for line in getattr(result, "reads", ()):
            say(f"lmdiag: {line}")

        output = result if isinstance(result, Output) else output_of(result)
        if self.formats & _FRAMES and output.frame().empty:
            # these formats lack the sentences, which say why there are no figures
            for line in output.findings:
                say(f"lmdiag: {line}")
        print_line = say if prints else print  # standard output has the result alone
        for file in self.out:
            paths = formats.write_files(output, [file], self.width)
            if format_of(file):
                for path in paths:
                    print_line(f"Saved in {visible(str(path))}")
            else:
                n_charts = len({path.stem for path in paths})  # each in several formats
                print_line(f"Saved {n_charts} charts in {visible(str(file))}")
        if not prints:
            return
        if self.printed in (None, "text"):
            print_output(output)
        else:
            sys.stdout.write(formats.printed(output, self.printed, self.width))


def with_parameters(**parameters: Parameter) -> Callable[[type[_Options]], type[_Options]]:
    """Returns a decorator of a record that adds a `Parameter` of cyclopts to the types of fields.

    The fields may be those of a record that it extends.

    Args:
        parameters: field -> its parameter, for example `limit=WHOLE`.
    """

    def decorate(record: type[_Options]) -> type[_Options]:
        """Returns the record with `Annotated[TYPE, PARAMETER]` as the types of these fields."""
        types = get_type_hints(record, include_extras=True)
        record.__annotations__ |= {
            name: Annotated[types[name], parameter] for name, parameter in parameters.items()
        }
        return record

    return decorate


def with_inherited_types(record: type[_Options]) -> type[_Options]:
    """Decorates a record that extends others with the types of all fields.

    cyclopts would look up the types of inherited fields, which are texts, in the wrong module.
    """
    record.__annotations__ |= get_type_hints(record, include_extras=True)
    return record


def hides(*names: str) -> Callable[[type[_Options]], type[_Options]]:
    """Returns a decorator of a record that hides inherited fields from the options of a command.

    The command does not need these options, or has its own.

    Args:
        names: fields of a record that the record extends.
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
    """A model that a command runs: its id, its revision, and its name in folders and tables.

    None stands for the default revision, and for the id as the name.
    """

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
        """Returns the models that are run, in order; a model once for each of its revisions.

        Names on the Hub are looked up where a revision is a pattern. `BadInput` if no model is
        named, or two different ones would have the same folder.

        Args:
            output: the folder of all runs.
            data: the data set that was typed, which may be meant as a model.
        """
        from lmdiag.results import model_slug

        if not self.model:
            raise BadInput(_no_model_message(data))
        revisions_of_models: list[tuple[str, Sequence[str | None]]] = []
        for model, revision in named_models(self.model, self.revision):
            typed_revisions = revisions_of(model, self.revision)
            # `revision` is that of a line of @FILE; `named_models` refuses --revision beside it
            model_revisions = typed_revisions if revision is None else [revision]
            revisions_of_models.append((model, model_revisions))
        # one name per model, which all its revisions share
        names = self.name or (None,) * len(revisions_of_models)
        if len(names) != len(revisions_of_models) or "" in names:
            counts = f"{len(names)} for {len(revisions_of_models)} models"
            raise BadInput(f"--name: expected one name per model, none of them empty, got {counts}")
        longest = max((len(name or "") for name in names), default=0)
        if longest > _LONGEST_NAME:
            problem = f"a name has {longest:,} characters; give at most {_LONGEST_NAME}"
            raise BadInput(f"--name: {problem}, since folders are called so")
        requested = []
        model_of_folder = dict[str, str]()  # a folder may be that of one model only
        for (model, revisions), name in zip(revisions_of_models, names, strict=True):
            for revision in revisions:
                folder = model_slug(model, revision, name)
                earlier_model = model_of_folder.setdefault(folder, model)
                if earlier_model != model:
                    raise BadInput(
                        f"the results of {earlier_model} and {model} would share the folder "
                        f"{output / folder}: give each model a name of its own with --name"
                    )
                requested.append(RequestedModel(model, revision, name))
        return requested


def _no_model_message(data: str) -> str:
    """Returns the message for a command without --model; `data` may be meant as the model."""
    if data == DATA or exists(user_path(data)):
        return "name a model: --model MODEL, or --model @FILE"
    near = near_path(user_path(data))
    remedy = f"if it is the model, write --model {data}, else add a --model"
    return f"there is no file {data}{near}: {remedy}"


def read_models(file: str) -> list[tuple[str, str | None]]:
    """Returns the models that a file lists, each with its revision or None.

    A line has a model and optionally a revision; `#` at the beginning of a word begins a comment.
    `BadInput`, with the line, for other lines and for a model that is listed twice.
    """
    line_numbers: dict[tuple[str, str | None], int] = {}
    for number, line in enumerate(read_text(user_path(file)).split("\n"), start=1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if len(words) > 2:
            raise BadInput(
                f"{file}:{number}: expected a model and optionally a revision, got {len(words)} "
                "words (a folder with a space in its name: give it with --model)"
            )
        if words:
            model = words[0]
            revision = words[1] if len(words) == 2 else None
            earlier_number = line_numbers.setdefault((model, revision), number)
            if earlier_number != number:
                raise BadInput(
                    f"{file}:{number}: repeats line {earlier_number}: remove one of them"
                )
    if not line_numbers:
        raise BadInput(f"{file} names no model: write one model per line")
    return [*line_numbers]


def named_models(
    models: Sequence[str], revisions: Sequence[str] = ()
) -> list[tuple[str, str | None]]:
    """Returns the models that are typed, and for `@FILE` those of the file, each with its revision.

    The revision is None for models that do not have one in a file. `BadInput` for a data set that
    is typed as a model, and if both the file and `revisions` have revisions.

    Args:
        models: what was typed for --model.
        revisions: what was typed for --revision.
    """
    entries = list[tuple[str, str | None]]()
    for name in models:
        if has_file(user_path(name)) or name == "demo":  # a table, or the demo data set
            where = "write it before the options, as in `lmdiag run items.csv --model gpt2`"
            raise BadInput(f"--model: {name} is data, not a model: {where}")
        new_entries = read_models(name[1:]) if name.startswith("@") else [(name, None)]
        if revisions and any(revision for _, revision in new_entries):
            raise BadInput(f"{name} has revisions of its own: leave --revision out")
        entries += new_entries
    return entries


def revisions_of(model: str, revisions: Sequence[str]) -> list[str | None]:
    """Returns the revisions of a model that are run.

    A pattern such as `step*` is replaced by the branches and tags of the model that match it. If
    `revisions` is empty, [None] is returned, which stands for the default revision.

    Args:
        model: id on the Hub.
        revisions: branches, tags, commits or patterns.
    """
    names = list[str | None]()
    for revision in revisions:
        is_pattern = re.search(r"[*?\[]", revision)
        names += matching_revisions(model, revision) if is_pattern else [revision]
    return names or [None]


def matching_revisions(model: str, pattern: str) -> list[str]:
    """Returns the branches and tags of a model on the Hub that match a pattern.

    They are in the order of their training steps: "step1000" before "step20000". A name without a
    step comes first. `BadInput` if the model is not on the Hub, or if nothing matches.
    """
    if is_folder(user_path(model)) or model.startswith("demo:"):
        raise BadInput(f"--revision: {model} is not a model on the Hub, so it has no branches")
    from huggingface_hub import HfApi

    with plain_errors(f"cannot list the revisions of model {model}"):
        refs = HfApi().list_repo_refs(model)
    names = sorted(
        {ref.name for ref in (*refs.branches, *refs.tags)},
        key=lambda name: (training_step(name) or 0, name),
    )
    matches = [name for name in names if fnmatchcase(name, pattern)]
    if matches:
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
        """Returns the protocol with the ranks and the threshold that were typed.

        What was not typed stays as the protocol has it.
        """
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

    def load_in_turn(self, models: Sequence[str], **options: Any) -> Iterator[LanguageModel]:
        """Yields models; each is loaded when the caller asks for it.

        So only one model is in memory at a time, unless the caller keeps them.

        Args:
            models: what was typed for --model.
            options: further keywords of `lmdiag.load_model`.
        """
        load_keywords = vars(self.scoring) | vars(self.loading) | vars(self.serving)
        del load_keywords["layers"]  # given when the model is asked
        return loaded_models(models, self.revision, **load_keywords, **options)


def loaded_models(
    models: Sequence[str], revision: str | None, **options: Any
) -> Iterator[LanguageModel]:
    """Yields models; each is loaded when the caller asks for it.

    Args:
        models: what was typed for --model; @FILE stands for the models that the file lists.
        revision: what was typed for --revision; None for nothing. Models of a file may have their
            own revisions, and then nothing may be typed.
        options: further keywords of `lmdiag.load_model`.
    """
    for model, own_revision in named_models(models, [revision] if revision else []):
        yield lmdiag.load_model(model, revision=own_revision or revision, **options)


def runs_in(paths: Sequence[Path], data: str | None) -> list[Run]:
    """Returns the runs in run directories and in folders that have run directories.

    Args:
        data: where their data set is now; None for where the runs have it from.
    """
    from lmdiag.results import load_runs

    return load_runs(finished_runs(paths), data)


def finished_runs(paths: Sequence[Path]) -> list[Path]:
    """Returns the run directories among paths and in folders; prints which runs are left out.

    One line names all unfinished runs in folders that also have finished ones, and one line names
    each run that failed. A folder without a finished run is returned itself, so that the error of
    reading it tells the user.
    """
    from lmdiag.results import HOW_TO_CONTINUE, failures, run_folders, unfinished_runs

    folders = run_folders(paths)
    unfinished = [path for path in unfinished_runs(paths) if path not in folders]
    runs_inside_folders = {*folders} - {*paths}
    if unfinished and runs_inside_folders:
        names = first_few([*map(str, unfinished)])
        say(f"lmdiag: left out, not finished: {names}; {HOW_TO_CONTINUE}")
    for line in failures(paths):
        say(f"lmdiag: left out, failed: {line}")
    return folders


def text_or_file(text: str) -> str:
    """Returns the content of the file that a text names, without its last end of line.

    A text that is not the name of a file is returned as it is.
    """
    path = user_path(text)
    if not is_file(path):
        return text
    return read_text(path).removesuffix("\n").removesuffix("\r")  # of Windows, "\r\n"


def check_new_file(file: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Raises `BadInput` for a file that cannot be written, before anything is computed.

    Args:
        suffixes: endings of names that the command can write, for example (".csv", ".tsv").
        overwrite: whether an existing file may be replaced.
    """
    if file.suffix not in suffixes:
        raise BadInput(f"{file}: the file name must end in {', '.join(suffixes)}")
    if file.exists() and not overwrite:
        raise BadInput(f"{file} exists already: choose another name, or add --overwrite")
    if not file.parent.is_dir():
        raise BadInput(f"no directory {file.parent}: make it first")
