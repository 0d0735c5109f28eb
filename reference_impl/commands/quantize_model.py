"""The command `quantize-model`: quantizes a model's matrices and writes the model as a folder to load.

python -m reference_impl quantize-model --weight-bits 4 --output FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from reference_impl.common import cli
from reference_impl.common.errors import WeightsError


def main(arguments: list[str]) -> None:
    parser = cli.parser("quantize-model", "Writes a model with quantized matrices as a folder to load.")
    parser.add_argument("--model", default="smollm2-135m", help="smollm2-135m (default), a file or a folder")
    parser.add_argument("--output", type=Path, required=True, help="the folder to write; it must not exist")
    parser.add_argument("--weight-bits", type=int, choices=range(2, 9), default=8, help="bits of a weight (8)")
    parser.add_argument("--group-size", type=cli.whole_number, default=128, help="weights that share a scale (128)")
    parser.add_argument("--method", choices=["rounding", "gptq", "awq"], default="rounding")
    parser.add_argument("--keep-head", action="store_true", help="leave the output head as it is")
    options = parser.parse_args(arguments)
    if options.output.exists():
        raise ValueError(f"--output {options.output}: exists already")
    from reference_impl.benchmarks.quality.held_out import held_out, material
    from reference_impl.benchmarks.quality.table import amount_for
    from reference_impl.checkpoints import quantized, weights
    from reference_impl.quantization.calibrate import Recipe
    from reference_impl.quantization.model import parts, quantize_model

    model, tokenizer = weights.load(options.model)
    before = sum(part.n_bytes for part in parts(model))
    sequences: list[list[int]] = []
    if options.method != "rounding":
        amount = amount_for(model.config)
        sequences = material(held_out(), tokenizer, amount, max_context=model.config.max_context).calibration
    recipe = Recipe(options.method, options.weight_bits, options.group_size)
    quantize_model(model, recipe=recipe, sequences=sequences, head=not options.keep_head, progress=sys.stderr.isatty())
    try:
        quantized.save(options.output, model, tokenizer)
    except OSError as error:
        raise WeightsError(f"--output {options.output}: cannot be written ({error.strerror})") from None
    found = parts(model)
    n_quantized = sum(part.bits is not None for part in found)
    size = sum(file.stat().st_size for file in options.output.iterdir())
    print(f"{options.output}: {n_quantized} of {len(found)} weights quantized, {size / 1e6:.1f} MB; ", end="")
    print(f"the float model takes {before / 1e6:.1f} MB")
