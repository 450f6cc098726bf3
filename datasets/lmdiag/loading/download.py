"""Downloads files over HTTP: checked by SHA-256, kept, with repeated attempts."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from .lines import BadSource

INSTEAD = "use --source demo, or --source DIR with a copy of the repository"
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
"""HTTP codes after which another attempt is made."""


@dataclass(frozen=True)
class Download:
    """A set of files under one address.

    Attributes:
        remote: address of the folder.
        local: the folder where files are kept, under the same paths.
        what: name for the progress line.
        attempts: maximum number of attempts per file.
        pause: seconds before the second attempt; doubled before each further one.
        timeout: seconds without an answer after which an attempt has failed.
    """

    remote: str
    local: Path
    what: str
    attempts: int = 5
    pause: float = 1.0
    timeout: float = 30.0

    def all(self, sums: dict[str, str]) -> None:
        """Downloads what is missing, with a progress line on standard error.

        Args:
            sums: path -> SHA-256, hexadecimal.

        Raises:
            BadSource: no network, no such file, or a checksum that differs.
        """
        missing = [path for path in sums if not self._is_kept(path, sums[path])]
        for done, path in enumerate(missing, start=1):
            self._show(f"fetching {self.what} {done}/{len(missing)}: {path}")
            self._keep(path, self._fetch(path), sums[path])
        if missing:
            self._show(f"fetched {self.what}: {len(missing)} files", end="\n")

    def _is_kept(self, path: str, digest: str) -> bool:
        try:
            return hashlib.sha256((self.local / path).read_bytes()).hexdigest() == digest
        except OSError:
            return False

    def _keep(self, path: str, content: bytes, digest: str) -> None:
        actual = hashlib.sha256(content).hexdigest()
        if actual != digest:
            raise BadSource(
                f"checksum of {self.remote}/{path} differs: expected {digest[:12]}..., "
                f"got {actual[:12]}...; {INSTEAD}"
            )
        target = self.local / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(target)

    def _fetch(self, path: str) -> bytes:
        url = f"{self.remote}/{urllib.parse.quote(path)}"
        if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
            raise BadSource(f"HF_HUB_OFFLINE is set, {url} is not fetched; {INSTEAD}")
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                with urllib.request.urlopen(url, timeout=self.timeout) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                why = f"the server said {error.code} {error.reason}"
                if error.code not in TEMPORARY:
                    break
            except (OSError, http.client.HTTPException) as error:
                why = str(getattr(error, "reason", error))
        raise BadSource(f"{url} cannot be fetched ({why}); {INSTEAD}")

    def _show(self, text: str, end: str = "") -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end=end, file=sys.stderr, flush=True)
