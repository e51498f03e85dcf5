"""How far one archive is done, in a form small enough for every checkpoint.

Pages leave the pipelines in another order than they were read.  So a place is the record up to which all are done, and
the few records behind it that are done.  After a kill all other records are read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

META_KEY = "archive:"
"""Prefix of an archive's key in the store's table ``meta``; the archive's name follows."""
UNREAD_KEY = "archives_unread"
"""Key in that table of the number of archives that are not read to their end."""


class Position(NamedTuple):
    """Where a record begins."""

    member: int
    """Byte of the archive at which its compressed member begins; 0 in a plain archive."""
    inner: int = 0
    """Byte of the decompressed member at which it begins."""


BEGIN = Position(-1)
"""A position before every record."""


class Place:
    """The records of one archive: which are in work, and which done."""

    def __init__(self, saved: Mapping[str, Any] = MappingProxyType({}), source: str = "") -> None:
        """Go on in the archive *source* from *saved*, a value that the method ``saved`` returned."""
        self.source = source
        self.last = Position(*saved.get("last", BEGIN))
        """The record up to which all are done."""
        self._done = {Position(*position) for position in saved.get("done", ())}
        self._open: OrderedDict[Position, bool] = OrderedDict()
        """Record behind ``last`` -> whether it is done, in the order of the archive."""
        self.size: int | None = saved.get("size")
        """Bytes of the archive when it was read to its end (0: unknown); None before that."""
        self.records: int = saved.get("records", 0)
        """Number of records that are done."""
        self.damaged: int = saved.get("damaged", 0)
        """Number of damaged parts."""

    def begin_record(self, position: Position) -> bool:
        """Begin the record at *position*; returns False if it was done before."""
        if position <= self.last:
            return False
        self._open[position] = position in self._done
        if position not in self._done:
            return True
        self._done.discard(position)
        self._advance()
        return False

    def end_record(self, position: Position) -> None:
        """The record at *position* is done."""
        self._open[position] = True
        self.records += 1
        self._advance()

    def _advance(self) -> None:
        while self._open and self._open[first := next(iter(self._open))]:
            self.last = first
            del self._open[first]

    @property
    def spread(self) -> int:
        """Number of records behind ``last``, done or not."""
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether no record is in work."""
        return not self._open

    def saved(self) -> dict[str, Any]:
        """The place as a value for JSON."""
        done = sorted({*self._done, *(position for position, is_done in self._open.items() if is_done)})
        size = self.size if self.is_idle else None
        return {"last": self.last, "done": done, "size": size, "records": self.records, "damaged": self.damaged}
