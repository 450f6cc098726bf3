"""Compares minicons with lmdiag, and both with the float64 reference where they differ.

    python tests/peers/compare_minicons.py MODEL DATA --convention wordpiece|byte-level [--n 60]

Run by hand, with a Python that has both lmdiag and minicons; DATA is a built data set directory
with all configs, MODEL a masked or causal one in float32. Words of one piece: every row of the
diagnostics and `--n` minimal pairs. Words of several: the rows that have some, and `--n` verbs of
the verb list at the blanks of minimal pairs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ODD = ("well-known", "o'clock", "e-mails", "co-operates")
"""Words with a sign inside, which pre-tokenizers take for several words."""


class Asked(NamedTuple):
    """A word at a blank."""

    context: str
    right: str
    word: str


def rows(data: str, n: int) -> list[Asked]:
    """Returns the rows of the diagnostics and n minimal pairs, evenly spaced."""
    import lmdiag

    found = []
    for task in ("cprag102", "role88", "neg136", "agreement"):
        columns = lmdiag.load_stimuli(data, task).columns()
        names = ("context", "right_context", "target")
        every = list(map(Asked, *(columns[name] for name in names)))
        if task == "agreement":
            step = len(every) // (2 * n)
            every = [row for i in range(n) for row in every[2 * step * i : 2 * step * i + 2]]
        found += every
    return found


def verbs(data: str, blanks: Sequence[Asked], n: int) -> list[Asked]:
    """Returns forms of the verb list, evenly spaced, and a few odd words, at the given blanks."""
    from lmdiag.stimuli import load_verbs

    forms = [form for pair in load_verbs(data) for form in pair if form.isalpha()]
    words = [*ODD, *forms[:: max(1, len(forms) // (4 * n))]]
    return [
        blanks[i % len(blanks)]._replace(word=word) for i, word in enumerate(dict.fromkeys(words))
    ]


def ask_lmdiag(model: Any, asked: Sequence[Asked]) -> Iterator[tuple[float | None, int]]:
    """Yields log-probability (nats) and number of pieces."""
    from lmdiag.types import Query, Question

    kind = model.info.kind
    for start in range(0, len(asked), 32):
        few = asked[start : start + 32]
        questions = [
            Question(Query(context, "" if kind == "causal" else right), (word,))
            for context, right, word in few
        ]
        for answer in model.model.answer([model.model.encode(each) for each in questions], 5):
            (score,) = answer.words.values()
            yield score.log_prob, score.n_tokens


def ask_minicons(scorer: Any, kind: str, asked: Sequence[Asked], **options: Any) -> list[float]:
    """Returns minicons' conditional scores; the last full stop is given as the suffix."""
    found: list[float] = []
    for start in range(0, len(asked), 16):
        few = asked[start : start + 16]
        contexts, rights, words = (list(column) for column in zip(*few, strict=True))
        if kind == "masked":
            options["suffix"] = [right or "." for right in rights]
        found += scorer.conditional_score(contexts, words, **options)
    return found


def total(scores: Any) -> float:
    """Sums the pieces of a word: the default of minicons is their mean."""
    return float(scores.sum())


def show(name: str, found: Any, right: Sequence[float]) -> None:
    """Prints the largest and the mean difference."""
    gaps = np.subtract(found, right)
    print(f"  {name:<44} {np.abs(gaps).max():10.2e} {gaps.mean():+10.2e}")


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--convention", required=True, choices=("wordpiece", "byte-level"))
    parser.add_argument("--n", type=int, default=60)
    args = parser.parse_args()

    from minicons import scorer as minicons
    from reference import Reference

    import lmdiag

    model = lmdiag.load_model(args.model, dtype="float32")
    kind = model.info.kind
    scorer_class = {"masked": minicons.MaskedLMScorer, "causal": minicons.IncrementalLMScorer}[kind]
    scorer = scorer_class(args.model, "cpu")
    if not hasattr(scorer.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        scorer.tokenizer.batch_encode_plus = scorer.tokenizer.__call__

    every = rows(args.data, args.n)
    pairs = every[-2 * args.n :]
    ours = list(ask_lmdiag(model, every))
    several = [each for each, (_, n) in zip(every, ours, strict=True) if n > 1]
    one = [(each, p) for each, (p, n) in zip(every, ours, strict=True) if n == 1]
    theirs = ask_minicons(scorer, kind, [each for each, _ in one], reduction=total)
    print(f"{args.model}: largest and mean difference in nats")
    print(f" one piece, {len(one)} rows (of {len(every)})")
    show("minicons - lmdiag", theirs, [p for _, p in one])

    asked = several + verbs(args.data, pairs, args.n)
    found = [
        (each, p)
        for each, (p, n) in zip(asked, ask_lmdiag(model, asked), strict=True)
        if n > 1 and p is not None
    ][: len(several) + len(ODD) + args.n]
    reference = Reference(Path(args.model), kind, args.convention)
    if args.convention == "wordpiece":  # a sign is a word of its own for BERT
        spell = reference.speller.spell
        reference.speller.spell = lambda word, **blank: list(
            chain.from_iterable(spell(part, **blank) or [] for part in re.findall(r"\w+|\W", word))
        )
    for odd in (False, True):
        chosen = [(each, p) for each, p in found if odd != each.word.isalpha()]
        words = [each for each, _ in chosen]
        scored = [
            reference.score(each.context, "" if kind == "causal" else each.right, each.word)
            for each in words
        ]
        right = [each.log_prob for each in scored if each is not None]
        what = "a sign inside" if odd else "letters only"
        print(f" several pieces, {what}: {len(words)} words; difference from float64")
        show("lmdiag", [p for _, p in chosen], right)
        show("minicons as called by default (mean)", ask_minicons(scorer, kind, words), right)
        metrics = ("original", "within_word_l2r") if kind == "masked" else (None,)
        for metric in metrics:
            options = {"PLL_metric": metric} if metric else {}
            values = ask_minicons(scorer, kind, words, reduction=total, **options)
            show(f"minicons, sum, {metric or 'chain rule'}", values, right)


if __name__ == "__main__":
    main()
