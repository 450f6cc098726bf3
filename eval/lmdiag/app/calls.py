"""Calls of public functions: made for the page, and shown as a command and as lines of Python."""

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
    """A call of `lmdiag.run`, `lmdiag.cloze`, `lmdiag.fit` or `lmdiag.analyse`.

    Attributes:
        function: its name, for example "run".
        data: file name of a table without its folder, or name of a data set.
        models: names of the models that are asked; () for `analyse`.
        options: further keywords of the function -> values: texts, lists of texts, or True.
    """

    function: str
    data: str
    models: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """Returns the command line that does the same.

        >>> Call("analyse", "ratings.csv", options={"response": "rating"}).command()
        'lmdiag analyse ratings.csv --response rating --out report.html'
        """
        words = ["lmdiag", self.function, self.data]
        words += ["--model", *self.models] if self.models else []
        words += typed_words(self.options)
        # `lmdiag run` writes its page without an option
        words += [] if self.function == "run" else ["--out", "report.html"]
        return shlex.join(words)

    def python(self) -> str:
        """Returns the lines of Python that do the same, and save its page as `report.html`."""
        values, keywords = self._arguments()
        arguments = [repr(value) for value in values]
        arguments += [f"{name}={value!r}" for name, value in keywords.items()]
        lines = "".join(f"    {argument},\n" for argument in arguments)
        call = f"result = lmdiag.{self.function}(\n{lines})"
        return f'import lmdiag\n\n{call}\nresult.save("report.html")\n'

    def make(self, folder: Path, on_progress: OnProgress | None = None) -> Presentable:
        """Makes the call, and returns the result of the function.

        The result names the table without the folder, as the page must not show its path.

        Args:
            folder: where the table is, if `data` is one, and where models' answers are kept.
            on_progress: is called with the numbers of contexts or sentences that are answered and
                of all, see `lmdiag.types.OnProgress`.
        """
        file = folder / self.data
        call = replace(self, data=str(file)) if file.exists() else self
        values, keywords = call._arguments()
        if self.models:
            keywords |= {"output": folder / "results", "on_progress": on_progress}
        result = getattr(lmdiag, self.function)(*values, **keywords)
        if isinstance(result, Runs) and file.exists():
            return Runs(_with_data_name(run_of_model, self.data) for run_of_model in result)
        return result  # type: ignore[no-any-return]

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Returns the positional arguments of the call, and its keywords with their values.

        `run` takes models and data by position, the other functions data alone.

        >>> Call("cloze", "responses.csv", ("gpt2",))._arguments()
        (['responses.csv'], {'models': ['gpt2']})
        """
        options = {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in self.options.items()
        }
        if self.function == "run":
            return [[*self.models], self.data], options
        models = {"models": [*self.models]} if self.models else {}
        return [self.data], {**models, **options}


def _with_data_name(run_of_model: Run, name: str) -> Run:
    """Returns the run with `name` as the source of its data, in place of the path of their file."""
    results = run_of_model.results
    data = replace(results.data, source=name)
    return replace(run_of_model, results=replace(results, data=data))


# ---- from menus ----------------------------------------------------------------------------------


_FUNCTION_OF_COMMAND = {"surprisal": "fit", "": "run"}
"""Command that reads a table -> the function that the page proposes, if it is another one.

Tables of words, which `lmdiag surprisal` reads, mostly have reading times. A table that no command
reads yet becomes one for `run` by the menus of its columns.
"""


def default_function(table_check: TableCheck) -> str:
    """Returns the function that the page proposes for a table, for example "analyse"."""
    command = table_check.command
    return _FUNCTION_OF_COMMAND.get(command, command)


def table_call(
    table_check: TableCheck, function: str, models: Iterable[str], settings: Mapping[str, str]
) -> Call:
    """Returns the call of a function for a table of the user.

    Args:
        table_check: how the table is read.
        function: one of `lmdiag.app.menus.FUNCTION_TEXTS`.
        models: names of models; `BadInput` if there are none, or too many.
        settings: further choices on the page: response, unit, layers, region -> what was chosen; ""
            for the default. Those that the function does not have are left out.
    """
    # `cloze` and `fit` take how a table is read, but neither items nor conditions
    takes_design = function in ("run", "analyse")
    options = table_check.given() if takes_design else table_check.options.stored()
    setting_names = {
        "run": ("unit", "layers", "region"),
        "cloze": ("layers",),
        "fit": ("response", "layers"),
        "analyse": ("response",),
    }[function]
    models = () if function == "analyse" else _checked_models(models)
    options |= _chosen_settings(settings, setting_names)
    return Call(function, Path(table_check.file).name, models, options)


def published_call(
    tasks: Iterable[str], data: str, models: Iterable[str], settings: Mapping[str, str]
) -> Call:
    """Returns the call of `run` for published diagnostics.

    Args:
        tasks: names of diagnostics, as "neg136"; `BadInput` if there are none.
        data: the data set that has their items, one of `lmdiag.app.menus.ITEM_SETS`.
        models: names of models; `BadInput` if there are none, or too many.
        settings: further choices on the page, of which unit and layers are used.
    """
    options = {"tasks": [*tasks]} | _chosen_settings(settings, ("unit", "layers"))
    if not options["tasks"]:
        raise BadInput("choose a diagnostic")
    return Call("run", data, _checked_models(models), options)


def _chosen_settings(settings: Mapping[str, str], names: Iterable[str]) -> dict[str, Any]:
    """Returns the chosen settings as keywords of a function, without those that were not chosen.

    Layers are typed as one text, which is divided.

    Args:
        settings: name -> what was chosen on the page; "" for nothing.
        names: the settings that the function has.

    >>> _chosen_settings({"unit": "", "layers": "0, 1"}, ["unit", "layers"])
    {'layers': ['0', '1']}
    """
    keywords: dict[str, Any] = {name: settings[name] for name in names if settings.get(name)}
    if "layers" in keywords:
        keywords["layers"] = keywords["layers"].replace(",", " ").split()
    return keywords


def _checked_models(models: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of models, each once; `BadInput` if there are none, or too many.

    >>> _checked_models([" gpt2", "", "gpt2"])
    ('gpt2',)
    """
    names = tuple(dict.fromkeys(name.strip() for name in models if name.strip()))
    if not names:
        raise BadInput("choose a model, or type the name of one")
    if len(names) > menus.MAX_MODELS:
        raise BadInput(f"{len(names)} models: choose up to {menus.MAX_MODELS}")
    return names
