"""What scrapyd-deploy runs (``setup.py bdist_egg``): the package, and ``models/`` in it as ``spiderling.models``."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "spiderling/__init__.py").read_text())[1]  # type: ignore[index]
REQUIREMENTS = [line.split("#")[0].strip() for line in (HERE / "requirements.txt").read_text().splitlines()]

setup(
    name="scrapy-spiderling",
    version=VERSION,
    description="A crawler that builds a text corpus in a language you name",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=[*find_packages(include=["spiderling", "spiderling.*"]), "spiderling.models"],
    package_dir={"spiderling": "spiderling", "spiderling.models": "models"},
    package_data={
        "spiderling.text.boilerplate": ["*.json"],
        "spiderling.reporting": ["*.css", "*.js"],
        "spiderling.models": ["*/*", "cc-by-sa/*/*", "*.yaml", "*.md"],
    },
    install_requires=[requirement for requirement in REQUIREMENTS if requirement],
    entry_points={
        "scrapy": ["settings = spiderling.settings"],
        "scrapy.commands": [
            "dedup = spiderling.commands.dedup:Command",
            "export = spiderling.commands.export:Command",
            "inspect = spiderling.commands.inspect:Command",
            "identify = spiderling.commands.identify:Command",
            "seeds = spiderling.commands.seeds:Command",
            "simulate = spiderling.commands.simulate:Command",
            "page = spiderling.commands.page:Command",
            "report = spiderling.commands.report:Command",
            "train = spiderling.commands.train:Command",
        ],
    },
    zip_safe=True,
)
