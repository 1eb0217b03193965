#!/usr/bin/env bash
# Fuzzes the compiled decoder for SECONDS (default: ten minutes); a finding ends it with an error.
#
# Needs clang. The corpus stays in build/corpus for the next run.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
seconds=${1:-600}

"$python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
    --editable '.[fuzz]'
restore() {
    "$python" setup.py --quiet build_ext --inplace --force --build-temp build/temp-ordinary
}
trap restore EXIT
CC=clang LDSHARED="clang -shared" \
    CFLAGS="-O1 -fsanitize=address,fuzzer-no-link -DMSGEN_KEEP_NO_MEMORY" \
    "$python" setup.py --quiet build_ext --inplace --force --build-temp build/temp-fuzz

mkdir -p build/corpus
LD_PRELOAD="$("$python" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so" \
    ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1 \
    PYTHONMALLOC=malloc MSGEN_CODEC=native \
    "$python" fuzz/fuzz_codec.py -max_total_time="$seconds" -max_len=512 -print_final_stats=1 \
    -rss_limit_mb=4096 build/corpus
