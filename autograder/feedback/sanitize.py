"""What a submission holds, made harmless for a browser: markdown, HTML, figures, attachments.

Everything becomes HTML with a short list of allowed tags and attributes, images only from the page's own
data, links only on request. Used by the feedback pages, and by formgrader's through two lines of `nbgrader_config.py`:

    c.HTMLExporter.preprocessors = ["autograder.sanitize.Sanitize"]
    c.HTMLExporter.filters = {"markdown2html": "autograder.sanitize.markdown_html"}
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import html
import re
from typing import Any

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
_EMPTY = {"br", "col", "hr", "img"}
_ENDED_BY_ITSELF = {"dd", "dt", "li", "p", "td", "th", "tr"}  # by the next of its kind
_DEEPEST = 100  # elements inside each other; what is deeper loses its tags
_SILENT = {"script", "style", "noscript", "template", "title", "textarea", "iframe", "xmp", "noembed", "noframes"}
_NAMES = _GLOBAL.union(*_OF_TAG.values())
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*)")
_ATTRIBUTE = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)\s*(=\s*)?")
_BARE = re.compile(r"[^\s>]+")
_REST = re.compile(r"[\s/]*")
_DATA = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*\Z")
_LINK = re.compile(r"(https?://|mailto:|#)", re.IGNORECASE)
_LONGEST = 300_000  # characters of one text
_ANCHOR = re.compile(r'<a class="anchor-link" href="#[^"]*">[^<]*</a>')  # a sign beside each heading
_BEGIN, _END = re.compile(r"\\begin\{([a-z]*\*?)\}"), re.compile(r"\\end\{([a-z]*\*?)\}")
_DANGEROUS = ("application/javascript", "text/javascript", "application/vnd.jupyter.widget-view+json")


def clean_html(text: str) -> str:
    """HTML with nothing in it that runs, loads, or looks like the page around it.

    The text is read once from front to back, so the work grows with its length alone. It is written anew from what was
    read: tags and attributes of the list, in order and closed, and everything else as text.
    """
    page = _Page()
    at = 0
    while (start := text.find("<", at)) >= 0:
        page.text(text[at:start])
        if text.startswith("<!--", start):
            at = _after(text, "-->", start + 4)
        elif text.startswith(("<!", "<?", "</"), start) and not text[start + 2 : start + 3].isalpha():
            at = _after(text, ">", start + 2)
        elif name := _NAME.match(text, start):
            attributes, at = _attributes(text, name.end())
            if at < 0:  # the tag never ends, so it is none
                return page.close(text[start:])
            tag = name[2].lower()
            if name[1]:
                page.end(tag)
            elif tag in _SILENT:
                # The text of a script is no content.
                end = re.compile(rf"</{tag}\b", re.IGNORECASE).search(text, at)
                at = end.start() if end else len(text)
            else:
                page.begin(tag, attributes)
        else:
            page.text("<")
            at = start + 1
    return page.close(text[at:])


class _Page:
    """Clean HTML while it is written."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._open: list[str] = []

    def text(self, text: str) -> None:
        """Text, with character references as HTML knows them."""
        with contextlib.suppress(ValueError):  # a number of thousands of digits
            text = html.unescape(text)
        self._parts.append(html.escape(text, quote=False))

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag not in _TEXT | _BLOCKS | _TABLES:
            return
        kept = {name: value for name, value in attributes.items() if _allowed(tag, name, value)}
        if tag == "img":
            if "src" not in kept:
                self._parts.append("[an image was left out here]")
                return
            kept.setdefault("alt", "")
        words = "".join(f' {name}="{html.escape(value)}"' for name, value in kept.items())
        if tag not in _EMPTY:
            if self._open and self._open[-1] == tag and tag in _ENDED_BY_ITSELF:
                self.end(tag)
            if len(self._open) >= _DEEPEST:
                return
            self._open.append(tag)
        self._parts.append(f"<{tag}{words}>")

    def end(self, tag: str) -> None:
        """Close an element and all that is open inside it; an end without a beginning is dropped."""
        if tag in self._open:
            while (inner := self._open.pop()) != tag:
                self._parts.append(f"</{inner}>")
            self._parts.append(f"</{tag}>")

    def close(self, rest: str) -> str:
        """The whole page, with this text at its end."""
        self.text(rest)
        return "".join([*self._parts, *(f"</{tag}>" for tag in reversed(self._open))])


def _after(text: str, end: str, at: int) -> int:
    """The place after the next `end`; the end of the text if there is none."""
    found = text.find(end, at)
    return found + len(end) if found >= 0 else len(text)


def _attributes(text: str, at: int) -> tuple[dict[str, str], int]:
    """A tag's attributes from `at` on, the first of each name, and the place behind the tag; -1 if it has no end."""
    found: dict[str, str] = {}
    while match := _ATTRIBUTE.match(text, at):
        name, at = match[1].lower(), match.end()
        value = ""
        if match[2]:
            quote = text[at : at + 1]
            if quote == "'" or quote == '"':
                end = text.find(quote, at + 1)
                if end < 0:
                    return found, -1
                value, at = text[at + 1 : end], end + 1
            elif bare := _BARE.match(text, at):
                value, at = bare[0], bare.end()
        with contextlib.suppress(ValueError):
            value = html.unescape(value)
        if name in _NAMES:
            found.setdefault(name, value)
    end = _REST.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing as well
    return found, end + 1 if text[end : end + 1] == ">" else -1


def markdown_html(source: str) -> str:
    """Markdown as clean HTML. TeX stays as it was typed."""
    source = source[:_LONGEST]
    try:
        page = markdown2html_mistune(_closed(source).replace("](attachment:", "](#"))  # those left have no image
    except Exception:  # whatever a learner's text does to the renderer, the page has to be made
        page = f"<pre>{html.escape(source)}</pre>"
    return clean_html(_ANCHOR.sub("", page))


def _closed(source: str) -> str:
    """The text with each \\begin{NAME} that has no \\end{NAME} as plain text.

    For each of them the renderer would search the whole rest of the text.
    """
    last = {end[1]: end.start() for end in _END.finditer(source)}
    plain = lambda begin: begin[0] if begin.start() < last.get(begin[1], -1) else f"&#92;{begin[0][1:]}"
    return _BEGIN.sub(plain, source)


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
