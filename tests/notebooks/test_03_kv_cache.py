"""Lesson 3: its prose agrees with `reference_impl`, and paging, sharing and offload change no answer."""

from collections.abc import Callable

import pytest
from lesson_run import Lesson

from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

LLAMA, H100 = MODELS["llama-3-8b"], GPUS["h100-sxm"]
PAPER = Deployment(LLAMA, H100)


@pytest.fixture(scope="module")
def it(lesson: Callable[[str], Lesson]) -> Lesson:
    return lesson("03_kv_cache")


# --- the numbers in the prose


def test_prose_numbers_of_a_token(it: Lesson) -> None:
    assert f"{LLAMA.kv_bytes_per_token():,} bytes for Llama 3 8B. KV heads count" in it.prose
    assert f"With 32 the answer would be {4 * LLAMA.kv_bytes_per_token():,} bytes, as in Llama 2 7B" in it.prose
    assert MODELS["llama-2-7b"].kv_bytes_per_token() == 524_288
    assert 8192 * LLAMA.kv_bytes_per_token() == 2**30
    assert 16 * LLAMA.kv_bytes_per_token() == 2 * 2**20  # "2 MiB"
    assert 8192 // 16 == 512  # "512 of them"


def test_prose_numbers_of_what_fits(it: Lesson) -> None:
    one = 8192 * PAPER.kv_bytes_per_token
    assert f"so {(80e9 - PAPER.weight_bytes) / one:.2f} is rounded *down*" in it.prose
    assert "**59, not 60.**" in it.prose
    reported = 81_559 * 2**20  # bytes that the driver reports for an H100 of 80 GB
    assert f"{reported / 2**30:.1f} GiB, which is {reported / 1e9:.1f} GB" in it.prose
    assert f"leaves {(0.92 * reported - PAPER.weight_bytes) // one:.0f} users here" in it.prose
    assert PAPER.max_sequences(8192) == 59
    assert f"you promise {(80 * 2**30 - PAPER.weight_bytes) // one:.0f} users and fit 59" in it.prose
    assert round(2**30 / 1e9 - 1, 2) == 0.07
    code = "\n".join(cell.source for cell in it.code)
    assert f"{(80e9 - PAPER.weight_bytes) / 1e9:.2f}e9 / (8,192 · 131,072) = 59.55" in code


def test_prose_numbers_of_offload(it: Lesson) -> None:
    code = "\n".join(cell.source for cell in it.code)
    n_bytes = 8192 * LLAMA.kv_bytes_per_token()
    there = 1000 * n_bytes / 50e9
    again = 1000 * PAPER.prefill_seconds(8192)
    assert f"{n_bytes / 1e9:.3f} GB each way, {there:.1f} ms each: {2 * there:.1f} ms" in code
    assert f"a prefill of {again:.0f} ms" in code


# --- the lesson run from clean


@pytest.mark.model
def test_kv_heads_set_the_bytes_of_a_token(it: Lesson) -> None:
    assert it.row("bytes-run", "llama-2-7b") == ["32", "32", "524,288"]
    assert it.row("bytes-run", "llama-3-8b") == ["32", "8", "131,072"]
    assert it.row("bytes-run", "llama-3-70b") == ["64", "8", "327,680"]
    per_token = it.number("bytes-run", r"torch\.\w+: ([\d,]+) bytes per token")
    assert per_token in (46_080, 23_040)  # float32 on a CPU, bfloat16 on a GPU


@pytest.mark.model
def test_59_sequences_fit(it: Lesson) -> None:
    assert "sequences: 59.55, so 59 fit" in it.text("fit-run")


@pytest.mark.model
def test_the_table_of_cs336_is_reproduced(it: Lesson) -> None:
    rows = [line.split() for line in it.text("heads-table").splitlines()[1:]]
    assert rows == [
        ["1", "40", "26.9", "8.021", "124.7", "yes"],
        ["64", "40", "79.7", "23.796", "2,689.5", "yes"],
        ["256", "40", "240.8", "71.874", "3,561.8", "no"],
        ["64", "8", "33.4", "9.974", "6,416.7", "yes"],
        ["256", "8", "65.6", "19.590", "13,068.2", "yes"],
    ]
    assert f"is {13_068.16 / 3_561.77:.1f} times what 40 heads would give" in it.prose
    assert f"it is {13_068.16 / 2_689.48:.1f} times" in it.prose


@pytest.mark.model
def test_slots_waste_most_of_the_memory_and_blocks_less_than_one_a_sequence(it: Lesson) -> None:
    slots, blocks = (it.row("reserve-table", name) for name in ("slots of 512", "blocks of 16"))
    assert float(slots[2].rstrip("%")) > 50  # of the reserved memory
    assert int(blocks[1]) < 12 * 16  # tokens


@pytest.mark.model
def test_blocks_are_counted_as_on_paper(it: Lesson) -> None:
    assert "free: 8 of 20" in it.text("blocks-run")
    assert it.row("size-run", "16  ")[0] == "7.5"


@pytest.mark.model
def test_paging_does_not_change_the_answer_though_the_blocks_interleave(it: Lesson) -> None:
    assert "same tokens from slots and from blocks: True" in it.text("same-run")
    tables = [
        [int(block) for block in line.split("[")[1].rstrip("]").split(",")]
        for line in it.text("same-run").splitlines()
        if "'s blocks" in line
    ]
    assert max(tables[0]) > min(tables[1])


@pytest.mark.model
def test_a_shared_beginning_is_found_in_full_blocks_and_shortens_the_prefill(it: Lesson) -> None:
    without, shared = (it.row("share-run", f"{label} sharing") for label in ("without", "with"))
    assert [without[0], shared[0]] == ["0", "192"]
    assert float(shared[1]) < float(without[1])  # time to first token


@pytest.mark.model
def test_a_fork_copies_on_write(it: Lesson) -> None:
    shown = it.text("fork-run")
    assert "after the forks:  7 blocks in use" in shown
    assert "after the writes: 10 blocks, not 28" in shown
    assert shown.count("copied None") == 1


@pytest.mark.model
def test_giving_way_changes_no_answer(it: Lesson) -> None:
    for kind in ("recompute", "swap"):
        assert it.number("full-run", rf"{kind} +(\d+) preemptions") >= 1
    assert it.text("full-run").count("same answers: True") == 2
    prefilled = [it.number("full-run", rf"{kind} .* (\d+) tokens prefilled") for kind in ("recompute", "swap")]
    assert prefilled[1] < prefilled[0]


@pytest.mark.model
def test_a_sequence_in_flight_is_refused_and_comes_back_whole(it: Lesson) -> None:
    shown = it.text("hazard-run")
    assert "after swap_out: leaving" in shown
    assert "refused: sequence 'me'" in shown
    assert "after wait:     host - free blocks: 8" in shown
    assert "and back:       device" in shown
