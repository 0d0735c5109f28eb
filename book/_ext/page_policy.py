"""Sphinx extension: a content security policy for each page, and the list of files that the service worker keeps.

Each page gets a content security policy that allows its own site and the inline scripts that it has (by their digest),
and the service worker learns which files make the book. A discussion on another host, where the site is configured for
one, is the only exception.
"""

import base64
import hashlib
import json
import re
from pathlib import Path

from sphinx.application import Sphinx

INLINE = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.S)
ACCESSIBLE = {  # what the theme and its extensions tell screen readers wrongly
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<summary><span class="toctree-toggle" role="presentation">': (
        '<summary aria-label="Pages below"><span class="toctree-toggle">'
    ),
    '<th class="head"><p></p></th>': "<td></td>",  # a corner of a table heads nothing
    '<div id="pst-primary-sidebar"': '<div role="complementary" aria-label="The course" id="pst-primary-sidebar"',
}
GISCUS = "https://giscus.app"
PYTHON = "_static/course/pyodide/"
NOT_KEPT = (
    "_sources/",
    PYTHON,
    "_static/locales/",
    "_static/images/",
    "sw.js",
    ".buildinfo",
    "objects.inv",
)


def policy(html: str, other_host: str = "") -> str:
    """The content security policy of one page."""
    digests = sorted(
        {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in INLINE.findall(html)}
    )
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests), other_host]).strip()
    frames = other_host or "'none'"
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline' {other_host}".rstrip()
        + f"; img-src 'self' data:; font-src 'self' data:; worker-src 'self'; connect-src 'self'; frame-src {frames}"
        + "; object-src 'none'; base-uri 'self'; form-action 'self'"
    )


def finish(html: str, other_host: str = "") -> str:
    """The HTML of a page with its policy, and with names where the theme leaves them out."""
    for wrong, right in ACCESSIBLE.items():
        html = html.replace(wrong, right)
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy(html, other_host)}">'
    return html.replace('<meta charset="utf-8" />', f'<meta charset="utf-8" />\n    {tag}', 1)


def book_files(site: Path) -> tuple[list[str], list[str]]:
    """List the files that the service worker keeps at once, and those of Python, kept after their first use."""
    names = sorted(file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file())
    return (
        [name for name in names if not name.startswith(NOT_KEPT)],
        [name for name in names if name.startswith(PYTHON)],
    )


def _digest(site: Path, names: list[str]) -> str:
    found = hashlib.sha256()
    for name in names:
        found.update(name.encode() + (site / name).read_bytes())
    return found.hexdigest()[:16]


def _finish_all(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    other_host = GISCUS if app.config.course_discussion.get("server") == "giscus" else ""
    for file in site.rglob("*.html"):
        if "_static" not in file.relative_to(site).parts:
            file.write_text(finish(file.read_text("utf-8"), other_host), "utf-8")
    worker = Path(app.srcdir) / "_sw.js"
    if worker.exists():
        pages, python = book_files(site)
        text = worker.read_text("utf-8")
        text = text.replace("__VERSION__", _digest(site, pages)).replace("__PYTHON_VERSION__", _digest(site, python))
        text = text.replace("__FILES__", json.dumps(pages)).replace("__PYTHON_FILES__", json.dumps(python))
        (site / "sw.js").write_text(text, "utf-8")


def setup(app: Sphinx) -> dict:
    app.add_config_value("course_discussion", {"server": "off"}, "html")
    app.connect("build-finished", _finish_all, priority=950)  # after slim_styles, which changes files too
    return {"parallel_read_safe": True, "parallel_write_safe": True}
