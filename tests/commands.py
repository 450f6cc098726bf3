"""Commands that run in the process of a test, and what they run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag.cli import main


class Commands:
    """Runs commands of `lmdiag`; the fixture `command`.

    Attributes:
        folder: an empty directory of the test.
    """

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request, self.folder = request, folder

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Returns exit code, standard output and standard error of a command."""
        capsys = self._request.getfixturevalue("capsys")
        capsys.readouterr()
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return (code, *capsys.readouterr())

    def refused(self, *arguments: object, code: int = 2) -> str:
        """Returns the one line of standard error with which a command fails."""
        ended, out, err = self(*arguments)
        assert (ended, out) == (code, ""), err
        assert err.startswith("lmdiag: error: ")
        assert err.count("\n") == 1
        return err

    @property
    def data(self) -> Path:
        return Path(self._request.getfixturevalue("demo_dir"))

    @property
    def models(self) -> dict[str, Path]:
        return dict(self._request.getfixturevalue("tiny_models"))

    @property
    def runs(self) -> list[Path]:
        return list(self._request.getfixturevalue("finished_runs"))
