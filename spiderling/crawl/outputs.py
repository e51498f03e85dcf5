"""Which kinds of segments a crawl writes, by its options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spiderling.base.options import Options
from spiderling.corpus.links import LinkKind
from spiderling.corpus.segments import SUFFIX, SegmentKind, SegmentWriter
from spiderling.corpus.warc import WarcKind
from spiderling.frontier.storage.protocol import SegmentRow


def writers_of(options: Options, prefix: str, directory: Path, known: Sequence[SegmentRow]) -> list[SegmentWriter]:
    """The writers of the crawl in *directory*, that of the corpus first; *prefix* begins the names of its segments.

    A kind that is off now, but has *known* segments, gets a writer as well.  Raises StorageError.
    """
    about = {"operator": options.contact, "robots": "obey", "isPartOf": directory.absolute().name}
    kinds: dict[SegmentKind, bool] = {
        SegmentKind("corpus", SUFFIX): True,
        LinkKind(): options.links == "on",
        WarcKind(options.warc, about): options.warc != "off",
    }
    writers = []
    for kind, is_on in kinds.items():
        if is_on or any(row.kind == kind.name for row in known):
            (directory / kind.name).mkdir(exist_ok=True)
            writers.append(SegmentWriter(directory / kind.name, prefix, options.segment_bytes, known, kind))
    return writers
