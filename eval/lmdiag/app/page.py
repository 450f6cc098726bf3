"""The page: its widgets, in the order in which a person meets them, and what they call.

The methods `on_...` are handlers: gradio calls them at an event with the values of some widgets.
They return updates, widget -> its new value or properties, for the widgets that change.

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

from lmdiag.app import calls, html_parts, menus, visits
from lmdiag.app.menus import menu_choices
from lmdiag.app.visits import Job, Visit
from lmdiag.files.reading import read_text, resource_path
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.api.table_check import CheckedColumn, Remedy, TableCheck

MAX_UPLOAD_BYTES = 20 * 2**20
"""Size of the largest file that can be uploaded."""

_MAX_COLUMN_MENUS = 60
"""Columns, or groups of regions, that are shown with a menu; further ones are read, not shown."""

_SECONDS_BETWEEN_TICKS = 0.5
"""Time between two updates of the progress of a run."""

_SENT_QUIETLY: dict[str, Any] = {
    "queue": False, "show_progress": "hidden", "api_visibility": "private",
}  # fmt: skip
"""How events are sent: without gradio's queue and spinner, and not as a call for other programs."""

_SENT_AGAIN: dict[str, Any] = {**_SENT_QUIETLY, "trigger_mode": "always_last"}
"""The same; the last event that arrives while an earlier one is answered is sent after it."""

_OWN, _PUBLISHED = "own", "published"
_KINDS = {_OWN: "A table of my own", _PUBLISHED: "Published diagnostics"}

Updates = dict[Any, Any]
"""Widget -> its new value, or the result of `gr.update` with new properties."""


class Page:
    """The page, and what its widgets call; each browser window is a visit of its own.

    Args:
        file: table that the page opens with; None for none.
        folder: the folder in which each visit has a folder for its files.
    """

    def __init__(self, file: Path | None, folder: Path) -> None:
        """Makes the widgets, and connects their events with handlers."""
        self.file = file
        self.folder = folder
        self.visits: dict[str, Visit] = {}
        with gr.Blocks(title="lmdiag", analytics_enabled=False, delete_cache=(3600, 86400)) as page:
            self._make_widgets()
            self._connect(page)
        self.blocks = page

    def visit(self, request: gr.Request) -> Visit:
        """Returns the visit of the window that sent a request; makes it for a new window."""
        name = str(request.session_hash)
        if name not in self.visits:
            self.visits[name] = Visit(Path(tempfile.mkdtemp(dir=self.folder)))
        return self.visits[name]

    def on_close(self, request: gr.Request) -> None:
        """Stops the run of a window that was closed, and removes its files."""
        visit = self.visits.pop(str(request.session_hash), None)
        if visit:
            visit.close()

    # ---- widgets ---------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        """Makes the widgets of the page from top to bottom, as attributes of the page."""
        gr.HTML(html_parts.INTRODUCTION)
        self.kind = gr.Radio(
            menu_choices(_KINDS), value=_OWN, label="What do you have?", elem_id="kind"
        )
        with gr.Column(elem_classes="step") as self.table_step:
            self._make_table_step()
        with gr.Column(elem_classes="step", visible=False) as self.published_step:
            gr.HTML(html_parts.step(1, "Published diagnostics"))
            self.tasks = gr.CheckboxGroup(
                menu_choices(menus.PUBLISHED_TASKS),
                value=[*menus.PUBLISHED_TASKS],
                label="Diagnostics",
            )
            self.items = gr.Radio(menu_choices(menus.ITEM_SETS), value="lmdiag", label="Items")
        with gr.Column(visible=False) as self.models_and_run:
            with gr.Column(elem_classes="step") as self.models_step:
                self._make_models_step()
            with gr.Row(elem_classes="buttons"):
                self.run = gr.Button("Run", variant="primary", elem_id="run")
                self.stop = gr.Button("Stop", visible=False, elem_id="stop")
            self.progress = gr.HTML(visible=False, elem_id="progress")
        self.timer = gr.Timer(_SECONDS_BETWEEN_TICKS, active=False)
        with gr.Column(elem_classes="step", visible=False, elem_id="result") as self.result:
            self._make_result_step()

    def _make_table_step(self) -> None:
        """Makes the widgets of step 1: upload, examples, columns, and what to do with the table."""
        gr.HTML(html_parts.step(1, "Table", html_parts.ABOUT_TABLES))
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
        draw(self._draw_table_check)
        self.function = gr.Radio(
            menu_choices(menus.FUNCTION_TEXTS), value="run", label="What to do with the table",
            visible=False, elem_id="function",
        )  # fmt: skip

    def _make_models_step(self) -> None:
        """Makes the widgets of step 2: models and how they are asked."""
        gr.HTML(html_parts.step(2, "Models", html_parts.ABOUT_MODELS))
        self.models = gr.Dropdown(
            [*menus.LISTED_MODELS], value=["demo:causal"], multiselect=True,
            allow_custom_value=True, elem_id="models",
            label="Choose models, or type names of the Hugging Face Hub",
        )  # fmt: skip
        self.region = gr.Dropdown(
            menu_choices(menus.WHOLE_OR_EACH), value="", label="Region whose surprisal is analysed",
            visible=False, elem_id="region", filterable=False,
        )  # fmt: skip
        with gr.Accordion("More options", open=False):
            self.unit = gr.Radio(
                menu_choices(menus.UNIT_NAMES), value="", label="Unit of probabilities"
            )
            self.layers = gr.Textbox(
                label="Layers after which models answer: all, or numbers", max_lines=1,
                max_length=200,
            )  # fmt: skip

    def _make_result_step(self) -> None:
        """Makes the widgets of step 3: downloads, the report and the command."""
        gr.HTML(html_parts.step(3, "Result"))
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
        """Connects each event with its handler: `widget.event(handler, inputs, outputs)`.

        The handler gets the values of the widgets `inputs`, and may update the widgets `outputs`.
        """
        self.table_outputs = [
            self.version, self.function, self.models_and_run, self.models_step, self.region,
            self.result, self.progress,
        ]  # fmt: skip
        gr.on(
            [self.upload.upload, self.upload.clear],
            self.on_upload, [self.upload], [*self.table_outputs, self.example], **_SENT_AGAIN,
        )  # fmt: skip
        self.example.input(
            self.on_example, [self.example], [*self.table_outputs, self.upload], **_SENT_AGAIN
        )
        page.load(self.on_load, None, self.table_outputs, **_SENT_QUIETLY)
        page.unload(self.on_close)
        gr.on(
            [self.kind.input, self.function.input], self.on_choice, [self.kind, self.function],
            [self.table_step, self.published_step, self.models_and_run, self.models_step],
            **_SENT_AGAIN,
        )  # fmt: skip
        run_outputs = [self.timer, self.run, self.stop, self.progress, self.result]
        run_inputs = [
            self.kind, self.function, self.models, self.region, self.unit, self.layers, self.tasks,
            self.items, self.version,
        ]  # fmt: skip
        self.run.click(self.on_run, run_inputs, run_outputs, **_SENT_QUIETLY)
        self.stop.click(self.on_stop, None, [self.progress], **_SENT_QUIETLY)
        result_outputs = [self.report, self.command, self.python, *self.downloads.values()]
        self.timer.tick(
            self.on_tick, None, [*run_outputs, self.version, *result_outputs], **_SENT_QUIETLY
        )

    # ---- reading a table -------------------------------------------------------------------------

    def on_upload(self, path: str | None, request: gr.Request) -> Updates:
        """Reads an uploaded file, or forgets the table if its file was removed; unsets the example.

        Args:
            path: where gradio saved the file; None if the file was removed.
        """
        visit = self.visit(request)
        visit.replace_table(visits.uploaded_file(path, visit.folder) if path else None)
        return self._table_updates(visit) | {self.example: None}

    def on_example(self, name: str, request: gr.Request) -> Updates:
        """Reads the example of a name, and empties the field of the uploaded file."""
        visit = self.visit(request)
        visit.replace_table(visits.example_file(name, visit.folder))
        return self._table_updates(visit) | {self.upload: None}

    def on_load(self, request: gr.Request) -> Updates:
        """Reads a copy of the table that the page opens with, if there is one."""
        visit = self.visit(request)
        if self.file:
            visit.replace_table(Path(copyfile(self.file, visit.folder / self.file.name)))
        return self._table_updates(visit)

    def on_choice(self, kind: str, function: str, request: gr.Request) -> Updates:
        """Shows the steps of the page for the chosen kind of data and the chosen function.

        Args:
            kind: "own" for a table of the user, "published" for published diagnostics.
            function: what to do with a table, one of `lmdiag.app.menus.FUNCTION_TEXTS`.
        """
        visit = self.visit(request)
        visit.function = function
        is_published = kind == _PUBLISHED
        can_run = is_published or _has_readable_table(visit)
        asks_models = is_published or function != "analyse"  # which analyses people's responses
        return {
            self.table_step: gr.update(visible=not is_published),
            self.published_step: gr.update(visible=is_published),
            self.models_and_run: gr.update(visible=can_run),
            self.models_step: gr.update(visible=asks_models),
        }

    def _table_updates(self, visit: Visit) -> Updates:
        """Returns the updates of the widgets `table_outputs` after a table was read.

        The result of an earlier run is hidden, since it may be of another table.
        """
        table_check = visit.table_check
        function = visit.function or "run"  # "" without a table
        regions = html_parts.region_names(table_check) if table_check else {}
        return {
            self.version: visit.version,
            self.function: gr.update(
                visible=_has_readable_table(visit),
                value=function,
                info="" if _has_words(visit) else menus.FIT_NEEDS,
            ),
            self.models_and_run: gr.update(visible=_has_readable_table(visit)),
            self.models_step: gr.update(visible=function != "analyse"),
            self.region: gr.update(
                visible=bool(regions),
                choices=menu_choices(menus.WHOLE_OR_EACH | regions),
                value="",
            ),
            self.result: gr.update(visible=False),
            self.progress: gr.update(visible=False),
        }

    def _draw_table_check(self, _: float, request: gr.Request) -> None:
        """Draws how a table is read: its rows, a menu for each column, proposals, problems.

        gradio calls it after each change of `version`, whose value is not needed here.
        """
        visit = self.visit(request)
        with visit.lock:
            table_check = visit.table_check
            if table_check is None:
                return
            gr.HTML(visit.without_folder(html_parts.table(table_check)), key="table")
            self._draw_remedies(table_check.proposed())
            for line in html_parts.general_problems(table_check):
                gr.HTML(visit.without_folder(html_parts.problem_html(line)))
                self._draw_remedies(table_check.remedies(line))
            for columns in visit.column_groups()[:_MAX_COLUMN_MENUS]:
                self._draw_columns(visit, table_check, columns)

    def _draw_columns(
        self, visit: Visit, table_check: TableCheck, columns: list[CheckedColumn]
    ) -> None:
        """Draws one line for a column, or for neighbouring regions: values, menu of uses, problems.

        The menu has the uses that a person can choose, and one more: the use that lmdiag recognised
        by the values, or "not used".
        """
        first = columns[0]
        names = [column.name for column in columns]
        unlisted_use = first.use if first.use in menus.DETECTED_USES else "not used"
        with gr.Row(elem_classes="use", key=f"row {first.name}"):
            gr.HTML(html_parts.column(columns), key=f"name {first.name}")
            menu = gr.Dropdown(
                menu_choices({**menus.USES, unlisted_use: unlisted_use}), value=first.use,
                label=f"use of {first.name}", show_label=False, key=f"menu {first.name}",
                preserved_by_key=None, elem_classes="menu", interactive=True, filterable=False,
            )  # fmt: skip
            with gr.Column():
                gr.HTML(
                    visit.without_folder(html_parts.column_note(columns)), key=f"note {first.name}"
                )
                lines = [line for column in columns for line in column.problems]
                for line in dict.fromkeys(lines):  # regions share problems
                    self._draw_remedies(table_check.remedies(line))
        menu.input(self._use_handler(names), [menu], self.table_outputs, **_SENT_AGAIN)

    def _draw_remedies(self, remedies: list[Remedy]) -> None:
        """Draws a button for each of some other ways to read the table."""
        for remedy in remedies:
            button = gr.Button(remedy.text, size="sm", elem_classes="remedy")
            button.click(
                self._options_handler(remedy.options), None, self.table_outputs, **_SENT_QUIETLY
            )

    def _options_handler(self, options: Mapping[str, Any]) -> Callable[..., Updates]:
        """Returns a handler that reads the table with these keywords of `lmdiag.check`."""

        def on_click(request: gr.Request) -> Updates:
            """Reads the table again, and returns the updates of its widgets."""
            visit = self.visit(request)
            visit.read_again(options)
            return self._table_updates(visit)

        return on_click

    def _use_handler(self, names: list[str]) -> Callable[..., Updates]:
        """Returns a handler that gives some columns the use that is chosen in their menu.

        Args:
            names: the columns of the menu: one column, or neighbouring regions.
        """

        def on_input(use: str, request: gr.Request) -> Updates:
            """Reads the table again, unless the columns have the use already."""
            visit = self.visit(request)
            if visit.change_use(names, use):
                return self._table_updates(visit)
            return {self.version: visit.version}  # nothing has changed

        return on_input

    # ---- running ---------------------------------------------------------------------------------

    def on_run(
        self, kind: str, function: str, models: list[str], region: str, unit: str, layers: str,
        tasks: list[str], items: str, version: float, request: gr.Request,
    ) -> Updates:  # fmt: skip
        """Starts the run that the page describes, unless one is under way.

        The arguments are the values of the widgets of these names. What cannot be run becomes a
        message in place of the progress bar.

        Args:
            version: `Visit.version` of the reading of the table that the page shows.
        """
        visit = self.visit(request)
        settings = {"region": region, "unit": unit, "layers": layers}  # "" for the default
        try:
            with visit.lock:  # a table that is being read is waited for
                if kind == _PUBLISHED:
                    call = calls.published_call(tasks, items, models, settings)
                elif visit.table_check is None or visit.table_check.error:
                    raise BadInput("give a table that can be read, or choose an example")
                else:
                    if version != visit.version:
                        # the table was read again after the page had sent its values: the menus
                        # of function and region were those of the reading before
                        function = visit.function
                        settings["region"] = ""
                    settings["response"] = visit.response
                    call = calls.table_call(visit.table_check, function, models, settings)
                job = visit.start(call)
        except BadInput as problem:
            return self._updates_after_run(html_parts.problem_html(str(problem)))
        return self._updates_during_run(job)

    def on_stop(self, request: gr.Request) -> Updates:
        """Stops the run of the window."""
        self.visit(request).stop()
        return {self.progress: html_parts.progress("Stopping", None)}

    def on_tick(self, request: gr.Request) -> Updates:
        """Shows how much of the run is done; after its end, its result or why there is none."""
        visit = self.visit(request)
        job = visit.job
        if job is None:
            return self._updates_after_run("")
        if job.is_alive():
            return self._updates_during_run(job)
        if job.problem:
            visit.add_problem(job.problem)
            problem = visit.without_folder(html_parts.problem_html(job.problem))
            updates = self._updates_after_run(problem)
            updates[self.version] = visit.version
        else:
            stopped_text = "" if job.files else html_parts.progress(job.status, None)
            updates = self._updates_after_run(stopped_text)
        return updates | self._result_updates(job)

    def _updates_during_run(self, job: Job) -> Updates:
        """Returns the widgets while a run is under way: progress and a button that stops it.

        As soon as the page of the result is written, the run can no longer be stopped.
        """
        text = "Stopping" if job.stopped.is_set() else job.status
        return {
            self.timer: gr.Timer(active=True),
            self.run: gr.update(interactive=False),
            self.stop: gr.update(visible=not job.files),
            self.progress: gr.update(visible=True, value=html_parts.progress(text, job.share_done)),
            self.result: gr.update(visible=False),
        }

    def _updates_after_run(self, html: str) -> Updates:
        """Returns the widgets while no run is under way; `html` is in place of the progress bar."""
        return {
            self.timer: gr.Timer(active=False),
            self.run: gr.update(interactive=True),
            self.stop: gr.update(visible=False),
            self.progress: gr.update(visible=bool(html), value=html),
        }

    def _result_updates(self, job: Job) -> Updates:
        """Returns the widgets of the result: its downloads, page, command and lines of Python.

        Without a result there are none. The page, which may be large, is sent once.
        """
        files = dict(job.files)
        if not files:
            return {}
        updates: Updates = {self.result: gr.update(visible=True)}
        for name, button in self.downloads.items():
            updates[button] = gr.update(visible=name in files, value=files.get(name))
        if not job.is_page_sent:
            job.is_page_sent = True
            updates[self.report] = html_parts.framed(read_text(files["page"]))
            updates[self.command] = job.call.command()
            updates[self.python] = job.call.python()
        return updates


def _has_readable_table(visit: Visit) -> bool:
    """Returns whether a visit has a table that can be read."""
    return visit.table_check is not None and not visit.table_check.error


def _has_words(visit: Visit) -> bool:
    """Returns whether a column of the table has words, which `fit` needs."""
    return any(column.use == "word" for column in visit.columns())


def serve(
    file: Path | None, host: str, port: int | None, *, opens: bool,
    on_start: Callable[[str], None],
) -> None:  # fmt: skip
    """Serves the page until the process ends; all files of its visits are removed then.

    Args:
        file: table that the page opens with; None for none.
        host: address at which the page is served: 127.0.0.1 for this computer alone, 0.0.0.0 for
            every computer that reaches it.
        port: its port; None for the first free one from 7860.
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
            max_file_size=MAX_UPLOAD_BYTES, ssr_mode=False, show_error=False,
            _frontend=False,  # no trial of the address, which fails on busy machines
            prevent_thread_lock=True,
        )  # fmt: skip
        on_start(page.blocks.local_url)
        page.blocks.block_thread()
