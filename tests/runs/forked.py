"""Real commands as forks of a process that has imported what they need, which takes seconds.

The process is the `forkserver` of multiprocessing: the first fork starts it, one for each worker of
pytest, and it ends with the worker. It computes nothing, so that no thread is lost by a fork. There
is none on Windows.
"""

import multiprocessing
import os
import sys
import traceback
from multiprocessing import forkserver
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from launched import environment, free_port

from lmdiag.cli import program

IMPORTED = [
    "pyarrow.parquet", "scipy.stats", "transformers.models.bert.modeling_bert",
    "lmdiag.analysis.fit", "lmdiag.leaderboard.site", "lmdiag.models.local",
    "lmdiag.models.server.served", "lmdiag.report.display", "lmdiag.runs.run_model",
]  # fmt: skip
"""What commands import; the forks find it in memory."""


def started(function, *arguments, log, **more):
    """Starts a call in a fork; returns the process, as multiprocessing has it.

    It is in the current directory, `more` is added to its environment, and it writes its output
    into `log` with the suffixes .out and .err.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["__main__", __name__, *IMPORTED])
    with patch.dict(os.environ, environment(PYTHONPATH=str(Path(__file__).parents[1]))):
        forkserver.ensure_running()
    call = (function, arguments, log, environment(**more), Path.cwd())
    child = server.Process(target=_called, args=call)
    child.start()
    return child


def _called(function, arguments, log, variables, folder):
    """Calls a function in a fork."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number, name in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(log.with_suffix(name), os.O_WRONLY | os.O_CREAT), number)
    function(*arguments)


def forked(function, *arguments, **more):
    """Calls a function in a fork, which must succeed; returns its standard output."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        child = started(function, *arguments, log=log, **more)
        child.join()
        output, errors = (log.with_suffix(name).read_text("utf-8") for name in (".out", ".err"))
    assert child.exitcode == 0, f"{arguments}\n{output}\n{errors}"
    return output


def run_and_leave(arguments):
    """Runs a command as `lmdiag` does, and ends this process, a fork, with its exit code."""
    code = 99
    try:
        program(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:  # also where a full disk has no room for the traceback
        os._exit(code)


def ended(child):
    """Waits for a command; returns its exit code, -9 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_on(count, *arguments):
    """Runs a command on so many processes that share the work, as torchrun does, in a fork."""
    meeting = {"WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    children = []
    for rank in range(count):
        child = os.fork()
        if not child:
            places = meeting | {"RANK": rank, "LOCAL_RANK": rank}
            os.environ |= {name: str(value) for name, value in places.items()}
            run_and_leave([*map(str, arguments)])
        children.append(child)
    sys.exit(max([abs(ended(child)) for child in children]))
