"""An extension of the Jupyter server that shows the built site at /course-site/, beside JupyterLab and offline.

`interactives/lab/learner` turns it on. Without a built site the address answers 404, and the launcher offers no card.
"""

from pathlib import Path
from typing import Any

from tornado.web import StaticFileHandler

SITE = Path(__file__).parents[1] / "book" / "_build" / "html"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "interactives.site_server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the address. It takes no token: the site holds nothing that is not public."""
    base = app.web_app.settings["base_url"]
    files = {"path": str(SITE), "default_filename": "index.html"}
    app.web_app.add_handlers(".*$", [(f"{base}course-site/(.*)", StaticFileHandler, files)])
