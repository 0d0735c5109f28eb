"""Short texts of quizzes: `code`, *emphasis*, **strong** and $simple maths$, as a tree that page and notebook draw.

A node is a string or [tag, child, ...]; the tags are those of TAGS and no others, so that a text can hold ' " < & and
show exactly that, and can never become markup. Maths is MathML, which browsers draw by themselves: letters, numbers,
operators, x^2, x_{ij}, \\frac, \\sqrt, \\text and the names of SYMBOLS.
"""

import re
from html import escape
from typing import Any

Node = str | list[Any]

TAGS = {"code", "em", "strong", "math", "mrow", "mi", "mn", "mo", "mtext", "msup", "msub", "msubsup", "mfrac", "msqrt"}
SYMBOLS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "sigma": "σ", "pi": "π"},
    **{"cdot": "·", "times": "×", "div": "÷", "pm": "±", "le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "to": "→"},
    **{"sum": "∑", "min": "min", "max": "max", "log": "log", "infty": "∞", "ldots": "…", "lfloor": "⌊", "rfloor": "⌋"},
    **{"lceil": "⌈", "rceil": "⌉", "%": "%", "{": "{", "}": "}", ",": "\u2009"},
}
LETTERS = {"alpha", "beta", "gamma", "epsilon", "lambda", "mu", "sigma", "pi", "infty", "min", "max", "log"}
SPAN = re.compile(r"(`[^`]+`|\$[^$\n]+\$|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*)")
TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\\[^A-Za-z]|\d+(?:[.,]\d+)*|[^\s])")


class RichTextError(ValueError):
    """A text uses something that is not in the small language; the message quotes it."""


def parse(text: str) -> list[Node]:
    """The nodes of one line of text. Raises RichTextError."""
    nodes: list[Node] = []
    for part in SPAN.split(re.sub(r"\s+", " ", text.strip())):
        if not part:
            continue
        if len(part) > 2 and part[0] == part[-1] == "`":
            nodes.append(["code", part[1:-1]])
        elif len(part) > 2 and part[0] == part[-1] == "$":
            nodes.append(_Maths(part[1:-1]).parse())
        elif len(part) > 4 and part.startswith("**") and part.endswith("**"):
            nodes.append(["strong", *parse(part[2:-2])])
        elif len(part) > 2 and part[0] == part[-1] == "*":
            nodes.append(["em", *parse(part[1:-1])])
        else:
            nodes.append(part)
    return nodes


def plain(nodes: list[Node]) -> str:
    """The words alone, for a place that shows no markup."""
    return "".join(node if isinstance(node, str) else _plain(node) for node in nodes)


def _plain(node: list[Any]) -> str:
    parts = [child if isinstance(child, str) else _plain(child) for child in node[1:]]
    if node[0] == "mfrac":
        return f"{parts[0]}/{parts[1]}"
    if node[0] in ("msup", "msub"):
        return ("^" if node[0] == "msup" else "_").join(parts)
    return "".join(parts)


def to_html(nodes: list[Node]) -> str:
    """HTML of the nodes; every text is escaped."""
    return "".join(escape(node) if isinstance(node, str) else _element(node) for node in nodes)


def _element(node: list[Any]) -> str:
    return f"<{node[0]}>{to_html(node[1:])}</{node[0]}>"


class _Maths:
    """A formula's tokens, read from left to right."""

    def __init__(self, latex: str) -> None:
        self.latex = latex
        self.tokens = TOKEN.findall(latex)

    def parse(self) -> Node:
        row = self.row(end=None)
        return ["math", *row]

    def fail(self, what: str) -> RichTextError:
        return RichTextError(f"${self.latex}$: {what}")

    def row(self, end: str | None) -> list[Node]:
        found: list[Node] = []
        while self.tokens:
            if self.tokens[0] == end:
                self.tokens.pop(0)
                return found
            found.append(self.scripted())
        if end is not None:
            raise self.fail(f"a {end} is missing")
        return found

    def scripted(self) -> Node:
        base = self.atom()
        scripts: dict[str, Node] = {}
        while self.tokens and self.tokens[0] in ("^", "_"):
            mark = self.tokens.pop(0)
            if mark in scripts:
                raise self.fail(f"two {mark} after each other")
            scripts[mark] = self.atom()
        if len(scripts) == 2:
            return ["msubsup", base, scripts["_"], scripts["^"]]
        for mark, tag in (("^", "msup"), ("_", "msub")):
            if mark in scripts:
                return [tag, base, scripts[mark]]
        return base

    def atom(self) -> Node:
        if not self.tokens:
            raise self.fail("it ends too early")
        token = self.tokens.pop(0)
        if token == "{":
            return ["mrow", *self.row("}")]
        if token in ("}", "^", "_"):
            raise self.fail(f"{token} has nothing to belong to")
        if token == "\\frac":
            return ["mfrac", self.atom(), self.atom()]
        if token == "\\sqrt":
            return ["msqrt", self.atom()]
        if token == "\\text":
            return ["mtext", self.words()]
        if token.startswith("\\"):
            name = token[1:]
            if name not in SYMBOLS:
                raise self.fail(f"{token} is not among the commands that quizzes know")
            return ["mi" if name in LETTERS else "mo", SYMBOLS[name]]
        if token[0].isdigit():
            return ["mn", token]
        return ["mi" if token.isalpha() else "mo", "−" if token == "-" else token]

    def words(self) -> str:
        """The text between braces, spaces kept."""
        start = self.latex.find("\\text{")
        end = self.latex.find("}", start)
        if start < 0 or end < 0:
            raise self.fail("\\text needs {words}")
        inner = self.latex[start + 6 : end]
        self.latex = self.latex[:start] + self.latex[end + 1 :]
        while self.tokens and self.tokens.pop(0) != "}":
            pass
        return inner
