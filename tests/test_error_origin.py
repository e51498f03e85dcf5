"""Where an error comes from is told by the files that it went through."""

from __future__ import annotations

from pathlib import Path

import pytest
import scrapy

import spiderling
from spiderling.base.errors import is_made_here, is_ours

OURS = str(Path(spiderling.__file__).parent)
SCRAPY = str(Path(scrapy.__file__).parent)


def raised_in(path: str, caller: str) -> BaseException:
    """An error that the file *path* raised, called by the file *caller*."""
    inner = compile("raise LookupError", path, "exec")
    with pytest.raises(LookupError) as caught:
        exec(compile("exec(inner)", caller, "exec"), {"inner": inner})
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        (f"{OURS}/text/page.py", True),
        (f"{OURS}_extra/pipelines.py", False),
        ("/home/somebody/scrapy/pipelines.py", False),
        ("/home/somebody/twisted/corpus/pipelines.py", False),
    ],
)
def test_the_first_file_behind_scrapy_tells_whose_error_it_is(path: str, ours: bool) -> None:
    error = raised_in(path, f"{SCRAPY}/middleware.py")
    assert is_ours(error) is ours
    assert is_made_here(error) is ours


def test_what_a_library_raises_for_us_is_ours_and_for_a_project_is_not() -> None:
    library = "/usr/lib/python3/site-packages/lxml/html.py"
    assert is_ours(raised_in(library, f"{OURS}/text/page.py"))
    assert not is_ours(raised_in(library, "/home/somebody/scrapy/pipelines.py"))
    assert not is_made_here(raised_in(library, f"{OURS}/text/page.py"))
