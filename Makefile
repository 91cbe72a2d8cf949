# Everything a newcomer needs: `make demo` and `make test` set up .venv by themselves.
.DEFAULT_GOAL := help
.PHONY: help demo test test-whole test-self-image test-workers lint format docs pictures bench man clean

BIN := .venv/bin
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
WORKERS ?= 4 # twice the cores that CI has: tests wait for programs, time limits and disks as well
# Workers keep what they compile: without it each compiles all tests anew, 6 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

demo: .venv/.runtime ## a real run, without a key or a model, in a scratch folder
	@AGENTRUNNER="$(CURDIR)/$(BIN)/agentrunner" sh examples/quickstart/run.sh

test: .venv/.dev ## everything that must hold: style, types, layers, tests
	@$(MAKE) --no-print-directory -j 2 lint tests/__pycache__
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# Where nothing is compiled yet, workers that begin together would each compile all of it.
tests/__pycache__: | .venv/.dev
	@$(BIN)/pytest --collect-only -qq > /dev/null || true

test-whole: .venv/.dev ## the tests, and all the cases of which `make test` runs a sample
	WHOLE=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "whole or not whole"

test-self-image: .venv/.dev ## AgentRunner's own image, built, and runs in it; wants Docker and pip's index
	$(BIN)/pytest -s -m "whole or not whole" tests/integration/test_self_image.py

test-workers: .venv/.dev ## whole runs with further real CLIs, which are installed first (2 GB)
	scripts/install-workers.sh
	$(BIN)/pytest -s tests/workers_real/whole_runs.py
	$(BIN)/python -m tests.worker_table

# mypy ends with 2 where its processes do not start within 3 s, as on a busy machine.
lint: .venv/.dev ## style, types, layers and links of the documentation alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy || { [ $$? -eq 2 ] && $(BIN)/mypy --num-workers 0; }
	$(BIN)/lint-imports
	$(MKDOCS)

format: .venv/.dev ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: .venv/.dev ## the pictures of the README and the tutorial, from real runs
	$(BIN)/python scripts/picture.py

docs: .venv/.dev build/mermaid.min.js ## the documentation as a site, in build/site
	$(MKDOCS)

# Pages draw their diagrams with it; it is not in the check, which asks no network.
build/mermaid.min.js:
	@mkdir -p build
	npm pack --silent --pack-destination build mermaid@11
	tar -xzf build/mermaid-11*.tgz -C build --strip-components 2 package/dist/mermaid.min.js
	rm build/mermaid-11*.tgz

bench: .venv/.dev ## what it costs, as ratios to bases measured beside it (10 minutes)
	@failed=0; for name in cold overhead growth gateway box plan prompts repositories verify; do \
		$(BIN)/python -m benchmarks.$$name || failed=1; done; exit $$failed

man: .venv/.runtime ## man pages, in build/man1
	$(BIN)/agentrunner help --man build/man1

clean: ## remove the environment and what the tools have left
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/.runtime .venv/.dev: pyproject.toml scripts/setup.sh
	sh scripts/setup.sh $(@:.venv/.%=%)
	@touch $@
