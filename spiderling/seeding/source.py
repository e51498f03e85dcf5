"""What a source of seeds is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from scrapy import Request
from scrapy.http import Response

Found: TypeAlias = "str | Request"
"""A URL that may be a seed, or a request that leads to more."""


class Source(Protocol):
    """A service on the web that knows URLs; it has no state but its arguments, so an interrupted run can go on."""

    name: str
    """What it is, for the head of the file."""

    def requests(self) -> Iterable[Request]:
        """What is asked first; the same each time."""

    def read(self, response: Response) -> Iterable[Found]:
        """What an answer holds; statuses 400 to 410 come here too.

        Raises SpiderlingError if the service refuses; the same request is made again when the command is repeated.
        """
