"""What the figures compute in the browser is what `reference_impl` computes, over a grid of inputs."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from figure_logic import call, gpu, model, run
from node_tools import run_node_tests

from reference_impl.bounds.arithmetic import (
    attention_flops,
    best_draft_length,
    expected_tokens,
    gpus_needed,
    prefill_flops,
    speculative_speedup,
    weight_bytes,
)
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS
from reference_impl.cache.blocks import BlockAllocator
from reference_impl.decoding.greedy import accept_greedy
from reference_impl.decoding.rejection import acceptance, residual, speculative_round
from reference_impl.quantization.groupwise import dequantize_groupwise, quantize_groupwise

STEP = [
    "step.linearSeconds",
    "step.attentionSeconds",
    "step.memorySeconds",
    "step.computeSeconds",
    "step.seconds",
    "step.rate",
    "step.limit",
]
CLOSE = {"rel": 1e-12, "abs": 1e-12}


def test_the_bounds_of_a_deployment_are_those_of_the_python_class() -> None:
    cases, expected = [], []
    formats = ((16, None, 16), (8, 128, 16), (4, 32, 8))
    for name, card, (bits, group, kv_bits) in itertools.product(MODELS, GPUS, formats):
        n_gpus = 2 if "70b" in name else 1
        python = Deployment(MODELS[name], GPUS[card], bits, group, kv_bits, n_gpus)
        settings = {"bits": bits, "group": group or 0, "kvBits": kv_bits, "n": n_gpus}
        points = [(1, 64), (8, 2048), (237, 2048), (1024, 300)]
        then: list[Any] = [("read", ["weights"]), ("read", ["kv"]), ("read", ["fits"]), ("crossingContext", [])]
        then.append(("read", ["computeBoundBatch"]))
        values: list[Any] = [python.weight_bytes, python.kv_bytes_per_token, python.weights_fit]
        values += [python.crossing_context(), python.compute_bound_batch]
        for batch, context in points:
            step = python.step(batch, context)
            then += [(part, [batch, context]) for part in STEP]
            then += [("intensity", [batch, context]), ("limit", [batch, context])]
            then += [("maxSequences", [context]), ("crossingBatch", [context]), ("verifyCost", [batch, context, 4])]
            values += [step.linear.seconds, step.attention.seconds, step.memory_seconds, step.compute_seconds]
            values += [step.seconds, step.tokens_per_second, step.limit]
            values += [python.intensity(batch, context), python.limit(batch, context), python.max_sequences(context)]
            values += [python.crossing_batch(context), python.verify_cost(batch, context)(4)]
        cases.append(call("shared/arithmetic.js", "deploy", model(name), gpu(card), settings, then=then))
        expected.append(values)
    for got, wanted in zip(run(cases), expected, strict=True):
        for one, other in zip(got, wanted, strict=True):
            assert one == (pytest.approx(other, **CLOSE) if isinstance(other, (int, float)) else other)


def test_the_running_example_has_the_digits_of_the_lessons() -> None:
    state = {"batch": 64, "context": 2048, "prompt": 2000, "weight_bits": 16}
    example = (model("llama-3-8b"), gpu("h100-sxm"))
    (found, wall, best) = run(
        [
            call("roofline/logic.js", "roofline", *example, state),
            call("batching/logic.js", "memoryWall", *example, state),
            call("batching/logic.js", "bestBatch", *example, state, 0.010),
        ]
    )
    assert found["step"] == pytest.approx(9.923e-3, rel=1e-4)
    assert found["rate"] == pytest.approx(6450.0, rel=1e-4)
    assert found["ridge"] == pytest.approx(295.4, rel=1e-3)
    assert found["ceiling"] == pytest.approx(63.8, rel=1e-3)  # FLOP per byte: decode never comes to the ridge
    assert found["crossingBatch"] is None
    assert 415 < found["crossingContext"] < 421
    assert wall == 238
    assert best == 64  # 9.92 ms; 65 sequences would take 10.003


def test_prefill_intensity_is_flops_over_bytes() -> None:
    config, n = MODELS["llama-3-8b"], 2000
    extra = attention_flops(config.n_layers, config.n_heads, config.head_dim, n)
    wanted = (prefill_flops(config.n_params, n) + extra) / Deployment(config, GPUS["h200"]).used_bytes(1, n)
    state = {"batch": 1, "context": 64, "prompt": n, "weight_bits": 16}
    (found,) = run([call("roofline/logic.js", "roofline", model("llama-3-8b"), gpu("h200"), state)])
    assert found["prefill"] == pytest.approx(wanted, **CLOSE)


def test_the_largest_batch_within_a_limit_is_the_one_found_by_trying_all() -> None:
    cases, expected = [], []
    for name, card, context, limit in itertools.product(
        ("llama-3-8b", "llama-2-13b", "qwen3-0.6b"), GPUS, (512, 4096), (0.004, 0.012, 0.5)
    ):
        python = Deployment(MODELS[name], GPUS[card])
        most = min(python.max_sequences(context), 5000)
        allowed = [b for b in range(1, most + 1) if python.step(b, context).seconds <= limit]
        state = {"weight_bits": 16, "context": context}
        if python.max_sequences(context) <= 5000:
            cases.append(call("batching/logic.js", "bestBatch", model(name), gpu(card), state, limit))
            expected.append(max(allowed, default=0))
    assert run(cases) == expected


def test_speculative_expectations_and_best_draft_lengths_are_the_same() -> None:
    alphas, costs = (0, 0.3, 0.6, 0.8, 0.9, 0.99, 1), (0.0, 0.02, 0.05, 0.1, 0.2, 0.9, 1.0)
    cases = [call("shared/arithmetic.js", "expectedTokens", a, k) for a in alphas for k in (0, 1, 4, 16)]
    wanted: list[float] = [expected_tokens(a, k) for a in alphas for k in (0, 1, 4, 16)]
    python = Deployment(MODELS["llama-3-8b"], GPUS["a100-80g"])
    for a, c, batch in itertools.product(alphas, costs, (1, 100, 400)):
        state = {"alpha": a, "cost": c, "batch": batch, "context": 512}
        cases.append(call("draft/logic.js", "draftLengths", model("llama-3-8b"), gpu("a100-80g"), state))
        wanted.append(best_draft_length(a, c, python.verify_cost(batch, 512), max_k=16))
    found = run(cases)
    n = 4 * len(alphas)
    assert found[:n] == pytest.approx(wanted[:n], **CLOSE)
    assert [result["best"] for result in found[n:]] == wanted[n:]
    row = found[-1]["rows"][3]
    verify = python.verify_cost(400, 512)(3)
    assert row["speedup"] == pytest.approx(speculative_speedup(1, 3, 1.0, verify), **CLOSE)


def test_in_a_full_batch_the_draft_figure_counts_the_arithmetic_of_the_check() -> None:
    state = {"alpha": 0.8, "cost": 0.1, "batch": 238, "context": 2048}
    (found,) = run([call("draft/logic.js", "draftLengths", model("llama-3-8b"), gpu("h100-sxm"), state)])
    assert found["best"] == 3
    assert f"{found['rows'][3]['speedup']:.2f}" == "1.69"
    assert f"{found['rows'][4]['verify']:.2f}" == "1.61"


def test_a_bill_of_bytes_adds_up_as_in_python() -> None:
    cases, expected = [], []
    for name, card, (bits, group), n_gpus in itertools.product(
        ("llama-3-8b", "llama-3-70b"), GPUS, ((16, 0), (8, 0), (4, 128), (4, 32)), (1, 2, 5)
    ):
        state = {"weight_bits": bits, "group": group, "kv_bits": 16, "context": 8192}
        state |= {"sequences": 16, "reserve": 10, "n_gpus": n_gpus}
        python = Deployment(MODELS[name], GPUS[card], bits, group or None, 16, n_gpus)
        usable = 0.9 * GPUS[card].memory_bytes
        need = python.used_bytes(16, 8192)
        cases.append(call("sizing/logic.js", "bill", model(name), gpu(card), state))
        expected.append(
            {
                "payload": weight_bytes(MODELS[name].n_params, bits),
                "scales": python.weight_bytes - weight_bytes(MODELS[name].n_params, bits),
                "kv": 16 * 8192 * python.kv_bytes_per_token,
                "need": need,
                "needed": gpus_needed(need, usable),
                "fits": need <= usable * n_gpus,
                "step": python.step(16, 8192).seconds,
            }
        )
    for found, wanted in zip(run(cases), expected, strict=True):
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, **CLOSE)


def test_70b_in_4_bits_costs_what_the_lesson_says() -> None:
    state = {"weight_bits": 4, "group": 128, "kv_bits": 16, "context": 64}
    state |= {"sequences": 1, "reserve": 0, "n_gpus": 1}
    (found,) = run([call("sizing/logic.js", "bill", model("llama-3-70b"), gpu("h100-sxm"), state)])
    assert (found["payload"] + found["scales"]) / 1e9 == pytest.approx(36.4, abs=0.05)  # 35.3 without the scales


def test_weights_are_rounded_to_the_same_integers_scales_and_values() -> None:
    numbers = np.random.default_rng(3)
    cases, expected = [], []
    lists = [numbers.normal(size=64), numbers.normal(size=37) * 1e-3, np.zeros(8)]
    lists.append(np.array([0.12, -0.5, 0.33, 0.07, 8.0]))
    lists.append(np.array([127, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -126.5]))  # ties go to the even integer
    for weights, bits, group in itertools.product(lists, (2, 3, 4, 8), (1, 4, 16, 64)):
        matrix = weights.astype(np.float32)[None]
        q, scales = quantize_groupwise(matrix, group, bits)
        restored = dequantize_groupwise(q, scales, group)
        cases.append(call("quantization/logic.js", "quantize", [float(w) for w in matrix[0]], bits, group))
        expected.append({"q": q[0].tolist(), "scales": scales[0].tolist(), "restored": restored[0].tolist()})
    assert run(cases) == expected


def test_one_outlier_of_absmax_8_bits_rounds_as_in_the_reference_values() -> None:
    weights = [0.12, -0.5, 0.33, 0.07, 1.0]
    state = {"bits": 8, "group": 5, "outlier": 8.0}
    (found,) = run([call("quantization/logic.js", "measure", weights, state, 4)])
    assert found["q"] == [2, -8, 5, 1, 127]
    assert found["bitsPerWeight"] == 8 + 16 / 5
    assert found["levelsUsed"] == 5
    assert found["levels"] == 255


def test_block_tables_are_those_of_the_allocator_after_any_forks_and_writes() -> None:
    numbers = random.Random(7)
    cases, expected = [], []
    for _ in range(60):
        size = numbers.choice((1, 4, 16))
        lengths = [numbers.randint(1, 60) for _ in range(numbers.randint(1, 4))]
        prefix = numbers.choice((0, 8, 40))
        names = list("ABCD"[: len(lengths)])
        room = sum(-(-length // size) for length in lengths) + 12
        allocator = BlockAllocator(room, size)
        for i, (name, length) in enumerate(zip(names, lengths, strict=True)):
            shared = min(min(prefix, lengths[0]) // size, (length - 1) // size) if i else 0
            allocator.add(name, allocator.block_table("A")[:shared] if shared else [])
            allocator.append([(name, length - shared * size)])
        events = []
        for _ in range(numbers.randint(0, 8)):
            name = numbers.choice(names)
            if numbers.random() < 0.4:
                child = "ABCDEFGHIJKL"[len(names)]
                allocator.fork(name, child)
                names.append(child)
                events.append(f"fork {name}")
            else:
                allocator.append([(name, 1)])
                events.append(f"write {name}")
        state = {"lengths": lengths, "block_size": size, "prefix": prefix, "events": events, "reserved": 16}
        cases.append(call("paged/logic.js", "account", state, 131072))
        cases.append(call("paged/logic.js", "replay", state, then=[("read", ["cache"])]))
        used = room - allocator.free_blocks
        tables = {name: allocator.block_table(name) for name in names}
        stored = {
            (block, place)
            for name in names
            for t in range(allocator.n_tokens(name))
            for block, place in [(tables[name][t // size], t % size)]
        }
        expected.append(
            (used, len(stored), [sum(table.count(block) for table in tables.values()) for block in range(room)])
        )
    found = run(cases)
    for (used, stored, references), account, (cache,) in zip(expected, found[::2], found[1::2], strict=True):
        assert (account["blocks"], account["filled"]) == (used, stored)
        assert cache["references"] == references
        assert account["wasteBytes"][1] == (used * cache["size"] - stored) * 131072


def test_blocks_needed_at_the_edges_of_a_block() -> None:
    state = {"block_size": 16, "prefix": 0, "events": [], "reserved": 64}
    cases = [call("paged/logic.js", "account", {**state, "lengths": [n]}, 1) for n in (1, 15, 16, 17, 31, 32, 33)]
    assert [found["blocks"] for found in run(cases)] == [1, 1, 1, 2, 2, 2, 3]


def distributions(numbers: random.Random, n: int) -> list[float]:
    drawn = [numbers.choice((0.0, numbers.random(), numbers.random())) for _ in range(n - 1)] + [numbers.random()]
    return [value / sum(drawn) for value in drawn]


def test_a_round_of_the_exact_rule_accepts_and_replaces_as_in_python() -> None:
    numbers = random.Random(11)
    cases, expected = [], []
    for _ in range(200):
        k = numbers.randint(1, 4)
        p = [distributions(numbers, 3) for _ in range(k + 1)]
        q = [distributions(numbers, 3) for _ in range(k)]
        drawn = [numbers.random() for _ in range(3 * k + 1)]
        drafted = [pick(row, v) for row, v in zip(q, drawn, strict=False)]
        asked = iter(drawn[k:])
        python = speculative_round(
            torch.tensor(p, dtype=torch.float64),
            torch.tensor(q, dtype=torch.float64),
            drafted,
            lambda _, asked=asked: next(asked),
            lambda _, asked=asked: next(asked),
        )
        places = [{"p": row, "q": q[i] if i < k else row} for i, row in enumerate(p)]
        cases.append(call("speculative/logic.js", "round", places, {"rule": "exact", "k": k}, {"numbers": drawn}))
        expected.append((drafted, python.tokens))
    for found, (drafted, tokens) in zip(run(cases), expected, strict=True):
        assert found["drafted"] == drafted
        assert [step["chosen"] for step in found["steps"]] == tokens


def pick(probabilities: list[float], v: float) -> int:
    return next(i for i, total in enumerate(itertools.accumulate(probabilities)) if v * sum(probabilities) < total)


def test_a_greedy_round_is_the_greedy_round_of_the_exercise() -> None:
    numbers = random.Random(12)
    cases, expected = [], []
    for _ in range(100):
        p = [distributions(numbers, 3) for _ in range(4)]
        q = [distributions(numbers, 3) for _ in range(4)]
        places = [{"p": a, "q": b} for a, b in zip(p, q, strict=True)]
        cases.append(call("speculative/logic.js", "round", places, {"rule": "greedy", "k": 3}, {"numbers": []}))
        favourite = [[row.index(max(row)) for row in rows] for rows in (q, p)]
        expected.append(accept_greedy(favourite[0][:3], favourite[1]))
    assert [[step["chosen"] for step in found["steps"]] for found in run(cases)] == expected


def test_acceptance_and_residual_of_the_textbook_case() -> None:
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    accepted, left = run(
        [call("speculative/logic.js", "acceptance", p, q), call("speculative/logic.js", "residual", p, q)]
    )
    assert accepted == pytest.approx(0.7)
    assert accepted == pytest.approx(acceptance(p, q))
    assert left == pytest.approx([1.0, 0.0, 0.0])
    assert left == pytest.approx(residual(p, q).tolist())


def test_the_histogram_of_the_exact_rule_is_p_whatever_the_draft() -> None:
    p, q, n = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 20_000
    numbers = random.Random(13)
    drawn = {"numbers": [numbers.random() for _ in range(3 * n)]}
    exact, greedy = run(
        [
            call("speculative/logic.js", "firstTokens", p, q, "exact", n, drawn),
            call("speculative/logic.js", "firstTokens", p, q, "greedy", 10, {"numbers": []}),
        ]
    )
    assert sum(exact) == n
    assert all(math.isclose(count / n, share, abs_tol=0.015) for count, share in zip(exact, p, strict=True))
    assert greedy == [10, 0, 0]


def test_what_the_figures_ask_and_offer_is_right() -> None:
    assert "fail 0" in run_node_tests("figures.test.mjs")
