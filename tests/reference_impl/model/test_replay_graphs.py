"""Graphed decode: a capture that only computes again stands in for CUDA, so padding and copying are tested anywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reference_impl.cache.paged import PagedCache
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.replay import BATCH_SIZES, DecodeGraphs, padding, sizes_up_to

from serving_oracle import TINY, one_thread, tiny_model  # noqa: F401 isort: skip (the fixture is used)


class Recorder:
    """Stands in for a CUDA graph: a replay computes again from the same buffers into the same tensor."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.replays: list[int] = []

    def __call__(self, run: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        out = run().clone()
        size = len(out)
        self.sizes.append(size)

        def replay() -> None:
            self.replays.append(size)
            out.copy_(run())

        return replay, out


def cache_of(*prompts: list[int], debug: bool = True) -> PagedCache:
    cache = PagedCache(TINY, 32, 4, torch.float64, prefix_sharing=False, debug=debug)
    for seq, prompt in enumerate(prompts):
        cache.add(seq)
        batch = cache.extend([(seq, prompt)])
        tiny_model()(batch, batch.last_rows)
        cache.commit(batch)
    return cache


@pytest.mark.parametrize(("n", "size"), [(1, 1), (2, 4), (3, 4), (4, 4)])
def test_a_padded_step_gives_the_models_own_logits_and_stores_the_same_keys(n: int, size: int) -> None:
    prompts = [[1, 2, 3], [4, 5, 6, 7, 8, 9], [3], [7] * 9][:n]
    plain, graphed = cache_of(*prompts), cache_of(*prompts)
    recorder = Recorder()
    graphs = DecodeGraphs(tiny_model(), graphed.storage, 8, (1, 4), recorder)
    for token in (3, 11):
        steps = [cache.extend([(seq, [token + seq]) for seq in range(n)]) for cache in (plain, graphed)]
        expected = tiny_model()(steps[0], steps[0].last_rows)
        torch.testing.assert_close(graphs(steps[1], steps[1].last_rows), expected, rtol=0, atol=1e-12)
        plain.commit(steps[0])
        graphed.commit(steps[1])
    assert recorder.sizes == [size]  # recorded once
    assert recorder.replays == [size]  # recording has computed the first
    for seq in range(n):
        for block in plain.block_table(seq):
            torch.testing.assert_close(graphed.storage.k[:, block], plain.storage.k[:, block], equal_nan=True)


def test_padding_rows_store_nothing_even_after_a_fuller_batch() -> None:
    """The rows of sequences that have ended are still in the buffers: they must not write into blocks given away."""
    cache = cache_of([1, 2], [4, 5, 6])
    graphs = DecodeGraphs(tiny_model(), cache.storage, 8, (2,), Recorder())
    both = cache.extend([(0, [1]), (1, [2])])
    graphs(both, both.last_rows)
    cache.commit(both)
    (block,) = cache.block_table(1)
    cache.free(1)
    one = cache.extend([(0, [3])])
    graphs(one, one.last_rows)
    assert cache.storage.k[:, block].isnan().all()  # as poisoned when it was freed


def test_logits_stay_as_they_are_when_the_next_step_is_replayed() -> None:
    cache = cache_of([1, 2, 3])
    graphs = DecodeGraphs(tiny_model(), cache.storage, 8, (1,), Recorder())
    first = cache.extend([(0, [1])])
    logits = graphs(first, first.last_rows)
    before = logits.clone()
    cache.commit(first)
    second = cache.extend([(0, [2])])
    graphs(second, second.last_rows)
    assert torch.equal(logits, before)


def test_prompts_partial_rows_large_batches_and_other_caches_go_to_the_model() -> None:
    cache = cache_of([1, 2], [3, 4], [5])
    graphs = DecodeGraphs(tiny_model(), cache.storage, 1, (1, 2), Recorder())

    def size_of(*chunks: tuple[int, list[int]], rows: int | None = None) -> int | None:
        batch = cache.extend(chunks)
        shape = graphs.shape_of(batch, batch.last_rows[:rows])
        cache.abort(batch)
        return None if shape is None else shape[0]

    assert size_of((0, [1])) == 1
    assert size_of((0, [1]), (1, [1])) == 2
    assert size_of((0, [1]), (1, [1]), rows=1) is None
    assert size_of((0, [1]), (1, [1, 2])) is None
    assert size_of((0, [1]), (1, [1]), (2, [1])) is None  # larger than any recorded size
    assert size_of((0, [1, 2])) is None
    cache.commit(cache.extend([(0, [1, 2])]))
    assert size_of((0, [1])) is None  # a table longer than the buffer
    other = cache_of([1])
    batch = other.extend([(0, [1])])
    assert graphs.shape_of(batch, batch.last_rows) is None


def test_an_engine_with_graphs_gives_the_same_answers() -> None:
    requests = [Request(i, tuple(range(1, 2 + 3 * i)), max_tokens=3 + 2 * i) for i in range(5)]
    switches = EngineConfig(max_running=4, token_budget=8, n_blocks=24, block_size=4, debug=True, keep_logits=True)
    plain = Engine.for_llama(tiny_model(), switches).run(requests)
    engine = Engine.for_llama(tiny_model(), switches)
    assert isinstance(engine.cache, PagedCache)
    recorder = Recorder()
    engine.model = DecodeGraphs(tiny_model(), engine.cache.storage, 24, (1, 2, 4), recorder)
    graphed = engine.run(requests)
    for i, answer in plain.items():
        assert graphed[i].tokens == answer.tokens
        torch.testing.assert_close(graphed[i].logits, answer.logits, rtol=0, atol=1e-9)
    assert len(recorder.replays) > 5


@pytest.mark.parametrize(("most", "sizes"), [(1, (1,)), (3, (1, 2, 4)), (8, (1, 2, 4, 8)), (999, BATCH_SIZES)])
def test_sizes_go_as_far_as_the_largest_batch_needs(most: int, sizes: tuple[int, ...]) -> None:
    assert sizes_up_to(most) == sizes


def test_record_makes_all_sizes_the_largest_first() -> None:
    recorder = Recorder()
    DecodeGraphs(tiny_model(), cache_of().storage, 8, (1, 4, 2, 4), recorder).record()
    assert recorder.sizes == [4, 2, 1]
    assert recorder.replays == []


def test_buffers_begin_as_padding_that_stores_nothing() -> None:
    cache = cache_of()
    batch = padding(cache.storage.layers, (3, 3, 8))
    tiny_model()(batch, batch.last_rows)
    assert cache.storage.k.isnan().all()


@pytest.mark.parametrize(("max_blocks", "sizes"), [(0, (1,)), (4, ()), (4, (0, 1))])
def test_nothing_to_record_is_refused(max_blocks: int, sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="nothing to record"):
        DecodeGraphs(tiny_model(), cache_of().storage, max_blocks, sizes, Recorder())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_graph_gives_the_models_own_logits() -> None:
    model = tiny_model().to("cuda", torch.float32)  # type: ignore[call-overload]
    cache = PagedCache(TINY, 8, 4, torch.float32, "cuda", prefix_sharing=False)
    graphs = DecodeGraphs(model, cache.storage, 8, (1, 2))
    cache.add(0)
    with torch.inference_mode():
        batch = cache.extend([(0, [1, 2, 3])])
        model(batch, batch.last_rows)
        cache.commit(batch)
        for token in range(4):
            step = cache.extend([(0, [token])])
            expected = model(step, step.last_rows)
            torch.testing.assert_close(graphs(step, step.last_rows), expected, rtol=1e-4, atol=1e-4)
            cache.commit(step)
