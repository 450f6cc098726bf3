"""What the page shows of runs and diagnostics, as plain data for its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.report import numbers
from lmdiag.report.comparing import ends
from lmdiag.report.diagnostic import Diagnostic, Picture
from lmdiag.report.items import items, sample
from lmdiag.report.labels import SETTINGS, short_commit
from lmdiag.report.listing import Listed, listed, settings_of
from lmdiag.report.pictures import pictures
from lmdiag.report.records import Section
from lmdiag.report.tables import Source, sections

if TYPE_CHECKING:
    from lmdiag.report.items import Item
    from lmdiag.results import Run


def about(source: Source) -> dict[str, Any]:
    """Returns who was asked and how, as a page says it."""
    results = source.results
    model, data, protocol = results["model"], results["data"], results["protocol"]
    return {
        "name": source.label,
        "lead": " · ".join(
            [
                model["kind"],
                f"{numbers.count(model['n_parameters'])} parameters",
                model["dtype"],
                *([model["quantization"]] if model.get("quantization") else []),
                f"commit {short_commit(model['commit'])}",
            ]
        ),
        "signature": results["signature"],
        "facts": {
            "Model": f"{model['id']} ({model['architecture']}, {model['tokenizer']})",
            "Commit": model["commit"],
            "Data": f"{data['source']}{_at(data['revision'])}, fingerprint {data['fingerprint']}",
            "Rows": ", ".join(f"{task} {each['n']}" for task, each in data["tasks"].items())
            + (f"; a sample, --limit {protocol['limit']}" if protocol.get("limit") else ""),
            "Asked": UNITS[protocol["unit"]] + _bos(model),
            "Accuracy": f"among the first {' and '.join(map(str, protocol['k']))}; "
            f"words compared {MATCH[protocol['match']]}",
            "Sensitivity": f"threshold {protocol['threshold']:g} on differences of probabilities",
            "Perturbations": _perturbations(protocol),
            "Cost": f"{results['n_contexts']} contexts in {results['seconds'].get('ask', 0):.0f} s "
            f"on {results['device']['name']}, {results['device']['processes']} process(es)",
            "Versions": ", ".join(f"{name} {v}" for name, v in results["versions"].items()),
            "Finished": results["finished"],
        },
    }


UNITS = {
    "token": "the probability of the word over the whole vocabulary, piece by piece",
    "word": "the probability of the complete word, with the correction at its boundary",
}
MATCH = {"case-blind": "case-blind (the tokenizer is uncased)", "exact": "exactly"}


def _at(revision: str | None) -> str:
    return f" at {revision[:12]}" if revision else ""


def _bos(model: Mapping[str, Any]) -> str:
    if model["kind"] != "causal":
        return ""
    return (
        "; a beginning-of-sequence token first"
        if model["bos"]
        else "; no beginning-of-sequence token"
    )


def _perturbations(protocol: Mapping[str, Any]) -> str:
    names = [SETTINGS.get(name, name) for name in protocol["perturb"]]
    if not names:
        return "none"
    shuffles = f", {protocol['shuffles']} shuffles, seed {protocol['seed']}"
    shuffled = any(name.startswith("shuf") for name in protocol["perturb"])
    return ", ".join(names) + (shuffles if shuffled else "")


@dataclass(frozen=True)
class View:
    """A diagnostic as the page shows it.

    Attributes:
        section: its tables.
        pictures: drawn from the runs that have it.
        items: what the list holds.
        models: names of the runs in the list.
        total: how many unperturbed items there are, listed or not.
    """

    section: Section
    pictures: list[Picture]
    items: list[Listed]
    models: list[str]
    total: int

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the listed items, and their names."""
        return {item.setting: SETTINGS.get(item.setting, item.setting) for item in self.items}

    @property
    def levels(self) -> dict[str, str]:
        """The levels that items can be chosen by, and their names."""
        pairs = {pair for item in self.items for pair in zip(item.levels, item.tags, strict=True)}
        return dict(sorted(pairs))

    @property
    def has_expected(self) -> bool:
        """Whether any item has an expected word."""
        return any(item.has_expected for item in self.items)

    @property
    def compared(self) -> bool:
        """Whether the items are contrasts."""
        return any(item.compared for item in self.items)

    @property
    def is_sample(self) -> bool:
        """Whether the list holds only some of the items."""
        return sum(item.setting == "none" for item in self.items) < self.total


def views(runs: Sequence[Run], sources: Sequence[Source], chosen: Sequence[str]) -> list[View]:
    """Returns all diagnostics that any of the runs has.

    Args:
        runs: finished runs.
        sources: the same, parallel.
        chosen: ids of rows or contrasts to list in any case.
    """
    return [
        _view(section, runs, sources, chosen)
        for section in sections([source.results for source in sources])
    ]


def _view(
    section: Section, runs: Sequence[Run], sources: Sequence[Source], chosen: Sequence[str]
) -> View:
    task = section.task
    close = [i for i in ends(runs) if task in runs[i].results["tasks"]]
    own = [runs[i] for i in close]
    found = [items(run, task) for run in own]
    diagnostic = Diagnostic(task, own, [sources[i] for i in close], found)
    shown = list(listed(_selected(found, chosen), task=task))
    if len(own) == 1:
        for setting in settings_of(own[0].results["tasks"][task])[1:]:
            others = _selected([items(own[0], task, setting)], chosen)
            shown += listed(others, setting, task=task)
    return View(
        section=section,
        pictures=pictures(diagnostic),
        items=shown,
        models=[source.label for source in diagnostic.sources],
        total=len(found[0]),
    )


def _selected(found: Sequence[Sequence[Item]], chosen: Sequence[str]) -> list[list[Item]]:
    """The same items of each run: all of them, or a sample and the chosen ones."""
    wanted = {item.id for item in sample(found[0])} | set(chosen)
    places = [
        i
        for i, item in enumerate(found[0])
        if item.id in wanted or wanted.intersection(choice.id for choice in item.choices)
    ]
    return [[of_run[i] for i in places] for of_run in found]
