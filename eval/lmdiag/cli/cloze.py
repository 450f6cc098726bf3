"""`lmdiag cloze`: what people say at a blank, and what models expect there."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

import lmdiag
from lmdiag.cli import options, say
from lmdiag.files import write_atomically
from lmdiag.models.loading.options import Loading, Serving
from lmdiag.protocol import Bos, Unit
from lmdiag.table_files import WRITTEN_SUFFIXES, write_table

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
    out: Path | None = None,
    report: Path | None = None,
    output: Path = Path("results"),
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
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
        out: write a row per model, item and word into this file (.csv, .tsv or .parquet)
        report: write a page with the chart and the items, e.g. cloze.html
        output: directory that keeps the models' answers: what was interrupted resumes
    """
    for file, suffixes in ((report, (".html",)), (out, WRITTEN_SUFFIXES)):
        if file:
            options.check_new_file(file, suffixes, overwrite=overwrite)
    from lmdiag.report.cloze import cloze_page, cloze_section
    from lmdiag.report.terminal import output_console, print_section

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
    if out:
        write_table(result.words, out)
        say(f"Saved in {out}")
    if report:
        write_atomically(report, cloze_page(result).encode())
        say(f"Saved in {report}")
    if as_json:
        print(json.dumps(result.to_json(), allow_nan=False))
    else:
        print_section(cloze_section(result), output_console())
