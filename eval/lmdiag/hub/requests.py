"""Requests to a leaderboard: which model, at which commit, in which precision is to be run.

A request is one small YAML file in a results repository,
`requests/<model>/<commit>-<dtype>.yaml`, written by anyone and merged by the owner. Beside it, the
`results.json` of a run may lie as claimed figures, under the same name with the ending `.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lmdiag.files import (
    is_folder,
    parse_json,
    read_bytes,
    read_text,
    readable,
    real_path,
    user_path,
)
from lmdiag.hub.benchmark import leaderboard_figures
from lmdiag.hub.client import check_repo_id, is_on_hub, plain_errors
from lmdiag.results import Results
from lmdiag.results.results import first_problem
from lmdiag.types import BadInput

REQUESTS = "requests"
"""Folder of a results repository."""

MAX_REQUEST, MAX_CLAIM = 4_000, 1_000_000
"""Bytes of a request, and of the `results.json` beside it."""


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
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
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
    """A request, or a file that is not one.

    Attributes:
        name: of the model; of a file that is not a request, its place.
        request: what is to be run; None for a file that is not a request.
        claimed: id of a column -> the figure that the submitter claims; shown and never ranked.
        reason: why it has no run; "" where that is not known yet.
    """

    name: str
    request: RunRequest | None = None
    claimed: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def key(self) -> str:
        """Distinguishes entries; requests of the same run have the same one."""
        return self.request.path if self.request else self.name

    @property
    def detail(self) -> str:
        """Commit and precision, which distinguish requests of one model."""
        parts = (self.request.commit[:7], self.request.precision) if self.request else ()
        return " · ".join(filter(None, parts))


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
        request = RunRequest.model_validate(yaml.load(text, Loader=yaml.BaseLoader))
    except ValidationError as error:
        raise BadInput(first_problem(error)) from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadInput("it is not YAML with the fields of a request") from None
    if path != request.path:
        raise BadInput(f"a request with this content belongs in {request.path}")
    return request


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
            request = RunRequest.model_construct(model=model, commit="", dtype="float32")
        else:
            request = request_of(model, revision, "float32")
        yield Entry(request.model, request)


def read_requests(places: Iterable[str]) -> Iterator[Entry]:
    """Yields the requests of results repositories and of folders, and the files that are not one.

    Args:
        places: ids of data set repositories on the Hub, or folders that contain `requests/`.

    Raises:
        BadInput: a place does not exist or has no requests.
    """
    for place in places:
        is_repo = is_on_hub(place)
        root = _download(place) if is_repo else Path(place)
        with readable(root):
            paths = sorted((root / REQUESTS).rglob("*.yaml"))
        if not paths:
            raise BadInput(f"{place} has no {REQUESTS}/: name a results repository, a folder with "
                           "requests, or a file with a model on each line")  # fmt: skip
        for path in paths:
            # The page is public: it does not tell where on this machine a folder is.
            yield from _read(path, root, place if is_repo else real_path(root).name)


def _read(path: Path, root: Path, place: str) -> Iterator[Entry]:
    """Yields the request of a file with the figures claimed beside it, and what is wrong."""
    request, claimed, file = None, {}, path
    try:
        request = parse_request(read_text(path, MAX_REQUEST), path.relative_to(root).as_posix())
        file = path.with_suffix(".json")
        if file.exists():
            content = parse_json(read_bytes(file, MAX_CLAIM), str(file), finite=True)
            figures = leaderboard_figures(Results.from_json(content, str(file)))
            values = {key: figure.value or 0.0 for key, figure in figures.items()}
            claimed = {key: value for key, value in values.items() if 0 <= value <= 1}
    except BadInput as error:
        inside = file.relative_to(root).as_posix()
        yield Entry(f"{place}/{inside}", reason=str(error).replace(str(file), inside))
    if request is not None:
        yield Entry(request.model, request, claimed)


def _download(repo_id: str) -> Path:
    from huggingface_hub import snapshot_download

    patterns = [f"{REQUESTS}/*.yaml", f"{REQUESTS}/*.json"]
    with plain_errors(f"cannot read the requests of {repo_id}"):
        return Path(snapshot_download(repo_id, repo_type="dataset", allow_patterns=patterns))
