"""Fills in the data set card: the YAML that the Hub reads, and the tables of what was built.

The card in the repository is complete. The parts that depend on the build, between marker comments
and in a few YAML fields, are replaced. Filling in a card that is filled in already does not change
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmdiag.types import BadInput

from .sources import CONFIGS, REPOSITORIES, SourceFile

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


@dataclass(frozen=True)
class Built:
    """A config that was written.

    Attributes:
        config: its name.
        parquet: path of its Parquet file inside the data set.
        sha256: of the Parquet file.
        files: what it was made from.
        info: features and sizes.
    """

    config: str
    parquet: str
    sha256: str
    files: list[SourceFile]
    info: datasets.DatasetInfo

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.info.splits["test"].num_examples)

    @property
    def is_pinned(self) -> bool:
        """Whether it was made from the bytes of the pinned commit."""
        return all(file.pinned for file in self.files)


def fill(card: str, source: str, built: list[Built]) -> str:
    """Returns the card of what was built.

    Args:
        card: text of a card, with YAML front matter and markers `<!-- begin NAME -->`.
        source: upstream, demo or directory.
        built: the configs, the first of them the default one.
    """
    import yaml
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    parts = re.match(r"---\n(.*?)\n---\n(.*)", card, re.DOTALL)
    if parts is None:
        raise BadInput("README.md has no YAML front matter: restore it from the project")
    front, body = yaml.safe_load(parts[1]), parts[2]
    rows = sum(part.rows for part in built)
    front["size_categories"] = [next((n for bound, n in SIZES if rows < bound), "1M<n<10M")]
    about = {part.config: CONFIGS[part.config]["description"] for part in built}
    front["configs"] = [
        {"config_name": part.config}
        | ({"default": True} if part is built[0] else {})
        # The cache of `datasets` depends on this entry and not on the bytes of the file: without
        # the digest, it would return the rows of an earlier build.
        | {"description": f"{about[part.config]} (Parquet sha256 {part.sha256})"}
        | {"data_files": [{"split": "test", "path": part.parquet}]}
        for part in built
    ]
    data = DatasetCardData()
    DatasetInfosDict({part.config: part.info for part in built}).to_dataset_card_data(data)
    infos = data.to_dict()["dataset_info"]  # type: ignore[no-untyped-call]
    first = {"config_name": built[0].config}
    front["dataset_info"] = infos if isinstance(infos, list) else [first | infos]
    table = ["| config | rows | what it tests |", "| --- | ---: | --- |"]
    table += [f"| `{part.config}` | {part.rows:,} | {about[part.config]} |" for part in built]
    for name, lines in (("configs", table), ("provenance", _provenance(source, built))):
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, opened, rest = body.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            section = f"{begin} ... {end}"
            raise BadInput(f"README.md has no section {section}: restore it from the project")
        body = "\n".join((before + begin, *lines, end + after))
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n{body}"


def _provenance(source: str, built: list[Built]) -> list[str]:
    """The lines of the section that says what the data set was built from."""
    lines = [f"Built from {ORIGINS[source]}.", ""]
    for folder, entry in REPOSITORIES.items():
        parts = [part for part in built if CONFIGS[part.config]["folder"] == folder]
        if parts and all(part.is_pinned for part in parts):
            where = f"https://github.com/{entry['repository']}/tree/{entry['commit']}"
            lines.append(f"- [{entry['repository']}]({where}) (MIT) at commit `{entry['commit']}`")
        elif parts and source != "demo":
            lines.append(f"- {folder}: **not the bytes of the pinned commit**")
    # folded, because the digests are wider than the page
    lines += ["", "<details><summary>SHA-256 of every file</summary>", ""]
    lines += ["| input | SHA-256 |", "| --- | --- |"]
    for part in built:
        lines += [f"| `{file.repository}/{file.path}` | `{file.sha256}` |" for file in part.files]
    lines += ["", "| Parquet | SHA-256 |", "| --- | --- |"]
    lines += [f"| `{part.parquet}` | `{part.sha256}` |" for part in built]
    return [*lines, "", "</details>"]
