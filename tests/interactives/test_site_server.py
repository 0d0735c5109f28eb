"""The built site beside JupyterLab, at an address of the same server."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from interactives import site_server


def ask(path: str) -> bytes:
    """What a Jupyter server at /user/ada/ with the extension answers."""
    application = Application(base_url="/user/ada/")
    site_server._load_jupyter_server_extension(SimpleNamespace(web_app=application))

    async def answer() -> bytes:
        (socket,) = bind_sockets(0, "127.0.0.1")
        server = HTTPServer(application)
        server.add_sockets([socket])
        try:
            return (await AsyncHTTPClient().fetch(f"http://127.0.0.1:{socket.getsockname()[1]}{path}")).body
        finally:
            server.stop()

    with ThreadPoolExecutor(1) as thread:  # this one may have an event loop already, that of a browser
        return thread.submit(asyncio.run, answer()).result()


def test_the_site_is_served_beside_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("The course")
    monkeypatch.setattr(site_server, "SITE", tmp_path)
    assert ask("/user/ada/course-site/") == b"The course"


def test_without_a_built_site_the_address_leads_nowhere_and_nothing_outside_it_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(site_server, "SITE", tmp_path / "html")
    for path in ("/user/ada/course-site/", "/user/ada/course-site/../secret.txt"):
        with pytest.raises(HTTPClientError, match=r"40[34]"):
            ask(path)
