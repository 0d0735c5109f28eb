"""What the HTTP tests share: a tokenizer of bytes, a model whose answers are known and which can be held up, and a
server on a loopback port.
"""

from __future__ import annotations

import asyncio
import codecs
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx
import torch
import uvicorn
from torch import Tensor

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.interface import ForwardBatch
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.loadtest.idle import parse_metrics
from reference_impl.server.app import Service, build_app

PATIENCE = 60.0  # seconds; far more than anything takes, even on a machine with other work
HTTP = httpx.Client(verify=False, trust_env=False, timeout=PATIENCE)  # one for all: it takes long to make
SHAPE = ModelConfig(
    "alphabet", n_layers=1, d_model=8, n_heads=2, n_kv_heads=1, head_dim=4, d_ff=8, vocab_size=256, max_context=600
)
CAPACITY = 512  # tokens in the whole KV cache: 32 blocks of 16


class ByteTokenizer:
    """Every byte is a token; 0 ends an answer. A chat reads `role=text;` and is answered after `A`."""

    eos_ids = frozenset([0])
    longest_token = 1

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token])

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        if any(message["role"] not in ("system", "user", "assistant") for message in messages):
            raise ValueError("the template knows no such role")
        return self.encode("".join(f"{message['role']}={message['content']};" for message in messages) + "A")

    def stream(self, *, after_prompt: bool) -> ByteStream:
        return ByteStream()


class ByteStream:
    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(bytes([token])) if token else ""

    def flush(self) -> str:
        return self._utf8.decode(b"", final=True)


class Alphabet:
    """After a letter comes the next one, after z the end. After a digit comes any digit, by chance.

    After "#" come the two bytes of "é" and then "x". After "?" the logits are NaN, and "!" makes the whole pass fail.
    `hold` lets no pass through until `let` or `free`.
    """

    def __init__(self) -> None:
        self.logits = torch.full((256, 256), -60.0, dtype=torch.float64)
        following = {ord("z"): 0, ord("#"): 0xC3, 0xC3: 0xA9, 0xA9: ord("x")}
        for token in range(256):
            self.logits[token, following.get(token, (token + 1) % 256)] = 0.0
        self.logits[48:58] = -60.0
        self.logits[48:58, 48:58] = 0.0
        self.logits[ord("?")] = float("nan")
        self._held = False
        self._passes = threading.Semaphore(0)

    def __call__(self, batch: ForwardBatch, rows: Tensor) -> Tensor:
        if self._held:
            self._passes.acquire()
        if (batch.tokens == ord("!")).any():
            raise RuntimeError("a kernel failed")
        return self.logits[batch.tokens[rows]]

    def hold(self) -> None:
        self._passes = threading.Semaphore(0)
        self._held = True

    def let(self, n_passes: int) -> None:
        self._passes.release(n_passes)

    def free(self) -> None:
        self._held = False
        self._passes.release(1000)


def alphabet_service(queue_limit: int = 4, **switches: object) -> tuple[Service, Alphabet]:
    model, tokenizer = Alphabet(), ByteTokenizer()
    config = EngineConfig(**({"max_running": 4, "token_budget": 64, "n_blocks": CAPACITY // 16} | switches))  # type: ignore[arg-type]
    cache = config.build_cache(SHAPE, torch.float32, "cpu")
    engine = Engine(model, cache, config, max_context=SHAPE.max_context, vocab_size=256, tokenizer=tokenizer)
    return Service(engine, tokenizer, "alphabet", queue_limit, wall_clock=lambda: 1_000_000.0), model


@contextmanager
def running(
    app: object, grace: int = 30, http: type[asyncio.Protocol] | str = "auto"
) -> Iterator[tuple[str, uvicorn.Server]]:
    """The server in a thread of this process, on a free port of the loopback address; shut down at the end."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            http=http,  # type: ignore[arg-type]
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=grace,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            assert server.started
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the server did not shut down"


@contextmanager
def serving(service: Service) -> Iterator[str]:
    with running(build_app(service)) as (url, _):
        yield url


def until(holds: Callable[[], bool]) -> None:
    """Waits for something that other threads bring about."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def metrics(url: str) -> dict[str, float]:
    return parse_metrics(HTTP.get(f"{url}/metrics").text)
