# Everything a clone needs, on a machine with Python 3.11 or newer, a C compiler and make.
#
#   PYTHON=python3.12   the interpreter .venv is made with (only read when .venv does not exist)
#   TORCH=0             leave torch out, and with it the tests that need it

PYTHON ?= python3
TORCH ?= 1

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints.txt

ifeq ($(TORCH),0)
EXTRAS := dev
# Without torch its types are missing too, so only what never imports it can be checked.
TYPED := src
KEEP_TORCH := and not torch
else
EXTRAS := torch,dev,integration
TYPED :=
KEEP_TORCH :=
endif

# One stamp for each choice: TORCH=0 first and TORCH=1 later installs what is missing.
INSTALLED := .venv/.installed-torch-$(TORCH)
INPUTS := pyproject.toml constraints.txt $(wildcard src/pyrometer/_native/*.c src/pyrometer/_native/*.h)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all check browser sanitize bench bench-run baseline-page gate-page pictures map format clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r target text; do \
	  printf '  make %-10s %s\n' "$$target" "$$text"; done

demo: $(INSTALLED) ## train a small network under the profiler and print the report
	$(BIN)/pyrometer run examples/train_classifier.py

test: check ## format, lint, types, import contracts, and every test that is not slow
	$(PYTEST) -m "not slow $(KEEP_TORCH)"

test-all: check ## the same with the slow tests, among them the sanitizer builds
	$(PYTEST) -m "(slow or not slow) $(KEEP_TORCH)"

check: $(INSTALLED) browser
ifeq ($(TORCH),0)
	@echo "TORCH=0: torch is not installed; tests marked torch are left out, types are checked in src only."
endif
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(TYPED)

# Not a reason to stop: tests that open a page say why they are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium, for the tests that open reports."; \
	    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1 || \
	    echo "It cannot be installed here; those tests are skipped."; \
	  else \
	    echo "There is no chromium here; the tests that open reports are skipped. Debian: apt-get install chromium"; \
	  fi

sanitize: $(INSTALLED) ## the C core under AddressSanitizer and UBSan
	$(PYTEST) tests/native/test_sanitizers.py -m slow

bench: .venv/.installed-peers ## what a scope costs, beside other profilers
	$(BIN)/python benchmarks/cost_of_a_scope.py

bench-run: .venv/.installed-peers ## what a run costs training programs, beside other profilers
	$(BIN)/python benchmarks/cost_on_training.py

# The standard net at both of its batch sizes, as the page itself says how.
baseline-page: $(INSTALLED) ## measure the standard net and write docs/baseline.md
	for size in "32 20" "64 10"; do set -- $$size; \
	  $(BIN)/pyrometer run --no-report --warmup 3 -o build/baseline-$$1.json \
	    examples/standard_net.py --batch-size $$1 --batches $$2 || exit 1; done
	$(BIN)/pyrometer report build/baseline-32.json build/baseline-64.json --format baseline-page -o docs/baseline.md

gate-page: $(INSTALLED) ## count how often the gate is wrong into docs/gate-errors.md, from the gates that were kept
	$(BIN)/python benchmarks/gate_error_rate.py --summary --page docs/gate-errors.md

pictures: $(INSTALLED) browser ## draw the pictures of the docs anew
	$(BIN)/python docs/make_picture.py
	$(BIN)/pyrometer run --deep --no-report -o build/picture.json examples/train_classifier.py
	$(BIN)/python docs/make_page_pictures.py build/picture.json

# Some of the tests, as a program that goes through most of the package.
map: $(INSTALLED) ## map Pyrometer itself, with heat from its own tests, into docs/map-of-pyrometer
	$(BIN)/pyrometer run --no-report -o build/tests.json -m pytest -q tests/analysis tests/codemap tests/report/test_golden.py
	$(BIN)/pyrometer map src/pyrometer --heat build/tests.json -o build/map
	mkdir -p docs/map-of-pyrometer
	cp build/map/*.md build/map/*.svg docs/map-of-pyrometer/

format: $(INSTALLED) ## rewrite the sources in the one format, and fix what ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove .venv and everything built or cached
	rm -rf .venv build dist src/*.egg-info src/pyrometer/_native/*.so
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Pyrometer needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

$(INSTALLED): .venv/bin/python $(INPUTS)
	@echo "Setting up .venv with the extras $(EXTRAS): a minute or two, once."
	@$(INSTALL) -e '.[$(EXTRAS)]'
	@touch $@

.venv/.installed-peers: $(INSTALLED)
	@echo "Adding the profilers to compare with to .venv."
	@$(INSTALL) -e '.[$(EXTRAS),peers]'
	@touch $@
