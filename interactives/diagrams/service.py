"""Diagrams of a service: a request's life, waiting against load, several GPUs for one model."""

from interactives.diagrams.drawing import Diagram, Drawing
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS, HOST_LINK

H100 = GPUS["h100-sxm"]
SMALL = Deployment(MODELS["llama-3-8b"], H100)
LARGE = Deployment(MODELS["llama-3-70b"], H100, n_gpus=2)
PROMPT, BATCH, CHUNK, WAIT = 2048, 32, 512, 0.05  # tokens, requests, tokens, seconds


def request_timeline() -> Diagram:
    """One request from its arrival to its last token, to scale, with the names of the times."""
    prefill = SMALL.prefill_seconds(PROMPT)
    step = SMALL.step(BATCH, PROMPT).seconds
    pause = step + SMALL.prefill_seconds(CHUNK)  # another prompt's chunk is in this step
    gaps = [step, step, pause, step, step, step]
    first = WAIT + prefill
    times = [first]
    for gap in gaps:
        times.append(times[-1] + gap)
    drawing = Drawing("request-timeline", height=318)
    left, right = 12.0, 346.0
    scale = (right - left) / times[-1]

    def x(seconds: float) -> float:
        return left + scale * seconds

    drawing.text(left, 18, "arrives", bold=True)
    drawing.text(right, 18, "last token", "end", bold=True)
    drawing.line(left, 26, left, 118)
    drawing.bar(left, 44, x(WAIT) - left, 34, "waste")
    drawing.bar(x(WAIT), 44, x(first) - x(WAIT), 34, "arithmetic")
    drawing.bar(x(first), 44, right - x(first), 34, "memory")
    drawing.text(left + 2, 96, "waits")
    drawing.text((x(WAIT) + x(first)) / 2, 96, "prefill", "middle")
    drawing.text((x(first) + right) / 2, 96, "decode", "middle")
    for time in times:
        drawing.line(x(time), 30, x(time), 78, "ink", width=2)
    drawing.line(left, 122, x(first), 122, arrow=True)
    drawing.text(left, 142, f"TTFT {1000 * first:.0f} ms", bold=True)
    drawing.text(left, 160, f"= {1000 * WAIT:.0f} ms of waiting + {1000 * prefill:.0f} ms of prefill")
    drawing.line(x(first), 122, right, 122, arrow=True)
    tpot = sum(gaps) / len(gaps)
    drawing.text(left, 192, f"ITL: each gap between tokens, {1000 * step:.1f} ms", bold=True)
    drawing.text(left, 210, f"but {1000 * pause:.1f} ms where another prompt is read")
    drawing.text(left, 242, f"TPOT: the mean of the gaps, {1000 * tpot:.1f} ms", bold=True)
    drawing.text(left, 260, "It hides the long one.")
    drawing.text(left, 292, f"end to end: {1000 * times[-1]:.0f} ms", bold=True)
    drawing.text(left, 310, f"= TTFT + {len(gaps)} × TPOT")
    return drawing.finish(
        "A request's life",
        f"A time line: {1000 * WAIT:.0f} ms of waiting, {1000 * prefill:.0f} ms of prefill, then the first token and "
        f"{len(gaps)} more. TTFT is {1000 * first:.0f} ms. Gaps between tokens are {1000 * step:.1f} ms, one of them "
        f"{1000 * pause:.1f} ms. TPOT, their mean, is {1000 * tpot:.1f} ms; end to end {1000 * times[-1]:.0f} ms.",
        see="The long strokes are tokens. The time to the first one has another cause than the gaps after it, so a "
        "promise needs both.",
        source=f"Llama 3 8B on an H100: a prompt of {PROMPT:,} tokens at half of the peak FLOP/s, {BATCH} requests in "
        f"the batch, one chunk of {CHUNK} tokens of another prompt; the wait is assumed.",
    )


def time_in_system(load: float) -> float:
    """Mean time in an M/M/1 queue, waiting included, in units of the time that serving one request takes."""
    return 1 / (1 - load)


def queueing() -> Diagram:
    """The time that a request spends in a queue with one server, against the load."""
    drawing = Drawing("queueing", height=314)
    left, right, base, top = 44.0, 340.0, 250.0, 22.0
    most = 22.0

    def place(load: float) -> tuple[float, float]:
        return left + (right - left) * load, base - (base - top) * time_in_system(load) / most

    loads = [i / 200 for i in range(191)]
    points = [place(load) for load in loads]
    drawing.line(left, base, right, base)
    drawing.line(left, base, left, top)
    drawing.line(right, base, right, top, dashed=True)
    drawing.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), "arithmetic", width=2.5)
    told = []
    for load in (0.5, 0.8, 0.9, 0.95):
        x, y = place(load)
        times = f"{time_in_system(load):.0f}"
        drawing.dot(x, y, 4.5, "arithmetic")
        drawing.text(x - 10, y - 6, f"{load:.0%}: {times} times", "end", bold=True)
        told.append(f"{times} times at {load:.0%}")
    for load in (0, 0.5):
        drawing.text(place(load)[0], base + 18, f"{load:.0%}", "middle")
    drawing.text(right, base + 18, "100%", "end")
    drawing.text(left, 290, "requests per second, as a share of the")
    drawing.text(left, 307, "capacity")
    drawing.text(10, base + 4, "0")
    drawing.text(10, base - (base - top) * 10 / most + 4, "10")
    drawing.text(10, base - (base - top) * 20 / most + 4, "20")
    return drawing.finish(
        "Time in the system against load",
        "A curve that rises slowly at first and without bound near 100% of the capacity. Compared with serving one "
        "request alone, the time in the system is " + ", ".join(told) + ".",
        see="At half of the capacity a request takes twice as long as alone. The last few percent of load cost more "
        "than all the others. At 100% the queue never stops growing.",
        source="The mean of an M/M/1 queue, 1 / (1 − load): one request at a time, arrivals and lengths at random. A "
        "server that batches has another curve of the same shape.",
    )


def tensor_parallel() -> Diagram:
    """A feed-forward block over two GPUs: the first matrix cut by columns, the second by rows, then one sum."""
    exchanges = 2 * LARGE.model.n_layers
    share = LARGE.weight_bytes / LARGE.n_gpus
    drawing = Drawing("tensor-parallel", height=336)
    for gpu in range(2):
        x = 12 + 176.0 * gpu
        drawing.box(x, 56, 160, 166)
        drawing.text(x + 80, 76, f"GPU {gpu + 1}: {share / 1e9:.1f} GB", "middle", bold=True)
        drawing.bar(x + 16 + 64 * gpu, 88, 64, 44, "memory")
        drawing.box(x + 16 + 64 * (1 - gpu), 88, 64, 44, dashed=True)
        drawing.text(x + 80, 149, "its half of up", "middle")
        drawing.bar(x + 48, 158 + 22 * gpu, 64, 22, "memory")
        drawing.box(x + 48, 158 + 22 * (1 - gpu), 64, 22, dashed=True)
        drawing.text(x + 80, 217, "its half of down", "middle")
        drawing.line(180 + (gpu - 0.5) * 60, 32, x + 80, 54, arrow=True)
        drawing.line(x + 80, 224, 180 + (gpu - 0.5) * 60, 250, arrow=True)
    drawing.label(100, 6, 160, 26, "the same input", "soft")
    drawing.label(62, 252, 236, 28, "all-reduce: add the results", "arithmetic", bold=True)
    drawing.text(180, 304, f"twice in each of {LARGE.model.n_layers} layers:", "middle")
    drawing.text(180, 322, f"{exchanges} exchanges a step", "middle", bold=True)
    return drawing.finish(
        "Tensor parallelism over two GPUs",
        f"The same input goes to two GPUs, each with {share / 1e9:.1f} GB of weights. Each holds half of the columns "
        "of the matrix up and half of the rows of the matrix down. An all-reduce adds their results. This happens "
        f"twice in each of {LARGE.model.n_layers} layers, {exchanges} times a step.",
        see="Each GPU reads only its blue half, at the same time as the other. Because up is cut by columns and down "
        "by rows, nothing has to be exchanged between the two, only after them.",
        source="Llama 3 70B in 16 bits. The cut is Megatron's (Shoeybi et al., 2019).",
    )


def prefill_decode_split() -> Diagram:
    """Prefill and decode on one GPU, where each prompt stops the others' tokens, and on two."""
    prefill, step = SMALL.prefill_seconds(PROMPT), SMALL.step(BATCH, PROMPT).seconds
    cache = PROMPT * SMALL.kv_bytes_per_token
    moved = cache / HOST_LINK
    drawing = Drawing("prefill-decode-split", height=340)
    left = 12.0
    scale = 336 / (prefill + 10 * step)

    def steps(y: float, start: float, n: int) -> None:
        for i in range(n):
            drawing.bar(left + scale * (start + i * step), y, scale * step - 2, 26, "memory")

    drawing.text(left, 18, "One GPU does both", bold=True)
    steps(28, 0, 4)
    drawing.bar(left + scale * 4 * step, 28, scale * prefill - 2, 26, "arithmetic")
    steps(28, 4 * step + prefill, 6)
    drawing.lines(left, 74, [f"A prompt of {PROMPT:,} tokens stops all others", f"for {1000 * prefill:.0f} ms."])
    drawing.text(left, 134, "One GPU for prefill, one for decode", bold=True)
    drawing.bar(left + scale * 4 * step, 144, scale * prefill - 2, 26, "arithmetic")
    steps(212, 0, int((prefill + 10 * step) / step))
    end = left + scale * (4 * step + prefill)
    drawing.line(end, 172, end + scale * moved, 210, arrow=True)
    drawing.text(left, 190, f"moves {cache / 1e6:.0f} MB of cache")
    link = f"cache is on its way for {1000 * moved:.1f} ms."
    drawing.lines(left, 258, [f"Tokens come every {1000 * step:.1f} ms throughout. The", link])
    drawing.bar(left, 288, 16, 16, "arithmetic")
    drawing.text(36, 301, "prefill")
    drawing.bar(112, 288, 16, 16, "memory")
    drawing.text(136, 301, f"decode step, {BATCH} requests")
    drawing.text(left, 328, "Time runs from left to right, to scale.", colour="soft")
    return drawing.finish(
        "Prefill and decode together and apart",
        f"Above, one GPU: decode steps of {1000 * step:.1f} ms, then a prefill of {1000 * prefill:.0f} ms, then steps "
        f"again. Below, two GPUs: the prefill runs on one while the steps go on without a pause on the other, to which "
        f"{cache / 1e6:.0f} MB of KV cache are moved in {1000 * moved:.1f} ms.",
        see="On one GPU everybody waits while a prompt is read. On two the gaps between tokens stay short, at the "
        "price of moving the cache and of GPUs that can do only one of the two.",
        source=f"Llama 3 8B on H100s, half of the peak FLOP/s for prefill, a link of {HOST_LINK / 1e9:.0f} GB/s.",
    )
