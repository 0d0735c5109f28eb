"""The base of every interactive figure: one ES module, a few traits, and a form for paper.

The same module draws in JupyterLab, where anywidget gives it a model object tied to the kernel, and on a page without a
kernel, where `static/host.js` gives it a model object tied to the address. A cell's output therefore carries both: the
widget view, and a `div` with the start state around a worked figure and its table. Readers without scripts, and paper,
get the worked figure.
"""

import json
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from reference_impl.bounds.hardware import GPUS

STATIC = Path(__file__).parent / "static"


def script(name: str) -> str:
    """The bundled module of one figure: `npm run build` in this folder makes it, and it is kept with the sources."""
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


def still(name: str) -> str:
    """The worked figure with its sentence and table as HTML, for the figure's default state; '' if there is none."""
    file = STATIC / f"{name}.html"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def place(name: str, state: dict[str, Any], paper: str) -> str:
    """The `div` that the page's host brings to life; `paper` is what it holds until then.

    book/_ext/interactives.py finds it by the comment at its end and draws `paper` anew for this very state.
    """
    data = escape(json.dumps(state, ensure_ascii=False))
    opening = f'<div class="interactive" data-interactive="{escape(name)}" data-state="{data}">'
    return f"{opening}{paper}<!-- /interactive --></div>"


class Interactive(anywidget.AnyWidget):
    """Base of all figures. A subclass names its module and tags the traits that make its start state `state=True`."""

    _figure: ClassVar[str] = ""  # static/NAME.js
    _esm = ""

    def start_state(self) -> dict[str, Any]:
        """The traits that the figure starts with."""
        return {name: getattr(self, name) for name in self.trait_names(state=True)}

    def paper(self) -> str:
        """HTML for a page without scripts."""
        return still(self._figure)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        settings = ", ".join(f"{name}={value!r}" for name, value in self.start_state().items())
        page = place(self._figure, self.start_state(), self.paper())
        return {**bundle, "text/plain": f"{type(self).__name__}({settings})", "text/html": page}, metadata


class Explorer(Interactive):
    """A figure with sliders. `ask=False` leaves its question out; `gpu` is the start, the learner's own choice wins."""

    ask = traitlets.Bool(True).tag(sync=True, state=True)
    start = traitlets.Dict().tag(sync=True)  # what the figure asks about, whatever the learner has moved since

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.start = self.start_state()


class GpuExplorer(Explorer):
    """A figure whose numbers depend on the GPU: a key of `bounds.hardware.GPUS`, or '' for the learner's."""

    gpu = traitlets.Enum(["", *GPUS], "").tag(sync=True, state=True)
