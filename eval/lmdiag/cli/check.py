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
    """Prints what is read, or the first mistake.

    Args:
        file: file of own rows, or any other data set
        allow_duplicates: keep one of identical rows, instead of an error
        model: model whose tokenizer is tried on the texts: Hub id or local folder
    """
    from lmdiag import check

    for task in stimuli.tasks(file):
        given = {**design.stored(), **table.stored()}
        found = check(file, task, model=model, allow_duplicates=allow_duplicates, **given)
        if found.error:
            raise BadInput(found.error)
        print(found)
