"""A call of a public function that can be made, typed as a command and written in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmdiag
from lmdiag.app import menus
from lmdiag.results import Runs
from lmdiag.types import BadInput, OnProgress, typed_words

if TYPE_CHECKING:
    from lmdiag.api.table_check import TableCheck
    from lmdiag.presentable import Presentable
    from lmdiag.results import Run


@dataclass(frozen=True)
class Call:
    """A call of `run`, `cloze`, `fit` or `analyse`.

    Attributes:
        function: its name.
        data: name of a table, or of a data set.
        models: that are asked; none for `analyse`.
        options: further keywords: texts, lists of texts, or True.
    """

    function: str
    data: str
    models: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """Returns the command line that does the same; its page is `report.html`."""
        words = ["lmdiag", self.function, self.data]
        words += ["--model", *self.models] if self.models else []
        words += typed_words(self.options)
        words += [] if self.function == "run" else ["--out", "report.html"]
        return shlex.join(words)

    def python(self) -> str:
        """Returns the lines of Python that do the same."""
        values, keywords = self._arguments()
        arguments = [*map(repr, values), *(f"{name}={x!r}" for name, x in keywords.items())]
        lines = "".join(f"    {argument},\n" for argument in arguments)
        call = f"result = lmdiag.{self.function}(\n{lines})"
        return f'import lmdiag\n\n{call}\nresult.save("report.html")\n'

    def make(self, folder: Path, on_progress: OnProgress | None = None) -> Presentable:
        """Makes the call, and returns the result, which names the table without the folder.

        Args:
            folder: where the table is, if it is one, and where models' answers are kept.
            on_progress: see `lmdiag.types.OnProgress`.
        """
        file = folder / self.data
        call = replace(self, data=str(file)) if file.exists() else self
        values, keywords = call._arguments()
        if self.models:
            keywords |= {"output": folder / "results", "on_progress": on_progress}
        result = getattr(lmdiag, self.function)(*values, **keywords)
        if isinstance(result, Runs) and file.exists():
            return Runs(_of_data(run_of_model, self.data) for run_of_model in result)
        return result  # type: ignore[no-any-return]

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The values and the keywords of the call."""
        options = {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in self.options.items()
        }
        if self.function == "run":
            return [[*self.models], self.data], options
        models = {"models": [*self.models]} if self.models else {}
        return [self.data], {**models, **options}


def _of_data(run_of_model: Run, name: str) -> Run:
    """The run, whose data have a name instead of a path."""
    results = run_of_model.results
    return replace(run_of_model, results=replace(results, data=replace(results.data, source=name)))


# ---- from menus ----------------------------------------------------------------------------------


def function_of(found: TableCheck) -> str:
    """Returns the function for a table: the command that reads it, `fit` for words."""
    return {"surprisal": "fit", "": "run"}.get(found.command, found.command)


def call_of(
    found: TableCheck, function: str, models: Iterable[str], settings: Mapping[str, str]
) -> Call:
    """Returns the call for a table.

    Args:
        found: how it is read.
        function: one of `lmdiag.app.menus.PURPOSES`.
        models: names of models; `BadInput` if there are none, or too many.
        settings: further options of the page: response, unit, layers, region; "" for the default.
    """
    is_design = function in ("run", "analyse")
    options = found.given() if is_design else found.options.stored()
    asked = {
        "run": ("unit", "layers", "region"),
        "cloze": ("layers",),
        "fit": ("response", "layers"),
        "analyse": ("response",),
    }[function]
    models = () if function == "analyse" else _checked_models(models)
    return Call(function, Path(found.file).name, models, options | _asking(settings, asked))


def published_call(
    tasks: Iterable[str], data: str, models: Iterable[str], settings: Mapping[str, str]
) -> Call:
    """Returns the call for published diagnostics; `BadInput` if there are none."""
    options = {"tasks": [*tasks]} | _asking(settings, ("unit", "layers"))
    if not options["tasks"]:
        raise BadInput("choose a diagnostic")
    return Call("run", data, _checked_models(models), options)


def _asking(settings: Mapping[str, str], names: Iterable[str]) -> dict[str, Any]:
    """The settings of some names that are not at their default."""
    given: dict[str, Any] = {name: settings[name] for name in names if settings.get(name)}
    if "layers" in given:
        given["layers"] = given["layers"].replace(",", " ").split()
    return given


def _checked_models(models: Iterable[str]) -> tuple[str, ...]:
    """Names of models, each once; `BadInput` if there are none, or too many."""
    names = tuple(dict.fromkeys(name.strip() for name in models if name.strip()))
    if not names:
        raise BadInput("choose a model, or type the name of one")
    if len(names) > menus.MOST_MODELS:
        raise BadInput(f"{len(names)} models: choose up to {menus.MOST_MODELS}")
    return names
