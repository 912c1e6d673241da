# `make demo` and `make test` set up what they need in .venv; the second time they start at once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast test-oldest fuzz verify guard lint format bench quality reproduce clean clean-kernels

demo: $(VENV)/.demo
	@$(BIN)/forback demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

# A minute or so: no clock, no browser, no other process. tests/conftest.py says what is left out.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-oldest: $(VENV)-oldest/.dev
	$(VENV)-oldest/bin/python -m pytest -n 2

# Hostile runs, counted; then the property tests with examples that were never tried. What goes wrong is
# kept: in tests/hostile/found for every later test run, and in .hypothesis. `make fuzz FUZZ="--runs 100000"`.
FUZZ ?= --runs 10000
fuzz: $(VENV)/.dev
	cd tests && $(abspath $(BIN))/python -m hostile.fuzz $(FUZZ)
	$(BIN)/python -m pytest -n 2 -q --hypothesis-profile=search

# Hours: the same cases every time, counted; results in tests/verify/results.md. A part, or less of all:
# `make verify VERIFY="subsets --scale 0.01"`.
VERIFY ?= --out verify/results.md
verify: $(VENV)/.dev
	cd tests && $(abspath $(BIN))/python -m verify $(VERIFY)

# Base and head take turns in new processes: `make guard BASE=main~5`. About half an hour.
# `make guard ARGS="--only huber --pairs 30"` looks at one job more closely.
BASE ?= HEAD
guard: $(VENV)/.dev
	$(BIN)/python -m benchmarks.guard --base $(BASE) $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Hours; `make bench ARGS=--quick` has a quick look, `make bench ARGS=--list` names the workloads.
bench: $(VENV)/.experiments
	$(BIN)/python -m benchmarks $(ARGS)

# An hour: objectives at equal k beside the peers; tables want FORBACK_DATA (docs/datasets.md).
# `make quality ARGS="--only decoys --seeds 5"`.
quality: $(VENV)/.experiments
	$(BIN)/python -m benchmarks.quality $(ARGS)

# Up to an hour, and wants the public data (docs/datasets.md). `make reproduce ARGS="uci --quick"`.
reproduce: $(VENV)/.experiments
	$(BIN)/python -m experiments $(or $(ARGS),all)

clean-kernels:
	find src -name "*.nb[ci]" -delete

clean:
	rm -rf $(VENV) $(VENV)-oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@echo "Setting up a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo "Installing forback and what it needs into $(VENV): about a minute the first time ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing forback and its tools into $(VENV): a few minutes the first time ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.experiments: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[experiments]"
	touch $@ $(VENV)/.demo

$(VENV)-oldest/.dev: pyproject.toml tests/oldest-versions.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[dev]" --constraint tests/oldest-versions.txt
	touch $@
