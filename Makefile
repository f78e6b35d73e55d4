# setup · demo · quick · test · test-hard · test-agents · lint · bench: each works in a fresh clone; setup is made on demand.
# Where there is no Chromium, the tests that need it are reported as skipped.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LOCK   := requirements/dev.txt
PEERS  := $(VENV)/bench-peers
DOCS   := $(VENV)/docs-tools
JS     := $(VENV)/js-tools

.PHONY: viewer lint-js setup setup-browser demo test test-hard test-agents test-all-agents test-frameworks test-ray test-azure test-producers lint bench bench-ray format pins screenshots quick docs test-pythons test-oldest
.DEFAULT_GOAL := test

setup: $(READY)

$(READY): $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(READY)

# Debian's packages; the fonts are those the screenshots are made with.
setup-browser:
	command -v chromium > /dev/null || { apt-get update -qq && \
	  apt-get install --yes --quiet --no-install-recommends chromium fonts-inter fonts-jetbrains-mono; }

demo: $(READY)
	$(BIN)/reenact demo

# One static site in site/, with search; nothing is fetched when it is made or read.
$(DOCS): $(READY) requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade --target $(DOCS) \
	  -r requirements/docs.txt
	touch $(DOCS)

docs: $(DOCS)
	PYTHONPATH=$(DOCS) $(BIN)/python $(DOCS)/bin/zensical build --clean --config-file mkdocs.yml

test: $(READY)
	$(BIN)/python -m pytest -q -rs $(LEFT_OUT)

# A look at every room in under a minute, with fewer examples per property, few processes and bytecode that is kept.
QUICK := tests/test_canonical.py tests/test_lane_name.py tests/test_json_text.py tests/test_library.py tests/formats \
  $(addprefix tests/store/test_,blobs.py journal.py paths.py place.py project.py reader.py rundir.py transcript.py) \
  $(addprefix tests/redaction/test_,edits.py rules.py streams.py) tests/volatile \
  $(addprefix tests/providers/test_,anthropic.py gemini.py ollama.py openai_chat.py openai_responses.py recognition.py) \
  tests/recorder/test_context.py tests/recorder/test_payloads.py tests/replayer/test_engine.py tests/replayer/test_lanes.py \
  tests/run/test_run.py tests/seams/test_patches.py tests/seams/test_tool.py tests/gateway/test_upstreams.py \
  tests/injected/test_handover.py tests/injected/test_subject.py tests/forks/test_fork_requests.py \
  tests/importers/test_spans.py tests/trace tests/analysis tests/exporters/test_exporting.py tests/corpus/test_query.py \
  $(addprefix tests/check/test_,commitment.py merkle.py validation.py verify_capture.py verify_log.py) \
  $(addprefix tests/suite/test_,budgets.py judge.py output.py sequence.py tools.py) \
  tests/viewer/test_api.py tests/workspace/test_trees.py tests/shadowing/test_statistics.py tests/testing/test_script.py \
  tests/pytest_plugin/test_options.py tests/cli/test_hash.py tests/cli/test_main.py

quick: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -rs -m "not slow" --hypothesis-profile quick $(QUICK)

# The tests on every other Python that we support and that is here; what is not here is said. The viewer in the browser,
# programs that are not Python, and the texts of the project are the same on each, and tested by `make test`.
PYTHONS := 3.12 3.13
SAME_ON_ALL := tests/viewer tests/npm tests/producers tests/frameworks tests/test_project.py
# What pyenv has comes first: its shims are found on the path, and fail for versions that are not chosen.
find_python = $(firstword $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python) $(shell command -v python$(1) 2> /dev/null))

test-pythons: $(PYTHONS:%=test-python-%)

test-python-%: requirements/dev-%.txt
	@if [ -z "$(call find_python,$*)" ]; then echo "Python $* is not here; not tested"; else \
	  $(MAKE) --no-print-directory test VENV=$(VENV)-$* PYTHON=$(call find_python,$*) LOCK=requirements/dev-$*.txt \
	    LEFT_OUT="$(SAME_ON_ALL:%=--ignore=%)"; fi

# The seams hook into names that are not public, so the oldest versions of SDKs are tested too.
test-oldest:
	$(MAKE) --no-print-directory setup VENV=$(VENV)-oldest LOCK=requirements/oldest.txt
	$(VENV)-oldest/bin/python -m pytest -q -rs tests/seams tests/providers/test_sdk_oracle.py tests/testing/test_sdks.py

# Kills, failing system calls, hostile events and files, in their long form: some hours on two cores. A part that does
# not end in its time has failed. docs/reliability.md has figures; REENACT_SEED=N tries others, HARD=FILE one part.
HARD := tests/recorder/test_joining.py tests/recorder/test_crash.py tests/recorder/test_storage_failures.py \
  tests/recorder/test_secrets.py tests/redaction/test_planted.py tests/redaction/test_laws.py tests/faults tests/gateway/test_last_byte.py \
  tests/store/test_bombs.py tests/check/test_tampering.py tests/test_hostile_events.py tests/replayer/test_concurrency.py \
  tests/replayer/test_random_programs.py tests/replayer/test_race_programs.py tests/forks/test_fork_programs.py \
  tests/workspace tests/corpus/test_index.py tests/corpus/test_remote.py tests/importers/test_mutations.py tests/importers/test_every_place.py
HARD_S := 3600
test-hard: $(READY)
	@status=0; for part in $(HARD); do began=$$(date +%s); \
	  REENACT_HARD=1 timeout -k 60 $(HARD_S) $(BIN)/python -m pytest -q -s -rs -o timeout=3500 -o faulthandler_timeout=3400 $$part; \
	  case $$? in 0) what=held;; 124|137) what="DID NOT END"; status=1;; *) what=FAILED; status=1;; esac; \
	  told="$$told$$(printf '%-12s %5d s  %s' "$$what" $$(($$(date +%s) - began)) $$part)\n"; done; \
	printf "\n$$told"; exit $$status

# Real agents from npm; where there is no npm, the tests are reported as skipped. All of them take a gigabyte.
test-agents test-all-agents: $(READY)
	REENACT_NPM_AGENTS=$(VENV)/npm-agents REENACT_ALL_AGENTS=$(findstring all,$@) \
	  $(BIN)/python -m pytest -q -rs -n 0 tests/npm

# Ray for real, with two workers: a minute. It is a large package, so it is no part of the setup.
test-ray: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ray.txt
	REENACT_RAY=1 $(BIN)/python -m pytest -q -rs -n 0 tests/corpus/test_ray.py

# Azure's storage for real, as Azurite from npm speaks it on this machine.
test-azure: $(READY)
	npm install --silent --no-audit --no-fund --no-package-lock --prefix $(VENV)/azurite azurite@3.37.0
	REENACT_AZURITE=$(VENV)/azurite/node_modules/.bin/azurite-blob $(BIN)/python -m pytest -q -rs -n 0 tests/corpus/test_azure.py

# The tools that write what `import` reads, each run for real (a gigabyte, with the agents from npm); and Hugging
# Face's reader of what `export` writes. They are kept apart, because some of them are pytest plugins too.
PRODUCERS := $(VENV)/producers
$(PRODUCERS): $(READY) requirements/producers.txt requirements/trl.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade --target $(PRODUCERS) \
	  -r requirements/producers.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --upgrade --target $(PRODUCERS) \
	  -r requirements/trl.txt
	touch $(PRODUCERS)

test-producers: $(READY) $(PRODUCERS)
	REENACT_PRODUCERS=$(PRODUCERS) REENACT_NPM_AGENTS=$(VENV)/npm-agents \
	  $(BIN)/python -m pytest -q -rs -n 0 tests/producers

# Small agents on many frameworks, each in an environment of its own (20 GB): ONLY=crewai,dspy tries some of them.
# It takes a C compiler for the later date, and Node, Go, curl, git and Chromium for those that need them.
test-frameworks: $(READY)
	$(BIN)/python -m tests.frameworks $(ONLY)

lint: $(READY) lint-js
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The viewer's JavaScript, by its JSDoc types; and that the program of a page is what esbuild makes of it.
JS_TOOLS := typescript@7.0.2 esbuild@0.28.2
HAS_NPM  := $(shell command -v npm 2> /dev/null)
VIEWER   := src/reenact/viewer

$(JS): Makefile
	npm install --silent --no-audit --no-fund --no-package-lock --prefix $(JS) $(JS_TOOLS)
	touch $(JS)

lint-js:
ifeq ($(HAS_NPM),)
	@echo "npm is not here; the viewer's JavaScript is not checked"
else
	$(MAKE) --no-print-directory $(JS)
	$(JS)/node_modules/.bin/tsc -p jsconfig.json
	$(MAKE) --no-print-directory $(VENV)/page.js
	cmp $(VENV)/page.js $(VIEWER)/page.js || { echo "$(VIEWER)/page.js is old; make it again with: make viewer"; exit 1; }
endif

$(VENV)/page.js: $(READY) $(JS) $(wildcard $(VIEWER)/static/*.js)
	$(JS)/node_modules/.bin/esbuild $(VIEWER)/static/main.js --bundle --format=esm --target=es2022 --charset=utf8 \
	  --legal-comments=none --log-level=warning --outfile=$@ \
	  --banner:js="$$($(BIN)/python -c 'from reenact.viewer.static import modules_mark; print(modules_mark())')"

# The program of the page that carries its own run, after a change of the viewer's modules.
viewer: $(VENV)/page.js
	cp $(VENV)/page.js $(VIEWER)/page.js

# The recorders measured beside ours are pytest plugins too, so they are kept out of the environment of the tests.
$(PEERS): $(READY) requirements/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade --target $(PEERS) \
	  -r requirements/bench.txt
	touch $(PEERS)

bench: $(READY) $(PEERS)
	PYTHONPATH=$(PEERS) $(BIN)/python -m bench

# One worker and two over REENACT_RAY megabytes: take a quiet machine with as much memory twice over.
bench-ray: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ray.txt
	REENACT_RAY=$${REENACT_RAY:-2000} $(BIN)/python -m bench corpus

# Makes the pictures in docs/images anew; commit the result.
screenshots: $(READY) setup-browser
	REENACT_SCREENSHOTS=1 $(BIN)/python -m pytest -q -n 0 tests/viewer/test_screenshots.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Raises the pinned versions to the newest that fit; run by hand, commit the result.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-header --python-version

pins: $(READY)
	$(COMPILE) 3.11 --output-file requirements/dev.txt requirements/dev.in
	$(COMPILE) 3.11 --constraint requirements/dev.txt --output-file requirements/bench.txt requirements/bench.in
	$(COMPILE) 3.11 --output-file requirements/docs.txt requirements/docs.in
	$(COMPILE) 3.11 --output-file requirements/oldest.txt requirements/oldest.in
	$(COMPILE) 3.11 --constraint requirements/dev.txt --output-file requirements/ray.txt requirements/ray.in
	$(COMPILE) 3.11 --output-file requirements/producers.txt requirements/producers.in
	$(COMPILE) 3.11 --no-deps --output-file requirements/trl.txt requirements/trl.in
	for each in $(PYTHONS); do $(COMPILE) $$each --constraint requirements/dev.txt \
	  --output-file requirements/dev-$$each.txt requirements/dev.in; done
