"""The tidy table of a result as csv and Parquet, and its JSON document."""

from __future__ import annotations

import json

from lmdiag.report.output import Output
from lmdiag.tables.table_files import csv_text, table_content


def render_table(output: Output, width: float, suffix: str) -> bytes:
    """Returns the tidy table as the content of a file whose name ends in `suffix`, e.g. ".csv".

    `width`, that of charts, is not used.
    """
    return table_content(output.frame(), suffix)


def render_csv(output: Output, width: float) -> str:
    """Returns the tidy table as csv text, which commands print; `width` is not used."""
    return csv_text(output.frame())


def render_json(output: Output, width: float) -> str:
    """Returns the JSON document on one line; `width`, that of charts, is not used."""
    return f"{json.dumps(output.document(), allow_nan=False)}\n"
