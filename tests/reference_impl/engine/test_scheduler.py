"""The scheduler: who is in which pass.

Most tests use a model without weights, since they are about places and turns, not numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from serving_oracle import NextToken, blocks_in_use, one_thread  # noqa: F401  (a fixture that is used by being here)

from reference_impl.bounds.batching import continuous_batching, slot_utilization, static_batching
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.offload import Offloader
from reference_impl.cache.paged import PagedCache
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Output, Request
from reference_impl.engine.step import Step, StepError

SMALL = ModelConfig(
    "small", n_layers=1, d_model=2, n_heads=1, n_kv_heads=1, head_dim=2, d_ff=2, vocab_size=19, max_context=200
)


class Observed:
    """An engine over `NextToken` with a clock that counts steps, and a record of what each step computed for whom."""

    def __init__(self, **switches: Any) -> None:
        import torch

        config = EngineConfig(**({"max_running": 4, "token_budget": 8, "n_blocks": 64, "block_size": 4} | switches))
        cache = config.build_cache(SMALL, torch.float32, "cpu")
        swap = None
        if config.preemption == "swap":
            assert isinstance(cache, PagedCache)
            swap = Offloader(cache, config.host_blocks)
        self.steps: list[dict[Any, int]] = []  # tokens of each request in each step
        self.now = 0
        self.engine = Engine(
            NextToken(), cache, config, max_context=SMALL.max_context, swap=swap, clock=lambda: float(self.now)
        )
        self._schedule: Callable[[], Step | None] = self.engine.scheduler.schedule
        self.engine.scheduler.schedule = self._observe  # type: ignore[method-assign]
        self.last: Step | None = None

    def _observe(self) -> Step | None:
        self.last = self._schedule()
        if self.last is not None:
            self.steps.append({chunk.state.id: len(chunk.tokens) for chunk in self.last.chunks})
        return self.last

    def add(self, request_id: object, n_prompt: int = 1, max_tokens: int = 1, first: int = 0) -> None:
        prompt = tuple((first + i) % 19 for i in range(n_prompt))
        self.engine.add(Request(request_id, prompt, max_tokens))  # type: ignore[arg-type]

    def step(self) -> list[Output]:
        self.now += 1
        return self.engine.step()

    def finish_steps(self) -> dict[Any, int]:
        """Runs until idle: the step in which each request ended."""
        finished = {}
        while not self.engine.idle:
            for output in self.step():
                if output.finish is not None:
                    finished[output.request_id] = self.now
        return finished


LENGTHS, SLOTS = [3, 8, 2, 5, 2, 4], 3


def test_static_batching_on_paper_takes_13_steps() -> None:
    finish = static_batching(LENGTHS, SLOTS)
    assert finish == [8, 8, 8, 13, 13, 13]
    assert sum(finish) / 6 == 10.5
    assert round(100 * slot_utilization(LENGTHS, SLOTS, finish), 1) == 61.5


def test_continuous_batching_on_paper_takes_9_steps() -> None:
    finish = continuous_batching(LENGTHS, SLOTS)
    assert finish == [3, 8, 2, 7, 5, 9]
    assert round(sum(finish) / 6, 2) == 5.67
    assert round(100 * slot_utilization(LENGTHS, SLOTS, finish), 1) == 88.9


@pytest.mark.parametrize("simulate", [static_batching, continuous_batching])
def test_paper_batching_of_nothing_takes_no_step_and_bad_input_is_refused(simulate: Callable[..., list[int]]) -> None:
    assert simulate([], 3) == []
    assert slot_utilization([], 3, []) == 0.0
    with pytest.raises(ValueError, match="slots must be at least 1, got 0"):
        simulate([1], 0)
    with pytest.raises(ValueError, match="request 1 has length 0"):
        simulate([3, 0], 2)


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
@pytest.mark.parametrize("batching", ["static", "continuous"])
def test_the_engine_finishes_every_request_in_the_step_that_paper_says(batching: str, slots: int) -> None:
    observed = Observed(batching=batching, max_running=slots)
    for i, length in enumerate(LENGTHS):
        observed.add(i, max_tokens=length)
    expected = {"static": static_batching, "continuous": continuous_batching}[batching](LENGTHS, slots)
    assert observed.finish_steps() == dict(enumerate(expected))


def test_a_prompt_is_cut_to_the_budget_that_running_decodes_leave() -> None:
    observed = Observed(token_budget=4)
    observed.add("a", 1, 5)
    observed.add("b", 1, 5)
    observed.step()
    observed.add("long", 5, 1)
    observed.finish_steps()
    assert observed.steps[1:4] == [{"a": 1, "b": 1, "long": 2}] * 2 + [{"a": 1, "b": 1, "long": 1}]


def test_chunk_size_limits_one_prompt_and_leaves_the_rest_of_the_budget_to_the_next() -> None:
    observed = Observed(token_budget=8, chunk_size=3)
    observed.add("a", 7)
    observed.add("b", 7, first=5)
    observed.finish_steps()
    assert observed.steps == [{"a": 3, "b": 3}, {"a": 3, "b": 3}, {"a": 1, "b": 1}]


def test_a_long_prompt_delays_no_running_decode_by_a_single_step() -> None:
    observed = Observed(token_budget=4)
    observed.add("decode", 1, 30)
    observed.step()
    observed.add("prompt", 60, 1)
    while observed.engine.n_waiting or observed.engine.n_running == 2:
        outputs = observed.step()
        assert outputs[0].request_id == "decode"
    assert max(sum(step.values()) for step in observed.steps) == 4


def test_no_more_requests_run_than_slots() -> None:
    observed = Observed(max_running=2, token_budget=8)
    for i in range(5):
        observed.add(i, max_tokens=3)
    observed.step()
    assert (observed.engine.n_running, observed.engine.n_waiting) == (2, 3)


def test_nobody_overtakes_the_head_of_the_queue_even_where_a_shorter_prompt_would_fit() -> None:
    observed = Observed(n_blocks=4, block_size=4, prefix_sharing=False)
    observed.add("first", 8, 4)  # 2 blocks, then 3
    observed.step()
    observed.add("big", 12, 1)  # 3 blocks: must wait
    observed.add("small", 1, 1, first=9)
    observed.step()
    assert [state.id for state in observed.engine.scheduler.waiting] == ["big", "small"]
    finished = observed.finish_steps()
    assert list(finished) == ["first", "big", "small"] or finished["big"] <= finished["small"]


def test_the_youngest_gives_way_when_blocks_run_out_and_comes_back_before_later_arrivals() -> None:
    observed = Observed(n_blocks=4, block_size=2, prefix_sharing=False)
    observed.add("old", 2, 5)  # 6 tokens in the cache at the end, 3 blocks
    observed.add("young", 2, 5)
    observed.step()
    observed.add("later", 1, 1)
    while not observed.engine.stats.n_preemptions:
        observed.step()
    assert observed.last is not None
    assert [state.id for state in observed.last.preempted] == ["young"]
    assert [state.id for state in observed.engine.scheduler.waiting] == ["young", "later"]
    n_steps = len(observed.steps)
    observed.finish_steps()
    after = observed.steps[n_steps:]
    assert observed.engine.stats.n_preemptions == 1
    back = {name: min(i for i, step in enumerate(after) if name in step) for name in ("young", "later")}
    assert back["young"] <= back["later"]
    assert all("young" not in step for step in after if "old" in step)


def test_a_prompt_waits_with_the_blocks_it_has_before_it_is_preempted() -> None:
    observed = Observed(n_blocks=6, block_size=2, token_budget=4, max_running=3, chunk_size=2, prefix_sharing=False)
    observed.add("a", 1, 6)  # grows to 3 blocks
    observed.step()
    observed.add("prompt", 7, 1, first=5)  # fits when it is admitted, but its fourth block is gone when its turn comes
    observed.finish_steps()
    assert observed.steps == [{"a": 1}, *[{"a": 1, "prompt": 2}] * 3, {"a": 1}, {"a": 1}, {"prompt": 1}]
    assert observed.engine.stats.n_preemptions == 0


def test_requests_are_served_by_arrival_time_then_by_the_order_of_adding() -> None:
    observed = Observed(max_running=1)
    for name, arrival in (("third", 5.0), ("first", 1.0), ("fourth", 5.0), ("second", 3.0)):
        observed.engine.add(Request(name, (1,), 2, arrival=arrival))
    assert list(observed.finish_steps()) == ["first", "second", "third", "fourth"]


def test_a_static_batch_admits_nobody_until_its_last_request_is_done() -> None:
    observed = Observed(batching="static", max_running=2)
    for i, length in enumerate([1, 4, 1]):
        observed.add(i, max_tokens=length)
    running = []
    while not observed.engine.idle:
        observed.step()
        running.append(sorted(observed.steps[-1]))
    assert running == [[0, 1], [1], [1], [1], [2]]


def test_cancelling_the_last_running_request_of_a_static_batch_releases_the_others() -> None:
    observed = Observed(batching="static", max_running=2)
    observed.add("short", max_tokens=1)
    observed.add("long", max_tokens=9)
    assert [output.finish for output in observed.step()] == [None, None]
    observed.engine.cancel("long")
    assert [(output.request_id, output.finish) for output in observed.step()] == [("short", "length")]
    assert observed.engine.idle


def test_after_a_failed_step_the_queue_moves_on_though_its_second_request_did_not_fit_beside_the_first() -> None:
    observed = Observed(n_blocks=4, block_size=4, token_budget=16, prefix_sharing=False)
    observed.add("first", 8, 1)  # 2 blocks
    observed.add("big", 12, 1)  # 3 blocks
    model = observed.engine.model
    observed.engine.model = lambda batch, rows: 1 / 0  # type: ignore[assignment, return-value]
    with pytest.raises(StepError, match="the step over request 'first' failed: ZeroDivisionError"):
        observed.step()
    observed.engine.model = model
    assert [output.request_id for _ in range(4) for output in observed.step()] == ["first", "big"]
    assert observed.engine.idle


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"token_budget": 3, "max_running": 4}, "a budget of 3 tokens a step cannot decode 4 running sequences"),
        ({"chunk_size": 0}, "chunk_size must be at least 1, got 0"),
        ({"batching": "dynamic"}, "batching must be one of continuous, static, got 'dynamic'"),
        ({"preemption": "swap"}, "host_blocks > 0"),
        ({"preemption": "swap", "host_blocks": 4, "paged": False}, "needs a paged cache"),
    ],
)
def test_switches_that_cannot_work_together_are_refused(switches: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EngineConfig(**switches)


class SchedulerMachine(RuleBasedStateMachine):
    """Random adds, steps, cancels, failing steps and preemptions; the rules of the house are checked after each.

    60 runs of up to 50 operations: about 3,000 operations.
    """

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        block_size = data.draw(st.sampled_from([1, 2, 3, 4, 8]), "block size")
        self.config = {
            "block_size": block_size,
            "n_blocks": data.draw(st.integers(-(-16 // block_size), -(-32 // block_size)), "blocks"),
            "max_running": data.draw(st.integers(1, 5), "slots"),
            "token_budget": data.draw(st.integers(5, 12), "budget"),
            "chunk_size": data.draw(st.sampled_from([None, 1, 2, 5]), "chunk"),
            "prefix_sharing": data.draw(st.booleans(), "sharing"),
            "preemption": data.draw(st.sampled_from(["recompute", "swap"]), "preemption"),
            "host_blocks": data.draw(st.sampled_from([1, 8, 64]), "host blocks"),
            "batching": data.draw(st.sampled_from(["continuous", "continuous", "static"]), "batching"),
        }
        self.observed = Observed(**self.config)
        self.engine = self.observed.engine
        self.wanted: dict[int, int] = {}  # tokens that each live request is to get
        self.got: dict[int, list[int]] = {}
        self.prompts: dict[int, int] = {}  # last prompt token
        self.n_added = 0
        self.failing = False

    def take(self, outputs: list[Output]) -> None:
        for output in outputs:
            i = output.request_id
            assert isinstance(i, int)
            self.got[i] += output.tokens
            if output.finish is not None:
                if output.finish == "length":
                    start = self.prompts[i] + 1
                    assert self.got[i] == [(start + k) % 19 for k in range(self.wanted[i])]
                del self.wanted[i]

    @rule(n_prompt=st.integers(1, 11), max_tokens=st.integers(1, 6), first=st.integers(0, 2))
    def add(self, n_prompt: int, max_tokens: int, first: int) -> None:
        i = self.n_added
        self.n_added += 1
        self.observed.add(i, n_prompt, max_tokens, first)
        self.wanted[i], self.got[i], self.prompts[i] = max_tokens, [], first + n_prompt - 1

    @rule()
    def step(self) -> None:
        scheduler = self.engine.scheduler
        decodes = [
            state
            for state in scheduler.running
            if state.n_output
            and len(state.tokens) - self.engine.cache.length(state.id) == 1
            and state.id not in scheduler._arriving
        ]
        self.observed.last = None
        outputs = self.observed.step()
        self.take(outputs)
        step = self.observed.last
        if step is None:
            assert outputs or not scheduler.waiting, "requests wait, but nothing was computed and nobody made room"
            return
        sizes = [len(chunk.tokens) for chunk in step.chunks]
        assert sum(sizes) <= self.config["token_budget"]  # type: ignore[operator]
        in_step = [chunk.state for chunk in step.chunks]
        for state in decodes:
            assert state in in_step or state in step.preempted, f"decode {state.id} was skipped"
        oldest_kept = min(state.priority for state in in_step)
        for state in step.preempted:
            assert state.priority > oldest_kept, "the oldest was preempted for a younger one"

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        i = data.draw(st.sampled_from(sorted(self.wanted)), "cancel")
        self.take([self.engine.cancel(i)])

    @precondition(lambda self: self.engine.n_running)
    @rule(data=st.data())
    def preempt_the_youngest(self, data: st.DataObject) -> None:
        self.engine.scheduler.preempt(self.engine.scheduler.running[-1])

    @rule()
    def step_that_fails(self) -> None:
        def broken(batch: object, rows: object) -> Any:
            raise ArithmeticError("the model broke")

        before = {state.id: self.engine.cache.length(state.id) for state in self.engine.scheduler.running}
        model, self.engine.model = self.engine.model, broken
        held = self.engine.scheduler._done  # a static batch that a cancel ended: the next step only hands it over
        if self.engine.n_running or (self.engine.n_waiting and not held):
            with pytest.raises(StepError, match="the model broke"):
                self.observed.step()
        self.engine.model = model
        for state in self.engine.scheduler.running:
            if state.id in before:
                assert self.engine.cache.length(state.id) == before[state.id]

    @invariant()
    def running_requests_are_older_than_waiting_ones(self) -> None:
        if not hasattr(self, "observed"):
            return
        scheduler = self.engine.scheduler
        in_order = [state.priority for state in [*scheduler.running, *scheduler.waiting]]
        assert in_order == sorted(in_order)
        assert len(scheduler.running) <= self.config["max_running"]  # type: ignore[operator]

    @invariant()
    def blocks_belong_to_running_requests_alone(self) -> None:
        if not hasattr(self, "observed"):
            return
        cache, scheduler = self.engine.cache, self.engine.scheduler
        assert isinstance(cache, PagedCache)
        used = {block for state in scheduler.running for block in cache.block_table(state.id)}
        assert len(used) + cache.free_blocks == self.config["n_blocks"]
        if scheduler.swap is not None:
            on_host = {state.id for state in scheduler.waiting if state.swapped} | scheduler._arriving
            assert set(scheduler.swap._tokens) == on_host
            if not on_host:
                assert scheduler.swap.host.free_blocks == self.config["host_blocks"]

    def teardown(self) -> None:
        if not hasattr(self, "observed"):
            return
        for _ in range(400):
            if self.engine.idle:
                break
            self.take(self.observed.step())
        assert self.engine.idle, "requests are left that never finish"
        assert not self.wanted
        assert blocks_in_use(self.engine) == 0


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
