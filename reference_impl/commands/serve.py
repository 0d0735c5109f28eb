"""The command `serve`: loads a model, warms the engine up, and serves it over HTTP.

    python -m reference_impl serve [--model ...] [--port 8000]

The port is taken before the model is loaded, so a port that is in use is an error at once and not after a minute.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from typing import TYPE_CHECKING

from reference_impl.commands import model_options
from reference_impl.common import cli, extras

if TYPE_CHECKING:
    from reference_impl.checkpoints.tokenizer import Tokenizer
    from reference_impl.engine.engine import Engine

DEFAULT_PORT = 8000


def _parser() -> cli.Parser:
    parser = cli.parser("serve", "Serves a model over HTTP with the interface of the OpenAI API.")
    parser.add_argument(
        "--model", default="smollm2-135m", help="smollm2-135m (default), course-target, a GGUF file or a folder"
    )
    model_options.add(parser)
    parser.add_argument("--name", help="what clients call the model (default: the name it has)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"({DEFAULT_PORT}); 0 takes a free one")
    parser.add_argument("--max-running", type=cli.whole_number, default=32, help="sequences in a batch (32)")
    parser.add_argument("--token-budget", type=cli.whole_number, default=512, help="tokens in a forward pass (512)")
    parser.add_argument("--chunk-size", type=cli.whole_number, help="prompt tokens of a request in a pass (no limit)")
    parser.add_argument("--kv-blocks", type=cli.whole_number, default=1024, help="blocks of the KV cache (1024)")
    parser.add_argument("--block-size", type=cli.whole_number, default=16, help="tokens in a block (16)")
    parser.add_argument("--queue-limit", type=cli.count, default=64, help="requests that may wait; more get 429 (64)")
    parser.add_argument("--batching", choices=["continuous", "static"], default="continuous")
    parser.add_argument("--no-prefix-sharing", action="store_true", help="compute every prompt from its first token")
    parser.add_argument("--seed", type=cli.count, default=0, help="of requests that bring none (0)")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--strict", action="store_true", help="refuse unknown parameters instead of ignoring them")
    parser.add_argument("--cors-origin", action="append", default=[], help="pages that may call it; '*' for all")
    parser.add_argument("--grace", type=cli.count, default=30, help="seconds that open calls get at shutdown (30)")
    return parser


def main(arguments: list[str]) -> int:
    """`python -m reference_impl serve`"""
    options = _parser().parse_args(arguments)
    extras.require("serve", "starlette", "uvicorn", "prometheus_client")
    import uvicorn

    from reference_impl.server.app import Service, build_app
    from reference_impl.server.slow_clients import HeaderLimit

    listener = _listener(options.host, options.port)
    with listener:
        engine, tokenizer, name = _engine(options)
        service = Service(engine, tokenizer, options.name or name, options.queue_limit, strict=options.strict)
        config = uvicorn.Config(
            build_app(service, options.cors_origin),
            http=HeaderLimit,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=options.grace,
        )
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn shuts down and then sends the signal once more
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                _say(f"{service.reader.model} at http://{address}:{port}/v1 (Ctrl-C ends it)")

        Server(config).run(sockets=[listener])
        service.dispatcher.serving.stop()  # after a second Ctrl-C uvicorn does not stop it
        _say("stopped")
    return 0


def _engine(options: argparse.Namespace) -> tuple[Engine, Tokenizer, str]:
    import torch

    from reference_impl.checkpoints.weights import load
    from reference_impl.engine.config import EngineConfig
    from reference_impl.engine.engine import Engine, EngineStats
    from reference_impl.engine.request import FinishReason, Request
    from reference_impl.model.replay import DecodeGraphs
    from reference_impl.speculative.speculator import SpeculationStats

    config = EngineConfig(
        max_running=options.max_running,
        token_budget=options.token_budget,
        chunk_size=options.chunk_size,
        batching=options.batching,
        block_size=options.block_size,
        n_blocks=options.kv_blocks,
        prefix_sharing=not options.no_prefix_sharing,
        seed=options.seed,
    )
    device = model_options.usable_device(options.device)
    _say(f"loading {options.model} ...")
    model, tokenizer = load(options.model, torch.float32 if device.type == "cpu" else torch.bfloat16, device)
    model_options.quantize(model, options)
    speculator = model_options.load_speculator(options, model, tokenizer, config.n_blocks * config.block_size)
    engine = Engine.for_llama(model, config, tokenizer, strategy=speculator)
    _say("warming up ...")  # kernels are compiled at their first use
    tried = engine.run([Request(i, (i,) * 3, max_tokens=4) for i in range(min(4, options.max_running))])
    for tried_one in tried.values():
        if tried_one.finish is FinishReason.ERROR:
            raise ValueError(f"this model cannot answer here: {tried_one.reason}")
    if isinstance(engine.model, DecodeGraphs):
        engine.model.record()  # the sizes that the warm-up did not need
    engine.stats = EngineStats()
    if speculator is not None:
        speculator.stats = SpeculationStats()
    return engine, tokenizer, model.config.name


def _listener(host: str, port: int) -> socket.socket:
    """A socket bound to the address; it starts to listen when the server is ready. OSError says what is wrong."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if sys.platform != "win32":  # there it would let two servers share a port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ValueError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    return listener


def _port(text: str) -> int:
    value = cli.count(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {cli.shown(text)}")
    return value


def _say(text: str) -> None:
    print(f"serve: {text}", file=sys.stderr, flush=True)
