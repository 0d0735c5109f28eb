"""Lets only callers with the key in: `Authorization: Bearer KEY`, as clients of OpenAI's API send it."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reference_impl.server.fields import ApiError
from reference_impl.server.replies import dumps


class RequireKey:
    """Middleware for paths below /v1; /health and /metrics stay open to whatever watches the server."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1"):
            given = Headers(scope=scope).get("authorization", "").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._expected):
                error = ApiError("the API key is missing or wrong", code="invalid_api_key", status=401)
                reply = Response(dumps(error.body()), 401, {"WWW-Authenticate": "Bearer"}, "application/json")
                await reply(scope, receive, send)
                return
        await self._app(scope, receive, send)
