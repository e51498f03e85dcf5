"""The line that shows how far a long command is, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def with_progress(entries: Iterable[_T], unit: str, total: int = 0, every_s: float = 1.0) -> Iterator[_T]:
    """*entries* as they are; meanwhile a line on standard error, if that is a terminal, says how many came.

    *total*: how many there will be; 0: nobody knows.  The line is gone afterwards.
    """
    from tqdm import tqdm  # takes longer to load than most commands run, and most need none

    yield from tqdm(
        entries, total=total or None, unit=f" {unit}", disable=None, leave=False, mininterval=every_s, smoothing=0
    )
