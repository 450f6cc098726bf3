"""The data set as a `datasets` builder: one config for each diagnostic, the single split `test`.

From Python, in this folder's parent:

    from loading.builder import Lmdiag
    builder = Lmdiag(config_name="neg136", source="demo")
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets

from .columns import DESCRIPTIONS, PARSERS, features
from .sources import open_source

VERSION = datasets.Version("1.0.0")

CITATION = """\
@article{ettinger-2020-bert,
  title = {What {BERT} Is Not: Lessons from a New Suite of Psycholinguistic Diagnostics for
           Language Models},
  author = {Ettinger, Allyson},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {8}, pages = {34--48}, year = {2020}, doi = {10.1162/tacl_a_00298}
}
@inproceedings{newman-etal-2021-refining,
  title = {Refining Targeted Syntactic Evaluation of Language Models},
  author = {Newman, Benjamin and Ang, Kai-Siang and Gong, Julia and Hewitt, John},
  booktitle = {Proceedings of the 2021 Conference of the North American Chapter of the Association
               for Computational Linguistics: Human Language Technologies},
  year = {2021}, doi = {10.18653/v1/2021.naacl-main.290}
}
"""


@dataclass
class LmdiagConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """A diagnostic and where its source files come from.

    Attributes:
        source: upstream, demo, or a directory with the upstream tree.
    """

    source: str = "upstream"

    def create_config_id(
        self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None
    ) -> str:
        """A key of the cache that depends on the bytes of the source files."""
        return f"{self.name}-{open_source(self.source).digest(self.name)[:16]}"


class Lmdiag(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Psycholinguistic diagnostics for language models."""

    VERSION = VERSION
    BUILDER_CONFIG_CLASS = LmdiagConfig
    BUILDER_CONFIGS: ClassVar[list[LmdiagConfig]] = [
        LmdiagConfig(name=name, version=VERSION, description=description)
        for name, description in DESCRIPTIONS.items()
    ]
    DEFAULT_CONFIG_NAME = "cprag102"
    DEFAULT_WRITER_BATCH_SIZE = 10_000
    """Rows in memory at a time, and in a row group of the Parquet."""

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.config.description,
            features=features(self.config.name),
            homepage="https://github.com/aetting/lm-diagnostics",
            license="mit",
            citation=CITATION,
        )

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        files = open_source(self.config.source).files(self.config.name)
        paths = [file.location for file in files]
        return [datasets.SplitGenerator(datasets.Split.TEST, gen_kwargs={"paths": paths})]

    def _generate_examples(self, paths: list[Path]) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from enumerate(PARSERS[self.config.name](*paths))
