# Everything needs only python3 (>= 3.11) and make; the rest is installed into .venv from the locked requirements.
.DELETE_ON_ERROR:
.PHONY: demo test test-only test-corpora test-live test-all test-dbt test-clients test-heavy test-spark test-spark-heavy bench bench-short bench-spark conformance conformance-spark fuzz fuzz-slice fuzz-table lint format map pictures lock thrift clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
STATES ?= .bench/fuzz/state.json
SPARK ?=
PYTEST_WORKERS ?= 3
# Tests start hundreds of processes: what they import is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
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

# All of dev, and pyspark, which is all of Spark.
$(VENV)/.spark: requirements/spark.txt pyproject.toml
	@echo "Installing Spark into $(VENV); the first time it is some 450 MB to fetch ..."
	$(call install,spark)

# The Delta jars, and a look at Java; setup.py pins them.
$(VENV)/.jars: $(VENV)/.spark gateway/engine/spark/setup.py
	@$(BIN)/gateway spark install
	@touch $@

# SPARK=1: with Spark as second engine.
ifeq ($(SPARK),1)
demo: $(VENV)/.jars
	@$(BIN)/gateway demo --spark 'local[*]' $(ARGS)
else
demo: $(VENV)/.demo
	@$(BIN)/gateway demo $(ARGS)
endif

# More processes than cores: many tests wait, for a timeout, a browser, or another client.
# A file's tests share what is made once for a module, so they run in one process; the slowest folders come first. A worker that
# crashes ends the run: the tests that it had left would be waited for without an end.
BY_FILE := --dist loadfile --max-worker-restart=0
PYTEST := $(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(BY_FILE) --no-loadscope-reorder
# Against gateways that are started for them: real drivers, a browser, attacks.
LIVE := tests/attacks tests/clients tests/console

# What Spark answers to other people's statements; skipped where their corpora are not.
CORPORA := tests/conformance

test: lint test-only
	@echo "All the others: make test-all, or make test-corpora, test-live, test-spark (Java 17 or 21, Maven) and fuzz-slice"

test-only: $(VENV)/.dev
	$(PYTEST) $(addprefix --ignore=,$(LIVE) $(CORPORA)) $(ARGS)

test-corpora: $(VENV)/.dev
	$(BIN)/python -m pytest $(CORPORA) $(ARGS)

test-live: $(VENV)/.dev
	$(PYTEST) $(LIVE) $(ARGS)

# What a commit must pass.
test-all: test test-corpora test-live test-spark fuzz-slice bench-short

# dbt against a gateway without Spark, in an environment of its own: it binds other versions of what the tests need.
DBT := .dbt
$(DBT)/.installed: requirements/dbt.txt
	@test -x $(DBT)/bin/python || $(PYTHON) -m venv $(DBT)
	@$(DBT)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --require-hashes -r requirements/dbt.txt
	@touch $@

test-dbt: $(VENV)/.dev $(DBT)/.installed
	GATEWAY_TEST_DBT=$(CURDIR)/$(DBT)/bin/dbt $(BIN)/python -m pytest tests/clients/test_dbt.py $(ARGS)

# All clients of docs/clients.md do their cases, and its matrix is written. What is not there is skipped with the reason: Node and Go
# for their drivers, Maven for JDBC's.
OTHERS := .clients
JARS := com.databricks:databricks-jdbc:2.8.7 com.databricks:databricks-jdbc:3.3.3 com.databricks:databricks-jdbc:3.4.5 \
	org.apache.hive:hive-jdbc:4.0.1:jar:standalone
$(OTHERS)/.python: requirements/clients.txt
	@test -x $(OTHERS)/bin/python || $(PYTHON) -m venv $(OTHERS)
	@$(OTHERS)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --require-hashes -r requirements/clients.txt
	@touch $@

$(OTHERS)/.drivers: $(OTHERS)/.python
	-@for jar in $(JARS); do mvn -q dependency:copy -Dartifact=$$jar -DoutputDirectory=$(CURDIR)/$(OTHERS)/jars; done
	-@cp tests/clients/matrix/programs/package.json $(OTHERS)/ && cd $(OTHERS) && npm install --silent --no-package-lock --ignore-scripts
	-@cd tests/clients/matrix/programs/go && go build -o $(CURDIR)/$(OTHERS)/go-cases .
	-@cd tests/clients/matrix/programs/gosdk && go build -o $(CURDIR)/$(OTHERS)/go-cases-sdk .
	-@cd tests/clients/matrix/programs/adbc && go build -o $(CURDIR)/$(OTHERS)/go-cases-adbc .
	@touch $@

test-clients: $(VENV)/.dev $(OTHERS)/.drivers
	GATEWAY_TEST_CLIENTS=$(CURDIR)/$(OTHERS)/bin/python GATEWAY_TEST_DRIVERS=$(CURDIR)/$(OTHERS)/jars \
	GATEWAY_TEST_NODE=$(CURDIR)/$(OTHERS) GATEWAY_TEST_GO=$(CURDIR)/$(OTHERS)/go-cases $(BIN)/python -m tests.clients.matrix.report

# Attacks that take minutes: memory, disk full, killed processes, many connections.
test-heavy: $(VENV)/.dev
	$(BIN)/python -m pytest -m "heavy and not spark" $(ARGS)

# Losses of Spark, results larger than its heap, a full disk, a standalone cluster.
test-spark-heavy: $(VENV)/.spark
	-@$(MAKE) --no-print-directory $(VENV)/.jars
	$(BIN)/python -m pytest -m "spark and heavy" $(ARGS)

# In two processes, each with a Spark that its tests share: one Spark keeps one core busy. That ARGS leave none of them is no
# failure. Without Java or the jars they are skipped, and say why.
test-spark: $(VENV)/.spark
	-@$(MAKE) --no-print-directory $(VENV)/.jars
	$(BIN)/python -m pytest -n 2 $(BY_FILE) -m "spark and not heavy" $(ARGS) $(if $(ARGS),|| test $$? -eq 5)

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run $(ARGS)

# Ratios to the floor within a minute, beside the last ones of benchmarks/history.jsonl; ARGS=--keep appends to it.
bench-short: $(VENV)/.dev
	$(BIN)/python -m benchmarks.short $(ARGS)

bench-spark: $(VENV)/.jars
	$(BIN)/python -m benchmarks.spark $(ARGS)

# Counts of right, refused and wrong answers over the recorded corpora, into docs/conformance.md.
conformance: $(VENV)/.dev
	$(BIN)/python -m tests.conformance.report $(ARGS)

# The same corpora through the wire with Spark behind the gateway, against plain PySpark: half an hour.
conformance-spark: $(VENV)/.jars
	$(BIN)/python -m tests.conformance.wire

# Random statements on the embedded engine and on a Spark of its own; ARGS="--statements N --seconds N --seed N": docs/fuzzing.md.
fuzz: $(VENV)/.jars
	$(BIN)/python -m tests.fuzz.run $(ARGS)

# The pictures of docs/console.md, taken anew; needs Chromium.
pictures: $(VENV)/.dev
	GATEWAY_TEST_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/console/test_pictures.py

# The same, of a fixed seed and number: nothing may differ. Without Java or the jars it is skipped, and says why.
fuzz-slice: $(VENV)/.spark
	-@$(MAKE) --no-print-directory $(VENV)/.jars
	$(BIN)/python -m tests.fuzz.run --slice

# The table of docs/fuzzing.md, out of files that --resume keeps: STATES="file file".
fuzz-table: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.table $(STATES)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# docs/map.md: which package imports which.
map:
	$(PYTHON) docs/make_map.py

# Rewrites requirements/*.txt from pyproject.toml (needs uv: `pip install uv`). dev is solved first and binds the others.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-package gateway
lock:
	$(LOCK) pyproject.toml --extra test --extra dev -o requirements/dev.txt
	$(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/base.txt
	$(LOCK) pyproject.toml --extra client --extra certificate --extra prompt -c requirements/dev.txt requirements/build.in -o requirements/demo.txt
	$(LOCK) pyproject.toml --extra test --extra dev --extra bench -c requirements/dev.txt -o requirements/bench.txt
	$(LOCK) pyproject.toml --extra test --extra dev --extra spark -c requirements/dev.txt -o requirements/spark.txt
	$(LOCK) requirements/dbt.in -o requirements/dbt.txt
	$(LOCK) requirements/clients.in -o requirements/clients.txt

thrift:
	$(PYTHON) thrift_idl/generate.py

clean:
	rm -rf $(VENV) $(DBT) $(OTHERS) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
