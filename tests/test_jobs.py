"""The recipes of docs/jobs.md: what can be run without a cluster is run, the rest is parsed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hub import LoopbackHub, client_env

from lmdiag.cli import build_parser

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"```bash\n(.*?)```", (ROOT / "docs/jobs.md").read_text(), re.DOTALL)
SLURM = next(block for block in BLOCKS if "#SBATCH" in block)
JOB = next(block for block in BLOCKS if block.startswith("hf jobs"))
COMMANDS = [
    shlex.split(line)
    for block in BLOCKS
    if block not in (SLURM, JOB)
    for line in block.replace("\\\n", " ").splitlines()
]


def lmdiag_arguments(command: list[str]) -> list[str]:
    """The part of a command that lmdiag reads; checks what the launcher before it reads."""
    if command[0] == "lmdiag":
        return command[1:]
    place = command.index("eval/run.py")
    launcher, ours = command[:place], command[place + 1 :]
    if launcher[:2] == ["accelerate", "launch"]:
        from accelerate.commands.launch import launch_command_parser

        launch_command_parser().parse_args([*launcher[2:], "eval/run.py"])
    else:
        from torch.distributed.run import get_args_parser

        assert launcher[0] == "torchrun"
        get_args_parser().parse_args([*launcher[1:], "eval/run.py"])
    return ["run", *ours]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_one_that_the_programs_take(command: list[str]) -> None:
    arguments = lmdiag_arguments(command)
    build_parser(arguments[0]).parse_args(arguments)


def fake_program(folder: Path, name: str) -> None:
    """A program that writes its name, its arguments and whether it may use the Hub to a log."""
    program = folder / name
    log = shlex.quote(str(folder / "log"))
    program.write_text(f'#!/bin/sh\necho "{name} $* offline=$HF_HUB_OFFLINE" >> {log}\n')
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (1, "lmdiag run --model org/one --data lmdiag --output results --quiet offline=1"),
        (
            2,
            "lmdiag run --model org/two --revision step1000 --data lmdiag --output results --quiet "
            "offline=1",
        ),
    ],
)
def test_a_task_of_the_array_takes_its_line(tmp_path: Path, task: int, expected: str) -> None:
    (tmp_path / "models.txt").write_text("org/one\norg/two step1000\n")
    (tmp_path / "job.sh").write_text(SLURM)
    for name in ("lmdiag", "scontrol"):
        fake_program(tmp_path, name)
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_JOB_ID": "7",
    }
    subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "log").read_text().splitlines() == [expected]


def test_the_job_of_the_hub_is_understood(hub: LoopbackHub, tmp_path: Path) -> None:
    hf = Path(sys.executable).with_name("hf")
    command = shlex.split(JOB.replace("\\\n", " "))
    # A folder of this machine would be sent to the Hub's storage first.
    command[command.index(".:/src")] = "hf://datasets/org/src:/src"
    done = subprocess.run(
        [str(hf), *command[1:3], "--dry-run", "--namespace", "org", *command[3:]],
        env=client_env(hub.url, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Job not submitted" in done.stdout
    assert "hf_test" not in done.stdout
    inside = command[-1].split("&&")
    ours = [shlex.split(part)[1:] for part in inside if part.strip().startswith("lmdiag")]
    assert [arguments[0] for arguments in ours] == ["run", "submit"]
    for arguments in ours:
        build_parser(arguments[0]).parse_args(arguments)
