"""`lmdiag app`: a page in the browser for those who do not type."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from lmdiag.cli import say
from lmdiag.files.reading import is_file, user_path
from lmdiag.text import visible
from lmdiag.types import BadInput

LOCAL = "127.0.0.1"


def app_command(
    file: Path | None = None,
    /,
    *,
    host: str = LOCAL,
    port: Annotated[int | None, Parameter(validator=Number(gte=1, lte=65535))] = None,
    no_browser: bool = False,
) -> None:
    """Serves the page until it is interrupted.

    Args:
        file: table that the page opens with
        host: address at which the page is served; others than 127.0.0.1 can be opened by everybody
            who reaches it: the page has no password, reads tables that are sent, and loads models
        port: its port (default: the first free one from 7860)
        no_browser: do not open the browser
    """
    if file and not is_file(user_path(str(file))):
        raise BadInput(f"{file} is not there, or is a folder: give a table, or none")
    if find_spec("gradio") is None:
        raise BadInput("lmdiag app needs gradio: install the extra, pip install '.[app]'")
    from lmdiag.app.page import serve

    if host != LOCAL:
        say(
            f"lmdiag: the page is open to everybody who reaches {visible(host)}, without a password"
        )
    serve(
        file and user_path(str(file)), host, port, opens=not no_browser,
        on_start=lambda address: say(f"lmdiag: the page is at {address}; press Ctrl-C to end it"),
    )  # fmt: skip
