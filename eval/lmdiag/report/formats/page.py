"""What every HTML page is made with: templates that escape, and a strict Content-Security-Policy.

Names and words of models and data are data: everything that is put into a page is escaped, and what
hides in it is shown. A page's only script and only style sheet are its own, and its
Content-Security-Policy names their digests and allows nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from lmdiag import __version__
from lmdiag.files.reading import resource_path
from lmdiag.report import labels, numbers
from lmdiag.report.charts import output
from lmdiag.report.grid import with_kept_brackets
from lmdiag.results import CHANCE_LEGEND
from lmdiag.stimuli.dataset import user_cache
from lmdiag.text import visible

_NAME_PARTS = re.compile(r"(?<=[/:_])(?=\w)|(?<=\w)(?=\[)")
"""Matches where a line may end in a name of a model or an effect."""

_BRACKETS = re.compile(r"(\[[^\[\]]{1,38}\])")
"""Matches brackets in which a line may end only where a page is narrow."""

_SHORT = 18
"""Characters of brackets in which no line ends, however narrow a page is."""

_UNBROKEN_BLANK = re.compile(r"(?<=[=<]) | (?=[=<] )|\xa0")
"""Matches blanks where no line may end: in `p < .05`, and those within short brackets."""


class _CompiledTemplates(FileSystemBytecodeCache):
    """Templates that Python has compiled, as it keeps its modules, in the user's cache.

    Without access to the folder, templates are compiled again each time.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fills a bucket with the compiled template that the cache has of it, if any."""
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Writes the compiled template of a bucket into the cache."""
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def environment() -> Environment:
    """Returns the jinja2 environment of the HTML templates in `cards/`.

    Texts are escaped, and their invisible characters are spelled out.
    """

    def with_visible_characters(value: object) -> object:
        """Returns what a template prints for a value; `Markup` is HTML already and stays."""
        if isinstance(value, str) and not isinstance(value, Markup):
            return visible(value)
        return value

    # compiled templates depend on the options below, and so on the version
    cache_folder = user_cache() / f"templates-{__version__}-jinja2-{version('jinja2')}"
    env = Environment(
        bytecode_cache=_CompiledTemplates(str(cache_folder)),
        loader=FileSystemLoader(resource_path("cards")), extensions=["jinja2.ext.do"],
        autoescape=True, finalize=with_visible_characters, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    env.globals |= {"numbers": numbers, "labels": labels, "chance_legend": CHANCE_LEGEND}
    env.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    env.filters["unbroken"] = _unbroken
    env.filters["breakable"] = _breakable
    return env


def _breakable(name: str) -> Markup:
    """A name of a model or an effect, whose lines may end between its parts.

    For example, "org/model" becomes "org/<wbr>model".
    """
    return Markup("<wbr>").join(_part_of_name(part) for part in _NAME_PARTS.split(name))


def _part_of_name(text: str) -> Markup:
    """A part of a name as HTML, in whose brackets no line ends, not even after a hyphen.

    For example, "verb[a - b]" becomes 'verb<span class="tied">[a - b]</span>'. The style of long
    brackets (`tied long`) lets lines end in them where a page is narrow. The text outside of
    brackets is as `_unbroken` returns it: lines may end at its blanks, but not within a test such
    as "p < .05".
    """
    parts = _BRACKETS.split(text)  # every other one is in brackets
    html_parts = [_unbroken(part) for part in parts]
    for i in range(1, len(parts), 2):
        style = "tied" if len(parts[i]) <= _SHORT else "tied long"
        html_parts[i] = Markup('<span class="{}">{}</span>').format(style, visible(parts[i]))
    return Markup("").join(html_parts)


def _unbroken(text: str) -> Markup:
    """A text, escaped, with no-break spaces within tests and short brackets.

    For example, "p < .05" becomes "p&nbsp;&lt;&nbsp;.05".
    """
    parts = _UNBROKEN_BLANK.split(with_kept_brackets(visible(text)))
    return Markup("&nbsp;").join(map(escape, parts))


def frame(name: str, *, charts: bool = False) -> dict[str, str]:
    """Returns what the template of a page puts around its content.

    Args:
        name: of the style sheet and the script of the page in `cards/`, without their endings.
        charts: whether the page draws charts and needs their library.

    Returns:
        `style` and `script`, the `policy` that allows nothing else, and the `theme` of charts and
        their `library` (gzipped, in base64), "" without charts.
    """
    script = resource_path("cards", f"{name}.js").read_text("utf-8")
    style = resource_path("cards", "base.css").read_text("utf-8")
    style += resource_path("cards", f"{name}.css").read_text("utf-8")
    library = output.library() if charts else b""
    scripts = [script.encode()]
    if charts:
        scripts.append(gzip.decompress(library))
    script_digests = " ".join(f"'{digest(content)}'" for content in scripts)
    policy = (
        f"default-src 'none'; style-src '{digest(style.encode())}'; "
        f"script-src {script_digests}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {
        "style": Markup(style), "script": Markup(script), "policy": policy,
        "theme": Markup(output.theme() if charts else ""),
        "library": base64.b64encode(library).decode(),
    }  # fmt: skip


def digest(content: bytes) -> str:
    """Returns the SHA-256 of an inline style or script as a policy names it: "sha256-", base64."""
    sha256 = hashlib.sha256(content).digest()
    return f"sha256-{base64.b64encode(sha256).decode()}"
