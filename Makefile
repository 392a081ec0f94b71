# Every target sets up what it needs in .venv: a machine with Python (3.11 or newer), pip and make is enough.
# Stamps in .venv remember what is installed, so a repeat starts at once; each set of extras has its own.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS   ?= 2
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal   # the long ones come last: no worker waits for the other

# Old libraries call what is deprecated since; and SciPy's quantiles of Student's t are good to 1e-12 only before 1.17.
LOWEST := -W ignore::DeprecationWarning -k "not (test_quantiles_invert and StudentT)" \
          tests/models tests/spec tests/regressions tests/results tests/report

# What other programs call and read; and a Python new enough for the newest of them, where the machine has one.
DOORS  := tests/doors tests/models/adapters tests/results tests/trust
NEWER  ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.13*/bin/python) $(shell command -v python3.13 python3.12))

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-all test-lowest test-doors lint docs renew bench bench-peers reproduce clean

help:           ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: $(VENV)/.core            ## compare two models on the sine data and say where the report is
	$(BIN)/supermodel demo

test: $(VENV)/.test            ## ruff and the default tests: what .ci/run calls
	$(BIN)/ruff check .
	$(PYTEST) -m "not slow"

test-long: $(VENV)/.test       ## pages and models that take minutes: .ci/run calls it too
	$(PYTEST) -m slow -k "how_many or stick_breaking" tests/test_documents.py tests/engine/explore/test_fold.py

test-all: $(VENV)/.test-all    ## all tests, the slow ones and those of every adapter as well
	$(PYTEST)

test-lowest: .venv-lowest/.test ## a part of the tests, with the lowest versions that pyproject.toml allows, in a .venv of its own
	.venv-lowest/bin/python -m pytest -n $(JOBS) -m "not slow" $(LOWEST)

test-doors: .venv-doors/.doors .venv-newest/.doors ## bilby, Cobaya, PyMC 5 and ArviZ 0.23; and PyMC 6, ArviZ 1 and all else of today
	.venv-doors/bin/python -m pytest -n $(JOBS) $(DOORS)
	test ! -e .venv-newest/bin/python || .venv-newest/bin/python -m pytest -n $(JOBS) -m "not slow" $(DOORS)

lint: $(VENV)/.lint            ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs            ## the documentation, into site/; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

renew: $(VENV)/.test           ## the results that README and docs print, made anew; make renew ARGS=--check only compares
	$(BIN)/python docs/hooks/renew.py $(ARGS)

bench: $(VENV)/.bench          ## the benchmarks
	$(BIN)/python -m benchmarks

bench-peers: .venv-peers/.peers ## beside every peer, for hours, in a .venv of its own; make bench-peers ARGS=--short for ten minutes
	.venv-peers/bin/python -m benchmarks peers $(ARGS)

reproduce: $(VENV)/.nested     ## every experiment of the paper; make reproduce ARGS=--fast for two minutes
	$(BIN)/supermodel reproduce $(ARGS)

clean:                         ## remove all that the targets made
	rm -rf $(VENV) .venv-lowest .venv-doors .venv-newest .venv-peers site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "supermodel needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

# .venv/.<extra> for each extra that a target asks for.
$(VENV)/.test $(VENV)/.test-all $(VENV)/.lint $(VENV)/.docs $(VENV)/.nested: $(VENV)/.%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[$*]"
	@touch $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[nested,dask]"
	@touch $@

.venv-lowest/.test: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[test]"
	@touch $@

.venv-doors/.doors: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-doors
	.venv-doors/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,pymc,bilby,cobaya,getdist]" arviz
	@touch $@

.venv-newest/.doors: pyproject.toml
	mkdir -p .venv-newest
	test -z "$(NEWER)" || $(NEWER) -m venv .venv-newest
	test -z "$(NEWER)" || .venv-newest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,pymc,bilby]" "arviz>=1"
	@touch $@

.venv-peers/.peers: pyproject.toml constraints.txt benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -r benchmarks/peers/requirements.txt
	@touch $@
