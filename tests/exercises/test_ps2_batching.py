"""Problem set 2: its reference agrees with the engine's own batching and block tables, its numbers with the course's.

What the bank's wrong and right solutions earn is in test_proven.py.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from in_process import assignment
from released import cells, check_bundle, check_notebook

from reference_impl.bounds import arithmetic, batching
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS
from reference_impl.cache.blocks import BlockAllocator as EngineBlocks

PS2 = assignment("ps2_batching")


@pytest.fixture(scope="module")
def solved() -> dict[str, Any]:
    return PS2.solved()


@pytest.mark.parametrize("seed", [None, "1", "2", "3"])
def test_the_reference_passes_every_test_cell(seed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed:
        monkeypatch.setenv("AUTOGRADER_SEED", seed)
    assert PS2.lost({}) == {}


def test_a_step_costs_what_the_course_says_it_costs(solved: dict[str, Any]) -> None:
    for batch in (1, 7, 64):
        for context in (0, 1, 2048):
            given = (batch, context, 16e9, 131_072, 3.35e12)
            assert solved["decode_step"](*given) == pytest.approx(arithmetic.decode_step(*given), rel=1e-12)


def test_batching_finishes_requests_where_the_engine_says(solved: dict[str, Any]) -> None:
    rng = random.Random(5)
    for _ in range(50):
        lengths, slots = [rng.randint(1, 30) for _ in range(rng.randint(0, 20))], rng.randint(1, 6)
        for name in ("static_batching", "continuous_batching"):
            assert solved[name](lengths, slots) == getattr(batching, name)(lengths, slots)


def test_the_allocator_takes_and_copies_as_many_blocks_as_the_engine(solved: dict[str, Any]) -> None:
    rng = random.Random(6)
    ours, engine = solved["BlockAllocator"](12, 3), EngineBlocks(12, 3)
    known: list[int] = []
    for number in range(400):
        seq = rng.choice(known) if known else -1
        what = rng.choice(["new", "append", "append", "append", "fork", "free"])
        if what == "free" and known:
            ours.free(seq)
            engine.free(seq)
            known.remove(seq)
        elif what == "fork" and known:
            ours.fork(seq, number)
            engine.fork(seq, number)
            known.append(number)
        else:
            seq, count = (number, 1) if what == "new" or not known else (seq, rng.randint(1, 7))
            if seq == number:
                engine.add(seq)
            try:
                copies = [growth.copied for growth in engine.append([(seq, count)]) if growth.copied]
            except MemoryError:
                with pytest.raises(MemoryError):
                    ours.append(seq, count)
                if seq == number:
                    engine.free(seq)
            else:
                assert len(ours.append(seq, count)) == len(copies)
                known += [seq] if seq == number else []
        assert ours.free_blocks == engine.free_blocks
        assert [len(ours.block_table(seq)) for seq in known] == [len(engine.block_table(seq)) for seq in known]


def test_the_memory_of_the_notebook_notices_a_sequence_that_reads_another_ones_token(solved: dict[str, Any]) -> None:
    memory = solved["Memory"](4, 4)
    memory.append("a", 3)
    memory.append("b", 3)
    memory.check()
    memory.allocator.tables["b"] = memory.allocator.tables["a"]
    with pytest.raises(AssertionError, match="tokens of sequence 'b'"):
        memory.check()


def test_the_numbers_in_the_text_are_the_courses() -> None:
    llama, h100 = MODELS["llama-3-8b"], GPUS["h100-sxm"]
    play = next(cell.source for cell in PS2.cells.cells if "238" in cell.source)
    for number in (f"{llama.n_params:_}", f"{llama.kv_bytes_per_token():_}", f"{h100.bandwidth / 1e12}e12"):
        assert number in play
    most = arithmetic.max_sequences(h100.memory_bytes, 2 * llama.n_params, llama.kv_bytes_per_token(), 2048)
    assert most == 238


def test_the_written_answers_numbers_follow_from_the_question() -> None:
    cache = 4_000 * 131_072
    assert round(cache / 1e9, 3) == 0.524
    assert int((3.35e12 / 100 - 16e9) / cache) == 33
    assert arithmetic.max_sequences(80e9, 16e9, 131_072, 4_000) == 122
    assert round(arithmetic.decode_step(122, 4_000, 16e9, 131_072, 3.35e12)[1] / 122) == 42
    assert round(512 * 131_072 / 1e6) == 67


def test_the_notebook_is_ready_for_release() -> None:
    check_notebook("ps2_batching", 60)


def test_each_part_with_code_has_three_hints_behind_folds() -> None:
    hints = ["".join(cell["source"]) for cell in cells("ps2_batching", "release") if cell["id"].startswith("hints-")]
    assert len(hints) == len(PS2.cells.learners_names)
    for said in hints:
        assert said.count("<details><summary>Hint ") == said.count("</details>") == 3


def test_the_released_bundle_is_that_of_the_source_and_gives_nothing_away() -> None:
    check_bundle("ps2_batching")
