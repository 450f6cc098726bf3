"""What a row of a table of texts seems to be, where no options read it as stimuli."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from lmdiag.stimuli.proposing.other_rows import OtherRows
from lmdiag.stimuli.proposing.shapes import (
    has_many_alternatives,
    have_words_each,
    labels_of_each,
    named_alternatives,
)
from lmdiag.stimuli.proposing.text_columns import TextColumns
from lmdiag.stimuli.values.kinds import RELATED, DistinctValues
from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.stimuli.values.marks import ends_open
from lmdiag.stimuli.values.names import are_judged
from lmdiag.text import first_few, folded, shortened
from lmdiag.types import TableOptions

_FITS = {
    "aic", "bic", "loglik", "deviance", "chisq", "estimate", "stderror", "tvalue", "zvalue",
    "prt", "prz", "prchisq", "npar",
}  # fmt: skip
_MEANS = {"mean", "means", "sd", "se", "sem", "ci", "cilow", "cihigh", "lower", "upper", "stdev"}
"""Folded names of columns of statistics, of models and of groups."""

_INFERENCES = {"entailment", "contradiction", "neutral", "notentailment", "nonentailment"}
_SIMILARITIES = re.compile(r"simil|related|paraphras|duplicate|dist|entail|sts").search
_LANGUAGES = {
    "en", "de", "fr", "es", "it", "nl", "pt", "ru", "zh", "ja", "ko", "ar", "he", "hi", "tr", "fi",
    "pl", "cs", "sv", "da", "el", "hu", "ro", "uk", "vi", "th", "english", "german", "french",
    "spanish", "italian", "dutch", "portuguese", "russian", "chinese", "japanese", "korean",
    "arabic", "hebrew", "hindi", "turkish", "finnish", "polish", "czech", "swedish", "danish",
    "greek", "hungarian", "translation", "translated", "gloss",
}  # fmt: skip
"""Parts of the names of columns of a text in one of several languages."""


def not_stimuli(layout: TextColumns) -> OtherRows | None:
    """Returns what a row is of a table of statistics, or of two texts that are compared."""
    names = {*map(folded, layout.values)}
    ends = {folded(re.split(r"[._ ]", name.rstrip("._ "))[-1]) for name in layout.values}
    are_fits = len((names | ends) & _FITS) > 1
    are_means = len(names & _MEANS) > 1 and not (layout.sentences or layout.item)
    if (are_fits or are_means) and not layout.reader_attributes:
        return OtherRows("", "results, as means or estimates, and neither stimuli nor responses")
    return _compared_texts(layout)


def _compared_texts(layout: TextColumns) -> OtherRows | None:
    """Two texts of which a column says how they are related, or which are in two languages."""
    texts = layout.sentences
    if len(texts) != 2:
        return None
    one = f"{_reads(texts[:1])} reads one of them"
    both = " and ".join(texts)
    levels = {folded(x) for v in layout.values.values() for x in v.levels[:3]}
    is_named = any(_SIMILARITIES(folded(x)) for x in layout.values if x not in texts)
    is_named |= any(
        folded(name) in ("score", "gold", "goldscore", "label", "sim") and values.are_amounts
        for name, values in layout.values.items()
    )
    plain = {*map(folded, texts)}
    is_compared = is_named or plain == {"premise", "hypothesis"} or len(levels & _INFERENCES) > 1
    is_pair = bool(layout.pair) and are_judged(layout.pair)
    if is_compared and not is_pair and not labels_of_each(layout, texts):
        what = f"two texts that are compared ({both}), not two conditions of one item"
        return OtherRows("", what, remedy=one)
    first, second = (_parts_of(name) & _LANGUAGES for name in texts)
    if first != second and layout.shared_words(*texts) < RELATED and not layout.contexts:
        return OtherRows("", f"a text and its translation ({both})", remedy=one)
    return None


def _parts_of(name: str) -> set[str]:
    return {*re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())}


def rows_of_texts(
    layout: TextColumns,
    problems: Mapping[TableOptions, str] | None = None,
    partial: Mapping[TableOptions, Sequence[str]] | None = None,
) -> OtherRows | None:
    """Returns what a row with texts seems to be, and which options to look at; None without texts.

    Args:
        problems: options that do not read the table -> why.
        partial: options that read all texts but those of some columns -> these.
    """
    texts = layout.sentences
    if not (texts or has_many_alternatives(layout)):
        same = [x for x in layout.of_kind("text") if len(layout.values[x].levels) == 1]
        what = f"one text in all rows ({', '.join(same)}), and none that differs between them"
        return OtherRows("", what) if same else None
    if layout.gapped == "sentence" and not layout.values["sentence"].are_underscored:
        return None  # there is an error for it
    named = f" ({', '.join(texts)})" if len(texts) < 7 else ""
    several = f"{len(texts)} texts in a row{named}"
    if partial:
        options, unread = next(iter(partial.items()))
        return OtherRows(
            "", several, remedy=f"{as_typed(options)} reads all but {first_few(unread)}"
        )
    what, remedy = next(_shapes(layout), ("", ""))
    if not what:
        what = several if len(texts) > 1 else f"texts in {texts[0]}"
        remedy = f"{_reads(texts[:1])} reads one of them"
        if len(texts) > 1:
            remedy += f", {as_typed(TableOptions(wide=tuple(texts[:6])))} all as conditions"
        if problems:
            options, problem = next(iter(problems.items()))
            remedy = f"{as_typed(options)} is not enough: {shortened(problem, 300)}"
    return OtherRows("", what, remedy=remedy)


def _shapes(layout: TextColumns) -> Iterator[tuple[str, str]]:
    """Yields what a row is if no option makes stimuli of it, and what does."""
    texts = layout.sentences
    parts = has_many_alternatives(layout)
    if not parts and len(texts) > 1 and not layout.pair:
        parts = [*chain.from_iterable(named_alternatives(layout))]
    if parts:
        what = f"{', '.join(parts)} are parts of sentences of several conditions"
        yield what, "write the sentences of each condition into a column"
    if len(texts) > 1 and have_words_each(layout, texts):
        both = f"{', '.join(texts)} and {', '.join(layout.words)}"
        what = f"{both} are several contexts and targets in a row"
        yield what, "write a row for each context and its target"
    if len(texts) > 1 and (labels := labels_of_each(layout, texts)):
        both = f"texts in a row ({', '.join(texts)}), each with a label ({', '.join(labels)})"
        yield f"{len(texts)} {both}", "write a row for each text and its label"
    values = [layout.values[name] for name in texts]
    if len(texts) > 1 and all(x.are_fragments and _begin_small(x) for x in values):
        yield f"{', '.join(texts)} are parts of sentences", "write whole sentences into a column"
    if len(texts) == 2 and not (layout.pair or layout.are_related(*texts)):
        first, second = map(shlex.quote, texts)
        remedy = f"{_reads(texts[:1])} reads one of them; where the second follows the first, "
        remedy += f"--columns context={first} target={second}, or context={first} "
        remedy += f"sentence={second} with --critical COLUMN for one word of it"
        yield f"two texts in a row ({' and '.join(texts)})", remedy
    if layout.gapped:
        remedy = "give the word that is scored there in a column target"
        yield f"texts with a gap ({layout.gapped}), and no word that belongs there", remedy
    if len(texts) == 1 and all(map(ends_open, layout.values[texts[0]].levels)):
        column = shlex.quote(texts[0])
        remedy = f"remove it, or --columns context={column} target=COLUMN names words after it"
        yield f"texts that end in an ellipsis ({texts[0]})", remedy


def _begin_small(values: DistinctValues) -> bool:
    """Whether most texts begin with a small letter."""
    return values.share_capital is not None and values.share_capital < 0.5


def _reads(texts: Collection[str]) -> str:
    """The option that reads one column as sentences."""
    return as_typed(TableOptions(columns=tuple(f"sentence={name}" for name in texts)))
