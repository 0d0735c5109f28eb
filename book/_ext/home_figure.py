"""Sphinx extension: `{home-figure}`, the idea of the course as a drawing that moves.

All weights stream from memory past the arithmetic units, then a token drops out for each user, and all over again. The
numbers for every choice of bits, users and card are computed here by reference_impl; the page's script only picks.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from lesson_list import first_lines
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

MODEL = MODELS["llama-3-8b"]
CARDS = ("a100-80g", "generic-1tb", "h200")  # without the H100, which the first lesson's question is about
BITS = (16, 8, 4)
USERS = (1, 8, 32)
CONTEXT = 1000  # tokens of each user
UNITS = 64  # little squares that stand for the arithmetic of the chip


def numbers() -> dict[str, dict[str, Any]]:
    """For each 'card bits users': bytes of weights, time of a pass, tokens per second, idle share, lit squares."""
    found = {}
    for card in CARDS:
        for bits in BITS:
            deployment = Deployment(MODEL, GPUS[card], weight_bits=bits)
            for users in USERS:
                if deployment.max_sequences(CONTEXT) < users:
                    raise ValueError(f"{users} users of {CONTEXT} tokens do not fit a {GPUS[card].name} at {bits} bits")
                step = deployment.step(users, CONTEXT)
                busy = step.compute_seconds / step.seconds
                found[f"{card} {bits} {users}"] = {
                    "weights": f"{deployment.weight_bytes / 1e9:.1f} GB",
                    "ms": round(1e3 * step.seconds, 3),
                    "tokens": f"{step.tokens_per_second:,.0f}",
                    "idle": f"{1 - busy:.1%}",
                    "lit": max(1, round(UNITS * busy)),
                }
    return found


def _units() -> str:
    squares = []
    for number in range(UNITS):
        row, column = divmod(number, 8)
        squares.append(f'<rect class="unit" x="{434 + 16 * column}" y="{54 + 16 * row}" width="12" height="12"/>')
    return "".join(squares)


def _drawing(first: dict[str, Any]) -> str:
    tokens = "".join(f'<circle class="token" cx="600" cy="{63 + 15 * n}" r="6"/>' for n in range(8))
    return (
        '<svg viewBox="0 0 640 240" role="img" aria-label="All weights stream from memory past the arithmetic units; '
        'then one token for each user drops out, and the weights are read again.">'
        '<rect class="block" x="10" y="40" width="150" height="150" rx="6"/>'
        '<rect class="weights" x="16" y="46" width="138" height="138" rx="3"/>'
        '<line class="channel" x1="160" y1="115" x2="420" y2="115"/>'
        '<line class="flow" x1="162" y1="115" x2="420" y2="115"/>'
        f'<rect class="block" x="420" y="40" width="150" height="150" rx="6"/>{_units()}{tokens}'
        '<text class="left" x="10" y="26">'
        f'memory: <tspan data-home="weights">{first["weights"]}</tspan> of weights</text>'
        '<text x="290" y="92">every weight,</text><text x="290" y="150">for every token</text>'
        '<text x="495" y="26">arithmetic units</text>'
        '<text class="right" x="636" y="216" data-home="out">1 token</text></svg>'
    )


def _choice(name: str, label: str, options: list[tuple[str, str]]) -> str:
    items = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options)
    return f'<label>{label} <select name="{name}">{items}</select></label>'


class HomeFigure(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        data = numbers()
        first = next(iter(data.values()))
        controls = (
            _choice("bits", "Bits a weight", [(str(bits), str(bits)) for bits in BITS])
            + _choice("users", "Users at once", [(str(users), str(users)) for users in USERS])
            + _choice("card", "Card", [(card, GPUS[card].name) for card in CARDS])
        )
        html = (
            f'<figure class="home-figure" data-numbers="{escape(json.dumps(data))}">{_drawing(first)}'
            f'<div class="home-numbers" role="status"><p><b data-home="tokens">{first["tokens"]}</b> '
            "tokens per second</p>"
            f'<p><b data-home="idle">{first["idle"]}</b> of the arithmetic is idle</p></div>'
            f'<form class="home-controls d-print-none">{controls}<button type="button">Pause</button></form>'
            f"<figcaption>Llama 3 8B, {CONTEXT:,} tokens of context for each user, 500 times slower than in reality. "
            "Computed from the cards\u2019 data sheets: no program that reads every weight for each token is faster."
            "</figcaption></figure>"
        )
        return [nodes.raw("", html, format="html")]


class StartHere(SphinxDirective):
    """The link into the course: the first lesson, or the one at which a returning reader stopped."""

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / "notebooks"
        lessons = sorted(file.stem for file in folder.glob("[0-9]*.ipynb"))
        _, time = first_lines(folder / f"{lessons[0]}.ipynb")
        html = (
            f'<p class="home-start"><a class="start" href="notebooks/{lessons[0]}.html" '
            f'data-lessons="{escape(json.dumps(lessons))}">Start lesson {int(lessons[0][:2])}</a> '
            f"<span>{escape(time.capitalize())}. You need a browser: no GPU, no account.</span></p>"
        )
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("home-figure", HomeFigure)
    app.add_directive("start-here", StartHere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
