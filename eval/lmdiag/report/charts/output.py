"""Charts as figures for a paper and in notebooks, their colours, and the script of a page."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.files import is_file, resource_path, write_atomically
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import CHOICES_WIDTH
from lmdiag.report.charts.parts import INK, MUTED
from lmdiag.stimuli.building import user_cache

if TYPE_CHECKING:
    import altair

_POINTS = 72 / 2.54
"""In a centimetre."""

_SCALE = 0.68
"""Points per pixel of a chart: its text of 11 pixels is printed at 7.5 points."""

_PPI = 300

_PADDING = 12
"""Pixels around the panels of a chart and their labels."""

_MEASURED = "DejaVu Sans"
"""The widest of the usual fonts: text that fits in it fits in any that `sans-serif` stands for."""

_TEXT = {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11}

_THEME = {
    "background": "transparent",
    "padding": 2,
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, "
    "sans-serif",
    "view": {"stroke": None},
    "axis": _TEXT | {
        "titleFontWeight": "normal", "titlePadding": 6, "labelLimit": 190, "tickSize": 3,
        "gridColor": "var(--line)", "domainColor": MUTED, "tickColor": MUTED,
    },
    "header": _TEXT | {"labelAnchor": "start", "labelFontWeight": "bold", "labelLimit": 330},
    "legend": _TEXT | {
        "titleColor": MUTED, "titleFontWeight": "normal", "labelLimit": 220, "symbolSize": 60,
        "orient": "top", "direction": "horizontal", "columnPadding": 12, "offset": 8, "padding": 0,
    },
    "title": {"color": INK, "fontSize": 12, "anchor": "start", "offset": 10},
}  # fmt: skip


# ---- colours -------------------------------------------------------------------------------------


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


def theme() -> str:
    """Returns the theme as JSON: the `config` of a specification, its colours CSS variables."""
    return json.dumps(_THEME)


# ---- files and notebooks -------------------------------------------------------------------------


def _sized(spec: dict[str, Any], width: float) -> dict[str, Any]:
    """The specification in a width in pixels, axes and legends included."""
    if "vconcat" in spec:
        panels = [{**panel, "width": width - CHOICES_WIDTH - _PADDING} for panel in spec["vconcat"]]
        return {**spec, "vconcat": panels}
    if "spec" not in spec:
        return {**spec, "width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    columns = spec["columns"]
    return {**spec, "spec": {**spec["spec"], "width": (width - 45) / columns - 30}}


def write_figures(plots: Iterable[Plot], folder: Path, kind: str, width: float) -> list[Path]:
    """Writes each chart as a file and its caption as a text file beside it.

    Args:
        plots: the charts.
        folder: is created; files of the same names are replaced.
        kind: svg, pdf or png (300 dots per inch).
        width: of a figure in centimetres.

    Returns:
        The paths of the figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for plot in plots:
        path = folder / f"{plot.name}.{kind}"
        write_atomically(path, figure_file(plot.spec, kind, width))
        write_atomically(path.with_suffix(".txt"), f"{plot.caption}\n".encode())
        paths.append(path)
    return paths


def figure_file(spec: dict[str, Any], kind: str, width: float) -> bytes:
    """Returns a chart as the content of a file; see `write_figures`."""
    import vl_convert

    config = json.loads(theme()) | {"font": _MEASURED if kind == "svg" else "sans-serif"}
    config |= {"background": "white"}
    whole = _sized(spec, width * _POINTS / _SCALE) | {"config": config}
    svg = vl_convert.vegalite_to_svg(json.dumps(resolved(whole)))
    pixels = max(float(size[2]) for size in _SIZE.finditer(svg, 0, 400) if size[1] == "width")
    scale = min(_SCALE, width * _POINTS / pixels)  # labels of panels may need more than their share
    if kind == "png":
        return vl_convert.svg_to_png(svg, scale=scale, ppi=_PPI)
    svg = _SIZE.sub(lambda size: f'{size[1]}="{float(size[2]) * scale:.2f}"', svg, count=2)
    if kind == "pdf":
        return vl_convert.svg_to_pdf(svg)  # a pixel becomes a point
    svg = svg.replace(f'font-family="{_MEASURED}"', 'font-family="sans-serif"')
    return _SIZE.sub(r'\1="\2pt"', svg, count=2).encode()


_SIZE = re.compile(r'\b(width|height)="([\d.]+)"')


def svg(spec: dict[str, Any], width: float) -> str:
    """Returns a chart of a width in pixels as an `<svg>` element in the colours of a page."""
    import vl_convert

    whole = _sized(spec, width) | {"config": json.loads(theme())}
    return vl_convert.vegalite_to_svg(json.dumps(whole))


def notebook(plot: Plot) -> altair.Chart:
    """Returns a chart as an altair chart, which shows itself and can be changed."""
    import altair

    title: Any = {"text": plot.caption.partition(". ")[0], "anchor": "start"}
    return altair.Chart.from_dict(resolved(plot.spec) | {"title": title})


def library() -> bytes:
    """Returns the script of Vega, Vega-Lite and Vega-Embed for a page without a network, gzipped.

    To make it takes seconds, so it is kept in the user's cache, once per version of vl-convert.
    """
    path = user_cache() / f"vega-{version('vl-convert-python')}.js.gz"
    if is_file(path):
        return path.read_bytes()
    import vl_convert

    script = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    content = gzip.compress(script.encode(), mtime=0)
    with suppress(OSError):  # a home that cannot be written to: it is made again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return content
