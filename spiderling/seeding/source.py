"""What a source of seeds is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

Found: TypeAlias = "str | Request"
"""A URL that may be a seed, or a request that leads to more."""


class Source(Protocol):
    """A service on the web that knows URLs; no state but its arguments, so that it can be gone on with."""

    name: str
    """What it is, for the head of the file."""

    def requests(self) -> Iterable[Request]:
        """What is asked first; the same each time."""

    def read(self, response: Response) -> Iterable[Found]:
        """What an answer holds, also one with status 400 to 410.

        Raises SpiderlingError if the service refuses: it is asked the same again when the command is repeated.
        """
