"""Sphinx extension of the site: under each page, the file that it comes from and the licence."""

from html import escape
from typing import Any

from sphinx.application import Sphinx


def _add_source_line(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    licence = (
        f"<p>© {app.config.copyright}, {escape(app.config.author)}. "
        "Text and figures: CC BY 4.0. Code: BSD-3-Clause.</p>"
    )
    source = ""
    if doctree is not None:  # the search page comes from no file of ours
        file = app.env.doc2path(pagename, base=False)
        lesson = file.endswith(".ipynb")
        where = file if lesson else f"book/{file}"
        link = f'<a href="{context["pathto"]("_sources/" + file, 1)}"><code>{escape(where)}</code></a>'
        how = ", run from its first cell when this site was built" if lesson else ""
        source = f"<p>Source of this page: {link}{how}.</p>"
    context["theme_extra_footer"] = source + licence


def setup(app: Sphinx) -> dict:
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it even where sphinx-comments is not used
    app.connect("html-page-context", _add_source_line, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
