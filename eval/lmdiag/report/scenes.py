"""Pictures that several diagnostics have, with the captions that say how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmdiag.report import figures, numbers
from lmdiag.report.diagnostic import Diagnostic, Picture
from lmdiag.report.figures import Series, Shuffled
from lmdiag.report.items import MOST, run_scores
from lmdiag.report.labels import SETTINGS, label, level_label
from lmdiag.report.layouts import Place

# ---- figures with intervals ----------------------------------------------------------------------


def measured(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Accuracy and sensitivity: of one run in every setting, of several as they are."""
    runs, names = diagnostic.runs, diagnostic.names
    if not names:
        return
    if len(runs) > 1:
        series = [
            Series(source.label, [diagnostic.cell(Place("none", name), i) for name in names])
            for i, source in enumerate(diagnostic.sources)
        ]
    else:
        settings = runs[0].results["tasks"][diagnostic.task]
        series = [
            Series(words, [diagnostic.cell(Place(setting, name)) for name in names])
            for setting, words in SETTINGS.items()
            if setting in settings
        ]
        people = [diagnostic.cell(Place("none", f"human_{name}")) for name in names]
        series += [Series("People (cloze)", people)] if any(people) else []
    svg = figures.dots(
        f"{diagnostic.task}-measures",
        "Accuracy and sensitivity",
        list(map(label, names)),
        series,
    )
    yield Picture(svg, "Accuracy and sensitivity, with 95% intervals.")


def broken_down(
    diagnostic: Diagnostic, by: str, levels: Sequence[str], prefix: str, caption: str
) -> Iterator[Picture]:
    """The levels of a break-down: all measures of one run, or the first one of several."""
    names = [name for name in diagnostic.names if name.startswith(prefix)]
    if len(diagnostic.runs) > 1:
        series = [
            Series(
                source.label, [diagnostic.cell(Place("none", names[0], by, x), i) for x in levels]
            )
            for i, source in enumerate(diagnostic.sources)
        ]
        caption = f"{caption} ({label(names[0])})"
    else:
        series = [
            Series(label(name), [diagnostic.cell(Place("none", name, by, x)) for x in levels])
            for name in names
        ]
    if any(cell for kind in series for cell in kind.cells):
        name = f"{diagnostic.task}-{by.replace('/', '-').replace('_', '-')}"
        words = [level_label(by, level).replace(", ", "\n") for level in levels]
        yield Picture(figures.dots(name, caption, words, series), f"{caption}, with 95% intervals.")


# ---- probabilities -------------------------------------------------------------------------------


def scattered(diagnostic: Diagnostic, part: str = "", words: str = "") -> Iterator[Picture]:
    """Good against bad completions, a picture per run.

    Args:
        diagnostic: the task.
        part: polarity of neg136, "" for all items.
        words: what to call that part.
    """
    for i, (source, found) in enumerate(zip(diagnostic.sources, diagnostic.items, strict=True)):
        shown = [i for i in found if i.levels.get("subset/polarity", "").endswith(part)]
        if not any(item.difference is not None for item in shown):
            continue
        name = f"{diagnostic.task}-pairs-{part}{i}"
        whose = f"{words}{source.label}: " if len(diagnostic.runs) > 1 else words
        if len(shown) > MOST:
            svg = figures.density(name, shown)
            yield Picture(
                svg,
                f"{whose}p(good) against p(bad) of {len(shown):,} contrasts; the darker, the more. "
                "Above the diagonal the model prefers the good one.",
            )
        else:
            threshold = diagnostic.runs[i].results["protocol"]["threshold"]
            svg = figures.good_and_bad(name, shown, threshold)
            yield Picture(
                svg,
                f"{whose}p(good) against p(bad), one mark a contrast. Above the line the model "
                f"prefers the good one, above the dashed curve by more than {threshold:g}. A mark "
                "leads to its item.",
            )


def against_cloze(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Model against people, a picture per run."""
    for i, (source, found) in enumerate(zip(diagnostic.sources, diagnostic.items, strict=True)):
        columns = diagnostic.runs[i].stimuli[diagnostic.task].columns()
        if "target_cloze" not in columns:
            return
        cloze = dict(zip(columns["id"], columns["target_cloze"], strict=True))
        correlations = [
            f"{words} {numbers.figure(cell.value, percent=False)}"
            for words, measure in (("Spearman", "spearman"), ("Pearson", "pearson"))
            if (cell := diagnostic.cell(Place("none", measure), i))
        ]
        whose = f"{source.label}: " if len(diagnostic.runs) > 1 else ""
        yield Picture(
            figures.cloze(f"{diagnostic.task}-cloze-{i}", found, cloze),
            f"{whose}Probability of the target by the model and by people. Of log p and cloze: "
            f"{', '.join(correlations)}.",
        )


# ---- shuffled runs -------------------------------------------------------------------------------


def shuffled(diagnostic: Diagnostic) -> Iterator[Picture]:
    """Accuracy over the shuffled runs, a picture per run of a model."""
    for i, run in enumerate(diagnostic.runs):
        settings = run.results["tasks"][diagnostic.task]
        rows = [
            row
            for name in diagnostic.names
            if name.startswith("accuracy@")
            for setting in ("shuf", "shuf_trunc")
            if setting in settings and (row := _shuffled(diagnostic, i, setting, name))
        ]
        if rows:
            times = len(rows[0].values)
            whose = f"{diagnostic.sources[i].label}: " if len(diagnostic.runs) > 1 else ""
            yield Picture(
                figures.shuffles(f"{diagnostic.task}-shuffled-{i}", rows),
                f"{whose}Accuracy in {times} shuffles of sentence 1: how often each value came up.",
            )


def _shuffled(diagnostic: Diagnostic, i: int, setting: str, name: str) -> Shuffled | None:
    run, cell = diagnostic.runs[i], diagnostic.cell(Place(setting, name), i)
    if cell is None or cell.value is None:
        return None
    numbers_of_runs = sorted(n for there, n in run.predictions[diagnostic.task] if there == setting)
    values = [
        float(run_scores(run, diagnostic.task, setting, n)[name].values.mean())
        for n in numbers_of_runs
    ]
    against = "trunc" if setting == "shuf_trunc" else "none"
    plain = diagnostic.cell(Place(against, name), i)
    words = f"{SETTINGS[setting]}, {label(name)}"
    return Shuffled(words, values, cell, plain.value if plain else None)
