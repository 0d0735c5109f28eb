"""Values on the wire, and a learner's names as the tests see them."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from fake_kernel import FakeKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.checks import CheckError, arguments_in_place, check_equal, check_raises
from autograder.run.remote import wire
from autograder.run.remote.proxy import RemoteError

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
keys = st.text() | st.integers() | st.booleans() | st.none()
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner) | st.frozensets(keys) | st.sets(keys)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and in every type; NaN is NaN, and the sign of zero counts."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    return a == b if isinstance(a, (set, frozenset)) else repr(a) == repr(b)


@given(values)
@settings(deadline=None, max_examples=200)
def test_every_plain_value_comes_back_as_it_went(value: Any) -> None:
    assert same(wire.loads(wire.dumps(value)), value)


@given(
    hnp.arrays(hnp.scalar_dtypes().filter(lambda d: d.name in wire._DTYPES), hnp.array_shapes(min_dims=0, min_side=0))
)
@settings(deadline=None, max_examples=100)
def test_every_array_comes_back_with_its_type_shape_and_bytes(array: np.ndarray) -> None:
    back = wire.loads(wire.dumps(array))
    assert (back.dtype.name, back.shape) == (array.dtype.name, array.shape)
    assert back.tobytes() == array.astype(back.dtype).tobytes()
    back[...] = 0  # a copy that can be written to


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "bool", "complex64"])
def test_a_tensor_comes_back_as_a_tensor(dtype: str) -> None:
    import torch

    tensor = torch.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(torch, dtype)).t()
    back = wire.loads(wire.dumps(tensor))
    assert type(back) is torch.Tensor
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.tuples(st.sampled_from(["l", "d", "a", "T", "n", "f", "y", "g", "r"]), inner)
        | st.dictionaries(st.text(), inner),
        max_leaves=15,
    )
)  # fmt: skip
@settings(deadline=None, max_examples=300)
def test_whatever_comes_in_is_a_plain_value_or_a_wire_error(data: Any) -> None:
    try:
        value = wire.loads(json.dumps(data))
    except wire.WireError:
        return
    wire.dumps(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["a", "float64", [1000000, 1000000], "AAAA"]', "do not fit its shape"),
        ('["a", "object", [1], "AAAAAAAAAAA="]', "elements of type object"),
        ('["a", "float64", [-1], "AAAAAAAAAAA="]', "do not fit its shape"),
        ("[" * 5000 + "]" * 5000, "nested too deeply|malformed"),
        ("NaN", "NaN instead of a value"),
        ("9" * 5000, "malformed"),
        ('["o", 1]', "unknown kind"),
        ('["d", [[["l", []], 1]]]', "malformed"),
        ("x" * (2 * wire.MAX_BYTES + 1), "more than 33 MB"),
    ],
)
def test_hostile_text_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(wire.WireError, match=words):
        wire.loads(text)


def test_what_is_no_plain_value_is_refused_when_nobody_takes_it() -> None:
    class Cheat(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    loop: list[Any] = []
    loop.append(loop)
    for value in (Cheat(3), loop, object(), np.array([object()]), "x" * (wire.MAX_BYTES + 1), 10**5000):
        with pytest.raises(wire.WireError):
            wire.dumps(value)


ALLOCATOR = """
class Full(MemoryError):
    pass

class Allocator:
    def __init__(self, n):
        self.blocks = list(range(n))
        self.used = {}
    def append(self, seq, n=1):
        if n > len(self.blocks):
            raise Full("no block left")
        self.used.setdefault(seq, []).extend(self.blocks.pop() for _ in range(n))
        return []
    def free(self, seq):
        self.blocks += self.used.pop(seq)
    @property
    def free_blocks(self):
        return len(self.blocks)
    def __len__(self):
        return len(self.used)

def make():
    return Allocator(2)
"""


def test_a_class_with_state_works_as_it_would_in_the_notebook() -> None:
    names = FakeKernel(ALLOCATOR).names()
    allocator = names.Allocator(4)
    assert allocator.append("a", 3) == []
    assert allocator.append("b") == []
    assert allocator.free_blocks == 0
    assert allocator.used == {"a": [3, 2, 1], "b": [0]}
    assert len(allocator) == 2
    allocator.free("a")
    assert allocator.free_blocks == 3
    assert isinstance(allocator, names.Allocator)
    assert isinstance(names.make(), names.Allocator)
    allocator.blocks = [7]
    assert allocator.blocks == [7]


def test_exceptions_come_as_built_in_ones_with_their_text() -> None:
    names = FakeKernel(ALLOCATOR).names()
    with pytest.raises(MemoryError, match="Full: no block left"):
        names.Allocator(1).append("a", 2)
    with pytest.raises(KeyError, match="nobody"):
        names.Allocator(1).free("nobody")
    with pytest.raises(AttributeError, match="no attribute 'size'"):
        _ = names.Allocator(1).size
    with pytest.raises(TypeError):
        names.Allocator()


def test_an_exception_that_would_end_a_program_is_a_failed_check() -> None:
    names = FakeKernel("def stop():\n    raise SystemExit(0)\ndef not_yet():\n    raise NotImplementedError()").names()
    with pytest.raises(RemoteError, match="stop raised SystemExit"):
        names.stop()
    with pytest.raises(NotImplementedError):
        names.not_yet()


def test_the_text_of_an_exception_is_cut_by_bytes() -> None:
    names = FakeKernel("def f():\n    raise ValueError('é' * 10**6)").names()
    with pytest.raises(ValueError, match="é") as caught:
        names.f()
    assert len(str(caught.value).encode()) < 5000


CHEATS = """
class Always:
    def __eq__(self, other): return True
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    def __bool__(self): return True
    def __float__(self): return 3.0
    __array__ = lambda self, *a, **k: __import__("numpy").array(3.0)
class Three(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def always(): return Always()
def three(): return Three(1)
def listed(): return [1, Always()]
"""


def test_an_object_of_a_learners_class_is_equal_to_nothing() -> None:
    names = FakeKernel(CHEATS).names()
    for cheat in (names.always, names.three):
        with pytest.raises(RemoteError, match="no plain value"):
            assert cheat() == 3
        with pytest.raises(RemoteError):
            assert cheat()
        with pytest.raises(CheckError, match=r"got a value of type (Always|Three)"):
            check_equal(cheat(), 3)
        with pytest.raises((AssertionError, TypeError)):
            np.testing.assert_allclose(cheat(), 3.0)
        with pytest.raises(AssertionError):
            np.testing.assert_equal(cheat(), 3)
    with pytest.raises(RemoteError):
        assert names.listed() == [1, 2]


CHANGES = """
kept = []

def f(items, cache, table):
    kept.append(items)
    items.append(3)
    cache[0][1] = 7
    table["b"] = 2
    for earlier in kept:
        earlier.clear()
"""


def test_a_learner_who_keeps_and_changes_arguments_changes_nothing_that_the_test_holds() -> None:
    names = FakeKernel(CHANGES).names()
    items, inner, table = [1], np.zeros(3), {"a": 1}
    cache = [inner, 5]
    for _ in range(2):
        names.f(items, cache, table=table)
    assert (items, cache, table) == ([1], [inner, 5], {"a": 1})
    assert inner.tolist() == [0, 0, 0]


def test_an_answer_that_tells_of_changes_which_nobody_asked_for_changes_nothing() -> None:
    kernel = FakeKernel("def f(items):\n    return 0")
    names, items = kernel.names(), [1, 2]
    kernel.answer = lambda text: '{"value": 0, "changed": [[0, ["l", []]]]}'  # type: ignore[method-assign]
    assert names.f(items) == 0
    assert items == [1, 2]
    with arguments_in_place():
        assert names.f(items) == 0
    assert items == []


def test_where_a_test_asks_for_it_arguments_that_a_call_changes_are_changed_here_and_keep_their_identity() -> None:
    names = FakeKernel(CHANGES.replace("earlier.clear()", "pass")).names()
    items, inner, table = [1], np.zeros(3), {"a": 1}
    cache = [inner, 5]
    with arguments_in_place():
        names.f(items, cache, table=table)
    assert items == [1, 3]
    assert inner.tolist() == [0, 7, 0]
    assert cache[0] is inner
    assert table == {"a": 1, "b": 2}


def test_a_function_given_as_an_argument_runs_on_the_tests_side() -> None:
    names = FakeKernel("def apply(f, x, **more):\n    return [f(i, **more) for i in range(x)]").names()
    seen = []

    def target(i: int, scale: float = 1.0) -> np.ndarray:
        seen.append(i)
        return np.array([i * scale])

    assert [float(got[0]) for got in names.apply(target, 3, scale=0.5)] == [0.0, 0.5, 1.0]
    assert seen == [0, 1, 2]


def test_a_given_function_may_call_the_learners_code_and_raise() -> None:
    names = FakeKernel("def double(x):\n    return 2 * x\ndef apply(f):\n    return f(5)").names()
    assert names.apply(lambda x: names.double(x) + 1) == 11

    def refuse(x: int) -> None:
        raise ValueError(f"secret {x}")

    with pytest.raises(ValueError, match="secret 5"):
        names.apply(refuse)
    assert names.apply(names.double) == 10  # the learner's own function stays there


def test_the_text_of_an_error_in_a_given_function_never_reaches_the_kernel() -> None:
    kernel = FakeKernel("def apply(f):\n    try:\n        f()\n    except ValueError as e:\n        return str(e)")

    def refuse() -> None:
        raise ValueError("CANARY")

    assert "CANARY" not in kernel.names().apply(refuse)


def test_a_numpy_generator_draws_the_same_numbers_as_in_one_process() -> None:
    code = "import numpy as np\ndef draw(rng):\n    rng = np.random.default_rng(rng)\n    return rng.random(3).tolist()"
    names = FakeKernel(code).names()
    here, there = np.random.default_rng(5), np.random.default_rng(5)
    assert names.draw(there) == here.random(3).tolist()
    assert names.draw(there) == here.random(3).tolist()
    assert there.random() == here.random()


def test_a_generator_cannot_be_put_into_a_state_of_the_learners_choice() -> None:
    code = "import numpy as np\ndef draw(rng):\n    rng.bit_generator.state = np.random.PCG64(3).state"
    with pytest.raises(RemoteError, match="drawing numbers does not lead"):
        FakeKernel(code).names().draw(np.random.default_rng(5))


def test_other_generators_are_called_here() -> None:
    names = FakeKernel("def draw(rng):\n    return [rng.random(), rng.randint(1, 6)]").names()
    here = random.Random(3)
    assert names.draw(random.Random(3)) == [here.random(), here.randint(1, 6)]


def test_only_the_methods_of_what_was_given_can_be_called() -> None:
    names = FakeKernel("def f(rng):\n    return rng._randbelow(3)\ndef g(fn):\n    return fn.__globals__").names()
    with pytest.raises(AttributeError):
        names.f(random.Random(3))
    with pytest.raises(AttributeError):
        names.g(lambda: 1)
    with pytest.raises(TypeError, match="cannot be sent"):
        names.g(math)


def test_generators_and_closures_of_the_learner_can_be_used() -> None:
    names = FakeKernel("def count(n):\n    yield from range(n)\ndef adder(n):\n    return lambda x: x + n").names()
    assert list(names.count(3)) == [0, 1, 2]
    assert names.adder(2)(3) == 5


@pytest.mark.parametrize(
    "lie",
    [
        "",
        "[]",
        "null",
        '{"value": ["ref", 1]}',
        '{"value": ["o", "ref", {}, {}]}',
        '{"value": ["o", "given", 77]}',
        '{"raised": 5}',
        '{"raised": {"kinds": ["ExceptionGroup", "UnicodeDecodeError", "eval", "Exception"], "type": "X"}}',
        '{"changed": [[5, 1]], "value": 1}',
        '{"changed": [[0, ["l", [1]]]], "value": 1}',
        '{"changed_kwargs": [], "value": 1}',
    ],
)
def test_a_kernel_that_lies_only_fails_the_check(lie: str) -> None:
    kernel = FakeKernel("def f(x): return x")
    names = kernel.names()
    kernel.answer = lambda text: lie  # type: ignore[method-assign]
    with pytest.raises(Exception) as caught, arguments_in_place():  # noqa: PT011
        assert names.f((1, 2)) == (1, 2)
    assert isinstance(caught.value, RemoteError) or str(caught.value) == "X: "


def test_values_and_names_that_are_missing() -> None:
    kernel = FakeKernel("answer = 42\ntable = {'a': [1.5]}\nhuge = 'x' * 10**8")
    found, refused = kernel.kernel.names(["answer", "table", "huge", "nothing"])
    assert found == {"answer": 42, "table": {"a": [1.5]}}
    assert list(refused) == ["huge"]
    assert "more than 16 MB" in refused["huge"]


def test_the_helpers_of_numpy_and_torch_work_on_what_comes_back() -> None:
    import torch

    names = FakeKernel("def norm(x):\n    return x / (x * x).sum() ** 0.5").names()
    np.testing.assert_allclose(names.norm(np.array([3.0, 4.0])), [0.6, 0.8])
    torch.testing.assert_close(names.norm(torch.tensor([3.0, 4.0])), torch.tensor([0.6, 0.8]))
    with pytest.raises(AssertionError, match="Mismatched elements"):
        torch.testing.assert_close(names.norm(torch.tensor([3.0, 4.0])), torch.tensor([0.6, 0.9]))


def test_check_raises_names_the_learners_function() -> None:
    names = FakeKernel("def f(x): return x").names()
    with pytest.raises(CheckError, match="f: ValueError was not raised"):
        check_raises(ValueError, names.f, 3)


def test_an_object_of_a_kernel_that_ended_is_lost_and_not_taken_for_another() -> None:
    old, new = FakeKernel(ALLOCATOR), FakeKernel(ALLOCATOR)
    handle = old.names().make()
    new._end.install("token ", new.kernel, 10**9)
    old.answer = new.answer  # type: ignore[method-assign]
    with pytest.raises(RemoteError, match="lost when its kernel ended"):
        handle.append("a")


def test_a_class_that_fails_for_attributes_it_lacks_is_an_object_like_any_other() -> None:
    names = FakeKernel("""
class Box:
    def __init__(self): self.things = {"a": 1}
    def __getattr__(self, name): return {}[name]
    def get(self, name): return self.things[name]
box = Box()
""").names()
    assert names.box.get("a") == 1
    assert names.Box().get("a") == 1


def test_what_holds_no_values_is_refused_with_the_true_reason() -> None:
    kernel = FakeKernel("""
import torch
def meta(): return torch.ones(3, device="meta")
def numbers(): return range(10**8)
class Broken(torch.Tensor): pass
""")
    with pytest.raises(RemoteError, match="it returned a tensor on the meta device, which holds no numbers"):
        kernel.names().meta()
    with pytest.raises(RemoteError, match="it returned a range of 100,000,000 numbers"):
        kernel.names().numbers()
    with pytest.raises(wire.WireError, match="a range of 1,000,000,000 numbers"):
        wire.decode(["r", 0, 10**9, 1])


def test_numpys_text_is_text() -> None:
    names = FakeKernel("import numpy as np\ndef word(): return np.array(['one', 'two'])[1]").names()
    check_equal(names.word(), "two")
