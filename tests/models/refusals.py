"""What tests of refused model folders share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmdiag.models.loading.load import load_parts
from lmdiag.models.loading.options import LoadOptions
from lmdiag.types import BadInput


def refusal(model: object, **options: Any) -> str:
    """Returns the one line with which a model is refused; it names the model."""
    with pytest.raises(BadInput) as caught:
        load_parts(str(model), LoadOptions(**options))
    message = str(caught.value)
    assert message.isprintable()
    assert str(model) in message
    assert "secret" not in message
    assert len(message) < 1000
    return message


def edit(folder: Path, file: str, **changes: Any) -> None:
    """Changes entries of a JSON file."""
    content = json.loads((folder / file).read_text("utf-8")) | changes
    (folder / file).write_text(json.dumps(content), "utf-8")
