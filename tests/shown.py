"""What is shown of results, for tests: pages, charts, and tables in every format."""

from pathlib import Path

from lmdiag.report import formats
from lmdiag.report.display import output_of
from lmdiag.report.formats.terminal import print_output
from lmdiag.report.output import Output
from lmdiag.report.run_report import Report
from lmdiag.results import Results, Run


def shown_as(name, result, width=8.0):
    """A result, or the results of a run, in a format that is text."""
    return formats.printed(_output(result), name, width)


def page_of(runs, items=()):
    """The page of runs."""
    return shown_as("html", Report(runs, items=items))


def plots_of(result):
    """The charts of runs, or of another result."""
    return output_of(Report(result) if type(result) is list else result).plots


def print_tables(result, console):
    """Prints a result, or the results of a run."""
    print_output(_output(result), console)


def sections_as(name, sections, width=8.0):
    """Sections in a format that is text."""
    output = Output(kind="report", title="Title", sections=sections, frame=dict, document=dict)
    return formats.printed(output, name, width)


def _output(result):
    results = result if type(result) is list else [result]
    if isinstance(result, Output):  # which keeps what it has made
        return result
    if all(isinstance(of, Results) for of in results):
        result = Report([Run(Path(), of, {}) for of in results])
    return output_of(Report(result) if type(result) is list else result)
