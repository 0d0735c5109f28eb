"""Recorded passes: a replay gives the model's own logits and cache, and what cannot be recorded goes to the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.paged import PagedCache
from reference_impl.cache.recompute import Recompute
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.model.replay import MOST_KEPT, MOST_TOKENS, RecordedPasses

pytest.importorskip("numba", reason="the CPU kernels need numba")
SHAPE = ModelConfig("tiny", 2, 32, 4, 2, 8, 48, 60, max_context=512)
VARIANTS = {
    "untied": SHAPE,
    "tied": replace(SHAPE, tied=True),
    "Qwen2.5": replace(SHAPE, qkv_bias=True),
    "Qwen3": replace(SHAPE, qk_norm=True),
}


def model_of(config: ModelConfig, dtype: torch.dtype = torch.float32) -> Llama:
    return Llama(config, dtype).randomize(torch.Generator().manual_seed(3), std=0.2)


def run_both(model: Llama, dtype: torch.dtype = torch.float32) -> RecordedPasses:
    """The same passes through the model and its recording, logits equal bit for bit; every shape comes three times."""
    fused = FusedLlama(model)
    recorded = RecordedPasses(fused)
    caches = [PagedCache(model.config, 40, 4, dtype=dtype) for _ in range(2)]
    for cache in caches:
        cache.add("a")
        cache.add("b")
    token = 0
    with torch.inference_mode():
        for chunks in [{"a": 9, "b": 3}, *[{"a": 1, "b": 1}, {"a": 1}, {"b": 4}, {"a": 2, "b": 1}] * 3]:
            new = [(seq, [(token := (token * 7 + 1) % 60) for _ in range(n)]) for seq, n in chunks.items()]
            for rows in (False, True):
                batches = [cache.extend(new) for cache in caches]
                expected = fused(batches[0], batches[0].last_rows if rows else None)
                got = recorded(batches[1], batches[1].last_rows if rows else None)
                assert torch.equal(got, expected)
                for cache, batch in zip(caches, batches, strict=True):
                    (cache.commit if rows else cache.abort)(batch)
    assert torch.equal(*(torch.stack([cache.storage.k, cache.storage.v]) for cache in caches))
    return recorded


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_replayed_pass_has_the_models_logits_and_leaves_the_same_cache(name: str, dtype: torch.dtype) -> None:
    recorded = run_both(model_of(VARIANTS[name], dtype), dtype)
    assert recorded.refused == ""
    assert len(recorded.shapes) == 5  # the kinds of pass; with rows only those in which every token wants logits


def test_what_pytorch_computes_itself_is_not_recorded() -> None:
    recorded = run_both(model_of(SHAPE, torch.float64), torch.float64)
    assert recorded.refused == "aten::embedding"
    assert recorded.shapes == []


def test_long_passes_and_batches_without_a_cache_go_to_the_model() -> None:
    recorded = RecordedPasses(FusedLlama(model := model_of(SHAPE)))
    assert torch.equal(recorded(Recompute([1, 2, 3])), model(Recompute([1, 2, 3])))
    cache = ContiguousCache(SHAPE, 1, 200)
    cache.add(0)
    recorded(cache.extend([(0, [1] * (MOST_TOKENS + 1))]))
    assert recorded.shapes == []


def test_a_piece_of_a_prompt_is_left_to_the_model_and_recordings_are_bounded() -> None:
    recorded = RecordedPasses(FusedLlama(model_of(SHAPE)))
    cache = ContiguousCache(SHAPE, 64, 20)
    for slot in range(64):
        cache.add(slot)
    piece = cache.extend([(0, [1, 2, 3])])
    recorded(piece, piece.last_rows)
    cache.abort(piece)
    assert recorded.shapes == []
    for n in range(1, 60):
        batch = cache.extend([(slot, [5]) for slot in range(n)])
        recorded(batch, batch.last_rows)
        cache.abort(batch)
    tokens = [shape[0] for shape in recorded.shapes]
    assert tokens == sorted(tokens)
    assert MOST_KEPT - 60 < sum(tokens) <= MOST_KEPT


def test_another_cache_is_not_mistaken_for_the_first() -> None:
    model = model_of(SHAPE)
    recorded = RecordedPasses(FusedLlama(model))
    for last in (5, 6):
        cache = ContiguousCache(SHAPE, 1, 20)
        cache.add(0)
        batch = cache.extend([(0, [1, last])])
        torch.testing.assert_close(recorded(batch), model(Recompute([1, last])), rtol=0, atol=1e-5)


def test_the_engine_answers_the_same_with_and_without() -> None:
    requests = [Request(i, tuple(range(1, 4 + i)), max_tokens=12) for i in range(5)]
    answers = []
    for on in (True, False):
        engine = Engine.for_llama(model_of(SHAPE), EngineConfig(n_blocks=32, max_running=3, recorded=on))
        answers.append({i: done.tokens for i, done in engine.run(requests).items()})
    assert answers[0] == answers[1]


def test_rows_in_another_order_are_left_to_the_model() -> None:
    fused = FusedLlama(model_of(SHAPE))
    recorded = RecordedPasses(fused)
    cache = ContiguousCache(SHAPE, 2, 20)
    for slot in range(2):
        cache.add(slot)
    batch = cache.extend([(0, [5]), (1, [7])])
    swapped = torch.tensor([1, 0])
    assert torch.equal(recorded(batch, swapped), fused(batch, swapped))
    assert recorded.shapes == []
