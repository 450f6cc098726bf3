"""Vega-Lite charts as images and in notebooks, their colours, and the script that draws them."""

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

_WIDE_FONT = "DejaVu Sans"
"""The widest of the usual fonts: text that fits in it fits in any that `sans-serif` stands for."""

_SIZE = re.compile(r'\b(width|height)="([\d.]+)"')
"""Matches an attribute of an SVG element; its groups are the name and the number of pixels."""


@cache
def palette() -> dict[str, str]:
    """Returns CSS variable -> light colour of the style sheet, e.g. `var(--c1)` -> `#2563a8`."""
    style = resource_path("cards", "base.css").read_text("utf-8")
    light_rule = style.partition("{")[2].partition("}")[0]  # the first rule; dark colours follow
    colors = re.findall(r"(--\w+):\s*(#\w+)", light_rule)
    return {f"var({name})": color for name, color in colors}


def resolve_colors(spec: Any) -> Any:
    """Returns a specification, or a part of one, with colours in place of CSS variables.

    For example, {"color": "var(--c1)"} becomes {"color": "#2563a8"}. The rows below the key "data"
    are kept: texts in them are not colours.
    """
    if isinstance(spec, dict):
        parts = {}
        for key, part in spec.items():
            parts[key] = part if key == "data" else resolve_colors(part)
        return parts
    if isinstance(spec, list):
        return [resolve_colors(part) for part in spec]
    if isinstance(spec, str):
        return palette().get(spec, spec)
    return spec


def theme() -> str:
    """Returns the theme as JSON text: the `config` of a specification, with CSS variables."""
    return resource_path("cards", "charts.json").read_text("utf-8")


def svg(spec: dict[str, Any], width: float, config: dict[str, Any] | None = None) -> str:
    """Returns a chart as the text of an `<svg>` element, by default in the colours of a page.

    Args:
        spec: Vega-Lite specification without a `config`.
        width: of the image in pixels, axes and legends included.
        config: takes the place of the theme.
    """
    import vl_convert

    config = config or json.loads(theme())
    # Vega-Lite fits one panel into a width. The width of several panels is computed here; the
    # module `drawing` writes the pixels that axes and gaps beside them need into `usermeta`.
    pixels_beside = spec.get("usermeta", {}).get("beside")
    if pixels_beside:
        panel_width = {"width": (width - pixels_beside) / spec.get("columns", 1)}
        sized = dict(spec)
        if "spec" in spec:  # of every panel
            sized["spec"] = spec["spec"] | panel_width
        if "vconcat" in spec:  # charts below each other
            sized["vconcat"] = [chart | panel_width for chart in spec["vconcat"]]
    else:
        sized = spec | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    return vl_convert.vegalite_to_svg(json.dumps(sized | {"config": config}))


def image_file(spec: dict[str, Any], kind: str, width: float) -> bytes:
    """Returns a chart as the content of an image file, in light colours on white.

    Args:
        spec: Vega-Lite specification without a `config`.
        kind: "svg", "pdf" or "png" (300 dots per inch).
        width: in centimetres.
    """
    import vl_convert

    points = width * 72 / 2.54  # 72 points in an inch of 2.54 cm
    # a viewer shows an svg in a font of its own, for which there must be room
    font = {"font": _WIDE_FONT if kind == "svg" else "sans-serif"}
    config = json.loads(theme()) | font | {"background": "white"}
    width_in_pixels = points / _SCALE
    image = svg(resolve_colors(spec), width_in_pixels, resolve_colors(config))
    sizes = _SIZE.finditer(image, 0, 400)  # of the image and its background, which come first
    pixels = max(float(size[2]) for size in sizes if size[1] == "width")
    scale = min(_SCALE, points / pixels)  # labels of panels may need more than their share

    def scaled(size: re.Match[str]) -> str:
        return f'{size[1]}="{float(size[2]) * scale:.2f}"'

    if kind == "png":
        return vl_convert.svg_to_png(image, scale=scale, ppi=300)
    image = _SIZE.sub(scaled, image, count=2)  # width and height of the image
    if kind == "pdf":
        return vl_convert.svg_to_pdf(image)  # a pixel becomes a point
    image = image.replace(f'font-family="{_WIDE_FONT}"', 'font-family="sans-serif"')
    return _SIZE.sub(r'\1="\2pt"', image, count=2).encode()


def notebook(plot: Plot) -> altair.Chart:
    """Returns a plot as an altair chart with its title, which a notebook shows and can change."""
    import altair

    title: Any = {"text": plot.title, "anchor": "start"}
    return altair.Chart.from_dict(resolve_colors(plot.spec) | {"title": title})


def library() -> bytes:
    """Returns the gzipped script of Vega, Vega-Lite and Vega-Embed, for pages without a network.

    Making it takes seconds, so it is kept in the user's cache, once per version of vl-convert.
    """
    path = user_cache() / f"vega-{version('vl-convert-python')}.js.gz"
    if is_file(path):
        return path.read_bytes()
    import vl_convert

    script = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    content = gzip.compress(script.encode(), mtime=0)  # without the time: equal bytes each time
    with suppress(OSError):  # in a cache that is not writable; it is made again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return content
