"""What a submission holds, made harmless for a browser: markdown, HTML, figures, attachments.

Everything becomes HTML with a short list of allowed tags and attributes, images only from the page's own
data, links only on request. Used by the feedback pages, and by formgrader's through two lines of `nbgrader_config.py`:

    c.HTMLExporter.preprocessors = ["autograder.sanitize.Sanitize"]
    c.HTMLExporter.filters = {"markdown2html": "autograder.sanitize.markdown_html"}
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from typing import Any

import bleach
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import NotebookNode
from traitlets import Bool

IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif"}
_TEXT = {
    "a",
    "abbr",
    "b",
    "br",
    "code",
    "del",
    "em",
    "i",
    "img",
    "ins",
    "kbd",
    "mark",
    "q",
    "s",
    "samp",
    "small",
    "span",
}
_TEXT |= {"strong", "sub", "sup", "tt", "u", "var"}
_BLOCKS = {"blockquote", "dd", "details", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p"}
_BLOCKS |= {"pre", "summary", "ul"}
_TABLES = {"caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
_GLOBAL = frozenset({"title", "lang", "dir"})
_OF_TAG = {
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
}
_DATA = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*\Z")
_LINK = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
_SILENT = re.compile(r"<(script|style|noscript|template|title)\b.*?(</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_LONGEST = 300_000  # characters of one text
_ANCHOR = re.compile(r'<a class="anchor-link" href="#[^"]*">[^<]*</a>')  # a sign beside each heading
_DANGEROUS = ("application/javascript", "text/javascript", "application/vnd.jupyter.widget-view+json")


def clean_html(text: str) -> str:
    """HTML with nothing in it that runs, loads, or looks like the page around it."""
    # The text of a script is no content; what this pattern misses is still cleaned below.
    text = _SILENT.sub("", text)
    clean = bleach.clean(
        text,
        tags=_TEXT | _BLOCKS | _TABLES,
        attributes=_allowed,
        protocols=["http", "https", "mailto", "data"],
        strip=True,
        strip_comments=True,
    )
    clean = re.sub(r"<img(?![^>]*\ssrc=)[^>]*>", "[an image was left out here]", clean)
    return re.sub(r"<img(?![^>]*\salt=)", '<img alt=""', clean)


def markdown_html(source: str) -> str:
    """Markdown as clean HTML. TeX stays as it was typed."""
    try:
        page = markdown2html_mistune(source[:_LONGEST].replace("](attachment:", "](#"))  # those left have no image
    except Exception:  # whatever a learner's text does to the renderer, the page has to be made
        page = f"<pre>{html.escape(source[:_LONGEST])}</pre>"
    return clean_html(_ANCHOR.sub("", page))


def inline_attachments(cell: NotebookNode) -> str:
    """A markdown cell's text with its attached images as part of the text; other attachments are dropped."""
    source = str(cell.source)
    for name, bundle in dict(cell.get("attachments", {})).items():
        mime = next((kind for kind in IMAGES if kind in bundle), None)
        uri = image_uri(mime, bundle[mime]) if mime else None
        if uri is not None and re.fullmatch(r"[\w.() -]{1,200}", name):
            source = source.replace(f"attachment:{name}", uri)
    return source


def image_uri(mime: str | None, data: Any) -> str | None:
    """An image as a data: address; None if it is none. An SVG is shown as an image, in which no script runs."""
    if isinstance(data, list):
        data = "".join(map(str, data))
    if not isinstance(data, str):
        return None
    if mime == "image/svg+xml":
        return f"data:{mime};base64,{base64.b64encode(data.encode('utf-8', 'replace')).decode()}"
    try:
        compact = "".join(data.split())
        base64.b64decode(compact.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None
    return f"data:{mime};base64,{compact}" if mime in IMAGES else None


class Sanitize(Preprocessor):
    """Makes a notebook's outputs and attachments harmless before it is shown; the file stays as it is."""

    enabled = Bool(True).tag(config=True)

    def preprocess_cell(self, cell: NotebookNode, resources: Any, index: int) -> tuple[NotebookNode, Any]:
        if cell.cell_type == "markdown":
            cell.source = inline_attachments(cell)
        elif cell.cell_type == "raw":
            cell.cell_type, cell.source = "markdown", f"<pre>{html.escape(cell.source)}</pre>"
        cell.pop("attachments", None)
        cell.metadata.pop("tags", None)
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = NotebookNode(_safe_data(output.data))
                output.metadata = NotebookNode()
        return cell, resources


def _safe_data(data: dict[str, Any]) -> dict[str, Any]:
    safe: dict[str, Any] = {}
    for mime, value in data.items():
        text = "".join(map(str, value)) if isinstance(value, list) else value
        if not isinstance(text, str) or mime in _DANGEROUS:
            continue
        if mime == "image/svg+xml":
            safe.setdefault("text/html", f'<img src="{image_uri(mime, text)}" alt="figure">')
        elif mime in IMAGES:
            if image_uri(mime, text):
                safe[mime] = text
        elif mime == "text/html":
            safe[mime] = clean_html(text)
        elif mime == "text/markdown":
            safe["text/html"] = markdown_html(text)
        elif mime in ("text/plain", "text/latex"):
            safe[mime] = text if mime == "text/plain" else html.escape(text)
    return safe


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return bool(_DATA.match(value.strip()))
    if tag == "a" and name == "href":
        return bool(_LINK.match(value.strip()))
    return name in _GLOBAL or name in _OF_TAG.get(tag, ())
