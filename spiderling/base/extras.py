"""Packages that only some uses need: the extras of the distribution, as pyproject.toml has them."""

from __future__ import annotations

import importlib.util
import shlex
import sys

from spiderling.base.errors import BadInput

MODULES = {
    "cluster": ("redis", "redis>=8,<9"),
    "commoncrawl": ("duckdb", "duckdb>=1.1"),
    "dedup": ("duckdb", "duckdb>=1.1"),
    "documents": ("pypdfium2", "pypdfium2>=5"),
    "parquet": ("pyarrow", "pyarrow>=17"),
    "report": ("vl_convert", "vl-convert-python>=1.9"),
}
"""Extra -> (the module that it brings, the requirement that is that package)."""


def pip_install(requirement: str) -> str:
    """The command line that installs *requirement* for the Python that runs this."""
    return shlex.join([sys.executable, "-m", "pip", "install", requirement])


def missing(extra: str) -> str:
    """What is missing for *extra*, and how to install it; empty if it is there."""
    module, requirement = MODULES[extra]
    if importlib.util.find_spec(module):
        return ""
    return f"the package {module} is not installed; say: {pip_install(requirement)}"


def require(extra: str) -> None:
    """Raise BadInput if the package of *extra* is missing."""
    if sentence := missing(extra):
        raise BadInput(f"{sentence}.")
