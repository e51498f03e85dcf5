"""Each test of tests/text that reads pages runs twice: with the steps of Python, and with the compiled ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from needs import needs

from spiderling.text import process
from spiderling.text.steps import PYTHON, choose

CHOSEN = {"python": PYTHON, "compiled": choose().steps}
COMPILED = pytest.param("compiled", marks=needs("compiled steps"))
KINDS = ["python", COMPILED]
TESTS = str(Path(__file__).parent)
HOSTILE_KINDS = [pytest.param("python", marks=pytest.mark.slow), COMPILED]  # Python's steps take long for hostile pages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ == "test_compiled" or metafunc.definition.path.parent.name != "text":
        return  # test_compiled.py compares both itself
    if reads_pages(metafunc.function, vars(metafunc.module)):
        kinds = HOSTILE_KINDS if "hostile_page" in metafunc.function.__name__ else KINDS
        metafunc.parametrize("steps", kinds, indirect=True, scope="module")


def reads_pages(test: Any, names: dict[str, Any]) -> bool:
    """Whether a test calls `process` or a step, by a function, class or fixture of its module or of a helper."""
    known = {id(process), *map(id, PYTHON)}
    waiting, seen = [(test, names), *((mark.args, names) for mark in getattr(test, "pytestmark", ()))], {}
    while waiting:
        value, names = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            own = getattr(value, "__globals__", {})
            names = own if str(own.get("__file__")).startswith(TESTS) else names
            waiting += ((part, names) for part in parts_of(value, names))
    return bool(known & seen.keys())


def parts_of(value: Any, names: dict[str, Any]) -> list[Any]:
    """What a function, a class or a container is made of; a fixture and a test of properties wrap a function."""
    if isinstance(value, CodeType):
        used = {*value.co_names, *value.co_varnames} & names.keys()
        return [*value.co_consts, *(names[name] for name in used)]
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, type):
        return list(vars(value).values())
    inner = getattr(getattr(value, "hypothesis", None), "inner_test", None)
    return [one for one in (inner, getattr(value, "__wrapped__", None), getattr(value, "__code__", None)) if one]


@pytest.fixture(scope="module", autouse=True)  # pytest forgets one that is only appended, if a test has parameters
def steps(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the module calls by the names of steps, and `process` by default, is of this kind."""
    if not hasattr(request, "param"):
        yield
        return
    chosen = CHOSEN[request.param]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(process.__kwdefaults__, "steps", chosen)
        for name, value in list(vars(request.module).items()):
            for python, other in zip(PYTHON, chosen, strict=True):
                if value is python:
                    patched.setattr(request.module, name, other)
        yield
