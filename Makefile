# Every target sets up what it needs in .venv on its first run and is quick afterward.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test test-all test-quick lint format docs ablations bench dist test-wheel check-release clean

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
	$(BIN)/python examples/whole/plot_find_repair_calibrate.py

# Compiled modules are kept, also where the environment says otherwise: the tests start a hundred
# processes, and each would compile the package again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test: $(VENV)/.test
	$(PYTEST) -m "not long"

# With the tests that repeat at length what shorter ones show: after a change of an interval, a test
# or a threshold.
test-all: $(VENV)/.test
	$(PYTEST)

# Two cases of every test that takes less than a fifth of a second, and no examples.
test-quick: $(VENV)/.test
	$(PYTEST) --quick tests

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -j auto docs docs/_build/html
	$(BIN)/python docs/search_words.py docs/_build/html

ablations: $(VENV)/.test
	$(BIN)/python -m benchmarks.ablations $(if $(DATA),--data $(DATA))

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

dist: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# The tests of the core against the wheel, without extras and without the rest of the repository.
test-wheel: dist
	rm -rf build/wheel
	mkdir -p build/wheel
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	build/wheel/venv/bin/python -m pip install --quiet dist/*.whl --group test-core
	cp -r tests conftest.py pyproject.toml build/wheel
	cd build/wheel && venv/bin/python -m pytest -n $(JOBS) --dist worksteal tests

# Whether the version says the same everywhere: make check-release TAG=v0.1.0
check-release:
	@version=$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' skcalib/__init__.py); \
	test "$(TAG)" = "v$$version" || { echo "The tag is $(TAG), the version $$version."; exit 1; }; \
	grep -q "^version: $$version$$" CITATION.cff || { echo "CITATION.cff has another version."; exit 1; }; \
	grep -q "^date-released: " CITATION.cff || { echo "CITATION.cff lacks date-released."; exit 1; }; \
	grep -q "^## $$version (20" CHANGELOG.md || { echo "CHANGELOG.md has no date for $$version."; exit 1; }; \
	$(PYTHON) paper/build.py; git diff --quiet paper || { echo "paper.md has other figures than the evidence."; exit 1; }

clean:
	rm -rf dist docs/_build docs/api docs/auto_examples demo_output .pytest_cache .mypy_cache .ruff_cache
