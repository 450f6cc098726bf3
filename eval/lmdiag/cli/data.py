"""Commands on data sets and the Hub: `build`, `template`, `publish`, `submit`, `leaderboard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from lmdiag.cli import command_options as options
from lmdiag.cli import say
from lmdiag.files import reading, writing
from lmdiag.stimuli.dataset import script
from lmdiag.text import visible
from lmdiag.types import DIAGNOSTICS, BadInput

_MOST_ITEMS = 24
"""Items of `cards/starter.design.jsonl`."""


def build_command(
    out: Path = Path("lmdiag"),
    /,
    *,
    source: str = "upstream",
    configs: tuple[str, ...] | None = None,
) -> None:
    """Builds the data set by its own loading scripts, and prints the rows of each config.

    Args:
        out: directory to write
        source: upstream: download the pinned commits; demo: the bundled sentences; DIR: a directory
            with the tree of lm-diagnostics, of refining-tse, or with both
        configs: configs to build (default: all that the source has)
    """
    for name, rows in script("directory").build(out, source, configs).items():
        print(f"{name:<30} {rows:>8,} rows")
    print(f"written: {visible(str(out))}")


def template_command(
    file: Path = Path("my_diagnostic.csv"),
    /,
    *,
    design: Literal["2", "2x2"] | None = None,
    regions: bool = False,
    cloze: bool = False,
    items: options.Count | None = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Writes a starter file, from `cards/starter.*.jsonl`, and prints what to do with it.

    Args:
        file: file to write; its name must end in .csv, .tsv or .jsonl
        design: write items in the conditions of a design, with one or two factors
        regions: write sentences with regions, in the conditions of a design
        cloze: write people's responses, for lmdiag cloze
        items: number of items of a design, up to 24 (default: 3)
    """
    is_design = bool(design or regions)  # regions are those of a design, too
    options.check_new_file(file, (".csv", ".tsv", ".jsonl"), overwrite=overwrite)
    if items is not None and (not is_design or items > _MOST_ITEMS):
        raise BadInput(f"--items is for --design or --regions, up to {_MOST_ITEMS}")
    if cloze and is_design:
        raise BadInput("--cloze is for responses: leave --design and --regions out")
    kind = "design" if is_design else "rows"
    if cloze:
        kind = "cloze"
    path = reading.resource_path("cards", f"starter.{kind}.jsonl")
    rows = [row for _, row in reading.read_json_lines(path)]
    if is_design:
        rows = [row for row in rows if int(row["item"]) <= (items or 3)]
    if design == "2":  # one of the two factors of the file: without the factor grammatical
        rows = [row for row in rows if row["grammatical"] == "yes"]
        for row in rows:
            del row["grammatical"]
    texts = "context, target  the text to the left of the word, and the word that is scored"
    if regions:
        texts = "region_1, region_2, ...  the sentence in parts; a part may be empty"
    elif is_design:  # the file has four regions; the third, the verb, becomes the target at a blank
        for row in rows:
            start, between, verb, ending = (row.pop(f"region_{n}") for n in range(1, 5))
            row |= {"context": f"{start} {between}", "right_context": ending, "target": verb}
    # a text with {file}, {texts} and so on in it
    advice = reading.read_text(path.with_suffix(".txt")).format(
        file=file,
        separator="" if file.suffix == ".jsonl" else ", separated by |",
        names=", ".join(name for name in ("grammatical", "attractor") if name in rows[0]),
        texts=texts,
        region=" --region 3" if regions else "",
    )
    _write_rows(file, rows)
    print(advice, end="")


def _write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, each column -> value, as JSON lines or as a table, by the ending of the file.

    In a table, a list of words becomes one cell, as `lmdiag.stimuli` reads it: ["cat", "dog"]
    becomes "cat|dog".
    """
    from pandas import DataFrame

    from lmdiag.tables.table_files import write_table

    if file.suffix == ".jsonl":
        lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        writing.write_user_file(file, lines.encode())
    else:
        table = DataFrame(rows)
        table = table.map(lambda value: "|".join(value) if isinstance(value, list) else value)
        write_table(table, file)


def publish_command(
    what: Literal["data", "metric", "leaderboard", "app"],
    dir: Path | None = None,
    /,
    *,
    repo_id: str,
    public: bool = False,
    benchmark: bool = False,
    dry_run: bool = False,
) -> None:
    """Plans the publication, then describes or sends it.

    Args:
        what: a built data set, the evaluate metric of this installation, a leaderboard (a static
            Space), or the page of `lmdiag app` (a Space)
        dir: directory written by `lmdiag build` or `lmdiag leaderboard`; none for the others
        repo_id: target repository, ORG/NAME
        public: create a public repository (default: private)
        benchmark: with data, also send eval.yaml (the Hub accepts it from registered benchmarks
            only)
        dry_run: list what would be sent, send nothing
    """
    from huggingface_hub import HfApi

    from lmdiag.hub import publish

    if benchmark and what != "data":
        raise BadInput("--benchmark is for data: leave it out")
    takes_directory = what in ("data", "leaderboard")
    if dir is not None and not takes_directory:
        raise BadInput(f"publish {what}: give no directory")
    if dir is None and takes_directory:
        command = "build" if what == "data" else what
        raise BadInput(f"publish {what}: give the directory that lmdiag {command} wrote")
    if dir is None:
        plan = publish.plan_metric if what == "metric" else publish.plan_app
        publication = plan(repo_id)
    elif what == "data":
        publication = publish.plan_data(dir, repo_id, benchmark=benchmark)
    else:
        publication = publish.plan_leaderboard(dir, repo_id)
    description = publication.describe("public" if public else "private")
    print(description, file=None if dry_run else sys.stderr)
    if dry_run:
        return
    address, is_private = publication.publish(HfApi(library_name="lmdiag"), private=not public)
    print(address)
    if is_private == public:
        now = "private" if is_private else "public"
        print(f"{repo_id} existed before and remains {now}", file=sys.stderr)


def submit_command(
    model: str,
    /,
    *,
    results_repo: str | None = None,
    revision: str | None = None,
    dtype: Literal["float64", "float32", "float16", "bfloat16"] | None = None,
    note: str = "",
    data: str | None = None,
    dry_run: bool = False,
) -> None:
    """Opens pull requests, or shows them: a request to a leaderboard, or the figures of a run.

    Args:
        model: id of a model on the Hub, or directory of a finished run, whose figures are offered
            to the model's repository, too
        results_repo: data set repository in which a leaderboard collects requests
        revision: branch, tag or commit of the model
        dtype: of the weights (default: float32; of a run: its own)
        note: for the owner of the leaderboard, at most 200 characters
        data: published data set of a run (default: the one that it was made on)
        dry_run: list what would be sent, send nothing
    """
    from huggingface_hub import HfApi

    from lmdiag.hub.requests import offer_request, offers_of_run, request_of
    from lmdiag.results import RESULTS

    run = Path(model)
    if reading.exists(run):
        if not reading.exists(run / RESULTS):
            raise BadInput(f"{model} is a folder without a finished run: a Hub id is needed")
        if revision or dtype:
            raise BadInput("--revision and --dtype are those of the run: leave them out")
        offers = offers_of_run(run, data, results_repo, note)
    elif results_repo is None:
        raise BadInput("--results-repo ORG/NAME is needed to request a model on a leaderboard")
    else:
        request = request_of(model, revision, dtype or "float32", note=note)
        offers = [offer_request(request, results_repo)]
    if dry_run:
        print("\n".join(offer.describe("pull request") for offer in offers))
        return
    for offer in offers:
        address = offer.propose(HfApi(library_name="lmdiag"))
        print(address or f"{offer.repo_id} has all of it already")


def _parameter_count(_: Any, tokens: Sequence[Token]) -> int:
    """Returns the number of parameters that was typed: 7000000000 for 7000000000, 7e9 or 7B.

    A `ValueError` becomes a message of cyclopts.
    """
    text = tokens[0].value
    units = {"K": 1e3, "M": 1e6, "B": 1e9}
    with suppress(ValueError):
        value = float(text.rstrip("KMB")) * units.get(text[-1:], 1)
        if 1 <= value < 1e15:  # no model has more; refuses inf and nan
            return int(value)
    raise ValueError(f"{text!r} is not a number of parameters, such as 7B or 7e9")


def leaderboard_command(
    requests: tuple[str, ...],
    /,
    *,
    out: Path,
    data: str = "lmdiag",
    tasks: tuple[str, ...] = DIAGNOSTICS,
    device: str | None = None,
    max_parameters: Annotated[int, Parameter(converter=_parameter_count)] = 3_000_000_000,
    time_limit: options.Count = 3600,
    no_run: bool = False,
) -> None:
    """Runs requested models that have no run yet, and writes the site of the leaderboard.

    Args:
        requests: Hub id of a results repository, folder with requests, or file with a model and
            optionally its revision on each line
        out: directory to write the site into; the runs are kept in DIR-runs
        data: data set: a built directory or a Hub id (ID@REVISION for a branch, tag or commit)
        tasks: diagnostics to run
        device: device of the models, e.g. cpu or cuda:1
        max_parameters: run no larger model, e.g. 7B
        time_limit: seconds of each run, with the download of the model
        no_run: build the site from the runs that are there
    """
    from lmdiag.leaderboard.board import Board
    from lmdiag.leaderboard.entries import listed_models, read_requests
    from lmdiag.leaderboard.site import check_target, write_site
    from lmdiag.stimuli.dataset import split_revision

    check_target(out)
    out = reading.real_path(out)  # a link is another name of the same site and its lock
    lists = [place for place in requests if reading.is_file(Path(place))]
    # A plain name, as "lmdiag", may be a Hub id or a folder. If the folder is one of requests, a
    # stranger may have put it there in place of the data: then it must be typed as "./lmdiag".
    data_set, revision = split_revision(data)
    folder = reading.real_path(Path(data_set))
    is_name = reading.exists(folder) and not data.startswith((".", "/", "~"))
    for place in requests:
        if is_name and folder.is_relative_to(reading.real_path(Path(place))):
            raise BadInput(f"--data {data} is a folder of {place}: write ./{data} to read it")
    listed = [entry for file in lists for entry in listed_models(options.read_models(file))]
    requested = read_requests(place for place in requests if place not in lists)
    runs = out.with_name(f"{out.name}-runs")
    board = Board(runs, data_set, revision, tasks, device, max_parameters, time_limit)
    # one command at a time makes runs and writes the site
    with board.locked():
        all_entries = (*listed, *board.capped(requested))
        entries = {entry.key: entry for entry in all_entries}.values()  # each run once
        if not no_run:
            board.run_missing([entry.request for entry in entries if entry.request], say)
        rows, requests_without_run = board.rows(entries)
        write_site(out, rows, requests_without_run, board)
    n_runs = _counted(len(rows), "run")
    n_requests = _counted(len(requests_without_run), "request")
    print(f"{visible(str(out))}/index.html: {n_runs}, {n_requests} without a run")


def _counted(n: int, noun: str) -> str:
    """Returns a number with its noun: "1 run", "2 runs"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
