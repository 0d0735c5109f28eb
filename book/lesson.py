"""Run a lesson notebook and make what it shows static, so that a page without a kernel shows all of it.

Every build runs every lesson from its first cell: there is no cache that could keep a number which `reference_impl` no
longer says. A widget cannot move on a page, so it is replaced by the figure that it drew, with the values of its
controls beside it; a widget that leaves nothing behind stops the build rather than becoming an empty box.
"""

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import nbformat
from machine_load import Others
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
SHOWN_AS_IT_IS = ("text/html", "image/svg+xml", "image/png", "image/jpeg", "text/markdown")
IMAGES = ("image/svg+xml", "image/png", "image/jpeg")
HIDDEN = {"remove-cell", "remove-output", "remove_cell", "remove_output"}


class LessonError(Exception):
    """A lesson cannot become a page; each line of the message names the notebook, the cell and what is wrong."""


def run_lesson(
    path: Path, name: str, progress: Callable[[int, int], None] = lambda done, total: None, timeout: float = 300
) -> NotebookNode:
    """The notebook at `path` with fresh, static outputs; `name` is what messages call it.

    Cells run in the notebook's own folder, as in JupyterLab, each for at most `timeout` seconds. The result's metadata
    say which share of the machine other programs took: {"course": {"others": 0.02}}. Raises LessonError
    for a cell that raises, hangs, writes to standard error, or leaves a widget or a figure that a page cannot show.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    total = len(notebook.cells)
    current = 0

    def started(cell: NotebookNode, cell_index: int) -> None:
        nonlocal current
        current = cell_index
        progress(cell_index + 1, total)

    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=started,
        extra_arguments=["--log-level=ERROR"],
    )
    others = Others()
    try:
        client.execute()
    except CellExecutionError as error:
        raise LessonError(f"{_where(name, notebook, current)}: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise LessonError(f"{_where(name, notebook, current)}: still running after {timeout:g} s") from error
    except DeadKernelError as error:
        raise LessonError(f"{_where(name, notebook, current)}: the kernel died (out of memory?)") from error

    notebook.metadata["course"] = {"others": others.share()}
    state = notebook.metadata.pop("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    problems: list[str] = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or HIDDEN & set(cell.metadata.get("tags", [])):
            continue
        try:
            cell.outputs = [still for output in cell.outputs for still in _still(output, state)]
            _check(cell)
            _keep_size(cell)
        except ValueError as error:
            problems.append(f"{_where(name, notebook, index)}: {error}")
    if problems:
        raise LessonError("\n".join(problems))
    return notebook


def _where(name: str, notebook: NotebookNode, index: int) -> str:
    first_line = notebook.cells[index].source.strip().partition("\n")[0]
    return f"{name}, cell {index + 1} of {len(notebook.cells)} ({first_line[:60]!r})"


def _check(cell: NotebookNode) -> None:
    for output in cell.outputs:
        if output.get("name") == "stderr":
            raise ValueError(f"writes to standard error: {output.text.strip()[:300]}")
        if any(kind in output.get("data", {}) for kind in IMAGES) and not _description(cell):
            raise ValueError(
                "its figure has no description for readers who cannot see it: say what it shows in the cell's "
                'metadata, {"mystnb": {"image": {"alt": "..."}}}'
            )


def _keep_size(cell: NotebookNode) -> None:
    """A figure drawn for sharp screens has twice the pixels; the page shows it at the size that was meant."""
    for output in cell.outputs:
        width = output.get("metadata", {}).get("image/png", {}).get("width")
        if width:
            cell.metadata.setdefault("mystnb", {}).setdefault("image", {}).setdefault("width", f"{width}px")


def _description(cell: NotebookNode) -> str:
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()


def _still(output: NotebookNode, state: dict) -> list[NotebookNode]:
    """Return the outputs that a page shows in place of `output`: itself, unless it is a widget."""
    data = output.get("data", {})
    if WIDGET_VIEW not in data:
        return [output]
    view = data.pop(WIDGET_VIEW)
    if any(kind in data for kind in SHOWN_AS_IT_IS):
        return [output]  # the widget brings its own picture

    models = list(_walk(view["model_id"], state))
    if any("Progress" in model["model_name"] for model in models):
        return []  # a progress bar has nothing left to say
    drawn = [
        NotebookNode(inner)
        for model in models
        if model["model_name"] == "OutputModel"
        for inner in nbformat.from_dict(model["state"].get("outputs", []))
    ]
    errors = [inner for inner in drawn if inner.output_type == "error"]
    if errors:
        raise ValueError(f"its widget raises {errors[0].ename}: {errors[0].evalue}")
    if not drawn:
        kinds = ", ".join(sorted({model["model_name"] for model in models})) or "unknown"
        raise ValueError(
            f"its widget ({kinds}) leaves nothing that a page can show: draw into an Output widget, as `interact` "
            "does, or let it display text/html or image/png besides"
        )
    settings = ", ".join(filter(None, map(_setting, models)))
    note = (
        '<p class="still-note">Interactive in JupyterLab'
        + (f"; shown here for <strong>{escape(settings)}</strong>" if settings else "")
        + ".</p>"
    )
    return [new_output("display_data", {"text/html": note}), *drawn]


def _walk(model_id: str, state: dict) -> Iterator[dict]:
    """A widget's model and those of its children, in the order in which they are shown."""
    model = state.get(model_id)
    if model is None:
        return
    yield model
    for child in model["state"].get("children", []):
        yield from _walk(child.removeprefix("IPY_MODEL_"), state)


def _setting(model: dict) -> str:
    """'group size 64' for a slider or a choice; nothing for what has no label or no value."""
    values = model["state"]
    label = str(values.get("description") or "").strip().rstrip(":=")
    if values.get("_options_labels") and isinstance(values.get("index"), int):
        value = values["_options_labels"][values["index"]]
    else:
        value = values.get("value")
    if not label or value is None or isinstance(value, dict):
        return ""
    return f"{label} {value}"
