"""Samples of a crawl, and the measures of the papers.

Harvest rate and coverage are those of Tamura, Somboonviwat & Kitsuregawa 2006, where a page is
relevant if it is in a wanted language.  The yield rate is that of Suchomel & Pomikálek 2012.
Words per MB say the same for somebody who counts the words of a corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MB = 1e6


class Sample(NamedTuple):
    """Sums from the beginning of a crawl up to one moment."""

    seconds: float
    """Simulated time."""
    pages: int
    """Judged responses; site files and redirects are not among them."""
    requests: int
    """All that were sent, for site files and redirects too."""
    relevant: int
    """Pages in a wanted language, with or without text."""
    documents: int
    words: int
    downloaded_bytes: int
    """Bytes of all bodies, site files among them."""
    kept_bytes: int
    waiting: int
    retired: int
    """Retired hosts."""

    @property
    def hours(self) -> float:
        return self.seconds / 3600

    @property
    def harvest_rate(self) -> float:
        """Relevant pages / pages."""
        return self.relevant / self.pages if self.pages else 0.0

    @property
    def requests_per_page(self) -> float:
        return self.requests / self.pages if self.pages else 0.0

    @property
    def yield_rate(self) -> float:
        """Kept / downloaded bytes."""
        return self.kept_bytes / self.downloaded_bytes if self.downloaded_bytes else 0.0

    @property
    def words_per_mb(self) -> float:
        """Words kept for a downloaded megabyte."""
        return self.words / self.downloaded_bytes * MB if self.downloaded_bytes else 0.0

    @property
    def pages_per_s(self) -> float:
        """Pages for each second of simulated time, under politeness."""
        return self.pages / self.seconds if self.seconds else 0.0


class Truth(NamedTuple):
    """All that a web holds."""

    pages: int
    relevant: int
    words: int
    kept_bytes: int


def coverage(sample: Sample, truth: Truth) -> float:
    """Relevant pages met / relevant pages of the web."""
    return sample.relevant / truth.relevant if truth.relevant else 0.0


def word_coverage(sample: Sample, truth: Truth) -> float:
    """Words kept / words of the web."""
    return sample.words / truth.words if truth.words else 0.0


def at_words(samples: Sequence[Sample], words: float) -> Sample | None:
    """The first of *samples* with at least so many *words*; None if there is none."""
    return next((sample for sample in samples if sample.words >= words), None)


def at_pages(samples: Sequence[Sample], pages: float) -> Sample:
    """The first of *samples* with at least so many *pages*, else the last; there must be a sample."""
    return next((sample for sample in samples if sample.pages >= pages), samples[-1])
