"""Sphinx extension: the numbers that pages quote, computed by reference_impl when the site is built.

A page writes {{ tokens_16 }}; nobody types the digits, so page, lesson and test cannot disagree.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from reference_impl.bounds.arithmetic import decode_tokens_per_second, expected_tokens, weight_bytes
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import GPUS


def numbers() -> dict[str, str]:
    """The running example: one request to Llama 3 8B on one H100."""
    model, gpu = MODELS["llama-3-8b"], GPUS["h100-sxm"]
    in_bf16 = weight_bytes(model.n_params, bits=16)
    bound = decode_tokens_per_second(in_bf16, gpu.bandwidth)
    in_8_bits = decode_tokens_per_second(weight_bytes(model.n_params, bits=8), gpu.bandwidth)
    return {
        "gpu": gpu.name,
        "parameters": f"{model.n_params:,}",
        "weight_gb": f"{in_bf16 / 1e9:.1f}",
        "bandwidth_tb": f"{gpu.bandwidth / 1e12:.2f}",
        "step_ms": f"{1e3 / bound:.3f}",
        "tokens_16": f"{bound:.1f}",
        "tokens_8": f"{in_8_bits:.0f}",
        "ridge": f"{gpu.ridge:.1f}",
        "kv_bytes": f"{model.kv_bytes_per_token():,.0f}",
        "expected_08_4": f"{expected_tokens(0.8, 4):.2f}",
    }


class GpuTable(SphinxDirective):
    """Every GPU of the course: peak, bandwidth, memory, ridge point."""

    def run(self) -> list[nodes.Node]:
        rows = ["| GPU | Peak, TFLOP/s | Bandwidth, TB/s | Memory, GB | Ridge, FLOP/byte |", "|---|---|---|---|---|"]
        rows += [
            f"| {gpu.name} | {gpu.peak_flops / 1e12:g} | {gpu.bandwidth / 1e12:g} | {gpu.memory_bytes / 1e9:g} "
            f"| {gpu.ridge:.1f} |"
            for gpu in GPUS.values()
        ]
        return self.parse_text_to_nodes("\n".join(rows))


class ModelTable(SphinxDirective):
    """Every model of the course: parameters, layers, heads, KV bytes a token."""

    def run(self) -> list[nodes.Node]:
        rows = ["| Model | Parameters | Layers | Query and KV heads | KV bytes a token |", "|---|---|---|---|---|"]
        rows += [
            f"| `{name}` | {model.n_params:,} | {model.n_layers} | {model.n_heads} and {model.n_kv_heads} "
            f"| {model.kv_bytes_per_token():,.0f} |"
            for name, model in MODELS.items()
        ]
        return self.parse_text_to_nodes("\n".join(rows))


def _offer(app: Sphinx, config: Config) -> None:
    config.myst_substitutions = {**config.myst_substitutions, **numbers()}


def setup(app: Sphinx) -> dict:
    app.add_directive("gpu-table", GpuTable)
    app.add_directive("model-table", ModelTable)
    app.connect("config-inited", _offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
