"""``links/``: the end of every URL that was requested, and its page's links; for simulator and link analysis.

A segment (segments.py) holds lines of JSON in zstd frames, one line for each URL that ended with a request:

    {"url": "http://a.example/", "time": 1760000000.0, "reason": "kept", "status": 200, "language": "cs",
     "downloaded_bytes": 30211, "kept_bytes": 2210, "words": 340, "redirect_to": null,
     "links": ["http://a.example/2", ...], "scores": [231, ...], "anchors": [18, ...], "relevant": true, "badness": 7.2,
     "page_language": "cs", "sketch": 1234567890123, "text_key": 9876543210, "said": []}

``downloaded_bytes`` and ``kept_bytes`` are those of the yield rate; ``text_key`` is 64 bits of the clean text's digest.
Four lists have one entry for each link that may be followed.  ``links``: its canonical URL.  ``scores``: how likely the
block around it is running text, 0 to 255 (after Schäfer, Barbaresi & Bildhauer 2014).  ``anchors``: characters of its
text (0: an image or nothing; 255 stands for more).  ``said``: 4 if hreflang names an accepted language, 8 if another,
else 0; this list is empty if all are 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import StorageError
from spiderling.base.link_batch import FOREIGN, WANTED, batch_of
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.segments import SegmentKind, frame_texts


class LinkLine(NamedTuple):
    """One line; the module's docstring explains the fields."""

    url: str
    time: float
    reason: str
    status: int
    language: str | None
    downloaded_bytes: int
    kept_bytes: int
    words: int
    redirect_to: str | None
    links: list[str]
    scores: list[int]
    anchors: list[int]
    relevant: bool = False
    badness: float = 0.0
    page_language: str = ""
    sketch: int | None = None  # none if it was not recorded
    text_key: int = 0
    said: Sequence[int] = ()


class LinkKind(SegmentKind):
    """Writes (Outcome, end, seconds since 1970)."""

    def __init__(self) -> None:
        super().__init__("links", ".links.zst")

    def pack(self, entries: Sequence[tuple[Outcome, Reason, float]]) -> bytes:
        return super().pack([_line(*entry) for entry in entries])


def _line(outcome: Outcome, end: Reason, now: float) -> bytes:
    batch = batch_of(outcome.links)
    rows = list(batch.rows())
    said = [flags & (WANTED | FOREIGN) for flags in (*batch.flags, *(other[2] for other in batch.others))]
    line = LinkLine(
        url=outcome.url,
        time=round(now, 3),
        reason=end.value,
        status=outcome.status,
        language=outcome.language,
        downloaded_bytes=outcome.body_bytes,
        kept_bytes=outcome.kept_bytes,
        words=outcome.words,
        redirect_to=outcome.redirect_to,
        links=[url for url, _, _ in rows],
        scores=[score for _, score, _ in rows],
        anchors=[anchor for _, _, anchor in rows],
        relevant=outcome.relevant,
        badness=round(outcome.badness, 2),
        page_language=outcome.page_language,
        sketch=outcome.sketch,
        text_key=outcome.text_key,
        said=said if any(said) else (),
    )
    return json.dumps(line._asdict(), separators=(",", ":")).encode() + b"\n"


def read_links(path: Path, length: int | None = None) -> Iterator[LinkLine]:
    """The lines of a segment, or of its first *length* bytes; raises StorageError if it is damaged."""
    try:
        for text in frame_texts(path, path.stat().st_size if length is None else length):
            for line in text.splitlines():
                yield LinkLine(**json.loads(line))
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error
