"""What a source of seeds is: a service on the web that is asked, or a file that it gives out."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeAlias

from scrapy.http import Request, Response

from spiderling.base.errors import BadInput
from spiderling.base.progress import Meter

Found: TypeAlias = "str | Request"
"""A URL that may be a seed, or a request that leads to more."""


class Source(Protocol):
    """A service on the web that knows URLs; it has no state but its arguments, so an interrupted run can go on."""

    name: str
    """What it is, for the head of the file."""
    retries: int
    """Further attempts after a failure that may pass: many at the one service that is asked, few at each of many
    sites."""

    def requests(self) -> Iterable[Request]:
        """The requests that are made first; they are the same each time."""

    def read(self, response: Response) -> Iterable[Found]:
        """The URLs and further requests in an answer, whose status may also be 400 to 410.

        Raises SpiderlingError if the service refuses; the same request is made again when the command is repeated.
        """


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file that a service gives out, packed by gzip or not, with a progress bar.

    Raises BadInput where it cannot be read any further.
    """
    try:
        with path.open("rb") as raw, closing(Meter("bytes", path.stat().st_size, in_bytes=True)) as meter:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            for line in gzip.GzipFile(fileobj=raw) if is_packed else raw:
                meter.add(raw.tell() - meter.done)
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not whole"
        raise BadInput(f"{path} cannot be read to its end ({reason}); download it again.") from None
