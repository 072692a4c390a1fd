# Everything is done in .venv, made on first use from constraints.txt. Another Python: `make PYTHON=python3.12 test` (before .venv is there).

PYTHON ?= python3
# pytest-xdist: twice the cores of a small machine, since most tests wait for a disk or a broker; they share one broker.
WORKERS ?= 4
PYTEST_ARGS ?=
MINUTES ?= 20
SEED ?=
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test faults chaos bench check format broker-up broker-down constraints clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: .venv/installed-runtime ## what the store does, in a minute; needs Python 3.11 or newer, nothing else
	@$(BIN)/eventlog demo

test: .venv/installed-dev ## every test; those on Kafka need Java 17 and Maven and start a broker themselves
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

faults: .venv/installed-dev ## kills, hangs and cuts at every boundary, on real parts; a quarter of an hour on two cores
	@$(BIN)/python -m pytest -m faults -n 2 --dist loadgroup $(PYTEST_ARGS)

chaos: .venv/installed-dev ## disturb both logs at random for MINUTES=20, and hold every answer against them; SEED=s draws the same again
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bench: .venv/installed-bench ## the benchmarks, side by side; see benchmarks/
	@$(BIN)/python -m benchmarks

check: .venv/installed-dev ## lint, format, types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: .venv/installed-dev ## format, and fix what lint can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

broker-up: .venv/installed-runtime ## start a local broker in .broker; needs Java 17 and Maven
	@$(BIN)/eventlog broker up

broker-down: .venv/installed-runtime ## stop it
	@$(BIN)/eventlog broker down

constraints: ## pin anew what every extra needs, newest versions that pyproject.toml allows; run it with Python 3.11
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "constraints.txt is made with Python 3.11: make PYTHON=python3.11 constraints")'
	@echo "resolving all dependencies for constraints.txt ..."
	@rm -rf .venv/constraints && $(PYTHON) -m venv .venv/constraints
	@.venv/constraints/bin/pip install --quiet --disable-pip-version-check --editable '.[dev,bench,notebook]'
	@sed '/^[^#]/,$$d' constraints.txt > .venv/constraints.head
	@.venv/constraints/bin/pip freeze --exclude-editable > .venv/constraints.pins
	@cat .venv/constraints.head .venv/constraints.pins > constraints.txt
	@rm -rf .venv/constraints .venv/constraints.head .venv/constraints.pins

clean: ## remove what was installed or made here; stops the broker in .broker first
	@if [ -x $(BIN)/eventlog ] && [ -d .broker ]; then $(BIN)/eventlog broker down; fi
	@rm -rf .venv .broker demo-store dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv .venv

# One stamp a set of dependencies: `make demo` installs no test tools.
.venv/installed-runtime: $(PINS) | .venv/bin/pip
	@echo "installing into .venv: the store"
	@$(PIP) --editable .
	@touch $@

.venv/installed-dev: $(PINS) | .venv/bin/pip
	@echo "installing into .venv: the store and its test tools"
	@$(PIP) --editable '.[dev]'
	@touch $@ .venv/installed-runtime

.venv/installed-bench: $(PINS) | .venv/bin/pip
	@echo "installing into .venv: the store and what it is measured against"
	@$(PIP) --editable '.[bench]'
	@touch $@ .venv/installed-runtime
