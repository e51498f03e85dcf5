"""Tests come in by the public door: none touches an attribute that a module of another keeps to itself.

Nor does the package import what a library keeps to itself: a release of that may take it away.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import spiderling
from tests.sources import TESTS, sinners, tree_of

PACKAGE = Path(spiderling.__file__).parent
LIBRARIES = {"_typeshed"}
"""What is imported all the same, for types."""
OF_THE_LANGUAGE = {"_asdict", "_fields", "_make", "_replace", "_exit"}
"""Public in spite of their names: those of NamedTuple and of ``os``."""
EXCEPTIONS = {"worth._MAX_HOSTS", "worth._SECTIONS", "schedule._MAX_NAMES"}
"""Limits that a test makes small, because only a long crawl reaches them.  No other module has a use for them."""
_PATH = re.compile(r"(?:\w+\.)+_[a-zA-Z]\w*")
_SETTERS = {"delattr", "getattr", "hasattr", "object", "setattr"}
"""Functions, and methods of ``monkeypatch`` and ``mock.patch``, that are given the name of an attribute."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_THE_LANGUAGE


def private_names(tree: ast.AST) -> list[str]:
    """Private attributes that a module touches of others, with the lines."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                found.append((node.lineno, name))
            case ast.ImportFrom(names=names):
                found += [(node.lineno, alias.name) for alias in names if is_private(alias.name)]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=arguments) if called in _SETTERS:
                given = [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                found += [(node.lineno, name) for name in given if is_private(name)]
            case ast.Constant(value=str(text)) if _PATH.fullmatch(text):
                found.append((node.lineno, text.removeprefix("spiderling.frontier.")))
    return [f"line {line}: {name}" for line, name in sorted(found) if name not in EXCEPTIONS]


def test_no_test_touches_what_a_module_keeps_to_itself() -> None:
    others = (path for path in TESTS if path != Path(__file__))
    touched = sinners(others, lambda path: private_names(tree_of(path)))
    assert touched == {}, "test what can be seen from outside"


def test_the_exceptions_are_few_and_used() -> None:
    assert len(EXCEPTIONS) <= 5
    text = "".join(path.read_text("utf-8") for path in TESTS if path != Path(__file__))
    assert all(name in text for name in EXCEPTIONS)


def private_imports(tree: ast.AST) -> list[str]:
    """Private modules and names that a module imports from elsewhere than spiderling."""
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names) if module not in LIBRARIES:
                found += [f"{module}.{alias.name}" for alias in names]
    outside = (name for name in found if not name.startswith("spiderling.") and name not in LIBRARIES)
    return [name for name in outside if any(map(is_private, name.split(".")))]


def test_the_package_imports_no_private_part_of_a_library() -> None:
    assert sinners(PACKAGE.rglob("*.py"), lambda path: private_imports(tree_of(path))) == {}
    assert private_imports(ast.parse("import a._b\nfrom c.d import _e\nfrom _f import g")) == ["a._b", "c.d._e", "_f.g"]


CASES = [
    ("store._rows()", True),
    ("from spiderling.base.urls import _parsed", True),
    ("monkeypatch.setattr(registry, '_info', None)", True),
    ("mock.patch.object(registry, '_info')", True),
    ("patched.setattr('spiderling.crawl.crawl._KNOWN', 1)", True),
    ("LIMITS = {'storage.queues._KNOWN': 1}", True),
    ("super()._take()", True),
    ("self._rows", False),
    ("row._replace(id=1)", False),
    ("os._exit(0)", False),
    ("module.__file__", False),
    ("name.endswith('_s')", False),
    ("monkeypatch.setattr('spiderling.frontier.worth._SECTIONS', 100)", False),
]


def test_a_touch_is_found() -> None:
    assert [source for source, is_found in CASES if bool(private_names(ast.parse(source))) is not is_found] == []
