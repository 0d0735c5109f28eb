"""Orderings in the quizzes that rest on numbers: the order is recomputed here, from what the items say."""

from itertools import pairwise

from interactives import richtext
from interactives.quiz import load
from reference_impl.benchmarks.quality.expected_error import expected_error
from reference_impl.benchmarks.quality.table import committed_rows
from reference_impl.bounds.arithmetic import decode_tokens_per_second, weight_bytes
from reference_impl.bounds.config import MODELS


def items(lesson: str, identifier: str) -> list[str]:
    question = next(question for question in load(lesson).questions if question.id == identifier)
    return [richtext.plain(item) for item in question.variants[0]["items"]]


def test_the_fastest_decode_bound_comes_first() -> None:
    rates = []
    for item in items("01_prefill_and_decode", "fastest-first"):
        name, bits, gpu = item.split(", ")
        params = MODELS[name.lower().replace(" ", "-")].n_params
        terabytes = float(gpu.split("(")[1].split()[0])
        rates.append(decode_tokens_per_second(weight_bytes(params, int(bits.split("-")[0])), terabytes * 1e12))
    assert all(faster > 1.1 * slower for faster, slower in pairwise(rates))


def test_the_smallest_rounding_error_comes_first() -> None:
    errors = []
    for item in items("04a_number_formats", "errors-in-order"):
        bits, _, _, _, group = item.split()
        errors.append(expected_error(int(group), int(bits)))
    assert all(larger > 1.1 * smaller for smaller, larger in pairwise(errors))


def test_the_smallest_divergence_comes_first() -> None:
    rows = committed_rows("smollm2-135m")
    found = []
    for item in items("04b_quantization_methods", "divergence-in-order"):
        bits, _, method = item.replace(",", "").split()
        found.append(rows[f"int{bits} g128 {method.lower()}"]["kl"])
    assert all(larger > 1.5 * smaller for smaller, larger in pairwise(found))
