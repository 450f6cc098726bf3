"""Programs that do the same work; each is a function that loads a model and returns what to time.

Their arguments are the folder of a model, rows (left context, right context, target) and sentences:

- rows: the next-word distribution at every distinct context. For lmdiag it includes everything from
  rows to predictions, and EW and MW over the verbs where it has them.
- sentences: the log-probability of every token of every sentence; masked models mask each token
  together with the later ones of its word.

As a script, `python contenders.py MODEL ROWS.json THREADS` is the bare program on rows.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Work = Callable[[], object]
Rows = Sequence[tuple[str, str, str]]
BATCH = 32
Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids; positions whose output is read, and the id of the token that is scored there."""


def bare(model: str, rows: Rows, sentences: Sequence[str]) -> Work:
    """transformers alone: padded batches of rows by length, no position projected in vain."""
    import torch
    import transformers

    (name,) = transformers.AutoConfig.from_pretrained(model).architectures
    masked = name.endswith("ForMaskedLM")
    network: Any = getattr(transformers, name).from_pretrained(model, dtype=torch.float32).eval()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model)
    mask = tokenizer.mask_token_id

    def rows_of_blanks() -> Iterator[Row]:
        pairs = dict.fromkeys((left, right if masked else "") for left, right, _ in rows)
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
            if sentences:
                log_probs[torch.arange(len(tokens)), tokens].tolist()
            else:
                log_probs.topk(5)

    def whole_work() -> None:
        encoded = [row for text in sentences for row in rows_of_sentence(text)]
        encoded = sorted(encoded or rows_of_blanks(), key=lambda row: len(row[0]), reverse=True)
        for first in range(0, len(encoded), BATCH):
            ask(encoded[first : first + BATCH])

    return whole_work


def lmdiag(model: str, stimuli: Sequence[Any], sentences: Sequence[str]) -> Work:
    """The Python API: predictions of all rows, or surprisals of all sentences."""
    import lmdiag

    loaded = lmdiag.load_model(model)
    if sentences:
        return lambda: loaded.surprisals(sentences)
    return lambda: [loaded.predict(rows) for rows in stimuli]


def minicons(model: str, rows: Rows, sentences: Sequence[str]) -> Work:
    """minicons in its own batches: conditional scores of the targets, or token scores."""
    from minicons import scorer  # type: ignore[import-not-found,unused-ignore]
    from transformers import AutoConfig

    masked = AutoConfig.from_pretrained(model).architectures[0].endswith("ForMaskedLM")
    program = (scorer.MaskedLMScorer if masked else scorer.IncrementalLMScorer)(model, "cpu")
    if not hasattr(program.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        program.tokenizer.batch_encode_plus = program.tokenizer.__call__

    def whole_work() -> None:
        for first in range(0, len(rows), BATCH):
            contexts, rights, targets = map(list, zip(*rows[first : first + BATCH], strict=True))
            options: Any = {"suffix": [right or "." for right in rights]} if masked else {}
            program.conditional_score(contexts, targets, **options)
        size = 8 if masked else BATCH  # it reads all rows of a batch of masked sentences at once
        for first in range(0, len(sentences), size):
            options = {"PLL_metric": "within_word_l2r"} if masked else {"bos_token": True}
            program.token_score(sentences[first : first + size], **options)

    return whole_work


def lm_eval(model: str, rows: Rows, _: Sequence[str]) -> Work:
    """All rows through the log-likelihoods of lm-evaluation-harness, causal models only."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found,unused-ignore]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found,unused-ignore]

    program = HFLM(pretrained=model, device="cpu", dtype="float32", batch_size=BATCH)
    texts = [(context, f" {target}") for context, _, target in rows]
    requests = [Instance("loglikelihood", {}, text, n) for n, text in enumerate(texts)]
    return lambda: program.loglikelihood(requests, disable_tqdm=True)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[3]))
    bare(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), [])()
