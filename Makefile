# Everything from nothing but Python >= 3.11 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# uv installs in a quarter of pip's time; it comes from pip itself.
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest
# An idle process takes tests from the other.
EVERY_CORE := --numprocesses logical --maxprocesses 8 --dist worksteal
# What `make check` tests besides what changed since main and the contracts: a folder, such as decision or agents/maths.
ROOM   ?=
# What `make mutants` draws: so many mutants of each room, others with another seed.
SEED   ?= 0
SAMPLE ?= 100
# The benchmarks that `make bench` runs; none named is all of them.
BENCH  ?=

# Tests write many small files: memory takes them in a third of a disk's time.
ifeq ($(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "large"}'),large)
export TMPDIR := /dev/shm
endif
# uv stops where it cannot keep what it downloads.
ifeq ($(shell test -w "$$HOME" && echo writable),)
export UV_CACHE_DIR ?= $(CURDIR)/$(VENV)/.uv-cache
endif
# Compiled modules are kept, whatever a container's environment says: without them each process compiles all of it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check landing tests lint test-exhaustive test-oldest test-newest resolve lock bench mutants clean

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jurygraph needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(INSTALL) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(INSTALL) --editable '.[dev]'
	touch $@

# By pip, which takes a CPU build of torch where the machine has one; uv would fetch the one with CUDA.
$(VENV)/.heavy: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,heavy]'
	touch $@

# The newest versions that pyproject.toml allows.
lock: $(VENV)/.dev
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --upgrade --no-annotate \
	    --custom-compile-command 'make lock' --quiet --output-file constraints.txt

# `make demo ALL=--all` goes on with the other examples.
ALL ?=
demo: $(VENV)/.demo
	rm -rf demo-run
	$(BIN)/jurygraph demo $(ALL)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

tests: $(VENV)/.dev
	$(PYTEST) $(EVERY_CORE) $(CHOSEN)

test: $(VENV)/.dev
	+$(MAKE) --no-print-directory --jobs=2 lint tests

# What `.ci/run` adds: the tests that start processes, or are dear.
landing: $(VENV)/.dev
	$(PYTEST) -m 'landing and not exhaustive and not heavy' $(EVERY_CORE)

# `make test` with fewer tests.
check: $(VENV)/.dev
	+chosen=$$($(BIN)/python -m tests.changed $(ROOM)) && \
	    $(MAKE) --no-print-directory --jobs=2 lint tests CHOSEN="--cpu-limit 5 $$chosen"

# Gates nothing. TESTS="tests/runs" runs the part that a change touches.
TESTS ?= tests
test-exhaustive: $(VENV)/.heavy
	HYPOTHESIS_PROFILE=thorough $(PYTEST) -m 'landing or exhaustive or heavy or hypothesis' $(EVERY_CORE) $(TESTS)

# `make test` without the lock: at the lowest versions that pyproject.toml allows, or at the newest. What old versions
# deprecate in one another is not ours.
VERSIONS_oldest := lowest-direct
VERSIONS_newest := highest
OPTIONS_oldest := -W ignore::DeprecationWarning
test-oldest test-newest: test-%: $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(VENV)-$*
	$(BIN)/uv pip install --quiet --python $(VENV)-$*/bin/python --resolution $(VERSIONS_$*) --editable '.[dev]'
	$(VENV)-$*/bin/python -m pytest $(EVERY_CORE) $(OPTIONS_$*)

# Queries the package index, and installs nothing.
resolve: $(VENV)/.dev
	$(BIN)/python -m tests.resolve

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

# In no other target: it runs the tests of the deterministic core once for every mutant of a seeded sample.
mutants: $(VENV)/.dev
	$(INSTALL) --editable '.[dev,mutants]'
	$(BIN)/python -m tests.mutants --seed $(SEED) --sample $(SAMPLE)

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
