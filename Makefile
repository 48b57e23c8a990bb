# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench results baselines clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@# The pin comes first and by itself: a looser demand would take a build with gigabytes of GPU libraries.
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.ready ## Set up, then embed the import graph of the installed packages: table, neighbors, pictures
	$(BIN)/ssge demo --out demo

test: lint ## Set up, then run linters, type checker and all tests, some of them on the wheel without extras
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.ready ## Linters and type checker alone
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

bench: $(VENV)/.ready ## Start-up, speed and memory against PyTorch Geometric and the floor, scaling; on a quiet machine, with SSGE_DATA
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/scaling.py

results: $(VENV)/.ready ## Run the recipes on the benchmark graphs found in SSGE_DATA and renew the README's table
	$(BIN)/python benchmarks/results.py

baselines: $(VENV)/.ready ## Run every method's recipes that have no record yet, with SSGE_DATA, and renew docs/baselines.md
	$(BIN)/python benchmarks/baselines.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) .venv-wheel demo runs .mypy_cache .ruff_cache .pytest_cache
