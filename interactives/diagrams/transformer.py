"""Diagrams of what a transformer computes: a layer, one head of attention, shared heads, the growing cache."""

import math
from collections.abc import Sequence

from interactives.diagrams.drawing import Diagram, Drawing
from reference_impl.bounds.config import MODELS, ModelConfig

SMOLLM = MODELS["smollm2-135m"]
NAME = "SmolLM2-135M"
FOUR_TOKENS = ("The", "cat", "and", "its")


def layer_path(config: ModelConfig = SMOLLM) -> Diagram:
    """The way of one token's vector through a layer: attention and feed-forward network, each added to the stream."""
    width, kv_width = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    attention = 2 * config.d_model * (width + kv_width)
    feed_forward = 3 * config.d_model * config.d_ff
    drawing = Drawing("layer-path", height=452)
    stream, left, across = 40, 92, 256
    drawing.text(12, 18, f"one token's vector: {config.d_model:,} numbers", bold=True)
    drawing.line(stream, 26, stream, 424, "ink", width=3)
    for top, plus in ((40, 186), (222, 388)):
        drawing.path(f"M{stream} {top}H{left + across / 2}V{top + 12}", arrow=True)
        drawing.label(left, top + 14, across, 24, "norm")
        drawing.line(left + across / 2, top + 38, left + across / 2, top + 50, arrow=True)
        drawing.path(f"M{left + across / 2} {plus - 22}V{plus}H{stream + 13}", arrow=True)
        drawing.dot(stream, plus, 11, "ink")
        drawing.path(f"M{stream - 6} {plus}H{stream + 6}M{stream} {plus - 6}V{plus + 6}", "paper", width=2)

    drawing.box(left, 92, across, 72, "memory")
    drawing.text(left + 10, 111, "attention", bold=True)
    drawing.text(left + 10, 130, f"reads earlier tokens: {config.n_heads} heads")
    drawing.text(left + 10, 150, f"weights: {attention:,}")

    drawing.box(left, 274, across, 92, "memory")
    drawing.text(left + 10, 293, "feed-forward network", bold=True)
    drawing.text(left + 10, 313, "gate and up, product, down")
    drawing.text(left + 10, 332, f"{config.d_model} → {config.d_ff:,} → {config.d_model} numbers")
    drawing.text(left + 10, 352, f"weights: {feed_forward:,}")
    drawing.text(12, 444, f"to the next layer: {config.n_layers} in all", bold=True)
    return drawing.finish(
        "A token's way through a layer",
        f"The token's vector of {config.d_model} numbers runs straight down. A copy of it is normalised and goes "
        f"through attention, which has {attention:,} weights and reads earlier tokens; the result is added to the "
        f"vector. Another normalised copy goes through the feed-forward network, which has {feed_forward:,} weights, "
        f"and is added too. There are {config.n_layers} such layers.",
        see="The vector on the left is only ever added to. Both detours are mostly products with large matrices, and "
        "the feed-forward network holds most of the weights.",
        source=f"Sizes of {NAME}, from its configuration.",
    )


def attention_four_tokens(
    query: Sequence[float] = (2, 0, 2, 0),
    keys: Sequence[Sequence[float]] = ((0, 2, 0, 1), (2, 0, 1, 0), (0, 2, 1, 1), (1, 1, 0, 0)),
    values: Sequence[Sequence[float]] = ((1, 0), (0, 4), (2, 0), (1, 1)),
    tokens: Sequence[str] = FOUR_TOKENS,
) -> Diagram:
    """One head of attention for the last of four tokens: scores, shares, and the sum of the values."""
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in keys]
    powers = [math.exp(score) for score in scores]
    shares = [power / sum(powers) for power in powers]
    result = [sum(share * value[i] for share, value in zip(shares, values, strict=True)) for i in range(len(values[0]))]
    drawing = Drawing("attention-four-tokens", height=352)
    centres = [112, 182, 252, 322]
    rows = {"query": 62, "key": 96, "score": 128, "softmax": 190, "share": 238, "value": 278}
    for name, y in rows.items():
        drawing.text(6, y, name, colour="soft")
    tallest = 66
    drawing.box(centres[-1] - 31, rows["query"] - 17, 62, 25, "arithmetic")
    drawing.text(centres[-1], rows["query"], _numbers(query), "middle")
    for i, x in enumerate(centres):
        drawing.label(x - 31, 8, 62, 26, tokens[i], "ink" if i == len(tokens) - 1 else "soft", bold=True)
        drawing.box(x - 31, rows["key"] - 17, 62, 25, "memory")
        drawing.text(x, rows["key"], _numbers(keys[i]), "middle")
        drawing.text(x, rows["score"], f"{scores[i]:g}", "middle")
        height = tallest * shares[i]
        drawing.bar(x - 18, rows["share"] - 18 - height, 36, height, "arithmetic")
        drawing.text(x, rows["share"], f"{shares[i]:.1%}", "middle")
        drawing.box(x - 31, rows["value"] - 17, 62, 25, "memory")
        drawing.text(x, rows["value"], _numbers(values[i]), "middle")
        drawing.path(f"M{x} {rows['value'] + 10}V{rows['value'] + 30}", arrow=True)
    drawing.label(81, 310, 272, 28, f"shares times values: ({', '.join(f'{n:.2f}' for n in result)})", bold=True)
    found = tokens[shares.index(max(shares))]
    listed = "; ".join(f"{token} {share:.1%}" for token, share in zip(tokens, shares, strict=True))
    return drawing.finish(
        "One head of attention on four tokens",
        f"The query of the last token, “{tokens[-1]}”, is multiplied with the key of each token. The scores are "
        f"{', '.join(f'{score:g}' for score in scores)}. Softmax turns them into shares: {listed}. The result is the "
        f"sum of the values, each times its share: {', '.join(f'{n:.2f}' for n in result)}.",
        see=f"“{tokens[-1]}” takes most of its information from “{found}”, whose key points the same way as its query.",
        source="Numbers made up for this lesson; shares and result are computed from them.",
    )


def grouped_queries(config: ModelConfig = SMOLLM) -> Diagram:
    """Query heads over the KV heads that they read: one each, and shared."""
    drawing = Drawing("grouped-queries", height=262)
    n, pitch, left = config.n_heads, 324 / config.n_heads, 18.0
    for top, n_kv, name in ((0, n, "one KV head for each query head"), (134, config.n_kv_heads, "shared KV heads")):
        numbers = 2 * n_kv * config.head_dim
        drawing.text(left, top + 16, f"{name}", bold=True)
        each = n // n_kv
        for i in range(n):
            x = left + pitch * i
            drawing.box(x + 2, top + 26, pitch - 6, 22, "arithmetic")
            middle = left + pitch * each * (i // each) + pitch * each / 2
            drawing.line(x + pitch / 2 - 1, top + 48, middle - 1, top + 74)
        for i in range(n_kv):
            drawing.bar(left + pitch * each * i + 2, top + 74, pitch * each - 6, 22, "memory")
        drawing.text(left, top + 115, f"a token keeps {numbers:,} numbers a layer")
    return drawing.finish(
        "Grouped-query attention",
        f"Above, {n} query heads each with a KV head of its own: a token keeps {2 * n * config.head_dim:,} numbers in "
        f"each layer. Below, {n} query heads share {config.n_kv_heads} KV heads, {n // config.n_kv_heads} query heads "
        f"to each: a token keeps {2 * config.n_kv_heads * config.head_dim:,} numbers.",
        see=f"Orange: {n} heads ask. Blue: what is kept of a token, a key and a value for each KV head. Below, "
        f"{n // config.n_kv_heads} heads read the same key and value.",
        source=f"{NAME}, whose heads have {config.head_dim} numbers, is built as below.",
    )


def growing_cache(tokens: Sequence[str] = ("The", "cat", "sat", "on", "the", "mat"), prompt: int = 3) -> Diagram:
    """Which tokens each pass computes, and which it finds in the KV cache."""
    drawing = Drawing("growing-cache", height=60 + 40 * (len(tokens) - prompt + 1))
    cell, left = 43.0, 6.0
    for i, token in enumerate(tokens):
        drawing.text(left + cell * (i + 0.5), 18, token, "middle", bold=i >= prompt)
    kept = []
    for number, n in enumerate(range(prompt, len(tokens) + 1)):
        y = 30 + 40 * number
        for i in range(n):
            new = number == 0 or i == n - 1
            drawing.bar(left + cell * i + 2, y, cell - 4, 24, "arithmetic" if new else "memory")
        kept.append(n * SMOLLM.kv_bytes_per_token() / 1000)
        drawing.text(354, y + 17, f"{kept[-1]:,.0f} kB", "end")
    drawing.text(354, 18, "cache", "end", bold=True)
    low = 30 + 40 * len(kept)
    drawing.bar(left + 2, low + 4, 14, 14, "arithmetic")
    drawing.text(left + 22, low + 16, "computed")
    drawing.bar(left + 112, low + 4, 14, 14, "memory")
    drawing.text(left + 132, low + 16, "read from the cache")
    return drawing.finish(
        "The KV cache grows by one token a pass",
        f"The first pass computes the {prompt} tokens of the prompt. Each later pass computes one token and reads the "
        f"keys and values of all earlier ones from the cache, which grows from {kept[0]:.0f} to {kept[-1]:.0f} "
        "kilobytes.",
        see="Each line is one pass, and on its right is what the cache holds after it. After the first one, only one "
        "token is computed, however long the text is.",
        source=f"{NAME} keeps {SMOLLM.kv_bytes_per_token():,} bytes for each token, in 16 bits.",
    )


def _numbers(vector: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in vector)
