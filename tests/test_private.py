"""Tests come in by the public door: none touches an attribute that a module of another keeps to itself.

Ruff (SLF) finds those that are written as attributes; here are imports, and names that are given as strings.  Nor does
the package import what a library keeps to itself: a release of that may take it away.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.sources import ROOT, TESTS, sinners, tree_of

LIBRARIES = {"_sqlite3", "_typeshed"}  # what is imported all the same: to find a library, and for types
_PRIVATE = re.compile(r"(?:\w+\.)*_[a-zA-Z]\w*")
_SETTERS = {"delattr", "getattr", "hasattr", "object", "setattr"}
"""Functions, and methods of ``monkeypatch`` and ``mock.patch``, that are given the name of an attribute."""


def is_private(name: str) -> bool:
    """Whether the last part of a dotted *name* is private."""
    return bool(_PRIVATE.fullmatch(name)) and name.partition(".")[0] not in LIBRARIES


def private_names(tree: ast.AST) -> list[str]:
    """Private attributes of others that a module imports or names in strings, with the lines."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, alias.name) for alias in names if is_private(alias.name)]
            case ast.ImportFrom(module=str(module), names=names):
                parts = [module, *(f"{module}.{alias.name}" for alias in names)]
                found += [(node.lineno, part) for part in parts if is_private(part)]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=arguments) if called in _SETTERS:
                given = [str(one.value) for one in arguments if isinstance(one, ast.Constant)]
                found += [(node.lineno, name) for name in given if name.isidentifier() and is_private(name)]
            case ast.Constant(value=str(text)) if "." in text and is_private(text):
                found.append((node.lineno, text))
    return [f"line {line}: {name}" for line, name in sorted(found)]


def test_no_test_names_what_a_module_keeps_to_itself() -> None:
    others = (path for path in TESTS if path != Path(__file__))
    touched = sinners(others, lambda path: private_names(tree_of(path)))
    assert touched == {}, "test what can be seen from outside"


def private_imports(path: Path) -> list[str]:
    """Private parts of libraries that a module of the package imports."""
    nodes = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom))
    named = [name for node in nodes for name in private_names(node)]
    return [name for name in named if " spiderling." not in name]


def test_the_package_imports_no_private_part_of_a_library() -> None:
    assert sinners((ROOT / "spiderling").rglob("*.py"), private_imports) == {}


CASES = [
    ("from spiderling.base.urls import _parsed", True),
    ("import a._b", True),
    ("from _f import g", True),
    ("monkeypatch.setattr(registry, '_info', None)", True),
    ("mock.patch.object(registry, '_info')", True),
    ("patched.setattr('spiderling.crawl.crawl._KNOWN', 1)", True),
    ("LIMITS = {'storage.queues._KNOWN': 1}", True),
    ("module.__file__", False),
    ("name.endswith('_s')", False),
    ("monkeypatch.setattr('spiderling.frontier.worth._SECTIONS', 100)", True),
    ("monkeypatch.setattr('spiderling.frontier.worth.SECTIONS', 100)", False),
]


def test_such_a_name_is_found() -> None:
    assert [source for source, is_found in CASES if bool(private_names(ast.parse(source))) is not is_found] == []
