"""Entries of the leaderboard: requests as they are read, and rows, which have a run and a rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import is_folder, read_text, readable, real_path, user_path
from lmdiag.hub.benchmark import leaderboard_figures
from lmdiag.hub.publish import is_on_hub
from lmdiag.hub.requests import MAX_CLAIM, REQUESTS, RunRequest, parse_request, request_of
from lmdiag.results import Figure, Results, Run, digest_of_predictions
from lmdiag.results.results import read_record
from lmdiag.text import file_name
from lmdiag.types import BadInput, ModelInfo

_MAY_FLIP = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 4}
"""Dtype -> items on which two machines may differ, since two words are closer than its rounding."""


@dataclass(frozen=True)
class Entry:
    """A request, or a file that is not one.

    Attributes:
        name: of the model; of a file that is not a request, repository and path.
        request: what is to be run; None for a file that is not a request.
        claimed: id of a column -> the figure that the submitter claims; shown and never ranked.
        reason: why it has no run.
    """

    name: str
    request: RunRequest | None = None
    claimed: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def key(self) -> str:
        """A text that distinguishes entries; requests of the same run have the same one."""
        return self.request.path if self.request else self.name

    @property
    def detail(self) -> str:
        """Commit and precision, which distinguish requests of one model."""
        parts = (self.request.commit[:7], self.request.precision) if self.request else ()
        return " · ".join(filter(None, parts))


@dataclass(frozen=True, kw_only=True)
class RankedEntry(Entry):
    """A request that the leaderboard has run.

    Attributes:
        run: of the request.
        rank: by `corrected_sensitivity`; equal values share one.
        also: names of the other requests whose runs have the same predictions to the last bit.
    """

    run: Run
    rank: int | None = None
    also: tuple[str, ...] = ()

    @property
    def model(self) -> ModelInfo:
        """The facts on the model."""
        return self.run.results.model

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Id of a column -> the figure of the run, without undefined ones."""
        return leaderboard_figures(self.run.results)

    @cached_property
    def corrected_sensitivity(self) -> float | None:
        """The mean over the diagnostics of (sensitivity - chance) / (1 - chance).

        0 is chance and 1 is every contrast right; None where a diagnostic has no sensitivity.
        """
        shares = []
        for settings in self.run.results.tasks.values():
            figure = settings["none"].measures["sensitivity"]
            if figure.value is None or figure.chance is None:
                return None
            shares.append((figure.value - figure.chance) / (1 - figure.chance))
        return sum(shares) / len(shares)

    @property
    def page(self) -> str:
        """Address of the report of its run in the site."""
        return f"models/{file_name(self.name, self.key)}.html"

    @property
    def differing_claims(self) -> dict[str, float]:
        """Id of a column -> the claimed value, if it differs from the computed one beyond rounding.

        Another machine rounds in another way, so that a few items may change from right to wrong:
        more in low precisions than in float32. A larger difference is listed.
        """
        n_flips = _MAY_FLIP["bfloat16" if self.model.quantization else self.model.dtype]
        differing = {}
        for column, value in self.claimed.items():
            figure = self.figures.get(column)
            if figure is None:
                differing[column] = value
                continue
            # an item that changes moves a share by 1/n; 1e-9 is for rounding
            tolerance = n_flips / (figure.n or 1) + 1e-9
            if abs(value - (figure.value or 0.0)) > tolerance:
                differing[column] = value
        return differing


def merge_copies(rows: Iterable[RankedEntry]) -> list[RankedEntry]:
    """Returns the rows, of which equal ones become one: the row that was run first.

    This row names the others in `also`. Rows are equal if they have the same precision and the same
    SHA-256 of predictions. Copies of a model under another name, or in other files, have the same
    weights and so the same predictions to the last bit.
    """
    groups: dict[tuple[str, str], list[RankedEntry]] = {}
    for row in sorted(rows, key=lambda row: (row.run.results.finished, row.key)):
        precision = f"{row.model.dtype} {row.model.quantization}"
        groups.setdefault((precision, digest_of_predictions(row.run.path)), []).append(row)
    merged = []
    for first_row, *copies in groups.values():
        names = tuple(f"{copy.name} · {copy.detail}" for copy in copies)
        merged.append(replace(first_row, also=names))
    return merged


def ranked(rows: Iterable[RankedEntry]) -> list[RankedEntry]:
    """Returns rows with their ranks, the best first; rows without a value stand last, unranked.

    Rows with equal values share the better rank: 1, 2, 2, 4.
    """

    def value(row: RankedEntry) -> float:
        return -math.inf if row.corrected_sensitivity is None else row.corrected_sensitivity

    ordered = sorted(rows, key=lambda row: (-value(row), row.page))
    rank_of: dict[float, int] = {}
    for position, row in enumerate(ordered, start=1):
        rank_of.setdefault(value(row), position)
    ranked_rows = []
    for row in ordered:
        rank = rank_of[value(row)] if math.isfinite(value(row)) else None
        ranked_rows.append(replace(row, rank=rank))
    return ranked_rows


def listed_models(models: Iterable[tuple[str, str | None]]) -> Iterator[Entry]:
    """Yields requests in float32: one for each model, and revision of it, that the owner lists.

    Demo models and models in folders have no commit.
    """
    for model, revision in models:
        if model.startswith("demo:") or is_folder(user_path(model)):
            # without checks: the name is not an id on the Hub
            request = RunRequest.model_construct(model=model, commit="", dtype="float32")
        else:
            request = request_of(model, revision, "float32")
        yield Entry(request.model, request)


def read_requests(places: Iterable[str]) -> Iterator[Entry]:
    """Yields an entry for each request, and for each file in their place that is not one.

    Args:
        places: ids of results repositories on the Hub, and folders.
    """
    from huggingface_hub import snapshot_download

    for place in places:
        is_download = is_on_hub(place)
        if is_download:
            patterns = [f"{REQUESTS}/*.{ending}" for ending in ("yaml", "json")]
            name = place
            with plain_errors(f"cannot read the requests of {place}"):
                root = Path(snapshot_download(place, repo_type="dataset", allow_patterns=patterns))
        else:
            root = Path(place)
            # The page is public: it does not tell where on this machine a folder is.
            name = real_path(root).name
        with readable(root):
            paths = sorted((root / REQUESTS).rglob("*.yaml"))
        if not paths:
            raise BadInput(f"{place} has no {REQUESTS}/: name a results repository, a folder with "
                           "requests, or a file with a model on each line")  # fmt: skip
        for path in paths:
            yield from _read_request(path, root, name, is_download)


def _read_request(path: Path, root: Path, name: str, is_download: bool) -> Iterator[Entry]:
    """Yields the request of a YAML file with the figures that are claimed in a JSON file beside it.

    A wrong YAML file yields one entry that says why. A wrong JSON file yields two entries: one that
    says why, and the request without claims.

    Args:
        path: of the YAML file.
        root, name: the folder of the repository, and what messages call it.
        is_download: whether the repository was downloaded from the Hub.
    """
    request = None
    claimed = {}
    file = path  # the one that is read
    try:
        _refuse_link(path, root, is_download)
        request = parse_request(read_text(path, 4_000), path.relative_to(root).as_posix())
        file = path.with_suffix(".json")
        if file.exists():
            _refuse_link(file, root, is_download)
            figures = leaderboard_figures(read_record(Results, file, MAX_CLAIM))
            values = {column: figure.value or 0.0 for column, figure in figures.items()}
            # figures of the leaderboard are shares; a claim outside of [0, 1] is ignored
            claimed = {column: value for column, value in values.items() if 0 <= value <= 1}
    except BadInput as error:
        file_in_root = file.relative_to(root).as_posix()
        reason = str(error).replace(str(file), file_in_root)
        yield Entry(f"{name}/{file_in_root}", reason=reason)
    if request is not None:
        yield Entry(request.model, request, claimed)


def _refuse_link(file: Path, root: Path, is_download: bool) -> None:
    """Raises `BadInput` for a file in `root` that is a link, or in a folder that is one.

    A stranger may have put it there so that the page quotes what is wrong with a file elsewhere.
    """
    # the files of a download are links into the cache
    if not is_download and real_path(file) != real_path(root) / file.relative_to(root):
        raise BadInput("it is a link, or in a linked folder: put the file itself there")
