"""Models of word counts: what frequency alone, or the few words before, would answer.

`frequency.py` has the frequencies of wordfreq, `ngrams.py` an n-gram model; `word_model.py` is what
they share. Nothing here needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.asking.rules import Case, refusal
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions
    from lmdiag.models.word_counts.word_model import WordModel


def load_counts(model_id: str, options: LoadOptions) -> WordModel:
    """Loads `frequency:LANGUAGE` or `ngram:FILE`; see `models.load`.

    Raises `BadInput` for options that such models do not have.
    """
    problem = refusal(Case(given=options.stored(), counts_words=True))
    if problem:
        raise BadInput(f"model {model_id}: {problem}")
    family, _, source = model_id.partition(":")
    if not source:
        example = "a language, e.g. frequency:en"
        if family == "ngram":
            example = "a file, ngram:FILE"
        raise BadInput(f"model {model_id} needs {example}")
    if family == "frequency":
        from lmdiag.models.word_counts.frequency import FrequencyModel

        return FrequencyModel.load(model_id, source, options)
    from lmdiag.models.word_counts.ngrams import NgramModel

    return NgramModel.load(model_id, source, options)
