"""Tells where an error comes from: our own code, the user's, or a library that we called."""

from __future__ import annotations

import os
import traceback
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"
_CARRIERS = (
    *(
        f"{Path(spec.origin).parent}{os.sep}"
        for spec in map(find_spec, ("scrapy", "twisted", "asyncio"))
        if spec and spec.origin
    ),
    f"{_PACKAGE}engine/fast_scrapy.py",
)
"""What the paths of files begin with that only hand a request or an item on to a component."""


def is_ours(error: BaseException) -> bool:
    """Whether *error* came from a component of Spiderling or a library that it called; False for the user's project."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not path.startswith(_CARRIERS):
            return path.startswith(_PACKAGE)
    return False


def is_made_here(error: BaseException) -> bool:
    """Whether code of Spiderling itself raised *error*, not a library that it called."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and frames[-1][0].f_code.co_filename.startswith(_PACKAGE)


def place_of(error: BaseException) -> str:
    """File, line and function of the innermost frame of *error* in Spiderling, or of the innermost if none is."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
    if not ours:
        return "an unknown place"
    path = Path(ours[-1].filename)
    name = path.relative_to(Path(_PACKAGE).parent) if path.is_relative_to(_PACKAGE) else path.name
    return f"{name}:{ours[-1].lineno} in {ours[-1].name}"
