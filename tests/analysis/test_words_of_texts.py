"""Models are asked about the words of human measures, and the fit finds a planted slope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmdiag
from lmdiag.types import BadInput

WORDS = "the robin is not a bird tree hammer saw daisy of near old river while sang"


def texts(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three texts of words that the demo model knows and some that it does not."""
    frame = pd.DataFrame({"text": np.sort(rng.integers(3, size=n)), "row": range(n)})
    frame["position"] = frame.groupby("text").cumcount()
    frame = frame.assign(word=rng.choice(WORDS.split(), n), log_frequency=rng.normal(0, 1, n))
    return frame.assign(rt=rng.normal(300, 20, n))


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
    low, high = term.interval
    assert low < 2.5 < high
    assert high - low < 0.5
    assert figures.n == 2000 - 3 * 2
    direct = lmdiag.fit(human, surprisal="bits", response="rt", average=True).models[0]
    assert figures.delta_log_likelihood == pytest.approx(direct.delta_log_likelihood, rel=1e-6)


def test_an_interrupted_fit_resumes_and_a_finished_one_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = texts(60, np.random.default_rng(0))
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
    frame.loc[7, "word"] = "[SEP]"
    (note,) = (
        x for x in lmdiag.fit(frame, models="demo:masked", response="rt").notes if "tok" in x
    )
    assert note.startswith("1 text contains the text of a control token")
    assert "([SEP] in text 0)" in note


def several_words(frame: pd.DataFrame) -> pd.DataFrame:
    other = frame.assign(word=frame["word"].where(frame["row"] != 9, "other"))
    return pd.concat([frame, other])


@pytest.mark.parametrize(
    ("changed", "chosen", "message"),
    [
        (lambda f: f.replace({"word": {"robin": "ice cream"}}), {"models": "demo:causal"},
         "column word 'ice cream' contains a blank; a row is one word"),
        (lambda f: f.replace({"word": {"robin": ""}}), {"models": "demo:causal"},
         "column word is empty; a row is one word"),
        (several_words, {"models": "demo:causal"},
         "rows:70: column word: 'other' stands where rows:10 has"),
        (lambda f: f, {}, "name a model to ask, or a column"),
        (lambda f: f, {"surprisal": "row", "lag": 1}, "fit has no option 'lag': choose from resp"),
    ],
)  # fmt: skip
def test_words_and_options_that_cannot_be_used(
    changed: Callable[[pd.DataFrame], pd.DataFrame], chosen: dict[str, Any], message: str
) -> None:
    frame = changed(texts(60, np.random.default_rng(0)))
    with pytest.raises(BadInput, match=message):
        lmdiag.fit(frame, response="rt", **chosen)
