# Every target sets up what it needs in .venv on its first run and is quick afterward.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test lint format docs bench dist clean

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.demo: $(VENV)/.pip pyproject.toml
	@echo "Installing skcalib with its nets and plots extras (plain torch is large: several GB with CUDA)"
	$(BIN)/python -m pip install --quiet --editable ".[nets,plots]"
	touch $@

$(VENV)/.test: $(VENV)/.pip pyproject.toml
	@echo "Installing skcalib with all extras and the test dependencies (plain torch is large: several GB with CUDA)"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group test
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

$(VENV)/.docs: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

demo: $(VENV)/.demo
	$(BIN)/python examples/plot_find_repair_calibrate.py

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -j auto docs docs/_build/html

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

dist: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf dist docs/_build docs/api docs/auto_examples demo_output .pytest_cache .mypy_cache .ruff_cache
