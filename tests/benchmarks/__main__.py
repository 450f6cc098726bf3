"""`python -m benchmarks [blanks agreement sentences run]`: prints ratios measured on this machine.

`blanks`, `agreement` and `sentences` compare programs that have their model loaded (see
`contenders`); minicons and lm-eval take part where they are installed. `run` compares `lmdiag run`
with a bare script, from the shell's call to the end. Programs take turns, a ratio is the median of
the ratios within a round, and the smallest and the largest stand beside it. Nothing here is a timed
test: machines differ and are shared.

The models are random ones of published shapes, since weights do not matter to speed. Their
tokenizers are the published ones where `LMDIAG_TOKENIZERS` (or `../shared/tokenizers` beside the
repository) has them, so that texts have their real length; else small ones of the same conventions,
which split more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import tokenizer_files
import vocabularies

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
CONTENDERS = str(Path(__file__).with_name("contenders.py"))
WORKS = ("blanks", "agreement", "sentences")
TOKENIZERS = {"BertForMaskedLM": ("bert-base-uncased", "bert"), "GPT2LMHeadModel": ("gpt2", "gpt2")}
"""Class in transformers -> published tokenizer, and the small one of `tokenizer_files`."""
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "bert-base": ("BertForMaskedLM", {}),
    "gpt2": ("GPT2LMHeadModel", {}),
    "gpt2-262k": ("GPT2LMHeadModel", {"vocab_size": 262_144}),  # as many words as Gemma 3 has
    "gpt2-tiny": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
}
"""Name -> class in transformers, and what differs from its defaults, the published base model."""


def build_data(folder: Path) -> Path:
    """Builds the data set from the upstream copies, or else from the demo, and returns it."""
    from lmdiag.cli import main as lmdiag

    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or SHARED / "upstream")
    source = str(upstream) if (upstream / "lm-diagnostics").is_dir() else "demo"
    print(f"data of {'upstream' if source != 'demo' else source}")
    assert lmdiag(["build", str(folder / "data"), "--source", source]) == 0
    return folder / "data"


def make_model(shape: str, folder: Path) -> Path:
    """Writes model and tokenizer into `folder / shape` and returns it."""
    import torch
    import transformers

    name, config = SHAPES[shape]
    published, small = TOKENIZERS[name]
    out, tokenizers = folder / shape, os.environ.get("LMDIAG_TOKENIZERS") or SHARED / "tokenizers"
    if (place := Path(tokenizers) / published).is_dir():
        shutil.copytree(place, out)
    else:
        out.mkdir()
        tokenizer_files.write(small, out)
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    model_class(model_class.config_class(**config)).save_pretrained(out)
    return out


def write_questions(work: str, count: int, data: Path) -> Path:
    """Writes the questions of a work beside the data set, for programs without lmdiag.

    Sentences are `count` times 12 random everyday words; of agreement, 384 rows are asked.
    """
    import lmdiag

    rng, questions = random.Random(0), dict[str, Any]()
    words = sorted(set(re.findall(r"[A-Za-z]+", vocabularies.TEXT)))
    if work == "sentences":
        questions["sentences"] = [" ".join(rng.choices(words, k=12)) + "." for _ in range(count)]
    else:
        tasks = ["agreement"] if work == "agreement" else ["cprag102", "role88", "neg136"]
        limit = 384 if work == "agreement" else None
        parts = [lmdiag.load_stimuli(str(data), task, limit=limit).columns() for task in tasks]
        names = ("context", "right_context", "target")
        rows = [row for part in parts for row in zip(*map(part.get, names), strict=True)]
        questions = {"source": str(data), "tasks": tasks, "limit": limit, "rows": rows}
    file = data.with_name(f"{work}-{count}.json")
    file.write_text(json.dumps(questions))
    return file


def show(title: str, seconds: Mapping[str, Sequence[float]], memory: Mapping[str, float]) -> None:
    """Prints seconds, ratios to `bare` and MiB of each program; the first round is for warmth."""
    print(f"\n{title}\n{'':>10} {'seconds':>8} {'time / bare':>12} {'least-most':>12} MiB")
    for name, times in seconds.items():
        ratios = [one / bare for one, bare in zip(times[1:], seconds["bare"][1:], strict=True)]
        ends = f"{min(ratios):.2f}-{max(ratios):.2f}"
        held = f"{memory[name]:.0f}" if name in memory else ""
        print(f"{name:>10} {median(times[1:]):8.2f} {median(ratios):12.2f} {ends:>12} {held}")
    sys.stdout.flush()


def compare_programs(title: str, names: Sequence[str], arguments: list[str], rounds: int) -> None:
    """Prints the table of programs that do the same work in turns, with their model loaded."""
    seconds, memory = {name: list[float]() for name in names}, dict[str, float]()
    with ExitStack() as stack:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = {
            name: stack.enter_context(
                subprocess.Popen([sys.executable, CONTENDERS, name, *arguments], **pipes)
            )
            for name in names
        }
        for _ in range(rounds + 1):
            for name, process in processes.items():
                print("go", file=process.stdin, flush=True)
                # other lines are messages of a library
                answer = next((line for line in process.stdout if line[0] == "{"), None)
                if answer is None:
                    sys.exit(f"{name} ended without an answer")
                seconds[name].append(json.loads(answer)["seconds"])
                memory[name] = json.loads(answer)["memory"]
    show(title, seconds, memory)


def compare_runs(title: str, arguments: list[str], data: Path, rounds: int) -> None:
    """Prints the table of whole processes: `lmdiag run` with its report, and the bare script."""
    _, model, _, threads = arguments
    run = [str(ROOT / "eval/run.py"), "--model", model, "--quiet", "--data", str(data), "--output"]
    environment = os.environ | {"OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
    seconds: dict[str, list[float]] = {"bare": [], "lmdiag": []}
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as output:
            commands = {"bare": [CONTENDERS, "bare", *arguments], "lmdiag": [*run, output]}
            for name, command in commands.items():
                options: Any = {"input": b"go\n", "capture_output": True, "env": environment}
                start = time.perf_counter()
                subprocess.run([sys.executable, *command], check=True, **options)
                seconds[name].append(time.perf_counter() - start)
    show(title, seconds, {})


def machine(threads: int) -> str:
    """Returns the processor, and its rate of float32 matrix products of bert-base's largest shape.

    No program can be faster than this rate allows in float32.
    """
    import torch

    path = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)$", path.read_text() if path.exists() else "", re.M)
    torch.set_num_threads(threads)
    states, weight = torch.randn(384, 768), torch.randn(768, 3072)
    seconds = min(timeit.repeat(lambda: states @ weight, number=1, repeat=30))
    rate = 2 * states.numel() * weight.shape[1] / seconds / 1e9
    return f"{names[0] if names else platform.machine()}, {threads} threads, {rate:.0f} GFLOP/s"


def main() -> None:
    """Prints one table after the other."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="*", default=[*WORKS, "run"], metavar="WHAT")
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"], choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sentences", type=int, default=1000, help="a tenth for masked models")
    args = parser.parse_args()
    if unknown := set(args.what) - {*WORKS, "run"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    print(f"{machine(args.threads)}; {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = build_data(folder)
        for shape in args.shapes:
            model, is_masked = str(make_model(shape, folder)), SHAPES[shape][0].endswith("MaskedLM")
            for what in args.what:
                work = "blanks" if what == "run" else what
                # a masked model reads a sentence once per token
                file = write_questions(work, args.sentences // (10 if is_masked else 1), data)
                arguments = [work, model, str(file), str(args.threads)]
                if what == "run":
                    compare_runs(f"lmdiag run, {shape}", arguments, data, args.rounds)
                    continue
                names = ["bare", "lmdiag"] + ["minicons"] * bool(find_spec("minicons"))
                if find_spec("lm_eval") and not is_masked and work != "sentences":
                    names.append("lm-eval")
                compare_programs(f"{work}, {shape}", names, arguments, args.rounds)


if __name__ == "__main__":
    main()
