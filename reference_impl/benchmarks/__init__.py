"""How fast the engine is and what it wastes, measured beside a bound on paper and beside its peers on the same weights.

One idea a file: how to time (`timing`), what a result is (`result`), one section each for decode, passes, batching,
prefix sharing and KV memory, the peers, the GPU. Each section predicts before it measures, and states a target where
the course promises one. Not part of the tests.

    python -m reference_impl.benchmarks [--only decode] [--quick]     this CPU
    python -m reference_impl.benchmarks --gpu [--budget 720]          a CUDA GPU
    python -m reference_impl.benchmarks --show FILE                   a result again, as text
"""

SECTIONS = ("decode", "passes", "batching", "prefix", "memory", "quantized", "speculative")
GPU_SECTIONS = ("correctness", "decode", "prefill", "speculative", "quantized")
