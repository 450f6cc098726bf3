"""Requests to a leaderboard: which model, at which commit, in which precision is to be run.

A request is one small YAML file in a results repository,
`requests/<model>/<commit>-<dtype>.yaml`, written by anyone and merged by the owner. Beside it, the
`results.json` of a run may lie as claimed figures, under the same name with the ending `.json`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lmdiag.hub.client import check_repo_id, plain_errors
from lmdiag.results.results import first_problem
from lmdiag.types import BadInput

REQUESTS, MAX_CLAIM = "requests", 1_000_000
"""Folder in a results repository; bytes of the `results.json` beside a request."""

COMMIT = "^[0-9a-f]{40}$"
"""Pattern of a full commit of a repository on the Hub."""


class RunRequest(BaseModel):
    """What is to be run.

    Attributes:
        model: id on the Hub, namespace/name.
        commit: 40 hexadecimal digits; "" for a model of this machine, which only the owner of the
            leaderboard can list.
        dtype: of the weights.
        quantization: by bitsandbytes; None without.
        note: from the submitter, at most 200 characters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, AfterValidator(lambda name: check_repo_id(name, "model:"))]
    commit: Annotated[str, Field(pattern=COMMIT)]
    dtype: Literal["float64", "float32", "float16", "bfloat16"]
    quantization: Literal["8bit", "4bit"] | None = None
    note: Annotated[str, Field(max_length=200)] = ""

    @property
    def precision(self) -> str:
        """Dtype and quantization, e.g. `float16-8bit`."""
        return "-".join(filter(None, (self.dtype, self.quantization)))

    @property
    def path(self) -> str:
        """Its place in a results repository."""
        return f"{REQUESTS}/{self.model}/{self.commit}-{self.precision}.yaml"

    def to_yaml(self) -> str:
        """Returns the content of its file."""
        return yaml.safe_dump(self.model_dump(exclude_defaults=True), sort_keys=False)


def parse_request(text: str, path: str) -> RunRequest:
    """Returns the request of a YAML text.

    Args:
        text: content of the file.
        path: its place in the results repository, which must be that of the request.

    Raises:
        BadInput: it is not YAML, a field is missing, unknown or wrong (names the field), or it is
            not in its place.
    """
    try:
        # Texts only: no value becomes a number, a date or null by its look.
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it is not YAML with the fields of a request") from None
    request = _validated(content)
    if path != request.path:
        raise BadInput(f"a request with this content belongs in {request.path}")
    return request


def _validated(content: Any, prefix: str = "") -> RunRequest:
    try:
        return RunRequest.model_validate(content)
    except ValidationError as error:
        raise BadInput(prefix + first_problem(error)) from None


def request_of(
    model: str, revision: str | None, dtype: str, quantization: str | None = None, note: str = ""
) -> RunRequest:
    """Returns the request of a model on the Hub: its full id, and the commit of a revision.

    Raises:
        BadInput: no such model or revision, no access, no network; or a field is wrong.
    """
    from huggingface_hub import HfApi

    with plain_errors(f"cannot find model {model}" + (f" at {revision}" if revision else "")):
        info = HfApi().model_info(model, revision=revision)
    fields = {"model": info.id, "commit": info.sha, "dtype": dtype, "quantization": quantization}
    return _validated(fields | {"note": note}, f"model {model} cannot be requested: ")
