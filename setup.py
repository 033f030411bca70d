"""What a package index shows: the README, with links and pictures that work there. All else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

REPOSITORY = "https://github.com/pld-shuffle/pld_shuffle"


def absolute(match: "re.Match[str]") -> str:
    """A link or a picture of the repository, with its whole address."""
    kind = "raw" if match[1] else "blob"
    return f"{match[1]}[{match[2]}]({REPOSITORY}/{kind}/main/{match[3]})"


README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(
    long_description=re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)", absolute, README),
    long_description_content_type="text/markdown",
)
