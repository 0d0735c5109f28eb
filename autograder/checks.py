"""Checks that a test cell makes on a learner's result.

A failure is a sentence that says what was expected, what came, and for which input; it never is a bare
`AssertionError`. A result may be a NumPy array, a torch tensor, a list or a plain number alike, but it is first copied
into plain values whose types are known, so an object with an `__eq__` of its own decides nothing, `True` is no integer,
`2.0` is no integer, and NaN passes no check. In a learner's feedback the values of a hidden check stay hidden. Two
texts are always shown: `what` names what is checked, and `think_of` says what kind of input it was, without the input.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_SHOWN = 240  # characters of a value in a message
_MINUS_ZERO = re.compile(r"(?<![\w.+-])-(?=0\.0+(?![\w.]))")  # the sign of a printed -0.00
_thought = ""
_in_place = False
_KINDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "floating-point numbers"}


class CheckError(AssertionError):
    """A check on a result failed; the message is meant for the learner.

    `check` holds the values and `why` is the reason without any, for a check whose values a learner must not see.
    """

    check: _Check | None = None
    why = ""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this in place of a traceback through our code, which would only bury the sentence.
        return ["Check failed", *str(self).splitlines()]


def check_equal(got: Any, expected: Any, given: Any = None, what: str = "result") -> None:
    """Check that `got` equals `expected` exactly: same kind of value, same length or shape, same values.

    `expected` is a str, None, bool, int, float, an array, or a list or tuple of these; where it is a list or tuple,
    `got` may be a list, a tuple, an array or a tensor. In a text, a number printed as -0.00 equals 0.00. `given` is the
    input, for the message. Raises CheckError.
    """
    _Check(expected, got, given, what).equal(got, expected, ())


def check_close(
    got: Any, expected: Any, given: Any = None, what: str = "result", *, rtol: float = 1e-9, atol: float = 0.0
) -> None:
    """Check that every |got - expected| <= atol + rtol * |expected|, with equal shapes and all of `got` finite.

    Integers are fine where real numbers are expected, booleans are not. Raises CheckError.
    """
    _Check(expected, got, given, what).close(rtol, atol)


def check_at_most(got: Any, bound: Any, given: Any = None, what: str = "result") -> None:
    """Check that every value of `got` is a finite number and at most `bound` (a number, or one for each value)."""
    check = _Check(f"at most {_show(bound)}", got, given, what, shown=True)
    values = check.real(got)
    limits = np.broadcast_to(np.asarray(bound, dtype=float), values.shape)
    over = values > limits
    if over.any():
        at = _first(over)
        raise check.error(f"{float(values[at])!r}{_where(at)} is larger than {float(limits[at])!r}", "too large")


def check_dtype(got: Any, dtype: str, shape: tuple[int, ...], given: Any = None, what: str = "result") -> None:
    """Check that `got` is a NumPy array or torch tensor with this element type and shape, whatever its values."""
    check = _Check(f"an array of {dtype} with shape {shape}", got, given, what, shown=True)
    check.element_type(dtype)
    if (found := check.array(got).shape) != shape:
        raise check.error(f"its shape is {found}", "another shape")


def check_raises(
    error: type[BaseException], function: Callable[..., Any], *args: Any, given: Any = None, what: str | None = None
) -> None:
    """Check that `function(*args)` raises `error` (or a subclass of it). `given` defaults to the arguments."""
    shown = args if given is None and len(args) != 1 else args[0] if given is None else given
    name = what or str(getattr(function, "__name__", "the function"))
    check = _Check(f"{error.__name__} to be raised", None, shown, name, shown=True)
    try:
        result = function(*args)
    except error:
        return
    except Exception as other:
        check.got_shown = f"{type(other).__name__}: {_cut(str(other))}" if str(other) else type(other).__name__
    else:
        check.got_shown = f"no error, but the return value {_show(result)}"
    raise check.error(f"{error.__name__} was not raised")


def think_of(sentence: str) -> None:
    """Set what a learner reads if the test fails from here on: what kind of input this is, and what to think about.

    Meant for hidden parts: the sentence holds no value of the input. The next cell starts without one.
    """
    global _thought
    _thought = sentence


def thought() -> str:
    """The sentence of the last `think_of`; empty if there is none."""
    return _thought


@contextlib.contextmanager
def arguments_in_place() -> Iterator[None]:
    """Let a learner's function change the arguments that a call in the block gives it.

    In a graded run a function gets copies, so a list that it empties stays full for the rest of the test. A test that
    asks whether a function leaves its arguments alone, or that wants them changed, makes the call in this block. In a
    notebook a function gets the objects themselves anyway.
    """
    global _in_place
    before, _in_place = _in_place, True
    try:
        yield
    finally:
        _in_place = before


def changes_arguments() -> bool:
    """Whether calls may change their arguments now, as in a block of `arguments_in_place`."""
    return _in_place


def seed_for_this_run(default: int) -> int:
    """The seed `default` in a notebook; when a submission is graded, one drawn for that run and recorded with it."""
    run = os.environ.get("AUTOGRADER_SEED")
    return default if run is None else int.from_bytes(hashlib.sha256(f"{run} {default}".encode()).digest()[:6], "big")


def random_inputs(default: int) -> np.random.Generator:
    """A generator for a test's random inputs: from `default` in a notebook, fresh for each graded submission."""
    return np.random.default_rng(seed_for_this_run(default))


class _Check:
    """One comparison, and all that its message needs."""

    def __init__(self, expected: Any, got: Any, given: Any, what: str, shown: bool = False) -> None:
        self.expected, self.got, self.given, self.what = expected, got, given, what
        self.expected_shown = str(expected) if shown else _show(expected)
        self.got_shown = _show(got)

    def error(self, why: str, plain: str = "") -> CheckError:
        lines = [f"{self.what}: {why}"]
        if self.given is not None:
            lines.append(f"  for input: {_show(self.given)}")
        lines += [f"  expected:  {self.expected_shown}", f"  got:       {self.got_shown}"]
        lines += [f"  think of:  {_thought}"] if _thought else []
        error = CheckError("\n".join(lines))
        error.check, error.why = self, plain or why
        return error

    def equal(self, got: Any, expected: Any, at: tuple[int, ...]) -> None:
        if expected is None:
            if got is not None:
                raise self.error(f"expected None{_where(at)}, got {_type(got)}")
        elif isinstance(expected, str):
            self.equal_text(got, expected, at)
        elif isinstance(expected, (list, tuple)):
            items = self.sequence(got, at)
            if len(items) != len(expected):
                raise self.error(
                    f"{len(items)} values{_where(at)} instead of {len(expected)}", "another number of values"
                )
            for i, (item, right) in enumerate(zip(items, expected, strict=True)):
                self.equal(item, right, (*at, i))
        else:
            self.equal_numbers(got, np.asarray(expected), at)

    def equal_text(self, got: Any, expected: str, at: tuple[int, ...]) -> None:
        if not isinstance(got, str):
            raise self.error(f"expected text (str){_where(at)}, got {_type(got)}")
        text, expected = (_MINUS_ZERO.sub("", one) for one in (str.__str__(got), expected))
        if text == expected:
            return
        lines, right = text.split("\n"), expected.split("\n")
        for i, (line, wanted) in enumerate(zip(lines, right, strict=False), start=1):
            if line != wanted:
                self.expected_shown, self.got_shown = _show(wanted), _show(line)
                raise self.error((f"line {i}" if len(right) > 1 else "the text") + f"{_where(at)} differs")
        raise self.error(f"{len(lines)} lines instead of {len(right)}", "another number of lines")

    def equal_numbers(self, got: Any, expected: np.ndarray, at: tuple[int, ...]) -> None:
        values = self.array(got, at)
        wanted, found = _KINDS[expected.dtype.kind], _KINDS[values.dtype.kind]
        if values.shape == expected.shape == (0,):
            return  # an empty list has no kind of number
        if wanted != found:
            raise self.error(f"expected {wanted}{_where(at)}, got {found}")
        if values.shape != expected.shape:
            raise self.error(f"shape {values.shape}{_where(at)} instead of {expected.shape}", "another shape")
        wrong = ~(values == expected)  # NaN is equal to nothing
        if wrong.any():
            here = _first(wrong)
            raise self.error(f"{values[here]}{_where((*at, *here))} instead of {expected[here]}", "a wrong value")

    def close(self, rtol: float, atol: float) -> None:
        values, expected = self.real(self.got), np.asarray(self.expected, dtype=float)
        if values.shape != expected.shape:
            raise self.error(f"shape {values.shape} instead of {expected.shape}", "another shape")
        wrong = ~(np.abs(values - expected) <= atol + rtol * np.abs(expected))
        if wrong.any():
            at = _first(wrong)
            raise self.error(f"{float(values[at])!r}{_where(at)} instead of {float(expected[at])!r}", "a wrong value")

    def element_type(self, dtype: str) -> None:
        got = _untensor(self.got)
        if type(got) is not np.ndarray:
            raise self.error(f"expected an array of {dtype}, got {_type(self.got)}")
        if got.dtype != np.dtype(dtype):
            raise self.error(f"expected elements of {dtype}, got {got.dtype}")

    def real(self, got: Any) -> np.ndarray:
        """Copy numbers into a float64 array; refuse booleans, NaN and infinity."""
        values = self.array(got)
        if values.dtype.kind == "b":
            raise self.error("expected numbers, got booleans")
        values = values.astype(float)
        if not np.isfinite(values).all():
            at = _first(~np.isfinite(values))
            raise self.error(f"{values[at]}{_where(at)} is not a finite number", "not a finite number")
        return values

    def sequence(self, got: Any, at: tuple[int, ...]) -> list[Any]:
        got = _untensor(got)
        if isinstance(got, list):
            return list(list.__iter__(got))
        if isinstance(got, tuple):
            return list(tuple.__iter__(got))
        if type(got) is np.ndarray and got.ndim > 0:
            return list(got)
        raise self.error(f"expected a list, tuple or array{_where(at)}, got {_type(got)}")

    def array(self, got: Any, at: tuple[int, ...] = ()) -> np.ndarray:
        """Copy a number, array, tensor or nested list of numbers into a NumPy array of booleans, integers or floats."""
        got = _untensor(got)
        if isinstance(got, (list, tuple)):
            parts = [self.array(item, (*at, i)) for i, item in enumerate(self.sequence(got, at))]
            kinds = {_KINDS[part.dtype.kind] for part in parts}
            if len(kinds) > 1 and "booleans" in kinds:
                raise self.error(f"booleans mixed with numbers{_where(at)}")
            if len({part.shape for part in parts}) > 1:
                raise self.error(f"rows of different lengths{_where(at)}")
            return np.array(parts)
        if type(got) in (bool, int, float) or isinstance(got, np.generic) or type(got) is np.ndarray:
            values = np.asarray(got)
            if values.dtype.kind in _KINDS:
                return values
            if values.dtype.kind == "O" and type(got) is int:
                raise self.error(f"the integer{_where(at)} is far too large")
        raise self.error(f"expected numbers{_where(at)}, got {_type(got)}")


def _untensor(value: Any) -> Any:
    """A torch tensor as a NumPy array (bfloat16, which NumPy lacks, as float32); anything else as it is."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        return value
    tensor = value.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _show(value: Any) -> str:
    """The value as a short text; a broken `__repr__` must not hide the message."""
    value = _untensor(value)
    try:
        if type(value) is np.ndarray:
            with np.printoptions(precision=8, threshold=40, edgeitems=4, linewidth=10_000):
                body = np.array2string(value, separator=", ").replace("\n", "")
            return f"{_cut(body)} ({value.dtype}, shape {value.shape})"
        if isinstance(value, tuple) and any(type(_untensor(item)) is np.ndarray for item in value):
            return ", ".join(_show(item) for item in value)
        if isinstance(value, types.FunctionType):
            return f"the function {value.__name__}"
        return _cut(repr(value))
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def _cut(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]} ... {text[-half:]} ({len(text)} characters)"


def _type(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def _where(at: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, at))}]" if at else ""
