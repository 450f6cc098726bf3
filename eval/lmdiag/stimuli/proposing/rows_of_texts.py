"""What a row of a table of texts seems to be, where no options read it as stimuli."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from lmdiag.stimuli.proposing.other_rows import OtherRows
from lmdiag.stimuli.proposing.shapes import (
    exchanged_parts,
    have_target_each,
    labels_by_text,
    named_alternatives,
)
from lmdiag.stimuli.proposing.text_columns import TextColumns
from lmdiag.stimuli.values.kinds import RELATED, DistinctValues
from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.stimuli.values.marks import ends_open
from lmdiag.stimuli.values.names import are_judged
from lmdiag.text import first_few, folded, shortened
from lmdiag.types import TableOptions

_FIT_STATISTICS = {
    "aic", "bic", "loglik", "deviance", "chisq", "estimate", "stderror", "tvalue", "zvalue",
    "prt", "prz", "prchisq", "npar",
}  # fmt: skip
_GROUP_STATISTICS = {
    "mean", "means", "sd", "se", "sem", "ci", "cilow", "cihigh", "lower", "upper", "stdev",
}  # fmt: skip
"""Folded names of columns of statistics, of models and of groups."""

# levels of columns that say how two texts are related, and parts of the names of such columns
_INFERENCES = {"entailment", "contradiction", "neutral", "notentailment", "nonentailment"}
_names_similarity = re.compile(r"simil|related|paraphras|duplicate|dist|entail|sts").search
_LANGUAGES = {
    "en", "de", "fr", "es", "it", "nl", "pt", "ru", "zh", "ja", "ko", "ar", "he", "hi", "tr", "fi",
    "pl", "cs", "sv", "da", "el", "hu", "ro", "uk", "vi", "th", "english", "german", "french",
    "spanish", "italian", "dutch", "portuguese", "russian", "chinese", "japanese", "korean",
    "arabic", "hebrew", "hindi", "turkish", "finnish", "polish", "czech", "swedish", "danish",
    "greek", "hungarian", "translation", "translated", "gloss",
}  # fmt: skip
"""Parts of the names of columns of a text in one of several languages."""

_MOST_NAMES = 6  # columns of texts that a message names


def not_stimuli(layout: TextColumns) -> OtherRows | None:
    """Returns what a row is in a table of statistics, or of two texts that are compared.

    None for other tables.
    """
    names = {folded(name) for name in layout.values}
    # parts of names behind the last full stop, blank or underscore, as "value" of "t value"
    ends = {folded(re.split(r"[._ ]", name.rstrip("._ "))[-1]) for name in layout.values}
    are_fits = len((names | ends) & _FIT_STATISTICS) > 1
    are_means = len(names & _GROUP_STATISTICS) > 1 and not (layout.sentences or layout.item)
    if (are_fits or are_means) and not layout.reader_attributes:
        return OtherRows(
            command="", what="results, as means or estimates, and neither stimuli nor responses"
        )
    return _compared_texts(layout)


def _compared_texts(layout: TextColumns) -> OtherRows | None:
    """What a row with two texts is, if these are compared with each other, or translated.

    For example, a sentence and a paraphrase with their similarity, or the columns text_en and
    text_de. None for other tables, in which two texts may be two conditions of an item.
    """
    texts = layout.sentences
    if len(texts) != 2:
        return None
    remedy = f"{_option_for_sentences(texts[0])} reads one of them"
    both = " and ".join(texts)
    is_judged = bool(layout.pair) and are_judged(layout.pair)
    if _has_relation(layout, texts) and not is_judged and not labels_by_text(layout, texts):
        what = f"two texts that are compared ({both}), not two conditions of one item"
        return OtherRows(command="", what=what, remedy=remedy)
    first_language, second_language = (_words_of_name(name) & _LANGUAGES for name in texts)
    are_languages = first_language != second_language
    if are_languages and layout.shared_words(*texts) < RELATED and not layout.contexts:
        return OtherRows(command="", what=f"a text and its translation ({both})", remedy=remedy)
    return None


def _has_relation(layout: TextColumns, texts: Sequence[str]) -> bool:
    """Whether a column says how the two texts of a row are related, as similarity or entailment.

    Or the texts are called premise and hypothesis.
    """
    score_names = ("score", "gold", "goldscore", "label", "sim")
    for name, values in layout.values.items():
        if name not in texts and _names_similarity(folded(name)):
            return True
        if folded(name) in score_names and values.are_decimals:
            return True
    first_levels = (level for values in layout.values.values() for level in values.levels[:3])
    inferences = _INFERENCES.intersection(map(folded, first_levels))
    return len(inferences) > 1 or {*map(folded, texts)} == {"premise", "hypothesis"}


def _words_of_name(name: str) -> set[str]:
    """The words of the name of a column, in lower case: `text_en` and `textEn` have "en"."""
    with_blanks = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {*re.findall(r"[^\W\d_]+", with_blanks.lower())}


def rows_of_texts(
    layout: TextColumns,
    problems: Mapping[TableOptions, str] | None = None,
    partial: Mapping[TableOptions, Sequence[str]] | None = None,
) -> OtherRows | None:
    """Returns what a row with texts seems to be, and which options to look at; None without texts.

    Args:
        layout: all columns of the table, with their values and kinds.
        problems: options that do not read the table -> why.
        partial: options that read all texts but those of some columns -> these.
    """
    texts = layout.sentences
    if not (texts or exchanged_parts(layout)):
        constant = [x for x in layout.of_kind("text") if len(layout.values[x].levels) == 1]
        if not constant:
            return None
        what = f"one text in all rows ({', '.join(constant)}), and none that differs between them"
        return OtherRows(command="", what=what)
    if layout.gapped == "sentence" and not layout.values["sentence"].are_underscored:
        return None  # there is another message about sentences with gaps
    several = f"{len(texts)} texts in a row"
    if len(texts) <= _MOST_NAMES:
        several += f" ({', '.join(texts)})"
    if partial:
        options, unread = next(iter(partial.items()))
        remedy = f"{as_typed(options)} reads all but {first_few(unread)}"
        return OtherRows(command="", what=several, remedy=remedy)
    what, remedy = next(_shapes(layout), ("", ""))  # the likeliest alone
    if not what:
        what = several if len(texts) > 1 else f"texts in {texts[0]}"
        remedy = f"{_option_for_sentences(texts[0])} reads one of them"
        if len(texts) > 1:
            all_texts = TableOptions(wide=tuple(texts[:_MOST_NAMES]))
            remedy += f", {as_typed(all_texts)} all as conditions"
        if problems:
            options, problem = next(iter(problems.items()))
            remedy = f"{as_typed(options)} is not enough: {shortened(problem, 300)}"
    return OtherRows(command="", what=what, remedy=remedy)


def _shapes(layout: TextColumns) -> Iterator[tuple[str, str]]:
    """Yields what a row may be of which no option makes stimuli, and the remedy, likely ones first.

    For example, ("2 texts in a row (s1, s2), each with a label (l1, l2)", "write a row for each
    text and its label").
    """
    texts = layout.sentences
    parts = exchanged_parts(layout)
    if not parts and len(texts) > 1 and not layout.pair:
        parts = [*chain.from_iterable(named_alternatives(layout))]
    if parts:
        what = f"{', '.join(parts)} are parts of sentences of several conditions"
        yield what, "write the sentences of each condition into a column"
    if len(texts) > 1 and have_target_each(layout, texts):
        both = f"{', '.join(texts)} and {', '.join(layout.words)}"
        what = f"{both} are several contexts and targets in a row"
        yield what, "write a row for each context and its target"
    labels = labels_by_text(layout, texts)
    if labels:
        both = f"texts in a row ({', '.join(texts)}), each with a label ({', '.join(labels)})"
        yield f"{len(texts)} {both}", "write a row for each text and its label"
    values = [layout.values[name] for name in texts]
    if len(texts) > 1 and all(x.are_fragments and _begin_small(x) for x in values):
        yield f"{', '.join(texts)} are parts of sentences", "write whole sentences into a column"
    if len(texts) == 2 and not (layout.pair or layout.are_related(*texts)):
        first, second = map(shlex.quote, texts)
        remedy = f"{_option_for_sentences(texts[0])} reads one of them; "
        remedy += "where the second follows the first, "
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


def _option_for_sentences(column: str) -> str:
    """The option, as it is typed, that reads a column as sentences: --columns sentence=COLUMN."""
    return as_typed(TableOptions(columns=(f"sentence={column}",)))
