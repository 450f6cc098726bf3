"""Requests to a leaderboard: which model, at which commit, in which precision is to be run.

A request is one small YAML file in a results repository,
`requests/<model>/<commit>-<dtype>.yaml`, written by anyone and merged by the owner. Beside it, the
`results.json` of a run may lie as claimed figures, under the same name with the ending `.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lmdiag.hub.client import is_commit, is_on_hub, is_repo_id, plain_errors
from lmdiag.reading import (
    is_folder,
    read_bytes,
    read_json,
    read_text,
    readable,
    real_path,
    user_path,
)
from lmdiag.results import Results
from lmdiag.results.results import first_problem
from lmdiag.types import BadInput

REQUESTS = "requests"
"""Folder of a results repository."""

MAX_REQUEST, MAX_CLAIM = 4_000, 1_000_000
"""Bytes of a request, and of the `results.json` beside it."""


def _model(text: str) -> str:
    if not is_repo_id(text):
        raise ValueError("must be an id of a model on the Hub, namespace/name")
    return text


def _commit(text: str) -> str:
    if not is_commit(text):
        raise ValueError("must be a commit of 40 hexadecimal digits")
    return text


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

    model: Annotated[str, AfterValidator(_model)]
    commit: Annotated[str, AfterValidator(_commit)]
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


@dataclass(frozen=True)
class Entry:
    """A request that can be run.

    Attributes:
        request: what is to be run.
        claimed: the results that the submitter has; None for none. They are shown and never ranked.
    """

    request: RunRequest
    claimed: Results | None = None


class Unranked(NamedTuple):
    """What has no run: a request that could not be run, or a file that is not a request.

    Attributes:
        name: of the model, or of the file.
        reason: why it has no run.
        detail: commit and precision; "" of a file.
        claimed: id of a column -> the claimed value.
    """

    name: str
    reason: str
    detail: str = ""
    claimed: Mapping[str, float] = MappingProxyType({})


def parse_request(text: str) -> RunRequest:
    """Returns the request of a YAML text.

    Raises:
        BadInput: it is not YAML, or a field is missing, unknown or wrong; names the field.
    """
    try:
        # Texts only: no value becomes a number, a date or null by its look.
        content = yaml.load(text, Loader=yaml.BaseLoader)
        return RunRequest.model_validate(content)
    except ValidationError as error:
        raise BadInput(first_problem(error).replace("value error, ", "")) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it is not YAML with the fields of a request") from None


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
    try:
        return RunRequest.model_validate(fields | {"note": note})
    except ValidationError as error:
        raise BadInput(f"model {model} cannot be requested: {first_problem(error)}") from None


def listed_models(models: Iterable[tuple[str, str | None]]) -> Iterator[Entry]:
    """Yields the requests of models that the owner of a leaderboard lists, in float32.

    Args:
        models: ids on the Hub with a revision or None; local folders and demo models.

    Raises:
        BadInput: see `request_of`.
    """
    for model, revision in models:
        if model.startswith("demo:") or is_folder(user_path(model)):
            yield Entry(RunRequest.model_construct(model=model, commit="", dtype="float32"))
        else:
            yield Entry(request_of(model, revision, "float32"))


def read_requests(places: Iterable[str]) -> tuple[list[Entry], list[Unranked]]:
    """Reads the requests of results repositories and of folders.

    Args:
        places: ids of data set repositories on the Hub, or folders that contain `requests/`.

    Returns:
        The requests, without repeated ones, and the files that are not requests.

    Raises:
        BadInput: a place does not exist or has no requests.
    """
    entries: dict[str, Entry] = {}
    refused: list[Unranked] = []
    for place in places:
        is_repo = is_on_hub(place)
        root = _download(place) if is_repo else Path(place)
        name = place if is_repo else real_path(root).name  # the page is public
        with readable(root):
            paths = sorted((root / REQUESTS).rglob("*.yaml"))
        if not paths:
            raise BadInput(f"{place} has no {REQUESTS}/: name a results repository, a folder with "
                           "requests, or a file with a model on each line")  # fmt: skip
        for path in paths:
            inside = path.relative_to(root).as_posix()
            try:
                entry = _entry(path, inside, refused)
                entries.setdefault(entry.request.path, entry)
            except BadInput as error:
                reason = str(error).replace(str(path), inside)
                refused.append(Unranked(f"{name}/{inside}", reason))
    return list(entries.values()), refused


def _entry(path: Path, inside: str, refused: list[Unranked]) -> Entry:
    """Reads one request and the claimed figures beside it."""
    request = parse_request(read_text(path, MAX_REQUEST))
    if inside != request.path:
        raise BadInput(f"a request with this content belongs in {request.path}")
    claim, name = path.with_suffix(".json"), inside.removesuffix("yaml") + "json"
    if not claim.exists():
        return Entry(request)
    try:
        read_bytes(claim, MAX_CLAIM)
        return Entry(request, Results.from_json(read_json(claim), name))
    except BadInput as error:
        refused.append(Unranked(name, str(error).replace(str(claim), name)))
        return Entry(request)


def _download(repo_id: str) -> Path:
    from huggingface_hub import snapshot_download

    patterns = [f"{REQUESTS}/*.yaml", f"{REQUESTS}/*.json"]
    with plain_errors(f"cannot read the requests of {repo_id}"):
        return Path(snapshot_download(repo_id, repo_type="dataset", allow_patterns=patterns))
