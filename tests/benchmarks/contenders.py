"""The contenders, each a process of its own: `python contenders.py NAME MODEL ROWS DATA THREADS`.

A process loads its model once, then does the whole work once for each line that it reads, and
answers with a line of JSON: the seconds it took and the largest memory it ever held, in MiB. This
file needs nothing of lmdiag unless the contender is lmdiag, so that it runs in other environments.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_BATCH = 32
_BLOCK = 64
"""Contexts of agreement are asked in blocks of neighbours from all over the data set."""

Rows = Sequence[dict[str, str]]
Work = Callable[[], object]
"""Does the whole work once; returns the seconds that count, or None for all that it takes."""


class Bare:
    """A model and its tokenizer, as transformers gives them."""

    def __init__(self, folder: str) -> None:
        import torch
        import transformers

        config = transformers.AutoConfig.from_pretrained(folder)
        self.masked = config.architectures[0].endswith("ForMaskedLM")
        auto = "AutoModelForMaskedLM" if self.masked else "AutoModelForCausalLM"
        loaded = getattr(transformers, auto).from_pretrained(folder, dtype=torch.float32)
        self.model: Any = loaded.eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def encode(self, pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
        """Returns the token ids of (left, right) of blanks; a masked model sees both, and a mask.

        Without a right context a period ends the sentence.
        """
        contexts = [left for left, _ in pairs]
        if self.masked:
            rights = [f" {right}" if right else "." for _, right in pairs]
            mask = self.tokenizer.mask_token
            contexts = [f"{c} {mask}{right}" for c, right in zip(contexts, rights, strict=True)]
        ids: list[list[int]] = self.tokenizer(contexts)["input_ids"]
        return ids

    def read(self, ids: Sequence[int]) -> int:
        """Returns the position whose distribution is wanted."""
        if self.masked:
            return list(ids).index(self.tokenizer.mask_token_id)
        return len(ids) - 1

    def ask(
        self,
        batch: Sequence[Sequence[int]],
        *,
        everywhere: bool,
        reads: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Takes the log-probabilities at (row, position) of each read; by default at the blanks."""
        import torch

        width = max(map(len, batch))
        inputs = {
            "input_ids": torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in batch]),
            "attention_mask": torch.tensor(
                [[1] * len(ids) + [0] * (width - len(ids)) for ids in batch]
            ),
        }
        reads = reads or [(line, self.read(ids)) for line, ids in enumerate(batch)]
        lines, positions = torch.tensor(reads).T
        with torch.inference_mode():
            if everywhere:
                logits = self.model(**inputs).logits[lines, positions]
            elif self.masked and not hasattr(self.model, "cls"):
                # A transform lies between encoder and projection: cut just before the latter.
                cut = self.model.get_output_embeddings().register_forward_pre_hook(
                    lambda _, states: (states[0][lines, positions],)
                )
                logits = self.model(**inputs).logits
                cut.remove()
            else:
                head = self.model.cls if self.masked else self.model.get_output_embeddings()
                logits = head(self.model.base_model(**inputs).last_hidden_state[lines, positions])
            logits.float().log_softmax(-1).topk(5)


def bare_loop(model: str, rows: Rows, *, everywhere: bool, batch: int = _BATCH) -> Work:
    """Each distinct context once, sorted by length, padded batches; every row if one at a time."""
    bare = Bare(model)
    pairs = [(row["context"], row.get("right", "")) for row in rows]
    if batch > 1:
        pairs = list(dict.fromkeys(pairs))

    def work() -> None:
        encoded = sorted(bare.encode(pairs), key=len, reverse=True)
        for first in range(0, len(encoded), batch):
            bare.ask(encoded[first : first + batch], everywhere=everywhere)

    return work


def lmdiag(model: str, data: str, *, report: bool) -> Work:
    """A run of the three diagnostics; start-up and loading the model are not counted.

    From stimuli to `results.json`: tokenising, journal, predictions, measures with intervals; with
    or without the report and its pictures, which come last.
    """
    from lmdiag.models import LoadOptions
    from lmdiag.protocol import Protocol
    from lmdiag.report.html import render
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run import RunOptions, run_model

    inputs = load_inputs(data, Protocol())

    def work() -> float:
        with tempfile.TemporaryDirectory() as output:
            start = time.time()
            run = run_model(model, LoadOptions(), inputs, RunOptions(Path(output), quiet=True))
            assert run is not None
            if report:
                render(run)
            return time.time() - start - float(run.results.seconds["load"])

    return work


def agreement(name: str, model: str, data: str, count: int) -> Work:
    """So many contexts of agreement with EW and MW, journal and tokenising included.

    `agreement-floor` is the bare forward pass of the same inputs, in padded batches, with its
    softmax; what is read there is already tokenised. `agreement-blanks` is that of the blanks
    alone: it does not ask the further inputs that words of several tokens need, such as "swims".
    """
    from lmdiag import models, stimuli
    from lmdiag.questions import Setting, collect
    from lmdiag.runs.asking import ask
    from lmdiag.runs.journal import Journal

    loaded = models.load(model)
    loaded.set_verbs(stimuli.load_verbs(data))
    settings = [Setting(stimuli.load(data, "agreement"))]
    questions = collect(settings, kind=loaded.info.kind, cased=loaded.info.cased)
    step = max(_BLOCK, len(questions) * _BLOCK // count)
    starts = range(0, len(questions), step)
    chosen = [question for start in starts for question in questions[start : start + _BLOCK]]
    if name == "agreement-blanks":
        queries = [question.query for question in chosen]
        rows = [{"context": query.context, "right": query.right_context} for query in queries]
        return bare_loop(model, rows, everywhere=False)
    if name == "agreement-floor":
        inputs = [row for question in chosen for row in loaded.encode(question).rows]
        inputs.sort(key=lambda row: -len(row.ids))
        return same_inputs(model, [inputs[n : n + _BATCH] for n in range(0, len(inputs), _BATCH)])

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
            ask(loaded, chosen, top=5, journal=journal)

    return work


def same_inputs(model: str, batches: Sequence[Sequence[Any]]) -> Work:
    """The inputs that lmdiag made, as they are, each by itself in a padded row."""
    bare = Bare(model)

    def work() -> None:
        for batch in batches:
            reads = [(line, read) for line, row in enumerate(batch) for read in row.reads]
            bare.ask([row.ids for row in batch], everywhere=False, reads=reads)

    return work


def minicons(model: str, rows: Rows) -> Work:
    """Batches of 32 rows through minicons' conditional scores."""
    from minicons import scorer  # type: ignore[import-not-found,unused-ignore]

    masked = Bare(model).masked
    one = (scorer.MaskedLMScorer if masked else scorer.IncrementalLMScorer)(model, "cpu")
    if not hasattr(one.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        one.tokenizer.batch_encode_plus = one.tokenizer.__call__

    def work() -> None:
        for first in range(0, len(rows), _BATCH):
            few = rows[first : first + _BATCH]
            options = {"suffix": ["."] * len(few)} if masked else {}
            one.conditional_score(
                [row["context"] for row in few], [row["target"] for row in few], **options
            )

    return work


def lm_eval(model: str, rows: Rows) -> Work:
    """All rows through lm-evaluation-harness's log-likelihoods, in batches of 32."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found,unused-ignore]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found,unused-ignore]

    if Bare(model).masked:
        raise LookupError("lm-evaluation-harness asks causal models only")
    harness = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=_BATCH)
    requests = [
        Instance("loglikelihood", {}, (row["context"], " " + row["target"]), number)
        for number, row in enumerate(rows)
    ]

    return lambda: harness.loglikelihood(requests, disable_tqdm=True)


def sentences(name: str, model: str, texts: Sequence[str], limit: int) -> Work:
    """Whole sentences, see `sentence_work`; `limit` in seconds, 0 for none."""
    import sentence_work

    if name == "sentences":
        return sentence_work.lmdiag(model, texts, limit)
    bare = Bare(model)
    if name == "sentences-minicons":
        return sentence_work.minicons(model, texts, _BATCH, masked=bare.masked)
    if name == "sentences-gathered" and not bare.masked:
        raise LookupError("a causal model reads every position")
    everywhere = name != "sentences-gathered"
    return sentence_work.bare_loop(bare, texts, _BATCH, everywhere=everywhere)


def prepare(name: str, model: str, rows: Rows, data: str) -> Work:
    """Loads what a contender needs and returns its work.

    Agreement has its number of contexts after a colon, sentences the seconds they may take.

    Raises:
        LookupError, ImportError: it has no part in this.
    """
    name, _, count = name.partition(":")
    if name.startswith("agreement"):
        return agreement(name, model, data, int(count))
    if name.startswith("sentences"):
        return sentences(name, model, [row["sentence"] for row in rows], int(count or 0))
    makers: dict[str, Callable[[], Work]] = {
        "floor": lambda: bare_loop(model, rows, everywhere=False),
        "everywhere": lambda: bare_loop(model, rows, everywhere=True),
        "one-at-a-time": lambda: bare_loop(model, rows, everywhere=True, batch=1),
        "lmdiag": lambda: lmdiag(model, data, report=False),
        "lmdiag-report": lambda: lmdiag(model, data, report=True),
        "minicons": lambda: minicons(model, rows),
        "lm-eval": lambda: lm_eval(model, rows),
    }
    return makers[name]()


def peak_memory() -> float:
    """Returns the most memory that this process ever held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` says on Linux includes the parent before the start
        return int(re.findall(r"VmHWM:\s+(\d+)", status.read_text())[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """See the module's docstring."""
    name, model, rows, data, threads = sys.argv[1:]
    import torch

    torch.set_num_threads(int(threads))
    try:
        work = prepare(name, model, json.loads(Path(rows).read_text()), data)
    except (LookupError, ImportError) as error:
        print(json.dumps({"absent": str(error) or type(error).__name__}), flush=True)
        return
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        counted = work()
        seconds = counted if isinstance(counted, float) else time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "memory": peak_memory()}), flush=True)


if __name__ == "__main__":
    main()
