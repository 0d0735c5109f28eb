"""The command `bound`: how fast a model can be on a GPU at best, as a table or as JSON.

    python -m reference_impl bound --model llama-3-8b --gpu h100-sxm --batch 32 --context 2048 --weight-bits 16 [--json]

Bounds, not forecasts: a real step is slower. Standard library only.
"""

import dataclasses
import json
import math
from dataclasses import dataclass

from reference_impl.bounds.arithmetic import bits_per_weight
from reference_impl.bounds.config import MODELS, find_model
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS, find_gpu
from reference_impl.common import cli


@dataclass(frozen=True)
class Bounds:
    """The figures that `--json` prints, in seconds, bytes and tokens. None if there is no such number."""

    model: str
    gpu: str
    n_gpus: int
    batch: int
    context: int
    weight_bits: float
    group_size: int | None
    kv_bits: float
    n_params: int
    bits_per_weight: float  # scales included
    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes: float  # of the whole batch
    used_bytes: float
    memory_bytes: float
    weights_fit: bool
    fits: bool
    max_sequences: int
    prefill_seconds: float  # of one sequence of `context` tokens, attention included
    prefill_seconds_without_attention: float
    utilization: float
    step_seconds: float
    tokens_per_second: float  # of the whole batch
    tokens_per_second_per_sequence: float
    step_seconds_without_input_embedding: float
    tokens_per_second_without_input_embedding: float
    memory_seconds: float  # of all bytes
    compute_seconds: float  # of all FLOPs
    linear_seconds: float  # of the linear layers: their bytes or their FLOPs, whichever take longer
    attention_seconds: float  # the same of attention
    intensity: float  # FLOP per byte
    ridge: float
    limit: str  # "bandwidth", "arithmetic" or "capacity"
    linear_layers_compute_bound_from_batch: int
    arithmetic_binds_from_batch: int | None  # in the step as a whole
    arithmetic_can_bind_below_context: float | None  # None: at any context


def compute(deployment: Deployment, batch: int, context: int, utilization: float = 0.5) -> Bounds:
    """All bounds of a batch of sequences that are `context` tokens long."""
    step = deployment.step(batch, context)
    without_table = deployment.step(batch, context, input_embedding=False)
    crossing = deployment.crossing_context()
    used = deployment.used_bytes(batch, context)
    return Bounds(
        model=deployment.model.name,
        gpu=deployment.gpu.name,
        n_gpus=deployment.n_gpus,
        batch=batch,
        context=context,
        weight_bits=deployment.weight_bits,
        group_size=deployment.group_size,
        kv_bits=deployment.kv_bits,
        n_params=deployment.model.n_params,
        bits_per_weight=bits_per_weight(deployment.weight_bits, deployment.group_size),
        weight_bytes=deployment.weight_bytes,
        kv_bytes_per_token=deployment.kv_bytes_per_token,
        kv_bytes=used - deployment.weight_bytes,
        used_bytes=used,
        memory_bytes=deployment.memory_bytes,
        weights_fit=deployment.weights_fit,
        fits=used <= deployment.memory_bytes,
        max_sequences=deployment.max_sequences(context),
        prefill_seconds=deployment.prefill_seconds(context, utilization),
        prefill_seconds_without_attention=deployment.prefill_seconds(context, utilization, attention=False),
        utilization=utilization,
        step_seconds=step.seconds,
        tokens_per_second=step.tokens_per_second,
        tokens_per_second_per_sequence=step.tokens_per_second / batch,
        step_seconds_without_input_embedding=without_table.seconds,
        tokens_per_second_without_input_embedding=without_table.tokens_per_second,
        memory_seconds=step.memory_seconds,
        compute_seconds=step.compute_seconds,
        linear_seconds=step.linear.seconds,
        attention_seconds=step.attention.seconds,
        intensity=deployment.intensity(batch, context),
        ridge=deployment.gpu.ridge,
        limit=deployment.limit(batch, context),
        linear_layers_compute_bound_from_batch=deployment.compute_bound_batch,
        arithmetic_binds_from_batch=deployment.crossing_batch(context),
        arithmetic_can_bind_below_context=crossing if math.isfinite(crossing) else None,
    )


def describe(bounds: Bounds, max_context: int) -> str:
    """The table for a reader, units stated; no newline at the end."""
    b = bounds
    gpus = b.gpu if b.n_gpus == 1 else f"{b.n_gpus} x {b.gpu}"
    scales = f" + a 16-bit scale per {b.group_size} = {b.bits_per_weight:g}" if b.group_size else ""
    rows = [
        ("parameters", f"{b.n_params:,}"),
        ("weights", f"{_gb(b.weight_bytes)}   ({b.weight_bits:g} bits{scales} per weight)"),
        ("KV cache", f"{_gb(b.kv_bytes)}   ({b.kv_bytes_per_token:,.0f} bytes a token, {b.kv_bits:g}-bit values)"),
        ("memory", f"{_gb(b.used_bytes)} of {_gb(b.memory_bytes)}: {_fit(b)}"),
        ("sequences that fit", f"{b.max_sequences:,} of {b.context:,} tokens"),
        ("prefill", f"{_ms(b.prefill_seconds)}   (one prompt of {b.context:,} tokens at {b.utilization:.0%} of peak)"),
        ("  without attention", f"{_ms(b.prefill_seconds_without_attention)}   (2 FLOPs per parameter and token)"),
        ("decode step", f"{_ms(b.step_seconds)}   (at least: linear layers, then attention)"),
        ("  linear layers", f"{_ms(b.linear_seconds)}   (every weight read once, or their FLOPs if those take longer)"),
        ("  attention", f"{_ms(b.attention_seconds)}   (every KV cache read once, or its FLOPs)"),
        ("  all sequences", f"{_rate(b.tokens_per_second)}"),
        ("  each sequence", f"{_rate(b.tokens_per_second_per_sequence)}"),
        (
            "  without the input table",
            f"{_ms(b.step_seconds_without_input_embedding)}, {_rate(b.tokens_per_second_without_input_embedding)}",
        ),
        ("  all bytes / all FLOPs", f"{_ms(b.memory_seconds)} / {_ms(b.compute_seconds)}"),
        ("intensity", f"{b.intensity:,.1f} FLOP/byte, ridge {b.ridge:,.1f}"),
        ("limit", _limit(b)),
        ("linear layers", f"compute-bound from batch {b.linear_layers_compute_bound_from_batch:,} on"),
        ("arithmetic would bind", _crossing(b)),
    ]
    if b.context > max_context:
        rows.append(("note", f"the model was made for at most {max_context:,} tokens of context"))
    width = max(len(label) for label, _ in rows)
    title = f"{b.model} on {gpus}: batch {b.batch:,}, {b.context:,} tokens of context each"
    return "\n".join([title, "", *(f"{label:<{width}}  {value}" for label, value in rows)])


def main(arguments: list[str]) -> int:
    """`python -m reference_impl bound ...`"""
    parser = cli.parser(
        "bound", "Bounds by arithmetic: step time, tokens per second, KV bytes, what fits, what limits."
    )
    parser.add_argument("--model", default="llama-3-8b", help=f"one of: {', '.join(MODELS)} (default: %(default)s)")
    parser.add_argument("--gpu", default="h100-sxm", help=f"one of: {', '.join(GPUS)} (default: %(default)s)")
    parser.add_argument("--gpus", type=cli.whole_number, default=1, help="how many share the model (default: 1)")
    parser.add_argument("--batch", type=cli.whole_number, default=1, help="sequences in a step (default: 1)")
    parser.add_argument("--context", type=cli.whole_number, default=2048, help="tokens of each (default: 2048)")
    parser.add_argument("--weight-bits", type=cli.number_up_to(64), default=16.0, help="bits a weight (default: 16)")
    parser.add_argument("--group-size", type=cli.whole_number, help="weights that share a 16-bit scale (default: none)")
    parser.add_argument("--kv-bits", type=cli.number_up_to(64), default=16.0, help="bits a KV value (default: 16)")
    parser.add_argument(
        "--utilization", type=cli.number_up_to(1), default=0.5, help="of peak in prefill (default: 0.5)"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON: seconds, bytes, tokens")
    options = parser.parse_args(arguments)

    model = find_model(options.model)
    deployment = Deployment(
        model, find_gpu(options.gpu), options.weight_bits, options.group_size, options.kv_bits, options.gpus
    )
    bounds = compute(deployment, options.batch, options.context, options.utilization)
    print(json.dumps(dataclasses.asdict(bounds), indent=2) if options.json else describe(bounds, model.max_context))
    return 0


def _fit(bounds: Bounds) -> str:
    if bounds.fits:
        return "fits"
    return "the batch does not fit" if bounds.weights_fit else "the weights alone do not fit"


def _limit(bounds: Bounds) -> str:
    return {
        "bandwidth": "bandwidth: reading takes longer than computing",
        "arithmetic": "arithmetic: computing takes longer than reading",
        "capacity": "capacity: it does not fit, so the times above are for a GPU with more memory",
    }[bounds.limit]


def _crossing(bounds: Bounds) -> str:
    context, batch = bounds.arithmetic_can_bind_below_context, bounds.arithmetic_binds_from_batch
    if batch is None:
        return (
            f"at no batch size (only below {context:,.0f} tokens of context); memory ends at {bounds.max_sequences:,}"
        )
    reach = "within memory" if batch <= bounds.max_sequences else f"but memory ends at {bounds.max_sequences:,}"
    return f"from batch {batch:,} on, {reach}"


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.3f} GB"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms"


def _rate(tokens_per_second: float) -> str:
    return f"{tokens_per_second:,.1f} token/s"
