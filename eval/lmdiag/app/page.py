"""The page: its widgets, in the order in which a person meets them, and what they call.

No event goes through gradio's queue. The queue has one stream of answers for each window, and drops
events that arrive while this stream is being closed. So a run is a thread, and a timer asks how far
it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read while gradio is imported

import gradio as gr

from lmdiag.app import calls, menus, shown, visits
from lmdiag.app.menus import menu_of
from lmdiag.app.visits import Job, Visit
from lmdiag.files.reading import read_text, resource_path
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.api.table_check import CheckedColumn, Remedy, TableCheck

MOST_BYTES = 20 * 2**20
"""Size of an uploaded file."""

_MOST_COLUMNS = 60
_SECONDS = 0.5
"""Between two looks at a run."""

_QUIET: dict[str, Any] = {
    "queue": False, "show_progress": "hidden", "api_visibility": "private",
}  # fmt: skip
_LAST: dict[str, Any] = {**_QUIET, "trigger_mode": "always_last"}
"""How events are sent; of a change of what is being read, the last one is read, too."""

_OWN, _PUBLISHED = "own", "published"
_KINDS = {_OWN: "A table of my own", _PUBLISHED: "Published diagnostics"}

Updates = dict[Any, Any]


class Page:
    """The page, and what its widgets call; each browser window is a visit of its own.

    Args:
        file: table that the page opens with; None for none.
        folder: of the files of all visits.
    """

    def __init__(self, file: Path | None, folder: Path) -> None:
        self.file = file
        self.folder = folder
        self.visits: dict[str, Visit] = {}
        with gr.Blocks(title="lmdiag", analytics_enabled=False, delete_cache=(3600, 86400)) as page:
            self._draw()
            self._connect(page)
        self.blocks = page

    def visit(self, request: gr.Request) -> Visit:
        """Returns the visit of a request; a new window has a new one."""
        name = str(request.session_hash)
        if name not in self.visits:
            self.visits[name] = Visit(Path(tempfile.mkdtemp(dir=self.folder)))
        return self.visits[name]

    def leave(self, request: gr.Request) -> None:
        """Stops the run of a window that was closed, and removes its files."""
        if visit := self.visits.pop(str(request.session_hash), None):
            visit.leave()

    # ---- widgets ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Makes the widgets of the page from top to bottom."""
        gr.HTML(shown.INTRODUCTION)
        self.kind = gr.Radio(menu_of(_KINDS), value=_OWN, label="What do you have?", elem_id="kind")
        with gr.Column(elem_classes="step") as self.own:
            self._draw_table()
        with gr.Column(elem_classes="step", visible=False) as self.published:
            gr.HTML(shown.step(1, "Published diagnostics"))
            self.tasks = gr.CheckboxGroup(
                menu_of(menus.PUBLISHED_TASKS),
                value=[*menus.PUBLISHED_TASKS],
                label="Diagnostics",
            )
            self.items = gr.Radio(menu_of(menus.ITEM_SETS), value="lmdiag", label="Items")
        with gr.Column(visible=False) as self.second:
            with gr.Column(elem_classes="step") as self.asked:
                self._draw_models()
            with gr.Row(elem_classes="buttons"):
                self.run = gr.Button("Run", variant="primary", elem_id="run")
                self.stop = gr.Button("Stop", visible=False, elem_id="stop")
            self.progress = gr.HTML(visible=False, elem_id="progress")
        self.timer = gr.Timer(_SECONDS, active=False)
        with gr.Column(elem_classes="step", visible=False, elem_id="result") as self.result:
            self._draw_result()

    def _draw_table(self) -> None:
        """Makes the widgets of step 1 for a table of one's own."""
        gr.HTML(shown.step(1, "Table", shown.ABOUT_TABLES))
        self.upload = gr.File(
            label="Table", show_label=False, file_types=[*menus.UPLOADED_SUFFIXES], height=130,
            elem_id="upload",
        )  # fmt: skip
        self.example = gr.Radio(
            [*menus.EXAMPLE_TABLES], value=None, label="Or try an example", elem_id="example"
        )
        # a change of this number draws the table again; changes of a state need the queue
        self.version = gr.Number(0, visible="hidden", label="version", elem_id="version")
        draw = gr.render([self.version], [self.version.change], queue=False, show_progress="hidden")
        draw(self._show_table)
        self.function = gr.Radio(
            menu_of(menus.PURPOSES), value="run", label="What to do with the table",
            visible=False, elem_id="function",
        )  # fmt: skip

    def _draw_models(self) -> None:
        """Makes the widgets of step 2: models and how they are asked."""
        gr.HTML(shown.step(2, "Models", shown.ABOUT_MODELS))
        self.models = gr.Dropdown(
            [*menus.LISTED_MODELS], value=["demo:causal"], multiselect=True,
            allow_custom_value=True, elem_id="models",
            label="Choose models, or type names of the Hugging Face Hub",
        )  # fmt: skip
        self.region = gr.Dropdown(
            menu_of(menus.WHOLE_OR_EACH), value="", label="Region whose surprisal is analysed",
            visible=False, elem_id="region", filterable=False,
        )  # fmt: skip
        with gr.Accordion("More options", open=False):
            self.unit = gr.Radio(menu_of(menus.UNIT_NAMES), value="", label="Unit of probabilities")
            self.layers = gr.Textbox(
                label="Layers after which models answer: all, or numbers", max_lines=1,
                max_length=200,
            )  # fmt: skip

    def _draw_result(self) -> None:
        """Makes the widgets of step 3: downloads, the report and the command."""
        gr.HTML(shown.step(3, "Result"))
        with gr.Row(elem_classes="buttons"):
            self.downloads = {
                name: gr.DownloadButton(f"Download {name}", visible=False, size="sm")
                for name in menus.DOWNLOADS
            }
        self.report = gr.HTML(elem_id="report")
        with gr.Row():
            self.command = gr.Code(
                label="The same on a command line", language="shell", interactive=False,
                wrap_lines=True, lines=1,
            )  # fmt: skip
            self.python = gr.Code(
                label="The same in Python", language="python", interactive=False, wrap_lines=True
            )

    def _connect(self, page: gr.Blocks) -> None:
        """Says which method answers each event of a widget, with its inputs and outputs."""
        self.read = [
            self.version, self.function, self.second, self.asked, self.region, self.result,
            self.progress,
        ]  # fmt: skip
        gr.on(
            [self.upload.upload, self.upload.clear],
            self.take, [self.upload], [*self.read, self.example], **_LAST,
        )  # fmt: skip
        self.example.input(self.take_example, [self.example], [*self.read, self.upload], **_LAST)
        page.load(self.begin, None, self.read, **_QUIET)
        page.unload(self.leave)
        gr.on(
            [self.kind.input, self.function.input], self.turn, [self.kind, self.function],
            [self.own, self.published, self.second, self.asked], **_LAST,
        )  # fmt: skip
        running = [self.timer, self.run, self.stop, self.progress, self.result]
        settings = [
            self.models,
            self.region,
            self.unit,
            self.layers,
            self.tasks,
            self.items,
            self.version,
        ]
        self.run.click(self.start, [self.kind, self.function, *settings], running, **_QUIET)
        self.stop.click(self.end, None, [self.progress], **_QUIET)
        results = [self.report, self.command, self.python, *self.downloads.values()]
        self.timer.tick(self.look, None, [*running, self.version, *results], **_QUIET)

    # ---- reading a table -------------------------------------------------------------------------

    def take(self, path: str | None, request: gr.Request) -> Updates:
        """Reads an uploaded file, or forgets the one that was removed."""
        visit = self.visit(request)
        visit.take(visits.uploaded_file(path, visit.folder) if path else None)
        return self._state(visit) | {self.example: None}

    def take_example(self, name: str, request: gr.Request) -> Updates:
        """Reads an example, and empties the place of the uploaded file."""
        visit = self.visit(request)
        visit.take(visits.example_file(name, visit.folder))
        return self._state(visit) | {self.upload: None}

    def begin(self, request: gr.Request) -> Updates:
        """Reads the table that the page opens with."""
        visit = self.visit(request)
        if self.file:
            visit.take(Path(copyfile(self.file, visit.folder / self.file.name)))
        return self._state(visit)

    def turn(self, kind: str, function: str, request: gr.Request) -> Updates:
        """Shows what belongs to own tables or published diagnostics, and to a function."""
        is_own = kind == _OWN
        self.visit(request).function = function
        return {
            self.own: gr.update(visible=is_own),
            self.published: gr.update(visible=not is_own),
            self.second: gr.update(visible=not is_own or _is_read(self.visit(request))),
            self.asked: gr.update(visible=not is_own or function != "analyse"),
        }

    def _state(self, visit: Visit) -> Updates:
        """What follows from how a table is read, for the widgets `read`."""
        found = visit.found
        name = visit.function or "run"
        regions = shown.region_names(found) if found else {}
        return {
            self.version: visit.version,
            self.function: gr.update(
                visible=_is_read(visit),
                value=name,
                info="" if _has_words(visit) else menus.FIT_NEEDS,
            ),
            self.second: gr.update(visible=_is_read(visit)),
            self.asked: gr.update(visible=name != "analyse"),
            self.region: gr.update(
                visible=bool(regions),
                choices=menu_of(menus.WHOLE_OR_EACH | regions),
                value="",
            ),
            self.result: gr.update(visible=False),
            self.progress: gr.update(visible=False),
        }

    def _show_table(self, _: float, request: gr.Request) -> None:
        """Draws how a table is read: its rows, a menu for each column, proposals, problems."""
        visit = self.visit(request)
        with visit.lock:
            found = visit.found
            if found is None:
                return
            gr.HTML(visit.plain(shown.table(found)), key="table")
            self._show_remedies(found.proposed())
            for line in shown.general_problems(found):
                gr.HTML(visit.plain(shown.problem(line)))
                self._show_remedies(found.remedies(line))
            for columns in visit.groups()[:_MOST_COLUMNS]:
                self._show_column(visit, found, columns)

    def _show_column(self, visit: Visit, found: TableCheck, columns: list[CheckedColumn]) -> None:
        """Draws the line of a column, or of regions that follow each other."""
        first = columns[0]
        names = [column.name for column in columns]
        found_use = first.use if first.use in menus.FOUND_USES else "not used"
        with gr.Row(elem_classes="use", key=f"row {first.name}"):
            gr.HTML(shown.column(columns), key=f"name {first.name}")
            menu = gr.Dropdown(
                menu_of({**menus.USES, found_use: found_use}), value=first.use,
                label=f"use of {first.name}", show_label=False, key=f"menu {first.name}",
                preserved_by_key=None, elem_classes="menu", interactive=True, filterable=False,
            )  # fmt: skip
            with gr.Column():
                gr.HTML(visit.plain(shown.column_note(columns)), key=f"note {first.name}")
                for line in dict.fromkeys(line for column in columns for line in column.problems):
                    self._show_remedies(found.remedies(line))
        menu.input(self._chooser(names), [menu], self.read, **_LAST)

    def _show_remedies(self, remedies: list[Remedy]) -> None:
        """Draws a button for each of some other ways to read the table."""
        for remedy in remedies:
            button = gr.Button(remedy.text, size="sm", elem_classes="remedy")
            button.click(self._reader(remedy.options), None, self.read, **_QUIET)

    def _reader(self, options: Mapping[str, Any]) -> Callable[..., Updates]:
        """A handler that reads the table with other options."""

        def handle(request: gr.Request) -> Updates:
            visit = self.visit(request)
            visit.check_again(options)
            return self._state(visit)

        return handle

    def _chooser(self, names: list[str]) -> Callable[..., Updates]:
        """A handler that reads the table with another use of some columns."""

        def handle(use: str, request: gr.Request) -> Updates:
            visit = self.visit(request)
            is_read_again = visit.choose(names, use)
            return self._state(visit) if is_read_again else {self.version: visit.version}

        return handle

    # ---- running ---------------------------------------------------------------------------------

    def start(
        self, kind: str, function: str, models: list[str], region: str, unit: str, layers: str,
        tasks: list[str], items: str, version: float, request: gr.Request,
    ) -> Updates:  # fmt: skip
        """Starts the run that the page describes, unless one is going on."""
        visit = self.visit(request)
        settings = {"region": region, "unit": unit, "layers": layers}
        try:
            with visit.lock:  # a table that is being read is waited for
                if kind == _PUBLISHED:
                    call = calls.published_call(tasks, items, models, settings)
                elif visit.found is None or visit.found.error:
                    raise BadInput("give a table that can be read, or choose an example")
                else:
                    if version != visit.version:  # the page does not show this reading yet
                        function = visit.function
                        settings["region"] = ""
                    settings["response"] = visit.response
                    call = calls.call_of(visit.found, function, models, settings)
                job = visit.start(call)
        except BadInput as problem:
            return self._over(shown.problem(str(problem)))
        return self._going_on(job)

    def end(self, request: gr.Request) -> Updates:
        """Stops a run."""
        self.visit(request).stop()
        return {self.progress: shown.progress("Stopping", None)}

    def look(self, request: gr.Request) -> Updates:
        """Shows how far a run is, and its result as soon as it is there."""
        visit = self.visit(request)
        job = visit.job
        if job is None:
            return self._over("")
        if job.is_alive():
            return self._going_on(job)
        if job.problem:
            visit.add_problem(job.problem)
            problem = visit.plain(shown.problem(job.problem))
            updates = {**self._over(problem), self.version: visit.version}
        else:
            updates = self._over("" if job.files else shown.progress(job.text, None))
        return updates | self._results(job)

    def _going_on(self, job: Job) -> Updates:
        text = "Stopping" if job.stopped.is_set() else job.text
        return {
            self.timer: gr.Timer(active=True),
            self.run: gr.update(interactive=False),
            self.stop: gr.update(visible=not job.files),
            self.progress: gr.update(visible=True, value=shown.progress(text, job.share)),
            self.result: gr.update(visible=False),
        }

    def _over(self, html: str) -> Updates:
        return {
            self.timer: gr.Timer(active=False),
            self.run: gr.update(interactive=True),
            self.stop: gr.update(visible=False),
            self.progress: gr.update(visible=bool(html), value=html),
        }

    def _results(self, job: Job) -> Updates:
        """The result with its files; the page, which may be large, is sent once."""
        files = dict(job.files)
        if not files:
            return {}
        updates: Updates = {self.result: gr.update(visible=True)}
        for name, button in self.downloads.items():
            updates[button] = gr.update(visible=name in files, value=files.get(name))
        if not job.is_shown:
            job.is_shown = True
            updates[self.report] = shown.framed(read_text(files["page"]))
            updates[self.command] = job.call.command()
            updates[self.python] = job.call.python()
        return updates


def _is_read(visit: Visit) -> bool:
    """Whether a visit has a table that can be read."""
    return visit.found is not None and not visit.found.error


def _has_words(visit: Visit) -> bool:
    """Whether a column of the table has words, which `fit` needs."""
    return any(column.use == "word" for column in visit.columns())


def serve(
    file: Path | None, host: str, port: int | None, *, opens: bool,
    on_start: Callable[[str], None],
) -> None:  # fmt: skip
    """Serves the page until the process ends; all files of its visits are removed then.

    Args:
        file: table that the page opens with; None for none.
        host: see `lmdiag app --help`, also for the port.
        port: None for the first free one.
        opens: whether the browser is opened.
        on_start: is called with the address, as soon as the page can be opened.
    """
    theme = gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="lmdiag-app-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder  # gradio serves files of this folder without copies
        page = Page(file, Path(folder))
        page.blocks.launch(
            server_name=host, server_port=port, inbrowser=opens, share=False, quiet=True,
            theme=theme, css=read_text(resource_path("cards", "app.css")), footer_links=[],
            js=read_text(resource_path("cards", "app.js")), run_history=False,
            max_file_size=MOST_BYTES, ssr_mode=False, show_error=False,
            _frontend=False,  # no trial of the address, which fails on busy machines
            prevent_thread_lock=True,
        )  # fmt: skip
        on_start(page.blocks.local_url)
        page.blocks.block_thread()
