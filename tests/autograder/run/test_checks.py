"""The checks of test cells: a right value passes, and each kind of wrong one fails in a sentence a learner can use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from autograder.checks import (
    CheckError,
    check_at_most,
    check_close,
    check_dtype,
    check_equal,
    check_raises,
    think_of,
)

GIVEN = "the-input"


class AlwaysEqual:
    """Equal to everything, to fool a comparison."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class EqualList(list):
    """A list that claims to equal anything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter([1, 2])

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        (np.array([1, 2], dtype=np.int8), [1, 2]),
        (torch.tensor([1, 2]), [1, 2]),
        ([[1, 2]], np.array([[1, 2]])),
        (torch.tensor([[1, 2]], dtype=torch.int8), np.array([[1, 2]])),
        (np.int64(3), 3),
        ((0.5, [1]), (0.5, [1])),
        ("a\nb", "a\nb"),
        (None, None),
        (True, True),
        ([], []),
        ([], np.array([], dtype=int)),
    ],
)
def test_an_equal_value_passes_whatever_library_holds_it(got: Any, expected: Any) -> None:
    check_equal(got, expected, given=GIVEN)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([1, 3], [1, 2]),
        ([1], [1, 2]),
        ([1.0, 2.0], [1, 2]),
        (np.array([1.0, 2.0]), np.array([1, 2])),
        ([True, 0], [1, 0]),
        (1, True),
        (np.array([[1, 2]]), np.array([1, 2])),
        (np.array([1, 2], dtype=object), np.array([1, 2])),
        ([[1], [1, 2]], np.array([[1, 2], [1, 2]])),
        (float("nan"), float("nan")),
        ("a\nc", "a\nb"),
        ("a", "a\nb"),
        (b"a", "a"),
        (0, None),
        (None, 0),
        (AlwaysEqual(), 3),
        (AlwaysEqual(), None),
        (AlwaysEqual(), "text"),
        (AlwaysEqual(), [1, 2]),
        ([AlwaysEqual(), 2], [1, 2]),
        (EqualList([7, 7]), [1, 2]),
        (10**400, 3),
    ],
)
def test_a_value_that_is_not_the_same_fails_and_the_message_says_expected_got_and_input(
    got: Any, expected: Any
) -> None:
    with pytest.raises(CheckError) as failure:
        check_equal(got, expected, given=GIVEN, what="q")
    message = str(failure.value)
    assert message.startswith("q: ")
    assert all(word in message for word in ("expected:", "got:", f"for input: {GIVEN!r}"))


def test_a_message_names_the_place_of_the_first_wrong_value() -> None:
    with pytest.raises(CheckError, match=r"9 at \[1, 0\] instead of 3"):
        check_equal(np.array([[1, 2], [9, 9]]), np.array([[1, 2], [3, 4]]))
    with pytest.raises(CheckError, match="line 2 differs"):
        check_equal("a\nx\nc", "a\nb\nc")


def test_a_message_stays_short_however_long_the_values_are() -> None:
    with pytest.raises(CheckError) as failure:
        check_equal(list(range(100_000)), list(range(1, 100_001)), given="x" * 100_000)
    assert len(str(failure.value)) < 1_500


def test_a_value_whose_repr_raises_still_gets_a_message() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(CheckError, match="a Broken that cannot be shown"):
        check_equal(Broken(), 1)


@pytest.mark.parametrize("got", [[1.0, 2.0], (1, 2), np.array([1, 2 + 1e-12]), torch.tensor([1.0, 2.0]).double()])
def test_close_numbers_pass(got: Any) -> None:
    check_close(got, [1.0, 2.0], rtol=1e-9)


def test_a_bfloat16_tensor_is_compared_by_value() -> None:
    check_close(torch.tensor([1.0, 2.0], dtype=torch.bfloat16), [1.0, 2.0])


@pytest.mark.parametrize(
    "got",
    [[1.0, 2.1], [1.0, float("nan")], [1.0, float("inf")], [1.0], [[1.0, 2.0]], [True, 2.0], "12", None, AlwaysEqual()],
)
def test_numbers_that_are_not_close_or_not_finite_fail(got: Any) -> None:
    with pytest.raises(CheckError, match="expected:"):
        check_close(got, [1.0, 2.0], given=GIVEN, rtol=1e-9)


def test_nan_is_not_close_even_to_nan() -> None:
    with pytest.raises(CheckError, match="not a finite number"):
        check_close(float("nan"), float("nan"))


def test_at_most_compares_value_by_value_and_refuses_nan() -> None:
    check_at_most(torch.tensor([1.0, 2.0]), [1.0, 2.5])
    with pytest.raises(CheckError, match=r"3.0 at \[1\] is larger than 2.5"):
        check_at_most([1.0, 3.0], [1.0, 2.5])
    with pytest.raises(CheckError, match="not a finite number"):
        check_at_most([float("nan")], 1.0)


def test_dtype_and_shape_are_checked_for_arrays_and_tensors() -> None:
    check_dtype(np.zeros((2, 3), dtype=np.int8), "int8", (2, 3))
    check_dtype(torch.zeros(2, 3, dtype=torch.int8), "int8", (2, 3))
    for wrong in (np.zeros((2, 3)), np.zeros((3, 2), dtype=np.int8), [[0, 0, 0], [0, 0, 0]]):
        with pytest.raises(CheckError, match="an array of int8 with shape"):
            check_dtype(wrong, "int8", (2, 3))


def test_raises_passes_for_the_error_or_a_kind_of_it_only() -> None:
    check_raises(ValueError, int, "x")
    check_raises(LookupError, {}.__getitem__, "missing")
    with pytest.raises(CheckError, match="no error, but the return value 3") as failure:
        check_raises(ValueError, int, "3")
    assert "for input: '3'" in str(failure.value)
    with pytest.raises(CheckError, match="got:       TypeError: "):
        check_raises(ValueError, len, 3)


def test_an_unwritten_function_does_not_count_as_refusing_its_input() -> None:
    def stub(text: str) -> None:
        raise NotImplementedError

    with pytest.raises(CheckError, match="NotImplementedError"):
        check_raises(ValueError, stub, "1 2")


def test_a_notebook_shows_the_sentence_and_no_traceback() -> None:
    assert CheckError("q: 1 instead of 2\n  got: 1")._render_traceback_() == [
        "Check failed",
        "q: 1 instead of 2",
        "  got: 1",
    ]


@pytest.mark.parametrize(
    ("got", "expected"),
    [("scale -0.00000 q 0", "scale 0.00000 q 0"), ("mean 0.0", "mean -0.0"), (["x", "-0.00"], ["x", "0.00"])],
)
def test_a_printed_minus_zero_is_zero(got: Any, expected: Any) -> None:
    check_equal(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"), [("-0.01", "0.01"), ("1-0.0", "10.0"), ("-0", "0"), ("-0.0.1", "0.0.1"), ("q -1", "q 1")]
)
def test_any_other_minus_counts(got: str, expected: str) -> None:
    with pytest.raises(CheckError, match="differs"):
        check_equal(got, expected)


def test_a_failure_ends_with_what_the_test_asks_to_think_of() -> None:
    think_of("Small is not zero.")
    try:
        with pytest.raises(CheckError, match=r"\n  think of:  Small is not zero\.$"):
            check_equal(0, 1)
    finally:
        think_of("")
    with pytest.raises(CheckError) as caught:
        check_equal(0, 1)
    assert "think of" not in str(caught.value)
