# make setup   .venv with this checkout and what a crawl needs (EXTRAS=all: and what all commands need), and with the
#              compiled text steps where a C compiler is
# make native  those steps anew, with a compiler from PyPI where there is none
# make demo    a real crawl of the bundled miniature web, on loopback (JOBDIR=..., ARGS='-a strategy=bfs ...')
# make cluster-demo  the same web by four shards, with a Redis of their own (Debian and Ubuntu: apt install redis-server)
# make lint    style and types
# make test    all tests but the long ones, in three processes a core, since they mostly wait
# make slow    those, the tests of properties with all their examples, and whole crawls on Scrapy's own engine
# make docs    the documentation as a site, in build/site
# make release  wheels and source distributions in build/release/dist, each installed and tried (PYTHONS='python3.12 ...')
# make bench   the benchmark of whole crawls, with what it compares with
# make models  the bundled language models, from the texts in ../shared/data (or TEXTS=DIR, SEEDS=FILE)
# Needs Python >= 3.11 with venv, and make; nothing is installed outside of .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# docs/install.md says what each extra takes; what is there already stays in use
CRAWL := cluster
FULL := test slow lint bench setup-test setup-bench
EXTRAS ?= $(if $(wildcard .venv/with-all)$(filter $(FULL),$(MAKECMDGOALS)),all,$(CRAWL))
JOBDIR ?= crawls/demo
# else each process of the tests compiles the sources anew
unexport PYTHONDONTWRITEBYTECODE
.DELETE_ON_ERROR:
.PHONY: setup native setup-test setup-bench demo cluster-demo test slow lint docs release bench models clean

NATIVE := $(wildcard native/*.py native/*.toml native/src/spiderling_native/*.p*)

setup: .venv/with-$(EXTRAS) .venv/native
setup-test: .venv/installed-test .venv/native
setup-bench: .venv/installed-bench .venv/native

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Spiderling needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Say which with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing: install it first (Debian and Ubuntu: apt install python3-venv; Fedora has it in python3)." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# the checkout itself is what is installed; an egg-info beside it would shadow what .venv knows of its commands
.venv/with-$(EXTRAS): .venv/created pyproject.toml setup.py constraints.txt
	$(PIP) --editable '.$(EXTRAS:%=[%])'
	@rm -rf scrapy_spiderling.egg-info
	@touch $@

.venv/native: constraints.txt $(NATIVE) | .venv/with-$(EXTRAS)
	@$(BIN)/python native/install.py
	@touch $@

native: .venv/with-$(EXTRAS)
	@$(BIN)/python native/install.py --zig
	@touch .venv/native

.venv/installed-test: .venv/with-$(EXTRAS) requirements-test.txt
	$(PIP) -r requirements-test.txt
	@touch $@

.venv/installed-bench: .venv/with-$(EXTRAS) benchmarks/requirements.txt
	$(PIP) -r benchmarks/requirements.txt
	@touch $@

demo: setup
	@$(BIN)/python -m examples.demo $(JOBDIR) $(ARGS)

cluster-demo: JOBDIR = crawls/cluster-demo
cluster-demo: setup
	@$(BIN)/python -m examples.demo $(JOBDIR) -s SPIDERLING_SHARDS=4 $(ARGS)

test: setup-test
	$(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print(3 * (os.cpu_count() or 1))') --dist worksteal

slow: setup-test
	HYPOTHESIS_PROFILE=all $(BIN)/python -m pytest -n auto --dist worksteal -m "slow or hypothesis"
	STOCK_SCRAPY=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/crawl tests/archives tests/web

lint: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# tools of environments of their own, since nothing else needs them; the variable silences advice on Zensical.  With
# --quiet strict would see no warning
docs: .venv/docs/installed
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build

release: .venv/release/installed
	.venv/release/bin/python -m release $(PYTHONS)

.venv/%/installed: %/requirements.txt | .venv/created
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench: setup-bench
	$(BIN)/python -m benchmarks.crawl

models: setup
	$(BIN)/python models/build.py $(if $(TEXTS),--texts $(TEXTS)) $(if $(SEEDS),--seeds $(SEEDS))

clean:
	rm -rf .venv build native/build simulator/build dist *.egg-info simulator/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
