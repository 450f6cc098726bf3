"""Models are asked about the words of human measures, and the fit finds a planted slope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmdiag
from lmdiag.analysis.regression import term_interval
from lmdiag.types import BadInput


def texts(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three texts of words that the demo model knows and some that it does not."""
    words = [
        "the",
        "robin",
        "is",
        "not",
        "a",
        "bird",
        "tree",
        "hammer",
        "saw",
        "daisy",
        "of",
        "near",
        "old",
        "river",
        "while",
        "sang",
    ]
    frame = pd.DataFrame({"text": np.sort(rng.integers(3, size=n)), "row": range(n)})
    frame["position"] = frame.groupby("text").cumcount()
    return frame.assign(word=rng.choice(words, n), log_frequency=rng.normal(0, 1, n))


def test_a_planted_slope_is_recovered_from_texts_of_2000_words() -> None:
    rng = np.random.default_rng(4)
    frame = texts(2000, rng)
    model = lmdiag.load_model("demo:causal")
    joined = frame.groupby("text")["word"].agg(" ".join)
    frame["bits"] = np.asarray(model.surprisals(joined)["surprisal"])
    readers = [
        frame.assign(reader=reader, rt=250 + 2.5 * frame["bits"] + rng.normal(0, 60, len(frame)))
        for reader in range(2)
    ]
    human = pd.concat(readers).sample(frac=1, random_state=0)
    fit = lmdiag.fit(human, models=model, response="rt", average=True)
    (figures,) = fit.models
    term = next(term for term in figures.terms if term.term == "surprisal")
    low, high = term_interval(term)
    assert low < 2.5 < high
    assert high - low < 0.5
    assert figures.n == 2000 - 3 * 2
    direct = lmdiag.fit(human, surprisal="bits", response="rt", average=True).models[0]
    assert figures.delta_log_likelihood == pytest.approx(direct.delta_log_likelihood, rel=1e-6)


def test_an_interrupted_fit_resumes_and_a_finished_one_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = texts(60, np.random.default_rng(0))
    frame["rt"] = np.random.default_rng(1).normal(300, 20, 60)
    model = lmdiag.load_model("demo:causal")
    answer, asked = model.model.answer, list[int]()

    def counted(encoded: Any, *top: Any) -> Any:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(len(encoded))
        return answer(encoded, *top)

    monkeypatch.setattr(model.model, "answer", counted)
    options = {"models": model, "response": "rt", "output": tmp_path, "batch_size": 1}
    with pytest.raises(KeyboardInterrupt):
        lmdiag.fit(frame, **options)
    asked[:] = [0]
    resumed = lmdiag.fit(frame, **options)
    assert asked == [0, 1]  # the third text alone
    again = lmdiag.fit(frame, **options)
    assert asked == [0, 1]
    whole = lmdiag.fit(frame, models=lmdiag.load_model("demo:causal"), response="rt", batch_size=1)
    assert resumed.models[0].terms == again.models[0].terms == whole.models[0].terms


def test_a_control_token_among_the_words_is_noted() -> None:
    frame = texts(60, np.random.default_rng(0))
    frame["rt"] = np.random.default_rng(1).normal(300, 20, 60)
    frame.loc[7, "word"] = "[SEP]"
    (note,) = (
        x for x in lmdiag.fit(frame, models="demo:masked", response="rt").notes if "tok" in x
    )
    assert note.startswith("1 text contains the text of a control token")
    assert "([SEP] in text 0)" in note


@pytest.mark.parametrize(
    ("row", "word", "message"),
    [
        (7, "ice cream", "rows:8: column word 'ice cream' contains a blank; a row is one word"),
        (7, "", "rows:8: column word is empty; a row is one word"),
    ],
)
def test_rows_are_single_words(row: int, word: str, message: str) -> None:
    frame = texts(60, np.random.default_rng(0)).assign(rt=1.0)
    frame.loc[row, "word"] = word
    with pytest.raises(BadInput) as refused:
        lmdiag.fit(frame, models="demo:causal", response="rt")
    assert str(refused.value) == message


def test_the_rows_of_a_word_have_one_word() -> None:
    frame = texts(60, np.random.default_rng(0)).assign(rt=1.0)
    other = frame.assign(word=frame["word"].where(frame["row"] != 9, "other"))
    with pytest.raises(BadInput, match=r"rows:70: column word: 'other' stands where rows:10 has"):
        lmdiag.fit(pd.concat([frame, other]), models="demo:causal", response="rt")


def test_there_must_be_surprisals_and_known_options() -> None:
    frame = texts(60, np.random.default_rng(0)).assign(rt=1.0)
    with pytest.raises(BadInput, match="name a model to ask, or a column"):
        lmdiag.fit(frame, response="rt")
    with pytest.raises(BadInput, match="fit has no option 'lag': choose from response"):
        lmdiag.fit(frame, surprisal="row", response="rt", lag=1)
