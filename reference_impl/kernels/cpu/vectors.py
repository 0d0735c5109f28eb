"""Dot products in LLVM's own vectors, for loops that Numba does not compile well enough.

`group_dots` multiplies a row of int8 or int4 weights by up to four rows of 16-bit activations. It takes sixteen weights
at a time, widens them to 16 bits, and adds their products in pairs to eight 32-bit sums (one instruction on x86,
`vpmaddwd`; LLVM finds what other processors have). At the end of a group the eight sums become floats, are multiplied
by the group's scale, and stay apart until the end of the row; a plain loop would add them up in every group. The loop
also prefetches weights, since the processor's own prefetching does not keep up.

With one row of x the loop waits for memory. With four it waits for the vector units: 576 weights from the nearest cache
take 115 cycles, 91 of them for the products and their additions alone (Zen 3, the best of many runs). So a step of
batch 4 takes longer than its bytes say.

`key_dots` multiplies a query by four keys and adds up the lanes of all four sums together, where a plain loop adds them
up one by one.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # weights that are multiplied at once
LINE = 64  # bytes of a cache line
AHEAD = 1536  # bytes from the weights in use to the line that is prefetched; 1 to 2 KB do equally well
FUSED = ("contract",)  # a product and its addition may be rounded once
STEP = {8: 16, 4: 32}  # weights in one load of 16 bytes; a stored group is a multiple of it long

_F32, _I8, _I16, _I32, _I64 = ir.FloatType(), *(ir.IntType(bits) for bits in (8, 16, 32, 64))


def group_dots(bits: int, n: int, width: int | None = None) -> Any:
    """Makes a function for Numba kernels: the dot products of a row of int8 or int4 weights with n rows of x.

    The function is dots(w, scales, x, out, n_in, width, groups, x_row, out_row): four addresses, then numbers of
    values.

    w: the row's n_in codes, a multiple of STEP. int4 codes lie in blocks of 32: a byte holds one of the first 16 in its
    lower half and one of the last 16 in its upper half.
    scales: float32 [groups], each for `width` codes; the last group may be shorter.
    x: int16 [n, n_in], whose rows are x_row apart. out: float32; result i goes to out[i * out_row].

    If `width` is given here, full groups are that wide and need no inner loop.
    """

    def dots(typing_context, w, scales, x, out, n_in, width, groups, x_row, out_row):  # type: ignore[no-untyped-def]
        return types.void(*[types.int64] * 9), generate

    # Numba names compiled code after the function and its arguments, and the linker takes code of one name for the
    # same, even code from the cache that another process compiled. So each variant gets a name of its own.
    dots.__name__ = f"int{bits}_dots_{n}" + ("" if width is None else f"_{width}")

    def generate(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        w, scales, x, out, n_in, any_width, groups, x_row, out_row = arguments
        totals = [cgutils.alloca_once_value(build, _zeros(_F32, 8)) for _ in range(1 if n == 4 else n)]
        sums = [cgutils.alloca_once_value(build, _zeros(_I32, 8)) for _ in range(n)]
        span = any_width if width is None else _I64(width)

        def add_products(at: Any, k: int) -> None:
            """Adds the products of step k of a group, whose codes begin at `at`."""
            if k % (LINE // 16) == 0:
                byte = at if bits == 8 else build.lshr(at, _I64(1))
                _prefetch(build, build.add(w, build.add(byte, _I64(AHEAD))))
            _add_products(build, w, at, bits, x, x_row, sums)

        def add_group(group: Any, low: Any, high: Any, n_steps: int | None = None) -> None:
            """Adds the group of codes low to high, times its scale, to the totals. n_steps: its steps, if known."""
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
    """Writes four keys times q, float32, to out[0:4], over `dims` values of each (a multiple of 8).

    first, q and out are addresses: of the first key, the query and the results. `row`: values from one key to the next.
    `keys` only tells the keys' dtype, float32 or bfloat16.
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
    """Eight values of float32 or bfloat16, widened to float32."""
    if is_f32:
        return _load(build, base, place, ir.VectorType(_F32, 8), 4)
    wide = build.zext(_load(build, base, place, ir.VectorType(_I16, 8), 2), ir.VectorType(_I32, 8))
    by = ir.Constant(wide.type, [_I32(16)] * 8)
    return build.bitcast(build.shl(wide, by), ir.VectorType(_F32, 8))


def _add_products(build: Any, w: Any, at: Any, bits: int, x: Any, x_row: Any, sums: list[Any]) -> None:
    """Multiplies the codes of one load by each row of x, and adds the products to that row's sums."""
    for k, part in enumerate(_codes(build, w, at, bits)):
        for i, one in enumerate(sums):
            place = build.add(build.add(build.mul(_I64(i), x_row), at), _I64(LANES * k))
            values = _load(build, x, place, ir.VectorType(_I16, LANES), 2)
            build.store(build.add(build.load(one), _pair_sums(build, part, values)), one)


def _codes(build: Any, w: Any, at: Any, bits: int) -> list[Any]:
    """The codes of one load as vectors of 16 int16: one vector of int8, two of int4."""
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
    """Reduces four vectors to one, in which lanes k and 4 + k add up to the sum of vector k. Fewer stay as they are."""
    if len(vectors) != 4:
        return vectors
    pairs = [_interleaved_sum(build, a, b, 1) for a, b in (vectors[:2], vectors[2:])]
    return [_interleaved_sum(build, pairs[0], pairs[1], 2)]


def _interleaved_sum(build: Any, a: Any, b: Any, run: int) -> Any:
    """Adds the upper two of every four lanes to the lower two; a's and b's sums alternate, `run` lanes at a time."""
    order = {1: (0, 8, 1, 9), 2: (0, 1, 8, 9)}[run]
    low = [lane + half for half in (0, 4) for lane in order]
    masks = [ir.Constant(ir.VectorType(_I32, 8), [_I32(lane + k) for lane in low]) for k in (0, 2)]
    add = build.fadd if a.type.element == _F32 else build.add
    return add(*(build.shuffle_vector(a, b, mask) for mask in masks))


def _lane_sums(build: Any, n: int, vectors: list[Any]) -> list[Any]:
    """The sums over the lanes of n vectors, or of the one vector that `_joined` made of them."""
    if len(vectors) == n:
        return [_lane_sum(build, vector) for vector in vectors]
    sums = _halves_sum(build, vectors[0])
    return [build.extract_element(sums, _I32(k)) for k in range(n)]


def _halves_sum(build: Any, vector: Any) -> Any:
    return build.fadd(_picked(build, vector, range(4)), _picked(build, vector, range(4, 8)))


def _lane_sum(build: Any, vector: Any) -> Any:
    """The sum of eight lanes."""
    n = vector.type.count
    while n > 1:
        n //= 2
        vector = build.fadd(_picked(build, vector, range(n)), _picked(build, vector, range(n, 2 * n)))
    return build.extract_element(vector, _I32(0))


def _prefetch(build: Any, address: Any) -> None:
    """Asks for the cache line at an address, which may lie outside our memory."""
    byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
    function = cgutils.get_or_insert_function(build.module, kind, "llvm.prefetch.p0")
    build.call(function, [build.inttoptr(address, byte), i32(0), i32(3), i32(1)])  # for reading, into all caches


def _picked(build: Any, vector: Any, lanes: range) -> Any:
    mask = ir.Constant(ir.VectorType(_I32, len(lanes)), [_I32(lane) for lane in lanes])
    return build.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _splat(build: Any, value: Any) -> Any:
    empty = ir.Constant(ir.VectorType(_F32, 8), ir.Undefined)
    return build.shuffle_vector(build.insert_element(empty, value, _I32(0)), empty, _zeros(_I32, 8))


def _zeros(kind: Any, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(kind, lanes), [kind(0)] * lanes)


def _load(build: Any, base: Any, place: Any, kind: Any, alignment: int) -> Any:
    """Loads the value or vector of type `kind` that starts `place` values behind the address `base`."""
    size = kind.element if isinstance(kind, ir.VectorType) else kind
    n_bytes = {_I8: 1, _I16: 2, _F32: 4}[size]
    address = build.add(base, build.mul(place, _I64(n_bytes)))
    found = build.load(build.inttoptr(address, kind.as_pointer()))
    found.align = alignment
    return found
