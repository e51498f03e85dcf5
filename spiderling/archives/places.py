"""How far one archive is done; small enough to be written with every checkpoint.

Pages come back from the pipelines in another order than they were read.  So a place is the last record up to which all
is done, and the few records behind it that are done.  After a kill all other records are read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Position(NamedTuple):
    """Where a record begins."""

    member: int
    """Bytes of the archive before its compressed member; 0 in one that is not compressed."""
    inner: int = 0
    """Bytes of the decompressed member before it."""


BEGIN = Position(-1)
"""A position before every record."""


class Place:
    """The records of one archive: in work, done, still to come."""

    def __init__(self, saved: Mapping[str, Any] = MappingProxyType({}), source: str = "") -> None:
        """Go on in the archive *source* from *saved*, which the method ``saved`` returned."""
        self.source = source
        self.last = Position(*saved.get("last", BEGIN))
        """Everything up to here is done."""
        self._done = {Position(*position) for position in saved.get("done", ())}
        self._open: OrderedDict[Position, bool] = OrderedDict()
        """Records since ``last`` in the order of the archive: whether each is done."""
        self.size: int | None = saved.get("size")
        """Bytes of the archive when all of it had been read; None: it has not been, or its size is unknown."""
        self.records: int = saved.get("records", 0)
        """How many are done."""
        self.damaged: int = saved.get("damaged", 0)
        """Parts that could not be read."""

    def begin_record(self, position: Position) -> bool:
        """Begin the record at *position*; False if it was done before."""
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
        """Records since ``last``, done or not."""
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in work."""
        return not self._open

    def saved(self) -> dict[str, Any]:
        """The place as a value for JSON."""
        done = sorted({*self._done, *(position for position, is_done in self._open.items() if is_done)})
        size = self.size if self.is_idle else None
        return {"last": self.last, "done": done, "size": size, "records": self.records, "damaged": self.damaged}
