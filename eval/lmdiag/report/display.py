"""How results of every type are shown: the functions that return their `Output`.

`lmdiag/__init__.py` registers this module with `lmdiag.presentable`, the methods of all results.
To add a kind of result, add a function to `output_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.analysis.designs import Analysis
from lmdiag.analysis.fit import HumanFit
from lmdiag.files.reading import user_path
from lmdiag.report import formats
from lmdiag.report.analyses import analysis_output
from lmdiag.report.charts.output import notebook
from lmdiag.report.cloze_tables import cloze_output
from lmdiag.report.comparisons import comparisons_output
from lmdiag.report.fits import fit_output
from lmdiag.report.formats import terminal
from lmdiag.report.multiverses import multiverse_output
from lmdiag.report.output import Output
from lmdiag.report.run_report import Report, measures_output, runs_output
from lmdiag.results import Results, Run, Runs
from lmdiag.results.measured import Measures
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.studies.comparison import Comparisons
from lmdiag.studies.multiverse import Multiverse

if TYPE_CHECKING:
    import altair


@singledispatch
def output_of(result: object) -> Output:
    """Returns what is shown of a result, by the function registered below for its type."""
    raise TypeError(f"{type(result).__name__} is not a result")


output_of.register(Report, runs_output)
output_of.register(Run, lambda run: runs_output(Report(run)))
output_of.register(Runs, lambda runs: runs_output(Report(runs)))
output_of.register(Results, measures_output)
output_of.register(Measures, lambda measures: measures_output(measures.results, measures.name))
output_of.register(Comparisons, comparisons_output)
output_of.register(Analysis, analysis_output)
output_of.register(HumanFit, fit_output)
output_of.register(ClozeNorms, cloze_output)
output_of.register(Multiverse, multiverse_output)


def save_result(result: object, files: Sequence[str | Path], width: float) -> list[Path]:
    """Writes a result into files, whose endings are the formats; returns their paths.

    Args:
        files: paths, in which `~` is the home directory.
        width: of tables in text files, in characters.
    """
    paths = [user_path(str(file)) for file in files]
    return formats.write_files(output_of(result), paths, width)


def text_of(result: object) -> str:
    """Returns what a terminal shows of a result, as text of at most 100 characters a line."""
    return terminal.recorded(output_of(result)).export_text().strip("\n")


def html_of(result: object) -> str:
    """Returns what a terminal shows of a result, as HTML for a notebook."""
    console = terminal.recorded(output_of(result))
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def charts_of(result: object) -> dict[str, altair.TopLevelMixin]:
    """Returns name of each chart -> the chart."""
    return {plot.name: notebook(plot) for plot in output_of(result).plots}
