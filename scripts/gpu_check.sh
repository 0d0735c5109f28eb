#!/usr/bin/env bash
# The GPU check with a Python that is there already, without a network: it needs a CUDA build of torch, Triton, NumPy
# and the other packages that `pip install .` brings; the tests that need a GPU run where pytest is there too.
# Results go to $OUT, if set. `make gpu-check` does the same in the course's own environment.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python3}" -m reference_impl.benchmarks --gpu "$@"
