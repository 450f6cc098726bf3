"""The contenders, each a process of its own: `python contenders.py NAME MODEL ROWS DATA THREADS`.

A process loads its model once, then does the whole work once for each line that it reads, and
answers with a line of JSON: the seconds it took and the largest memory it ever held, in MiB. This
file needs nothing of lmdiag unless the contender is lmdiag, so that it runs in other environments.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BATCH = 32
Rows = Sequence[dict[str, str]]
Work = Callable[[], float]
"""Does the whole work once and returns the seconds that count."""


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

    def encode(self, contexts: Sequence[str]) -> list[list[int]]:
        """Returns the token ids of the contexts, with a mask and a period for masked models."""
        if self.masked:
            mask = self.tokenizer.mask_token
            contexts = [f"{context} {mask}." for context in contexts]
        found: list[list[int]] = self.tokenizer(list(contexts))["input_ids"]
        return found

    def read(self, ids: Sequence[int]) -> int:
        """Returns the position whose distribution is wanted."""
        if self.masked:
            return list(ids).index(self.tokenizer.mask_token_id)
        return len(ids) - 1

    def ask(self, batch: Sequence[Sequence[int]], *, everywhere: bool) -> None:
        """Takes the log-probabilities at the blanks of a batch."""
        import torch

        width = max(map(len, batch))
        inputs = {
            "input_ids": torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in batch]),
            "attention_mask": torch.tensor(
                [[1] * len(ids) + [0] * (width - len(ids)) for ids in batch]
            ),
        }
        lines, reads = torch.arange(len(batch)), torch.tensor([self.read(ids) for ids in batch])
        with torch.inference_mode():
            if everywhere:
                logits = self.model(**inputs).logits[lines, reads]
            else:
                states = self.model.base_model(**inputs).last_hidden_state[lines, reads]
                logits = self._head()(states)
            logits.float().log_softmax(-1).topk(5)

    def _head(self) -> Callable[[Any], Any]:
        """Returns what comes after the encoder: a head with a transform of its own (BERT), or not.

        Raises:
            LookupError: the head is made otherwise.
        """
        if self.masked and hasattr(self.model, "cls"):
            return self.model.cls  # type: ignore[no-any-return]
        if not self.masked:
            return self.model.get_output_embeddings()  # type: ignore[no-any-return]
        raise LookupError(type(self.model).__name__)


def bare_loop(model: str, rows: Rows, *, everywhere: bool) -> Work:
    """Each distinct context once, sorted by length, batches of 32, filled up."""
    bare = Bare(model)
    contexts = list(dict.fromkeys(row["context"] for row in rows))

    def work() -> float:
        start = time.perf_counter()
        encoded = sorted(bare.encode(contexts), key=len, reverse=True)
        for first in range(0, len(encoded), BATCH):
            bare.ask(encoded[first : first + BATCH], everywhere=everywhere)
        return time.perf_counter() - start

    return work


def one_at_a_time(model: str, rows: Rows) -> Work:
    """Each row by itself, projection everywhere, as the original code (which does so twice)."""
    bare = Bare(model)

    def work() -> float:
        start = time.perf_counter()
        for row in rows:
            bare.ask(bare.encode([row["context"]]), everywhere=True)
        return time.perf_counter() - start

    return work


def lmdiag(model: str, data: str, *, whole: bool) -> Work:
    """A run of the three diagnostics; start-up and loading the model are not counted.

    From stimuli to answers, tokenising and journal included, or the whole, with predictions,
    measures, results and the report's pictures.
    """
    from lmdiag.models import LoadOptions
    from lmdiag.processes import Processes
    from lmdiag.running import gather_material, run_model
    from lmdiag.schema import Protocol

    material = gather_material(data, Protocol())

    def work() -> float:
        with tempfile.TemporaryDirectory() as output:
            start = time.perf_counter()
            _, found = run_model(
                model,
                LoadOptions(),
                material,
                processes=Processes(alone=True),
                output=Path(output),
                quiet=True,
            )
            seconds = found["seconds"]
            took = time.perf_counter() - start - float(seconds["load"])
            return took if whole else float(seconds["ask"])

    return work


def minicons(model: str, rows: Rows) -> Work:
    """Batches of 32 rows through minicons' conditional scores."""
    from minicons import scorer  # type: ignore[import-not-found,unused-ignore]

    masked = Bare(model).masked
    one = (scorer.MaskedLMScorer if masked else scorer.IncrementalLMScorer)(model, "cpu")
    if not hasattr(one.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        one.tokenizer.batch_encode_plus = one.tokenizer.__call__

    def work() -> float:
        start = time.perf_counter()
        for first in range(0, len(rows), BATCH):
            few = rows[first : first + BATCH]
            options = {"suffix": ["."] * len(few)} if masked else {}
            one.conditional_score(
                [row["context"] for row in few], [row["target"] for row in few], **options
            )
        return time.perf_counter() - start

    return work


def lm_eval(model: str, rows: Rows) -> Work:
    """All rows through lm-evaluation-harness's log-likelihoods, in batches of 32."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found,unused-ignore]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found,unused-ignore]

    if Bare(model).masked:
        raise LookupError("lm-evaluation-harness asks causal models only")
    harness = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=BATCH)
    requests = [
        Instance("loglikelihood", {}, (row["context"], " " + row["target"]), number)
        for number, row in enumerate(rows)
    ]

    def work() -> float:
        start = time.perf_counter()
        harness.loglikelihood(requests, disable_tqdm=True)
        return time.perf_counter() - start

    return work


def prepare(name: str, model: str, rows: Rows, data: str) -> Work:
    """Loads what a contender needs and returns its work.

    Raises:
        LookupError, ImportError: it has no part in this.
    """
    makers: dict[str, Callable[[], Work]] = {
        "floor": lambda: bare_loop(model, rows, everywhere=False),
        "everywhere": lambda: bare_loop(model, rows, everywhere=True),
        "one-at-a-time": lambda: one_at_a_time(model, rows),
        "lmdiag": lambda: lmdiag(model, data, whole=False),
        "lmdiag-files": lambda: lmdiag(model, data, whole=True),
        "minicons": lambda: minicons(model, rows),
        "lm-eval": lambda: lm_eval(model, rows),
    }
    return makers[name]()


def serve(lines: Iterable[str], work: Work) -> None:
    """Works once for each line."""
    for _ in lines:
        seconds = work()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "memory": memory}), flush=True)


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
    serve(sys.stdin, work)


if __name__ == "__main__":
    main()
