"""One program that does one work: `python contenders.py PROGRAM WORK MODEL DATA THREADS`.

The process loads its model once, then does the whole work for each line that it reads, and answers
with a line of JSON: seconds, and the largest memory that it ever held in MiB.

Works, whose questions are in the file DATA (see `write_questions`):

- `blanks`, `agreement`: the next-word distribution at every distinct context. For lmdiag it
  includes everything from rows to predictions, for agreement EW and MW over the verbs, too.
- `sentences`: the log-probability of every token of every sentence; masked models mask each token
  together with the later ones of its word.
"""

from __future__ import annotations

import json
import re
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

BATCH = 32
Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids; positions whose output is read, and the id of the token that is scored there."""


def bare(work: str, model: str, data: dict[str, Any]) -> Callable[[], None]:
    """transformers alone: rows sorted by length in padded batches, no position projected in vain.

    A row is a list of token ids and the positions that are read.
    """
    import torch
    import transformers

    (name,) = transformers.AutoConfig.from_pretrained(model).architectures
    masked = name.endswith("ForMaskedLM")
    network: Any = getattr(transformers, name).from_pretrained(model, dtype=torch.float32).eval()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model)
    mask = tokenizer.mask_token_id

    def rows_of_blanks() -> Iterator[Row]:
        pairs = dict.fromkeys((left, right if masked else "") for left, right, _ in data["rows"])
        blank = f" {tokenizer.mask_token}" if masked else ""
        ends = [f" {right}" if right else "." if masked else "" for _, right in pairs]
        texts = [f"{left}{blank}{end}" for (left, _), end in zip(pairs, ends, strict=True)]
        for ids in tokenizer(texts)["input_ids"]:
            yield ids, [(ids.index(mask) if masked else len(ids) - 1, 0)]

    def rows_of_sentence(text: str) -> Iterator[Row]:
        encoding = tokenizer(text, return_offsets_mapping=True)
        ids = encoding["input_ids"]
        if not masked:
            ids = [tokenizer.bos_token_id, *ids]
            yield ids, list(enumerate(ids[1:]))
            return
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        words = [bisect_right(ends, start) if start < stop else None
                 for start, stop in encoding["offset_mapping"]]  # fmt: skip
        for at, word in enumerate(words):
            if word is not None:
                hidden = [n >= at and other == word for n, other in enumerate(words)]
                yield [mask if h else i for h, i in zip(hidden, ids, strict=True)], [(at, ids[at])]

    def ask(batch: Sequence[Row]) -> None:
        width = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row, _ in batch])
        lengths = torch.tensor([len(row) for row, _ in batch])
        attention = (torch.arange(width) < lengths[:, None]).long()
        reads = [(line, at, token) for line, (_, some) in enumerate(batch) for at, token in some]
        lines, places, tokens = torch.tensor(reads).T
        head = getattr(network, "cls", None) or network.get_output_embeddings()
        with torch.inference_mode():
            states = network.base_model(ids, attention_mask=attention).last_hidden_state
            log_probs = head(states[lines, places]).float().log_softmax(-1)
            if work == "sentences":
                log_probs[torch.arange(len(tokens)), tokens].tolist()
            else:
                log_probs.topk(5)

    def whole_work() -> None:
        rows = [row for text in data.get("sentences", ()) for row in rows_of_sentence(text)]
        rows = sorted(rows or rows_of_blanks(), key=lambda row: len(row[0]), reverse=True)
        for first in range(0, len(rows), BATCH):
            ask(rows[first : first + BATCH])

    return whole_work


def lmdiag(work: str, model: str, data: dict[str, Any]) -> Callable[[], None]:
    """The Python API: predictions of all rows, or surprisals of all sentences."""
    import lmdiag

    loaded = lmdiag.load_model(model)
    if work == "sentences":
        return lambda: loaded.surprisals(data["sentences"])
    source, limit = data["source"], data["limit"]
    stimuli = [lmdiag.load_stimuli(source, task, limit=limit) for task in data["tasks"]]
    return lambda: [loaded.predict(rows) for rows in stimuli]


def minicons(work: str, model: str, data: dict[str, Any]) -> Callable[[], None]:
    """minicons in its own batches: conditional scores of the targets, or token scores."""
    from minicons import scorer  # type: ignore[import-not-found,unused-ignore]
    from transformers import AutoConfig

    masked = AutoConfig.from_pretrained(model).architectures[0].endswith("ForMaskedLM")
    program = (scorer.MaskedLMScorer if masked else scorer.IncrementalLMScorer)(model, "cpu")
    if not hasattr(program.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        program.tokenizer.batch_encode_plus = program.tokenizer.__call__

    def blanks() -> None:
        for first in range(0, len(data["rows"]), BATCH):
            contexts, rights, targets = map(
                list, zip(*data["rows"][first : first + BATCH], strict=True)
            )
            options = {"suffix": [right or "." for right in rights]} if masked else {}
            program.conditional_score(contexts, targets, **options)

    def sentences() -> None:
        options = {"PLL_metric": "within_word_l2r"} if masked else {"bos_token": True}
        size = 8 if masked else BATCH  # it reads all rows of a batch of masked sentences at once
        for first in range(0, len(data["sentences"]), size):
            program.token_score(data["sentences"][first : first + size], **options)

    return sentences if work == "sentences" else blanks


def lm_eval(work: str, model: str, data: dict[str, Any]) -> Callable[[], None]:
    """All rows through the log-likelihoods of lm-evaluation-harness, causal models only."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found,unused-ignore]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found,unused-ignore]

    program = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=BATCH)
    texts = [(context, f" {target}") for context, _, target in data["rows"]]
    requests = [Instance("loglikelihood", {}, text, n) for n, text in enumerate(texts)]
    return lambda: program.loglikelihood(requests, disable_tqdm=True)


PROGRAMS = {"bare": bare, "lmdiag": lmdiag, "minicons": minicons, "lm-eval": lm_eval}


def main() -> None:
    """Answers with one line of JSON for each line that it reads."""
    import torch

    program, work, model, data, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    do = PROGRAMS[program](work, model, json.loads(Path(data).read_text()))
    for _ in sys.stdin:
        start = time.perf_counter()
        do()
        seconds = time.perf_counter() - start
        held = int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 1024
        print(json.dumps({"seconds": seconds, "memory": held}), flush=True)


if __name__ == "__main__":
    main()
