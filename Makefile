# Everything from nothing but Python >= 3.11 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# What a module's tests share is made once: each module stays with one process.
EVERY_CORE := -n logical --maxprocesses 8 --dist loadfile
# What `make mutants` draws: so many mutants of each room, others with another seed.
SEED   ?= 0
SAMPLE ?= 100
# The benchmarks that `make bench` runs; none named is all of them.
BENCH  ?=

.PHONY: demo test test-slow lint bench mutants clean

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jurygraph needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

test: lint
	$(BIN)/python -m pytest $(EVERY_CORE)

test-slow: $(VENV)/.dev
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m 'slow or hypothesis' $(EVERY_CORE)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

# In no other target: it runs the tests of the deterministic core once for every mutant of a seeded sample.
mutants: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	$(BIN)/python -m tests.mutants --seed $(SEED) --sample $(SAMPLE)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
