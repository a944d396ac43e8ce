# `make up` runs Rekindle, `make test` judges a change. The rest is below; nothing is installed twice.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
PIP    := $(RUN) -m pip --disable-pip-version-check install --quiet --require-hashes

.PHONY: up install test lint types proof bench bench-pages pictures migrations lock clean

up: $(VENV)/installed
	$(RUN) manage.py up

install: $(VENV)/installed

# Two at a time, each on a database of its own: much of the time is spent waiting for processes.
test: lint types
	$(RUN) -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed-for-tests
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/installed-for-tests
	$(RUN) -m mypy

# The slow half of the tests: long crashes, many processes, whole machines.
proof: $(VENV)/installed-for-tests
	$(RUN) -m pytest -m proof

bench: $(VENV)/installed-for-tests
	$(RUN) -m tests.bench

bench-pages: $(VENV)/installed-for-tests
	$(RUN) -m tests.bench.pages

# Needs Chromium. Takes the pictures in docs/ anew, of the demo, in about four minutes.
pictures: $(VENV)/installed-for-tests
	$(RUN) -m tests.pictures

# An environment that was left half made is made again; a stamp is written only when everything is there.
$(VENV)/installed: requirements.lock
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) -r requirements.lock
	@touch $@

$(VENV)/installed-for-tests: requirements-test.lock $(VENV)/installed
	$(PIP) -r requirements-test.lock
	@touch $@

# Run by hand after a change of dependencies in pyproject.toml.
LOCK = $(RUN) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" --extra embedded

lock: $(VENV)/installed
	$(RUN) -m pip install --quiet uv
	$(LOCK) $(UPGRADE) pyproject.toml -o requirements.lock
	$(LOCK) --extra test --constraint requirements.lock pyproject.toml -o requirements-test.lock

# Until the first release each app has one migration, rewritten at will after a change of models.
migrations: $(VENV)/installed-for-tests
	rm -f workflows/migrations/0001_initial.py recovery/migrations/0001_initial.py
	$(RUN) manage.py makemigrations --no-header rekindle rekindle_recovery
	for app in workflows recovery; do sed -i \
		-e "s/^from django.db import migrations, models$$/&\nfrom $$app import schema/" \
		-e '$$ s/^    \]$$/        migrations.RunSQL(schema.FORWARD, schema.BACKWARD),\n    ]/' \
		$$app/migrations/0001_initial.py; done
	$(RUN) -m ruff check --quiet --fix workflows/migrations recovery/migrations
	$(RUN) -m ruff format --quiet workflows/migrations recovery/migrations

clean:
	rm -rf $(VENV) .data
