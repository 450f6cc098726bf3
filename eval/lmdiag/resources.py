"""Finds files outside the package: `cards/`, `metrics/`, `datasets/lmdiag/`.

With an editable install they are in the root of the repository; any other install has them as data
files under `share/lmdiag` (setup.cfg, `[options.data_files]`).
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from lmdiag.types import BadInput


def resource_path(*parts: str) -> Path:
    """Returns the path of a file or folder, e.g. `resource_path("cards", "report.html.j2")`.

    Raises:
        BadInput: neither the repository nor the installation has it.
    """
    roots = (Path(__file__).resolve().parents[2], Path(sysconfig.get_path("data"), "share/lmdiag"))
    for root in roots:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise BadInput(
        f"{'/'.join(parts)} is missing from this installation (looked in {roots[0]} and "
        f"{roots[1]}): install lmdiag again, or run `make setup` in a clone"
    )
