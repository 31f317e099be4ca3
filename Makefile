PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCHED := $(VENV)/.benched
# scikit-learn skips its checks of array inputs unless SciPy is told to accept them.
CONTRACT := tests/laws/test_sklearn_contract.py

.PHONY: demo test check bench format clean

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(INSTALLED)

$(BENCHED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $(BENCHED)

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/tumours.py
	$(BIN)/python examples/decisions.py
	$(BIN)/python examples/hospitals.py

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --ignore=$(CONTRACT)
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2 $(CONTRACT)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(BENCHED)
	$(BIN)/python -m benchmarks

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache demo
