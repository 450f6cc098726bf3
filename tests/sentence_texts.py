"""Two hundred sentences for tests: everyday ones, odd ones, and random chains of their words."""

import random

import pandas as pd
from vocabularies import TEXT, UNKNOWN

ODD = (
    "Zoë’s naïve friend said, “I don’t like crème brûlée!”",
    "日本語 の 文 です。",
    "The 日本 and the ½ chased one near the sea.",
    "A robin 🙂 sleeps 👩‍👩‍👧 here 🇫🇷.",
    f"The {UNKNOWN} and the {UNKNOWN}s sleep.",
    "Two  blanks   or\tone tab\tseparate   words.",
    "  A leading and a trailing blank  ",
    "Penguin",
    " bird ",
    "The end\nof a line\u00a0and of another.",
    "well-known merry-go-rounds aren't (always) o'clock; 3.14 per cent -- or: not?!",
    "... , ! “” ’",
    "PETER AND ANNA WALKED THEIR DOGS.",
    "The the the the the the",
    "e\u0301le\u0300ves and cafe\u0301s",
    "Pneumonoultramicroscopicsilicovolcanoconiosis is a word.",
    "https://example.org/a_b?c=1#d is an address",
    "A",
)
"""Accents, curly quotes, Chinese, emoji, unknown letters, blanks of all kinds, one word."""


def sentences(count):
    """Returns so many sentences: `ODD`, those of `TEXT`, and random chains of 1 to 16 words."""
    rng = random.Random(15)
    texts = [*dict.fromkeys([*ODD, *TEXT.splitlines()])]
    words = sorted({*TEXT.split(), *(word for text in ODD for word in text.split())})
    blanks = [" "] * 12 + ["  ", "\t"]
    while len(texts) < count:
        chosen = rng.choices(words, k=rng.randint(1, 16))
        texts.append("".join(word + rng.choice(blanks) for word in chosen).rstrip())
    return tuple(texts)


SENTENCES = sentences(200)
"""Two hundred, each at most 16 words long."""

SOME = (*ODD[:12], *SENTENCES[-4:])
"""A few, for quick tests."""

REPEATED = [*SENTENCES[:30], *SENTENCES[10:20]]
"""Ten of the rows have a sentence that another row has."""


def write_table(path):
    """Writes `REPEATED` as a csv."""
    ids = [f"row-{number}" for number in range(len(REPEATED))]
    pd.DataFrame({"id": ids, "sentence": REPEATED}).to_csv(path, index=False)
    return path
