"""Charts of whole sentences, and how notebooks show them."""

from __future__ import annotations

import pytest

from lmdiag.display import Measures
from lmdiag.results import Run


def test_predictions_and_measures_show_themselves_in_notebooks(forms: dict[str, Run]) -> None:
    run = forms["suites"]
    (said,) = run.predictions["gym"].values()
    frame = said.to_frame()
    assert [*frame.columns] == ["id", "log_prob", "n_tokens", "words", "perturbation", "run"]
    first = frame.words[0]
    assert frame.log_prob[0] == pytest.approx(sum(word.log_prob for word in first))
    shown = Measures(said, run.stimuli["gym"], run.results.protocol, cased=True)
    assert "two_predictions" in str(shown)
    assert "contrast" not in shown._repr_html_()
    assert "not computed" not in str(shown)
