"""Charts as images for a paper and in notebooks, their colours, and the script of a page."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from lmdiag.files.reading import is_file, resource_path
from lmdiag.files.writing import write_atomically
from lmdiag.report.charts import Plot
from lmdiag.stimuli.dataset import user_cache

if TYPE_CHECKING:
    import altair

_SCALE = 0.68
"""Points per pixel of a chart: its text of 11 pixels is printed at 7.5 points."""

_MEASURED = "DejaVu Sans"
"""The widest of the usual fonts: text that fits in it fits in any that `sans-serif` stands for."""

_SIZE = re.compile(r'\b(width|height)="([\d.]+)"')


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
    return resource_path("cards", "charts.json").read_text("utf-8")


def svg(spec: dict[str, Any], width: float, config: dict[str, Any] | None = None) -> str:
    """Returns a chart as an `<svg>` element, by default in the colours of a page.

    The width is in pixels, axes and legends included; `config` takes the place of the theme.
    """
    import vl_convert

    config = config or json.loads(theme())
    whole = spec | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    if beside := spec.get("usermeta", {}).get("beside"):  # panels
        panel = {"width": (width - beside) / spec.get("columns", 1)}
        whole = spec | {key: spec[key] | panel for key in ("spec",) if key in spec}
        whole |= {key: [part | panel for part in spec[key]] for key in ("vconcat",) if key in spec}
    return vl_convert.vegalite_to_svg(json.dumps(whole | {"config": config}))


def image_file(spec: dict[str, Any], kind: str, width: float) -> bytes:
    """Returns a chart as the content of a file.

    `kind` is svg, pdf or png (300 dots per inch), `width` in centimetres.
    """
    import vl_convert

    points = width * 72 / 2.54
    font = {"font": _MEASURED if kind == "svg" else "sans-serif"}
    config = json.loads(theme()) | font | {"background": "white"}
    drawn = svg(resolved(spec), points / _SCALE, resolved(config))
    pixels = max(float(size[2]) for size in _SIZE.finditer(drawn, 0, 400) if size[1] == "width")
    scale = min(_SCALE, points / pixels)  # labels of panels may need more than their share
    if kind == "png":
        return vl_convert.svg_to_png(drawn, scale=scale, ppi=300)
    drawn = _SIZE.sub(lambda size: f'{size[1]}="{float(size[2]) * scale:.2f}"', drawn, count=2)
    if kind == "pdf":
        return vl_convert.svg_to_pdf(drawn)  # a pixel becomes a point
    drawn = drawn.replace(f'font-family="{_MEASURED}"', 'font-family="sans-serif"')
    return _SIZE.sub(r'\1="\2pt"', drawn, count=2).encode()


def notebook(plot: Plot) -> altair.Chart:
    """Returns a chart as an altair chart, which shows itself and can be changed."""
    import altair

    title: Any = {"text": plot.title, "anchor": "start"}
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
