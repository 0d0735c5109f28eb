"""Diagrams of passes and batches: prefill and decode as one product, what a step reads, three ways of batching."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from interactives.diagrams.drawing import Colour, Diagram, Drawing
from reference_impl.bounds.arithmetic import batch_table
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS

H100 = GPUS["h100-sxm"]
LLAMA = Deployment(MODELS["llama-3-8b"], H100)
KEY_OF_THREE: list[tuple[float, float, Colour, str]] = [
    (6, 3.4, "memory", "a token"),
    (100, 24, "arithmetic", "C's prompt"),
    (240, 24, "waste", "waiting"),
]
SOURCE = "Computed for Llama 3 8B in 16 bits on an H100 SXM"


def two_products(prompt: int = 1000) -> Diagram:
    """The same weights times many tokens and times one, with the seconds of reading and of arithmetic below."""
    drawing = Drawing("two-products", height=372)
    reading = 1000 * LLAMA.weight_bytes / H100.bandwidth
    prefill = 1000 * LLAMA.prefill_seconds(prompt, attention=False)
    decode = 1000 * LLAMA.step(1, 0).compute_seconds / 0.5
    length = 300 / prefill
    told = []
    for top, name, rows, work in ((0, f"prefill: {prompt:,} tokens", 74, prefill), (190, "decode: 1 token", 4, decode)):
        drawing.text(6, top + 17, name, bold=True)
        middle = top + 66
        drawing.bar(6, middle - rows / 2, 86, rows, "arithmetic")
        drawing.text(108, middle + 5, "×", "middle")
        drawing.box(124, middle - 38, 86, 76, "memory")
        drawing.text(167, middle + 5, "weights", "middle")
        drawing.text(226, middle + 5, "=", "middle")
        drawing.bar(242, middle - rows / 2, 86, rows, "arithmetic")
        drawing.bar(6, top + 116, length * reading, 16, "memory")
        drawing.text(6 + length * reading + 8, top + 129, f"reading the weights: {reading:.1f} ms")
        drawing.bar(6, top + 138, max(0.5, length * work), 16, "arithmetic")
        words = f"arithmetic: {work:.{1 if work > 1 else 3}f} ms"
        if work > reading:
            drawing.text(6, top + 171, words)
        else:
            drawing.text(6 + length * reading + 8, top + 151, words)
        told.append(f"{name}: reading {reading:.1f} ms, {words}")
    return drawing.finish(
        "Prefill and decode as two shapes of one product",
        f"Tokens times weights, twice with the same weights. {'; '.join(told)}.",
        see="The blue square is the same both times, and so is the time of reading it. With many tokens the arithmetic "
        "takes longer than the reading; with one token it is next to nothing.",
        source=f"{SOURCE}, arithmetic at half of the peak, attention left out. Bars are to scale.",
    )


def step_reads(batches: Sequence[int] = (1, 8, 32), context: int = 2048) -> Diagram:
    """What a decode step reads at several batch sizes: the weights once, and a cache for each sequence."""
    rows = batch_table(batches, context, LLAMA.weight_bytes, LLAMA.kv_bytes_per_token, H100.bandwidth)
    drawing = Drawing("step-reads", height=34 + 84 * len(rows))
    cache = context * LLAMA.kv_bytes_per_token
    length = 344 / rows[-1].bytes_read
    weights = length * LLAMA.weight_bytes
    drawing.text(8 + weights / 2, 18, f"weights, {LLAMA.weight_bytes / 1e9:.2f} GB", "middle", bold=True)
    drawing.text(352, 18, "caches", "end", bold=True)
    for i, row in enumerate(rows):
        top = 28 + 84 * i
        drawing.bar(8, top, weights, 30, "memory")
        for n in range(row.batch):
            drawing.box(8 + weights + length * cache * n, top, length * cache, 30, "memory")
        drawing.text(8, top + 48, f"batch {row.batch}: {1000 * row.seconds:.1f} ms a step", bold=True)
        drawing.text(8, top + 66, f"{row.tokens_per_second:,.0f} tokens/s together, {1 / row.seconds:.0f} each")
    listed = "; ".join(f"batch {row.batch}: {row.bytes_read / 1e9:.1f} GB, {1000 * row.seconds:.1f} ms" for row in rows)
    return drawing.finish(
        "What a decode step reads",
        f"Every step reads the weights once, {LLAMA.weight_bytes / 1e9:.2f} GB, and one KV cache of {cache / 1e9:.2f} "
        f"GB for each sequence. {listed}.",
        see=f"A bar is as long as its step. Each further sequence adds only its own cache, {cache / 1e9:.2f} GB at "
        f"{context:,} tokens, and one more token to the result.",
        source=f"{SOURCE}.",
    )


@dataclass
class Run:
    """When each request is prefilled and when its tokens come, in milliseconds."""

    prefills: list[tuple[float, float]] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)  # of B, while C's prompt is computed
    idle: tuple[float, float] | None = None  # a slot that nobody uses
    tokens: dict[str, list[float]] = field(default_factory=dict)


def batching_run(kind: str, prompt: int = 2000, chunk: int = 512) -> Run:
    """Two slots: A writes 6 tokens, B 20, and C waits with a long prompt and 8 tokens. A pass takes its bound."""
    token = 1000 * LLAMA.step(2, 0).seconds
    run, now = Run(tokens={"A": [], "B": [], "C": []}), 0.0
    left = {"A": 6, "B": 20, "C": 8}
    done = 0  # tokens of C's prompt
    while any(left.values()):
        waits = left["A"] > 0 or (kind == "static" and left["B"] > 0)
        writers = ["A", "B"] if waits else ["B"]
        if not waits and done < prompt:
            size = chunk if kind == "chunked" else prompt
            after = min(prompt, done + size)
            took = 1000 * (LLAMA.prefill_seconds(after) - (LLAMA.prefill_seconds(done) if done else 0.0))
            run.prefills.append((now, now + took))
            if kind == "continuous":
                run.pauses.append((now, now + took))
                writers = []
            done = after
            if done == prompt:  # the pass brings C's first token
                writers = [*writers, "C"]
        else:
            took = token
            writers = writers if waits else ["B", "C"]
        now += took
        for name in writers:
            if left[name]:
                left[name] -= 1
                run.tokens[name].append(now)
    if kind == "static":
        run.idle = (run.tokens["A"][-1], run.prefills[0][0])
    return run


def three_batchings() -> Diagram:
    """Static batching, continuous batching, and continuous batching with a prompt in chunks, on one time line."""
    runs = {
        "static": batching_run("static"),
        "continuous": batching_run("continuous"),
        "chunked": batching_run("chunked"),
    }
    end = max(times[-1] for run in runs.values() for times in run.tokens.values())
    left, length = 44.0, 308 / end
    at = lambda time: left + length * time
    drawing = Drawing("three-batchings", height=372)
    names = ("static batching", "continuous batching", "continuous, prompt in chunks")
    said = []
    for top, name, run in zip((0, 106, 212), names, runs.values(), strict=True):
        drawing.text(6, top + 17, name, bold=True)
        upper, lower = top + 28, top + 56
        drawing.text(6, upper + 15, "A, C")
        drawing.text(6, lower + 15, "B")
        for start, stop in run.prefills:
            drawing.bar(at(start) + 0.5, upper, length * (stop - start) - 1, 20, "arithmetic")
        if run.idle:
            drawing.bar(at(run.idle[0]), upper, length * (run.idle[1] - run.idle[0]), 20, "waste")
        for start, stop in run.pauses:
            drawing.bar(at(start), lower, length * (stop - start), 20, "waste")
        for who, y in (("A", upper), ("C", upper), ("B", lower)):
            for time in run.tokens[who]:
                drawing.bar(at(time) - 4, y, 3.4, 20, "memory")
        gaps = [b - a for a, b in zip(run.tokens["B"], run.tokens["B"][1:], strict=False)]
        first, pause = run.tokens["C"][0], max(gaps)
        drawing.text(6, lower + 37, f"C's first token: {first:.0f} ms; B's longest pause: {pause:.0f} ms")
        said.append(f"{name}: C's first token after {first:.0f} ms, B's longest pause {pause:.0f} ms")
    for x, across, colour, meaning in KEY_OF_THREE:
        drawing.bar(x, 326, across, 14, colour)
        drawing.text(x + across + 6, 338, meaning)
    drawing.line(left, 350, at(100), 350, arrow=False)
    drawing.text((left + at(100)) / 2, 366, "100 ms", "middle")
    return drawing.finish(
        "Three ways of batching on one time line",
        f"Two slots. A and B write, and C waits with a prompt of 2,000 tokens. {'; '.join(said)}.",
        see="Static batching leaves A's slot empty until B is done. Continuous batching gives it to C at once, but C's "
        "prompt makes B wait. In chunks, B gets a token with each chunk.",
        source=f"{SOURCE}, passes at their bounds, prefill at half of the peak. Lengths of answers made up.",
    )
