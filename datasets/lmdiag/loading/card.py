"""Fills in the data set card: the YAML that the Hub reads, and the tables of what was built.

The card in the repository is complete. The parts that depend on the build, between marker comments
and in a few YAML fields, are replaced. Filling in a card that is filled in already does not change
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmdiag.types import BadInput

from .sources import CONFIGS, REPOSITORIES

if TYPE_CHECKING:
    import datasets

SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))

ORIGINS = {
    "upstream": "the pinned commits of the two repositories",
    "demo": "the demo source: sentences written for this project, in the same file formats, to try "
    "the programs with; its cloze values are made up. **Figures on it cannot be compared with "
    "published ones.**",
    "directory": "a directory with the repositories' tree",
}


PARQUET = "{}/test-00000-of-00001.parquet"
"""Path of the rows of a config inside the data set."""


def fill(card: str, record: Mapping[str, Any], infos: Mapping[str, datasets.DatasetInfo]) -> str:
    """Returns the card of what was built.

    Args:
        card: text of a card, with YAML front matter and markers `<!-- begin NAME -->`.
        record: the provenance, whose first config is the default one.
        infos: config -> features and sizes.
    """
    import yaml
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    parts = re.match(r"---\n(.*?)\n---\n(.*)", card, re.DOTALL)
    if parts is None:
        raise BadInput("README.md has no YAML front matter: restore it from the project")
    front, body = yaml.safe_load(parts[1]), parts[2]
    rows = sum(facts["rows"] for facts in record["configs"].values())
    front["size_categories"] = [next((n for bound, n in SIZES if rows < bound), "1M<n<10M")]
    default = next(iter(infos))
    entries, table = [], ["| config | rows | what it tests |", "| --- | ---: | --- |"]
    for config, facts in record["configs"].items():
        about, path = CONFIGS[config]["description"], PARQUET.format(config)
        entry: dict[str, Any] = {"config_name": config}
        if config == default:
            entry["default"] = True
        # The cache of `datasets` depends on this entry and not on the bytes of the file: without
        # the digest, it would return the rows of an earlier build.
        entry["description"] = f"{about} (Parquet sha256 {record['outputs'][path]})"
        entry["data_files"] = [{"split": "test", "path": path}]
        entries.append(entry)
        table.append(f"| `{config}` | {facts['rows']:,} | {about} |")
    front["configs"] = entries
    data = DatasetCardData()
    DatasetInfosDict(infos).to_dataset_card_data(data)
    described = data.to_dict()["dataset_info"]  # type: ignore[no-untyped-call]
    is_list = isinstance(described, list)
    front["dataset_info"] = described if is_list else [{"config_name": default} | described]
    for name, lines in (("configs", table), ("provenance", _provenance(record))):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, *section = re.split(f"({begin}.*?{end})", body, maxsplit=1, flags=re.DOTALL)
        if not section:
            raise BadInput(
                f"README.md has no section {begin} ... {end}: restore it from the project"
            )
        body = before + "\n".join((begin, *lines, end)) + section[1]
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n{body}"


def _provenance(record: Mapping[str, Any]) -> list[str]:
    """The lines of the section that says what the data set was built from."""
    lines = [f"Built from {ORIGINS[record['source']]}.", ""]
    for folder, entry in REPOSITORIES.items():
        configs = record["configs"].items()
        commits = [
            facts["commit"] for config, facts in configs if folder == CONFIGS[config]["folder"]
        ]
        if commits and all(commits):
            where = f"https://github.com/{entry['repository']}/tree/{entry['commit']}"
            lines.append(
                f"- [{entry['repository']}]({where}) ({entry['license']}) at commit "
                f"`{entry['commit']}`"
            )
        elif commits and record["source"] != "demo":
            lines.append(f"- {folder}: **not the bytes of the pinned commit**")
    # folded, because the digests are wider than the page
    lines += ["", "<details><summary>SHA-256 of every file</summary>", ""]
    lines += ["| input | SHA-256 |", "| --- | --- |"]
    for facts in record["configs"].values():
        lines += [f"| `{path}` | `{digest}` |" for path, digest in facts["inputs"].items()]
    lines += ["", "| Parquet | SHA-256 |", "| --- | --- |"]
    lines += [f"| `{path}` | `{digest}` |" for path, digest in record["outputs"].items()]
    return [*lines, "", "</details>"]
