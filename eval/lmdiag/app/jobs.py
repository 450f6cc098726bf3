"""What the page does, without its widgets: menus to options, options to a call, a call to files.

A job is one call of a public function; its command line and its Python lines do the same.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import lmdiag
from lmdiag.files.reading import resource_path
from lmdiag.tables.table_files import TABLE_SUFFIXES
from lmdiag.text import folded
from lmdiag.types import BadInput, OnProgress

if TYPE_CHECKING:
    from lmdiag.api.checking import TableCheck
    from lmdiag.presentable import Presentable
    from lmdiag.results import Run

PURPOSES: Mapping[str, str] = {
    "run": "Ask models about the texts",
    "cloze": "Compare responses of people with models (cloze norms)",
    "fit": "Fit reading times with the surprisals of models",
    "analyse": "Analyse a response of people, without a model",
}
"""What a table can be used for -> in words."""

USES = {
    "sentence": "sentence",
    "context": "context (text before the word)",
    "target": "target (word that is scored)",
    "right_context": "text after the word",
    "sentence_good": "good sentence of a pair",
    "sentence_bad": "bad sentence of a pair",
    "wide": "texts of one condition",
    "region": "region (part of the sentence)",
    "critical": "critical word, or its position",
    "item": "item",
    "condition": "condition",
    "response": "response",
    "text": "name of the text",
    "position": "position of the word",
    "word": "word",
}
"""Uses that a person can choose for a column -> what menus call them."""

_TEXTS = ("sentence", "context", "target", "right_context", "sentence_good", "sentence_bad")
_WORDS = ("text", "position", "word")

EXAMPLE_TABLES = {
    "A 2 x 2 design (agreement)": ("starter.design.jsonl", "attraction.jsonl"),
    "Words in context": ("starter.rows.jsonl", "words.jsonl"),
    "Cloze responses": ("starter.cloze.jsonl", "responses.jsonl"),
    "Reading times by word": ("example.times.csv", "times.csv"),
    "Acceptability ratings": ("example.ratings.csv", "ratings.csv"),
}
"""Examples -> the file in `cards/`, and its name on the page."""

LISTED_MODELS = (
    "demo:causal", "demo:masked", "gpt2", "distilgpt2", "bert-base-uncased", "roberta-base",
    "HuggingFaceTB/SmolLM2-135M", "EleutherAI/pythia-70m",
)  # fmt: skip
"""Models that the menu lists; others can be typed."""

MOST_MODELS = 6

UPLOADED_SUFFIXES = (*TABLE_SUFFIXES, ".txt")
"""Endings of the names of tables that can be uploaded."""

DOWNLOADS = {"page": ".html", "Word": ".docx", "LaTeX": ".tex", "csv": ".csv", "charts": ""}
"""Downloads -> endings of their files, without one a folder."""


_REMEDY = re.compile(r"--(filter|split|critical|separator|gap) ('[^']+'|[^\s'][^\s;,]*)")
"""An option with one value, in a message."""

_REMEDIES = {
    "filter": "Keep only the rows with {}",
    "split": "Divide a column: {}",
    "critical": "Read {} as the critical word",
    "separator": "Divide the sentences at {}",
    "gap": "Read {} as the gap",
}
"""Option -> what it does with its value, on a button."""


def function_of(found: TableCheck) -> str:
    """Returns the function for a table: the command that reads it, `fit` for words."""
    return {"surprisal": "fit", "": "run"}.get(found.command, found.command)


def chosen_options(found: TableCheck, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options that say what menus say, as keywords of `lmdiag.check`.

    What was found without an option, and is not changed, stays without one.

    Args:
        found: how the table is read now.
        chosen: column -> its use in the menu; others are used as they were found.
    """
    before = {column.name: column.use for column in found.columns if not column.is_made}
    now = {**before, **chosen}
    given: dict[str, Any] = {**found.options.stored(), **found.design.stored()}

    def names(use: str) -> list[str]:
        return [name for name in before if now[name] == use]

    changed = {
        use for name in before if now[name] != before[name] for use in (now[name], before[name])
    }
    named = {"cloze": (*_TEXTS, "response"), "surprisal": _WORDS, "analyse": ()}.get(
        found.command, (*_TEXTS, "region")
    )
    if changed & {*named, "item"}:
        regions = names("region") if "region" in named else []
        pairs = [(use, name) for use in (*named, "item") for name in names(use) if use != "region"]
        given["columns"] = [
            f"{use}={name}" for use, name in pairs if use in changed or use != folded(name)
        ]
        given["columns"] += [f"region={regions[0]}..{regions[-1]}"] if regions else []
    if "item" in changed and len(names("item")) > 1:
        given["columns"] = [text for text in given["columns"] if not text.startswith("item=")]
        given["item"] = names("item")
    if "condition" in changed:
        given["conditions"] = [
            *names("condition"),
            *(x for x in found.conditions if x not in before),
        ]
    if "wide" in changed:
        given["wide"] = names("wide")
    if "critical" in changed:
        given["critical"] = names("critical")
    return {name: value for name, value in given.items() if value}


def grouped_columns(found: TableCheck) -> list[list[str]]:
    """Returns the columns, regions that follow each other together."""
    groups: list[list[str]] = []
    last = ""
    for column in found.columns:
        if column.is_made:
            continue
        if column.use == last == "region":
            groups[-1].append(column.name)
        else:
            groups.append([column.name])
        last = column.use
    return groups


def regions_of(found: TableCheck) -> list[str]:
    """Returns the regions of sentences, by their numbers or names."""
    parts = re.search(r"in up to (\d+) regions", found.form)
    if not parts or found.options.critical:
        return []
    return [str(number) for number in range(1, int(parts[1]) + 1)]


def remedies(found: TableCheck) -> list[tuple[str, dict[str, Any]]]:
    """Returns what is proposed, in words, and all options of the table with it."""
    given = {**found.options.stored(), **found.design.stored()}
    offers = [
        (f"Read it as: {proposal.rows[0]}", found.design.stored() | proposal.options.stored())
        for proposal in found.proposals
        if proposal.rows
    ]
    for line in (*found.warnings, found.error):
        for option, value in _REMEDY.findall(line):
            (text,) = shlex.split(value)
            values = [*given.get(option, ()), text] if option in ("filter", "split") else text
            offers.append((_REMEDIES[option].format(text), given | {option: values}))
    return offers


# ---- jobs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One call of a public function.

    Attributes:
        function: its name.
        data: name of the table, or of a data set.
        models: that are asked.
        options: further keywords.
    """

    function: str
    data: str
    models: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def call(self, folder: Path, on_progress: OnProgress) -> Presentable:
        """Returns the result; files of runs go into a folder, in which the table is."""
        how: dict[str, Any] = dict(self.options)
        file = folder / self.data
        data = str(file) if file.exists() else self.data
        if self.function != "analyse":
            how |= {"on_progress": on_progress, "output": folder / "results"}
        if self.function == "run":
            runs = cast("list[Run]", lmdiag.run(self.models, data, **how))
            return lmdiag.Runs(_with_source(run, self.data) for run in runs)
        if self.function == "analyse":
            return lmdiag.analyse(data, **how)
        if self.function == "cloze":
            return lmdiag.cloze(data, models=self.models, **how)
        return lmdiag.fit(data, models=self.models, **how)

    def python(self) -> str:
        """Returns the Python lines that do the same."""
        models = (
            [repr([*self.models])] if self.function == "run" else [f"models={[*self.models]!r}"]
        )
        data = [repr(self.data)]
        given = [f"{name}={_plain(value)!r}" for name, value in self.options.items()]
        if self.function == "analyse":
            arguments = [*data, *given]
        else:
            arguments = (
                [*models, *data, *given] if self.function == "run" else [*data, *models, *given]
            )
        lines = "".join(f"    {argument},\n" for argument in arguments)
        call = f"result = lmdiag.{self.function}(\n{lines})"
        return f'import lmdiag\n\n{call}\nresult.save("report.html")\n'

    def command(self) -> str:
        """Returns the command that does the same."""
        words = ["lmdiag", self.function, self.data]
        words += ["--model", *self.models] if self.models else []
        for name, value in self.options.items():
            values = [] if value is True else [value] if isinstance(value, str) else value
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
        words += [] if self.function == "run" else ["--out", "report.html"]
        return shlex.join(words)


def _plain(value: Any) -> Any:
    """A value as it is written in Python."""
    return [*value] if isinstance(value, tuple) else value


def _with_source(run: Run, name: str) -> Run:
    """The run, whose data have a name instead of a path."""
    data = replace(run.results.data, source=name)
    return replace(run, results=replace(run.results, data=data))


def job_of(
    found: TableCheck, function: str, models: Iterable[str], settings: Mapping[str, Any]
) -> Job:
    """Returns the job of a table.

    Args:
        found: how it is read.
        function: name of the function, see `PURPOSES`.
        models: names of models; `BadInput` if there are none, or too many.
        settings: further options of the page: response, unit, layers, region; "" for the default.
    """
    reading = {**found.options.stored(), **found.design.stored()}
    if function in ("cloze", "fit"):
        reading = {name: reading[name] for name in reading if name not in found.design.stored()}
    asked = {
        "run": ("unit", "layers", "region"),
        "cloze": ("layers",),
        "fit": ("response", "layers"),
    }
    options = reading | _asking(settings, asked.get(function, ("response",)))
    models = () if function == "analyse" else checked_models(models)
    return Job(function, Path(found.file).name, models, options)


def published_job(
    tasks: Iterable[str], data: str, models: Iterable[str], settings: Mapping[str, Any]
) -> Job:
    """Returns the job of published diagnostics; `BadInput` if there are none."""
    options = {"tasks": [*tasks]} | _asking(settings, ("unit", "layers"))
    if not options["tasks"]:
        raise BadInput("choose a diagnostic")
    return Job("run", data, checked_models(models), options)


def _asking(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The settings of some names that are not at their default."""
    given = {name: settings[name] for name in names if settings.get(name)}
    if "layers" in given:
        given["layers"] = given["layers"].replace(",", " ").split()
    return given


def checked_models(models: Iterable[str]) -> tuple[str, ...]:
    """Returns names of models, each once; `BadInput` if there are none, too many, or files."""
    names = tuple(dict.fromkeys(name.strip() for name in models if name.strip()))
    if not names:
        raise BadInput("choose a model, or type the name of one")
    if len(names) > MOST_MODELS:
        raise BadInput(f"{len(names)} models: choose up to {MOST_MODELS}")
    return names


# ---- files of a visit ----------------------------------------------------------------------------


def example_file(name: str, folder: Path) -> Path:
    """Returns a copy of an example in a folder."""
    source, shown = EXAMPLE_TABLES[name]
    return Path(shutil.copyfile(resource_path("cards", source), folder / shown))


def copied_file(path: Path, folder: Path) -> Path:
    """Returns a copy of a file in a folder."""
    return Path(shutil.copyfile(path, folder / path.name))


def uploaded_file(path: str, folder: Path) -> Path:
    """Moves an uploaded file into a folder, under its own name with plain characters."""
    source = Path(path)
    stem = re.sub(r"[^\w ()+-]", "_", source.stem).strip(" -")[:80] or "table"
    return Path(shutil.move(source, folder / f"{stem}{source.suffix.lower()}"))


def saved_file(result: Presentable, name: str, folder: Path) -> Path | None:
    """Writes a result in a format of `DOWNLOADS`, and returns the file; None if it has none."""
    target = folder / f"result{DOWNLOADS[name]}"
    try:
        written = result.save(target)
    except BadInput:  # there are no charts, or Word needs python-docx
        return None
    if name != "charts":
        return target
    return Path(shutil.make_archive(str(target), "zip", target)) if written else None
