"""Pages of many models and of many checkpoints: the table, the charts, and a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import NewPage
from runs import ONE_TASK, make_run

from lmdiag.report.charts.models import family, ranked_plots, trend_plots
from lmdiag.report.html import render
from lmdiag.report.tables import sources_of
from lmdiag.results import Place, Run, load_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = (
    "org/pythia-70m", "org/pythia-160m", "org/pythia-1.4b", "bert-base-uncased",
    "bert-large-uncased", "org/a-model-with-a-very-long-name-of-many-words-v2.1-instruct",
    *(f"org/other{i}" for i in range(14)),
)  # fmt: skip


@pytest.fixture(scope="module")
def many(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Twenty models: two families, and others."""
    folder = tmp_path_factory.mktemp("many")
    facts = [{"seed": i, "skill": i % 5, "n_parameters": 10**7 * (i + 1)} for i in range(20)]
    return [
        load_run(make_run(folder / str(one["seed"]), demo_dir, id=name, **one))
        for name, one in zip(NAMES, facts, strict=True)
    ]


def test_families_are_named_without_sizes() -> None:
    assert [family(name) for name in NAMES[:5]] == ["pythia"] * 3 + ["bert-uncased"] * 2
    assert family("meta-llama/Llama-3.2-1B") == "Llama-3.2"
    assert family("gpt2-xl") == family("gpt2") == "gpt2"
    assert family("org/large") == "large"


def test_figures_stand_against_the_number_of_parameters(many: list[Run]) -> None:
    sources = sources_of([run.results for run in many])
    plots = {plot.name: plot for plot in (*trend_plots(sources), *ranked_plots(sources))}
    rows = plots["role88-sizes"].spec["data"]["values"]
    sensitivity = [row for row in rows if row["figure"] == "sensitivity"]
    assert len(sensitivity) == 20
    for row, run in zip(sensitivity, many, strict=True):
        figure = run.results.figure(Place("role88", "none", "sensitivity"))
        assert figure is not None
        assert (row["at"], row["value"]) == (run.results.model.n_parameters, figure.value)
        assert (row["low"], row["high"], row["chance"]) == (figure.ci_low, figure.ci_high, 0.5)
    assert [row["family"] for row in sensitivity[:6]] == [
        *["pythia"] * 3, *["bert-uncased"] * 2, "other models",
    ]  # fmt: skip
    ranked = plots["role88-models-sensitivity"].spec["data"]["values"]
    values = [row["value"] for row in ranked]
    assert values == sorted(values, reverse=True)


@pytest.fixture(scope="module")
def many_page(many: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(many))
    return path


def opened(page: Page, path: Path) -> Page:
    assert path.stat().st_size < 1.5e6
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    shown = page.locator("figure:visible")
    assert shown.count() == page.locator(".plot svg:visible").count() > 3
    return page


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (800, "dark"), (420, "light")])
def test_the_page_of_twenty_models(
    new_page: NewPage, many_page: Path, width: int, scheme: str
) -> None:
    new = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened(new, many_page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("figure[data-name^=role88-pairs]").count() == 2  # of the first models
    region = page.get_by_role("region", name="Models")
    table = region.locator("table")
    # what lies outside the box has a sign, which goes at its end
    is_cut = region.evaluate("box => box.scrollWidth > box.clientWidth + 2")
    assert is_cut == region.evaluate("box => box.classList.contains('more')")
    region.evaluate("box => { box.scrollLeft = 1e4; }")
    page.wait_for_function("box => !box.classList.contains('more')", arg=region.element_handle())
    # a heading sorts, and chooses the figure of the chart
    table.get_by_role("button", name="sensitivity@0.01").first.click()
    column = [
        cell.split("\n")[0] for cell in table.locator("tbody td:nth-child(6)").all_inner_texts()
    ]
    values = [float(text.rstrip("↑↓†")) for text in column]
    assert values == sorted(values, reverse=True)
    figure = page.locator("#section-headline figure:visible")
    figure.locator("svg").wait_for()
    assert figure.get_attribute("data-name") == "cprag102-models-sensitivity-0-01"
    first = table.locator("tbody th").first.inner_text()
    assert first in figure.locator("svg text").all_text_contents()
    # intervals on demand
    interval = table.locator("tbody td small").first
    assert not interval.is_visible()
    page.get_by_label("intervals", exact=True).check()
    assert interval.is_visible()
    # no name is broken within a word
    for name in table.locator("tbody th").all():
        height = name.evaluate("cell => cell.getClientRects()[0].height")
        assert height < 130
    # the first model against each other one
    differences = page.get_by_role("region", name="Differences").locator("tbody tr")
    assert differences.count() == 19


@pytest.mark.slow
def test_the_page_of_thirty_checkpoints(page: Page, demo_dir: Path, tmp_path: Path) -> None:
    runs = []
    for i in range(30):
        step = {"training_step": 2**i // 2, "revision": f"step{2**i // 2}", "commit": f"{i:040}"}
        facts = {"id": "org/x", "skill": i / 6, "seed": i, **step}
        runs.append(load_run(make_run(tmp_path / f"{i}", demo_dir, ONE_TASK, **facts)))
    path = tmp_path / "report.html"
    path.write_text(render(runs[::-1]))
    opened(page, path)
    steps = page.locator("#section-headline .models tbody th").all_inner_texts()
    assert (steps[:3], len(steps)) == (["step 0", "step 1", "step 2"], 30)
    titles = page.locator("figure[data-name=role88-steps] svg text").all_text_contents()
    assert {"accuracy@5", "sensitivity", "training step"} <= set(titles)
