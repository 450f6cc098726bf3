"""`lmdiag cloze`: what people say at a blank, and what models expect there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import lmdiag
from lmdiag.cli import options, say
from lmdiag.models.loading.options import Loading, Serving
from lmdiag.protocol import Bos, Unit

_TABLE_OF_RESPONSES = options.TablesOfResponses()


def cloze_command(
    source: tuple[Path, ...],
    /,
    *,
    model: tuple[str, ...] = (),
    response: str = "",
    keep_case: bool = False,
    unit: Unit | None = None,
    bos: Bos = "auto",
    layers: options.LayerNames = (),
    revision: str | None = None,
    output: Path = Path("results"),
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
    table: Annotated[options.TablesOfResponses, options.TABLE] = _TABLE_OF_RESPONSES,
    loading: Annotated[Loading, options.section("Loading the model")] = Loading(),
    serving: Annotated[Serving, options.section("A model behind a server")] = Serving(),
    batching: Annotated[options.Batching, options.section("Running")] = options.Batching(),
) -> None:
    """Compares, prints and writes.

    Args:
        source: table with a row per response (item, context, response), or per word with its count
            or cloze; or directories of finished runs of words with a column cloze
        model: models that are asked: Hub ids, local folders, demo:masked or demo:causal
        response: column of the responses, e.g. of corrected ones (default: response or word)
        keep_case: count words that differ in letter case as different words, and ask them so
        unit: of probabilities and the model's list (default: word; behind a server and with layers,
            token)
        bos: whether a causal model's context starts with the beginning-of-sequence token
        revision: branch, tag or commit of the model
        output: directory that keeps the models' answers: what was interrupted resumes
    """
    showing.check()
    unit = unit or ("token" if serving.server or layers else "word")
    keywords = vars(loading) | vars(serving) | {"unit": unit, "bos": bos}
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"lmdiag: warning: {message}")
        result = lmdiag.cloze(
            source,
            models=model and options.loaded_models(model, revision, **keywords),
            response=response,
            keep_case=keep_case,
            layers=layers,
            output=output,
            **vars(batching),
            **table.stored(),
        )
    showing.show(result)
