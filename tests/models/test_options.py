"""Options of the Python API: checked as the command checks its arguments."""

from __future__ import annotations

from typing import Any

import pytest

import lmdiag
from lmdiag.models.loading.options import LoadOptions
from lmdiag.types import BadInput


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": "words"}, "option unit must be one of token, word, not 'words' (did you mean "),
        ({"bos": "allways"}, "(did you mean 'always'?)"),
        ({"kind": "mask"}, "(did you mean 'masked'?)"),
        ({"dtype": "bf16"}, "option dtype must be one of auto, float32"),
        ({"dtype": None}, "option dtype must be a string, not None"),
        ({"packing": "sometimes"}, "option packing must be one of auto, always, never"),
        ({"quantization": "4 bit"}, "(did you mean '4bit'?)"),
        ({"quantization": 4}, "option quantization must be a string, not 4"),
        ({"trust_remote_code": "no"}, "option trust_remote_code must be True or False, not 'no'"),
        ({"allow_pickle": 1}, "option allow_pickle must be True or False"),
        ({"revision": 3}, "option revision must be a string"),
        ({"device": ["cuda"]}, "option device must be a string"),
        ({"units": "word"}, "unknown option 'units' (did you mean 'unit'?): choose from "),
        ({"revison": "main"}, "(did you mean 'revision'?)"),
    ],
)
def test_an_option_that_is_not_allowed(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as caught:
        lmdiag.load_model("no-such-folder/never/read", **options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_huge_value_is_shortened() -> None:
    with pytest.raises(BadInput) as caught:
        LoadOptions(unit="word" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
