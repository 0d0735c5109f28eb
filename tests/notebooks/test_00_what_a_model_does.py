"""Lesson 0: its prose agrees with the model's sizes, and its few lines of NumPy compute what the engine computes."""

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS

SMOLLM, LLAMA = MODELS["smollm2-135m"], MODELS["llama-3-8b"]


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("00_what_a_model_does")


# --- the numbers in the prose


def test_prose_numbers_of_the_table_and_of_the_vocabulary(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    assert f"{SMOLLM.vocab_size:,} · {SMOLLM.d_model} = {SMOLLM.embedding_params:,} weights, which is 21.0%" in code
    assert f"a table of that kind is {LLAMA.embedding_params / LLAMA.n_params:.1%} of the weights" in it.prose
    assert f"There are {SMOLLM.vocab_size:,} tokens" in it.prose


def test_prose_numbers_of_heads_and_of_a_layer(it: Lesson) -> None:
    assert (SMOLLM.n_heads, SMOLLM.n_kv_heads, SMOLLM.head_dim) == (9, 3, 64)  # "nine query heads and three KV heads"
    assert f"9 · 64 = {SMOLLM.n_heads * SMOLLM.head_dim} numbers" in it.prose
    assert f"{SMOLLM.d_ff:,} numbers from {SMOLLM.d_model}" in it.prose
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024  # Llama 3 8B: q and o, k and v
    feed_forward = 3 * 4096 * 14_336
    code = "\n".join(cell.source for cell in it.code)
    assert f"In Llama 3 8B it is {feed_forward / (attention + feed_forward):.1%}" in code


def test_prose_numbers_of_the_cache_and_of_the_machine(it: Lesson) -> None:
    assert f"{SMOLLM.kv_bytes_per_token():,} bytes a token in 16 bits" in it.prose
    assert f"384 numbers in each of {SMOLLM.n_layers} layers" in it.prose
    seconds = 2 * LLAMA.n_params / GPUS["h100-sxm"].peak_flops
    assert f"{1e6 * seconds:.1f} µs a token would be more than 60,000 tokens a second" in it.prose
    assert 60_000 < 1 / seconds < 62_000


# --- the lesson run from clean


@pytest.mark.model
def test_tokens_are_those_of_the_real_tokenizer(it: Lesson) -> None:
    assert "['The', ' cat', ' sat', ' on', ' the', ' mat', '.']" in it.text("tokens-run")
    assert "['un', 'belie', 'vable']" in it.text("tokens-run")
    assert it.text("tokens-table").startswith("14 ")


@pytest.mark.model
def test_tokens_that_are_used_alike_point_alike(it: Lesson) -> None:
    cats, dog, bread, the = (it.number("similar-run", rf"cat and {word} +(-?[\d.]+)") for word in CAT_AND)
    assert cats > dog > bread > 0.1 > the > -0.1


CAT_AND = ("cats", "dog", "bread", "the")


@pytest.mark.model
def test_attention_by_hand_has_the_shares_of_the_softmax(it: Lesson) -> None:
    assert "scores: [0. 3. 1. 1.]" in it.text("attention-run")
    assert "shares: [0.038 0.757 0.102 0.102] result: [0.35 3.13]" in it.text("softmax-run")


@pytest.mark.model
def test_the_model_in_numpy_agrees_with_the_engine(it: Lesson) -> None:
    assert it.number("layer-run", r"largest number: +([\d.]+)") > 10
    assert it.number("layer-run", r"largest difference: +([\d.e-]+)") < 1e-3


@pytest.mark.model
def test_a_lower_temperature_makes_the_likely_token_likelier(it: Lesson) -> None:
    assert it.row("logits-run", "Paris")[-1] == "77.3%"
    shares = [float(share.rstrip("%")) for share in it.row("temperature-run", "Paris")]
    assert shares == sorted(shares, reverse=True)
    assert it.text("top-p-run").count("' Paris'") > 6


@pytest.mark.model
def test_the_diagrams_are_shown_with_their_descriptions(it: Lesson) -> None:
    shown = [data["text/html"] for cell in it.executed.cells for data in it.data(cell.id) if "text/html" in data]
    assert sum('<figure class="diagram">' in html for html in shown) == 5
    assert sum("<desc " in html for html in shown) == 5
