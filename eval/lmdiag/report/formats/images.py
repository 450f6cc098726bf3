"""The charts of a result as images."""

from __future__ import annotations

from lmdiag.report.charts.output import image_file
from lmdiag.report.output import Output
from lmdiag.types import BadInput


def render(output: Output, width: float, kind: str) -> dict[str, bytes]:
    """Returns end of a file name -> image: ".svg" for a single chart, "-NAME.svg" for several.

    Args:
        output: the result; it is refused (`BadInput`) without a chart.
        width: in centimetres.
        kind: "svg", "pdf" or "png" (300 dots per inch).
    """
    plots = output.plots
    if not plots:
        raise BadInput(f"this {output.kind} has no chart: leave out .{kind}")
    if len(plots) == 1:
        return {f".{kind}": image_file(plots[0].spec, kind, width)}
    return {f"-{plot.name}.{kind}": image_file(plot.spec, kind, width) for plot in plots}


def folder(output: Output, width: float) -> dict[str, bytes]:
    """Returns the files of a folder with all charts: name of the file -> its content.

    Each chart is an svg file, and its caption a text file of the same name: "differences-1-1.svg"
    and "differences-1-1.txt". {} for a result without a chart.

    Args:
        output: the result.
        width: of each chart, in centimetres.
    """
    files = {}
    for plot in output.plots:
        files[f"{plot.name}.svg"] = image_file(plot.spec, "svg", width)
        files[f"{plot.name}.txt"] = f"{plot.caption}\n".encode()
    return files
