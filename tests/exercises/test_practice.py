"""The practice exercises: each solution against `reference_impl`, each text against its solution.

The expected outputs here come from the functions of `reference_impl`, not from the solutions. No printed number may lie
so close to a half that another order of the operations would print it otherwise.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable

import pytest
import released
from programs import BY_ID, EXERCISES, Exercise, fill_practice, run

from reference_impl.bounds import arithmetic, batching
from reference_impl.bounds.config import MODELS
from reference_impl.cache import blocks
from reference_impl.cache.offload import Offloader
from reference_impl.cache.paged import PagedCache
from reference_impl.cache.prefix import PrefixIndex
from reference_impl.commands.quantize import parse_quantization_input, quantization_report, quantize_group
from reference_impl.commands.speculate import speculative_report
from reference_impl.engine.metrics import Timeline
from reference_impl.loadtest.summary import Limits, summarize


def shown(value: float, decimals: int) -> str:
    """The number as printed; it must not be near the middle between two such numbers."""
    assert abs(abs(value) * 10**decimals % 1 - 0.5) > 1e-6, f"{value} is rounded either way to {decimals} decimals"
    return f"{value:.{decimals}f}"


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def groupwise_int8(text: str) -> str:
    weights, size = parse_quantization_input(text)
    groups = [weights[start : start + size] for start in range(0, len(weights), size)]
    error = 0.0
    for group in groups:
        scale, q = quantize_group(group)
        shown(scale, 5)
        error += sum(abs(w - n * scale) for w, n in zip(group, q, strict=True))
    shown(error / len(weights), 5)
    return quantization_report(text)


def decode_bound(text: str) -> str:
    lines = []
    for name, *numbers in rows(text):
        billions, bits, bandwidth = map(float, numbers)
        size = arithmetic.weight_bytes(round(billions * 1e9), bits)
        seconds = arithmetic.decode_step(1, 0, size, 0, bandwidth * 1e9)[0]
        rate = arithmetic.decode_tokens_per_second(size, bandwidth * 1e9)
        lines.append(f"{name}: {shown(size / 1e9, 2)} GB, {shown(1000 * seconds, 3)} ms, {shown(rate, 1)} tokens/s")
    return "\n".join(lines)


def batch_table(text: str) -> str:
    first, batches = rows(text)
    weights, kv, context, bandwidth = map(float, first)
    table = arithmetic.batch_table([int(batch) for batch in batches], int(context), weights, kv, bandwidth)
    return "\n".join(
        f"batch {row.batch}: {shown(1000 * row.seconds, 3)} ms, {shown(row.tokens_per_second, 1)} tokens/s, "
        f"{shown(row.tokens_per_second / row.batch, 1)} each"
        for row in table
    )


def kv_capacity(text: str) -> str:
    shape, sizes, lengths = [[int(word) for word in row] for row in rows(text)]
    layers, _, kv_heads, head_dim, bytes_per_value = shape
    per_token = arithmetic.kv_bytes_per_token(layers, kv_heads, head_dim, bytes_per_value)
    fits = [f"{n} tokens: {arithmetic.max_sequences(*sizes, per_token, n)} sequences" for n in lengths]
    return "\n".join([f"{per_token} bytes a token", *fits])


def block_tables(text: str) -> str:
    """The engine's allocator counts; which of the free blocks are taken is the exercise's own rule."""
    (n_blocks, block_size), *commands = rows(text)
    allocator = blocks.BlockAllocator(int(n_blocks), int(block_size))
    free = list(range(int(n_blocks)))
    tables: dict[str, list[int]] = {}
    lines = []
    for command, name, *rest in commands:
        if command == "free":
            allocator.free(name)
            free = sorted(free + tables.pop(name))
            said = "freed"
        else:
            new = name not in allocator
            if new:
                allocator.add(name)
            needed = allocator.blocks_needed([(name, int(rest[0]))])
            try:
                allocator.append([(name, int(rest[0]))])
                tables[name] = tables.get(name, []) + free[:needed]
                free = free[needed:]
                said = " ".join(map(str, tables[name]))
            except MemoryError:
                said = f"needs {needed}"
                if new:
                    allocator.free(name)
        lines.append(f"{name}: {said}, {allocator.free_blocks} free")
    return "\n".join(lines)


def continuous_batching(text: str) -> str:
    (slots,), lengths = [[int(word) for word in row] for row in rows(text)]
    lines = []
    for rule in (batching.static_batching, batching.continuous_batching):
        finish = rule(lengths, slots)
        used = 100 * sum(lengths) / (slots * max(finish))
        lines.append(f"{rule.__name__.removesuffix('_batching')}: {' '.join(map(str, finish))}")
        mean = shown(sum(finish) / len(finish), 2)
        lines.append(f"{max(finish)} steps, mean {mean}, {shown(used, 1)} % used")
    return "\n".join(lines)


def expected_tokens(text: str) -> str:
    lines = []
    for first, second, third in rows(text):
        alpha, k, cost = float(first), int(second), float(third)
        tokens = shown(arithmetic.expected_tokens(alpha, k), 4)
        speed = shown(arithmetic.speculative_speedup(alpha, k, cost), 2)
        best = arithmetic.best_draft_length(alpha, cost, max_k=k)
        lines.append(f"{tokens} tokens a pass, {speed} times as fast, best with {best}")
    return "\n".join(lines)


def prefix_caching(text: str) -> str:
    """The engine's index of full blocks; tokens are numbered as they come."""
    (size,), *prompts = rows(text)
    block_size, numbers = int(size), {}
    index, n_cached, lines = PrefixIndex(block_size), 0, []
    for number, prompt in enumerate(prompts, start=1):
        tokens = [numbers.setdefault(word, len(numbers)) for word in prompt]
        chain = index.match(tokens, (len(tokens) - 1) // block_size)  # the last token is always computed
        n_cached += len(chain) * block_size
        lines.append(
            f"prompt {number}: {len(chain) * block_size} cached, {len(tokens) - len(chain) * block_size} computed"
        )
        parent = -1
        for i in range(len(tokens) // block_size):
            parent = index.insert(1000 * number + i, parent, tokens[i * block_size : (i + 1) * block_size])
    share = shown(100 * n_cached / sum(map(len, prompts)), 1)
    return "\n".join([*lines, f"{share} % cached"])


def offload_hazards(text: str) -> str:
    """The engine's offloader over a paged cache with blocks of one token."""
    (gpu, cpu), *commands = rows(text)
    cache = PagedCache(MODELS["smollm2-135m"], int(gpu), block_size=1, prefix_sharing=False)
    offloader, lines = Offloader(cache, int(cpu)), []
    places = {"device": "on gpu", "leaving": "leaving", "host": "on cpu", "arriving": "arriving"}
    for command, *rest in commands:
        name = rest[0] if rest else ""
        try:
            if command == "done":
                offloader.poll()
            elif command == "new":
                cache.add(name)
                try:
                    cache.commit(cache.extend([(name, [0] * int(rest[1]))]))
                except MemoryError:
                    cache.free(name)
                    raise
            elif command == "use":
                if offloader.where(name) != "device":
                    raise RuntimeError
            elif command == "out":
                offloader.swap_out(name)
            else:
                offloader.swap_in(name)
            said = f"{name}: {places[offloader.where(name)]}" if name else command
        except (MemoryError, RuntimeError):
            said = f"{name}: refused"
        lines.append(f"{said}, {cache.free_blocks} and {offloader.host.free_blocks} free")
    return "\n".join(lines)


def goodput(text: str) -> str:
    (ttft, tpot), *requests = [[int(word) for word in row] for row in rows(text)]
    limits, lines, timelines = Limits(ttft, tpot), [], []  # in milliseconds
    for arrival, *times in requests:
        timeline = Timeline(arrival)
        for time in times:
            timeline.add(time)
        if times:
            timeline.close(times[-1])
        timelines.append(timeline)
        kept = "kept" if limits.kept_by(timeline) else "broken"
        first = "-" if timeline.ttft is None else f"{timeline.ttft} ms"
        mean = "-" if timeline.tpot is None else f"{shown(timeline.tpot, 1)} ms"
        lines.append(f"{first}, {mean}: {kept}")
    found = summarize(timelines, limits)
    answered, good = shown(1000 * found.requests_per_second, 2), shown(1000 * found.goodput, 2)
    return "\n".join([*lines, f"{answered} answered per second, goodput {good}"])


ORACLES: dict[str, Callable[[str], str]] = {
    "01_groupwise_int8": groupwise_int8,
    "02_speculative_rounds": speculative_report,
    "03_decode_bound": decode_bound,
    "04_batch_table": batch_table,
    "05_kv_capacity": kv_capacity,
    "06_block_tables": block_tables,
    "07_continuous_batching": continuous_batching,
    "08_expected_tokens": expected_tokens,
    "09_prefix_caching": prefix_caching,
    "10_offload_hazards": offload_hazards,
    "11_goodput": goodput,
}

each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)


def test_the_exercises_come_in_the_order_of_the_lessons() -> None:
    assert list(BY_ID) == list(ORACLES)


@each
def test_the_solution_prints_what_the_reference_computes(exercise: Exercise) -> None:
    for name, text in exercise.accepted.items():
        assert run(exercise.solution, text) == ORACLES[exercise.id](text) + "\n", name


@each
def test_the_solution_ends_with_an_error_for_each_refused_input(exercise: Exercise) -> None:
    assert exercise.refused
    for text in exercise.refused.values():
        with pytest.raises(ValueError, match=r"\w"):
            run(exercise.solution, text)


@pytest.mark.parametrize("name", ["01_groupwise_int8", "02_speculative_rounds"])
def test_the_reference_refuses_what_the_exercise_refuses(name: str) -> None:
    for text in BY_ID[name].refused.values():
        with pytest.raises(ValueError, match=r"\w"):
            ORACLES[name](text)


@each
def test_the_starter_runs_and_is_right_for_no_input(exercise: Exercise) -> None:
    for text in exercise.accepted.values():
        lines = run(exercise.starter, text).splitlines()
        assert not set(lines) & set(run(exercise.solution, text).splitlines())


@each
def test_programs_are_short_and_need_the_standard_library_only(exercise: Exercise) -> None:
    for program in (exercise.starter, exercise.solution):
        assert len(program.splitlines()) <= 40
        for node in ast.walk(ast.parse(program)):
            imported = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert set(imported) <= sys.stdlib_module_names


@each
def test_the_example_in_the_prompt_is_what_the_solution_prints(exercise: Exercise) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", exercise.prompt, re.MULTILINE | re.DOTALL)
    if len(blocks) == 1:  # a single line of input stands in the sentence
        blocks = [*re.findall(r"For `([^`]+)` the output is", exercise.prompt), *blocks]
    text, output = blocks
    assert run(exercise.solution, text) == output


# A plausible mistake in a solution: what is replaced, by what, and the case that shows it.
MISTAKES = [
    ("09_prefix_caching", "size < len(prompt)", "size <= len(prompt)", "The same prompt twice"),
    ("09_prefix_caching", "tuple(prompt[: cached + size])", "tuple(prompt[cached : cached + size])",
     "A conversation grows"),
    ("09_prefix_caching", "tuple(prompt[:end])", "tuple(prompt[end - size : end])", "A conversation grows"),
    ("09_prefix_caching", "len(prompt) + 1, size", "len(prompt), size", "A partial block is never shared"),
    ("10_offload_hazards", 'good = place == "on gpu"\n', 'good = place in ("on gpu", "arriving")\n',
     "There and back"),
    ("10_offload_hazards", "free[side] < size", "side == 'cpu' and free[side] < size",
     "Blocks that are still being copied"),
    ("10_offload_hazards", "free[side] < size", "side == 'gpu' and free[side] < size", "The other side is full"),
    ("10_offload_hazards", "free[side] -= size", "free[side] -= size * (side == 'gpu')", "There and back"),
    ("11_goodput", "ttft <= longest_ttft", "ttft < longest_ttft", "Just in time"),
    ("11_goodput", "/ (len(tokens) - 1)", "/ len(tokens)", "Three requests"),
    ("11_goodput", "min(times[0] for times in requests)", "requests[0][0]", "The first arrival is not the first line"),
    ("11_goodput", "answered + 1, kept + good", "answered + 1, kept + 1", "Throughput is not goodput"),
]  # fmt: skip


@pytest.mark.parametrize(("identifier", "right", "wrong", "case"), MISTAKES)
def test_a_plausible_mistake_fails_the_case_that_was_made_for_it(
    identifier: str, right: str, wrong: str, case: str
) -> None:
    exercise = BY_ID[identifier]
    assert right in exercise.solution
    text = exercise.accepted[case]
    try:
        output = run(exercise.solution.replace(right, wrong), text)
    except ValueError as error:  # it refuses what is right
        output = str(error)
    assert output != run(exercise.solution, text)


def test_the_named_samples_of_the_two_program_exercises() -> None:
    assert list(BY_ID["01_groupwise_int8"].samples) == ["One group with an outlier", "Small groups"]
    assert list(BY_ID["02_speculative_rounds"].samples) == ["A good draft model", "Every guess wrong"]
    outlier, small = BY_ID["01_groupwise_int8"].samples.values()
    assert quantization_report(outlier) == "group 1: scale 0.06299 q 2 -8 5 1 127\nmean error: 0.00639"
    assert quantization_report(small).endswith("mean error: 0.00041")
    good, wrong = BY_ID["02_speculative_rounds"].samples.values()
    assert speculative_report(good).endswith("7 tokens in 2 target passes (3.50 per pass)")
    assert speculative_report(wrong) == "round 1: +1 the\nround 2: +1 cat\n2 tokens in 2 target passes (1.00 per pass)"


def test_the_problem_sets_hold_what_the_exercises_say() -> None:
    """After a change of an exercise: `python scripts/fill_practice.py`, then release the problem set."""
    assert fill_practice.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("name", "exercise"),
    [("ps3_quantization", "01_groupwise_int8"), ("ps4_speculative", "02_speculative_rounds")],
)
def test_released_problem_sets_show_prompt_and_samples_and_hide_the_further_cases(name: str, exercise: str) -> None:
    text, known = released.text(name), BY_ID[exercise]
    for section in re.findall(r"^\*\*([\w ]+)\*\*$", known.prompt, re.MULTILINE):
        assert known.section(section) in text, section
    assert all(json.dumps(sample) in text for sample in known.samples)
    assert not any(json.dumps(case) in text for case in [*known.cases, *known.refused])
