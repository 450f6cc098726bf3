"""The page: its widgets, in the order in which a person meets them, and what they call."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read while gradio is imported

import gradio as gr

from lmdiag.app import jobs, shown
from lmdiag.app.visits import JobThread, Stopped, Visit
from lmdiag.files.reading import read_text, resource_path
from lmdiag.types import BadInput

MOST_BYTES = 20_000_000
"""Size of an uploaded file."""

_MOST_COLUMNS = 60
_AT_ONCE = 2  # runs of all visits; further ones wait

_OWN, _PUBLISHED = "own", "published"
_KINDS = [("A table of my own", _OWN), ("Published diagnostics", _PUBLISHED)]
_TASKS = [("CPRAG-102", "cprag102"), ("ROLE-88", "role88"), ("NEG-136", "neg136")]
_ITEMS = [("published items (downloaded on first use)", "lmdiag"), ("small demo items", "demo")]
_UNITS = [("default", ""), ("token", "token"), ("whole word", "word")]
_WHOLE = ("whole sentence", "")

_UNUSED = {"not used", "covariate", "break-down", "list", "reader", "predictor", "control"}
"""Uses that follow from the values, and that nobody chooses."""

Updates = dict[Any, Any]


class Page:
    """The page, and what its widgets call; each browser window is a visit of its own.

    Args:
        file: table that the page opens with; None for none.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.visits: dict[str, Visit] = {}
        with gr.Blocks(title="lmdiag", analytics_enabled=False, delete_cache=(3600, 3600)) as page:
            self._draw()
            self._connect(page)
        self.blocks = page

    def visit(self, request: gr.Request) -> Visit:
        """Returns the visit of a request; a new window has a new one."""
        name = str(request.session_hash)
        if name not in self.visits:
            self.visits[name] = Visit(Path(tempfile.mkdtemp(prefix="lmdiag-app-")))
        return self.visits[name]

    def leave(self, request: gr.Request) -> None:
        """Stops the run of a window that was closed, and removes its files."""
        visit = self.visits.pop(str(request.session_hash), None)
        if visit:
            visit.stopped.set()
            with visit.running:
                rmtree(visit.folder, ignore_errors=True)

    # ---- widgets ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        gr.HTML(shown.INTRODUCTION)
        self.kind = gr.Radio(_KINDS, value=_OWN, label="What do you have?", elem_id="kind")
        self.version = gr.State(0)  # of how the table is read
        with gr.Column(elem_classes="step") as self.own:
            gr.HTML(shown.step(1, "Table"))
            with gr.Row():
                self.upload = gr.File(
                    label="Drop a table here: csv, Excel, JSON lines or Parquet",
                    file_types=[*jobs.UPLOADED_SUFFIXES], height=150, elem_id="upload", scale=2,
                    min_width=300,
                )  # fmt: skip
                self.example = gr.Dropdown(
                    [*jobs.EXAMPLE_TABLES], value=None, label="Or try an example", elem_id="example"
                )
            gr.render(
                inputs=[self.version], triggers=[self.version.change], show_progress="hidden"
            )(self._show_table)
            self.function = gr.Radio(
                [(text, name) for name, text in jobs.PURPOSES.items()], value="run",
                label="What to do with the table", visible=False, elem_id="function",
            )  # fmt: skip
        with gr.Column(elem_classes="step", visible=False) as self.published:
            gr.HTML(shown.step(1, "Published diagnostics"))
            self.tasks = gr.CheckboxGroup(
                _TASKS, value=[name for _, name in _TASKS], label="Diagnostics"
            )
            self.items = gr.Radio(_ITEMS, value="lmdiag", label="Items", elem_id="items")
        with gr.Column(elem_classes="step") as self.asked:
            gr.HTML(shown.step(2, "Models"))
            self.models = gr.Dropdown(
                [*jobs.LISTED_MODELS], value=["demo:causal"], multiselect=True,
                allow_custom_value=True, elem_id="models",
                label="Choose models, or type names of the Hugging Face Hub",
            )  # fmt: skip
            self.region = gr.Dropdown(
                [_WHOLE], value="", label="Region whose surprisal is analysed", visible=False,
                elem_id="region",
            )  # fmt: skip
            with gr.Accordion("More options", open=False):
                self.unit = gr.Radio(_UNITS, value="", label="Unit of probabilities")
                self.layers = gr.Textbox(
                    label="Layers after which models answer: all, or numbers", max_lines=1,
                    max_length=200,
                )  # fmt: skip
        with gr.Row(elem_classes="buttons"):
            self.run = gr.Button("Run", variant="primary", elem_id="run")
            self.stop = gr.Button("Stop", visible=False, elem_id="stop")
        self.progress = gr.HTML(visible=False, elem_id="progress")
        with gr.Column(elem_classes="step", visible=False) as self.result:
            gr.HTML(shown.step(3, "Result"))
            with gr.Row(elem_classes="buttons"):
                self.downloads = {
                    name: gr.DownloadButton(f"Download {name}", visible=False, size="sm")
                    for name in jobs.DOWNLOADS
                }
            self.report = gr.HTML(elem_id="report")
            with gr.Row():
                self.command = gr.Code(
                    label="The same on a command line", language="shell", interactive=False,
                    wrap_lines=True, lines=1,
                )  # fmt: skip
                self.python = gr.Code(
                    label="The same in Python", language="python", interactive=False,
                    wrap_lines=True,
                )  # fmt: skip

    def _connect(self, page: gr.Blocks) -> None:
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.read = [
            self.version, self.function, self.asked, self.region, self.result, self.progress
        ]  # fmt: skip
        self.upload.upload(
            self.take, [self.upload, self.version], [*self.read, self.example], **quiet
        )
        self.example.input(
            self.take_example, [self.example, self.version], [*self.read, self.upload], **quiet
        )
        page.load(self.begin, [self.version], self.read, **quiet)
        page.unload(self.leave)
        self.kind.input(
            lambda kind: [gr.update(visible=kind == _OWN), gr.update(visible=kind == _PUBLISHED)],
            [self.kind], [self.own, self.published], **quiet,
        )  # fmt: skip
        gr.on(
            [self.kind.input, self.function.input],
            lambda kind, name: gr.update(visible=kind == _PUBLISHED or name != "analyse"),
            [self.kind, self.function], [self.asked], **quiet,
        )  # fmt: skip
        settings = [self.kind, self.function, self.models, self.region, self.unit, self.layers]
        self.run.click(
            self.start, [*settings, self.tasks, self.items, self.version],
            [
                self.version, self.run, self.stop, self.progress, self.result, self.report,
                self.command, self.python, *self.downloads.values(),
            ],
            concurrency_limit=_AT_ONCE, **quiet,
        )  # fmt: skip
        self.stop.click(self.end, None, None, queue=False, **quiet)

    # ---- reading a table -------------------------------------------------------------------------

    def take(self, path: str | None, count: int, request: gr.Request) -> list[Any]:
        """Reads an uploaded file, and empties the menu of examples."""
        visit = self.visit(request)
        visit.found = None
        if path:
            visit.check(jobs.uploaded_file(path, visit.folder))
        return [*self._state(visit, count), None]

    def take_example(self, name: str | None, count: int, request: gr.Request) -> list[Any]:
        """Reads an example, and empties the place of the uploaded file."""
        visit = self.visit(request)
        if name:
            visit.check(jobs.example_file(name, visit.folder))
        return [*self._state(visit, count), None]

    def begin(self, count: int, request: gr.Request) -> list[Any]:
        """Reads the table that the page opens with."""
        visit = self.visit(request)
        if self.file:
            visit.check(jobs.copied_file(self.file, visit.folder))
        return self._state(visit, count)

    def _state(self, visit: Visit, count: int) -> list[Any]:
        """What follows from how a table is read, for the widgets `read`."""
        found = visit.found
        name = jobs.function_of(found) if found else "run"
        regions = [(text, text) for text in jobs.regions_of(found)] if found else []
        return [
            count + 1,
            gr.update(visible=bool(found and not found.error), value=name),
            gr.update(visible=name != "analyse"),
            gr.update(visible=bool(regions), choices=[_WHOLE, *regions], value=""),
            gr.update(visible=False),
            gr.update(visible=False),
        ]

    def _show_table(self, _: int, request: gr.Request) -> None:
        """Draws how a table is read: its rows, a menu for each column, proposals, problems."""
        visit = self.visit(request)
        found = visit.found
        if found is None:
            return
        gr.HTML(visit.plain(shown.table(found)), key="table")
        for text, options in jobs.remedies(found):
            button = gr.Button(text, size="sm", elem_classes="remedy")
            button.click(self._reader(options), [self.version], self.read)
        for names in jobs.grouped_columns(found)[:_MOST_COLUMNS]:
            self._show_column(visit, names)

    def _show_column(self, visit: Visit, names: list[str]) -> None:
        """Draws the line of a column, or of regions that follow each other."""
        columns = [column for column in visit.columns() if column.name in names]
        use = columns[0].use
        choices = [(text, name) for name, text in jobs.USES.items()]
        choices.append(
            (use if use in _UNUSED else "not used", use if use in _UNUSED else "not used")
        )
        with gr.Row(elem_classes="use", key=f"row {names[0]}"):
            gr.HTML(shown.column(columns), key=f"name {names[0]}")
            menu = gr.Dropdown(
                choices, value=use, label=f"use of {names[0]}", key=f"menu {names[0]}",
                show_label=False, preserved_by_key=None, elem_classes="menu", interactive=True,
                filterable=False,
            )  # fmt: skip
            gr.HTML(visit.plain(shown.column_note(columns)), key=f"note {names[0]}")
        menu.input(self._chooser(names), [menu, self.version], self.read, show_progress="hidden")

    def _reader(self, options: Mapping[str, Any]) -> Callable[..., list[Any]]:
        """A handler that reads the table with further options."""

        def handle(count: int, request: gr.Request) -> list[Any]:
            visit = self.visit(request)
            visit.check_again(options)
            return self._state(visit, count)

        return handle

    def _chooser(self, names: list[str]) -> Callable[..., list[Any]]:
        """A handler that reads the table with another use of some columns."""

        def handle(use: str, count: int, request: gr.Request) -> list[Any]:
            visit = self.visit(request)
            visit.choose(names, use)
            return self._state(visit, count)

        return handle

    # ---- running ---------------------------------------------------------------------------------

    def start(
        self, kind: str, function: str, models: list[str], region: str, unit: str, layers: str,
        tasks: list[str], items: str, count: int, request: gr.Request,
    ) -> Iterator[Updates]:  # fmt: skip
        """Runs a job, and yields what changes on the page until its result is there."""
        visit = self.visit(request)
        if not visit.running.acquire(blocking=False):
            return
        try:
            visit.stopped.clear()
            settings = {"region": region, "unit": unit, "layers": layers}
            if kind == _PUBLISHED:
                job = jobs.published_job(tasks, items, models, settings)
            elif visit.found is None or visit.found.error:
                raise BadInput("give a table that can be read, or choose an example")
            else:
                settings["response"] = visit.response
                job = jobs.job_of(visit.found, function, models, settings)
            running = JobThread(job, visit)
            for text, share in running.steps():
                yield self._while_running(shown.progress(text, share))
            yield self._finished() | self._shown(job, running)
            for name, button in self.downloads.items():
                if file := jobs.saved_file(running.result, name, visit.folder):
                    yield {button: gr.update(visible=True, value=str(file))}
        except Stopped:
            yield self._finished(shown.progress("Stopped. Run goes on where it was.", None))
        except BadInput as problem:
            line = visit.message(problem)
            yield self._finished(shown.problem(line)) | {self.version: count + 1}
        except Exception as error:  # a fault of lmdiag, which the page survives
            traceback.print_exc()
            text = f"lmdiag failed ({type(error).__name__}); the log of the program has more"
            yield self._finished(shown.problem(text))
        finally:
            visit.running.release()

    def end(self, request: gr.Request) -> None:
        """Stops the run of a visit."""
        self.visit(request).stopped.set()

    def _while_running(self, html: str) -> Updates:
        return {
            self.run: gr.update(interactive=False),
            self.stop: gr.update(visible=True),
            self.progress: gr.update(visible=True, value=html),
            self.result: gr.update(visible=False),
        }

    def _finished(self, html: str = "") -> Updates:
        return {
            self.run: gr.update(interactive=True),
            self.stop: gr.update(visible=False),
            self.progress: gr.update(visible=bool(html), value=html),
        }

    def _shown(self, job: jobs.Job, running: JobThread) -> Updates:
        updates: Updates = {button: gr.update(visible=False) for button in self.downloads.values()}
        return updates | {
            self.result: gr.update(visible=True),
            self.report: shown.framed(read_text(running.page)),
            self.command: job.command(),
            self.python: job.python(),
        }


def serve(file: Path | None, host: str, port: int | None, *, opens: bool) -> None:
    """Serves the page until the process ends; uploaded files are removed then."""
    with tempfile.TemporaryDirectory(prefix="lmdiag-app-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder
        page = Page(file)
        fonts = ["system-ui", "sans-serif"]
        theme = gr.themes.Base(
            primary_hue="blue",
            neutral_hue="slate",
            font=fonts,
            font_mono=["ui-monospace", "monospace"],
        )
        page.blocks.queue(default_concurrency_limit=10)
        try:
            page.blocks.launch(
                server_name=host, server_port=port, inbrowser=opens, share=False, quiet=True,
                theme=theme, css=read_text(resource_path("cards", "app.css")), footer_links=[],
                js=read_text(resource_path("cards", "app.js")),
                max_file_size=MOST_BYTES, ssr_mode=False, show_error=False,
            )  # fmt: skip
        finally:
            for visit in page.visits.values():
                rmtree(visit.folder, ignore_errors=True)
