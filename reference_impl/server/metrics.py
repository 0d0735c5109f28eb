"""What the server tells Prometheus: latencies as histograms, load and memory as gauges, work as counters.

Events (a request accepted, an output delivered) are counted as they happen. When Prometheus asks, the engine's state is
read from the snapshot that its thread left. Text format of Prometheus, by its own client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reference_impl.engine.request import FinishReason, Output, Request

if TYPE_CHECKING:
    from reference_impl.server.dispatch import Dispatcher

TTFT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)  # seconds
TPOT_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ServerMetrics:
    """Counts for one server; `watch` adds the gauges of its dispatcher, `text` is what /metrics says."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self._accepted = Counter("llm_requests_accepted", "Requests taken into the queue", registry=r)
        self._ended = Counter("llm_requests_ended", "Requests that ended, by how", ["finish"], registry=r)
        self._refused = Counter("llm_requests_refused", "Requests turned away, by why", ["reason"], registry=r)
        self._prompt = Counter("llm_prompt_tokens", "Prompt tokens of accepted requests", registry=r)
        self._generated = Counter("llm_generated_tokens", "Tokens generated", registry=r)
        self._ttft = Histogram(
            "llm_time_to_first_token_seconds", "From arrival to the first text", buckets=TTFT_BUCKETS, registry=r
        )
        self._tpot = Histogram(
            "llm_time_per_output_token_seconds",
            "Mean pause between the tokens of a request",
            buckets=TPOT_BUCKETS,
            registry=r,
        )
        for finish in FinishReason:
            self._ended.labels(finish.value)
        for reason in ("overload", "invalid"):
            self._refused.labels(reason)

    def accepted(self, request: Request) -> None:
        self._accepted.inc()
        self._prompt.inc(len(request.prompt))

    def overloaded(self, n_requests: int) -> None:
        self._refused.labels("overload").inc(n_requests)

    def invalid(self) -> None:
        self._refused.labels("invalid").inc()

    def delivered(self, output: Output) -> None:
        self._generated.inc(len(output.tokens))
        if output.finish is None:
            return
        self._ended.labels(output.finish.value).inc()
        timeline = output.timeline
        if timeline is not None and timeline.ttft is not None:
            self._ttft.observe(timeline.ttft)
        if timeline is not None and timeline.tpot is not None:
            self._tpot.observe(timeline.tpot)

    def watch(self, dispatcher: Dispatcher) -> None:
        self.registry.register(_EngineState(dispatcher))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _EngineState(Collector):
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def collect(self) -> Iterator[Metric]:
        now = self._dispatcher.serving.snapshot
        yield GaugeMetricFamily("llm_requests_running", "Requests in the batch", value=now.running)
        yield GaugeMetricFamily(
            "llm_requests_waiting", "Requests accepted and not in the batch", value=self._dispatcher.n_waiting
        )
        blocks = GaugeMetricFamily("llm_kv_blocks", "Blocks of the KV cache, by state", labels=["state"])
        blocks.add_metric(["used"], now.blocks_used)
        blocks.add_metric(["evictable"], now.blocks_evictable)
        blocks.add_metric(["free"], now.blocks_free)
        yield blocks
        n_blocks = now.blocks_used + now.blocks_evictable + now.blocks_free
        usage = now.blocks_used / n_blocks if n_blocks else 0.0
        yield GaugeMetricFamily("llm_kv_usage_ratio", "Share of the KV cache's blocks in use, 0 to 1", value=usage)
        tokens = CounterMetricFamily("llm_computed_tokens", "Tokens through the model, by phase", labels=["phase"])
        tokens.add_metric(["prefill"], now.prefill_tokens)
        tokens.add_metric(["decode"], now.decode_tokens)
        yield tokens
        yield CounterMetricFamily(
            "llm_prefix_shared_tokens", "Prompt tokens found in the cache", value=now.shared_tokens
        )
        yield CounterMetricFamily("llm_drafted_tokens", "Tokens drafted ahead of the model", value=now.drafted_tokens)
        yield CounterMetricFamily(
            "llm_accepted_draft_tokens", "Drafted tokens that the model accepted", value=now.accepted_tokens
        )
        yield CounterMetricFamily("llm_steps", "Forward passes", value=now.steps)
        yield CounterMetricFamily("llm_preemptions", "Requests put back into the queue", value=now.preemptions)
