#!/usr/bin/env bash
# Runs the codec's tests with the compiled engine built for AddressSanitizer and UBSan, then with
# Python's debug allocator, and builds the ordinary engine again.
#
# MSGEN_ENGINE_CASES and MSGEN_ENGINE_SEED say how much of the comparison of the engines is run.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
tests=(tests/codec/test_engines.py tests/codec/test_native.py tests/codec/test_encoding.py tests/codec/test_decoding.py
    tests/codec/test_frames.py tests/codec/test_tensors.py tests/codec/test_versions.py)

build() {
    "$python" setup.py --quiet build_ext --inplace --force --build-temp "build/temp-$1"
}
trap 'build ordinary' EXIT

export MSGEN_CODEC=native
CFLAGS="-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -fno-omit-frame-pointer -DMSGEN_KEEP_NO_MEMORY" build sanitized
# Python and torch are not built for it, so what they leave at exit would be called a leak.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
    "$python" -m pytest -p no:cacheprovider -o timeout=3600 "${tests[@]}"

CFLAGS="-O1 -DMSGEN_KEEP_NO_MEMORY" build debug
PYTHONMALLOC=debug PYTHONDEVMODE=1 \
    "$python" -m pytest -p no:cacheprovider -o timeout=3600 "${tests[@]}"
