"""Sphinx extension: interactive figures on a page, by directive and from the cells of lessons; numbers that follow
the reader's GPU.

    ```{interactive} roofline
    batch: 32
    ```

gives the same figure as `RooflineExplorer(batch=32)` in a notebook. Both leave a `div` with the start state; here the
worked figure inside is drawn for that state (in Node, by the figure's own module), and the page gets the host script
that brings it to life. `` {gpu}`decode_tokens_per_second(weight_bytes(llama_3_8b.n_params, 16), gpu.bandwidth), .1f` ``
is a number that follows the choice of GPU: computed here for every GPU, the page's script only picks.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

import interactives.base as figures
from interactives.explorers import FIGURES
from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

logger = logging.getLogger(__name__)
PLACE = re.compile(
    r'(<div class="interactive" data-interactive="([\w-]+)" data-state="([^"]*)">)(.*?)(<!-- /interactive --></div>)',
    re.DOTALL,
)
EXPORT = re.compile(r"export\s*\{[^}]*?([\w$]+) as default[^}]*\};?\s*$")
NEEDS_HOST = ("data-interactive=", "data-gpu-number=", "data-gpu-choice")


def classic(module: str, name: str) -> str:
    """A bundled module as a classic script, which a browser also loads from a file. ValueError for another shape."""
    found = EXPORT.search(module)
    if not found:
        raise ValueError(f"{name}.js does not end in the default export that a bundle ends in: npm run build")
    body = module[: found.start()]
    return f'(()=>{{{body}(globalThis.courseInteractives??={{}})["{name}"]={found[1]}}})();\n'


class InteractiveDirective(Directive):
    """The figure's name as the argument, what it starts with as YAML in the body."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in FIGURES:
            raise self.error(f"no interactive figure {name!r}; there are: {', '.join(sorted(FIGURES))}")
        settings = yaml.safe_load("\n".join(self.content)) or {}
        try:
            figure = FIGURES[name](**settings)
        except Exception as error:
            raise self.error(f"{name}: {error}") from error
        unknown = set(settings) - set(figure.start_state())
        if unknown:
            raise self.error(f"{name} has no setting {', '.join(sorted(unknown))}")
        page = figures.place(name, figure.start_state(), figure.paper())
        return [nodes.raw("", page, format="html")]


class GpuNumber(SphinxRole):
    """`expression, format`: the expression once for every GPU, the default's value in the text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        expression, _, form = self.text.rpartition(",")
        names = {name.replace("-", "_").replace(".", "_"): model for name, model in MODELS.items()}
        known = {**vars(arithmetic), **names, "Deployment": Deployment}
        try:
            values = {
                key: format(eval(expression, known | {"gpu": gpu}), form.strip())  # our own pages
                for key, gpu in GPUS.items()
            }
        except Exception as error:
            message = self.inliner.reporter.error(f"{{gpu}}`{self.text}`: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        data = html.escape(json.dumps(values, ensure_ascii=False))
        first = next(iter(values.values()))
        return [nodes.raw("", f'<span data-gpu-number="{data}">{first}</span>', format="html")], []


def _copy_scripts(app: Sphinx) -> None:
    target = Path(app.outdir) / "_static" / "interactives"
    target.mkdir(parents=True, exist_ok=True)
    for file in figures.STATIC.glob("*.js"):
        if file.stem == "lab":  # for JupyterLab alone
            continue
        module = file.read_text("utf-8")
        (target / file.name).write_text(module if file.stem == "host" else classic(module, file.stem), "utf-8")


def _node() -> str | None:
    beside_python = shutil.which("node", path=str(Path(sys.executable).parent))
    return os.environ.get("COURSE_NODE") or beside_python or shutil.which("node")


def _draw(wanted: list[dict[str, Any]]) -> list[str]:
    command = [str(_node()), str(figures.STATIC.parent / "draw_figures.mjs")]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True)
    if done.returncode:
        logger.warning("the worked figures could not be drawn: %s", done.stderr.strip()[-500:])
        return [""] * len(wanted)
    return json.loads(done.stdout)


def _finish_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    body = context.get("body", "")
    if not any(mark in body for mark in NEEDS_HOST):
        return
    app.add_js_file("interactives/host.js", loading_method="defer")
    found = PLACE.findall(body)
    wanted = [{"name": name, "state": json.loads(html.unescape(state))} for _, name, state, _, _ in found]
    drawn = iter(_draw(wanted) if wanted else [])

    def redraw(match: re.Match[str]) -> str:
        return f"{match[1]}{next(drawn) or match[4]}{match[5]}"

    context["body"] = PLACE.sub(redraw, body)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("interactive", InteractiveDirective)
    app.add_role("gpu", GpuNumber())
    app.connect("builder-inited", _copy_scripts)
    app.connect("html-page-context", _finish_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
