"""Requests to a leaderboard: which model, at which commit, in which precision is to be run.

Requests and the figures of runs are offered as pull requests: anyone may open one, and the owners
decide.

A request is one small YAML file in a results repository,
`requests/<model>/<commit>-<dtype>.yaml`, written by anyone and merged by the owner. Beside it, the
`results.json` of a run may lie as claimed figures, under the same name with the ending `.json`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import exists, read_bytes
from lmdiag.hub.benchmark import leaderboard_figures, protocol_problem
from lmdiag.hub.publish import Commit, check_repo_id, is_on_hub
from lmdiag.results import RESULTS, Results, load_run
from lmdiag.text import first_problem
from lmdiag.types import DIAGNOSTICS, BadInput

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

    `BadInput` names a field that is missing, unknown or wrong.

    Args:
        text: content of the file.
        path: of the file in the results repository; it must be that of the request.
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
    """Returns the request with some fields; `BadInput` names the first field that is wrong.

    Args:
        content: field -> value; anything else is refused.
        prefix: what the message begins with, e.g. "model org/name cannot be requested: ".
    """
    try:
        return RunRequest.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{prefix}{first_problem(error)}") from None


def request_of(
    model: str, revision: str | None, dtype: str, quantization: str | None = None, note: str = ""
) -> RunRequest:
    """Returns the request of a model on the Hub, with its full id and its commit.

    The Hub is asked for both: "gpt2" at "main" becomes "openai-community/gpt2" at a commit.

    Args:
        model: id; demo models are refused (`BadInput`).
        revision: branch, tag or commit; None for the default branch.
        dtype, quantization, note: see `RunRequest`.
    """
    from huggingface_hub import HfApi

    if model.startswith("demo:"):
        raise BadInput(f"{model} is a part of lmdiag: name a model of the Hub, ORG/NAME")
    with plain_errors(f"cannot find model {model}" + (f" at {revision}" if revision else "")):
        info = HfApi().model_info(model, revision=revision)
    fields = {"model": info.id, "commit": info.sha, "dtype": dtype, "quantization": quantization}
    return _validated(fields | {"note": note}, f"model {model} cannot be requested: ")


def offer_request(request: RunRequest, results_repo: str, claimed: bytes | None = None) -> Commit:
    """Returns the pull request that adds a request to a results repository.

    Args:
        results_repo: id of the repository.
        claimed: content of a `results.json` beside the request; None to leave it out.
    """
    check_repo_id(results_repo, "--results-repo")
    files = {request.path: request.to_yaml().encode()}
    if claimed is not None:
        claim_path = str(Path(request.path).with_suffix(".json"))
        files[claim_path] = claimed
    description = f"Request to run `{request.model}` at `{request.commit}` in {request.precision}."
    return Commit(results_repo, "dataset", files, f"Run {request.model}", description)


def offers_of_run(
    folder: Path, data: str | None, results_repo: str | None, note: str
) -> list[Commit]:
    """Returns the pull requests that offer the figures of a finished run.

    One is on the repository of the model; before it stands one on the results repository, if there
    is any. `BadInput` if the run cannot be submitted; the message says why.

    Args:
        folder: run directory.
        data: id of the published data set; None for the data set that the run was made on.
        results_repo: id of the results repository of a leaderboard; None for no pull request there.
        note: for the owner of the leaderboard, in the request.
    """
    # with `data`, the published rows are loaded and compared with those of the run
    run = load_run(folder, data and check_repo_id(data, "--data"))
    results = run.results
    model = run.results.model
    if data is None:
        source = results.data.source
        revision = results.data.revision or ""
    else:
        source = data
        revision = run.stimuli[DIAGNOSTICS[0]].revision or ""
    problem = protocol_problem(results.protocol)
    if problem:
        raise BadInput(f"{folder} cannot be submitted: {problem}")
    if not is_on_hub(source) or not re.fullmatch(COMMIT, revision):
        raise BadInput(
            f"{folder} was run on {source}, which is not a data set of the Hub: add "
            "--data ORG/NAME, the published one; its rows are compared with the run's"
        )
    if exists(Path(model.id)) or not re.fullmatch(COMMIT, model.commit):
        raise BadInput(
            f"{folder} cannot be submitted: {model.id} at {model.commit} is not a commit of a "
            "model on the Hub: push the model and run it by its id"
        )
    _ = run.predictions  # reading them checks that they are those of the results
    request = request_of(model.id, model.commit, model.dtype, model.quantization, note)
    offers = []
    if results_repo is not None:
        claimed = read_bytes(folder / RESULTS, MAX_CLAIM)
        offers.append(offer_request(request, results_repo, claimed))
    linked_repo = results_repo or source  # without a results repository, the data set
    offers.append(_offer_figures(request.model, results, source, revision, linked_repo))
    return offers


def _offer_figures(
    model: str, results: Results, data: str, revision: str, linked_repo: str
) -> Commit:
    """Returns the pull request that adds the figures of a run to the repository of its model.

    Args:
        model: id on the Hub.
        results: of the run.
        data, revision: id and commit of the data set on the Hub.
        linked_repo: id of the data set or results repository that readers of a figure are sent to.
    """
    from huggingface_hub import EvalResultEntry, constants, eval_result_entries_to_yaml

    entries = []
    for task_id, figure in leaderboard_figures(results).items():
        interval = ""
        if figure.ci_low is not None:
            interval = f", 95% interval {figure.ci_low:.3f}-{figure.ci_high:.3f}"
        entries.append(
            EvalResultEntry(
                dataset_id=data, task_id=task_id, value=figure.value, dataset_revision=revision,
                date=results.finished, source_url=f"{constants.ENDPOINT}/datasets/{linked_repo}",
                source_name="lmdiag", notes=f"{results.signature} (n {figure.n}{interval})",
            )
        )  # fmt: skip
    content = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False).encode()
    command = f"lmdiag run --model {model} --revision {results.model.commit}"
    command += f" --data {data}@{revision}"
    description = f"Signature: `{results.signature}`\n\nTo repeat it: `{command}`"
    title = "Add results of the lmdiag diagnostics"
    return Commit(model, "model", {".eval_results/lmdiag.yaml": content}, title, description)
