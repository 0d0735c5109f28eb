"""Lesson 6: its prose agrees with `reference_impl`, and the server behaves under load as the lesson says."""

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

BIG, H100 = MODELS["llama-3-70b"], GPUS["h100-sxm"]


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("06_serving")


# --- the numbers in the prose


def test_prose_numbers_of_the_70b_model(it: Lesson) -> None:
    one, two = Deployment(BIG, H100), Deployment(BIG, H100, n_gpus=2)
    assert (
        f"Llama 3 70B has {BIG.n_params:,} parameters. In 16 bits that is {one.weight_bytes / 1e9:.1f} GB" in it.prose
    )
    spare = two.memory_bytes - two.weight_bytes
    assert f"with {spare / 1e9:.1f} GB to spare, which is {two.max_sequences(8192)} users of 8,192 tokens" in it.prose
    sequence = 8192 * BIG.kv_bytes_per_token()
    assert (0.9 * two.memory_bytes - two.weight_bytes) // sequence == 1  # "kept free ... it is 1 user"
    four, bare = Deployment(BIG, H100, 4, 128), Deployment(BIG, H100, 4)
    assert f"with room for {four.max_sequences(8192)} users, and each step reads about a quarter" in it.prose
    assert f"about a quarter: {1000 * four.step(1, 0).seconds:.1f} ms" in it.prose
    assert f"without them you would promise {1000 * bare.step(1, 0).seconds:.1f} ms" in it.prose
    eight = Deployment(BIG, H100, 8, 128)
    left = eight.memory_bytes - eight.weight_bytes
    assert f"with {left / 1e9:.1f} GB left: {eight.max_sequences(8192)} users" in it.prose
    assert f"are {70e9 * 2 / 1e9:.0f} GB and {140e9 / H100.bandwidth * 1000:.0f} and" in it.prose
    code = "\n".join(cell.source for cell in it.code)
    one_ms, two_ms = (1000 * plan.step(1, 0).seconds for plan in (one, two))
    assert f"One would read for {one_ms:.1f} ms; two read half each, at the same time: {two_ms:.1f} ms" in code
    assert f"{four.weight_bytes / 1e9:.1f} GB and {1000 * four.step(1, 0).seconds:.1f} ms on one GPU" in it.prose


def test_prose_numbers_of_exchanges_and_of_cost(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    assert f"has {BIG.n_layers} layers: {2 * BIG.n_layers} times in every step" in it.prose
    assert f"{160 * 15 / 1000:.1f} ms. Beside" in code
    assert f"the {1000 * Deployment(BIG, H100, n_gpus=8).step(1, 0).seconds:.1f} ms of eight GPUs" in code
    small = Deployment(MODELS["llama-3-8b"], H100)
    price = {batch: 3 / 3600 / small.step(batch, 2048).tokens_per_second * 1e6 for batch in (1, 64)}
    assert f"At batch 1 a million tokens cost {price[1]:.2f} dollars" in code
    assert f"for the same hour: {price[64]:.2f} dollars" in code
    decode, prefill = 500 * small.step(64, 2048).seconds / 64, small.prefill_seconds(2048)
    assert 0.8 < prefill / decode < 1  # "nearly as much of the GPU", so "nearly twice"
    assert f"{prefill / (prefill + decode):.0%} of their sum" in it.prose


# --- the lesson run from clean


@pytest.mark.model
def test_the_server_answers(it: Lesson) -> None:
    assert it.text("start-run") == "ready\n"
    assert "Paris" in it.text("ask-run")
    assert "server ended with status 0" in it.text("stop-run")


@pytest.mark.model
def test_above_its_capacity_the_wait_grows_and_throughput_does_not_say_so(it: Lesson) -> None:
    calm, flood = (it.row("open-table", label) for label in ("half the capacity", "far above it"))
    median_wait, rate = ([float(row[i].replace(",", "")) for row in (calm, flood)] for i in (0, 3))
    assert median_wait[1] > 1.2 * median_wait[0]
    assert rate[1] > 0.8 * rate[0]
    assert "image/png" in it.data("open-table")[0]


@pytest.mark.model
def test_the_capacity_is_the_best_completed_rate_of_a_sweep(it: Lesson) -> None:
    rows = [line.split() for line in it.text("capacity-table").splitlines()[1:]]
    sent, completed = ([float(row[i]) for row in rows] for i in (0, 1))
    assert sent == sorted(sent)
    assert len(sent) == 4
    assert completed[-1] > 0.5 * max(completed)  # a plateau: more load does not make it fall
    assert "image/png" in it.data("capacity-table")[0]


@pytest.mark.model
def test_the_sizing_table_has_the_reference_values(it: Lesson) -> None:
    assert it.row("sizing-run", "16 bits") == ["141.1", "2", "21.06", "47.5", "7"]
    assert it.row("sizing-run", "4 bits, groups of 128") == ["36.4", "1", "10.86", "92.1", "16"]
    assert it.row("sizing-run", "4 bits, groups of 32")[0] == "39.7"
    assert it.row("sizing-run", "4 bits, scales forgotten")[:3] == ["35.3", "1", "10.53"]


@pytest.mark.model
def test_exchanges_bend_the_speed_up(it: Lesson) -> None:
    rows = {n: it.row("parallel-run", f"{n}  ") for n in (2, 4, 8)}
    assert float(rows[8][0]) == pytest.approx(5.26, abs=0.01)
    assert f"the bound falls by 4, the step by {rows[8][2]}" in it.prose
    assert f"hold 2 × {rows[2][3]} users. One model split over 4 holds {rows[4][3]}, at the same 26 ms" in it.prose
    assert round(float(rows[2][4])) == round(float(rows[4][4])) == 26


@pytest.mark.model
def test_servers_that_do_not_run_are_named_and_ours_is_measured(it: Lesson) -> None:
    shown = it.text("choose-run")
    assert shown.count("not running here") == 2
    assert it.number("choose-run", r"this course +TTFT p90 +(\d+) ms") > 0


@pytest.mark.model
def test_the_calculator_leaves_something_for_a_page_without_a_kernel(it: Lesson) -> None:
    (shown,) = it.data("sizing-widget")
    assert 'data-interactive="sizing"' in shown["text/html"]
