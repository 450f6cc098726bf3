"""Trains n-gram models for tests: absolute discounting, with back-off, in the ARPA format."""

import math
from collections import Counter, defaultdict

_DISCOUNT = 0.5


def arpa_text(sentences, order=3):
    """Returns a model of sentences, which are lists of words, as an ARPA file.

    Half an occurrence of each n-gram is kept for those that were not seen (Ney, Essen and Kneser
    1994); of words, for `<unk>`.
    """
    counts = [Counter() for _ in range(order + 1)]
    for sentence in sentences:
        words = ["<s>", *sentence, "</s>"]
        for n in range(1, order + 1):
            grams = zip(*(words[i:] for i in range(n)), strict=False)
            counts[n].update(gram for gram in grams if gram != ("<s>",))
    total = counts[1].total()
    shares = {gram: (count - _DISCOUNT) / total for gram, count in counts[1].items()}
    shares[("<unk>",)] = 1 - sum(shares.values())
    backoffs = {}
    for n in range(2, order + 1):
        followers = defaultdict(list)
        for gram in counts[n]:
            followers[gram[:-1]].append(gram)
        for context, grams in followers.items():
            seen = sum(counts[n][gram] for gram in grams)
            shares |= {gram: (counts[n][gram] - _DISCOUNT) / seen for gram in grams}
            left = 1 - sum(shares[gram] for gram in grams)
            shorter = 1 - sum(shares[gram[1:]] for gram in grams)
            backoffs[context] = left / shorter
    shares[("<s>",)] = 10**-99.0
    by_order = [[gram for gram in shares if len(gram) == n] for n in range(1, order + 1)]
    lines = ["\\data\\", *(f"ngram {n}={len(grams)}" for n, grams in enumerate(by_order, 1))]
    for n, grams in enumerate(by_order, 1):
        lines += ["", f"\\{n}-grams:"]
        for gram in grams:
            line = f"{math.log10(shares[gram]):.6f}\t{' '.join(gram)}"
            lines.append(f"{line}\t{math.log10(backoffs[gram]):.6f}" if gram in backoffs else line)
    return "\n".join([*lines, "", "\\end\\", ""])
