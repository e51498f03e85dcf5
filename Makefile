# make setup   .venv with everything the crawler needs; the compiled text steps too where a C compiler is
# make native  those steps anew, with a compiler from PyPI where there is none
# make demo    a real crawl of the bundled miniature web, on loopback (JOBDIR=..., ARGS='-a strategy=bfs ...')
# make cluster-demo  the same web by four shards, with a Redis of their own
# make lint    style and types
# make test    all tests but the long ones
# make slow    those, and the tests of properties with all their examples
# make bench   the benchmark of whole crawls, with what it compares with
# make profile a flame graph of the main process, benchmarks/flame.svg
# make models  the bundled language models, from the texts in ../shared/data (or TEXTS=DIR, SEEDS=FILE)
# Needs Python >= 3.11 with venv, and make; nothing is installed outside of .venv.
PYTHON ?= python3
BIN := .venv/bin
JOBDIR ?= crawls/demo
.DELETE_ON_ERROR:
.PHONY: setup native setup-test setup-bench demo cluster-demo test slow lint bench profile models clean

NATIVE := $(wildcard native/*.py native/*.toml native/src/spiderling_native/*.p*)

setup: .venv/installed .venv/native
setup-test: .venv/installed-test .venv/native
setup-bench: .venv/installed-bench .venv/native

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Spiderling needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Say which with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing: install it first (Debian and Ubuntu: apt install python3-venv; Fedora has it in python3)." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/created requirements.txt constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements.txt
	@touch $@

.venv/native: .venv/installed $(NATIVE)
	@$(BIN)/python native/install.py
	@touch $@

native: .venv/installed
	@$(BIN)/python native/install.py --zig
	@touch .venv/native

.venv/installed-test: .venv/installed requirements-test.txt constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-test.txt
	@touch $@

.venv/installed-bench: .venv/installed benchmarks/requirements.txt constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/requirements.txt
	@touch $@

demo: setup
	@$(BIN)/python -m examples.demo $(JOBDIR) $(ARGS)

cluster-demo: JOBDIR = crawls/cluster-demo
cluster-demo: setup
	@$(BIN)/python -m examples.demo $(JOBDIR) -s SPIDERLING_SHARDS=4 $(ARGS)

test: setup-test
	$(BIN)/python -m pytest -n auto --dist worksteal

slow: setup-test
	HYPOTHESIS_PROFILE=all $(BIN)/python -m pytest -n auto --dist worksteal -m "slow or hypothesis"

lint: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-bench
	$(BIN)/python benchmarks/crawl.py

profile: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt py-spy
	$(BIN)/python benchmarks/flame.py

models: setup
	$(BIN)/python models/build.py $(if $(TEXTS),--texts $(TEXTS)) $(if $(SEEDS),--seeds $(SEEDS))

clean:
	rm -rf .venv build native/build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
