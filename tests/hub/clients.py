"""Clients of the loopback Hub in processes of their own.

`HF_ENDPOINT` and the caches are read when the libraries are imported, so a client that knows the
loopback Hub alone, and starts with empty caches, needs a new process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from limits import HANG

_FOREIGN = ("HF_", "HUGGING", "TRANSFORMERS_", "LMDIAG_")


def client_env(endpoint: str, home: Path, token: str | None = "hf_test") -> dict[str, str]:
    """Environment of a client: this Hub, this token, caches and configuration under `home`."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and not name.lower().endswith("_proxy")
    }
    off = ("XET", "TELEMETRY", "UPDATE_CHECK", "PROGRESS_BARS")
    return (
        env
        | {f"HF_HUB_DISABLE_{name}": "1" for name in off}
        | {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(home / "hf"),
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "XDG_CACHE_HOME": str(home / "cache"),
            "HOME": str(home),
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": "127.0.0.1",
            **({"HF_TOKEN": token} if token is not None else {}),
        }
    )


def run_client(
    arguments: list[str], env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Runs `python ARGUMENTS` as a client; the caller looks at the return code."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=env,
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=HANG,
        check=False,
    )
