# Every target sets up what it needs. PYTHON names the interpreter that makes .venv.
PYTHON ?= python3
RUN := .venv/bin/python
JAVA := JAVA_HOME="$$(cat build/java-home)"

# Programs that tests start again and again read what Python compiled of them the first time, whatever a machine's image says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup java browser check test pipeline bench peers data papers papers-full soak bounds plain wheel release docs demo live clean document

setup: ; @$(PYTHON) scripts/setup.py
java: ; @$(PYTHON) scripts/java.py
browser: ; @command -v chromium || command -v chromium-browser || command -v google-chrome || \
	(apt-get update -qq && apt-get install -y -qq chromium)
check: setup ; .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports
# Hypothesis draws the same examples each time here, and few, so that a red run means a change; `make soak` and plain pytest draw new ones.
test: setup java ; $(JAVA) $(RUN) -m pytest -n 2 --dist loadgroup -q --durations 10 --hypothesis-profile ci
# What is long (`deep`) and what needs more than Python and Java. Much of it waits for servers; what shares one stays on one core.
LONG := (deep or kafka or connectors or minors or cluster or lake or browser) and not soak
pipeline: setup java browser ; $(JAVA) $(RUN) -m pytest -n 2 --dist loadgroup -q --durations 10 --hypothesis-profile ci -m '$(LONG)'
# Peers from the package registries, beside tidings in one run; what cannot be had is left out with its reason.
peers: setup java ; $(JAVA) $(RUN) -m benchmarks.peers
bench: setup ; $(RUN) -m benchmarks
data: setup ; @$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-data.lock
papers: data ; $(RUN) -m experiments
papers-full: data ; $(RUN) -m experiments --full
# Kernels with every index checked, over the state machines of structures, windows, boards and the topic; they have a cache of their
# own. DRAW=--few, as in CI, draws a handful of examples each.
DRAW ?=
bounds: setup ; NUMBA_BOUNDSCHECK=1 $(RUN) -m pytest -q -n 2 --timeout 3600 \
	--hypothesis-profile ci $(DRAW) tests/index tests/windows tests/boards tests/topic
# The same in plain Python, as topics are answered while nothing is compiled yet.
plain: setup ; TIDINGS_KERNELS=plain $(RUN) -m pytest -q -n 2 --timeout 3600 --hypothesis-profile ci $(DRAW) \
	tests/index tests/match tests/windows tests/boards tests/topic
# At most half an hour a run; it goes on where the last one stopped and adds to reliability/reliability.json and docs/reliability.md.
soak: setup java browser ; $(JAVA) $(RUN) -m pytest -m soak --timeout 7200 && $(RUN) -m tests.soak --minutes 25
# schemathesis over the service's OpenAPI document: minutes.
document: setup ; $(RUN) -m pytest -q -m document tests/serve
# A wheel that carries its kernels for a baseline CPU, and the test that it compiles nothing in an empty environment.
wheel: setup ; $(RUN) scripts/wheel.py && $(RUN) -m pytest -q -m wheel
# That wheel, the sources, a bill of materials and the changelog's section in dist, checked in an empty environment. CHANGELOG=--write puts
# the section into CHANGELOG.md; nothing is committed or tagged.
CHANGELOG ?=
release: wheel ; $(RUN) scripts/release.py $(CHANGELOG)
# Pages and drawings made from the code, then the site in build/site; a warning ends it.
docs: setup browser ; $(RUN) -m docs.generate && $(RUN) -m docs.site
demo: setup java ; $(JAVA) $(RUN) -m demo
# The console on what the demo left, until Ctrl-C.
live: setup ; $(RUN) -m demo.live
clean: ; rm -rf .venv .java build dist demo/data demo/checkpoint demo/report.html
