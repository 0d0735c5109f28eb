"""The command `serve`: loads a model, warms the engine up, and serves it over HTTP.

    python -m reference_impl serve [--model ...] [--port 8000]

The port is taken before the model is loaded, so a port that is in use is an error at once and not after a minute.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from reference_impl.commands import model_options
from reference_impl.common import cli, extras
from reference_impl.engine.capacity import MAX_GAP

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
    parser.add_argument(
        "--max-gap",
        type=cli.number_up_to(1e6),
        default=MAX_GAP,
        help=f"seconds that a pass may take, and so a running answer may pause, while prompts come ({MAX_GAP})",
    )
    parser.add_argument(
        "--token-budget", type=cli.whole_number, help="tokens in a forward pass (measured, to keep --max-gap)"
    )
    parser.add_argument("--chunk-size", type=cli.whole_number, help="prompt tokens of a request in a pass (no limit)")
    parser.add_argument("--max-model-len", type=cli.whole_number, help="tokens of prompt and answer (the model's)")
    parser.add_argument("--kv-blocks", type=cli.whole_number, default=1024, help="blocks of the KV cache (1024)")
    parser.add_argument("--block-size", type=cli.whole_number, default=16, help="tokens in a block (16)")
    parser.add_argument(
        "--preemption",
        choices=["recompute", "swap"],
        default="recompute",
        help="what happens to the blocks of a request that gives way: freed (default), or kept in host memory",
    )
    parser.add_argument("--host-blocks", type=cli.whole_number, help="blocks there, with swap (as many as --kv-blocks)")
    parser.add_argument("--queue-limit", type=cli.count, default=64, help="requests that may wait; more get 429 (64)")
    parser.add_argument("--batching", choices=["continuous", "static"], default="continuous")
    parser.add_argument("--no-prefix-sharing", action="store_true", help="compute every prompt from its first token")
    parser.add_argument("--seed", type=cli.count, default=0, help="of requests that bring none (0)")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--strict", action="store_true", help="refuse unknown parameters instead of ignoring them")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable with the key that callers need")
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

    api_key = None if options.api_key_env is None else cli.secret(options.api_key_env, "--api-key-env")
    listener = _listener(options.host, options.port)
    with listener:
        engine, tokenizer, name = _engine(options)
        service = Service(engine, tokenizer, options.name or name, options.queue_limit, strict=options.strict)
        config = uvicorn.Config(
            build_app(service, options.cors_origin, api_key),
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
    from dataclasses import replace

    from reference_impl.checkpoints.weights import load
    from reference_impl.engine.capacity import LEAST_BUDGET, MOST_BUDGET, measure_passes, require_memory
    from reference_impl.engine.config import EngineConfig
    from reference_impl.engine.engine import Engine, EngineStats
    from reference_impl.engine.request import FinishReason, Request
    from reference_impl.model.replay import DecodeGraphs
    from reference_impl.speculative.speculator import SpeculationStats

    config = EngineConfig(
        max_running=options.max_running,
        token_budget=options.token_budget or max(MOST_BUDGET, options.max_running),
        chunk_size=options.chunk_size,
        batching=options.batching,
        preemption=options.preemption,
        host_blocks=(options.host_blocks or options.kv_blocks) if options.preemption == "swap" else 0,
        block_size=options.block_size,
        n_blocks=options.kv_blocks,
        prefix_sharing=not options.no_prefix_sharing,
        seed=options.seed,
    )
    device = model_options.usable_device(options.device)
    dtype = model_options.usable_dtype(options.dtype, device)
    capacity = config.n_blocks * config.block_size
    _say(f"loading {options.model} ...")
    # A request never has more tokens than the cache holds, and one that is not fed back.
    model, tokenizer = load(options.model, dtype, device, min(capacity + 1, options.max_model_len or capacity + 1))
    if options.max_model_len is not None and model.config.max_context < options.max_model_len:
        place = "the KV cache" if model.config.max_context > capacity else "the model's context"
        most = min(model.config.max_context, capacity)
        raise ValueError(f"--max-model-len {options.max_model_len}: {place} holds {most} tokens")
    require_memory(config, model.config, dtype, device)
    model_options.quantize(model, options)
    if options.token_budget is None:
        try:
            cost = measure_passes(model, time.perf_counter)
        except RuntimeError as error:
            raise ValueError(f"this model cannot answer here: {error}") from None
        budget = cost.tokens_within(options.max_gap, max(LEAST_BUDGET, config.max_running), config.token_budget)
        config = replace(config, token_budget=budget)
        _say(f"passes of at most {budget} tokens, which take about {cost.fixed + budget * cost.per_token:.3f} s")
    speculator = model_options.load_speculator(options, model, tokenizer, capacity)
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
