"""Requests a model on a leaderboard, and offers the figures of a run to the model's repository.

Both are pull requests: anyone may open one, and the owners decide.
"""

from __future__ import annotations

import re
from pathlib import Path

from lmdiag.files import exists, read_bytes
from lmdiag.hub.benchmark import leaderboard_figures, protocol_problem
from lmdiag.hub.client import check_repo_id, is_on_hub
from lmdiag.hub.commits import Commit
from lmdiag.hub.requests import COMMIT, MAX_CLAIM, RunRequest, request_of
from lmdiag.results import RESULTS, Results, load_run
from lmdiag.types import DIAGNOSTICS, BadInput

EVAL_RESULTS = ".eval_results/lmdiag.yaml"


def offer_request(request: RunRequest, results_repo: str, claimed: bytes | None = None) -> Commit:
    """Returns the pull request on a results repository.

    Args:
        request: what is to be run.
        results_repo: id of the results repository.
        claimed: the `results.json` of a run of the submitter's.
    """
    check_repo_id(results_repo, "--results-repo")
    files = {request.path: request.to_yaml().encode()}
    if claimed is not None:
        files[str(Path(request.path).with_suffix(".json"))] = claimed
    description = f"Request to run `{request.model}` at `{request.commit}` in {request.precision}."
    return Commit(results_repo, "dataset", files, f"Run {request.model}", description)


def offers_of_run(
    folder: Path, data: str | None, results_repo: str | None, note: str
) -> list[Commit]:
    """Returns the pull requests of a finished run, on its model and on a results repository.

    Args:
        folder: run directory.
        data: id of the published data set; None for the one the run was made on.
        results_repo: id of the results repository; None to leave it out.
        note: of the request.

    Raises:
        BadInput: the run cannot be submitted; the message says why.
    """
    run = load_run(folder, data and check_repo_id(data, "--data"))
    results, model = run.results, run.results.model
    source, revision = results.data.source, results.data.revision or ""
    if data is not None:
        source, revision = data, run.stimuli[DIAGNOSTICS[0]].revision or ""
    if problem := protocol_problem(results.protocol):
        raise BadInput(f"{folder} cannot be submitted: {problem}")
    if not is_on_hub(source) or not re.fullmatch(COMMIT, revision):
        raise BadInput(
            f"{folder} was run on {source}, which is not a data set of the Hub: name the published "
            "one by --data ORG/NAME; its rows are compared with the run's"
        )
    if exists(Path(model.id)) or not re.fullmatch(COMMIT, model.commit):
        raise BadInput(
            f"{folder} cannot be submitted: {model.id} at {model.commit} is not a commit of a "
            "model on the Hub: push the model and run it by its id"
        )
    _ = run.predictions  # checks that they are those of the results
    request = request_of(model.id, model.commit, model.dtype, model.quantization, note)
    offers = [_offer_figures(request.model, results, source, revision, results_repo or source)]
    if results_repo is not None:
        claimed = read_bytes(folder / RESULTS, MAX_CLAIM)
        offers.insert(0, offer_request(request, results_repo, claimed))
    return offers


def _offer_figures(model: str, results: Results, data: str, revision: str, link: str) -> Commit:
    """Returns the pull request on the model's repository; `link` is a data set on the Hub."""
    import yaml
    from huggingface_hub import EvalResultEntry, constants, eval_result_entries_to_yaml

    entries = []
    for task_id, figure in leaderboard_figures(results).items():
        if figure.value is None or not 0 <= figure.value <= 1:  # huggingface_hub writes any value
            raise BadInput(f"{task_id}: {figure.value} is not a proportion; it is not sent")
        low, high = figure.ci_low, figure.ci_high
        interval = "" if low is None else f", 95% interval {low:.3f}-{high:.3f}"
        entries.append(
            EvalResultEntry(
                dataset_id=data, task_id=task_id, value=figure.value, dataset_revision=revision,
                date=results.finished, source_url=f"{constants.ENDPOINT}/datasets/{link}",
                source_name="lmdiag", notes=f"{results.signature} (n {figure.n}{interval})",
            )
        )  # fmt: skip
    content = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False).encode()
    command = f"lmdiag run --model {model} --revision {results.model.commit} --data {data}"
    description = (
        f"Signature: `{results.signature}`\n\nTo repeat it: `{command} --data-revision {revision}`"
    )
    title = "Add results of the lmdiag diagnostics"
    return Commit(model, "model", {EVAL_RESULTS: content}, title, description)
