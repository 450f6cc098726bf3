"""Commands that run in the process of a test, and what they run on."""

from pathlib import Path

from lmdiag.cli import main


class Commands:
    """Runs commands of `lmdiag`; the fixture `command`.

    Attributes:
        folder: an empty directory of the test.
    """

    def __init__(self, request, folder):
        self._request, self.folder = request, folder

    def __call__(self, *arguments):
        """Returns exit code, standard output and standard error of a command."""
        capsys = self._request.getfixturevalue("capsys")
        capsys.readouterr()
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return (code, *capsys.readouterr())

    def refused(self, *arguments, code=2):
        """Returns the one line of standard error with which a command fails."""
        ended, out, err = self(*arguments)
        assert (ended, out) == (code, ""), err
        assert err.startswith("lmdiag: error: ")
        assert err.count("\n") == 1
        return err

    @property
    def data(self):
        return Path(self._request.getfixturevalue("demo_dir"))

    @property
    def models(self):
        return dict(self._request.getfixturevalue("tiny_models"))

    @property
    def runs(self):
        return list(self._request.getfixturevalue("finished_runs"))
