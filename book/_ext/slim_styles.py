"""Sphinx extension: one style sheet for the site, with the rules and icons that its pages use and no others.

The theme and its extensions bring eleven sheets, nine tenths of which no page uses, and 1.5 MB of JavaScript for a
dozen icons. Once the pages are written, this cuts the icon font down to the icons in use, joins the sheets into one
(styles.mjs, with PurgeCSS), and lets every page load that one. Font Awesome Free: font SIL OFL 1.1, icons CC BY 4.0.
"""

import hashlib
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path

from fontTools import subset
from sphinx.application import Sphinx

ICON_RULE = re.compile(r'((?:\.fa-[\w-]+:{1,2}before,?)+)\{content:"((?:\\[0-9a-f]+|[^"\\])+)"\}')
FONT_FACE = re.compile(r"@font-face\{[^}]*fontawesome[^}]*\}")
LINK = re.compile(r'<link\b[^>]*\brel="stylesheet"[^>]*>')
ONE_SHEET = "_static/site.css"
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


def _pages(site: Path) -> list[Path]:
    return sorted(file for file in site.rglob("*.html") if "_static" not in file.relative_to(site).parts)


def _sheets(page: Path, site: Path) -> list[str]:
    """The style sheets that a page loads, as paths within the site, in order."""
    found = [re.search(r'href="([^"?]+)', tag) for tag in LINK.findall(page.read_text("utf-8"))]
    return [(page.parent / one[1]).resolve().relative_to(site.resolve()).as_posix() for one in found if one]


def join_sheets(site: Path, node: str, modules: str) -> None:
    """Give all pages one style sheet in place of those that they load. Raises RuntimeError, with Node's own words."""
    pages = _pages(site)
    sheets = list(dict.fromkeys(sheet for page in pages for sheet in _sheets(page, site)))
    if not sheets:
        return
    script = Path(__file__).with_name("styles.mjs")
    done = subprocess.run([node, str(script), modules, str(site), ONE_SHEET, *sheets], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the style sheets cannot be joined: {done.stderr.strip()[-500:]}")
    digest = hashlib.sha256((site / ONE_SHEET).read_bytes()).hexdigest()[:8]
    for page in pages:
        up = "../" * (len(page.relative_to(site).parts) - 1)
        one = f'<link rel="stylesheet" href="{up}{ONE_SHEET}?v={digest}" />'
        text, n = LINK.subn(lambda _: "\0", page.read_text("utf-8"))
        if n:
            page.write_text(text.replace("\0", one, 1).replace("\0", ""), "utf-8")
    for sheet in sheets:
        (site / sheet).unlink()


def _slim_finished(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        site = Path(app.outdir)
        slim(site)
        join_sheets(site, os.environ.get("COURSE_NODE", "node"), os.environ.get("COURSE_NODE_MODULES", "node_modules"))


def setup(app: Sphinx) -> dict:
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it narrates every table
    app.connect("build-finished", _slim_finished, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
