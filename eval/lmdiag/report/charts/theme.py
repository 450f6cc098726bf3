"""One palette for pages, files and notebooks: `cards/base.css`; one theme: `cards/charts.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from lmdiag.report.charts.parts import Spec
from lmdiag.resources import resource_path


@cache
def palette() -> dict[str, str]:
    """Returns the light colours of the style sheet: `var(--c1)` -> `#2563a8`."""
    style = resource_path("cards", "base.css").read_text("utf-8")
    light = style.partition("{")[2].partition("}")[0]
    return {f"var({name})": colour for name, colour in re.findall(r"(--\w+):\s*(#\w+)", light)}


def resolved(value: Any) -> Any:
    """Returns a specification with colours in place of CSS variables; data are left as they are."""
    if isinstance(value, dict):
        return {key: part if key == "data" else resolved(part) for key, part in value.items()}
    if isinstance(value, list):
        return [resolved(part) for part in value]
    return palette().get(value, value) if isinstance(value, str) else value


@cache
def theme() -> str:
    """Returns the theme as JSON: the `config` of a specification, its colours CSS variables."""
    return json.dumps(json.loads(resource_path("cards", "charts.json").read_text("utf-8")))


def sized(spec: Spec, width: float) -> Spec:
    """Returns a specification of a given width in pixels, axes and legends included."""
    if "spec" not in spec:
        return {**spec, "width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    columns = spec["columns"]
    return {**spec, "spec": {**spec["spec"], "width": (width - 45) / columns - 30}}
