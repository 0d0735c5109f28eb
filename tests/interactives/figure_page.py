"""A plain page with all figures, as the site hosts them: what the browser tests open instead of the whole site."""

import sys
from pathlib import Path

from interactives.base import STATIC
from interactives.explorers import FIGURES

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))
from course_interactives import classic  # noqa: E402


def write_page(folder: Path, names: list[str] | None = None, **settings: dict) -> Path:
    """folder/index.html with these figures (all of them by default), each with the settings under its name."""
    for file in STATIC.glob("*.js"):
        if file.stem == "lab":
            continue
        text = file.read_text("utf-8")
        (folder / file.name).write_text(text if file.stem == "host" else classic(text, file.stem), "utf-8")
    bodies = []
    for name in names or list(FIGURES):
        data, _ = FIGURES[name](**settings.get(name, {}))._repr_mimebundle_()
        bodies.append(f"<section><h2>{name}</h2>{data['text/html']}</section>")
    page = folder / "index.html"
    page.write_text(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Figures</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        "<style>body{margin:0 auto;padding:0 8px;max-width:760px;font:16px/1.5 system-ui}legend{color:red}"
        "html[data-theme=dark] body{background:#121212;color:#ddd}</style></head>"
        f'<body><main><h1>Figures</h1><p>Bound: <span data-gpu-number=\'{{"h100-sxm":"208.6","h200":"298.9"}}\'>'
        f'208.6</span></p>{"".join(bodies)}</main><script src="host.js" defer></script></body></html>',
        "utf-8",
    )
    return page
