"""The sources of the project: a test of style looks at all of them, and names all that sin."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("simulator/tests/**/*.py")])


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def sinners(paths: Iterable[Path], sins: Callable[[Path], Any]) -> dict[str, Any]:
    """Those of *paths* in which *sins* finds some, with what it finds; there must be paths."""
    found = {str(path.relative_to(ROOT)): sins(path) for path in paths}
    assert found
    return {name: sin for name, sin in found.items() if sin}
