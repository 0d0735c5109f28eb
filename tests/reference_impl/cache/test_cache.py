"""What every cache must do, whatever its blocks: the same logits as computing the whole text again, in float64.

Each test runs over the contiguous cache and over pages of 1, 2, 3 and 16 tokens, with freed blocks full of NaN.
"""

from __future__ import annotations

import pytest
import torch
from cache_oracle import TINY, assert_same, recomputed, step, text, tiny_llama

from reference_impl.bounds.config import MODELS
from reference_impl.cache.contiguous import ContiguousCache
from reference_impl.cache.interface import KVCache
from reference_impl.cache.paged import PagedCache


def make_cache(kind: str | int, dtype: torch.dtype = torch.float64, device: str = "cpu") -> KVCache:
    """Room for 4 sequences of 48 tokens; `kind` is "contiguous" or a block size."""
    if isinstance(kind, str):
        return ContiguousCache(TINY, n_slots=4, max_tokens=48, dtype=dtype, device=device)
    return PagedCache(TINY, n_blocks=4 * 48 // kind, block_size=kind, dtype=dtype, device=device, debug=True)


@pytest.fixture(params=["contiguous", 1, 2, 3, 16])
def kv(request: pytest.FixtureRequest) -> KVCache:
    return make_cache(request.param)


def test_prefill_and_one_decode_equal_a_longer_prefill_at_every_split_point(kv: KVCache) -> None:
    tokens = text(35)
    expected = recomputed(tokens)
    for n in range(1, 35):
        kv.add(n)
        (prefill,) = step(kv, (n, tokens[:n]))
        (decode,) = step(kv, (n, tokens[n : n + 1]))
        assert_same(prefill, expected[:n])
        assert_same(decode, expected[n : n + 1])
        kv.free(n)


def test_one_query_sees_all_five_keys(kv: KVCache) -> None:
    """A causal mask anchored at the top left would let the single query see the first key only."""
    config = TINY
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(1, config.n_heads, config.head_dim, generator=generator, dtype=torch.float64)
    k = torch.randn(5, config.n_kv_heads, config.head_dim, generator=generator, dtype=torch.float64)
    v = torch.randn(5, config.n_kv_heads, config.head_dim, generator=generator, dtype=torch.float64)
    kv.add("a")
    first = kv.extend([("a", [0, 0, 0, 0])])
    first.attend(0, q.expand(4, -1, -1), k[:4], v[:4])
    kv.commit(first)
    out = kv.extend([("a", [0])]).attend(0, q, k[4:], v[4:])
    for head in range(config.n_heads):
        kv_head = head // 2  # 4 query heads share 2 KV heads
        weights = (k[:, kv_head] @ q[0, head] / 2).softmax(0)  # sqrt(head_dim) = 2
        assert_same(out[0, head], weights @ v[:, kv_head])


def test_three_decode_steps_equal_recomputing_the_whole_sequence(kv: KVCache) -> None:
    tokens = text(8)
    kv.add("a")
    step(kv, ("a", tokens[:5]))
    for n in (5, 6, 7):
        (logits,) = step(kv, ("a", [tokens[n]]))
        assert_same(logits[-1], recomputed(tokens[: n + 1])[-1])


def test_decoding_from_the_first_token_on_stores_it(kv: KVCache) -> None:
    tokens = text(6)
    kv.add("a")
    logits = torch.cat([step(kv, ("a", [token]))[0] for token in tokens])
    assert_same(logits, recomputed(tokens))


def test_a_changed_later_token_leaves_earlier_logits_of_its_chunk_as_they_were(kv: KVCache) -> None:
    past, chunk = text(5), text(3, seed=1)
    other = [*chunk[:2], (chunk[2] + 1) % TINY.vocab_size]
    kv.add("a")
    kv.add("b")
    step(kv, ("a", past), ("b", past))
    (logits,) = step(kv, ("a", chunk))
    (changed,) = step(kv, ("b", other))
    assert_same(changed[:2], logits[:2])
    assert (changed[2] - logits[2]).abs().max() > 1e-3


def test_sequences_of_different_lengths_in_one_batch_each_equal_the_run_alone(kv: KVCache) -> None:
    texts = {"a": text(1, 1), "b": text(17, 2), "c": text(32, 3), "d": text(9, 4)}
    for seq in texts:
        kv.add(seq)
    prefill = step(kv, *((seq, tokens[:-1] or tokens) for seq, tokens in texts.items()))
    for logits, tokens in zip(prefill, texts.values(), strict=True):
        assert_same(logits, recomputed(tokens)[: len(logits)])
    late = [seq for seq in reversed(texts) if seq != "a"]  # another order, another number of rows
    for seq, logits in zip(late, step(kv, *((seq, texts[seq][-1:]) for seq in late)), strict=True):
        assert_same(logits[-1], recomputed(texts[seq])[-1])


def test_chunks_of_every_size_give_the_same_logits(kv: KVCache) -> None:
    tokens = text(24)
    expected = recomputed(tokens)
    for size in range(1, 25):
        kv.add(size)
        for first in range(0, 24, size):
            (logits,) = step(kv, (size, tokens[first : first + size]))
            assert_same(logits, expected[first : first + size])
        kv.free(size)


def test_a_prefill_chunk_and_decodes_share_a_pass(kv: KVCache) -> None:
    long, short = text(30, 5), text(7, 6)
    kv.add("long")
    kv.add("short")
    step(kv, ("short", short[:4]))
    for i, first in enumerate(range(0, 30, 10)):
        decode, chunk = step(kv, ("short", [short[4 + i]]), ("long", long[first : first + 10]))
        assert_same(decode[0], recomputed(short)[4 + i])
        assert_same(chunk, recomputed(long)[first : first + 10])


def test_tokens_after_a_rollback_see_nothing_of_what_was_dropped(kv: KVCache) -> None:
    tokens, rejected = text(20), text(12, seed=9)
    for kept in range(1, 18):
        kv.add(kept)
        step(kv, (kept, tokens[:kept]))
        step(kv, (kept, rejected))
        kv.truncate(kept, kept)
        assert kv.length(kept) == kept
        (logits,) = step(kv, (kept, tokens[kept:]))
        assert_same(logits, recomputed(tokens)[kept:])
        kv.free(kept)


def test_last_rows_are_each_sequences_last_token_and_positions_its_own(kv: KVCache) -> None:
    kv.add("a")
    kv.add("b")
    step(kv, ("b", [1, 2]))
    batch = kv.extend([("a", [5, 6, 7]), ("b", [8])])
    assert batch.tokens.tolist() == [5, 6, 7, 8]
    assert batch.positions.tolist() == [0, 1, 2, 2]
    assert batch.last_rows.tolist() == [2, 3]


def test_an_aborted_pass_leaves_no_trace(kv: KVCache) -> None:
    tokens = text(20)
    kv.add("a")
    kv.add("b")
    step(kv, ("a", tokens[:9]), ("b", tokens[:3]))
    for _ in range(20):  # a leak of one block a time would show
        batch = kv.extend([("a", text(30, 1)), ("b", [5])])
        tiny_llama()(batch)
        kv.abort(batch)
    assert (kv.length("a"), kv.length("b")) == (9, 3)
    logits, _ = step(kv, ("a", tokens[9:]), ("b", tokens[3:]))
    assert_same(logits, recomputed(tokens)[9:])


def test_a_full_cache_says_what_was_needed_and_stays_as_it_was(kv: KVCache) -> None:
    tokens = text(48)
    kv.add("a")
    step(kv, ("a", tokens[:40]))
    assert kv.can_extend([("a", 8)])
    assert not kv.can_extend([("a", kv.capacity - 39)])
    with pytest.raises(MemoryError, match=r"needs \d+"):
        kv.extend([("a", [0] * (kv.capacity - 39))])
    assert kv.length("a") == 40
    (logits,) = step(kv, ("a", tokens[40:]))
    assert_same(logits, recomputed(tokens)[40:])


def test_unknown_sequences_are_key_errors_and_change_nothing(kv: KVCache) -> None:
    kv.add("a")
    step(kv, ("a", [1, 2, 3]))
    for call in (
        lambda: kv.length("x"),
        lambda: kv.can_extend([("x", 1)]),
        lambda: kv.extend([("a", [4]), ("x", [1])]),
        lambda: kv.truncate("x", 0),
        lambda: kv.free("x"),
    ):
        with pytest.raises(KeyError, match="x"):
            call()
    assert kv.length("a") == 3
    kv.free("a")
    with pytest.raises(KeyError):
        kv.free("a")


@pytest.mark.parametrize(
    ("chunks", "message"),
    [([], "at least one"), ([("a", [])], "'a' has no new token"), ([("a", [1]), ("a", [2])], "'a' is named twice")],
)
def test_a_pass_without_new_tokens_or_with_a_name_twice_is_refused(kv: KVCache, chunks: list, message: str) -> None:
    kv.add("a")
    with pytest.raises(ValueError, match=message):
        kv.extend(chunks)
    assert kv.length("a") == 0


def test_a_token_that_is_no_integer_is_refused_and_changes_nothing(kv: KVCache) -> None:
    kv.add("a")
    with pytest.raises(ValueError, match="invalid literal"):
        kv.extend([("a", ["hello"])])
    assert kv.length("a") == 0
    step(kv, ("a", [1]))


def test_a_name_in_use_is_refused(kv: KVCache) -> None:
    kv.add("a")
    with pytest.raises(ValueError, match="'a' is in the cache already"):
        kv.add("a")


def test_keeping_more_tokens_than_there_are_is_refused(kv: KVCache) -> None:
    kv.add("a")
    step(kv, ("a", [1, 2]))
    for n in (3, -1):
        with pytest.raises(ValueError, match="has 2 tokens, cannot keep"):
            kv.truncate("a", n)
    assert kv.length("a") == 2


def test_while_a_pass_is_open_nothing_else_may_change_the_cache(kv: KVCache) -> None:
    kv.add("a")
    batch = kv.extend([("a", [1, 2])])
    for call in (
        lambda: kv.add("b"),
        lambda: kv.extend([("a", [3])]),
        lambda: kv.truncate("a", 0),
        lambda: kv.free("a"),
    ):
        with pytest.raises(RuntimeError, match="commit or abort"):
            call()
    kv.commit(batch)
    with pytest.raises(ValueError, match="committed or aborted already"):
        kv.abort(batch)
    assert kv.length("a") == 2


@pytest.mark.parametrize("kind", ["contiguous", 16])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.25)])
def test_lower_precisions_run_and_stay_near(kind: str | int, dtype: torch.dtype, tolerance: float) -> None:
    """Logits here have a standard deviation of 1.2; bfloat16 keeps 8 bits of each number on the way."""
    tokens = text(40)
    kv = make_cache(kind, dtype)
    kv.add("a")
    logits = []
    for chunk in (tokens[:33], tokens[33:34], tokens[34:]):
        batch = kv.extend([("a", chunk)])
        logits.append(tiny_llama(dtype)(batch).double())
        kv.commit(batch)
    torch.testing.assert_close(torch.cat(logits), recomputed(tokens), rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["contiguous", 16])
def test_index_tensors_live_where_the_cache_does(kind: str | int) -> None:
    kv = ContiguousCache(TINY, 2, 48, device="meta") if kind == "contiguous" else PagedCache(TINY, 4, device="meta")
    kv.add("a")
    batch = kv.extend([("a", [1, 2, 3])])
    for name in ("tokens", "positions", "last_rows", "slots", "block_tables", "query_lens", "context_lens"):
        assert getattr(batch, name).device.type == "meta", name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["contiguous", 16])
def test_a_gpu_gives_the_same_logits(kind: str | int) -> None:
    tokens = text(40)
    kv = make_cache(kind, device="cuda")
    kv.add("a")
    logits = []
    for chunk in (tokens[:33], tokens[33:34], tokens[34:]):
        batch = kv.extend([("a", chunk)])
        logits.append(tiny_llama(device="cuda")(batch).cpu())
        kv.commit(batch)
    torch.testing.assert_close(torch.cat(logits), recomputed(tokens), rtol=0, atol=1e-9)


def test_a_contiguous_slot_is_reserved_whole_and_its_empty_part_is_waste() -> None:
    """Llama 3 8B: 131,072 bytes a token; 100 tokens in a slot of 8,192 waste 1.06 GB."""
    kv = ContiguousCache(MODELS["llama-3-8b"], 1, 8192, dtype=torch.bfloat16, device="meta")
    kv.add("a")
    kv.commit(kv.extend([("a", [0] * 100)]))
    usage = kv.usage()
    assert (usage.tokens, usage.reserved_tokens, usage.bytes_per_token) == (100, 8192, 131_072)
    assert usage.waste_bytes == 8092 * 131_072


def test_a_slot_is_free_again_after_its_sequence() -> None:
    kv = ContiguousCache(TINY, n_slots=2, max_tokens=4)
    kv.add("a")
    kv.add("b")
    with pytest.raises(MemoryError, match="'c' needs 1 slot, 0 of 2 are free"):
        kv.add("c")
    kv.free("a")
    assert kv.add("c", [1, 2, 3]) == 0


@pytest.mark.parametrize(("slots", "tokens"), [(0, 4), (4, 0), (-1, 4)])
def test_a_cache_of_nothing_is_refused(slots: int, tokens: int) -> None:
    with pytest.raises(ValueError, match="needs slots and tokens"):
        ContiguousCache(TINY, slots, tokens)
