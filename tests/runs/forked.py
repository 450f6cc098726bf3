"""Real commands as forks of a process that has imported what they need, which takes seconds.

`python -m runs.forked COUNT COMMAND...` runs a command of `lmdiag` on so many processes that share
the work, as torchrun does. Nothing is computed before the forks, so that no thread is lost.
"""

import os
import sys
import traceback

# What a run imports; the children find it in memory.
import altair  # noqa: F401
import pyarrow.parquet  # noqa: F401
import scipy.stats  # noqa: F401
import transformers.models.bert.modeling_bert  # noqa: F401
from launched import free_port

import lmdiag.analysis.fit
import lmdiag.leaderboard.site
import lmdiag.models.local
import lmdiag.models.server.load
import lmdiag.report.display
import lmdiag.runs.run  # noqa: F401
from lmdiag.cli import program


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


def run_on(count, arguments):
    """Runs a command on so many processes; returns their exit codes."""
    meeting = {"WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    children = []
    for rank in range(count):
        child = os.fork()
        if not child:
            places = meeting | {"RANK": rank, "LOCAL_RANK": rank}
            os.environ |= {name: str(value) for name, value in places.items()}
            run_and_leave(arguments)
        children.append(child)
    return [ended(child) for child in children]


if __name__ == "__main__":
    sys.exit(max(map(abs, run_on(int(sys.argv[1]), sys.argv[2:]))))
