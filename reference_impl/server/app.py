"""The HTTP server: OpenAI's completions and chat completions in front of one engine, with /metrics and /health.

An endpoint reads a call, admits it and answers. Calls are read (tokenized) in a worker thread and forward passes run in
the engine's thread, so the event loop only passes things on. When a call ends, by its last token, an error or a client
that hangs up, its requests are cancelled, so no KV block outlives its reader. Starlette (ASGI).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from reference_impl.common.clock import Clock
from reference_impl.engine.engine import Detokenizer, Engine
from reference_impl.server.access import RequireKey
from reference_impl.server.calls import Call, ChatTokenizer, Kind, Reader
from reference_impl.server.dispatch import Answers, Dispatcher, OverloadError, StoppedError
from reference_impl.server.fields import ApiError, parse_json
from reference_impl.server.metrics import ServerMetrics
from reference_impl.server.replies import dumps, event, shutting_down, stream_reply, whole_reply

T = TypeVar("T")
MOST_BYTES = 16 * 2**20  # of a body
BODY_SECONDS = 60.0  # for a body to arrive whole
CLIENT_CLOSED = 499  # nginx's status for a client that did not wait


class ServerTokenizer(ChatTokenizer, Detokenizer, Protocol):
    """Text in both directions, and chat templates."""


class Service:
    """What the endpoints share.

    `engine.tokenizer` is needed. `wall_clock` stamps the replies (seconds since 1970). `strict` refuses unknown
    parameters; without it they are ignored, and the reply's header names them.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: ServerTokenizer,
        model: str,
        queue_limit: int,
        wall_clock: Clock = time.time,
        strict: bool = False,
    ) -> None:
        if engine.tokenizer is None:
            raise ValueError("the server's engine needs a tokenizer: replies are text")
        self.engine = engine
        self.metrics = ServerMetrics()
        self.dispatcher = Dispatcher(engine, queue_limit, self.metrics)
        self.metrics.watch(self.dispatcher)
        self.reader = Reader(model, tokenizer, engine.max_context, engine.refusal, self.dispatcher.most_open, strict)
        self.wall_clock = wall_clock
        self.started = int(wall_clock())
        self._serials = itertools.count(1)

    async def complete(self, request: Request) -> Response:
        return await self._answer("completion", request)

    async def chat(self, request: Request) -> Response:
        return await self._answer("chat", request)

    async def models(self, request: Request) -> Response:
        return _json({"object": "list", "data": [self._model()]})

    async def one_model(self, request: Request) -> Response:
        self.reader.require_model(request.path_params["name"])
        return _json(self._model())

    async def health(self, request: Request) -> Response:
        if not self.dispatcher.serving.alive:
            raise ApiError("the engine has stopped", code="engine_stopped", status=503, kind="server_error")
        return _json({"status": "ok"})

    async def metrics_text(self, request: Request) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    def _model(self) -> dict[str, Any]:
        return {"id": self.reader.model, "object": "model", "created": self.started, "owned_by": "llm-serving-course"}

    async def _answer(self, kind: Kind, request: Request) -> Response:
        arrival = self.engine.clock()
        call_id = f"{'chatcmpl' if kind == 'chat' else 'cmpl'}-{self.started:x}-{next(self._serials)}"
        _require_json(request)
        body = await _body(request)
        call = await asyncio.to_thread(lambda: self.reader.read(kind, call_id, parse_json(body), arrival))
        try:
            answers = self.dispatcher.submit(call.requests)
        except ValueError as error:
            raise ApiError(str(error), "n", "invalid_value") from None
        except StoppedError as error:
            raise ApiError(str(error), code="engine_stopped", status=503, kind="server_error") from None
        try:
            reply = await self._reply(call, answers, request)
            reply.headers["X-Request-Id"] = call_id
            if call.ignored:
                reply.headers["X-Ignored-Parameters"] = ", ".join(call.ignored)
            return reply
        except BaseException:
            answers.close()
            raise

    async def _reply(self, call: Call, answers: Answers, request: Request) -> Response:
        created = int(self.wall_clock())
        if not call.stream:
            return _json(await _while_connected(request, whole_reply(call, answers, created)))
        events = stream_reply(call, answers, created)
        first = await _while_connected(request, anext(events))
        return EventStream(first, events, answers.close)


class EventStream(Response):
    """Server-sent events. `close` is called however the stream ends; a shutdown ends it with an error event."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, rest: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        self.status_code = 200
        self.background = None
        self._first, self._rest, self._close = first, rest, close
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(data: bytes, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        async def write_all() -> None:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await write(self._first)
            async for data in self._rest:
                await write(data)
            await write(b"", more=False)

        try:
            await _unless_closed(receive, write_all())
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # the grace period of a shutdown is over
            await write(event(shutting_down().body()), more=False)
        finally:
            self._close()


async def _while_connected(request: Request, work: Awaitable[T]) -> T:
    return await _unless_closed(request.receive, work)


async def _unless_closed(receive: Receive, work: Awaitable[T]) -> T:
    """The result of `work`; ClientDisconnect, and `work` is cancelled, if the client hangs up first."""

    async def closed() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(closed())
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def _require_json(request: Request) -> None:
    """A missing Content-Type is taken for JSON."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            f"the body must be JSON with the header Content-Type: application/json, got {kind[:100]!r}",
            code="unsupported_media_type",
            status=415,
        )


async def _body(request: Request) -> bytes:
    parts, n_bytes = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                n_bytes += len(part)
                if n_bytes > MOST_BYTES:
                    raise ApiError(f"the body has more than {MOST_BYTES} bytes", code="body_too_large", status=413)
    except TimeoutError:
        message = f"the body did not arrive within {BODY_SECONDS:g} seconds"
        raise ApiError(message, code="body_too_slow", status=408) from None
    return b"".join(parts)


def _json(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(dumps(body), status, headers, media_type="application/json")


def build_app(service: Service, cors_origins: Sequence[str] = (), api_key: str | None = None) -> Starlette:
    """The ASGI application; its lifespan is that of the engine's thread.

    Pages of `cors_origins` ("*" for all) may call it from a browser.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.dispatcher.start()
        yield
        await service.dispatcher.stop()

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        if 400 <= error.status < 500:
            service.metrics.invalid()
        return _json(error.body(), error.status)

    async def overloaded(request: Request, error: Exception) -> Response:
        assert isinstance(error, OverloadError)
        reply = ApiError(str(error), code="overloaded", status=429, kind="rate_limit_error")
        return _json(reply.body(), 429, {"Retry-After": str(error.retry_after)})

    async def no_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reply = ApiError(f"{request.method} {request.url.path}: {error.detail}", code="not_found")
        return _json(reply.body(), error.status_code, dict(error.headers or {}))

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED)

    async def broken(request: Request, error: Exception) -> Response:
        reply = ApiError(f"{type(error).__name__}: {error}", code="internal_error", status=500, kind="server_error")
        return _json(reply.body(), 500)

    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(cors_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["X-Request-Id", "X-Ignored-Parameters"],
    )
    return Starlette(
        routes=[
            Route("/v1/completions", service.complete, methods=["POST"]),
            Route("/v1/chat/completions", service.chat, methods=["POST"]),
            Route("/v1/models", service.models),
            Route("/v1/models/{name:path}", service.one_model),
            Route("/metrics", service.metrics_text),
            Route("/health", service.health),
        ],
        exception_handlers={
            ApiError: refuse,
            OverloadError: overloaded,
            HTTPException: no_route,
            ClientDisconnect: gone,
            Exception: broken,
        },
        middleware=([cors] if cors_origins else []) + ([] if api_key is None else [Middleware(RequireKey, api_key)]),
        lifespan=lifespan,
    )
