"""The files that an export writes: parts and shards, under temporary names until all are complete."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from spiderling.base.atomic_files import part_of, sync_directory, sync_file
from spiderling.base.errors import BadInput
from spiderling.export.formats import Writer, split_name, writer
from spiderling.export.selection import Layout

if TYPE_CHECKING:
    from spiderling.corpus.reader import StoredDocument

_MAX_WAITING_CHARS = 64_000_000
"""Text of all open files that waits to be written (chosen)."""
_MAX_OPEN = 256
"""Parquet files at once, which stay open until they are complete (chosen)."""


class _Shard:
    """A file that is being written."""

    def __init__(self, path: Path, format_name: str) -> None:
        """Raises BadInput if *path* exists."""
        if path.exists():
            raise BadInput(f"{path} exists; remove it, or give another name.")
        self.path = path
        self.part = part_of(path)
        self.documents = 0
        try:
            self.writer: Writer = writer(self.part, path.name, format_name)
        except OSError:
            with suppress(OSError):
                self.part.unlink(missing_ok=True)
            raise


class Written(NamedTuple):
    """A file that is complete."""

    name: str
    documents: int
    bytes: int


class Parts:
    """Distributes documents to files; memory grows neither with their number nor with their size."""

    def __init__(self, out: Path, format_name: str, layout: Layout) -> None:
        self._out = out
        self._format = format_name
        self._layout = layout
        self._open: dict[str, _Shard] = {}
        self._complete: list[_Shard] = []
        self._numbers: dict[str, int] = {}
        if not layout.splits:
            self._open[""] = self._next("")  # a corpus without documents makes a file, too

    def add(self, document: StoredDocument) -> None:
        """Raises BadInput and OSError."""
        name = self._layout.part_of(document.attributes)
        shard = self._open.get(name)
        if shard is None:
            if self._format == "parquet" and len(self._open) >= _MAX_OPEN:
                raise BadInput(
                    f"the split makes more than {_MAX_OPEN} files, too many for Parquet; take another format, or "
                    "select a part of the corpus with --where."
                )
            shard = self._open[name] = self._next(name)
        shard.writer.add(document)
        shard.documents += 1
        self._bound(name, shard)

    def _bound(self, name: str, shard: _Shard) -> None:
        """Write what waits when that is much; close a shard that is full."""
        if shard.writer.waiting == 0 and 0 < self._layout.shard_bytes <= shard.part.stat().st_size:
            self._close(shard)
            del self._open[name]
        if len(self._open) > 1 and sum(one.writer.waiting for one in self._open.values()) > _MAX_WAITING_CHARS:
            mean = _MAX_WAITING_CHARS / len(self._open)
            for one in self._open.values():
                if one.writer.waiting >= mean:
                    one.writer.flush()

    def _next(self, name: str) -> _Shard:
        stem, ending = split_name(self._out.name)
        if self._layout.shard_bytes:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            ending = f"-{self._numbers[name]:05d}{ending}"
        return _Shard(self._out.with_name(f"{stem}.{name}{ending}" if name else stem + ending), self._format)

    def _close(self, shard: _Shard) -> None:
        shard.writer.close()
        self._complete.append(shard)

    def commit(self) -> list[Written]:
        """Complete all files and give them their names; raises OSError."""
        for shard in self._open.values():
            self._close(shard)
        self._open.clear()
        for shard in self._complete:
            sync_file(shard.part)
        for shard in self._complete:
            shard.part.replace(shard.path)
        sync_directory(self._out.parent)
        found = [Written(s.path.name, s.documents, s.path.stat().st_size) for s in self._complete]
        return sorted(found)

    def abort(self) -> None:
        """Remove what is not complete."""
        for shard in [*self._open.values(), *self._complete]:
            shard.part.unlink(missing_ok=True)
