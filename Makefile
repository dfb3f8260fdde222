# Everything runs in .venv, made on first use. PYTHON: 3.10 to 3.13.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

demo: $(READY)  ## train a classifier on 2 servers and 2 trainers, and prove it right
	$(BIN)/python examples/demo.py --out demo-out

test: $(READY)  ## the whole test suite
	$(BIN)/python -m pytest -n auto

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	# types are checked on an installed copy: mypy does not see editable mappings
	rm -rf build && $(BIN)/pip install -q --no-deps --target build/typed .
	cd build/typed && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p fluidx

bench: $(READY)  ## speed beside the peers, as ratios
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build demo-out .mypy_cache .pytest_cache .ruff_cache *.egg-info
