"""Offers a run to its model's repository, and to the repository that the leaderboard is made from.

Both are pull requests: anyone may open one, and the owners decide. Nothing is sent before `verify`
has accepted the run, and nothing but the files that `describe` shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.card import result_card
from lmdiag.hub.client import REPO_ID, check_repo_id, plain_errors
from lmdiag.hub.files import read_files
from lmdiag.hub.headline import HEADLINES
from lmdiag.hub.names import is_commit, is_hub_id
from lmdiag.hub.refusal import Refused, refuse
from lmdiag.hub.shape import parse_results
from lmdiag.hub.verify import protocol_of, protocol_reasons, verify
from lmdiag.redact import find_secret
from lmdiag.results import RESULTS, protocol_slug
from lmdiag.schema import DIAGNOSTICS, BadInput

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

EVAL_RESULTS = ".eval_results/lmdiag.yaml"
RUNS = "runs"
"""Folder of the results repository: `runs/<model>/<commit and precision>/<protocol>/`."""

_TASK_ID = re.compile(r"[a-z0-9][a-z0-9_]{0,95}")


@dataclass(frozen=True)
class Offer:
    """A pull request to be.

    Attributes:
        repo_id: namespace/name.
        repo_type: model or dataset.
        files: path in the repository -> content.
        title: of the pull request.
        description: below it.
    """

    repo_id: str
    repo_type: str
    files: Mapping[str, bytes]
    title: str
    description: str

    def describe(self) -> str:
        """The files, those that people read with their content."""
        lines = [f"pull request on {self.repo_id} ({self.repo_type}): {self.title}"]
        for path, content in self.files.items():
            lines.append(f"  {len(content):,} bytes  {path}")
            if path == EVAL_RESULTS:
                lines += _indented(content.decode())
        return "\n".join([*lines, "  description:", *_indented(self.description)])

    def send(self, api: HfApi) -> str | None:
        """Opens the pull request and returns its address; None where all of it is there already.

        Raises:
            BadInput: the Hub refuses, or cannot be reached.
        """
        from huggingface_hub import CommitOperationAdd

        with plain_errors(f"cannot open a pull request on {self.repo_id}"):
            commit = api.create_commit(
                self.repo_id,
                [CommitOperationAdd(path, content) for path, content in self.files.items()],
                commit_message=self.title,
                commit_description=self.description,
                repo_type=self.repo_type,
                create_pr=True,
            )
        return commit.pr_url


@dataclass(frozen=True)
class Prepared:
    """A verified run, ready to be sent.

    Attributes:
        model: id and commit of the model, as verified.
        offers: the pull requests.
    """

    model: Mapping[str, Any]
    offers: Sequence[Offer]


def prepare(folder: Path, data: str | None, results_repo: str | None, endpoint: str) -> Prepared:
    """Verifies a run and makes the pull requests that offer it.

    Args:
        folder: the run directory.
        data: id of the published data set; None for the one the run was made on.
        results_repo: id of the results repository; None to leave it out.
        endpoint: address of the Hub, for links.

    Raises:
        BadInput: the run is not fit to submit; the message has every reason.
    """
    if results_repo is not None:
        check_repo_id(results_repo, "--results-repo")
    try:
        files = read_files(folder)
        claimed = parse_results(files[RESULTS])
        refuse(protocol_reasons(claimed))
        benchmark = Benchmark(*_published(folder, claimed, data))
        refuse(_model_reasons(claimed["model"]))
        results = verify(files, benchmark).results
    except Refused as refusal:
        raise BadInput(f"{folder} is not fit to submit: {refusal}") from None
    revision = benchmark.stimuli(DIAGNOSTICS[0]).revision
    if revision is None:
        raise BadInput(f"{benchmark.data} has no commit on the Hub: name a published one by --data")
    card = result_card(results, benchmark.data, revision, results_repo, endpoint)
    entries = eval_results(results, benchmark.data, revision, results_repo, endpoint)
    offers = [_model_offer(results, entries, card)]
    if results_repo is not None:
        offers.insert(0, _results_offer(files, results, results_repo, card))
    for offer in offers:
        for path, content in offer.files.items():
            if find_secret(content):
                raise BadInput(f"{folder}: {path} would hold a token of the Hub; it is not sent")
    return Prepared(results["model"], offers)


def check_commit(api: HfApi, model: Mapping[str, Any]) -> None:
    """Makes sure that the commit the run names is one of the model's repository.

    Raises:
        BadInput: it is not, so the run was made of something else.
    """
    commit, repo_id = model["commit"], model["id"]
    with plain_errors(f"cannot find commit {commit[:12]} in {repo_id}"):
        api.model_info(repo_id, revision=commit)


def run_place(results: Mapping[str, Any]) -> str:
    """Returns where in a results repository a run belongs, one place for each model as run."""
    model = results["model"]
    parts = [model["commit"][:12], model["dtype"], model["quantization"] or ""]
    precision = _slug("-".join(part for part in parts if part))
    return f"{RUNS}/{_slug(model['id'])}/{precision}/{protocol_slug(protocol_of(results))}"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "--", text).strip("-.") or "model"


def _published(
    folder: Path, results: Mapping[str, Any], data: str | None
) -> tuple[str, str | None]:
    """Id and revision of the data set to verify against."""
    if data is not None:
        if Path(data).exists():
            raise BadInput(f"--data {data} is a local copy here: give the id of the published one")
        return check_repo_id(data, "--data"), None
    source, revision = results["data"]["source"], results["data"]["revision"]
    if REPO_ID.fullmatch(source) and is_commit(revision or "") and not Path(source).exists():
        return source, revision
    raise BadInput(
        f"{folder} was run on {source}, which is no data set of the Hub: name the published one by "
        "--data ORG/NAME; its rows are compared with the run's"
    )


def _model_reasons(model: Mapping[str, Any]) -> Iterator[str]:
    """Whether the Hub can know which model this is."""
    if not is_hub_id(model["id"]) or not is_commit(model["commit"]):
        yield (
            f"{model['id']} at {model['commit']} is not a commit of a model on the Hub: push the "
            "model and run it by its id"
        )


def _results_offer(
    run: Mapping[str, bytes], results: Mapping[str, Any], repo_id: str, card: str
) -> Offer:
    place = run_place(results)
    files = {f"{place}/{name}": content for name, content in run.items()}
    title = f"Add a run of {results['model']['id']}"
    return Offer(repo_id, "dataset", files, title, card)


def _model_offer(
    results: Mapping[str, Any], entries: Sequence[EvalResultEntry], card: str
) -> Offer:
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    text = yaml.safe_dump(eval_result_entries_to_yaml(list(entries)), sort_keys=False)
    files = {EVAL_RESULTS: text.encode()}
    title = "Add results of the lmdiag diagnostics"
    return Offer(results["model"]["id"], "model", files, title, card)


def eval_results(
    results: Mapping[str, Any], data: str, revision: str, results_repo: str | None, endpoint: str
) -> list[EvalResultEntry]:
    """Returns one entry per headline figure that the run has.

    huggingface_hub writes whatever it is given, so everything is checked here.

    Raises:
        BadInput: a value that is no proportion, or an id that the Hub would not take.
    """
    from huggingface_hub import EvalResultEntry

    found = [(headline, headline.find(results)) for headline in HEADLINES]
    entries = []
    for headline, figure in found:
        if figure is None:
            continue
        value = figure["value"]
        if not (isinstance(value, float) and math.isfinite(value) and 0 <= value <= 1):
            raise BadInput(f"{headline.id}: {value!r} is no proportion; it is not sent")
        if not _TASK_ID.fullmatch(headline.id):
            raise BadInput(f"{headline.id!r} is no task id; it is not sent")
        low, high = figure["ci_low"], figure["ci_high"]
        interval = "" if low is None else f", 95% interval {low:.3f}-{high:.3f}"
        entries.append(
            EvalResultEntry(
                dataset_id=data,
                task_id=headline.id,
                value=value,
                dataset_revision=revision,
                date=results["finished"],
                source_url=f"{endpoint}/datasets/{results_repo or data}",
                source_name="lmdiag runs" if results_repo else "lmdiag",
                notes=f"{results['signature']} (n {figure['n']}{interval})",
            )
        )
    return entries
