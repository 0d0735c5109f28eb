"""The benchmarks: fair turns, honest summaries, and a result that says what was missing. No speed is tested here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest import mock

import pytest
import torch

from reference_impl.benchmarks import GPU_SECTIONS
from reference_impl.benchmarks.cpu import (
    batching,
    decode,
    gaps,
    memory,
    passes,
    peers,
    prefix,
    quantized,
    requests,
    speculative,
)
from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.gpu import card, end_to_end, sections
from reference_impl.benchmarks.gpu import check as gpu
from reference_impl.benchmarks.gpu import correct as gpu_correct
from reference_impl.benchmarks.gpu import quantized as gpu_quantized
from reference_impl.benchmarks.gpu import speculative as gpu_speculative
from reference_impl.benchmarks.harness import plot, report, session
from reference_impl.benchmarks.harness.result import Result, Section, Target, forget
from reference_impl.benchmarks.harness.timing import Samples, interleave, timed
from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.cache.interface import ForwardBatch
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.quantization.model import bytes_read_per_step

TINY = ModelConfig("tiny", 2, 32, 4, 2, 8, 48, 260, tied=True, max_context=1024)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


class FakeClock:
    """Time passes only in `work`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, *seconds: float):
        """Work that takes these seconds, one after the other, the last ones for ever."""
        left = list(seconds)

        def run() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


def tiny_bench(**options: object) -> Bench:
    load = lambda dtype: Llama(TINY, dtype).randomize(torch.Generator().manual_seed(1), std=0.2)
    return Bench(load, quick=True, **({"peers": ()} | options))  # type: ignore[arg-type]


# --- timing


def test_contestants_take_turns_and_another_one_begins_each_round() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
    interleave(runs, 3, lambda: 0.0)
    assert "".join(order) == "abcabcbcacab"  # the first round is the warm-up


def test_the_warm_up_does_not_count_and_one_slow_round_does_not_move_the_median() -> None:
    clock = FakeClock()
    samples = interleave({"a": timed(clock.work(50, 1, 90, 3), clock)}, 3, clock)
    assert samples.values == {"a": [1, 90, 3]}
    assert samples.median("a") == 3


def test_a_ratio_is_the_median_of_the_ratios_within_a_round() -> None:
    samples = Samples({"a": [1.0, 10.0, 3.0], "b": [2.0, 40.0, 3.0]})  # the machine slept during the second round
    assert samples.ratio("b", to="a") == 2.0
    assert samples.spread("a") == 3.0


def test_no_round_begins_after_the_budget_but_one_always_counts() -> None:
    clock = FakeClock()
    samples = interleave({"a": timed(clock.work(4.0), clock)}, 10, clock, budget=10.0)
    assert samples.values["a"] == [4.0, 4.0]  # warm-up to 4 s, rounds to 8 and 12 s
    samples = interleave({"a": timed(clock.work(4.0), clock)}, 10, clock, budget=1.0)
    assert samples.values["a"] == [4.0]


def test_who_fails_is_named_and_the_others_go_on() -> None:
    def fail() -> float:
        raise RuntimeError("no such file")

    samples = interleave({"bad": fail, "good": lambda: 1.0}, 2, lambda: 0.0)
    assert samples.values == {"good": [1.0, 1.0]}
    assert samples.failed == {"bad": "RuntimeError: no such file"}


def test_comparing_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to compare: 0 contestants, 3 rounds"):
        interleave({}, 3, lambda: 0.0)


# --- results and reports


def canned() -> Result:
    return Result(
        date="2026-11-29",
        hardware={"name": "Some CPU (R) 2 cores"},
        versions={"torch": "2.13.0", "vllm": None},
        settings={"quiet": False, "load_average": 7.5, "quick": False},
        sections=[
            Section(
                "prefix",
                "Time to first token",
                {"sharing": "prefix sharing", "computed": "tokens", "milliseconds": "TTFT, ms"},
                [
                    {"sharing": "off", "computed": 1400, "milliseconds": 1234.5},
                    {"sharing": "on", "computed": 16, "milliseconds": None},
                ],
                [Target("speed", 1.25, 1.5), Target("cost", 1.25, 1.4, at_least=False), Target("share", None, 0.6)],
                ["A note."],
            )
        ],
    )


def test_the_report_shows_table_targets_and_what_to_beware_of() -> None:
    assert report.text(canned()) == (
        "Some CPU (R) 2 cores, 2026-11-29\n"
        "torch 2.13.0\n"
        "not installed: vllm\n"
        "NOT A QUIET MACHINE (load average 7.5): take the ratios as a guide, quote nothing\n"
        "\n"
        "Time to first token\n"
        "\n"
        "prefix sharing  tokens  TTFT, ms\n"
        "off              1,400     1,234\n"
        "on                  16         –\n"
        "  target MISSED  speed: 1.25 (at least 1.5)\n"
        "  target met  cost: 1.25 (at most 1.4)\n"
        "  target NOT MEASURED  share (at least 0.6)\n"
        "A note.\n"
        "\n"
        "targets met: 1 of 3"
    )


def test_a_result_survives_its_file_and_states_whether_targets_were_met(tmp_path: Path) -> None:
    path = canned().write(tmp_path)
    assert path.name == "some-cpu-r-2-cores-2026-11-29.json"
    assert [target["met"] for target in json.loads(path.read_text())["sections"][0]["targets"]] == [False, True, False]
    assert Result.from_json(path.read_text()) == canned()


def test_runs_of_one_day_and_machine_are_put_together(tmp_path: Path) -> None:
    first, second = canned(), canned()
    second.sections[0].name = "memory"
    second.settings |= {"quiet": True, "load_average": 9.0}
    joined = session.join([first, second])
    assert [section.name for section in joined.sections] == ["prefix", "memory"]
    assert joined.settings == {"quiet": False, "load_average": 9.0, "quick": False, "runs": 2}
    with pytest.raises(ValueError, match="two runs bring the same section: prefix, prefix"):
        session.join([first, canned()])
    second.date = "2026-11-30"
    with pytest.raises(ValueError, match="runs of 2026-11-29 and 2026-11-30 do not belong together"):
        session.join([first, second])


def test_a_run_with_real_time_priority_counts_as_quiet_and_says_so() -> None:
    result = canned()
    result.settings |= {"real_time": True, "quiet": True}
    assert "ran with real-time priority" in report.text(result)
    assert "NOT A QUIET MACHINE" not in report.text(result)


def test_a_partial_run_does_not_replace_a_whole_one(tmp_path: Path) -> None:
    assert canned().write(tmp_path) != canned().write(tmp_path, ["decode", "quick"])
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "sections": [{}]}'])
def test_what_is_not_a_result_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"some\.json: not a benchmark result"):
        Result.from_json(text, "some.json")


# --- sections on a tiny model


def test_a_step_reads_all_weights_once_and_each_sequences_cache() -> None:
    smollm2 = MODELS["smollm2-135m"]
    assert step_mib(smollm2, 1, 0) == 134_515_008 * 4
    assert step_mib(smollm2, 8, 100) == 134_515_008 * 4 + 8 * 100 * 23_040 * 2  # fp32: twice the bytes of bf16
    llama = MODELS["llama-3-8b"]  # untied: one row of the input table instead of all of it
    assert decode.step_bytes(llama, 2, 0, 2) == (8_030_261_248 - 128_256 * 4096 + 2 * 4096) * 2


def step_mib(config: ModelConfig, batch: int, context: int) -> float:
    return decode.step_bytes(config, batch, context, 4)


def test_a_missing_peer_is_named_and_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    monkeypatch.setattr(decode, "bandwidth", lambda clock: lambda: 1e9)
    section = decode.run(tiny_bench(peers=("transformers", "llama.cpp", "vllm")))
    for name in ("transformers fp32: transformers", "llama.cpp bf16: xllamacpp", "vllm fp32: vllm"):
        assert f"Missing: {name} is not installed." in section.notes
    assert {(row["engine"], row["dtype"], row["batch"]) for row in section.rows} == {
        ("this engine", dtype, batch) for dtype in ("fp32", "bf16") for batch in (1, 8)
    }
    not_measured = [target for target in section.targets if target.value is None]
    assert len(not_measured) == 2  # against transformers, at either batch size
    assert not any(target.met for target in not_measured)
    assert_sound(section)


def test_transformers_computes_with_our_weights_and_gives_the_same_tokens() -> None:
    bench = tiny_bench()
    theirs = peers.start("transformers", "fp32", bench)
    assert isinstance(theirs, peers.Transformers)
    parameters = dict(theirs.model.named_parameters())
    for name, view in bench.model("fp32").views().items():
        assert parameters[name].data_ptr() == view.data_ptr()
    prompt = torch.tensor(bench.prompts(1, 12))
    from reference_impl.cache.recompute import Recompute

    with torch.inference_mode():
        torch.testing.assert_close(
            theirs.model(prompt).logits[0], bench.model("fp32")(Recompute(prompt[0].tolist())), rtol=1e-4, atol=1e-4
        )
    assert theirs.step_seconds(bench.prompts(2, 5), 4) > 0


def test_a_peer_that_does_not_start_is_missing_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError("wrong file")

    monkeypatch.setattr(peers, "Transformers", refuse)
    with pytest.raises(peers.MissingPeerError, match=r"transformers does not start \(OSError: wrong file\)"):
        peers.start("transformers", "fp32", tiny_bench())


def test_our_decode_step_is_the_pause_between_tokens_without_the_prompt() -> None:
    clock = FakeClock()
    model = tiny_bench().load(torch.float64)  # not recorded: a replay would not run Python

    class Slow:
        config, embed = model.config, model.embed

        def __call__(self, batch, rows):  # type: ignore[no-untyped-def]
            clock.now += 100.0 if len(batch.tokens) > 2 else 0.5
            return model(batch, rows)

    assert peers.Ours(cast(Llama, Slow()), clock).step_seconds([[1, 2, 3], [4, 5, 6]], 5) == 0.5


def test_passes_say_what_more_tokens_cost_and_leave_the_kernels_as_they_were() -> None:
    from reference_impl import kernels

    before = kernels.linear
    section = passes.run(tiny_bench())
    assert kernels.linear is before
    assert [row["tokens"] for row in section.rows] == [1, 2, 4, 8, 16]
    assert section.rows[0]["fp32_cost"] == section.rows[0]["plain_cost"] == section.rows[0]["bound_cost"] == 1.0
    assert [target.limit for target in section.targets] == [1.4, 1.4]
    assert_sound(section)


def test_quantized_decode_is_compared_with_floats_and_predicted_from_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "bandwidth", lambda clock: lambda: 1e9)
    section = quantized.run(tiny_bench())
    rows = {(row["weights"], row["batch"]): row for row in section.rows if row["engine"] == "this engine"}
    assert set(rows) == {("fp32", 1), ("bf16", 1), ("int8", 1), ("int8", 4), ("int4", 1), ("int4", 4)}
    assert rows["fp32", 1]["megabytes"] > 1.9 * rows["bf16", 1]["megabytes"] > 3 * rows["int4", 1]["megabytes"]
    assert rows["int8", 1]["predicted_ms"] == pytest.approx(rows["int8", 1]["megabytes"])  # at 1 GB/s
    assert [target.limit for target in section.targets] == [1.6, 1.3, 0.9, 1.3, 1.3]
    assert section.targets[2].value is None  # this model is not the peer's
    assert_sound(section)


def test_batching_takes_exactly_the_steps_that_paper_says() -> None:
    section = batching.run(tiny_bench())
    for row in section.rows:
        assert row["steps"] == row["paper_steps"]
        assert row["mean_finish_steps"] == pytest.approx(row["paper_mean_finish_steps"])
    steps = {row["batching"]: row["steps"] for row in section.rows}
    assert steps["continuous"] < steps["static"]
    assert_sound(section)


def test_gaps_are_measured_for_the_chosen_pass_and_for_the_largest() -> None:
    section = gaps.run(tiny_bench())
    budgets = [row["budget"] for row in section.rows]
    assert budgets[-1] == 512
    assert budgets == sorted(set(budgets))
    assert all(0 < row["median"] <= row["longest"] <= 1e3 * row["ttft"] for row in section.rows)
    assert_sound(section)


def test_requests_are_measured_alone_together_and_beside_a_long_prompt() -> None:
    section = requests.run(tiny_bench())
    assert [(row["case"], row["served"]) for row in section.rows] == [
        ("eight questions", "one after another"),
        ("eight questions", "in one batch"),
        ("a long prompt", "in one pass"),
        ("a long prompt", "in chunks of 32"),
    ]
    assert all(row["seconds"] > 0 for row in section.rows[:2])
    assert all(min(row["pause_ms"], row["first_ms"]) > 0 for row in section.rows[2:])
    assert_sound(section)


def test_prefix_sharing_computes_only_what_is_not_shared() -> None:
    section = prefix.run(tiny_bench())
    assert {row["sharing"]: row["computed"] for row in section.rows} == {"off": 96 + 16, "on": 16}
    assert_sound(section)


def test_blocks_waste_less_than_one_a_sequence_and_slots_much_more() -> None:
    section = memory.run(tiny_bench())
    waste = {row["cache"]: row["waste_per_sequence"] for row in section.rows}
    assert 0 < waste["blocks of 16"] < 16
    assert waste["blocks of 16"] < waste["blocks of 64"] < 64 < waste["contiguous slots"]
    assert {row["token_bytes"] for row in section.rows} == {2 * 2 * 2 * 8 * 2}  # K and V, layers, KV heads, size, bf16
    assert all(target.met for target in section.targets)
    assert_sound(section)


def test_speculation_is_compared_with_plain_decoding_and_with_transformers_look_up() -> None:
    section = speculative.run(tiny_bench(peers=("transformers",)))
    rows = {(row["engine"], row["dtype"], row["drafts"]): row for row in section.rows}
    ours = {("this engine", dtype, k) for dtype in ("fp32", "int8") for k in (0, 4, 6)}
    assert rows.keys() == ours | {("transformers", "fp32", k) for k in (0, 6)}
    assert rows["this engine", "int8", 0]["faster"] == rows["transformers", "fp32", 0]["faster"] == 1.0
    assert rows["transformers", "fp32", 6]["vs_transformers"] == 1.0
    assert rows["this engine", "int8", 4]["tokens_per_pass"] >= 1
    assert [target.limit for target in section.targets] == [1.4, 1.0]
    assert_sound(section)


def assert_sound(section: Section) -> None:
    """Every row has every column, every number is finite, and the report can print it."""
    for row in section.rows:
        assert row.keys() >= section.columns.keys()
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))
    result = canned()
    result.sections = [section]
    assert section.title in report.text(result)
    assert Result.from_json(result.to_json()) == result


def test_the_plot_draws_what_was_measured(tmp_path: Path) -> None:
    result = canned()
    result.sections[0].rows[1]["milliseconds"] = 5.0
    result.sections.append(batching.run(tiny_bench()))
    assert plot.plot(result, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
    result.sections = []
    assert not plot.plot(result, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


# --- the GPU's part, on the CPU with a capture that records nothing


def rerun(run):  # type: ignore[no-untyped-def]
    """What stands in for a CUDA graph: computes again, into the same tensor."""
    out = run().clone()
    return (lambda: out.copy_(run())), out


def test_the_correctness_check_finds_the_cpu_equal_to_itself() -> None:
    section = gpu_correct.correctness("cpu", rerun)
    assert all(target.met for target in section.targets)
    assert section.rows[0]["check"] == "bf16: prefill"  # what a GPU computes in comes first
    assert {target.what: target.value for target in section.targets}["fp32: prefill, relative error"] == 0.0
    assert_sound(section)


def test_the_correctness_check_notices_a_graph_that_replays_nothing() -> None:
    def stale(run):  # type: ignore[no-untyped-def]
        return (lambda: None), run()

    section = gpu_correct.correctness("cpu", stale)
    missed = [target.what for target in section.targets if not target.met]
    assert "fp32: decode by CUDA graph, relative error" in missed
    assert "fp32: share of greedy tokens equal to the CPU's" in missed


def test_answers_with_drafts_are_compared_with_plain_ones() -> None:
    section = gpu_correct.answers("cpu")
    assert [(row["drafts"], row["equal"]) for row in section.rows] == [("n-grams", 1.0), ("the model itself", 1.0)]
    assert section.rows[1]["accepted"] > 0.9
    assert all(target.met for target in section.targets)
    assert_sound(section)


def test_the_tests_that_need_a_gpu_are_left_out_where_pytest_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_correct, "find_spec", lambda name: None if name == "pytest" else object())
    section = gpu_correct.tests()
    assert section.rows == [{"check": "pytest -m gpu", "found": "not run: pytest not installed"}]
    assert section.targets == []


def test_a_nan_is_an_infinite_error() -> None:
    assert gpu_correct.relative_error(torch.tensor([float("nan")]), torch.tensor([1.0])) == math.inf
    assert gpu_correct.relative_error(torch.tensor([1.1]), torch.tensor([1.0])) == pytest.approx(0.1)


def test_the_batch_table_of_a_gpu_stands_beside_the_papers() -> None:
    clock = FakeClock()
    subject = gpu.Subject(tiny_bench().model("fp32"), clock=lambda: clock.now, capture=rerun, repeats=1)
    subject.seconds = lambda work: (work(), 0.5)[1]  # type: ignore[method-assign]
    kept: list[int] = []
    ceilings = card.Ceilings(1e6, 1e6)
    section = gpu.decode(subject, ceilings, None, (1, 8), 40, lambda so_far: kept.append(len(so_far.rows)))
    assert kept == [1, 2]  # a crash at batch 8 would not lose batch 1
    first, second = section.rows
    assert first["share"] == pytest.approx(decode.step_bytes(TINY, 1, 40, 4) / 0.5 / 1e6)
    assert first["paper_milliseconds"] == pytest.approx((TINY.n_params + 40 * 2 * 2 * 2 * 8) * 4 / 1e6 * 1e3)
    assert (first["tokens_per_second"], second["tokens_per_second"]) == (2.0, 16.0)
    assert_sound(section)


def test_quantized_steps_of_a_gpu_stand_beside_their_bytes() -> None:
    taken = iter([1.0, 1.5, 0.5, 0.6])
    seen: list[Llama] = []

    def seconds(model: Llama, batch: int) -> float:
        seen.append(model)
        return next(taken)

    section = gpu_quantized.quantized(8, lambda: tiny_bench().load(torch.float32), seconds, 1e9, 40, (1, 4))
    assert section.name == "gpu_int8"
    assert [(row["weights"], row["batch"], row["vs_float"]) for row in section.rows] == [
        ("float", 1, 1.0),
        ("float", 4, 1.0),
        ("int8", 1, 2.0),
        ("int8", 4, 2.5),
    ]
    cache = 40 * TINY.kv_bytes_per_token(4)
    for row in section.rows[2:]:
        assert row["gigabytes"] * 1e9 == pytest.approx(bytes_read_per_step(seen[-1]) + row["batch"] * cache)
    assert section.rows[0]["gigabytes"] > section.rows[2]["gigabytes"]
    assert [(target.value, target.limit, target.at_least) for target in section.targets] == [
        (2.0, 1.75, True),
        (1.2, 1.3, False),
    ]
    assert_sound(section)


def test_the_engines_own_step_stands_beside_its_graph() -> None:
    clock = FakeClock()
    model = tiny_bench().load(torch.float64)  # not recorded: a replay would not run Python

    class Slow:
        config, embed = model.config, model.embed

        def __call__(self, batch, rows):  # type: ignore[no-untyped-def]
            clock.now += 100.0 if len(batch.tokens) > 2 else 0.5
            return model(batch, rows)

    section = end_to_end.end_to_end(Slow(), lambda batch, context: 0.25, clock, (1, 2), 8, 6)  # type: ignore[arg-type]
    assert [(row["batch"], row["tokens"], row["ratio"]) for row in section.rows] == [
        (1, "greedy", 2.0),
        (1, "top-p 0.9", 2.0),
        (2, "greedy", 2.0),
        (2, "top-p 0.9", 2.0),
    ]
    assert [row["tokens_per_second"] for row in section.rows] == [2.0, 2.0, 4.0, 4.0]
    assert_sound(section)


def test_every_section_of_the_check_is_measured_by_its_own_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins have the signatures of what they stand for, so a call that does not fit fails here."""
    monkeypatch.setattr(sections, "_config", lambda: MODELS["llama-3-8b"])
    for name in ("_subject", "_ceilings", "_sheet"):
        monkeypatch.setattr(sections, name, mock.Mock())
    expected = {
        "card": (card, "describe"),
        "correctness": (gpu_correct, "correctness"),
        "decode": (gpu, "decode"),
        "int8": (gpu_quantized, "quantized"),
        "int4": (gpu_quantized, "quantized"),
        "engine": (end_to_end, "end_to_end"),
        "answers": (gpu_correct, "answers"),
        "speculative": (gpu_speculative, "speculative"),
        "tests": (gpu_correct, "tests"),
        "prefill": (gpu, "prefill"),
    }
    for module, name in set(expected.values()):
        monkeypatch.setattr(module, name, mock.create_autospec(getattr(module, name), return_value=name))
    found = {name: sections.measure_section(name, forget) for name in GPU_SECTIONS}
    assert found == {section: name for section, (_, name) in expected.items()}


def test_prefill_work_leaves_out_the_tables_that_no_token_multiplies() -> None:
    llama = MODELS["llama-3-8b"]
    layers = 8_030_261_248 - 2 * 128_256 * 4096
    attention = 4 * 32 * 32 * 128 * (2048 * 2049 // 2)
    assert gpu.prefill_work(llama, 2048) == 2 * layers * 2048 + 2 * 128_256 * 4096 + attention


def test_a_card_is_found_by_its_drivers_name() -> None:
    names = {"NVIDIA H100 80GB HBM3": "H100 SXM", "NVIDIA H200": "H200", "NVIDIA A100-SXM4-80GB": "A100 80 GB"}
    for name, expected in names.items():
        found = card.data_sheet(name)
        assert found is not None
        assert found.name == expected
    for relative in ("GeForce RTX 4090", "H100 PCIe", "H100 NVL", "GH200 480GB", "H200 NVL", "A100-SXM4-40GB", "T4"):
        assert card.data_sheet(f"NVIDIA {relative}") is None
    assert card.data_sheet("Tesla T4") is None


def test_the_largest_model_that_fits_is_measured() -> None:
    assert card.choose_model(80e9).name == "llama-3-8b"
    assert card.choose_model(24e9).name == "llama-3.2-1b"
    assert card.choose_model(6e9).name == "smollm2-135m"


@pytest.mark.parametrize(
    ("capability", "total", "free", "reason"),
    [
        ((7, 5), 16e9, 16e9, "X is too old: its compute capability is 7.5, and 8.0 is needed"),
        ((8, 6), 6e9, 6e9, "X is too small: it has 6.0 GB of memory, and 10 GB are needed"),
        ((9, 0), 80e9, 50e9, "X is busy: other processes hold 30.0 of its 80.0 GB of memory"),
        ((9, 0), 80e9, 79e9, None),
    ],
)
def test_a_card_that_cannot_be_checked_is_refused_with_the_reason(
    capability: tuple[int, int], total: float, free: float, reason: str | None
) -> None:
    assert card.unusable("X", capability, total, free) == reason


# --- the command


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reference_impl.benchmarks", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_check_says_so_in_one_line() -> None:
    done = command("--gpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-check: PyTorch finds no CUDA GPU here, so nothing was checked\n"


def test_an_earlier_result_can_be_shown_and_another_file_is_refused(tmp_path: Path) -> None:
    path = canned().write(tmp_path)
    assert command("--show", str(path)).stdout == report.text(canned()) + "\n"
    path.write_text("{}")
    done = command("--show", str(path))
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_scripted_draft_is_right_as_often_as_it_is_told_and_prediction_meets_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Time passes in the models alone: 1 s for the target's pass, 0.1 s for the draft's."""
    clock = FakeClock()
    shape = ModelConfig("draft", 1, 16, 2, 1, 8, 24, 260, tied=True, max_context=1024)

    def timed(self: FusedLlama, batch: ForwardBatch, rows: torch.Tensor | None = None) -> torch.Tensor:
        clock.now += 0.1 if self.config is shape else 1.0
        return self.model(batch, rows)

    monkeypatch.setattr(FusedLlama, "__call__", timed)
    target = tiny_bench().model("fp32")
    section = gpu_speculative.speculative(target, clock, shape, (0.0, 0.8, 1.0), 8, 200, rounds=1)
    rows = {row["alpha"]: row for row in section.rows}
    assert (rows[0.0]["tokens_per_pass"], rows[1.0]["tokens_per_pass"]) == (1.0, pytest.approx(9, rel=0.05))
    assert rows[0.8]["k"] == 6  # the best one at cost 0.1
    assert rows[0.8]["predicted"] == pytest.approx(2.47, abs=0.01)
    assert rows[0.8]["tokens_per_pass"] == pytest.approx(3.95, rel=0.15)  # (1 - 0.8^7) / 0.2
    assert all(target.met for target in section.targets)
    assert_sound(section)
