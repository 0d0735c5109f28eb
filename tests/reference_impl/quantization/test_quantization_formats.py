"""Bits in bytes: packing, and GGUF's formats against the `gguf` package's own quantizer."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reference_impl.quantization import gguf_blocks
from reference_impl.quantization.groupwise import pack_int4
from reference_impl.quantization.packing import pack_bits, unpack_bits


def integers(bits: int, *shape: int) -> torch.Tensor:
    half = 2 ** (bits - 1)
    return torch.randint(-half, half, shape, generator=torch.Generator().manual_seed(bits), dtype=torch.int8)


# --- packing


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("n", [0, 1, 7, 8, 13])
def test_packed_integers_come_back_and_take_no_bit_more(bits, n):
    q = integers(bits, 3, n)
    packed = pack_bits(q, bits)
    assert packed.shape == (3, -(-n * bits // 8))
    assert torch.equal(unpack_bits(packed, bits, n), q)


def test_three_bits_are_packed_lowest_first():
    packed = pack_bits(torch.tensor([[1, -1, 3, -4, 0]], dtype=torch.int8), 3)  # 001 111 011 100 000
    assert [f"{byte:08b}" for byte in packed[0].tolist()] == ["11111001", "00001000"]


def test_four_bits_are_packed_like_the_lesson_s_nibbles():
    q = integers(4, 2, 9)
    assert torch.equal(pack_bits(q, 4), pack_int4(q))


def test_packing_names_what_does_not_fit():
    with pytest.raises(ValueError, match=r"q\[0, 1\] is 4, expected a 3-bit integer, -4 to 3"):
        pack_bits(torch.tensor([[1, 4]], dtype=torch.int8), 3)
    with pytest.raises(ValueError, match="5 values of 3 bits need 2 bytes a row, got 3"):
        unpack_bits(torch.zeros(1, 3, dtype=torch.uint8), 3, 5)
    with pytest.raises(ValueError, match=r"q must be torch\.int8"):
        pack_bits(torch.zeros(1, 3), 3)
    with pytest.raises(ValueError, match="bits must be 2 to 8"):
        unpack_bits(torch.zeros(1, 3, dtype=torch.uint8), 9, 2)


# --- GGUF

KINDS = ("Q8_0", "Q4_0", "Q4_1")


def block(*first: float) -> np.ndarray:
    return np.array([*first, *[0.0] * (32 - len(first))], dtype=np.float32)


def test_q8_0_rounds_halves_away_from_zero():
    data = gguf_blocks.write(block(127, 0.5, 1.5, 2.5, -0.5, -2.5, -126.5, 63.5), "Q8_0")
    assert data[:2].view(np.float16) == 1
    assert data[2:10].view(np.int8).tolist() == [127, 1, 2, 3, -1, -3, -127, 64]


def test_q4_0_takes_the_sign_of_its_largest_weight_into_the_scale():
    data = gguf_blocks.write(block(8, -8, 4, 1, -1, 0.5, -0.5, 7), "Q4_0")
    assert data[:2].view(np.float16) == -1
    assert (data[2:10] & 15).tolist() == [0, 15, 4, 7, 9, 8, 9, 1]


def test_q4_0_puts_value_j_and_value_j_plus_16_into_one_byte():
    weight = np.zeros(32, dtype=np.float32)
    weight[[0, 1, 17]] = [-8, 1, 2]  # d = 1
    assert gguf_blocks.write(weight, "Q4_0")[2:4].tolist() == [0x80, 0x9 | 0xA << 4]


# Nothing but 0 below 1e-20: where 1/d is infinite, the package casts an infinity to a byte, which C leaves open.
small_ones_are_0 = st.floats(-30, 30, width=32).map(lambda x: x if abs(x) >= 1e-20 else 0.0)
matrices = hnp.arrays(
    np.float32,
    st.sampled_from([(1, 32), (3, 64)]),
    elements=small_ones_are_0 | st.sampled_from([0.0, 1e-9, 2.5, -2.5, 0.5, 7.5]),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(weight=matrices, exponent=st.integers(-20, 10))
def test_bytes_are_those_of_the_gguf_package(kind, weight, exponent):
    weight = np.ldexp(weight, exponent).astype(np.float32)
    ours = gguf_blocks.write(weight, kind, underflow="zero")
    with np.errstate(all="ignore"):
        assert np.array_equal(ours, gguf.quants.quantize(weight, gguf.GGMLQuantizationType[kind]))


@pytest.mark.parametrize("kind", gguf_blocks.BITS_PER_WEIGHT)
def test_any_bytes_are_read_as_the_gguf_package_reads_them(kind):
    n_bytes = {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20, "Q4_K": 144, "Q6_K": 210}[kind]
    data = np.random.default_rng(0).integers(0, 256, (5, 2 * n_bytes), dtype=np.uint8)
    expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    found = gguf_blocks.read(data, kind)
    assert found.shape == (5, 64 if n_bytes < 100 else 512)
    assert np.array_equal(found, expected, equal_nan=True)
    assert 8 * data.size / found.size == gguf_blocks.BITS_PER_WEIGHT[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_zeros_comes_back_and_a_constant_one_to_within_half_a_step(kind):
    zeros = np.zeros((1, 32), dtype=np.float32)
    assert np.array_equal(gguf_blocks.read(gguf_blocks.write(zeros, kind), kind), zeros)
    constant = np.full((1, 32), 5.0, dtype=np.float32)
    assert gguf_blocks.read(gguf_blocks.write(constant, kind), kind)[0].tolist() == pytest.approx([5.0] * 32, rel=1e-3)


@pytest.mark.parametrize(
    ("weight", "kind", "message"),
    [
        (np.ones(33), "Q8_0", "Q8_0 holds whole blocks of 32 weights a row"),
        (block(1, np.inf), "Q8_0", r"weight\[1\] is inf"),
        (np.stack([block(1), block(np.nan)]), "Q4_0", r"weight\[1, 0\] is nan"),
        (block(1e-6), "Q8_0", "Q8_0 block 0: .* would become 0 in float16"),
        (block(1e-7), "Q4_0", "Q4_0 block 0: .* would become 0 in float16"),
        (block(1e7), "Q8_0", "is beyond float16's largest number"),
        (block(-1e5), "Q4_1", "is beyond float16's largest number"),
        (block(1), "Q5_K", "can write Q8_0, Q4_0, Q4_1, not Q5_K"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_by_name(weight, kind, message):
    with pytest.raises(ValueError, match=message):
        gguf_blocks.write(weight, kind)


def test_reading_refuses_cut_rows_and_unknown_kinds():
    with pytest.raises(ValueError, match="Q8_0 blocks have 34 bytes"):
        gguf_blocks.read(np.zeros(33, dtype=np.uint8), "Q8_0")
    with pytest.raises(ValueError, match=r"can read .*, not Q9"):
        gguf_blocks.read(np.zeros(34, dtype=np.uint8), "Q9")
