"""What every page of ours is made with: templates that escape, and a policy that lets nothing in.

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
from lmdiag.report.grid import tied
from lmdiag.results import CHANCE_LEGEND
from lmdiag.stimuli.dataset import user_cache
from lmdiag.text import visible

_NAME_PARTS = re.compile(r"(?<=[/:_])(?=\w)|(?<=\w)(?=\[)")
"""Matches where a line may end in a name of a model or an effect."""
_SHORT = 18
"""Characters in brackets that are on one line also where a page is narrow."""

_BRACKETS = re.compile(r"(\[[^\[\]]{1,38}\])")
_TIED = re.compile(r"(?<=[=<]) | (?=[=<] )|\xa0")
"""Matches blanks where no line may end: in `p < .05`, and those within short brackets."""


class _CompiledTemplates(FileSystemBytecodeCache):
    """Templates that Python has compiled, as it keeps its modules, in the user's cache.

    A folder that cannot be read or written to is left alone: they are compiled again next time.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def environment() -> Environment:
    """Returns the environment of the templates in `cards/`."""

    def shown(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    # the options below are in the compiled templates
    compiled = user_cache() / f"templates-{__version__}-jinja2-{version('jinja2')}"
    env = Environment(
        bytecode_cache=_CompiledTemplates(str(compiled)),
        loader=FileSystemLoader(resource_path("cards")), extensions=["jinja2.ext.do"],
        autoescape=True, finalize=shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    env.globals |= {"numbers": numbers, "labels": labels, "chance_legend": CHANCE_LEGEND}
    env.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    env.filters["unbroken"] = _unbroken
    env.filters["breakable"] = lambda name: Markup("<wbr>").join(
        map(_part_of_name, _NAME_PARTS.split(name))
    )
    return env


def _part_of_name(text: str) -> Markup:
    """A part of a name, in whose brackets no line ends: browsers end lines after their hyphens.

    Long brackets are divided where a page is narrow.
    """
    parts = _BRACKETS.split(text)  # every other one is in brackets
    shown = [_unbroken(part) for part in parts]
    for i in range(1, len(parts), 2):
        look = "tied" if len(parts[i]) <= _SHORT else "tied long"
        shown[i] = Markup('<span class="{}">{}</span>').format(look, visible(parts[i]))
    return Markup("").join(shown)


def _unbroken(text: str) -> Markup:
    """The text with blanks where no line ends within a test or an interval."""
    return Markup("&nbsp;").join(map(escape, _TIED.split(tied(visible(text)))))


def frame(name: str, *, charts: bool = False) -> dict[str, str]:
    """Returns the style, the scripts and the policy of a page, with a library if it has charts.

    `name` is that of the style sheet and the script in `cards/`, without their endings.
    """
    files = (f"{name}.js", "base.css", f"{name}.css")
    script, *styles = (resource_path("cards", file).read_text("utf-8") for file in files)
    style = "".join(styles)
    library = output.library() if charts else b""
    scripts = [script.encode(), *([gzip.decompress(library)] if charts else [])]
    policy = (
        f"default-src 'none'; style-src '{digest(style.encode())}'; "
        f"script-src {' '.join(repr(digest(content)) for content in scripts)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return {
        "style": Markup(style), "script": Markup(script), "policy": policy,
        "theme": Markup(output.theme() if charts else ""),
        "library": base64.b64encode(library).decode(),
    }  # fmt: skip


def digest(content: bytes) -> str:
    """Returns the SHA-256 of an inline style or script as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"
