"""The packages, which pyproject.toml cannot say (``models/`` is ``spiderling.models``); scrapyd-deploy runs it."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["spiderling", "spiderling.*"]), "spiderling.models"])
