# Two commands are all a newcomer needs: `make demo` and `make test`. Both set everything up first, as `make quick` does.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Many tests start Python: bytecode that is kept saves each process the compilation of Forge.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-ray test-web test-agents-real test-transformers test-vllm quick check docs scores performance measurement registry clean setup

demo: $(READY)  ## the whole loop on shipped examples, in a throw-away workspace
	@rm -rf .demo
	@$(BIN)/forge demo --home .demo

test: $(READY)  ## every test that needs no GPU
	@$(BIN)/python -m pytest -n auto --dist worksteal

test-ray: $(READY)  ## jobs on the nodes of a Ray cluster on this machine; installs Ray (minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	@$(BIN)/python -m pytest -n 2 --dist worksteal tests/cluster

test-web: $(READY)  ## the pages in Chromium, the API with generated input, an agent's session with real gates (5 minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[web-tests]'
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium)
	@if ! command -v npm >/dev/null; then echo "the MCP inspector needs Node, and npm isn't on the PATH: its test is left out"; \
	elif ! npm install --silent --no-audit --no-fund --prefix .agents $(INSPECTOR); then echo "npm can't install $(INSPECTOR): its test is left out"; fi
	@FORGE_TEST_WEB=1 FORGE_TEST_INSPECTOR=$(CURDIR)/.agents/node_modules/.bin/mcp-inspector $(BIN)/python -m pytest -n 2 --dist loadfile tests/browser

INSPECTOR ?= @modelcontextprotocol/inspector

# The version that was tried; another one is `make test-agents-real CODEX=@openai/codex@latest`.
CODEX ?= @openai/codex@0.169.0

test-agents-real: $(READY)  ## the real Codex CLI writes a candidate in a session, against a scripted server on loopback
	@if ! command -v npm >/dev/null; then echo "skipped: the Codex CLI needs Node, and npm isn't on the PATH"; \
	elif ! npm install --silent --no-audit --no-fund --prefix .agents $(CODEX); then echo "skipped: npm can't install $(CODEX)"; \
	else FORGE_TEST_CODEX=$(CURDIR)/.agents/node_modules/.bin/codex $(BIN)/python -m pytest -n 0 tests/agents; fi

test-transformers: $(READY)  ## a Llama of transformers with adopted norms; installs transformers (a minute)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[transformers]'
	@$(BIN)/python -m pytest -n 0 tests/engines/test_transformers.py

test-vllm: $(READY)  ## the provider inside vLLM; vLLM chooses torch's version, so it takes an environment of its own (minutes)
	@test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	@.venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check vllm -e '.[lab,dev]'
	@.venv-vllm/bin/python -m pytest -n 0 tests/engines/test_vllm.py

quick: $(READY)  ## tests that need neither torch nor another process, and each gate alone on one evil candidate
	@$(BIN)/python -m pytest -n auto --quick
	@$(BIN)/python -m pytest -n auto --gates tests/evil

check: $(READY)  ## format, lint, types, layers, documentation
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy benchmarks
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python docs/generate.py --check
	@$(BIN)/python docs/api.py --check

docs: $(READY)  ## write the generated reference pages anew
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/api.py

performance: $(READY)  ## measure the ledger beside others, and write its page anew (minutes)
	@$(BIN)/python benchmarks/ledger.py --json > docs/performance.json
	@$(BIN)/python benchmarks/projections.py audit --into docs/performance.json
	@$(BIN)/python benchmarks/projections.py rebuild --events 100000 --rounds 3 --into docs/performance.json
	@$(BIN)/python benchmarks/read_side.py --into docs/performance.json
	@$(BIN)/python benchmarks/page.py docs/performance.json

measurement: $(READY)  ## on a GPU: hold the clock against itself and against the field's, and write its section anew (minutes)
	@$(BIN)/python benchmarks/measurement.py --json > docs/measurement-gpu.found.json
	@$(BIN)/python benchmarks/measurement_page.py docs/measurement-gpu.found.json
	@rm docs/measurement-gpu.found.json

scores: $(READY)  ## try every operation on known wrong answers, and write down what came of it (a minute)
	@$(BIN)/python benchmarks/mutant_scores.py
	@$(BIN)/python docs/generate.py

registry: $(READY)  ## on an H200: take every shipped GPU kernel through the pipeline, in the shipped workspace
	@$(BIN)/python benchmarks/registry.py .

setup: $(READY)

# torch comes first and pinned: a CPU build where the registry has one. Nothing else may choose its version.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Forge needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (torch and what the lab needs: a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,dev]'
	@touch $(READY)

clean:  ## remove what make made
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
