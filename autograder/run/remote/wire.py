"""Plain values as JSON text and back: what crosses between a learner's kernel and the tests.

Only values whose exact type is known cross: copied, never pickled and never as code, so a reader of hostile text gets
either plain data or an error. Arrays and tensors go as type, shape and bytes. Anything else (a function, an object with
state) is left to a hook, which may give it a number and keep it.

This file's text is also sent into the kernel, so it imports nothing but the standard library; NumPy and torch are used
where they are loaded already, and loaded only when such a value arrives.
"""

import base64
import collections
import json
import math
import sys
from typing import Any

MAX_BYTES = 16 * 2**20  # of one message
MAX_DEPTH = 64
MAX_ITEMS = 10**6  # of a value that is made only when it is looked at
MAX_DIGITS = 4000  # of an integer
_DTYPES = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"float16", "float32", "float64", "complex64", "complex128"}
)
_TORCH = (_DTYPES - {"uint16", "uint32", "uint64"}) | {"bfloat16"}
_SEQUENCES = {"l": list, "t": tuple, "s": set, "z": frozenset}
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_TAG_OF = {kind: tag for tag, kind in _SEQUENCES.items()}
_PCG = 0x2360ED051FC65DA44385DF649FCCF645  # the multiplier of PCG64
_DRAWS = 2**40  # more random numbers than anybody draws in one call


class WireError(Exception):
    """A value cannot cross, or a message is malformed; the text says why."""


def dumps(value: Any, other: Any = None) -> str:
    """The value as ASCII text. `other(value)` returns JSON data for what is no plain value, or raises WireError."""
    return json.dumps(encode(value, other), allow_nan=False, separators=(",", ":"))


def loads(text: str, other: Any = None) -> Any:
    """The value that `dumps` wrote. `other(data)` turns back what the other side's hook returned."""
    return decode(parse(text), other)


def parse(text: str) -> Any:
    """JSON text, size and syntax checked, as JSON data."""
    if len(text) > 2 * MAX_BYTES:
        raise WireError(f"a message of more than {2 * MAX_BYTES // 10**6} MB")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise WireError("a message that is nested too deeply") from None
    except ValueError as error:
        raise WireError(f"a malformed message ({str(error)[:100]})") from None


def encode(value: Any, other: Any = None) -> Any:
    """The value as JSON data; see `dumps`."""
    return _Encoder(other).encode(value, 0)


def decode(data: Any, other: Any = None, depth: int = 0) -> Any:
    """The value that JSON data made by `encode` stands for. Every part is checked: raises WireError."""
    if data is None or type(data) in (bool, int, float, str):
        return data
    if depth > MAX_DEPTH or type(data) is not list or not data or type(data[0]) is not str:
        raise WireError("a malformed value")
    tag, rest = data[0], data[1:]
    try:
        if tag in _SEQUENCES:
            (items,) = rest
            return _SEQUENCES[tag](decode(item, other, depth + 1) for item in _list(items))
        if tag == "d":
            (items,) = rest
            return {decode(key, other, depth + 1): decode(item, other, depth + 1) for key, item in _list(items)}
        if tag == "f":
            (name,) = rest
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[name]
        if tag == "c":
            real, imaginary = (decode(part, other, depth + 1) for part in rest)
            return complex(_float(real), _float(imaginary))
        if tag in ("y", "Y"):
            (text,) = rest
            return (bytes if tag == "y" else bytearray)(_bytes(text))
        if tag == "r":
            found = range(*(_int(part) for part in rest))
            if len(found) > MAX_ITEMS:
                raise WireError(f"a range of {len(found):,} numbers")
            return found
        if tag == "a":
            return _array(*rest)
        if tag == "n":
            name, text = rest
            return _array(name, [], text)[()]
        if tag == "T":
            return _tensor(*rest)
        if tag == "g":
            return _generator(*rest)
        if tag == "o" and other is not None:
            return other(rest)
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"a malformed value of kind {tag[:8]!r} ({type(error).__name__})") from None
    raise WireError(f"a value of an unknown kind {tag[:8]!r}")


def advanced(old: list[int], new: list[int]) -> bool:
    """Whether a PCG64 state `new` is one that `old` comes to by drawing numbers (both as in `Generator` messages)."""
    if old[1] != new[1]:
        return False
    # The steps between two states of a linear congruential generator, one bit after the other.
    state, target, increment, multiplier, steps, bit, mask = old[0], new[0], old[1], _PCG, 0, 1, 2**128 - 1
    while state != target:
        if (state ^ target) & bit:
            state = (state * multiplier + increment) & mask
            steps |= bit
        increment = ((multiplier + 1) * increment) & mask
        multiplier = (multiplier * multiplier) & mask
        bit <<= 1
        if bit > mask:
            return False
    return steps < _DRAWS


def generator_state(generator: Any) -> list[int]:
    """[state, increment, has half a number, that half] of a NumPy generator on PCG64."""
    state = generator.bit_generator.state
    return [state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]]


def set_generator_state(generator: Any, state: Any) -> None:
    """Put a generator on PCG64 into a state as `generator_state` gives it."""
    value, increment, has_half, half = (_int(part) for part in state)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": value, "inc": increment},
        "has_uint32": has_half,
        "uinteger": half,
    }


def plain_generator(value: Any) -> bool:
    """Whether this is a NumPy generator that can cross as a value: exactly Generator, on exactly PCG64."""
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None and type(value) is numpy.random.Generator and type(value.bit_generator) is numpy.random.PCG64
    )


class _Encoder:
    def __init__(self, other: Any) -> None:
        self.other, self.left = other, MAX_BYTES
        self.open: set[int] = set()

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise WireError(f"a value of more than {MAX_BYTES // 10**6} MB")

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self.spend(8)
        if value is None or kind is bool:
            return value
        if kind is int:
            if value.bit_length() > 3.32 * MAX_DIGITS:
                raise WireError(f"an integer of more than {MAX_DIGITS} digits")
            self.spend(value.bit_length() // 3)
            return value
        if kind is float:
            return value if math.isfinite(value) else ["f", repr(value)]
        if kind is str:
            self.spend(len(value))
            return value
        if kind is complex:
            return ["c", self.encode(value.real, depth), self.encode(value.imag, depth)]
        if kind in (bytes, bytearray):
            return ["y" if kind is bytes else "Y", self.raw(value)]
        if kind is range:
            if len(value) > MAX_ITEMS:
                raise WireError(f"a range of {len(value):,} numbers")
            return ["r", value.start, value.stop, value.step]
        if kind in _TAG_OF or kind in _DICTS or _is_namedtuple(value):
            return self.container(value, kind, depth)
        if (array := self.array(value)) is not None:
            return array
        if self.other is None:
            raise WireError(f"a value of type {kind.__name__}")
        return ["o", *self.other(value)]

    def container(self, value: Any, kind: Any, depth: int) -> list[Any]:
        if depth >= MAX_DEPTH or id(value) in self.open:
            raise WireError(f"a {kind.__name__} that is nested too deeply or holds itself")
        self.open.add(id(value))
        if kind in _DICTS:
            coded = ["d", [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in dict.items(value)]]
        else:
            coded = [_TAG_OF.get(kind, "t"), [self.encode(item, depth + 1) for item in value]]
        self.open.discard(id(value))
        return coded

    def raw(self, data: Any) -> str:
        self.spend(4 * (len(data) // 3))
        return base64.b64encode(data).decode("ascii")

    def array(self, value: Any) -> Any:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        kind = type(value)
        if numpy is not None and hasattr(numpy, "ndarray"):
            if kind is numpy.str_:  # a test that reads text takes it for text
                return self.encode(str(value), 0)
            if kind is numpy.ndarray or (isinstance(value, numpy.generic) and kind.__module__ == "numpy"):
                name = value.dtype.name
                if name not in _DTYPES:
                    raise WireError(f"an array with elements of type {name[:40]}")
                self.spend(value.nbytes)
                data = self.raw(value.astype(value.dtype.newbyteorder("<")).tobytes())
                return ["a", name, list(value.shape), data] if kind is numpy.ndarray else ["n", name, data]
            if plain_generator(value):
                return ["g", *generator_state(value)]
        if torch is not None and hasattr(torch, "Tensor") and kind in (torch.Tensor, torch.nn.Parameter):
            name = str(value.dtype).removeprefix("torch.")
            if value.device.type == "meta":
                raise WireError("a tensor on the meta device, which holds no numbers")
            if name not in _TORCH or value.layout != torch.strided:
                raise WireError(f"a tensor with elements of type {name[:40]}, layout {value.layout}")
            value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
            plain = value.view(torch.int16) if name == "bfloat16" else value
            return ["T", name, list(value.shape), self.raw(plain.numpy().tobytes())]
        return None


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and type(getattr(type(value), "_fields", None)) is tuple


def _array(name: Any, shape: Any, text: Any) -> Any:
    if name not in _DTYPES:
        raise WireError(f"an array with elements of type {str(name)[:40]}")
    import numpy

    data, shape = _bytes(text), [_int(size) for size in _list(shape)]
    dtype = numpy.dtype(name).newbyteorder("<")
    if min(shape, default=0) < 0 or len(shape) > 32 or math.prod(shape) * dtype.itemsize != len(data):
        raise WireError("an array whose bytes do not fit its shape")
    return numpy.frombuffer(data, dtype).astype(numpy.dtype(name)).reshape(shape)  # a copy, so it can be written to


def _tensor(name: Any, shape: Any, text: Any) -> Any:
    if name not in _TORCH:
        raise WireError(f"a tensor with elements of type {str(name)[:40]}")
    import torch

    values = torch.from_numpy(_array("int16" if name == "bfloat16" else name, shape, text))
    return values.view(torch.bfloat16) if name == "bfloat16" else values


def _generator(*state: Any) -> Any:
    import numpy

    generator = numpy.random.Generator(numpy.random.PCG64(0))
    set_generator_state(generator, state)
    return generator


def _bytes(text: Any) -> bytes:
    if type(text) is not str:
        raise WireError("malformed bytes")
    return base64.b64decode(text.encode("ascii"), validate=True)


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise WireError("a malformed list")
    return value


def _int(value: Any) -> int:
    if type(value) is not int:
        raise WireError("a malformed integer")
    return value


def _float(value: Any) -> float:
    if type(value) is not float:
        raise WireError("a malformed number")
    return value


def _refuse_constant(name: str) -> None:
    raise WireError(f"{name} instead of a value")
