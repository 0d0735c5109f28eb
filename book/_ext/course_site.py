"""Sphinx extension of the site: what each page says of itself and loads, figures that load when they come into view,
above a lesson the ways to open it, and under each page its source and licence.
"""

import base64
import hashlib
import json
import re
import struct
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from page_policy import GISCUS
from sphinx.application import Sphinx

MOVED = {"notebooks/04_quantization": "notebooks/04a_number_formats"}  # pages that had another address
MADE_FROM = {"contributing": "CONTRIBUTING.md"}  # pages that are only a frame for a file elsewhere
IMAGE = re.compile(r"<img\b[^>]*>")
EMBEDDED = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/=\s]+)"')
FIXED_SIZE = re.compile(r'\s(?:width|height)="[^"]*"|(?<=["; ])height:\s*[^;"]+;?\s*')
OUR_SCRIPTS = ("course/", "interactives/")
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
        text = FIXED_SIZE.sub("", text)  # a height beside a width that yields on a phone would stretch the figure
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
    lab = f'<a href="{escape(app.config.course_lab)}{notebook}" data-lab="{notebook}">Open in JupyterLab</a>'
    lab += ' <details class="lab-address"><summary>It runs elsewhere</summary></details>'  # site/lab.js fills it
    ways = [lab, f'<a href="{download}" download>Download as a notebook</a>']
    tools = f'<div class="lesson-tools d-print-none">{"".join(f"<span>{way}</span>" for way in ways)}</div>'
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


def _describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    """Title and description for search engines and shared links, and only those scripts that are ours."""
    title = re.sub(r"<[^>]+>", "", context.get("title", ""))
    context["course_title"] = title if pagename != app.config.root_doc else app.config.html_title
    first = next(doctree.findall(nodes.paragraph), None) if doctree is not None else None
    text = " ".join(first.astext().split()) if first is not None else app.config.course_description
    context["course_description"] = text if len(text) <= 200 else text[:199].rsplit(" ", 1)[0] + " …"
    context["course_head_script"] = app.course_head_script  # type: ignore[attr-defined]
    names = [(script, str(getattr(script, "filename", "") or "")) for script in context.get("script_files", [])]
    context["script_files"] = [script for script, name in names if any(ours in name for ours in OUR_SCRIPTS)]


def _read_head_script(app: Sphinx) -> None:
    file = Path(app.srcdir) / "_assets" / "course" / "head.js"
    app.course_head_script = file.read_text("utf-8").strip() if file.exists() else ""  # type: ignore[attr-defined]


def _page_for_lost_readers(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "404", {}, "404.html"


def _leave_word_at_old_addresses(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    for old, new in MOVED.items():
        target = f"{Path(new).name}.html"
        (Path(app.outdir) / f"{old}.html").write_text(
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8" /><title>This page has moved</title>'
            f'<meta http-equiv="refresh" content="0; url={target}"></head>'
            f'<body><main><p>This page has moved to <a href="{target}">another address</a>.</p></main></body></html>\n',
            "utf-8",
        )


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", _leave_word_at_old_addresses)
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it even where sphinx-comments is not used
    app.add_js_file("course/site.js", type="module")
    app.connect("builder-inited", _read_head_script)
    app.connect("html-collect-pages", _page_for_lost_readers)
    app.connect("html-page-context", _describe, priority=950)
    app.connect("html-page-context", _prepare_images)
    app.connect("html-page-context", _add_lesson_tools, priority=600)
    app.connect("html-page-context", _add_source_line, priority=900)
    app.add_config_value("course_lab", "http://localhost:8888/lab/tree/", "html")
    app.add_config_value("course_description", "", "html")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
