# The two set-up commands are `make demo` and `make test`; both make .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types unit wheel bench clean

NATIVE := $(wildcard runtime/native/*.[ch])

$(VENV)/.runtime: setup.cfg setup.py constraints.txt pyproject.toml $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[runtime]'
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.runtime
	$(PIP) --editable '.[bench]'
	touch $@

demo: $(VENV)/.runtime
	$(BIN)/msgen build schema/
	$(BIN)/python examples/quickstart.py

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/msgen check schema/

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/mypy --config-file setup.cfg tests benchmarks examples

unit: $(VENV)/.dev
	$(BIN)/pytest --numprocesses auto --cov --cov-report=term

wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench_codec.py
	$(BIN)/python benchmarks/bench_queues.py
	$(BIN)/python benchmarks/bench_workers.py

clean:
	rm -rf $(VENV) build dist src/msgen.egg-info
