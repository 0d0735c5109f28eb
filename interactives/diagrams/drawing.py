"""The drawing helper of the lessons' diagrams: shapes and words in, one SVG with a title, a description, a caption out.

    drawing = Drawing("two-bars", height=80)
    drawing.bar(10, 20, 200, 24, "memory")
    drawing.text(10, 14, "weights: 16.06 GB")
    drawing.finish("Two bars", "The first bar ...", see="The longer bar is ...", source="Numbers: ...")

A drawing is 360 units wide and its words are at least 13 high, so that they can be read on a phone 360 pixels wide.
Colours have names, the same as on the site: "memory" for bytes, "arithmetic" for work, "draft" for guesses, "waste"
for what is reserved or idle (hatched), "ink", "soft" and "paper" for the rest. They are the site's CSS variables with
fall-backs, so that a diagram looks right in JupyterLab too. Words stand on paper or on a tint, never on a full colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

Colour = Literal["memory", "arithmetic", "draft", "waste", "ink", "soft", "paper"]
Anchor = Literal["start", "middle", "end"]

WIDTH = 360
SIZE = 13  # of words: on a phone the drawing is about 310 pixels wide, which makes them 11 pixels high

_INK = "var(--ink, var(--jp-content-font-color1, #1d1e20))"
_SOFT = "var(--ink-soft, var(--jp-content-font-color2, #585f66))"
_COLOURS = {
    "memory": "var(--memory, #0072b2)",
    "arithmetic": "var(--arithmetic, #d55e00)",
    "draft": "var(--speculation, #97437a)",
    "waste": "var(--waste, #767676)",
    "ink": _INK,
    "soft": _SOFT,
    "paper": "var(--paper, var(--jp-layout-color0, #fff))",
}
_STYLE = (
    "<style>"
    ".diagram{margin:1.2rem 0;max-width:30rem;break-inside:avoid}"
    ".diagram svg{display:block;width:100%;height:auto;print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    ".diagram text{font-family:var(--face-tools,system-ui,sans-serif);font-variant-numeric:tabular-nums}"
    f".diagram figcaption{{margin-top:.5rem;font-size:.95rem;line-height:1.45;color:{_SOFT}}}"
    "</style>"
)


@dataclass(frozen=True)
class Diagram:
    """A finished drawing. JupyterLab and the site show it as HTML, a terminal as its description."""

    name: str
    title: str
    description: str
    see: str  # the caption's first sentence: what to look at
    source: str  # and its last: where the numbers come from
    svg: str

    def __repr__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        caption = f"{escape(self.see)} <small>{escape(self.source)}</small>"
        html = f'{_STYLE}<figure class="diagram">{self.svg}<figcaption>{caption}</figcaption></figure>'
        return {"text/html": html, "text/plain": repr(self)}


@dataclass
class Drawing:
    """Shapes in the order in which they are drawn. `name`: words with hyphens, the diagram's own on a page."""

    name: str
    height: float
    shapes: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: str, anchor: Anchor = "start", *, size: float = SIZE, bold: bool = False,
        colour: Colour = "ink",
    ) -> None:  # fmt: skip
        """Words with their baseline's start, middle or end at (x, y). ValueError where they are too small to read."""
        if size < SIZE:
            raise ValueError(f"{self.name}: {words!r} would be {size} high, and words are at least {SIZE}")
        weight = ' font-weight="650"' if bold else ""
        place = f'x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"{weight}'
        self.shapes.append(f'<text {place} style="fill:{_COLOURS[colour]}">{escape(words)}</text>')

    def lines(self, x: float, y: float, lines: Sequence[str], anchor: Anchor = "start", colour: Colour = "ink") -> None:
        """Several lines of words, the first with its baseline at `y`."""
        for i, words in enumerate(lines):
            self.text(x, y + 17 * i, words, anchor, colour=colour)

    def bar(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """A filled rectangle, hatched for waste. Its words stand beside it."""
        hatched = f"fill:url(#{self.name}-hatch);stroke:{_COLOURS[colour]};stroke-width:.7"
        self._rect(x, y, width, height, 0, hatched if colour == "waste" else f"fill:{_COLOURS[colour]}")

    def box(
        self, x: float, y: float, width: float, height: float, colour: Colour = "soft", dashed: bool = False
    ) -> None:
        """A frame with a light tint, on which words can stand; dashed and empty for what may come."""
        dash = ";stroke-dasharray:4 3;fill-opacity:0" if dashed else ";fill-opacity:.14"
        style = f"fill:{_COLOURS[colour]};stroke:{_COLOURS[colour]};stroke-width:1.2{dash}"
        self._rect(x, y, width, height, 3, style)

    def label(
        self, x: float, y: float, width: float, height: float, words: str, colour: Colour = "soft", bold: bool = False
    ) -> None:
        """A box with one line of words in its middle."""
        self.box(x, y, width, height, colour)
        self.text(x + width / 2, y + height / 2 + 4.5, words, "middle", bold=bold)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: Colour = "soft", *, width: float = 1.2,
        arrow: bool = False, dashed: bool = False,
    ) -> None:  # fmt: skip
        """A straight line, with a head at (x2, y2) if it is an arrow."""
        self.path(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", colour, width=width, arrow=arrow, dashed=dashed)

    def path(
        self, d: str, colour: Colour = "soft", *, width: float = 1.2, arrow: bool = False, dashed: bool = False
    ) -> None:
        """A line along the SVG path `d`."""
        end = f' marker-end="url(#{self.name}-head)"' if arrow else ""
        dash = ";stroke-dasharray:4 3" if dashed else ""
        style = f"fill:none;stroke:{_COLOURS[colour]};stroke-width:{width:g}{dash}"
        self.shapes.append(f'<path d="{d}"{end} style="{style}"/>')

    def area(self, points: Sequence[tuple[float, float]], colour: Colour) -> None:
        """A tinted polygon with an outline."""
        listed = " ".join(f"{x:g},{y:g}" for x, y in points)
        style = f"fill:{_COLOURS[colour]};fill-opacity:.25;stroke:{_COLOURS[colour]};stroke-width:1.2"
        self.shapes.append(f'<polygon points="{listed}" style="{style}"/>')

    def dot(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """A filled circle."""
        self.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" style="fill:{_COLOURS[colour]}"/>')

    def finish(self, title: str, description: str, *, see: str, source: str) -> Diagram:
        """The diagram. `description` says in words what the drawing shows, for readers who do not see it."""
        name = self.name
        lattice = 'width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"'
        stripe = f'<path d="M0 0V5" style="stroke:{_COLOURS["waste"]};stroke-width:2.4"/>'
        hatch = f'<pattern id="{name}-hatch" {lattice}>{stripe}</pattern>'
        head = (
            f'<marker id="{name}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:{_SOFT}"/></marker>'
        )
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" role="img" '
            f'aria-labelledby="{name}-title {name}-description">'
            f'<title id="{name}-title">{escape(title)}</title>'
            f'<desc id="{name}-description">{escape(description)}</desc>'
            f"<defs>{hatch}{head}</defs>{''.join(self.shapes)}</svg>"
        )
        return Diagram(name, title, description, see, source, svg)

    def _rect(self, x: float, y: float, width: float, height: float, rounded: float, style: str) -> None:
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{rounded:g}" style="{style}"/>'
        )
