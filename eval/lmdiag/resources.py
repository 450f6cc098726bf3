"""Where the rooms beside the package are: `cards/`, `metrics/`, `datasets/lmdiag/`.

An editable install is a path to the repository, and they stand in its root; any other install
carries them as data files under `share/lmdiag` (setup.cfg, `[options.data_files]`).
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from lmdiag.schema import BadInput


def resource_path(*parts: str) -> Path:
    """Returns the path of a file or folder that lmdiag has outside its package.

    Args:
        parts: names below the root, e.g. `resource_path("cards", "result.md.j2")`.

    Raises:
        BadInput: no installed or checked-out copy has it.
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
