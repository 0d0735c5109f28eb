"""The values of small floating-point formats, beside PyTorch's own FP8 and the list in the formats' description."""

import torch

from reference_impl.quantization.floating import float_values


def test_e4m3_holds_what_torch_decodes_from_all_its_patterns() -> None:
    patterns = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    assert float_values(4, 3, nan=True) == sorted(set(patterns[patterns.isfinite()].tolist()))


def test_e2m1_holds_eight_sizes_with_either_sign() -> None:
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert float_values(2, 1) == [-size for size in sizes[:0:-1]] + sizes
