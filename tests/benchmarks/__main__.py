"""`python -m benchmarks [blanks agreement sentences run]`: prints ratios measured on this machine.

`blanks`, `agreement` and `sentences` compare programs that have their model loaded (see
`contenders`); minicons and lm_eval take part where they are installed. `run` compares `lmdiag run`
and its report with a bare script, from the shell's call to the end. Programs take turns, a ratio is
the median of the ratios within a round, and the smallest and the largest stand beside it. Nothing
here is a timed test: machines differ and are shared.

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
import timeit
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import tokenizer_files
import vocabularies

from benchmarks import contenders

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
WHAT = ("blanks", "agreement", "sentences", "run")
DIAGNOSTICS = ("cprag102", "role88", "neg136")
TOKENIZERS = {"BertForMaskedLM": ("bert-base-uncased", "bert"), "GPT2LMHeadModel": ("gpt2", "gpt2")}
"""Class in transformers -> published tokenizer, and the small one of `tokenizer_files`."""
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "bert-base": ("BertForMaskedLM", {}),
    "gpt2": ("GPT2LMHeadModel", {}),
    "gpt2-262k": ("GPT2LMHeadModel", {"vocab_size": 262_144}),  # as many words as Gemma 3 has
    "gpt2-tiny": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
}
"""Name -> class in transformers, and what differs from its defaults, the published base model."""


def build_data(folder: Path) -> str:
    """Builds the data set from the upstream copies, or else from the demo, and returns it."""
    from lmdiag.cli import main as lmdiag

    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or SHARED / "upstream")
    source = str(upstream) if (upstream / "lm-diagnostics").is_dir() else "demo"
    print(f"data of {'upstream' if source != 'demo' else source}")
    assert lmdiag(["build", str(folder / "data"), "--source", source]) == 0
    return str(folder / "data")


def make_model(shape: str, folder: Path) -> str:
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
    return str(out)


def compare(title: str, programs: Mapping[str, Callable[[], object]], rounds: int) -> None:
    """Prints seconds and ratios to `bare` of programs in turns; the first round is for warmth."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds + 1):
        for name, program in programs.items():
            seconds[name].append(timeit.timeit(program, number=1))
    print(f"\n{title}\n{'':>10} {'seconds':>8} {'time / bare':>12} {'least-most':>12}")
    for name, times in seconds.items():
        ratios = [one / bare for one, bare in zip(times[1:], seconds["bare"][1:], strict=True)]
        ends = f"{min(ratios):.2f}-{max(ratios):.2f}"
        print(f"{name:>10} {median(times[1:]):8.2f} {median(ratios):12.2f} {ends:>12}", flush=True)


def loaded_programs(work: str, model: str, data: str, n_sentences: int) -> Mapping[str, Any]:
    """Returns the programs that can do a work, with their model loaded.

    A sentence is 12 random everyday words; of agreement, 384 rows are asked.
    """
    import lmdiag

    words, rng = sorted(set(re.findall(r"[A-Za-z]+", vocabularies.TEXT))), random.Random(0)
    texts = [" ".join(rng.choices(words, k=12)) + "." for _ in range(n_sentences)]
    tasks = {"blanks": DIAGNOSTICS, "agreement": ["agreement"], "sentences": []}[work]
    limit = 384 if work == "agreement" else None
    stimuli = [lmdiag.load_stimuli(data, task, limit=limit) for task in tasks]
    names = [name for name in ("minicons", "lm_eval") if find_spec(name)]
    if "lm_eval" in names and (work == "sentences" or "bert" in Path(model).name):
        names.remove("lm_eval")
    rows = [row for part in stimuli for row in asked(part)]
    sentences = texts if work == "sentences" else []
    programs = {name: getattr(contenders, name)(model, rows, sentences) for name in names}
    of_lmdiag = contenders.lmdiag(model, stimuli, sentences)
    return {"bare": contenders.bare(model, rows, sentences), "lmdiag": of_lmdiag} | programs


def asked(stimuli: Any) -> list[tuple[str, str, str]]:
    """Returns left context, right context and target of each row."""
    columns = stimuli.columns()
    names = ("context", "right_context", "target")
    return list(zip(*(columns[name] for name in names), strict=True))


def whole_processes(model: str, data: str, threads: int, folder: Path) -> Mapping[str, Any]:
    """Returns `lmdiag run` and the bare script, as processes."""
    import lmdiag

    rows = [row for task in DIAGNOSTICS for row in asked(lmdiag.load_stimuli(data, task))]
    file, environment = folder / "rows.json", {"OMP_NUM_THREADS": str(threads)}
    file.write_text(json.dumps(rows))

    def process(*command: str) -> None:
        options: Any = {"capture_output": True, "env": os.environ | environment}
        subprocess.run([sys.executable, *command], check=True, **options)

    def run() -> None:
        with tempfile.TemporaryDirectory() as output:
            options = ["--model", model, "--data", data, "--output", output, "--quiet"]
            process(str(ROOT / "eval/run.py"), *options)

    script = contenders.__file__
    return {"bare": lambda: process(script, model, str(file), str(threads)), "lmdiag": run}


def main() -> None:
    """Prints one table after the other."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="*", default=WHAT, help=", ".join(WHAT))
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"], choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sentences", type=int, default=1000, help="a tenth for masked models")
    args = parser.parse_args()
    if not set(args.what) <= set(WHAT):
        parser.error(f"WHAT is {' '.join(args.what)}: choose from {', '.join(WHAT)}")
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    import torch

    torch.set_num_threads(args.threads)
    # of bert-base's largest shape: no program can be faster than this rate allows in float32
    states, weight = torch.randn(384, 768), torch.randn(768, 3072)
    seconds = min(timeit.repeat(lambda: states @ weight, number=1, repeat=30))
    rate = 2 * states.numel() * weight.shape[1] / seconds / 1e9
    processor = platform.processor() or platform.machine()
    print(f"{processor}, {args.threads} threads, {rate:.0f} GFLOP/s; {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = build_data(folder)
        for shape in args.shapes:
            model = make_model(shape, folder)
            # a masked model reads a sentence once per token
            n_sentences = args.sentences // (10 if "bert" in shape else 1)
            for what in args.what:
                if what == "run":
                    programs = whole_processes(model, data, args.threads, folder)
                else:
                    programs = loaded_programs(what, model, data, n_sentences)
                compare(f"{what}, {shape}", programs, args.rounds)


if __name__ == "__main__":
    main()
