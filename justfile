# The commands people need; `just` lists them.

default:
    @just --list

# Everything that matters, on all cores
test *arguments:
    python -m pytest {{arguments}}

# The slow tests as well
test-all:
    python -m pytest -m ""

# Style and types
lint:
    ruff check .
    ruff format --check .
    mypy

# The documentation site, into build/site
docs:
    sphinx-build --fail-on-warning --keep-going -c docs . build/site

# Every figure, again
figures:
    for script in benchmarks/figures/*.py; do python "$script"; done

# What continuous integration runs, on a fresh virtual environment
ci:
    bash .ci/run
