"""Is the engine right on a GPU? Logits and tokens beside the CPU's, answers with drafts, the tests that need a GPU.

In float32 the same weights run on both devices. In bfloat16 the GPU is compared with the CPU's float32 over the same
rounded weights, so that only the arithmetic differs. CUDA graphs must give what the model gives.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from reference_impl.benchmarks.harness.result import Save, Section, Target, forget
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.paged import PagedCache
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import FinishReason, Request
from reference_impl.model.fused import FusedLlama
from reference_impl.model.llama import Llama
from reference_impl.model.replay import Capture, DecodeGraphs
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator

SHAPE = ModelConfig("small", 4, 512, 8, 2, 64, 1024, 2048, rope_theta=5e5, max_context=1024)
LIMITS = {"bf16": 3e-2, "fp32": 1e-3}  # relative to the norm of the logits
ENOUGH = 0.99  # share of equal tokens: one tie of two logits may be rounded apart
ROOT = Path(__file__).resolve().parents[3]


def correctness(device: str = "cuda", capture: Capture | None = None, save: Save = forget) -> Section:
    """Logits and greedy tokens on the device beside the CPU's, first in bfloat16."""
    section = Section("gpu_correctness", f"The engine on {device} beside the CPU", {"check": "check", "found": "found"})
    for dtype, limit in LIMITS.items():
        kind = torch.float32 if dtype == "fp32" else torch.bfloat16
        for name, error in compare(*_pair(kind, device), capture).items():
            section.rows.append({"check": f"{dtype}: {name}", "found": f"relative error {error:.1e}"})
            section.targets.append(Target(f"{dtype}: {name}, relative error", error, limit, at_least=False))
        save(section)
    cpu, gpu = _pair(torch.float32, device)
    replayed = _engine(gpu)
    assert isinstance(replayed.cache, PagedCache)
    replayed.model = DecodeGraphs(FusedLlama(gpu), replayed.cache.storage, 64, (2, 4, 8), capture)
    same = _share(_answers(replayed), _answers(_engine(cpu)))
    section.rows.append({"check": "fp32: greedy answers of the engine with CUDA graphs", "found": f"{same:.0%} equal"})
    section.targets.append(Target("fp32: share of greedy tokens equal to the CPU's", same, ENOUGH))
    return section


def answers(device: str = "cuda", save: Save = forget) -> Section:
    """Greedy answers with drafts beside plain ones, both on the device, in float32."""
    section = Section(
        "gpu_answers",
        f"Speculative answers beside plain ones on {device}, fp32, greedy",
        {"drafts": "drafts from", "equal": "share of equal tokens", "accepted": "drafts accepted"},
    )
    _, model = _pair(torch.float32, device)
    plain = _answers(_engine(model))
    for name, source in (("n-grams", NgramDraft()), ("the model itself", ModelDraft.for_llama(model))):
        speculator = Speculator(source, DraftLength(4))
        equal = _share(_answers(_engine(model, speculator)), plain)
        section.rows.append({"drafts": name, "equal": equal, "accepted": speculator.stats.acceptance})
        section.targets.append(Target(f"drafts from {name}: share of tokens equal to plain decoding's", equal, ENOUGH))
        save(section)
    return section


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
                graphs.record()  # so that the pass below replays, with other inputs than were recorded
                outs[-1].append(graphs(step, step.last_rows))
            cache.commit(step)
    (prefill, decode), (gpu_prefill, gpu_decode, gpu_graph) = outs
    return {
        "prefill": relative_error(gpu_prefill, prefill),
        "decode": relative_error(gpu_decode, decode),
        "decode by CUDA graph": relative_error(gpu_graph, decode),
    }


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference over norm of the expected tensor. NaN counts as infinite."""
    expected = expected.double().cpu()
    error = float((found.double().cpu() - expected).norm() / expected.norm())
    return error if error == error else float("inf")


def _pair(dtype: torch.dtype, device: str) -> tuple[Llama, Llama]:
    """The same weights, rounded to `dtype`: in float32 on the CPU, in `dtype` on the device."""
    gpu = Llama(SHAPE, dtype).randomize(torch.Generator().manual_seed(2), std=0.05)
    cpu = Llama(SHAPE, torch.float32)
    cpu.load_state_dict(gpu.state_dict())
    return cpu, gpu.to(device)


def _engine(model: Llama, speculator: Speculator | None = None) -> Engine:
    return Engine.for_llama(model, EngineConfig(n_blocks=64), strategy=speculator)


def _answers(engine: Engine) -> list[int]:
    """The tokens of five greedy answers, one after the other. RuntimeError if a request failed."""
    numbers = torch.Generator().manual_seed(4)
    requests = [
        Request(i, tuple(torch.randint(SHAPE.vocab_size, (20 + 3 * i,), generator=numbers).tolist()), max_tokens=24)
        for i in range(5)
    ]
    done = engine.run(requests)
    for completion in done.values():
        if completion.finish is FinishReason.ERROR:
            raise RuntimeError(completion.reason)
    return [token for request in requests for token in done[request.id].tokens]


def _share(found: list[int], expected: list[int]) -> float:
    """The share of equal tokens, place by place."""
    return sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected)


def tests() -> Section:
    """The outcome of the tests that need a GPU. Without tests or pytest the section says so and has no target."""
    section = Section("gpu_tests", "The tests that need a GPU", {"check": "check", "found": "found"})
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("tests/**/test_*.py"))}
    files = [str(path) for path, text in texts.items() if "mark.gpu" in text]
    missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
    if missing or not files:
        why = f"{' and '.join(missing)} not installed" if missing else "no tests beside this package"
        section.rows.append({"check": "pytest -m gpu", "found": f"not run: {why}"})
        return section
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    passed = done.returncode == 0
    if not passed:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    lines = done.stdout.strip().splitlines() or [f"status {done.returncode}"]
    section.rows.append({"check": "pytest -m gpu", "found": re.sub(r"^=+ ?| ?=+$", "", lines[-1])})
    section.rows += [{"check": "", "found": line} for line in lines if line.startswith(("FAILED", "ERROR"))]
    section.targets.append(Target("the tests pass (1) or not (0)", float(passed), 1.0))
    return section
