"""Bridges to packages that are not installed are not searched for doctests; random tests repeat themselves; slow ones
come first, so that no process is left alone with one in the end; a process multiplies matrices on one core."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import mpmath
import pytest
from hypothesis import settings

# Before numpy is loaded: every core has a process, and threads that wait for each other make it several times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BRIDGES = {"dp_accounting": "dp_accounting", "flower": "flwr", "opendp": "opendp", "pfl": "pfl"}
INTEROP = Path(__file__).parent / "pld_shuffle" / "interop"

collect_ignore = [str(INTEROP / f"{bridge}.py") for bridge, package in BRIDGES.items() if not find_spec(package)]

# A red build must be about the change. To search new cases: pytest --hypothesis-profile=default.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What a test does to mpmath's digits is its own: with hundreds of them, others took forty times as long."""
    with mpmath.workdps(mpmath.mp.dps):
        yield
