"""Packages that only some uses need: the extras of the distribution, as pyproject.toml has them."""

from __future__ import annotations

import importlib.util

from spiderling.base.errors import BadInput

MODULES = {
    "cluster": "redis",
    "commoncrawl": "duckdb",
    "dedup": "duckdb",
    "documents": "pypdfium2",
    "parquet": "pyarrow",
    "report": "vl_convert",
}
"""Extra -> the module that it brings."""


def missing(extra: str) -> str:
    """What is missing for *extra*, and how to install it; empty if it is there."""
    module = MODULES[extra]
    if importlib.util.find_spec(module):
        return ""
    return f"the package {module} is not installed; say: pip install 'scrapy-spiderling[{extra}]'"


def require(extra: str) -> None:
    """Raise BadInput if the package of *extra* is missing."""
    if sentence := missing(extra):
        raise BadInput(f"{sentence}.")
