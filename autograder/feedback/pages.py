"""Feedback pages: what each test expected, what came, for which input, and a hint where the mistake is known.

The page is built from what a learner may know (the released notebook, their own cells, a visible check's
message, and of a hidden check the words that hold no value of it), not by hiding parts of the graded notebook. One file
without script or outside address; a content policy in it forbids both. Switched on by
`c.GenerateFeedback.exporter_class = "autograder.feedback.Feedback"`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from nbconvert.exporters.exporter import Exporter
from nbconvert.filters.ansi import strip_ansi
from nbformat.notebooknode import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets import Unicode

from autograder.course import source
from autograder.course.gradebook import open_gradebook
from autograder.course.points import Points, course_directory, waits
from autograder.feedback import hints, sanitize

_HERE = Path(__file__).parent / "templates"
_HIDDEN = "a check that is not shown does not hold"
_NEXT = "Call your function with this input in a cell of your own, and find the first step that goes wrong."
_NEXT_HIDDEN = "Make up a small input of this kind, work it out by hand, and compare with what your function gives."
_NEXT_RAISED = "Call your function with the inputs that stand in the test below, and see which one raises the error."
_FIELDS = {"for input": "Input", "expected": "Expected", "got": "Your code gave"}


@dataclass
class Part:
    """One cell on the page. `kind`: "text", "code", "test" or "manual"."""

    kind: str
    name: str = ""
    body: Markup = field(default_factory=Markup)
    outputs: list[Markup] = field(default_factory=list)
    score: float | None = None
    points: float = 0.0
    summary: str = ""  # what went wrong, in one paragraph
    fields: list[tuple[str, str]] = field(default_factory=list)
    think: str = ""  # what kind of input it was, in the words of the test's author
    hint: str = ""
    comment: Markup = field(default_factory=Markup)

    @property
    def state(self) -> str:
        if self.score is None:
            return "waits to be graded by hand"
        if self.score >= self.points:
            return "passed" if self.kind == "test" else "full marks"
        return "partly" if self.score > 0 else "not passed" if self.kind == "test" else "no marks"


class Feedback(Exporter):
    """nbgrader's feedback step, with this page instead of its own."""

    hints_folder = Unicode("hints", help="Folder of the course with ASSIGNMENT.toml files.").tag(config=True)
    output_mimetype = "text/html"

    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(  # type: ignore[override]  # as every exporter of text does
        self, nb: NotebookNode, resources: Any = None, **kwargs: Any
    ) -> tuple[str, Any]:
        """The page of one graded notebook; nbgrader's preprocessors put the grades in first."""
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        about = resources["nbgrader"]
        course = course_directory(self)
        folder = Path(course.format_path(course.source_directory, ".", about["assignment"]))
        known = source.read(folder / f"{about['notebook']}.ipynb")
        found = hints.read(Path(course.root) / self.hints_folder / f"{about['assignment']}.toml")
        records = nb.metadata.get("autograder", {}).get("cells", [])
        told = {record["name"]: record.get("shown", "") for record in records}
        parts = [_part(cell, known, found, told) for cell in nb.cells]
        graded = Path(course.format_path(course.autograded_directory, about["student"], about["assignment"]))
        waiting = self._grades(about, graded / f"{about['notebook']}.ipynb")
        for part in parts:
            if part.name in waiting:
                part.score = None
        return page(about, parts), resources

    def _grades(self, about: dict[str, Any], graded: Path) -> set[str]:
        """Put the grades as they are now into `about`; return the names of the cells that nobody has graded yet."""
        points = Points(parent=self)
        with open_gradebook(course_directory(self)) as gradebook:
            notebook = gradebook.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
            penalty = points.notebook_penalty(notebook)
            about.update(
                score=notebook.score - penalty,
                max_score=points.notebook_maximum(notebook),
                late_penalty=penalty,
                state=points.state(notebook, graded),
            )
            return {grade.name for grade in notebook.grades if waits(grade)}


def page(about: dict[str, Any], parts: list[Part]) -> str:
    """The HTML text. `about` holds assignment, notebook, student, score, max_score, late_penalty and state."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    css = (_HERE / "feedback.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    template = environment.get_template("feedback.html.j2")
    return template.render(
        about=about,
        parts=parts,
        graded=[part for part in parts if part.kind in ("test", "manual")],
        css=Markup(css),
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )


def _part(cell: NotebookNode, known: source.Source, found: list[hints.Hint], told: dict[str, str]) -> Part:
    name = source.grade_id(cell)
    about = cell.metadata.get("nbgrader", {})
    in_source = known.find(name) if name else None
    is_test = in_source is not None and in_source.kind == "test"
    graded = bool(about.get("grade") or about.get("task"))
    part = Part("text" if cell.cell_type != "code" else "code", name)
    if graded:
        part.kind = "test" if is_test else "manual"
        part.score, part.points = float(about.get("score") or 0), float(about.get("points") or 0)
    part.comment = Markup(sanitize.markdown_html(about.get("comment") or ""))
    if cell.cell_type != "code":
        body = sanitize.markdown_html(sanitize.inline_attachments(cell))
        # The page's own headings come first in its outline.
        part.body = Markup(re.sub(r"(</?h)([1-6])\b", lambda tag: f"{tag[1]}{min(int(tag[2]) + 2, 6)}", body))
        return part
    part.body = code_html(in_source.visible if is_test and in_source else cell.source)
    if not is_test:
        part.outputs = [shown for output in cell.outputs if (shown := _output(output))]
        return part
    for output in cell.outputs:
        if output.output_type == "error":
            # A notebook that was graded otherwise does not say whether the message tells of hidden values.
            discreet = told.get(name, _HIDDEN if in_source and in_source.hidden else "")
            _explain(part, output, found, discreet)
        elif output.output_type == "stream":
            part.outputs.append(_output(output))
    return part


def _explain(part: Part, error: NotebookNode, found: list[hints.Hint], discreet: str) -> None:
    """Take a failed check's message apart: the one without hidden values, if there is one."""
    message = f"{error.evalue}"
    whole = f"{error.ename}: {message}".removeprefix("CheckError: ")
    rest = []
    for line in (discreet or message).split("\n"):
        match = re.match(r"\s+(for input|expected|got|think of):\s*(.*)", line)
        if match and match[1] == "think of":
            part.think = match[2]
        elif match:
            part.fields.append((_FIELDS[match[1]], match[2]))
        else:
            rest.append(line)
    text = "\n".join(rest).strip()
    plain = error.ename in ("CheckError", "AssertionError", "RemoteError") or text.find(error.ename) >= 0
    part.summary = text if plain and text else f"{error.ename}: {text}".rstrip(": ")
    if (hint := hints.first(found, part.name, whole)) is not None:
        part.hint = hint.text
    elif part.fields and not part.think:  # nobody knows the mistake, but there is always a next step
        part.hint = _NEXT_HIDDEN if discreet else _NEXT
    elif f" raised {error.ename}" in part.summary and not discreet:
        part.hint = _NEXT_RAISED


def code_html(text: str) -> Markup:
    """Python with its words marked by CSS classes."""
    return Markup(highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))


def _output(output: NotebookNode) -> Markup:
    """One output of a learner's cell as HTML; empty if it has no form that may be shown."""
    if output.output_type == "stream":
        return Markup("<pre>{}</pre>").format(strip_ansi(output.text))
    if output.output_type == "error":
        frames = [strip_ansi(line) for line in output.traceback]
        # Frames in libraries tell of the grading machine, not of the learner's code.
        own = [frame.rstrip() for frame in frames if re.match(r"\s*(Cell )?In\s?\[", frame)]
        return Markup("<pre>{}</pre>").format("\n".join([*own, f"{output.ename}: {output.evalue}".rstrip(": ")]))
    data = output.get("data", {})
    for mime in ("image/svg+xml", *sanitize.IMAGES):
        if mime in data and (uri := sanitize.image_uri(mime, data[mime])):
            return Markup('<img src="{}" alt="figure: {}">').format(uri, str(data.get("text/plain", ""))[:200])
    if "text/html" in data:
        return Markup('<div class="rich">{}</div>').format(Markup(sanitize.clean_html(data["text/html"])))
    if "text/markdown" in data:
        return Markup('<div class="rich">{}</div>').format(Markup(sanitize.markdown_html(data["text/markdown"])))
    plain = data.get("text/plain") or data.get("text/latex")
    return Markup("<pre>{}</pre>").format(strip_ansi(str(plain))) if plain else Markup()
