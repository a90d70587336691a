# Sluice: `make` alone prints the targets.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
SET_UP := @$(PYTHON) -m devstack.set_up
UV := .sluice/uv/bin/uv
PYTEST_ARGS ?=
# Tests wait for servers: three processes keep two cores busy. Each needs some 4 GB.
PROCESSES ?= 3
STORE := $(if $(filter-out 0 no false,$(S3)),store)
# Where a shell or an image sets it, each process would compile a thousand modules: a command 4 s, a worker 12 s.
unexport PYTHONDONTWRITEBYTECODE
CODE := run_workflow.py worker.py sluice lakehouse engine activities workflows cli web runtime importing generation hosting devstack spark_jobs pipelines tests bench

# Tests misspell on purpose, so they are not part of the spelling check.
TEXTS := README.md CONTRIBUTING.md CHANGELOG.md docs .env.example Makefile

.DEFAULT_GOAL := help
.PHONY: faults sequences soak help setup setup-dev setup-python python-version demo up down status s3 store lint types test unit check histories lock clean docs bench bench-quick bench-audit

help: ## Print this list
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## /{printf "  \033[1mmake %-10s\033[0m %s\n", $$1, $$2} /^##@/{printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Use
demo: setup $(STORE) ## Run three pipelines on real flights, and have files arrive
	@$(PY) -m devstack demo $(if $(STORE),--s3)

up: setup $(STORE) ## Start the local stack: Temporal with Web UI, Nessie, a worker; S3=1: and an object store
	@$(PY) -m devstack up $(if $(STORE),--s3)

down: ## Stop what `make up` started
	@if [ -x $(PY) ]; then $(PY) -m devstack down; else echo "Nothing is set up here, so nothing runs."; fi

status: setup ## Say what of the local stack runs, and where
	@$(PY) -m devstack status

setup: python-version ## Install what is needed to run pipelines, under .venv and .sluice
	$(SET_UP) use

s3: setup ## Install what Spark needs to read and write S3 (70 MB)
	$(SET_UP) s3

store: setup ## Install what `make up S3=1` needs: the same, and an S3-compatible server
	$(SET_UP) store

##@ Develop
setup-dev: python-version ## Install what is needed to develop: the same, the development tools and a test server
	$(SET_UP) develop

test: setup-dev check ## Run lint, types and something of every kind of test; ALL=1: all tests but the matrix of faults
	$(PY) -m pytest -m "quick$(if $(filter-out 0 no false,$(ALL)), or slow)" -n $(PROCESSES) --dist loadscope --second-try --durations=25 $(PYTEST_ARGS)

faults: setup-dev ## Break a run in every way that is enumerated, and write docs/faults.md
	$(PY) -m pytest tests/faults -m "matrix or not matrix" -n $(PROCESSES) --faults-table docs/faults.md $(PYTEST_ARGS)
	$(PY) -m pytest tests/unit/pipeline/test_any_input.py tests/component/test_wide_tables.py tests/component/loads/test_many_files.py tests/workflow/test_backfill.py tests/system/test_yarn.py tests/system/test_cluster.py tests/system/test_automatic_engine.py -m matrix $(PYTEST_ARGS)

sequences: setup-dev ## Try random sequences of commands against a model of main: 1,000 of each kind in memory, 30 on Spark
	$(PY) -m pytest tests/component -k "sequences" -m "quick or matrix" -n $(PROCESSES) --dist worksteal $(PYTEST_ARGS)

MINUTES ?= 30
soak: setup-dev ## Let runs go on while Temporal, Nessie and workers are killed: MINUTES=30, SEED=n
	$(PY) -m tests.faults.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

unit: setup-python ## Run the tests that need no server (seconds)
	$(PY) -m pytest tests/unit $(PYTEST_ARGS)

check: lint types ## Run lint and types

lint: setup-python ## Check style, formatting and spelling
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m codespell_lib --ignore-words-list cachable,allocat --skip docs/measurements $(filter-out tests,$(CODE)) $(TEXTS)

types: setup-python ## Check types, strictly
	$(PY) -m mypy

histories: setup-dev ## Record the histories that the replay tests replay
	$(PY) -m tests.harness.record_histories

COMPILE := $(UV) pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url -q
lock: setup-python ## Resolve the dependencies again into locks/
	$(COMPILE) pyproject.toml -o locks/runtime.txt
	$(COMPILE) bench/requirements.in -o locks/bench.txt
	$(COMPILE) pyproject.toml --extra snowflake -c locks/runtime.txt -o locks/snowflake.txt
	$(COMPILE) pyproject.toml --extra postgresql -c locks/runtime.txt -o locks/postgresql.txt
	$(COMPILE) pyproject.toml --extra notifications -c locks/runtime.txt -o locks/notifications.txt
	$(COMPILE) pyproject.toml --group local -c locks/runtime.txt -o locks/local.txt
	$(COMPILE) pyproject.toml --group local --group dev -c locks/local.txt -o locks/dev.txt
	for group in uv build temporal; do $(COMPILE) --group $$group -o locks/$$group.txt || exit 1; done

bench: setup ## Measure whole runs beside what people do without Sluice, and draw the plots (hours)
	$(PY) -m bench
	$(PYTHON) -m venv .sluice/bench && .sluice/bench/bin/pip install -q --require-hashes -r locks/bench.txt
	.sluice/bench/bin/python bench/plot_runs.py docs/measurements docs/images/runs.png

bench-quick: setup ## Measure with small inputs and few rounds, for a look while you work
	$(PY) -m bench --quick

bench-audit: setup ## Measure the audit beside SQL by hand and the checking libraries (about half an hour)
	$(PYTHON) -m venv .sluice/bench && .sluice/bench/bin/pip install -q --require-hashes -r locks/bench.txt
	$(VENV)/bin/python -m bench.audit --rounds 3 --libraries .sluice/bench/bin/python --out docs/measurements/audit.json

docs: setup-python ## Renew docs/commands.md, and the tables in docs/checks.md and docs/order.md
	$(VENV)/bin/python -m sluice.presentation.reference
	$(VENV)/bin/python -m cli.command_reference

clean: python-version ## Show what set-up and the local stack made, ask, and remove it; YES=1 does not ask
	@$(PYTHON) -m devstack.clean $(if $(filter-out 0 no false,$(YES)),--yes)

setup-python: python-version
	$(SET_UP) python

python-version:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Sluice needs Python 3.10 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3."; exit 1; }
