"""Sphinx extension: the theme's icons without Font Awesome's script and without the 2,000 icons that no page shows.

The theme ships 1.5 MB of JavaScript to draw a dozen icons that its own style sheet and font could draw. The template
_templates/static/webpack-macros.html leaves the script out; this extension, once the pages are written, cuts font and
style sheet down to the icons in use. Font Awesome Free: font SIL OFL 1.1, icons CC BY 4.0.
"""

import logging
import re
import shutil
from pathlib import Path

from fontTools import subset
from sphinx.application import Sphinx

ICON_RULE = re.compile(r'((?:\.fa-[\w-]+:{1,2}before,?)+)\{content:"((?:\\[0-9a-f]+|[^"\\])+)"\}')
FONT_FACE = re.compile(r"@font-face\{[^}]*fontawesome[^}]*\}")
PRIVATE_USE = re.compile("[\ue000-\uf8ff]")


def _icon_names(site: Path) -> set[str]:
    """Every fa-... class that a page or a script of the site mentions."""
    files = [*site.rglob("*.html"), *(site / "_static").rglob("*.js")]
    return {name for file in files for name in re.findall(r"\bfa-[a-z0-9-]+", file.read_text("utf-8"))}


def _code(content: str) -> int:
    return int(content[1:], 16) if content.startswith("\\") else ord(content)


def slim(site: Path) -> None:
    """Cut the icon font and the style sheet of the built site; safe to call on a site without Font Awesome."""
    static = site / "_static"
    style_sheet = static / "styles" / "pydata-sphinx-theme.css"
    fonts = static / "vendor" / "fontawesome" / "webfonts"
    solid = fonts / "fa-solid-900.ttf"
    if not (style_sheet.exists() and solid.exists()):
        return
    for file in (static / "scripts").glob("fontawesome.js*"):
        file.unlink()
    for file in static.rglob("*.map"):
        file.unlink()

    used, css = _icon_names(site), style_sheet.read_text("utf-8")
    codes = {0x20}

    def keep_used(rule: re.Match[str]) -> str:
        selectors = [s for s in rule[1].rstrip(",").split(",") if s.split(":")[0][1:] in used]
        if not selectors:
            return ""
        codes.add(_code(rule[2]))
        return f'{",".join(selectors)}{{content:"{rule[2]}"}}'

    css = ICON_RULE.sub(keep_used, css)
    for sheet in (css, *(f.read_text("utf-8") for f in static.rglob("*.css") if f != style_sheet)):
        codes |= {ord(char) for char in PRIVATE_USE.findall(sheet)}
        codes |= {int(code, 16) for code in re.findall(r'content:"\\(f[0-9a-f]{3})"', sheet)}

    font = subset.load_font(str(solid), subset.Options(flavor="woff"))
    cutter = subset.Subsetter()
    cutter.populate(unicodes=codes)
    cutter.subset(font)
    font.flavor = "woff"
    icons = static / "styles" / "icons.woff"
    font.save(icons)
    face = (
        '@font-face{font-display:block;font-family:"Font Awesome 6 Free";font-style:normal;font-weight:900;'
        'src:url(icons.woff) format("woff")}'
    )
    style_sheet.write_text(FONT_FACE.sub("", css) + face, "utf-8")
    shutil.rmtree(fonts.parent)


def _slim_finished(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        slim(Path(app.outdir))


def setup(app: Sphinx) -> dict:
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it narrates every table
    app.connect("build-finished", _slim_finished, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
