"""The card of one run, in Markdown: what a pull request says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmdiag.hub.headline import HEADLINES, SHORT_TITLES
from lmdiag.resources import resource_path
from lmdiag.schema import DIAGNOSTICS


def result_card(
    results: Mapping[str, Any], data: str, revision: str, results_repo: str | None, endpoint: str
) -> str:
    """Returns the headline figures of a run, and how it can be repeated.

    Args:
        results: `results.json`, verified.
        data, revision: the published data set and its commit.
        results_repo: where the predictions are; None for nowhere.
        endpoint: address of the Hub, for links.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource_path("cards")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    tasks = results["protocol"]["tasks"]
    found = [(headline, headline.find(results)) for headline in HEADLINES]
    return environment.get_template("result.md.j2").render(
        model=results["model"],
        figures=[(headline, figure) for headline, figure in found if figure is not None],
        titles=SHORT_TITLES,
        match=results["protocol"]["match"],
        tasks=tasks if tuple(tasks) != DIAGNOSTICS else (),
        signature=results["signature"],
        data=data,
        revision=revision,
        results_repo=results_repo,
        endpoint=endpoint,
    )
