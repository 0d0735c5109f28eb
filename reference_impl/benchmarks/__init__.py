"""How fast the engine is and what it wastes, measured beside a bound on paper and beside its peers on the same weights.

`harness` takes, keeps and prints measurements; `cpu` and `gpu` measure the sections; `quality` and `speculation` are
the two tables of lessons 4 and 5. Each section predicts before it measures, and states a target where
the course promises one. Benchmarks are not part of the tests.

    python -m reference_impl.benchmarks [--only decode] [--quick]     this CPU
    python -m reference_impl.benchmarks --gpu [--budget 540]          a CUDA GPU
    python -m reference_impl.benchmarks --show FILE                   a result again, as text
"""

SECTIONS = ("decode", "passes", "batching", "requests", "gaps", "prefix", "memory", "quantized", "speculative")
GPU_SECTIONS = (
    "card", "correctness", "decode", "int8", "int4", "engine", "answers", "speculative", "tests", "prefill",
)  # fmt: skip
