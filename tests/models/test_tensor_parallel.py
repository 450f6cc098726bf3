"""One model over two real processes gives the numbers that it gives in one."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from families import FAMILIES
from limits import HANG

from lmdiag.models import load
from lmdiag.types import Answer
from models.comparison import QUESTIONS, ask, check_same

PROGRAM = """
import json, os, sys
import torch.distributed as dist
from lmdiag.models import LoadOptions, load
from models.comparison import QUESTIONS, ask

model = load(sys.argv[1], LoadOptions(tp=True))
answers = [answer.to_json() for answer in ask(model, QUESTIONS)]
if dist.get_rank() == 0:
    print(json.dumps({"processes": dist.get_world_size(), "answers": answers}))
"""


@pytest.mark.slow
def test_two_processes_share_a_model(tmp_path: Path) -> None:
    llama = FAMILIES["llama"]
    two_heads = dataclasses.replace(llama, config=llama.config | {"num_key_value_heads": 2})
    folder = two_heads.make(tmp_path / "llama")
    (tmp_path / "program.py").write_text(PROGRAM)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, "--standalone", str(tmp_path / "program.py"), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["processes"] == 2
    shared = [Answer.from_json(answer) for answer in told["answers"]]
    check_same(shared, ask(load(str(folder)), QUESTIONS))
