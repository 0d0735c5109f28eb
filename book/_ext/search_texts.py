"""Sphinx extension: the texts that the site's search (site/search.js) looks through, one entry for each section.

The texts are read from the finished pages, so that numbers computed at build time and the outputs of lessons are found
too. Contents lists, buttons and the parts of a formula that repeat it for other readers are left out.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

TEXTS = "searchtext.json"
LEFT_OUT = (
    "script, style, noscript, .headerlink, .katex-html, annotation, nav, .lesson-tools, .discussion, .model-answer, svg"
)
NOT_SEARCHED = {"search.html", "404.html"}


def _words(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def sections(html: str, page: str) -> Iterator[dict[str, str]]:
    """Each section of a page: {page, anchor, title, heading, text}, its subsections left to themselves."""
    article = BeautifulSoup(html, "html.parser").find("article")
    if not isinstance(article, Tag):
        return
    for part in article.select(LEFT_OUT):
        part.decompose()
    first = article.find("h1")
    title = _words(first) if isinstance(first, Tag) else page
    # The innermost sections first: what is taken out of a section does not count for the one around it.
    for section in reversed(article.find_all("section")):
        heading = section.find(["h1", "h2", "h3", "h4", "h5"])
        name = _words(heading.extract()) if isinstance(heading, Tag) else title
        anchor = "" if name == title else str(section.get("id", ""))
        yield {"page": page, "anchor": anchor, "title": title, "heading": name, "text": _words(section)}
        section.decompose()


def write_texts(site: Path) -> None:
    """Write searchtext.json for a built site."""
    found = []
    for file in sorted(site.rglob("*.html")):
        page = file.relative_to(site).as_posix()
        if not page.startswith("_static/") and page not in NOT_SEARCHED:
            found += list(sections(file.read_text("utf-8"), page))[::-1]
    (site / TEXTS).write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), "utf-8")


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        write_texts(Path(app.outdir))
        (Path(app.outdir) / "searchindex.js").unlink(missing_ok=True)


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", _write, priority=940)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
