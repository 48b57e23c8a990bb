# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

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

test: lint browser ## Set up, then run linters, type checker and all tests, some of them on the wheel without extras
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

browser: ## Install Debian's Chromium, which tests of pages need, where root and apt allow it
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
		echo "chromium is not here and cannot be installed: tests of pages are skipped"

lint: $(VENV)/.ready ## Linters and type checker alone
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

floors: $(VENV)/.ready ## Test with the oldest versions of all dependencies but torch, in .venv-floors; a quarter of an hour
	$(BIN)/python benchmarks/floors.py

docs: $(VENV)/.ready ## Build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Records and pages. Those that train read the benchmark graphs in SSGE_DATA.

pages: $(VENV)/.ready ## Renew all pages from the records; computes nothing
	$(BIN)/python benchmarks/pages.py

stale: $(VENV)/.ready ## List the records that the code, recipes and settings of today do not give
	$(BIN)/python benchmarks/pages.py --stale

results: $(VENV)/.ready ## Run the recipes of SSGE whose records are missing or stale: README, docs/results.md, docs/speed.md, docs/baselines.md
	$(BIN)/python benchmarks/recipes.py --methods ssge --seeds 5

baselines: $(VENV)/.ready ## Run the recipes of all methods whose records are missing or stale: docs/baselines.md
	$(BIN)/python benchmarks/recipes.py

quality: $(VENV)/.ready ## The default beside training-free methods: docs/quality.md; hours
	$(BIN)/python benchmarks/quality.py

selection: $(VENV)/.ready ## Whether label-free figures choose settings better than the default: docs/selection.md
	$(BIN)/python benchmarks/selection.py

clusters: $(VENV)/.ready ## Settings, the released bias and clusters: docs/clustering.md
	$(BIN)/python benchmarks/bias.py
	$(BIN)/python benchmarks/clusters.py

unseen: $(VENV)/.ready ## Nodes that training never saw: docs/own-graph.md
	$(BIN)/python benchmarks/unseen_nodes.py

outliers: $(VENV)/.ready ## Scores that find planted outliers
	$(BIN)/python benchmarks/outliers.py

floor: $(VENV)/.ready ## Floors under the eigenvalues
	$(BIN)/python benchmarks/eigenvalue_floor.py

bench: $(VENV)/.ready ## Start-up, speed and memory, scaling, on a quiet machine: docs/speed.md, docs/scaling.png
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/training_time.py
	$(BIN)/python benchmarks/scaling.py

precision: $(VENV)/.ready ## Accuracy of training in bf16 beside float32: docs/speed.md
	$(BIN)/python benchmarks/precision.py

family: $(VENV)/.ready ## Time of an epoch of CCA-SSG and G-BT beside SSGE, on a quiet machine
	$(BIN)/python benchmarks/family.py

efficiency: $(VENV)/.ready ## Parameters, time and memory of five methods as in the paper: docs/baselines.md
	$(BIN)/python benchmarks/efficiency.py

claims: $(VENV)/.ready ## Ablation and sweeps of the paper, and which of its claims held up: docs/claims.md; an hour
	$(BIN)/python benchmarks/claims.py

gaps: $(VENV)/.ready ## Methods without a record and the estimated time of their runs: docs/reproduce.md
	$(BIN)/python benchmarks/gaps.py

walks: $(VENV)/.ready ## Time of random walks
	$(BIN)/python benchmarks/walks.py

reading: $(VENV)/.ready ## Time and memory of reading ten million edges
	$(BIN)/python benchmarks/reading.py

clean: ## Remove what the other targets made
	rm -rf $(VENV) .venv-wheel .venv-floors demo runs site .mypy_cache .ruff_cache .pytest_cache
