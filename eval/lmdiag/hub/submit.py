"""Offers a run to its model's repository, and to the repository that the leaderboard is made from.

Both are pull requests: anyone may open one, and the owners decide. Nothing is sent but the files
that `describe` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.hub.benchmark import Benchmark, columns, leaderboard_figures, protocol_reasons
from lmdiag.hub.client import check_repo_id, plain_errors
from lmdiag.hub.names import is_commit, is_hub_commit, is_on_hub
from lmdiag.reading import exists, is_file
from lmdiag.redact import find_secret
from lmdiag.results import (
    EW_AND_MW,
    PREDICTIONS,
    RESULTS,
    Results,
    load_run,
    protocol_slug,
    read_results,
)
from lmdiag.results.signatures import slug
from lmdiag.types import DIAGNOSTICS, BadInput, ModelInfo

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

EVAL_RESULTS = ".eval_results/lmdiag.yaml"
RUNS = "runs"
"""Folder of the results repository: `runs/<model>/<commit and precision>/<protocol>/`."""


@dataclass(frozen=True)
class Offer:
    """A pull request that has not been opened yet.

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
        """Returns the files, the evaluation results with their content."""
        lines = [f"pull request on {self.repo_id} ({self.repo_type}): {self.title}"]
        for path, content in self.files.items():
            lines.append(f"  {len(content):,} bytes  {path}")
            if path == EVAL_RESULTS:
                lines += _indented(content.decode())
        return "\n".join([*lines, "  description:", *_indented(self.description)])

    def send(self, api: HfApi) -> str | None:
        """Opens the pull request and returns its address; None if the repository has it all.

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
class Published:
    """What the pull requests of a run refer to.

    Attributes:
        data, revision: the published data set and its commit.
        results_repo: where the predictions are; None for nowhere.
        endpoint: address of the Hub, for links.
    """

    data: str
    revision: str
    results_repo: str | None
    endpoint: str


def prepare(
    folder: Path, data: str | None, results_repo: str | None, endpoint: str
) -> tuple[ModelInfo, list[Offer]]:
    """Verifies a run and makes the pull requests that offer it.

    Args:
        folder: the run directory.
        data: id of the published data set; None for the one the run was made on.
        results_repo: id of the results repository; None to leave it out.
        endpoint: address of the Hub, for links.

    Returns:
        The facts on its model, and the pull requests.

    Raises:
        BadInput: the run cannot be submitted; the message has every reason.
    """
    if results_repo is not None:
        check_repo_id(results_repo, "--results-repo")
    try:
        results = read_results(folder)
        source = _data_set(folder, results, data)
        model = results.model
        if not is_hub_commit(model):
            where = f"{model.id} at {model.commit}"
            advice = "push the model and run it by its id"
            raise BadInput(f"{where} is not a commit of a model on the Hub: {advice}")
        for reason in protocol_reasons(results.protocol):
            raise BadInput(reason)
        _ = load_run(folder, source[0]).predictions  # checks that they are those of the results
        names = (RESULTS, PREDICTIONS, EW_AND_MW)
        files = {name: (folder / name).read_bytes() for name in names if is_file(folder / name)}
    except BadInput as error:
        raise BadInput(f"{folder} cannot be submitted: {error}") from None
    benchmark = Benchmark(*source)
    revision = benchmark.stimuli(DIAGNOSTICS[0]).revision
    if revision is None:
        raise BadInput(f"{benchmark.data} has no commit on the Hub: name a published one by --data")
    published = Published(benchmark.data, revision, results_repo, endpoint)
    offers = _offers(files, results, published)
    for offer in offers:
        for path, content in offer.files.items():
            if find_secret(content):
                raise BadInput(f"{folder}: {path} would contain a token of the Hub; it is not sent")
    return model, offers


def check_commit(api: HfApi, model: ModelInfo) -> None:
    """Checks that the commit that a run names is one of the model's repository.

    Raises:
        BadInput: it is not, so the run was made with something else.
    """
    with plain_errors(f"cannot find commit {model.commit[:12]} in {model.id}"):
        api.model_info(model.id, revision=model.commit)


def run_place(results: Results) -> str:
    """Returns the folder of a run in a results repository, one for each model as it was run."""
    model = results.model
    precision = "-".join(filter(None, [model.commit[:12], model.dtype, model.quantization]))
    return f"{RUNS}/{slug(model.id)}/{slug(precision)}/{protocol_slug(results.protocol)}"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


def _data_set(folder: Path, claimed: Results, data: str | None) -> tuple[str, str | None]:
    """Returns id and revision of the data set to verify against."""
    if data is not None:
        if exists(Path(data)):
            raise BadInput(f"--data {data} is a local copy: give the id of the published one")
        return check_repo_id(data, "--data"), None
    source, revision = claimed.data.source, claimed.data.revision
    if is_on_hub(source) and is_commit(revision):
        return source, revision
    raise BadInput(
        f"{folder} was run on {source}, which is not a data set of the Hub: name the published one "
        "by --data ORG/NAME; its rows are compared with the run's"
    )


def _offers(files: Mapping[str, bytes], results: Results, published: Published) -> list[Offer]:
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    description = _describe(results, published)
    entries = eval_result_entries_to_yaml(list(_entries(results, published)))
    evaluation = {EVAL_RESULTS: yaml.safe_dump(entries, sort_keys=False).encode()}
    title = "Add results of the lmdiag diagnostics"
    offers = [Offer(results.model.id, "model", evaluation, title, description)]
    if published.results_repo is not None:
        folder = run_place(results)
        run = {f"{folder}/{name}": content for name, content in files.items()}
        title = f"Add a run of {results.model.id}"
        offers.insert(0, Offer(published.results_repo, "dataset", run, title, description))
    return offers


def _entries(results: Results, published: Published) -> Iterator[EvalResultEntry]:
    """Yields one entry for each figure of the leaderboard that the run has."""
    from huggingface_hub import EvalResultEntry

    source = published.results_repo
    for task_id, figure in leaderboard_figures(results).items():
        if figure.value is None or not 0 <= figure.value <= 1:  # huggingface_hub writes any value
            raise BadInput(f"{task_id}: {figure.value} is not a proportion; it is not sent")
        low, high = figure.ci_low, figure.ci_high
        interval = "" if low is None else f", 95% interval {low:.3f}-{high:.3f}"
        yield EvalResultEntry(
            dataset_id=published.data,
            task_id=task_id,
            value=figure.value,
            dataset_revision=published.revision,
            date=results.finished,
            source_url=f"{published.endpoint}/datasets/{source or published.data}",
            source_name="lmdiag runs" if source else "lmdiag",
            notes=f"{results.signature} (n {figure.n}{interval})",
        )


def _describe(results: Results, published: Published) -> str:
    """Returns the figures of a run in Markdown, and the command that repeats it."""
    from lmdiag.report.page import environment

    figures, tasks = leaderboard_figures(results), results.protocol.tasks
    rows = [
        (diagnostics.get(place.task).short_title, column.label, figures[column.task_id])
        for place, column in columns().items()
        if column.task_id in figures
    ]
    template = environment().get_template("result.md.j2")
    return template.render(
        results=results,
        rows=rows,
        tasks=tasks if tasks != DIAGNOSTICS else (),
        published=published,
    )
