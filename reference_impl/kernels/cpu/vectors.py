"""Building blocks that Numba's loops do not give: dot products of one vector with a few others, in LLVM's own vectors.

Of a row of int8 or int4 weights with rows of x, sixteen weights at a time: widened to 16 bits, multiplied by 16-bit
activations and added in pairs to 32-bit sums (one instruction on x86, `vpmaddwd`; LLVM finds what other processors
have). At the end of a group the sums become float32 and are multiplied by its scale; those of four rows are joined in
one vector before. From a plain loop LLVM makes the same instructions, but adds up each group's eight sums to one, which
takes a third of the time. With eight bits a weight the processor's own prefetching falls behind; asking ahead makes a
decode step of SmolLM2 a tenth shorter (two AVX2 cores). One row of x waits for memory. Four rows take 115 cycles for
576 weights from the nearest cache (Zen 3, the best of many runs), 91 of them for products and their additions alone:
that is what the vector units can do, and why a step of batch 4 is longer than its bytes say.

Of a query with four keys: their sums over the lanes are made together. A plain loop makes each on its own, and
attention over 44 tokens takes 1.4 times as long.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # weights that are multiplied at once
LINE = 64  # bytes of a cache line
AHEAD = 1536  # bytes between a weight and the line that is asked for meanwhile; 1 to 2 KB are alike here
FUSED = ("contract",)  # a product and its sum may be rounded once
STEP = {8: 16, 4: 32}  # weights that one load of 16 bytes holds; a group takes up a multiple of it

_F32, _I8, _I16, _I32, _I64 = ir.FloatType(), *(ir.IntType(bits) for bits in (8, 16, 32, 64))


def group_dots(bits: int, n: int, width: int | None = None) -> Any:
    """The dot products of one row of int8 or int4 weights with n rows of x, as a function for Numba kernels.

    dots(w, scales, x, out, n_in, width, groups, x_row, out_row): addresses, then numbers of values. w: a row's codes,
    n_in of them, a multiple of STEP; scales: float32 [groups], `width` codes each, the last one maybe fewer. x: int16
    [n, n_in], rows x_row apart. The result i goes to out[i * out_row]. int4 codes: a byte of a block of 32 holds in
    its lower half one of the first 16, in its upper half one of the last 16. With a `width` given here full groups are
    that wide, and need no inner loop.
    """

    def dots(typing_context, w, scales, x, out, n_in, width, groups, x_row, out_row):  # type: ignore[no-untyped-def]
        return types.void(*[types.int64] * 9), generate

    # Numba names what it compiles after its arguments, and linking takes equal names for the same code, also of what
    # several processes have left in the cache.
    dots.__name__ = f"int{bits}_dots_{n}" + ("" if width is None else f"_{width}")

    def generate(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        w, scales, x, out, n_in, any_width, groups, x_row, out_row = arguments
        totals = [cgutils.alloca_once_value(build, _zeros(_F32, 8)) for _ in range(1 if n == 4 else n)]
        sums = [cgutils.alloca_once_value(build, _zeros(_I32, 8)) for _ in range(n)]
        span = any_width if width is None else _I64(width)

        def add_products(at: Any, k: int) -> None:
            """The codes from `at` on, of a group's step k."""
            if k % (LINE // 16) == 0:
                byte = at if bits == 8 else build.lshr(at, _I64(1))
                _prefetch(build, build.add(w, build.add(byte, _I64(AHEAD))))
            _add_products(build, w, at, bits, x, x_row, sums)

        def add_group(group: Any, low: Any, high: Any, n_steps: int | None = None) -> None:
            """Codes low to high, n_steps of them where that is known, times the group's scale into the totals."""
            for one in sums:
                build.store(_zeros(_I32, 8), one)
            if n_steps is not None:
                for k in range(n_steps):
                    add_products(build.add(low, _I64(k * STEP[bits])), k)
            else:
                with cgutils.for_range_slice(build, low, high, _I64(STEP[bits])) as (at, _):
                    add_products(at, 0)
            scale = _splat(build, _load(build, scales, group, _F32, 4))
            for total, found in zip(totals, _joined(build, [build.load(one) for one in sums]), strict=True):
                term = build.fmul(build.sitofp(found, ir.VectorType(_F32, 8)), scale, flags=FUSED)
                build.store(build.fadd(build.load(total), term, flags=FUSED), total)

        last = build.sub(groups, _I64(1))
        with cgutils.for_range(build, last) as loop:
            start = build.mul(loop.index, span)
            add_group(loop.index, start, build.add(start, span), None if width is None else width // STEP[bits])
        add_group(last, build.mul(last, span), n_in)
        for i, total in enumerate(_lane_sums(build, n, [build.load(one) for one in totals])):
            place = build.add(out, build.mul(build.mul(_I64(i), out_row), _I64(4)))
            build.store(total, build.inttoptr(place, _F32.as_pointer()))
        return context.get_dummy_value()

    return intrinsic(dots)


@intrinsic
def key_dots(typing_context: Any, keys: Any, first: Any, row: Any, q: Any, out: Any, dims: Any) -> Any:
    """out[0:4] := four keys times q, float32, over the dims (a multiple of 8); addresses first, q and out.

    keys: an array of the keys' type, float32 or bfloat16; `row`: values between a key and the next.
    """
    is_f32 = keys.dtype == types.float32

    def generate(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        _, first, row, q, out, dims = arguments
        sums = [cgutils.alloca_once_value(build, _zeros(_F32, 8)) for _ in range(4)]
        for one in sums:
            build.store(_zeros(_F32, 8), one)
        with cgutils.for_range_slice(build, _I64(0), dims, _I64(8)) as (at, _):
            x = _load(build, q, at, ir.VectorType(_F32, 8), 4)
            for i, one in enumerate(sums):
                key = _floats(build, first, build.add(at, build.mul(_I64(i), row)), is_f32)
                product = build.fmul(key, x, flags=FUSED)
                build.store(build.fadd(build.load(one), product, flags=FUSED), one)
        joined = _joined(build, [build.load(one) for one in sums])
        build.store(_halves_sum(build, joined[0]), build.inttoptr(out, ir.VectorType(_F32, 4).as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(keys, *[types.int64] * 5), generate


def _floats(build: Any, base: Any, place: Any, is_f32: bool) -> Any:
    """Eight values of float32 or bfloat16 as float32."""
    if is_f32:
        return _load(build, base, place, ir.VectorType(_F32, 8), 4)
    wide = build.zext(_load(build, base, place, ir.VectorType(_I16, 8), 2), ir.VectorType(_I32, 8))
    by = ir.Constant(wide.type, [_I32(16)] * 8)
    return build.bitcast(build.shl(wide, by), ir.VectorType(_F32, 8))


def _add_products(build: Any, w: Any, at: Any, bits: int, x: Any, x_row: Any, sums: list[Any]) -> None:
    """The codes that one load brings, times as many values of each row of x."""
    for k, part in enumerate(_codes(build, w, at, bits)):
        for i, one in enumerate(sums):
            place = build.add(build.add(build.mul(_I64(i), x_row), at), _I64(LANES * k))
            values = _load(build, x, place, ir.VectorType(_I16, LANES), 2)
            build.store(build.add(build.load(one), _pair_sums(build, part, values)), one)


def _codes(build: Any, w: Any, at: Any, bits: int) -> list[Any]:
    """The next codes of a row as vectors of 16 int16: one vector of int8, two of int4."""
    vector = ir.VectorType(_I8, LANES)
    if bits == 8:
        return [build.sext(_load(build, w, at, vector, 1), ir.VectorType(_I16, LANES))]
    raw = build.sext(_load(build, w, build.lshr(at, _I64(1)), vector, 1), ir.VectorType(_I16, LANES))
    by = lambda n: ir.Constant(ir.VectorType(_I16, LANES), [_I16(n)] * LANES)
    return [build.ashr(build.shl(raw, by(12)), by(12)), build.ashr(raw, by(4))]


def _pair_sums(build: Any, a: Any, b: Any) -> Any:
    """a[0] b[0] + a[1] b[1], a[2] b[2] + a[3] b[3], ... as eight int32."""
    wide = ir.VectorType(_I32, LANES)
    product = build.mul(build.sext(a, wide), build.sext(b, wide))
    return build.add(_picked(build, product, range(0, LANES, 2)), _picked(build, product, range(1, LANES, 2)))


def _joined(build: Any, vectors: list[Any]) -> list[Any]:
    """Four vectors of eight lanes as one whose lanes k and 4 + k add up to those of vector k; fewer as they are."""
    if len(vectors) != 4:
        return vectors
    pairs = [_interleaved_sum(build, a, b, 1) for a, b in (vectors[:2], vectors[2:])]
    return [_interleaved_sum(build, pairs[0], pairs[1], 2)]


def _interleaved_sum(build: Any, a: Any, b: Any, run: int) -> Any:
    """Of every 4 lanes of a and b the lower two added to the upper two, a's and b's in turn, `run` lanes at a time."""
    order = {1: (0, 8, 1, 9), 2: (0, 1, 8, 9)}[run]
    low = [lane + half for half in (0, 4) for lane in order]
    masks = [ir.Constant(ir.VectorType(_I32, 8), [_I32(lane + k) for lane in low]) for k in (0, 2)]
    add = build.fadd if a.type.element == _F32 else build.add
    return add(*(build.shuffle_vector(a, b, mask) for mask in masks))


def _lane_sums(build: Any, n: int, vectors: list[Any]) -> list[Any]:
    """The n sums that are in the lanes, n vectors' or one's that `_joined` made."""
    if len(vectors) == n:
        return [_lane_sum(build, vector) for vector in vectors]
    sums = _halves_sum(build, vectors[0])
    return [build.extract_element(sums, _I32(k)) for k in range(n)]


def _halves_sum(build: Any, vector: Any) -> Any:
    return build.fadd(_picked(build, vector, range(4)), _picked(build, vector, range(4, 8)))


def _lane_sum(build: Any, vector: Any) -> Any:
    """The sum of eight lanes, half by half."""
    n = vector.type.count
    while n > 1:
        n //= 2
        vector = build.fadd(_picked(build, vector, range(n)), _picked(build, vector, range(n, 2 * n)))
    return build.extract_element(vector, _I32(0))


def _prefetch(build: Any, address: Any) -> None:
    """Asks for the cache line at the address, which need not be memory of ours."""
    byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
    function = cgutils.get_or_insert_function(build.module, kind, "llvm.prefetch.p0")
    build.call(function, [build.inttoptr(address, byte), i32(0), i32(3), i32(1)])  # to read, into all caches


def _picked(build: Any, vector: Any, lanes: range) -> Any:
    mask = ir.Constant(ir.VectorType(_I32, len(lanes)), [_I32(lane) for lane in lanes])
    return build.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _splat(build: Any, value: Any) -> Any:
    empty = ir.Constant(ir.VectorType(_F32, 8), ir.Undefined)
    return build.shuffle_vector(build.insert_element(empty, value, _I32(0)), empty, _zeros(_I32, 8))


def _zeros(kind: Any, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(kind, lanes), [kind(0)] * lanes)


def _load(build: Any, base: Any, place: Any, kind: Any, alignment: int) -> Any:
    """The value or vector of type `kind` that starts `place` values behind the address `base`."""
    size = kind.element if isinstance(kind, ir.VectorType) else kind
    n_bytes = {_I8: 1, _I16: 2, _F32: 4}[size]
    address = build.add(base, build.mul(place, _I64(n_bytes)))
    found = build.load(build.inttoptr(address, kind.as_pointer()))
    found.align = alignment
    return found
