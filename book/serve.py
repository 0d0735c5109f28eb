"""Serve the built site, compressed and with the right types, and the discussion under each lesson beside it.

    python book/serve.py                       # http://localhost:8000, discussion at /isso/, kept in work/discussion
    python book/serve.py --no-discussion
    python book/serve.py --host 0.0.0.0 --port 80 --origin https://serving.example.edu --database /srv/comments.db

One process: waitress serves the files and, under isso/, Isso (comments in SQLite). With --prefix /course all of it lies
below a sub-path. Posts wait for a moderator at isso/admin/, whose password is $COURSE_MODERATOR or one that is made up
and printed. Exit status 2 and one line on standard error for bad input.
"""

import argparse
import gzip
import hashlib
import logging
import mimetypes
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

HERE = Path(__file__).resolve().parent
TYPES = {
    **{".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"},
    **{".json": "application/json", ".ipynb": "application/x-ipynb+json", ".wasm": "application/wasm"},
    **{".svg": "image/svg+xml", ".woff2": "font/woff2", ".woff": "font/woff", ".md": "text/markdown"},
}
COMPRESSED = {".html", ".js", ".mjs", ".css", ".json", ".ipynb", ".wasm", ".svg", ".md", ".txt", ".inv"}
TEXT = ("text/", "application/json", "application/x-ipynb", "image/svg")
Start = Callable[..., Any]


class Files:
    """A WSGI application for a folder: GET and HEAD, ETag, gzip (compressed once, kept in memory)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.packed: dict[str, bytes] = {}

    def __call__(self, environ: dict, start: Start) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _plain(start, "405 Method Not Allowed", "only GET and HEAD", [("Allow", "GET, HEAD")])
        file = self.find(environ.get("PATH_INFO", "/"))
        if file is None:
            return self.lost(start)
        kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        charset = "; charset=utf-8" if kind.startswith(TEXT) else ""
        status = file.stat()
        tag = hashlib.sha256(f"{file}{status.st_size}{status.st_mtime_ns}".encode()).hexdigest()[:20]
        headers = [
            ("Content-Type", kind + charset),
            ("ETag", f'W/"{tag}"'),
            ("Last-Modified", formatdate(status.st_mtime, usegmt=True)),
            ("Cache-Control", "no-cache"),  # kept, but asked for: a page is never older than its server
            ("Vary", "Accept-Encoding"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ]
        if tag in environ.get("HTTP_IF_NONE_MATCH", ""):
            start("304 Not Modified", headers)
            return []
        body = file.read_bytes()
        if file.suffix in COMPRESSED and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            body = self.packed.get(tag) or self.packed.setdefault(tag, gzip.compress(body, 6))
            headers.append(("Content-Encoding", "gzip"))
        start("200 OK", [*headers, ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def lost(self, start: Start) -> list[bytes]:
        """The site's own page for an address that leads nowhere, which finds the way back by itself."""
        page = self.folder / "404.html"
        if not page.is_file():
            return _plain(start, "404 Not Found", "there is no such page")
        body = page.read_bytes()
        start("404 Not Found", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    def find(self, path: str) -> Path | None:
        """The file for an address, or None; nothing outside the folder is ever found."""
        file = (self.folder / unquote(path).lstrip("/")).resolve()
        if not file.is_relative_to(self.folder):
            return None
        file = file / "index.html" if file.is_dir() else file
        return file if file.is_file() else None


def _plain(start: Start, status: str, text: str, headers: list[tuple[str, str]] | None = None) -> list[bytes]:
    body = f"{status}: {text}\n".encode()
    kind = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start(status, kind + (headers or []))
    return [body]


def below(prefix: str, site: Callable, discussion: Callable | None) -> Callable:
    """One application: the site at `prefix`/, the discussion at `prefix`/isso/."""

    def application(environ: dict, start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if path == prefix:
            return _plain(start, "308 Permanent Redirect", "see below", [("Location", f"{prefix}/")])
        if not path.startswith(f"{prefix}/"):
            return _plain(start, "404 Not Found", f"the site is at {prefix}/")
        inner, app, mount = path[len(prefix) :], site, prefix
        if discussion is not None and (inner == "/isso" or inner.startswith("/isso/")):
            inner, app, mount = inner[len("/isso") :] or "/", discussion, f"{prefix}/isso"
        return app({**environ, "SCRIPT_NAME": mount, "PATH_INFO": inner}, start)

    return application


def make_discussion(origins: list[str], database: Path, password: str, *, moderated: bool, per_minute: int) -> Callable:
    """Isso as a WSGI application. Raises ImportError where it is not installed."""
    import isso
    from isso import config

    database.parent.mkdir(parents=True, exist_ok=True)
    settings = config.load(config.default_file())
    wanted = {
        "general": {"dbpath": str(database), "host": "\n".join(origins), "notify": "", "gravatar": "false"},
        "moderation": {"enabled": str(moderated).lower(), "purge-after": "90d"},
        "admin": {"enabled": "true", "password": password},
        "guard": {
            "enabled": "true",
            "ratelimit": str(per_minute),  # posts of one address a minute
            "direct-reply": "20",  # posts of one address in a thread
            "reply-to-self": "true",
            "require-author": "true",
        },
    }
    for section, values in wanted.items():
        for name, value in values.items():
            settings.set(section, name, value)
    logging.getLogger("isso").setLevel(logging.ERROR)  # it would warn that the site, started next, does not answer yet
    return isso.make_app(settings, threading=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, default=HERE / "_build" / "html", help="folder of the built site")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--prefix", default="", help="sub-path that the site lies below, such as /course")
    parser.add_argument("--origin", action="append", help="address readers use, where it is not this host and port")
    parser.add_argument("--no-discussion", dest="discussion", action="store_false")
    parser.add_argument("--database", type=Path, default=HERE.parent / "work" / "discussion" / "comments.db")
    parser.add_argument("--unmoderated", dest="moderated", action="store_false", help="posts show at once")
    parser.add_argument("--per-minute", type=int, default=2, help="posts that one address may send a minute")
    chosen = parser.parse_args(arguments)
    if not (chosen.site / "index.html").is_file():
        print(f"serve: {chosen.site} holds no site: `make book` builds it", file=sys.stderr)
        return 2
    prefix = f"/{chosen.prefix.strip('/')}" if chosen.prefix.strip("/") else ""
    try:
        import waitress
    except ImportError:
        print("serve: waitress is missing: python scripts/setup.py site", file=sys.stderr)
        return 2

    discussion = None
    told = []
    if chosen.discussion:
        origins = chosen.origin or [
            f"http://{name}:{chosen.port}" for name in dict.fromkeys(("localhost", chosen.host))
        ]
        password = os.environ.get("COURSE_MODERATOR") or secrets.token_urlsafe(9)
        try:
            discussion = make_discussion(
                origins, chosen.database, password, moderated=chosen.moderated, per_minute=chosen.per_minute
            )
        except ImportError:
            print("serve: isso is missing: python scripts/setup.py site, or --no-discussion", file=sys.stderr)
            return 2
        made_up = "" if os.environ.get("COURSE_MODERATOR") else f", password {password}"
        told.append(f"Moderate at {origins[0]}{prefix}/isso/admin/{made_up}")
    try:
        server = waitress.create_server(
            below(prefix, Files(chosen.site), discussion), host=chosen.host, port=chosen.port, threads=8, ident="course"
        )
    except OSError as error:
        print(f"serve: cannot listen on {chosen.host}:{chosen.port}: {error}", file=sys.stderr)
        return 2
    print(f"The site is at http://{chosen.host}:{server.effective_port}{prefix}/", *told, sep="\n", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
