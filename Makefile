# `make run` uses the project, `make test` proves it; `make help` lists the rest.
# Assumes only python3 (3.11 or newer) and make, GNU make 3.81 of macOS included.
# All paths are relative, so that a clone in a folder with spaces works.

.DEFAULT_GOAL := help
.PHONY: help install install-test run test test-dagster coverage test-deep test-acceptance test-faults test-bench test-pg15 test-pgbouncer test-newest-dagster mutants migration pages pictures bench bench-install celery-install clients-install test-clients check audit format lock clean

# Scripts that pip makes name their interpreter in double quotes, in which a shell runs what such a name says.
ifneq ($(findstring `,$(CURDIR))$(findstring $$,$(CURDIR)),)
$(error This folder has a dollar sign or a backquote in its path. Move it to one without)
endif

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# Python compiles what is used when it is first used. Compiling everything while installing takes a third of that
# time; never keeping what was compiled, as some environments ask, costs each of hundreds of processes.
PIP_INSTALL := $(PIP) install --no-compile --no-deps
export PYTHONDONTWRITEBYTECODE :=
# uv installs in seconds what takes pip a minute, from the same lock with the same hashes. Where it cannot, as behind a
# mirror that only pip is told of, pip does it, or says why not.
UV_INSTALL := UV_HTTP_RETRIES=0 $(BIN)/uv pip install --quiet --no-cache --no-deps --require-hashes --system-certs --python $(BIN)/python
LOCKED_INSTALL = $(UV_INSTALL) -r $(1) 2>/dev/null || $(PIP_INSTALL) --require-hashes -r $(1)
# Into another environment, whose own pip is as old as its Python.
LOCKED_INTO = $(BIN)/python -m pip --python $(1)/bin/python --disable-pip-version-check --no-input --quiet \
	install --no-compile --no-deps --require-hashes -r $(2)
# Interpreters to try, in this order; `make run PYTHON=python3.12` tries only that one.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
PG15 ?= /usr/lib/postgresql/15/bin
# `make run ARGS=--no-demo`, `make test ARGS="-k queue"`, `make lock ARGS=--upgrade`
ARGS ?=

help: ## List these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

install: $(VENV)/.project ## Make the virtual environment and install the pinned dependencies
	@:

install-test: install $(VENV)/.test
	@:

run: install ## Start everything and print the URLs (ARGS=--no-demo leaves out the sample and its demo viewer)
	@exec $(BIN)/pricing-pipeline up $(ARGS)

# Each folder of tests belongs to one target, named beside it.
PYTEST := $(BIN)/pytest -n auto --dist loadgroup
ALL := pricing_pipeline_tests
BOOKKEEPING := $(ALL)/bookkeeping
DEEP := $(ALL)/deep
ACCEPTANCE := $(ALL)/acceptance
FAULTS := $(ALL)/faults
BENCHMARKS := $(ALL)/benchmarks
CLIENTS := $(ALL)/foreign_clients
DAGSTER := $(ALL)/orchestration
# The slow ones first: at the end, no process waits long for the last.
TESTS := $(ALL)/integration $(ALL)/unit

check: install-test ## Check format, lint, types, architecture, new migrations, pages and bookkeeping
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/squawk --no-error-on-unmatched-pattern migrations/versions/*.sql
	$(BIN)/python -m pricing_pipeline_tests.tools.provider_rules
	$(PYTEST) $(BOOKKEEPING)

audit: install-test ## Ask a public service for advisories about all locked packages (offline: ARGS="--from FILE")
	$(BIN)/python -m pricing_pipeline_tests.tools.advisories $(ARGS)

# PRICING_TEST_EXAMPLES=all tries properties with four times as many examples, and the largest cases.
test: install-test ## Run the tests of the code, with PostgreSQL and the sandbox (ARGS="-k queue" picks tests)
	$(PYTEST) $(TESTS) $(ARGS)

test-dagster: install-test ## Run the tests of assets, sensors, schedules and checks in a real Dagster
	$(PYTEST) $(DAGSTER) $(ARGS)

coverage: install-test ## Run both with coverage, which is slower, and list the lines that they do not reach
	$(PYTEST) --cov --cov-report term:skip-covered $(DAGSTER) $(TESTS) $(ARGS)

test-deep: install-test ## Run the models, the properties, the fuzzing of the API, exhaustive tables and clocks that step
	$(PYTEST) $(DEEP) $(ARGS)

test-acceptance: install-test ## Run the tests from end to end: programs as users start them, drains against the sandbox, Dagster's processes, a browser, programs that read prices
	$(PYTEST) $(ACCEPTANCE) $(ARGS)

test-faults: install-test ## Run the tests of faults: outages, storms, contention, crashes, wrong clocks, hostile answers
	$(PYTEST) $(FAULTS) $(ARGS)

test-bench: install-test ## Run every benchmark at its smallest, to see that it still answers
	$(BIN)/pytest $(BENCHMARKS) $(ARGS)

test-clients: install-test ## Let clients that others wrote for the providers read the sandbox (after clients-install)
	@test -x .venv-clients/bin/python || { echo "The clients are not installed. Run: make clients-install" >&2; exit 1; }
	$(BIN)/pytest $(CLIENTS) $(ARGS)

# What needs the wheel's server or no database at all is left to the targets above.
NOT_OF_DATABASE := channels_* cli_program own_files read_replica sandbox_* watchdogs
# Of the other folders, those of statements that no test of the usual kind tries.
DEEP_OF_DATABASE := history_files_model slots_synced hostile_arguments api_paging api_permissions pair_answers plans \
	registry_refusals
FAULTS_OF_DATABASE := files_at_once misbehaviour operations pages refresher_mishaps requests rows_of_clients threads \
	told_in_any_case upgrades wake_up
ACCEPTANCE_OF_DATABASE := backup contracts_replica refresher slots_end_to_end waits
OF_DATABASE := $(NOT_OF_DATABASE:%=--ignore-glob='*/test_%.py') $(ALL)/integration \
	$(DEEP_OF_DATABASE:%=$(DEEP)/test_%.py) $(FAULTS_OF_DATABASE:%=$(FAULTS)/test_%.py) \
	$(ACCEPTANCE_OF_DATABASE:%=$(ACCEPTANCE)/test_%.py)
# These are about HTTP, files and programs, and have no statements of their own.
NOT_OF_SQL := api_examples api_pipelining api_strangers computing declared_* description python_client recipes \
	threads threats
test-pg15: install-test ## Run the tests of the database on PostgreSQL 15 (PG15=folder of its programs)
	PRICING_TEST_POSTGRES_BIN=$(PG15) $(PYTEST) $(ARGS) $(NOT_OF_SQL:%=--ignore-glob='*/test_%.py') $(OF_DATABASE) $(BOOKKEEPING)/test_schema.py

test-pgbouncer: install-test ## Run the tests of the database through PgBouncer in transaction mode
	PRICING_TEST_PGBOUNCER=1 $(PYTEST) $(ARGS) $(OF_DATABASE)

# It sees the packages of the usual environment, and before them those of the newest Dagster.
NEWEST := .venv-newest-dagster
NEWEST_PIP = $(BIN)/python -m pip --python $(NEWEST)/bin/python --disable-pip-version-check --no-input --quiet install
NEWEST_DAGSTER := $(addsuffix ~=1.13.0,dagster dagster-graphql dagster-pipes dagster-shared dagster-webserver) dagster-postgres~=0.29.0
test-newest-dagster: install-test ## Run the tests of what uses Dagster on the newest 1.13 that the package index has
	$(BIN)/python -m venv --clear --without-pip $(NEWEST)
	@printf 'import site; site.addsitedir(r"%s")\n' "$$(echo "$$PWD"/$(VENV)/lib/python*/site-packages)" >"$$(echo $(NEWEST)/lib/python*/site-packages)/usual.pth"
	$(NEWEST_PIP) --ignore-installed --no-deps $(NEWEST_DAGSTER)
	$(NEWEST_PIP) $(NEWEST_DAGSTER)
	$(NEWEST)/bin/python -c "import dagster; print('Dagster', dagster.__version__)"
	$(NEWEST)/bin/python -m pytest -n auto --dist loadgroup $(DAGSTER) $(ACCEPTANCE)/test_launches.py \
		$(ACCEPTANCE)/test_dagster_*.py $(ARGS)

mutants: install-test ## Break the code on purpose, piece by piece, and see whether tests notice (ARGS="lock" picks)
	$(BIN)/python -m pricing_pipeline_tests.tools.mutants $(ARGS)

migration: ## Begin the next migration, a numbered file (NAME=add_place)
	@echo '$(NAME)' | grep -Eqx '[a-z][a-z0-9_]*' || { echo "Name what changes: make migration NAME=add_place" >&2; exit 1; }
	@last=$$(ls migrations/versions | tail -n 1 | cut -d _ -f 1); \
	file=$$(printf 'migrations/versions/%04d_%s.sql' "$$(expr "$$last" + 1)" '$(NAME)'); \
	echo '-- Why the tables change, in one sentence. CONTRIBUTING.md, "Changing SQL", says what belongs here.' >"$$file"; \
	echo "$$file"

pages: install-test ## Generate docs/maintainers/schema.sql, docs/maintainers/server.sql, docs/cli.md, the schema of declarations and the shapes of the client
	$(BIN)/python -m pricing_pipeline_tests.tools.schema_page
	$(BIN)/python -m pricing_pipeline_tests.tools.cli_page
	$(BIN)/python -m pricing_pipeline_tests.tools.declaration_schema
	$(BIN)/python -m pricing_pipeline_tests.tools.client_shapes

pictures: install-test ## Take the pictures of docs/images again (needs Chromium); look at them before you commit
	$(BIN)/python -m pricing_pipeline_tests.tools.pictures

format: install-test ## Rewrite the code as `make check` wants it
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: install ## Run all benchmarks (ARGS=--quick for the short ones, ARGS=--json for JSON)
	$(BIN)/python -m benchmarks all $(ARGS)

bench-install: install ## Install the queues that `make bench` compares with, in an environment of their own
	$(BIN)/python -m venv --clear .venv-bench
	$(call LOCKED_INTO,.venv-bench,requirements-bench.lock)

celery-install: install ## Install Celery for `make test-acceptance`, in a folder of its own
	rm -rf .packages-celery
	$(PIP_INSTALL) --require-hashes --target .packages-celery -r requirements-celery.lock

clients-install: install ## Install the clients that `make test-clients` judges the sandbox by, in an environment of their own
	$(BIN)/python -m venv --clear .venv-clients
	$(call LOCKED_INTO,.venv-clients,requirements-clients.lock)
	cp foreign_clients/package.json foreign_clients/package-lock.json .venv-clients
	@command -v npm >/dev/null || echo "There is no npm here, so the clients in JavaScript are left out." >&2
	! command -v npm >/dev/null || npm ci --prefix .venv-clients --ignore-scripts --no-audit --no-fund --silent

# Versions that are locked already stay, unless ARGS=--upgrade. What Celery shares with the project comes from its lock.
SHARED = $$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock)
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-annotate --custom-compile-command "make lock"

lock: install ## Write the lock files from pyproject.toml (ARGS=--upgrade raises versions)
	$(LOCK) $(ARGS) --extra dagster --extra parquet --group build pyproject.toml --output-file requirements.lock
	$(LOCK) $(ARGS) --group test --constraints requirements.lock --output-file requirements-test.lock
	$(LOCK) $(ARGS) --group celery --constraints requirements.lock $(SHARED) --output-file requirements-celery.lock
	$(LOCK) $(ARGS) --group bench --output-file requirements-bench.lock
	$(LOCK) $(ARGS) --group clients --output-file requirements-clients.lock
	! command -v npm >/dev/null || npm install --prefix foreign_clients --package-lock-only --omit-lockfile-registry-resolved

clean: ## Remove the virtual environment and all caches; data in .pricing stays
	rm -rf $(VENV) $(NEWEST) .venv-bench .venv-clients .packages-celery build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache \
		.hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment remembers its own folder in every script and dies with the interpreter that made it.
# So it holds only where the stamp names this folder and its Python still starts; otherwise it is made again.
ifneq ($(shell $(BIN)/python -c "print(open('$(VENV)/.runtime').read())" 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.runtime
endif

# Made again for a new lock file: packages that only the old one names must not linger.
# A new environment has the pip of its Python, up to 3.11 also setuptools, both as old as that. The locked pip takes the
# place of the first; nothing needs the second.
# --no-deps: the lock is complete (a test walks it), and pip 23.2 of Python 3.11 fails to match gql[requests] with
# the locked gql when it resolves on its own.
$(VENV)/.runtime: requirements.lock
	@for python in $(PYTHON); do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$python" --version) and installing the pinned dependencies (about 175 MB) ..."; \
			exec "$$python" -m venv --clear $(VENV); \
		fi; \
	done; \
	for python in $(PYTHON); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$python is new enough, but its modules venv and ensurepip are missing, so no virtual environment can be made." >&2; \
			echo "Install them (Debian and Ubuntu: apt-get install python3-venv), then run make again." >&2; \
			exit 1; \
		fi; \
	done; \
	for python in $(PYTHON); do \
		if command -v "$$python" >/dev/null 2>&1; then \
			echo "$$python is $$("$$python" --version 2>&1), but this project needs Python 3.11 or newer." >&2; \
			echo "Install a newer one and name it, for example: make run PYTHON=python3.12" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "No Python found (tried: $(PYTHON)). Install Python 3.11 or newer, then run make again." >&2; \
	exit 1
	@sed -n -e '/^pip==/,/[^\\]$$/p' -e '/^uv==/,/[^\\]$$/p' requirements.lock >$(VENV)/installers.lock
	@$(PIP_INSTALL) --require-hashes -r $(VENV)/installers.lock
	@$(BIN)/uv pip uninstall --quiet --python $(BIN)/python setuptools
	@$(call LOCKED_INSTALL,requirements.lock)
	@printf %s "$$(pwd -P)" >$@

$(VENV)/.project: $(VENV)/.runtime pyproject.toml client/pyproject.toml
	@$(PIP_INSTALL) --no-build-isolation --editable . --editable ./client
	@touch $@

$(VENV)/.test: $(VENV)/.runtime requirements-test.lock
	@echo "Installing the pinned test tools (about 170 MB) ..."
	@$(call LOCKED_INSTALL,requirements-test.lock)
	@touch $@
