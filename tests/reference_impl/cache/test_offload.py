"""Offload to host memory and back: same logits, nothing reused or read while in flight, damage noticed."""

from __future__ import annotations

import pytest
import torch
from cache_machine import CacheMachine
from cache_oracle import TINY, assert_same, recomputed, step, text, tiny_llama
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from reference_impl.cache.offload import Offloader
from reference_impl.cache.paged import PagedCache


def paged(n_blocks: int, block_size: int = 4, **options: object) -> PagedCache:
    return PagedCache(TINY, n_blocks, block_size, dtype=torch.float64, debug=True, **options)


def running(tokens: list[int], n_blocks: int = 8, n_host_blocks: int = 8, **options: object) -> tuple:
    """A cache with one sequence "a" that holds these tokens, and its offloader."""
    kv = paged(n_blocks, **options)
    kv.add("a")
    step(kv, ("a", tokens))
    return kv, Offloader(kv, n_host_blocks)


class OffloadMachine(CacheMachine):
    """The cache's random operations with swaps among them."""

    operations = 0

    def begin(self) -> None:
        self.offloader = Offloader(self.cache, 8)
        self.away: dict[int, list[int]] = {}  # on the host or in flight

    def everything(self) -> object:
        host = self.offloader.host
        return super().everything(), list(host._free), list(host._tables), dict(self.offloader._swaps)

    def pick_away(self, i: int) -> int:
        return sorted(self.away)[i % len(self.away)]

    @precondition(lambda self: self.texts)
    @rule(i=st.integers(0, 99))
    def swap_out(self, i: int) -> None:
        seq = self.pick(i)
        if self.offloader.host.free_blocks < len(self.cache.block_table(seq)):
            self.expect_unchanged(MemoryError, lambda: self.offloader.swap_out(seq))
            return
        self.offloader.swap_out(seq)
        assert self.offloader.where(seq) == "leaving"
        self.away[seq] = self.texts.pop(seq)

    @precondition(lambda self: self.away)
    @rule(i=st.integers(0, 99))
    def swap_in(self, i: int) -> None:
        seq = self.pick_away(i)
        if self.offloader.where(seq) != "host":
            self.expect_unchanged(RuntimeError, lambda: self.offloader.swap_in(seq))
            return
        try:
            self.offloader.swap_in(seq)
        except MemoryError:
            assert self.offloader.where(seq) == "host"
            assert self.cache.free_blocks < -(-len(self.away[seq]) // self.cache.block_size)
        else:
            assert self.offloader.where(seq) == "arriving"

    @rule()
    def poll(self) -> None:
        for seq in self.offloader.poll():
            if self.offloader.where(seq) == "device":
                self.texts[seq] = self.away.pop(seq)
        assert not self.cache.in_flight

    @precondition(lambda self: self.away)
    @rule(i=st.integers(0, 99))
    def cancel(self, i: int) -> None:
        seq = self.pick_away(i)
        self.offloader.free(seq)
        del self.away[seq]
        self.expect_unchanged(KeyError, lambda: self.offloader.free(seq))
        self.expect_unchanged(KeyError, lambda: self.cache.free(seq))

    @precondition(lambda self: self.cache.in_flight)
    @rule(i=st.integers(0, 99))
    def touch_a_sequence_in_flight(self, i: int) -> None:
        seq = sorted(self.cache.in_flight)[i % len(self.cache.in_flight)]
        self.expect_unchanged(RuntimeError, lambda: self.cache.extend([(seq, [1])]))
        self.expect_unchanged(RuntimeError, lambda: self.cache.fork(seq, "y"))
        self.expect_unchanged(RuntimeError, lambda: self.cache.truncate(seq, 0))
        self.expect_unchanged(RuntimeError, lambda: self.cache.free(seq))
        self.expect_unchanged(RuntimeError, lambda: self.offloader.swap_out(seq))

    @invariant()
    def host_blocks_have_one_owner(self) -> None:
        host = self.offloader.host
        used = [block for table in host._tables.values() for block in table.blocks]
        assert sorted([*host._free, *used]) == list(range(host.n_blocks))
        assert set(host._tables) == set(self.away)

    def teardown(self) -> None:
        if hasattr(self, "offloader"):
            for seq in list(self.away):
                self.offloader.free(seq)
            assert self.offloader.host.free_blocks == 8
        super().teardown()


def test_everything_holds_after_each_of_thousands_of_random_operations_with_swaps_among_them() -> None:
    OffloadMachine.operations = 0
    run_state_machine_as_test(
        OffloadMachine, settings=settings(max_examples=50, stateful_step_count=50, deadline=None, derandomize=True)
    )
    assert OffloadMachine.operations >= 2000


@pytest.mark.parametrize("sharing", [True, False])
def test_a_sequence_goes_on_after_its_return_as_if_it_had_never_left(sharing: bool) -> None:
    tokens = text(30)
    for n in range(1, 20):
        kv, offloader = running(tokens[:n], prefix_sharing=sharing)
        offloader.swap_out("a")
        assert offloader.wait() == ["a"]
        assert offloader.where("a") == "host"
        assert kv.free_blocks == 8
        kv.add("other")
        step(kv, ("other", text(32, 1)))  # uses every block of the device
        kv.free("other")
        offloader.swap_in("a")
        assert offloader.wait() == ["a"]
        assert offloader.where("a") == "device"
        assert offloader.host.free_blocks == 8
        (logits,) = step(kv, ("a", tokens[n:]))
        assert_same(logits, recomputed(tokens)[n:])


def test_blocks_on_their_way_out_are_not_given_to_anyone() -> None:
    tokens = text(14)
    kv, offloader = running(tokens, n_blocks=5)
    leaving = set(kv.block_table("a"))
    offloader.swap_out("a")
    assert kv.free_blocks == 1
    kv.add("other")
    with pytest.raises(MemoryError, match="needs 2 more blocks, 1 of 5 are free"):
        kv.extend([("other", [0] * 5)])
    step(kv, ("other", [0] * 4))
    assert not leaving & set(kv.block_table("other"))
    assert offloader.poll() == ["a"]
    assert kv.free_blocks == 4


def test_a_sequence_in_flight_can_be_neither_read_nor_changed() -> None:
    tokens = text(10)
    kv, offloader = running(tokens)
    for swap in (offloader.swap_out, offloader.swap_in):
        swap("a")
        for call in (
            lambda: kv.extend([("a", [1])]),
            lambda: kv.fork("a", "b"),
            lambda: kv.truncate("a", 3),
            lambda: kv.free("a"),
        ):
            with pytest.raises(RuntimeError, match="'a' is being copied"):
                call()
        offloader.wait()
    (logits,) = step(kv, ("a", [1]))
    assert_same(logits[-1], recomputed([*tokens, 1])[-1])


def test_a_prefix_that_stayed_on_the_device_is_shared_and_not_copied_back() -> None:
    tokens = text(14)
    kv, offloader = running(tokens)
    kv.add("b", tokens)
    kv.free("b")
    head = kv.block_table("a")[:3]
    offloader.swap_out("a")
    offloader.wait()
    offloader.swap_in("a")
    assert kv.block_table("a")[:3] == head
    assert len(offloader._swaps["a"].pairs) == 1
    offloader.wait()
    (logits,) = step(kv, ("a", [1]))
    assert_same(logits[-1], recomputed([*tokens, 1])[-1])


def test_one_of_two_forks_leaves_and_the_other_goes_on() -> None:
    tokens = text(6)
    kv, offloader = running(tokens)
    kv.fork("a", "b")
    offloader.swap_out("b")
    (logits,) = step(kv, ("a", [1]))  # writes into the block that is shared with the one in flight
    assert_same(logits[-1], recomputed([*tokens, 1])[-1])
    offloader.wait()
    offloader.swap_in("b")
    offloader.wait()
    (logits,) = step(kv, ("b", [2]))
    assert_same(logits[-1], recomputed([*tokens, 2])[-1])


def test_damage_on_the_way_is_noticed_and_named() -> None:
    kv, offloader = running(text(6))
    offloader.swap_out("a")
    offloader.wait()
    block = offloader.host.block_table("a")[1]
    offloader.host_blocks[block, 0, 1, 0, 1, 2] += 1e-12
    offloader.swap_in("a")  # block 0 is known to the device still; the second is copied
    with pytest.raises(RuntimeError, match=r"sequence 'a' came back damaged: checksum differs in blocks \[\d\]"):
        offloader.poll()
    with pytest.raises(KeyError):
        offloader.where("a")
    assert kv.free_blocks == 8
    assert offloader.host.free_blocks == 8


def test_a_full_host_refuses_and_the_sequence_stays() -> None:
    tokens = text(10)
    kv, offloader = running(tokens, n_host_blocks=2)
    with pytest.raises(MemoryError, match="host memory: needs 3 more blocks, 2 of 2 are free"):
        offloader.swap_out("a")
    assert offloader.where("a") == "device"
    assert offloader.host.free_blocks == 2
    (logits,) = step(kv, ("a", [1]))
    assert_same(logits[-1], recomputed([*tokens, 1])[-1])


def test_a_full_device_refuses_and_the_sequence_stays_on_the_host() -> None:
    tokens = text(10)
    kv, offloader = running(tokens, n_blocks=4, prefix_sharing=False)
    offloader.swap_out("a")
    offloader.wait()
    kv.add("other")
    step(kv, ("other", text(8, 1)))
    with pytest.raises(MemoryError, match="needs 3 more blocks, 2 of 4 are free"):
        offloader.swap_in("a")
    assert offloader.where("a") == "host"
    kv.free("other")
    offloader.swap_in("a")
    offloader.wait()
    (logits,) = step(kv, ("a", [1]))
    assert_same(logits[-1], recomputed([*tokens, 1])[-1])


def test_unknown_and_misplaced_sequences_are_refused() -> None:
    _, offloader = running(text(3))
    for call in (offloader.swap_out, offloader.swap_in, offloader.where, offloader.free):
        with pytest.raises(KeyError, match="'x'"):
            call("x")
    with pytest.raises(RuntimeError, match="'a' is not on the host: device"):
        offloader.swap_in("a")
    with pytest.raises(KeyError, match="no sequence 'a' on the host"):
        offloader.free("a")


def test_cancelling_at_every_stage_frees_both_sides() -> None:
    for stage in range(3):
        kv, offloader = running(text(10))
        offloader.swap_out("a")
        if stage > 0:
            offloader.wait()
        if stage > 1:
            offloader.swap_in("a")
        offloader.free("a")
        assert (kv.free_blocks, offloader.host.free_blocks) == (8, 8)
        assert offloader.poll() == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_swaps_through_pinned_memory_on_a_stream_of_its_own() -> None:
    tokens = text(40)
    kv = PagedCache(TINY, 12, 4, dtype=torch.float64, device="cuda", debug=True)
    offloader = Offloader(kv, 12)
    assert offloader.host_blocks.is_pinned()
    model = tiny_llama(device="cuda")
    kv.add("a")
    batch = kv.extend([("a", tokens[:30])])
    model(batch)
    kv.commit(batch)
    offloader.swap_out("a")
    offloader.wait()
    kv.add("other")
    batch = kv.extend([("other", text(48, 1))])
    model(batch)
    kv.commit(batch)
    kv.free("other")
    offloader.swap_in("a")
    assert offloader.wait() == ["a"]
    logits = model(kv.extend([("a", tokens[30:])])).cpu()
    torch.testing.assert_close(logits, recomputed(tokens)[30:], rtol=0, atol=1e-9)
