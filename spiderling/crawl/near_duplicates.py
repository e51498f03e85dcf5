"""The near-duplicate filter of a crawl on disk: read at the start, written as snapshots and once more at the end."""

from __future__ import annotations

import asyncio
import logging

from spiderling.base.options import Options
from spiderling.corpus.near_duplicates import NearDuplicates, ShingleFilter
from spiderling.corpus.shingle_snapshot import ShingleState
from spiderling.crawl.checkpoint import Checkpoint
from spiderling.frontier.storage.protocol import State
from spiderling.jobdir.directory import Jobdir

logger = logging.getLogger(__name__)


class NearDuplicateFilter:
    """The filter, if the crawl looks for near-duplicates, and its files."""

    def __init__(self, options: Options, jobdir: Jobdir, state: State) -> None:
        """Read the last snapshot, and what the corpora hold that it does not cover; raises BadInput, StorageError."""
        self._files = ShingleState(jobdir.state / "shingles", options.filter_bytes())
        self._is_being_written = asyncio.Lock()
        """Two snapshots at a time would write the same files."""
        self._is_last_written = False
        self.near: NearDuplicates | None = None
        """None when the crawl does not look for near-duplicates."""
        if not options.knows_shingles():
            return
        lengths = {row.name: row.length_bytes for row in state.segments if row.kind == "corpus"}
        seen = self._files.load_filter(jobdir.corpus, lengths)
        corpora = [path.strip() for path in options.seen.split(",") if path.strip()]
        documents = self._files.load_corpora(seen, corpora)
        if documents:
            logger.info("%d documents of earlier corpora are known: what they hold is not new", documents)
        self.near = NearDuplicates(seen)

    async def write(self, checkpoint: Checkpoint, is_last: bool = False) -> None:
        """Write a snapshot that agrees with *checkpoint*; raises StorageError.  After the last one none is written.

        One at a time, for they write the same files.  The thread that writes ends even if the caller is cancelled, so
        the snapshot counts as being written until then.
        """
        if self.near is not None:
            await asyncio.shield(self._write(self.near.filter, checkpoint, is_last))

    async def _write(self, seen: ShingleFilter, checkpoint: Checkpoint, is_last: bool) -> None:
        async with self._is_being_written:
            if self._is_last_written:
                return
            self._is_last_written = is_last
            await checkpoint.flush()  # what is not covered is read again at a start, and counted again
            covered = dict(checkpoint.lengths)
            written = await asyncio.to_thread(self._files.write_layers, seen)
            await checkpoint.flush()  # the layers may hold documents that came while they were written
            self._files.write_index(seen, written, covered)
