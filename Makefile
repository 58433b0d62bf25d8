# Two commands matter: `make lab` to learn, `make test` to check everything. Both install what they need.

.DEFAULT_GOAL := help
.PHONY: help lab test lint test-versions test-colab stubs clean

VENV := .venv
# `make test PYTEST_ARGS="-k softmax"` or `make lab LAB_ARGS="--no-browser --port 9000"` pass more on.
PYTEST_ARGS ?=
LAB_ARGS ?=
TRITONS ?= 3.6.0 3.7.1 3.8.0 3.9.0
# Given on the command line or in the environment, PYTHON names the interpreter to build environments with.
export PYTHON

help:
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

# The settings folder turns JupyterLab's news and update pop-ups off.
lab: ## open the course in JupyterLab (the first time, install it)
	@scripts/setup.sh $(VENV) -c constraints.txt -e .
	@$(VENV)/bin/python -m jupyterlab $$([ "$$(id -u)" != 0 ] || echo --allow-root) \
		--ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
		--LabApp.app_settings_dir="$(CURDIR)/scripts/jupyterlab" $(LAB_ARGS)

test: lint ## check everything: lint, kernels, checker, notebooks, browser
	$(VENV)/bin/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

lint: ## ruff over code and notebooks; the import contract; notebooks stored without outputs
	@scripts/setup.sh $(VENV) -c constraints.txt -e '.[test]'
	$(VENV)/bin/python scripts/lint.py

test-versions: ## the tests that must hold on every supported Triton, on each of them
	@failed=; for version in $(TRITONS); do \
		scripts/setup.sh .venvs/triton-$$version -c constraints.txt -e '.[test]' && \
		scripts/setup.sh .venvs/triton-$$version --no-deps triton==$$version && \
		echo "== Triton $$version" && \
		.venvs/triton-$$version/bin/python -m pytest -n 2 --dist loadgroup -m versions $(PYTEST_ARGS) || \
		failed="$$failed $$version"; \
	done; [ -z "$$failed" ] || { echo "Did not pass on Triton$$failed."; exit 1; }

test-colab: ## run the notebooks on the versions that Colab has
	@scripts/setup.sh .venvs/colab -r constraints-colab.txt pytest pytest-timeout nbformat
	PYTHONPATH="$(CURDIR)" .venvs/colab/bin/python -m pytest -m notebooks $(PYTEST_ARGS)

stubs: ## write the exercise stubs that are missing, from solutions/
	@scripts/setup.sh $(VENV) -c constraints.txt -e .
	$(VENV)/bin/python -m course_kernels.lab stubs

clean: ## remove the environments that these commands made
	rm -rf .venv .venvs
