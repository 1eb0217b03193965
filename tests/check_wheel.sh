#!/usr/bin/env bash
# Installs a wheel or an sdist into a fresh environment and runs the codec's tests against it.
set -euo pipefail
package=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt "$package[dev]"
cp -r tests schema setup.cfg "$folder"
cd "$folder" # where no source can be found in place of what was installed
MSGEN_CODEC=native venv/bin/pytest --numprocesses auto -p no:cacheprovider \
    tests/codec/test_encoding.py tests/codec/test_decoding.py tests/codec/test_frames.py tests/codec/test_tensors.py \
    tests/codec/test_engines.py tests/codec/test_native.py tests/codec/test_versions.py tests/codec/test_vectors.py
