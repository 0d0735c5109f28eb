"""Sphinx extension of the site: figures that load when they come into view, formulas once in a search result, and under
each page its source and licence.
"""

import base64
import hashlib
import json
import re
import struct
from html import escape
from pathlib import Path
from typing import Any

from page_policy import GISCUS
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

MADE_FROM = {"contributing": "CONTRIBUTING.md"}  # pages that are only a frame for a file elsewhere
IMAGE = re.compile(r"<img\b[^>]*>")
EMBEDDED = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/=\s]+)"')
PNG_IN_FILE = re.compile(r'src="[^"]*_images/([^"/]+\.png)"')


def _prepare_images(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    """The text comes first: a figure is a file of its own, fetched when the reader is near, and its place is kept free.

    A PNG inside the HTML that a cell shows would travel with the text, half as large again, so it becomes a file.
    """
    files = {name: Path(app.srcdir) / source for source, name in app.builder.images.items()}

    def prepare(tag: re.Match[str]) -> str:
        text = tag[0]
        if embedded := EMBEDDED.search(text):
            png = base64.b64decode(embedded[1])
            name = f"{hashlib.sha256(png).hexdigest()}.png"
            files[name] = target = Path(app.outdir) / "_images" / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(png)
            text = text.replace(embedded[0], f'src="{context["pathto"](f"_images/{name}", 1)}"')
        style = 'style="'
        if (found := PNG_IN_FILE.search(text)) and found[1] in files:
            width, height = struct.unpack(">II", files[found[1]].read_bytes()[16:24])  # of the PNG header
            style += f"aspect-ratio:{width}/{height};"
        text = text.replace('style="', style, 1) if 'style="' in text else text.replace("<img", f'<img {style}"', 1)
        return text if "loading=" in text else text.replace("<img", '<img loading="lazy"', 1)

    if "body" in context:
        context["body"] = IMAGE.sub(prepare, context["body"])


def _add_source_line(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    licence = (
        f"<p>© {app.config.copyright}, {escape(app.config.author)}. "
        "Text and figures: CC BY 4.0. Code: BSD-3-Clause.</p>"
    )
    source = ""
    if doctree is not None:  # the search page comes from no file of ours
        file = app.env.doc2path(pagename, base=False)
        lesson = file.endswith(".ipynb")
        where = MADE_FROM.get(pagename, file if lesson else f"book/{file}")
        if pagename.startswith("practice/"):
            where = f"exercises/{pagename}/exercise.yml"
        link = f'<a href="{context["pathto"]("_sources/" + file, 1)}"><code>{escape(where)}</code></a>'
        how = ", run from its first cell when this site was built" if lesson else ""
        source = f"<p>Source of this page: {link}{how}.</p>"
    context["theme_extra_footer"] = source + licence


def _add_lesson_tools(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    """Above a lesson the ways to open it, below it the thread about it."""
    if not pagename.startswith("notebooks/") or "body" not in context:
        return
    notebook = escape(f"{pagename}.ipynb")
    download = context["pathto"](f"_sources/{pagename}.ipynb", 1)
    ways = [f'<a href="{download}" download>Download as a notebook</a>']
    for name, address in app.config.course_open_in.items():
        ways.insert(0, f'<a href="{escape(address)}{notebook}">Open in {escape(name)}</a>')
    tools = f'<p class="lesson-tools d-print-none">{"".join(f"<span>{way}</span>" for way in ways)}</p>'
    context["body"] = context["body"].replace("</h1>", f"</h1>\n{tools}", 1)

    discussion = app.config.course_discussion
    if discussion.get("server", "off") != "off":
        title = re.sub(r"<[^>]+>", "", context["title"])
        script = {"script": f"{GISCUS}/client.js"} if discussion["server"] == "giscus" else {}
        data = escape(json.dumps({**discussion, **script, "thread": f"/{pagename}", "title": title}))
        context["body"] += (
            f'<section class="discussion d-print-none" data-discussion="{data}">'
            '<h2 id="questions-about-this-lesson">Questions about this lesson</h2>'
            "<p>Stuck? Ask. Figured something out? Explaining it is one of the best ways to learn.</p>"
            '<div class="discussion-place"></div></section>'
        )


SEARCH_LEAVES_OUT = '[".headerlink", "script", "style"'  # in Sphinx's searchtools.js


def _quote_formulas_once(app: Sphinx, exception: Exception | None) -> None:
    """A rendered formula holds its text thrice (for the eye, for screen readers, as LaTeX); a search result once."""
    script = Path(app.outdir) / "_static" / "searchtools.js"
    if exception is not None or app.builder.name != "html":
        return
    text = script.read_text("utf-8")
    if SEARCH_LEAVES_OUT not in text:
        logger.warning("searchtools.js no longer says %s: mend _quote_formulas_once", SEARCH_LEAVES_OUT, type="course")
    script.write_text(text.replace(SEARCH_LEAVES_OUT, SEARCH_LEAVES_OUT + ', ".katex-html", "annotation"'), "utf-8")


def setup(app: Sphinx) -> dict:
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it even where sphinx-comments is not used
    app.add_js_file("course/site.js", type="module")
    app.connect("build-finished", _quote_formulas_once)
    app.connect("html-page-context", _prepare_images)
    app.connect("html-page-context", _add_lesson_tools, priority=600)
    app.connect("html-page-context", _add_source_line, priority=900)
    app.add_config_value("course_open_in", {}, "html")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
