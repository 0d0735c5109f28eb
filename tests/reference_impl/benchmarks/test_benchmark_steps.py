"""What the lessons time and show: one repeatable pass, and results of a GPU that lie in the repository."""

import json
from pathlib import Path
from typing import cast

import pytest
import torch

from reference_impl.benchmarks.cpu.steps import seconds, step
from reference_impl.benchmarks.harness import committed
from reference_impl.benchmarks.harness.result import Result, Section
from reference_impl.bounds.config import ModelConfig
from reference_impl.model.llama import Llama

TINY = ModelConfig("tiny", 2, 32, 4, 2, 8, 48, 260, tied=True, max_context=1024)


@pytest.fixture(scope="module")
def model() -> Llama:
    return Llama(TINY).randomize(torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("all_logits", "n_rows"), [(False, 3), (True, 12)])
def test_a_pass_has_the_new_tokens_of_all_sequences_and_can_be_repeated(
    model: Llama, all_logits: bool, n_rows: int
) -> None:
    seen = []

    class Spy:
        config, embed = model.config, model.embed

        def __call__(self, batch, rows):  # type: ignore[no-untyped-def]
            logits = model(batch, rows)
            seen.append((batch.positions.tolist(), len(logits)))
            return logits

    run = step(cast(Llama, Spy()), batch=3, behind=5, n=4, all_logits=all_logits)
    run()
    run()
    assert seen == [([5, 6, 7, 8] * 3, n_rows)] * 2


def test_a_recorded_pass_can_be_timed_too(model: Llama) -> None:
    run = step(model, batch=2, behind=5, recorded=True)
    run()
    run()


def test_the_fastest_of_several_runs_counts(model: Llama) -> None:
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    assert seconds(model, repeats=3, clock=lambda: next(ticks)) == 1.0


def _write(folder: Path, name: str, date: str, hardware: dict, sections: list[str]) -> None:
    made = [Section(section, f"Title of {section}", {"batch": "batch"}, [{"batch": 1}]) for section in sections]
    (folder / name).write_text(Result(date, hardware, {}, {}, made).to_json())


def test_the_newest_result_of_a_gpu_is_shown(tmp_path: Path) -> None:
    gpu = {"name": "a GPU", "multiprocessors": 132}
    _write(tmp_path, "a.json", "2026-01-02", gpu, ["gpu_decode"])
    _write(tmp_path, "b.json", "2026-01-03", gpu, ["gpu_decode"])
    _write(tmp_path, "c.json", "2026-01-04", gpu, ["gpu_prefill"])
    _write(tmp_path, "d.json", "2026-01-05", {"name": "a CPU"}, ["gpu_decode"])
    shown = committed.gpu_table("gpu_decode", tmp_path)
    assert shown.startswith("a GPU, 2026-01-03\n\nTitle of gpu_decode")


def test_where_no_gpu_was_measured_a_sentence_says_so(tmp_path: Path) -> None:
    assert committed.gpu_result("gpu_decode", tmp_path) is None
    assert "`make gpu-check`" in committed.gpu_table("gpu_decode", tmp_path)


def test_results_in_the_repository_can_be_read() -> None:
    for file in committed.RESULTS.glob("*.json"):
        assert json.loads(file.read_text())["hardware"]
    committed.gpu_result("gpu_decode")
