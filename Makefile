# Every target sets up what it needs; `make` alone lists them. The work is done by scripts/setup.py and the packages' own commands.
PYTHON ?= python3
RUN := .venv/bin/python
ASSIGNMENT ?= ps3_quantization
LAB_ARGS ?=
ROLE ?= learner
TEST_ARGS ?=
BENCH_ARGS ?=
SITE_ARGS ?=
HUB_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help lab test test-matrix lint book site grade learner-dist hub soak bench bench-grading bench-site gpu-check clean

help:
	@echo "make lab      open the lessons in JupyterLab"
	@echo "make test     run all tests"
	@echo "make test-matrix  run the quick tests under each of Python 3.11, 3.12 and 3.13 that is installed"
	@echo "make book     build the site into book/_build/html"
	@echo "make site     build the site and serve it with its discussion on http://localhost:8000"
	@echo "make grade    grade the sample submissions, e.g. make grade ASSIGNMENT=ps3_quantization"
	@echo "make learner-dist  pack what learners need, and nothing else, into dist/learner.zip"
	@echo "make hub      start a JupyterHub for a class on this machine, with four users to try (as root)"
	@echo "make soak     put the server under five minutes of load with cancels, then check that nothing leaked"
	@echo "make bench    measure the engine on this CPU beside its peers (12 minutes, on a quiet machine)"
	@echo "make bench-grading  measure the autograder beside plain nbgrader, e.g. BENCH_ARGS=--quick"
	@echo "make bench-site  measure how fast the built site is, on a quiet machine"
	@echo "make gpu-check  check and measure the engine on a CUDA GPU, where there is one"
	@echo "make lint     run the style, type and import checks alone"
	@echo "make clean    delete what the targets made, .venv included"

# A learner sees neither instructors' tools nor the folders of the product; ROLE=instructor shows all.
# LAB_ARGS: options of JupyterLab, such as --no-browser
lab:
	@$(PYTHON) scripts/setup.py lab
	@$(RUN) scripts/lab.py $(if $(filter instructor,$(ROLE)),--instructor) $(LAB_ARGS)

test:
	@$(PYTHON) scripts/setup.py dev --programs chromium firefox bubblewrap
	@$(RUN) -m reference_impl fetch-model
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist loadfile $(TEST_ARGS)

# The tests that need neither model nor browser, under each Python that the course supports and this machine has.
test-matrix:
	@$(PYTHON) scripts/setup.py dev --programs bubblewrap
	@OMP_NUM_THREADS=1 $(RUN) scripts/matrix.py $(TEST_ARGS)

lint:
	@$(PYTHON) scripts/setup.py dev
	@$(RUN) -m pytest -q tests/test_repository.py

book:
	@$(PYTHON) scripts/setup.py book
	@$(RUN) -m reference_impl fetch-model
	@$(RUN) book/build.py

# SITE_ARGS: e.g. --port 80 --host 0.0.0.0 --origin https://serving.example.edu, or --no-discussion
site:
	@$(PYTHON) scripts/setup.py site
	@$(RUN) -m reference_impl fetch-model
	@$(RUN) book/build.py --if-changed
	@$(RUN) book/serve.py $(SITE_ARGS)

grade:
	@$(PYTHON) scripts/setup.py lab --programs bubblewrap
	@$(RUN) -m autograder grade $(ASSIGNMENT)

learner-dist:
	@$(PYTHON) scripts/setup.py lab
	@$(RUN) scripts/learner_dist.py

# HUB_ARGS: e.g. --folder /srv/serving-course --port 8000
hub:
	@$(PYTHON) scripts/setup.py hub --programs bubblewrap
	@$(RUN) hub/start.py $(HUB_ARGS)

soak:
	@$(PYTHON) scripts/setup.py lab
	@$(RUN) -m reference_impl fetch-model
	@$(RUN) -m reference_impl soak

bench:
	@$(PYTHON) scripts/setup.py bench
	@$(RUN) -m reference_impl fetch-model
	@$(RUN) -m reference_impl.benchmarks $(BENCH_ARGS)

bench-grading:
	@$(PYTHON) scripts/setup.py lab
	@OMP_NUM_THREADS=1 $(RUN) -m autograder.commands.bench $(BENCH_ARGS)

bench-site: book
	@$(PYTHON) scripts/setup.py test --programs chromium
	@$(RUN) book/measure.py $(BENCH_ARGS)

# The engine's own packages are enough; the tests that need a GPU run too where pytest is installed.
gpu-check:
	@$(PYTHON) scripts/setup.py engine
	@$(RUN) -m reference_impl.benchmarks --gpu $(BENCH_ARGS)

clean:
	rm -rf .venv .venv-3.* build book/_build node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
