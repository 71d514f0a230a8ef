# `make help` lists the targets. Everything runs inside .venv, which is built on first use.

# The first interpreter that is new enough; override with `make PYTHON=/path/to/python ...`.
NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
            $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && break; done)

SEED ?= 1
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
BROWSER := $(VENV)/.browser
PIP := $(RUN) -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs docs-site test test-all test-shapes test-shuffled coverage mutants house bench bench-quick browser check wheel matrix release-check \
  jax-lowest jax-locked jax-newest lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: $(STAMP) ## Reproduce three experiments in two minutes: verdicts, figures, a page
	@rm -rf out/demo
	@$(RUN) -m steppe reproduce bernoulli flatness rbm --scale quick --out out/demo

docs: $(STAMP) ## Build the documentation to out/docs; warnings are errors
	@$(RUN) -m sphinx -W --keep-going -q -b html -d out/doctrees docs out/docs
	@echo "out/docs/index.html"

VERSION ?= dev

docs-site: $(STAMP) ## Add the documentation as VERSION=0.2.0 (by default dev) to the versions in out/site
	@STEPPE_DOCS_VERSION="$(VERSION)" $(RUN) -m sphinx -W --keep-going -q -b html -d out/doctrees-site docs "out/site/$(VERSION)"
	@rm -rf out/site/jupyter_execute && $(RUN) docs/list_versions.py out/site
	@echo "out/site/index.html"

test: $(STAMP) $(BROWSER) ## Run the fast tests
	@$(RUN) -m pytest -m "not slow"

test-all: $(STAMP) $(BROWSER) ## Run every test, the slow ones too, on fully optimised programs
	@STEPPE_TEST_OPTIMISED=1 $(RUN) -m pytest

test-shapes: $(STAMP) ## Run the tests of the kernel with shapes and types checked at every call
	@STEPPE_TEST_SHAPES=1 $(RUN) -m pytest -m "not slow" tests/contract tests/exact tests/laws tests/statistics

test-shuffled: $(STAMP) $(BROWSER) ## Run the fast tests in one process and in a random order: SEED=2 for another
	@STEPPE_TEST_SHUFFLE=$(SEED) $(RUN) -m pytest -n 0 -m "not slow"

coverage: $(STAMP) $(BROWSER) ## Run the fast tests and say which lines they miss; too many is an error
	@$(RUN) -m pytest -m "not slow" --cov --cov-report=term

mutants: $(STAMP) ## Change the code in small ways, and say which changes no fast test notices; can be stopped
	@PYTHONPATH=tests $(RUN) -m mutants

house: $(STAMP) ## Print how large, how deep and how typed the code is
	@$(RUN) tests/house.py

bench: $(STAMP) ## Time every sampler beside the floor of the machine
	@cd benchmarks && for part in speed speed.growth speed.peers speed.processes; do ../$(RUN) -m $$part; done

bench-quick: $(STAMP) ## The main cells of `make bench`
	@cd benchmarks && ../$(RUN) -m speed --quick

browser: ## Install Chromium for the tests of the page, where apt-get and root allow it
	@tests/browser/install

# Tried once for each environment: a machine that cannot have a browser is not asked again.
$(BROWSER): $(STAMP)
	@tests/browser/install
	@touch $@

check: $(STAMP) ## Lint, check the formatting, check the types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m basedpyright

wheel: $(STAMP) ## Build wheels and source archives in dist/, and try them in an environment of their own
	@rm -rf dist && $(RUN) -m hatchling build -d dist -t sdist -t wheel
	@cd reproduction && ../$(RUN) -m hatchling build -d ../dist -t sdist -t wheel
	@cd bench && ../$(RUN) -m hatchling build -d ../dist -t sdist -t wheel
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && set -e; \
	"$(PYTHON)" -m venv "$$scratch/venv"; \
	"$$scratch/venv/bin/python" -m pip --disable-pip-version-check -qq install dist/steppe-*.whl; \
	cp .ci/smoke.py dist/*.whl "$$scratch" && cd "$$scratch"; \
	venv/bin/python -W error smoke.py; \
	venv/bin/python -m pip --disable-pip-version-check -qq install ./*.whl; \
	venv/bin/steppe reproduce --help >/dev/null; \
	venv/bin/steppe bench list >/dev/null

matrix: $(STAMP) ## Try the wheel and the unit tests on every Python from 3.11 on that is here
	@.ci/matrix

release-check: $(STAMP) ## Say whether TAG fits the version and the change log: make release-check TAG=v0.2.0
	@$(RUN) .ci/check_release.py "$(TAG)"

# Which JAX the tests run with: the lowest that pyproject.toml allows, the locked one, or the newest there is.
# `make clean` goes back to the locked one.
LOWEST_JAX := $(shell sed -n 's/^  "jax>=\([0-9.]*\)".*/\1/p' pyproject.toml)

jax-lowest: $(STAMP) ## Put the lowest JAX that is allowed into the environment
	@$(PIP) install --no-deps "jax==$(LOWEST_JAX)" "jaxlib==$(LOWEST_JAX)"

jax-locked: $(STAMP) ## Keep the locked JAX in the environment

jax-newest: $(STAMP) ## Put the newest JAX into the environment
	@$(PIP) install --upgrade jax jaxlib

$(STAMP): requirements.lock pyproject.toml reproduction/pyproject.toml bench/pyproject.toml
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || { \
	  echo "steppe needs Python 3.11 or newer with the venv module, and found none; install one or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@echo "Installing the locked packages into $(VENV); this takes a minute or two, once." >&2
	@$(RUN) -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV) || { \
	  echo "Could not create $(VENV) with $(PYTHON); on Debian and Ubuntu, install the package python3-venv first." >&2; \
	  exit 1; }
	@$(PIP) install --only-binary :all: --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable . --editable reproduction --editable bench
	@touch $@

EXTRAS := all

# Pins are kept where they still fit; `make lock LOCK_FLAGS=--upgrade` moves all of them.
lock: ## Resolve the dependencies again and rewrite requirements.lock
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && set -e; \
	"$(PYTHON)" -m venv "$$scratch/venv"; \
	"$$scratch/venv/bin/python" -m pip --disable-pip-version-check -qq install uv; \
	if [ -f requirements.lock ]; then cp requirements.lock "$$scratch/lock.txt"; fi; \
	"$$scratch/venv/bin/uv" pip compile pyproject.toml reproduction/pyproject.toml bench/pyproject.toml --quiet --no-emit-package steppe \
	  $(EXTRAS:%=--extra %) --group dev --group docs --group peers --group build \
	  --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links $(LOCK_FLAGS) \
	  --output-file "$$scratch/lock.txt" >/dev/null; \
	{ echo "# Every package steppe is developed and tested with, for Python 3.11 and newer, with hashes."; \
	  echo "# Written by 'make lock'; do not edit by hand."; \
	  grep -v '^#' "$$scratch/lock.txt"; } > requirements.lock

clean: ## Remove the environment, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
