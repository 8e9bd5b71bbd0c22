# Each target sets up what it needs (a virtual environment in .venv) and then runs. A second run skips the set-up.

PYTHON ?= python3
VENV   := .venv
SOAK_SECONDS ?= 120
FUZZ_ROUNDS ?= 10
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
# What is read of the pages once serves both builds.
DOCTREES := docs/_build/doctrees
# One process per core, and in each of them one thread for BLAS. Neighbours, which share fixtures, stay together.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses=8 --dist=worksteal

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test test-slow test-plain test-all coverage fuzz soak lint format docs dist bench bench-full clean
.DELETE_ON_ERROR:
# The stamps are made by pattern; make must not delete them as intermediate files.
.SECONDARY:

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.has-demo  ## a table of mixed columns and handwritten digits, beside other models (under a minute)
	@$(BIN)/python examples/demo.py

reproduce: $(VENV)/.has-plot  ## run the paper's experiment on bundled digits, with plots (about two minutes)
	@$(BIN)/polytrain reproduce digits

test: $(VENV)/.has-test  ## run the quick tests, on all cores (about five minutes on two)
	@$(PYTEST) -m "not slow and not cluster"

test-slow: $(VENV)/.has-test  ## run the other tests only (some minutes)
	@$(PYTEST) -m "slow or cluster"

test-plain: $(VENV)/.has-test  ## run the quick tests of what is compiled once more, without the compiled kernels
	@POLYTRAIN_NATIVE=0 $(PYTEST) -m "not slow and not cluster" tests/learning tests/maps tests/models tests/tensor

test-all: test test-slow test-plain  ## run all tests

coverage: $(VENV)/.has-dev  ## run the quick tests and print how much of the code they reach
	@$(PYTEST) -m "not slow and not cluster" --cov=polytrain --cov-report=term

fuzz: $(VENV)/.has-test  ## search new counter-examples with the property tests, FUZZ_ROUNDS (10) times; each round draws others
	@for round in $$(seq $(FUZZ_ROUNDS)); do \
	    echo "round $$round of $(FUZZ_ROUNDS)"; \
	    $(PYTEST) -q -m hypothesis --hypothesis-profile=fuzz --hypothesis-seed=$$($(BIN)/python -c 'import secrets; print(secrets.randbits(32))') tests paper/tests || exit 1; \
	done

soak: $(VENV)/.has-test  ## fit, save, interrupt and kill at random for SOAK_SECONDS (120), and look at what is left
	@$(BIN)/python tests/soak --seconds $(SOAK_SECONDS)

lint: $(VENV)/.has-dev  ## ruff (rules and format) and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.has-dev  ## let ruff fix and format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.has-docs  ## build docs/_build/html with the gallery (warnings are errors) and run the examples in its pages
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j 2 -d $(DOCTREES) -b html docs docs/_build/html
	@$(BIN)/python scripts/check_pages.py docs/_build/html
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -q -d $(DOCTREES) -b doctest docs docs/_build/doctest
	@echo "docs/_build/html/index.html is ready; its examples ran:"
	@tail -n 7 docs/_build/doctest/output.txt

dist: $(VENV)/.made  ## build the sdists and wheels of both packages into dist, install them in fresh environments and try them
	@$(BIN)/python scripts/smoke_dist.py

bench: $(VENV)/.has-dev  ## run the benchmarks
	@$(BIN)/python -m benchmarks

bench-full: $(VENV)/.has-dev  ## run the benchmarks, with the long ones
	@$(BIN)/python -m benchmarks --full

clean:  ## remove the environment, caches and built files
	rm -rf $(VENV) docs/_build docs/generated docs/gallery dist build paper/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src paper tests examples benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# --- set-up -----------------------------------------------------------------------------------------------------------

# One stamp per extra of pyproject.toml: made again when the metadata, the tested versions or the C sources change. Both
# packages in one command: the second needs the first in the very version that is here.
SOURCES := pyproject.toml paper/pyproject.toml constraints.txt hatch_build.py $(wildcard src/polytrain/native/*.[ch])
$(VENV)/.has-%: $(SOURCES) | $(VENV)/.made
	@echo "Installing polytrain[$*] and polytrain-paper into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e ".[$*]" -e "./paper$(if $(filter test dev,$*),[data])"
	@touch $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "polytrain needs Python 3.11 or newer, but '$(PYTHON)' is:" >&2; \
	    $(PYTHON) --version 2>/dev/null >&2 || echo "  not found" >&2; \
	    echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
	    exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	    echo "Making the virtual environment $(VENV) ..."; \
	    $(PYTHON) -m venv --clear $(VENV); }
	@touch $@
