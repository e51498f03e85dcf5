"""Every test of tests/text that reads pages runs twice: with the steps of Python, and with the compiled ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from needs import needs

from spiderling.text import process
from spiderling.text.compiled import choose
from spiderling.text.steps import PYTHON

CHOSEN = {"python": PYTHON, "compiled": choose().steps}
KINDS = ["python", pytest.param("compiled", marks=needs("compiled steps"))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ == "test_compiled" or metafunc.definition.path.parent.name != "text":
        return  # test_compiled.py compares both itself
    known = {id(process), *map(id, PYTHON)}
    if known & set(map(id, vars(metafunc.module).values())):
        metafunc.parametrize("steps", KINDS, indirect=True, scope="module")


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
