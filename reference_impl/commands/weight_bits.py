"""The command-line options that run a model with quantized matrices, for every command that loads one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reference_impl.common import cli

if TYPE_CHECKING:
    from reference_impl.model.llama import Llama


def add(parser: argparse.ArgumentParser) -> None:
    """Adds --weight-bits and --group-size."""
    parser.add_argument("--weight-bits", type=int, choices=[8, 4], help="quantize the matrices by rounding (no)")
    parser.add_argument("--group-size", type=cli.whole_number, default=128, help="weights that share a scale (128)")


def apply(model: Llama, options: argparse.Namespace) -> Llama:
    """The model, quantized in place if the options say so. ValueError if it is already."""
    if options.weight_bits is None:
        return model
    from reference_impl.quantization.model import quantize_model

    return quantize_model(model, options.weight_bits, options.group_size)
