"""Sphinx extension: formulas rendered by KaTeX while the site is built, so that a page needs no script to show them.

One Node.js process (katex_lines.cjs) answers for the whole build. A formula that KaTeX refuses is a warning that names
the page and the line, and warnings fail the build. Style sheet, fonts and renderer are of one version, the npm
package's. (sphinxcontrib-katex renders at build time too, but bundles another version, shows a bad formula in red
without a word, and its server can outlive the build.)
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)


class KatexError(Exception):
    """KaTeX's own words about a formula."""


class Katex:
    """The renderer; `start` is called on first use, `stop` when the build is over."""

    def __init__(self, node: str, library: str) -> None:
        self.command = [node, str(Path(__file__).with_name("katex_lines.cjs")), library]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")

    def render(self, latex: str, display: bool) -> str:
        """HTML with MathML inside, for screen readers. Raises KatexError."""
        self.process = self.process or self.start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"latex": latex, "display": display}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise KatexError(f"the renderer ended; run it by hand: {' '.join(self.command)}")
        answer = json.loads(line)
        if "error" in answer:
            raise KatexError(answer["error"])
        return answer["html"]

    def stop(self) -> None:
        if self.process is not None:
            self.process.communicate()  # closes its input, which ends it
            self.process = None


def _render(translator: Any, node: nodes.Element, display: bool) -> str:
    try:
        return translator.builder.app.katex.render(node.astext(), display)
    except KatexError as error:
        logger.warning("%s", error, location=node, type="katex")
        raise nodes.SkipNode from error


def visit_inline(self: Any, node: nodes.Element) -> None:
    formula = self.starttag(node, "span", "", CLASS="math") + _render(self, node, display=False) + "</span>"
    mark = node.get("mark")
    self.body.append(f'<span class="math-and-mark">{formula}{mark}</span>' if mark else formula)
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.Element) -> None:
    html = _render(self, node, display=True)
    self.body.append(self.starttag(node, "div", "", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(html + "</div>\n")
    raise nodes.SkipNode


class KeepMarks(SphinxPostTransform):
    """Ties a punctuation mark to the short formula before it; browsers would start a line with the mark."""

    default_priority = 500
    builders = ("html",)

    def run(self, **kwargs: Any) -> None:
        for formula in self.document.findall(nodes.math):
            after = formula.next_node(descend=False, siblings=True)
            if isinstance(after, nodes.Text) and after[:1] in tuple(".,;:!?)") and len(formula.astext()) < 40:
                formula["mark"] = str(after[0])
                after.parent.replace(after, nodes.Text(after[1:]))


def _start(app: Sphinx) -> None:
    # build.py knows where its packages are; a build by hand takes what it finds.
    node, modules = os.environ.get("COURSE_NODE", "node"), os.environ.get("COURSE_NODE_MODULES", "")
    app.katex = Katex(node, os.path.join(modules, "katex"))  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict:
    app.add_html_math_renderer("katex", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.add_css_file("katex/katex.min.css", priority=300)
    app.add_post_transform(KeepMarks)
    app.connect("builder-inited", _start)
    app.connect("build-finished", lambda app, exception: app.katex.stop())
    return {"parallel_read_safe": True, "parallel_write_safe": False}
