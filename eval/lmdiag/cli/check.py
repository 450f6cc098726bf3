"""`lmdiag check`: what a file of own rows is, and what looks wrong in it."""

from __future__ import annotations

from typing import Annotated

from lmdiag import stimuli
from lmdiag.cli import command_options as options
from lmdiag.types import AS_IT_IS, BadInput, FactorOptions, TableOptions


def check_command(
    file: str,
    /,
    *,
    design: Annotated[FactorOptions, options.DESIGN] = FactorOptions(),
    table: Annotated[TableOptions, options.TABLE] = AS_IT_IS,
    allow_duplicates: bool = False,
    model: str | None = None,
) -> None:
    """Prints how each task of a file is read and what looks wrong; an error ends the command.

    Args:
        file: file of own rows, or any other data set
        allow_duplicates: keep one of identical rows, instead of an error
        model: model whose tokenizer is tried on the texts: Hub id or local folder
    """
    from lmdiag import check

    given_options = {**design.stored(), **table.stored()}
    for task in stimuli.tasks(file):
        table_check = check(
            file, task, model=model, allow_duplicates=allow_duplicates, **given_options
        )
        if table_check.error:
            raise BadInput(table_check.error)
        print(table_check)
