"""setuptools' build backend; it asks for a C compiler from PyPI where the system has none."""

from __future__ import annotations

from typing import Any

from compilers import ZIG, compiler
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the other hooks as they are


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *([] if compiler() else [ZIG])]
