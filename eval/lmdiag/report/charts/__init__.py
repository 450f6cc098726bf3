"""Charts of results with altair, for the report page, files and notebooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import altair

MOST_BESIDE = 4
"""Models whose figures are in columns; more are the rows of a table."""


class Plot(NamedTuple):
    """A chart with its caption.

    Attributes:
        kind: one of `lmdiag.diagnostics.base.CHART_KINDS`, or e.g. `steps`, `differences`.
        name: unique among the charts of a report; the name of its file.
        caption: what it shows and how to read it.
        chart: with its data; colours are CSS variables (`var(--c1)`).
        is_further: whether it is one of many, which a page folds.
        heading: name of its model or diagnostic, where there are charts of several.
        is_repeated: whether a table of the page shows the same, which leaves it out.
    """

    kind: str
    name: str
    caption: str
    chart: altair.TopLevelMixin
    is_further: bool = False
    heading: str = ""
    is_repeated: bool = False

    @property
    def title(self) -> str:
        """The first sentence of the caption."""
        return self.caption.partition(". ")[0]

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, without the `config`."""
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        return {key: value for key, value in spec.items() if key not in ("config", "$schema")}


def name_part(text: str) -> str:
    """Returns text as a part of a file name."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
