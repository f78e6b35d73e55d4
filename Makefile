# setup · demo · test · test-agents · lint · bench: each works in a fresh clone; setup is made on demand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := $(VENV)/bench-peers

.PHONY: setup demo test test-agents lint bench format pins
.DEFAULT_GOAL := test

setup: $(READY)

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(READY)

demo: $(READY)
	$(BIN)/reenact demo

test: $(READY)
	$(BIN)/python -m pytest -q

# Real agents from npm; where there is no npm, the tests are reported as skipped.
test-agents: $(READY)
	REENACT_NPM_AGENTS=$(VENV)/npm-agents $(BIN)/python -m pytest -q -rs -n 0 tests/npm

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The recorders measured beside ours are pytest plugins too, so they are kept out of the environment of the tests.
$(PEERS): $(READY) requirements/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade --target $(PEERS) \
	  -r requirements/bench.txt
	touch $(PEERS)

bench: $(READY) $(PEERS)
	PYTHONPATH=$(PEERS) $(BIN)/python -m bench

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Raises the pinned versions to the newest that fit; run by hand, commit the result.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-header --python-version 3.11

pins: $(READY)
	$(COMPILE) --output-file requirements/dev.txt requirements/dev.in
	$(COMPILE) --constraint requirements/dev.txt --output-file requirements/bench.txt requirements/bench.in
