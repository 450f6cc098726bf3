"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmdiag.collector import uncollected
from lmdiag.hub.text import visible
from lmdiag.report.charts.declared import charts_of
from lmdiag.report.charts.kinds import Charted, Plot, plots
from lmdiag.report.checkpoints import are_checkpoints, trained, training_order
from lmdiag.report.comparing import compared, differences, ends, progress
from lmdiag.report.facts import facts
from lmdiag.report.headline import headline
from lmdiag.report.items import Item, items, sample
from lmdiag.report.labels import SETTINGS
from lmdiag.report.listing import Listed, listed, settings_of
from lmdiag.report.page import environment, frame
from lmdiag.report.records import Section
from lmdiag.report.tables import Source, model_label, sections, sources_of

if TYPE_CHECKING:
    from lmdiag.results import Run


def render(runs: Run | Sequence[Run], *, chosen: Sequence[str] = ()) -> str:
    """Returns the page of a run, or one that compares several.

    Args:
        runs: finished runs; several must be on the same data by the same protocol.
        chosen: ids of rows or contrasts that a task with too many items must list.

    Raises:
        BadInput: several runs that cannot be compared, or a data file of the package is missing.
    """
    several, sources = in_order(runs)
    close = ends(several)
    with uncollected():
        views = _views(several, sources, chosen)
        training = progress(sources)
        drawn = [*training, *(plot for view in views for plot in view.plots)]
        return environment().get_template("report.html.j2").render(
            title=_title(several),
            runs=[facts(source) for source in sources],
            close=[sources[i].label for i in close],
            headline=headline([sources[i] for i in close]),
            comparisons=compared(several, sources),
            progress=training,
            sections=views,
            **frame("report", charts=bool(drawn)),
        )  # fmt: skip


def charts(runs: Run | Sequence[Run]) -> list[Plot]:
    """Returns all charts of a run, or of several that are compared."""
    several, sources = in_order(runs)
    tasks = dict.fromkeys(task for run in several for task in run.results["tasks"])
    found = [
        plot for task in tasks for plot in plots(_charted(task, several, sources), charts_of(task))
    ]
    return [*progress(sources), *differences(compared(several, sources)), *found]


def in_order(runs: Run | Sequence[Run]) -> tuple[list[Run], list[Source]]:
    """Returns the runs, checkpoints in the order of training, and their sources."""
    given = list(runs) if isinstance(runs, Sequence) else [runs]
    several = [given[i] for i in training_order([run.results for run in given])]
    return several, sources_of([run.results for run in several])


def _title(runs: Sequence[Run]) -> str:
    results = [run.results for run in runs]
    names = [model_label(each) for each in results]
    if are_checkpoints(results):
        return f"{visible(trained(results[0]))}: {len(runs)} checkpoints"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} models"


# ---- diagnostics ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """A diagnostic as the page shows it.

    Attributes:
        section: its tables.
        plots: its charts.
        items: what the list holds.
        models: names of the runs in the list.
        total: how many unperturbed items there are, listed or not.
    """

    section: Section
    plots: list[Plot]
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
    def is_compared(self) -> bool:
        """Whether the items are contrasts."""
        return any(item.compared for item in self.items)

    @property
    def is_sample(self) -> bool:
        """Whether the list holds only some of the items."""
        return sum(item.setting == "none" for item in self.items) < self.total


def _views(runs: Sequence[Run], sources: Sequence[Source], chosen: Sequence[str]) -> list[View]:
    return [
        _view(section, _charted(section.task, runs, sources), chosen)
        for section in sections([source.results for source in sources])
    ]


def _charted(task: str, runs: Sequence[Run], sources: Sequence[Source]) -> Charted:
    close = [i for i in ends(runs) if task in runs[i].results["tasks"]]
    own = [runs[i] for i in close]
    return Charted(task, own, [sources[i] for i in close], [items(run, task) for run in own])


def _view(section: Section, charted: Charted, chosen: Sequence[str]) -> View:
    task, runs = section.task, charted.runs
    settings = runs[0].results["tasks"][task]
    shown = list(listed(_selected(charted.items, chosen), task=task))
    for setting in settings_of(settings)[1:] if len(runs) == 1 else ():
        others = _selected([items(runs[0], task, setting)], chosen)
        shown += listed(others, setting, task=task)
    # The headline has the same figures, but of the unperturbed setting only.
    repeats = len(runs) > 1 or len(settings) == 1
    return View(
        section=section,
        plots=[p for p in plots(charted, charts_of(task)) if not (repeats and p.kind == "figures")],
        items=shown,
        models=[source.label for source in charted.sources],
        total=len(charted.items[0]),
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
