#!/bin/sh
# Run what needs a GPU: the tests marked cuda, and the benchmark of staging.
#
# It installs into the virtual environment .venv-cuda of this checkout, and nowhere else. Give
# PYTHON=... for another Python, TORCH=... for another torch, such as TORCH=2.6.0; the default is the
# newest one that the package index has for this machine.
set -eu

cd "$(dirname "$0")/../.."
venv=.venv-cuda
python="$venv/bin/python"

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv || {
    echo "run.sh: this machine has no NVIDIA GPU, or no driver" >&2
    exit 2
}
test -x "$python" || "${PYTHON:-python3}" -m venv "$venv"
"$python" -m pip install --quiet "torch${TORCH:+==$TORCH}" hypothesis pytest pytest-timeout
"$python" -m pip install --quiet --editable '.[runtime]'
"$python" - <<'END'
import torch

print("torch", torch.__version__, "CUDA", torch.version.cuda, "GPUs", torch.cuda.device_count())
END

set -x
"$python" -m pytest -rs -v tests/cuda tests/workers/test_staging.py
"$python" -m benchmarks.workers --only staging
