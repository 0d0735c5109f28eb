"""A person at a Hub: logs in, starts the server, and calls what the pages of JupyterLab and formgrader call."""

from __future__ import annotations

import time
from typing import Any

import httpx

SECONDS = 300  # a server's start on a busy machine


class Person:
    def __init__(self, url: str, name: str, password: str) -> None:
        self.name = name
        self.web = httpx.Client(base_url=url, follow_redirects=True, timeout=120)
        self.web.get("/hub/login")
        form = {"username": name, "password": password, "_xsrf": self._token("/hub/")}
        self.web.post("/hub/login", data=form).raise_for_status()

    def start(self) -> None:
        """Waits until the person's own server answers."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            answer = self.web.get(f"/user/{self.name}/lab")
            if answer.status_code == 200 and answer.url.path == f"/user/{self.name}/lab":
                return
            time.sleep(0.5)
        raise TimeoutError(f"the server of {self.name} did not start: {answer.status_code} {answer.url}")

    def status(self, path: str) -> int:
        """The HTTP status of a page of the person's server, or of any page that begins with a slash."""
        return self.web.get(self._path(path)).status_code

    def get(self, path: str, /, **parameters: str) -> Any:
        return self.web.get(self._path(path), params=parameters).raise_for_status().json()

    def post(self, path: str, /, **values: Any) -> Any:
        """As a form, the way JupyterLab's extensions send it."""
        return self._send("POST", path, data=values)

    def put(self, path: str, /, **values: Any) -> Any:
        return self._send("PUT", path, json=values)

    def _send(self, method: str, path: str, **content: Any) -> Any:
        headers = {"X-XSRFToken": self._token(f"/user/{self.name}/")}
        answer = self.web.request(method, self._path(path), headers=headers, **content)
        return answer.raise_for_status().json()

    def _path(self, path: str) -> str:
        return path if path.startswith("/") else f"/user/{self.name}/{path}"

    def _token(self, path: str) -> str:
        return next(
            cookie.value or "" for cookie in self.web.cookies.jar if (cookie.name, cookie.path) == ("_xsrf", path)
        )
