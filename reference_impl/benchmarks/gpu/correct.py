"""Is the engine right on a GPU? The tests that need one, and logits and tokens beside the CPU's.

The same weights run on both devices in float32; in bfloat16 the GPU is compared with the CPU's float32 over the same
rounded weights, so that the difference is that of the arithmetic. CUDA graphs must give what the model gives.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.paged import PagedCache
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.model.replay import Capture, DecodeGraphs

SHAPE = ModelConfig("small", 4, 512, 8, 2, 64, 1024, 2048, rope_theta=5e5, max_context=1024)
LIMITS = {"fp32": 1e-3, "bf16": 3e-2}  # relative to the norm of the logits
ROOT = Path(__file__).resolve().parents[3]


def run(seconds: float, device: str = "cuda", capture: Capture | None = None) -> tuple[Section, bool]:
    """The section, and whether everything was right."""
    section = Section("gpu_correctness", f"The engine on {device} beside the CPU", {"check": "check", "found": "found"})
    for dtype, limit in LIMITS.items():
        kind = torch.float32 if dtype == "fp32" else torch.bfloat16
        models = _pair(kind, device)
        for name, error in compare(*models, capture).items():
            section.rows.append({"check": f"{dtype}: {name}", "found": f"relative error {error:.1e}"})
            section.targets.append(Target(f"{dtype}: {name}, relative error", error, limit, at_least=False))
    same = _same_tokens(*_pair(torch.float32, device), capture)
    section.rows.append({"check": "fp32: greedy answers of the engine with CUDA graphs", "found": f"{same:.0%} equal"})
    section.targets.append(Target("fp32: share of greedy tokens equal to the CPU's", same, 0.99))
    found, passed = _tests(seconds)
    section.rows.append({"check": "pytest -m gpu", "found": found})
    return section, passed and all(target.met for target in section.targets)


def compare(cpu: Llama, gpu: Llama, capture: Capture | None) -> dict[str, float]:
    """Relative errors of the logits of a prefill of two prompts, of a decode step, and of that step from a graph."""
    numbers = torch.Generator().manual_seed(3)
    prompts = [torch.randint(SHAPE.vocab_size, (n,), generator=numbers).tolist() for n in (37, 300)]
    caches = [
        PagedCache(SHAPE, 64, 16, model.embed.dtype, model.embed.device, prefix_sharing=False) for model in (cpu, gpu)
    ]
    outs: list[list[Tensor]] = []
    with torch.inference_mode():
        for model, cache in zip((cpu, gpu), caches, strict=True):
            for seq in range(2):
                cache.add(seq)
            batch = cache.extend([(seq, prompts[seq]) for seq in range(2)])
            fused = FusedLlama(model)
            outs.append([fused(batch, None)])
            cache.commit(batch)
            step = cache.extend([(seq, [seq + 5]) for seq in range(2)])
            outs[-1].append(fused(step, step.last_rows))
            if model is gpu:
                graphs = DecodeGraphs(fused, cache.storage, 32, [1, 4], capture)  # 4: two rows of padding
                outs[-1].append(graphs(step, step.last_rows))
            cache.commit(step)
    (prefill, decode), (gpu_prefill, gpu_decode, gpu_graph) = outs
    return {
        "prefill": relative_error(gpu_prefill, prefill),
        "decode": relative_error(gpu_decode, decode),
        "decode by CUDA graph": relative_error(gpu_graph, decode),
    }


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference over the norm of what is expected; NaN counts as infinite."""
    expected = expected.double().cpu()
    error = float((found.double().cpu() - expected).norm() / expected.norm())
    return error if error == error else float("inf")


def _pair(dtype: torch.dtype, device: str) -> tuple[Llama, Llama]:
    """The same weights, rounded to `dtype`: in float32 on the CPU, in `dtype` on the device."""
    gpu = Llama(SHAPE, dtype).randomize(torch.Generator().manual_seed(2), std=0.05)
    cpu = Llama(SHAPE, torch.float32)
    cpu.load_state_dict(gpu.state_dict())
    return cpu, gpu.to(device)


def _same_tokens(cpu: Llama, gpu: Llama, capture: Capture | None) -> float:
    numbers = torch.Generator().manual_seed(4)
    requests = [
        Request(i, tuple(torch.randint(SHAPE.vocab_size, (20 + 3 * i,), generator=numbers).tolist()), max_tokens=24)
        for i in range(5)
    ]
    answers = []
    for model in (cpu, gpu):
        engine = Engine.for_llama(model, EngineConfig(n_blocks=64))
        if model is gpu:
            assert isinstance(engine.cache, PagedCache)
            engine.model = DecodeGraphs(FusedLlama(model), engine.cache.storage, 64, (2, 4, 8), capture)
        answers.append([token for done in engine.run(requests).values() for token in done.tokens])
    return sum(a == b for a, b in zip(*answers, strict=True)) / len(answers[0])


def _tests(seconds: float) -> tuple[str, bool]:
    """What the tests that need a GPU say, and whether none failed. Without tests or pytest: said so, and passed."""
    files = [path for path in sorted(ROOT.glob("tests/**/test_*.py")) if "mark.gpu" in path.read_text()]
    if not files or find_spec("pytest") is None:
        return "not run: " + ("pytest is not installed" if files else "no tests beside this package"), True
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *map(str, files)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=max(seconds, 1), check=False)
    except subprocess.TimeoutExpired:
        return f"not finished in {seconds:.0f} s", False
    lines = done.stdout.strip().splitlines() or [f"status {done.returncode}"]
    if done.returncode not in (0, 5):
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    return re.sub(r"^=+ ?| ?=+$", "", lines[-1]), done.returncode in (0, 5)
