"""Options of the Python API: checked as the command checks its arguments."""

from __future__ import annotations

from typing import Any

import pytest

import lmdiag
from lmdiag.types import BadInput


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": "words"}, "option unit must be one of token, word, not 'words' (did you mean "),
        ({"unit": "word" * 10_000}, "option unit must be one of"),
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
        ({"final_period": "no"}, "option final_period must be one of always, never"),
        ({"first_letter": "up"}, "option first_letter must be one of as-is, upper, lower"),
        ({"chat": "yes"}, "option chat must be True or False"),
        ({"prompt": "Go on."}, "prompt must be a text, or a file with a text, that has {context}"),
        ({"prompt": "{context} {context}"}, "once, where the context goes, not '{context} {"),
        ({"prompt": "a {context}", "chat": True}, "options chat and prompt exclude each other"),
        ({"bos": "always", "chat": True}, "options chat and bos exclude each other"),
        ({"chat": True, "instruction": "{context}"}, "option instruction must not have {con"),
        ({"units": "word"}, "unknown option 'units' (did you mean 'unit'?): choose from "),
        ({"revison": "main"}, "(did you mean 'revision'?)"),
    ],
)
def test_an_option_that_is_not_allowed(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as caught:
        lmdiag.load_model("no-such-folder/never/read", **options)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
