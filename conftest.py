"""Bridges to packages that are not installed are not searched for doctests: importing one is an error."""

from importlib.util import find_spec
from pathlib import Path

BRIDGES = {"dp_accounting": "dp_accounting", "flower": "flwr", "opendp": "opendp", "pfl": "pfl"}
INTEROP = Path(__file__).parent / "pld_shuffle" / "interop"

collect_ignore = [
    str(INTEROP / f"{bridge}.py") for bridge, package in BRIDGES.items() if not find_spec(package)
]
