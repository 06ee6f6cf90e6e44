# Works with GNU make 3.81, which is what macOS has.
.DEFAULT_GOAL := help
.PHONY: help demo up down test test-current test-oldest test-connect test-long test-profile coverage test-wheel check golden site bench seeded-faults lock format clean setup

# pytest rewrites the asserts of a file once, not in every process
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/current/bin
OLDEST := .venv/oldest/bin
CODE := demux producer bronze_ingest install_workflow deserializer tests benchmarks tools docs/examples
PURE = $(wildcard tests/unit tests/property)
# each process has one Spark session, and one of three waits for a server or a process most of the time;
# a file's tests stay together (tests/support/order.py)
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder
# what tests that draw by chance begin with; `make test-long SEED=...` repeats what failed
SEED := $(or $(SEED),$(shell date +%s))
UV := uv
COMPILE = $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.10 --no-python-downloads \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-strip-extras \
	--custom-compile-command "make lock" --group dev $(UPGRADE)

# $(call with_java,LANE) starts a command line with a JAVA_HOME that the lane's Spark runs on.
with_java = JAVA_HOME=$$(sh tools/setup.sh java $(1)) && export JAVA_HOME &&

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

demo: .venv/current/.ready ## set up, then run the whole flow on 20 games; again: new events
	@$(call with_java,current) $(BIN)/demux demo

up: .venv/current/.ready ## start a Kafka broker, a schema registry and an S3 server on this machine, without Docker
	@$(BIN)/python -m tools.servers up

down: .venv/current/.ready ## stop what `make up` started, and remove its data
	@$(BIN)/python -m tools.servers down

test: .venv/current/.ready .venv/oldest/.ready ## every test but the long ones; in both lanes what may differ there
	@failed=; \
	$(MAKE) --no-print-directory test-current || failed="$$failed current"; \
	$(MAKE) --no-print-directory test-oldest || failed="$$failed oldest"; \
	$(MAKE) --no-print-directory test-wheel || failed="$$failed wheel"; \
	if [ -n "$$failed" ]; then echo "failed lanes:$$failed"; exit 1; fi

test-current: .venv/current/.ready ## every test on Spark 4.0 but the long ones
	@$(call with_java,current) CHROME_BIN=$$(sh tools/setup.sh browser current) && export CHROME_BIN; failed=0; \
	$(BIN)/python -m tools.servers build || failed=1; \
	$(BIN)/python -m tools.jars classes || failed=1; \
	$(BIN)/python -m pytest -n 2 $(PURE) || failed=1; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/spark tests/flow tests/kafka tests/store tests/browser || failed=1; \
	exit $$failed

test-oldest: .venv/oldest/.ready ## what may end otherwise on another Spark, on Spark 3.4
	@$(call with_java,oldest) $(OLDEST)/python -m tools.jars classes && $(OLDEST)/python -m pytest $(SIDE_BY_SIDE) -m "(both_lanes or oldest) and not long" tests/spark tests/flow tests/kafka/flow tests/store

test-connect: .venv/current/.ready ## a part of `make test`: over a Spark Connect server, in processes without a JVM
	@$(call with_java,current) $(BIN)/python -m pytest tests/flow/connect

test-long: .venv/current/.ready ## what goes on for an hour: random kills by the hundreds, fuzz by millions, a soak; SEED=... repeats
	@echo 'seed $(SEED): `make test-long SEED=$(SEED)` repeats what follows'
	@$(call with_java,current) failed=0; \
	$(BIN)/python -m pytest -n 2 -m "" --hypothesis-profile long --hypothesis-seed $(SEED) --seed $(SEED) $(PURE) || failed=1; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m long --seed $(SEED) tests/flow tests/store || failed=1; \
	$(BIN)/python -m tests.soak --minutes 5 --seed $(SEED) || failed=1; \
	exit $$failed

test-profile: .venv/current/.ready ## what each test of Spark 4.0 costs and starts, as a table; and tests/costs.txt
	@$(call with_java,current) CHROME_BIN=$$(sh tools/setup.sh browser current) && export CHROME_BIN; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations 40 --costs test-profile.tsv tests/spark tests/flow tests/kafka tests/store tests/browser

test-wheel: .venv/current/.ready ## the built wheel: what it replaces on clusters; unit tests on the oldest and newest Python here
	@$(BIN)/python -m tools.wheel

check: .venv/current/.ready ## format, lint, types, and unit tests: few random inputs, none of the thorough ones; no Java; a minute
	@failed=0; \
	$(BIN)/ruff format --check $(CODE) || failed=1; \
	$(BIN)/ruff check $(CODE) || failed=1; \
	$(BIN)/mypy || failed=1; \
	$(BIN)/python -m pytest -q -n 2 -m "not thorough and not long" --hypothesis-profile quick $(PURE) || failed=1; \
	exit $$failed

# tools/coverage/ and the package itself are on the path of every process; CHECK=... measures something else
CHECK ?= $(MAKE) --no-print-directory test-current
coverage: .venv/current/.ready ## branch coverage of the five packages by the tests of Spark 4.0, in build/coverage/
	@rm -rf build/coverage && $(BIN)/python -m pip install --quiet --target build/coverage/site 'coverage>=7.10'
	@export PYTHONPATH=$(CURDIR):$(CURDIR)/tools/coverage:$(CURDIR)/build/coverage/site; \
	export COVERAGE_PROCESS_START=$(CURDIR)/tools/coverage/coveragerc; failed=0; \
	$(CHECK) || failed=1; \
	unset COVERAGE_PROCESS_START; $(BIN)/python -m coverage combine --quiet --rcfile tools/coverage/coveragerc; \
	$(BIN)/python -m coverage report --rcfile tools/coverage/coveragerc >build/coverage/report.txt; \
	tail -1 build/coverage/report.txt; exit $$failed

golden: .venv/current/.ready ## rewrite tests/golden/ and docs/runbook.md from the code as it is; read the diff
	@$(BIN)/python -m pytest -q $(PURE) --rewrite-golden

site: .venv/current/.ready ## the documentation as a site, in build/site/; a link that leads nowhere is an error
	@$(BIN)/python -m tools.site

bench: .venv/current/.ready ## the benchmark, against the naive design
	@$(call with_java,current) $(BIN)/python -m benchmarks

seeded-faults: .venv/current/.ready .venv/oldest/.ready ## put 40 small faults into a copy of the code; a test must notice each
	@$(BIN)/python -m tools.seeded_faults

format: .venv/current/.ready ## rewrite the code as ruff likes it
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

lock: ## remake locks/ (needs uv; UPGRADE=--upgrade for newer versions)
	@$(COMPILE) --extra local --extra lineage --extra telemetry --output-file locks/current.txt
	@$(COMPILE) --extra local-oldest --output-file locks/oldest.txt

clean: ## remove the environments and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: .venv/current/.ready .venv/oldest/.ready ## make both environments

.venv/current/.ready: locks/current.txt pyproject.toml tools/setup.sh
	@sh tools/setup.sh install current

.venv/oldest/.ready: locks/oldest.txt pyproject.toml tools/setup.sh
	@sh tools/setup.sh install oldest
