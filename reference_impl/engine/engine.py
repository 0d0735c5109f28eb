"""The serving engine: takes requests, runs one forward pass a step, returns tokens.

A step has four parts: schedule, forward, choose, deliver. The scheduler decides which requests are in the pass and with
how many tokens, the model computes them as one packed batch of decodes and prompt chunks, the decoding strategy chooses
the new tokens, and each request takes its own. Everything runs in the caller's thread, and only one call may run at a
time. Time comes from the `clock` that is passed in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from reference_impl.common.clock import Clock
from reference_impl.decoding.logprobs import logprobs_of
from reference_impl.decoding.next_tokens import rows_without_a_choice
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.penalized import penalized
from reference_impl.engine.request import Completion, FinishReason, Output, Request, RequestState, TextStream
from reference_impl.engine.scheduler import Scheduler
from reference_impl.engine.step import Chunk, Step, StepError
from reference_impl.engine.strategy import DecodingStrategy, PlainDecoding

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch, KVCache
    from reference_impl.cache.offload import Offloader
    from reference_impl.cache.storage import KVStorage
    from reference_impl.model.llama import Llama

Model = Callable[["ForwardBatch", Tensor], Tensor]  # (batch, rows) -> logits [n_rows, vocabulary]


class Detokenizer(Protocol):
    """The part of a tokenizer that the engine uses."""

    def stream(self, *, after_prompt: bool) -> TextStream: ...


class RequestRefusedError(ValueError):
    """This engine can never serve the request. The message says why, with the numbers."""


@dataclass
class EngineStats:
    """Counters since the start."""

    n_steps: int = 0
    n_decode_tokens: int = 0  # computed tokens that continue an answer
    n_prefill_tokens: int = 0  # computed tokens of prompts, and of answers that are recomputed
    n_shared_tokens: int = 0  # prompt tokens that were found in the cache
    n_preemptions: int = 0


class Engine:
    """Serves requests with one model and one cache.

    `model(batch, rows)` gives logits for those rows. `max_context` is the most tokens that the model can attend to.
    Without a `tokenizer` outputs have no text. `swap` holds preempted requests if the configuration asks for it.
    `strategy` turns logits into tokens; ValueError if its vocabulary is not the model's.
    """

    def __init__(
        self,
        model: Model,
        cache: KVCache,
        config: EngineConfig,
        *,
        max_context: int,
        vocab_size: int | None = None,
        tokenizer: Detokenizer | None = None,
        swap: Offloader | None = None,
        strategy: DecodingStrategy | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.strategy = strategy or PlainDecoding()
        self.strategy.require_vocabulary(vocab_size)
        self.model = model
        self.cache = cache
        self.config = config
        self.max_context = max_context
        self.vocab_size = vocab_size
        self.tokenizer = tokenizer
        self.clock = clock
        self.scheduler = Scheduler(cache, config, swap, self.strategy)
        self.stats = EngineStats()
        self._states: dict[Hashable, RequestState] = {}
        self._n_added = 0
        self._seeds = random.Random(config.seed)

    @classmethod
    def for_llama(
        cls,
        model: Llama,
        config: EngineConfig | None = None,
        tokenizer: Detokenizer | None = None,
        clock: Clock = time.perf_counter,
        strategy: DecodingStrategy | None = None,
    ) -> Engine:
        """An engine with a cache of its own, in the model's dtype and on its device."""
        from reference_impl.cache.offload import Offloader
        from reference_impl.cache.paged import PagedCache

        config = config or EngineConfig()
        cache = config.build_cache(model.config, model.embed.dtype, model.embed.device)
        swap = None
        if config.preemption == "swap" and isinstance(cache, PagedCache):
            swap = Offloader(cache, config.host_blocks)
        shape = model.config
        return cls(
            _replayed(model, cache.storage, config) if config.recorded else model,
            cache,
            config,
            max_context=shape.max_context,
            vocab_size=shape.vocab_size,
            tokenizer=tokenizer,
            swap=swap,
            strategy=strategy,
            clock=clock,
        )

    @property
    def idle(self) -> bool:
        return self.scheduler.idle

    @property
    def n_waiting(self) -> int:
        return len(self.scheduler.waiting)

    @property
    def n_running(self) -> int:
        return len(self.scheduler.running)

    def add(self, request: Request) -> None:
        """Queues a request. RequestRefusedError if it can never be served, ValueError if its id is in use."""
        if request.id in self._states:
            raise ValueError(f"request {request.id!r} is being served already")
        reason = self.refusal(request)
        if reason is not None:
            raise RequestRefusedError(reason)
        seed = request.sampling.seed
        most = self.max_context if request.max_tokens is None else len(request.prompt) + request.max_tokens
        state = RequestState(
            request,
            arrival=self.clock() if request.arrival is None else request.arrival,
            serial=self._n_added,
            seed=self._seeds.getrandbits(63) if seed is None else seed,
            max_total=min(most, self.max_context, self.cache.capacity + 1),
            stream=self.tokenizer.stream(after_prompt=True) if self.tokenizer is not None else None,
        )
        self._n_added += 1
        self._states[request.id] = state
        self.scheduler.add(state)

    def refusal(self, request: Request) -> str | None:
        """Why this request can never be served here, or None if it can."""
        n_prompt, n_answer = len(request.prompt), request.max_tokens or 1
        asked = f"request {request.id!r}: a prompt of {n_prompt} tokens and an answer of {n_answer}"
        if n_prompt + n_answer > self.max_context:
            return f"{asked} make {n_prompt + n_answer}, but the context holds {self.max_context}"
        if n_prompt + n_answer - 1 > self.cache.capacity:  # the last token of an answer is never fed back
            return f"{asked} need {n_prompt + n_answer - 1} places, but the whole KV cache has {self.cache.capacity}"
        if self.vocab_size is not None:
            for place, token in enumerate(request.prompt):
                if not 0 <= token < self.vocab_size:
                    return f"request {request.id!r}: token {token} at place {place} is outside 0..{self.vocab_size - 1}"
            for token, _ in request.sampling.penalties.bias if request.sampling.penalties is not None else ():
                if not 0 <= token < self.vocab_size:
                    return f"request {request.id!r}: biased token {token} is outside 0..{self.vocab_size - 1}"
        if request.stop_strings and self.tokenizer is None:
            return f"request {request.id!r} has stop strings, but this engine has no tokenizer to find them with"
        return None

    def cancel(self, request_id: Hashable) -> Output:
        """Ends a request and frees its blocks. Returns its last output; KeyError if it is not being served."""
        return self._end(self._states[request_id], FinishReason.CANCELLED, "")

    def fail(self, error: StepError) -> list[Output]:
        """Ends the requests that a failed step names, so that the others can go on. Returns their last outputs."""
        reason = str(error)
        return [self._end(self._states[i], FinishReason.ERROR, reason) for i in error.request_ids if i in self._states]

    def step(self) -> list[Output]:
        """Runs one forward pass and returns an output for each request that got tokens or ended.

        StepError if it failed. Then everything is as before, except that requests may have been preempted.
        """
        self.strategy.prepare([*self.scheduler.running, *self.scheduler.waiting])
        step = self.scheduler.schedule()
        outputs = self._forward(step) if step is not None else {}
        for state in self.scheduler.released():
            ended = outputs.get(state.id, Output(state.id))
            outputs[state.id] = self._close(state, ended)
        return list(outputs.values())

    def run(self, requests: Iterable[Request] = ()) -> dict[Hashable, Completion]:
        """Serves requests until all have ended, and returns the answers by request id.

        Refusals and failures are answers too. ValueError for an id that is in use.
        """
        pieces: dict[Hashable, list[Output]] = {}
        for request in requests:
            try:
                self.add(request)
            except RequestRefusedError as refusal:
                state = RequestState(request, arrival=self.clock(), serial=-1, seed=0, max_total=0)
                state.finish, state.reason = FinishReason.REFUSED, str(refusal)
                pieces[request.id] = [self._close(state, Output(request.id))]
        while not self.idle:
            try:
                outputs = self.step()
            except StepError as error:
                outputs = self.fail(error)
            for output in outputs:
                pieces.setdefault(output.request_id, []).append(output)
        return {request_id: Completion.of(outputs) for request_id, outputs in pieces.items()}

    @torch.inference_mode()
    def _forward(self, step: Step) -> dict[Hashable, Output]:
        self.stats.n_preemptions += len(step.preempted)
        asked = [chunk for chunk in step.chunks if chunk.n_rows]
        try:
            logits = self.model(step.batch, _rows(step))
            chosen = self._choose(logits, asked)
            now = self.clock()  # the tokens are on the host, so a GPU has finished the step
        except BaseException as error:
            self.scheduler.abort(step)
            if isinstance(error, StepError) or not isinstance(error, Exception):
                raise
            raise StepError([chunk.state.id for chunk in step.chunks], f"{type(error).__name__}: {error}") from error
        self.scheduler.commit(step)
        self._count(step)
        outputs = {}
        row = 0
        for chunk, tokens in zip(asked, chosen, strict=True):
            rows = slice(row, row := row + chunk.n_rows)
            outputs[chunk.state.id] = self._deliver(chunk, tokens, now, logits[rows])
        return outputs

    def _choose(self, logits: Tensor, asked: list[Chunk]) -> list[list[int]]:
        broken = rows_without_a_choice(logits)
        if broken:
            ids = [chunk.state.id for chunk in asked for _ in range(chunk.n_rows)]
            raise StepError(
                list(dict.fromkeys(ids[row] for row in broken)), "the model gave logits that are not finite"
            )
        return self.strategy.choose(penalized(logits, asked), asked)

    def _count(self, step: Step) -> None:
        stats = self.stats
        stats.n_steps += 1
        stats.n_shared_tokens += sum(state.n_shared for state in step.fresh if not state.n_preemptions)
        for chunk in step.chunks:
            if chunk.n_rows == len(chunk.tokens) and chunk.state.n_output:
                stats.n_decode_tokens += len(chunk.tokens)
            else:
                stats.n_prefill_tokens += len(chunk.tokens)

    def _deliver(self, chunk: Chunk, tokens: list[int], now: float, logits: Tensor) -> Output:
        state = chunk.state
        text = ""
        n_taken = 0
        while n_taken < len(tokens) and state.finish is None:
            try:
                text += state.accept(tokens[n_taken])
            except Exception as error:  # detokenizing failed, which concerns this request alone
                state.finish, state.reason = FinishReason.ERROR, f"{type(error).__name__}: {error}"
            n_taken += 1
        state.timeline.add(now, n_taken, visible=bool(text) if state.stream is not None else True)
        self.strategy.settle(chunk, tokens, n_taken)
        if state.finish is not None:
            self.scheduler.retire(state)
        elif chunk.n_rows > 1:  # drops refused drafts; the newest token is not cached yet
            self.cache.truncate(state.id, len(state.tokens) - 1)
        tokens, n_top = tokens[:n_taken], state.request.logprobs
        told = () if n_top is None else logprobs_of(logits[:n_taken], tokens, n_top)
        kept = logits[:n_taken] if self.config.keep_logits else None
        return Output(state.id, tuple(tokens), text, logits=kept, logprobs=told)

    def _end(self, state: RequestState, finish: FinishReason, reason: str) -> Output:
        self.scheduler.remove(state)
        state.finish, state.reason = finish, reason
        return self._close(state, Output(state.id))

    def _close(self, state: RequestState, output: Output) -> Output:
        assert state.finish is not None
        self._states.pop(state.id, None)
        self.strategy.forget(state.id)
        state.timeline.close(self.clock(), completed=state.finish in (FinishReason.STOP, FinishReason.LENGTH))
        return replace(output, finish=state.finish, reason=state.reason, timeline=state.timeline)


def _replayed(model: Llama, storage: KVStorage, config: EngineConfig) -> Model:
    """The model in fused steps, replayed: as CUDA graphs of decode steps on a GPU, as recorded kernels elsewhere."""
    from reference_impl.model.fused import fused
    from reference_impl.model.replay import DecodeGraphs, RecordedPasses, sizes_up_to

    if model.embed.device.type != "cuda":
        return RecordedPasses(fused(model), keep=config.keep_logits)
    blocks = -(-model.config.max_context // config.block_size)
    return DecodeGraphs(fused(model), storage, blocks, sizes_up_to(config.max_running), keep=config.keep_logits)


def _rows(step: Step) -> Tensor:
    """The rows of the packed pass that need logits."""
    rows: list[int] = []
    end = 0
    for chunk in step.chunks:
        end += len(chunk.tokens)
        rows.extend(range(end - chunk.n_rows, end))
    return torch.tensor(rows, dtype=torch.int64, device=step.batch.tokens.device)
