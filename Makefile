# Everything needs only python3 (>= 3.11) and make; the rest is installed into .venv from the locked requirements.
.DELETE_ON_ERROR:
.PHONY: demo test test-only test-heavy bench conformance lint format lock thrift check-thrift clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
PYTEST_WORKERS ?= 2
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# One set of locked packages, then the package itself.
define install
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --require-hashes -r requirements/$(1).txt
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/.demo: requirements/demo.txt pyproject.toml
	$(call install,demo)

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	$(call install,dev)

$(VENV)/.bench: requirements/bench.txt pyproject.toml
	$(call install,bench)

demo: $(VENV)/.demo
	@$(BIN)/gateway demo $(ARGS)

test: lint test-only

test-only: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup $(ARGS)

# Attacks that take minutes: memory, disk full, killed processes, many connections.
test-heavy: $(VENV)/.dev
	$(BIN)/python -m pytest -m heavy $(ARGS)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run $(ARGS)

# Counts of right, refused and wrong answers over the recorded corpora, into docs/conformance.md.
conformance: $(VENV)/.dev
	$(BIN)/python -m tests.conformance.report $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Rewrites requirements/*.txt from pyproject.toml (needs uv: `pip install uv`). dev is solved first and binds the others.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-package gateway
lock:
	$(LOCK) pyproject.toml --extra test --extra dev -o requirements/dev.txt
	$(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/base.txt
	$(LOCK) pyproject.toml --extra client -c requirements/dev.txt requirements/build.in -o requirements/demo.txt
	$(LOCK) pyproject.toml --extra test --extra dev --extra bench -c requirements/dev.txt -o requirements/bench.txt
	$(LOCK) pyproject.toml --extra test --extra dev --extra spark -c requirements/dev.txt -o requirements/spark.txt

thrift:
	$(PYTHON) thrift_idl/generate.py

clean:
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
